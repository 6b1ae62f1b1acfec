package statdim

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
)

// slq estimates the curve λ ↦ s_λ(K) at the problem's λ and at Options.Lambdas. It runs one Lanczos process of K for
// each probe z of signs. With T_k the tridiagonal matrix after k steps, zᵀ(K+λI)⁻¹z lies between the Gauss rule
// n·e₁ᵀ(T_k+λI)⁻¹e₁ and the Gauss–Radau rule with a node at −e, for every λ, where no eigenvalue of K as stored is
// below −e. A process ends when these bounds are close enough at the problem's λ. The control variate at each λ is that
// of (ZZᵀ+λI)⁻¹.
//
// For m probes of k steps the work is 2kmn² flops for the products and 4k²mn for full orthogonalization. The memory is
// 8kn bytes per probe; the size of a batch limits it to about 1 GB. If ctx ends, slq returns the result of the complete
// batches, or nil if there is none, together with ctx's error.
func slq(ctx context.Context, p *problem, o *Options) (*Estimates, error) {
	state := &slqRun{options: o}
	for _, l := range grid(p.Lambda, o.Lambdas) {
		shiftedProblem := *p
		if shiftedProblem.Lambda = l; p.Control != nil {
			var err error
			if shiftedProblem.Control, err = p.Control.WithLambda(l); err != nil {
				return nil, err
			}
		}
		state.problems = append(state.problems, &shiftedProblem)
		if l == p.Lambda {
			state.problem = &shiftedProblem
		}
	}
	state.samples = make([]sample, len(state.problems))
	res, err := p.narrowInterval(o, func(m int, _ float64, current estimate.Interval) (*Estimates, error) {
		for state.probes < m {
			if err := state.batch(ctx, min(m-state.probes, state.batchSize()), current); err != nil {
				return nil, err
			}
		}
		return state.result(), nil
	})
	if res != nil {
		for i := range res.Curve {
			res.Curve[i].Estimate.Seconds = res.Estimate.Seconds
		}
	}
	return res, err
}

// slqRun is the state of stochastic Lanczos quadrature.
type slqRun struct {
	problem  *problem   // problem at its own λ
	problems []*problem // problems at each λ of the curve; problem is one of them
	samples  []sample   // samples of each of the problems
	options  *Options
	probes   int
	steps    int // largest number of steps of a batch
	products int // number of vectors multiplied by K
}

// batchSize returns a number of probes whose Lanczos vectors fit in a gigabyte.
func (c *slqRun) batchSize() int {
	const bytes = 1 << 30
	return max(1, min(bytes/(8*c.problem.K.Dim()*min(maxSteps, c.problem.K.Dim())), blockColumns))
}

// result returns the curve estimated from the probes so far.
func (c *slqRun) result() *Estimates {
	res := &Estimates{Probes: c.probes, Steps: c.steps, Products: c.products}
	for i, p := range c.problems {
		var numbers Estimates
		p.setEstimate(&numbers, &c.samples[i], c.options, "slq")
		res.Curve = append(res.Curve, CurvePoint{p.Lambda, numbers.Estimate})
		if p == c.problem {
			res.Estimate, res.Sampling, res.Truncation, res.Storage, res.VarianceExplained =
				numbers.Estimate, numbers.Sampling, numbers.Truncation, numbers.Storage, numbers.VarianceExplained
		}
	}
	return res
}

// batch runs the next m probes. Every fifth step it bounds the quadratic form of each probe, and it ends a process when
// the mean bound is small enough. It then adds the forms of all probes to the samples of all λ.
func (c *slqRun) batch(ctx context.Context, m int, current estimate.Interval) error {
	n := c.problem.K.Dim()
	z := estimate.RandomSigns(n, c.probes, m, c.options.stream)
	var running []*lanczos.Result
	y, half := make([]float64, m), slices.Repeat([]float64{float64(n)}, m) // zᵀ(I−λA⁻¹)z is in [0, n]
	results, err := lanczos.RunFrom(ctx, shifted{c.problem.K, 0}, z, &lanczos.Options{
		Steps: maxSteps, Quantity: lanczos.TridiagonalOnly,
		Monitor: func(r *lanczos.Result) error {
			if r.Steps == 1 {
				running = append(running, r)
			}
			if r.Steps%5 != 0 && r.Beta[r.Steps-1] > 0 {
				return nil
			}
			j := slices.Index(running, r)
			y[j], half[j] = c.problem.quadraticForm(r)
			// the mean truncation may take a tenth of the requested half-width
			truncation, target, share := stat.Mean(half, nil), 0.05*c.options.Width*stat.Mean(y, nil), 1.0
			if truncation > target { // it decreases geometrically, from n
				share = math.Log(float64(n)/truncation) / math.Log(float64(n)/target)
			}
			if c.options.progress(int(100*max(0, share)), 100, current); truncation > target {
				return nil
			}
			return lanczos.ErrStop
		}})
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
	}
	if err != nil {
		return err
	}
	for i, p := range c.problems {
		s := &c.samples[i]
		if err := p.appendControl(ctx, s, z); err != nil {
			return err
		}
		for _, r := range results {
			y, half := p.quadraticForm(r)
			s.y, s.halfWidths = append(s.y, y), append(s.halfWidths, half)
		}
	}
	c.probes += m
	for _, r := range results {
		c.steps = max(c.steps, r.Steps)
		c.products += r.Steps
	}
	return nil
}

// quadraticForm returns zᵀ(I−λA⁻¹)z, A = K+λI, with its error bound ±half, from the Lanczos process that began with the
// signs z. The node of the Gauss–Radau rule is at −λ/2 at least, so that A stays positive definite.
func (p *problem) quadraticForm(r *lanczos.Result) (y, half float64) {
	norm := max(slices.Max(r.Alpha), slices.Max(r.Beta))
	lo, hi := inverseBounds(r, p.Lambda, -min(p.Error+rounding(norm, r.N), p.Lambda/2))
	zz := float64(r.N)
	return zz * (1 - p.Lambda*(lo+hi)/2), zz * p.Lambda * (hi - lo) / 2
}

// rounding returns n·2⁻⁵²·norm, an estimate of how negative rounding can make an eigenvalue of the Lanczos matrix T of
// a positive semi-definite K. The norm is the largest entry of T, at least a third of ‖T‖₂.
func rounding(norm float64, n int) float64 { return float64(n) * 0x1p-52 * norm }

// inverseBounds bounds qᵀ(K+λI)⁻¹q, q = z/‖z‖₂: the Gauss rule e₁ᵀ(T_k+λI)⁻¹e₁ is the lower bound and, with a ≤
// μ_min(K), the Gauss–Radau rule with a node at a is the upper bound.
func inverseBounds(r *lanczos.Result, lambda, a float64) (lo, hi float64) {
	lo = inverseEntry(r.Alpha, r.Beta, lambda)
	alpha := r.RadauDiagonal(a)
	if alpha == nil { // possible only because of rounding
		return lo, 1 / (lambda + a)
	}
	return lo, max(lo, inverseEntry(alpha, r.Beta, lambda))
}

// inverseEntry returns e₁ᵀ(T+λI)⁻¹e₁ = 1/d₁,  d_k = α_k+λ,  d_i = α_i+λ−β_i²/d_{i+1}.
func inverseEntry(alpha, beta []float64, lambda float64) float64 {
	k := len(alpha) - 1
	d := alpha[k] + lambda
	for i := k - 1; i >= 0; i-- {
		d = alpha[i] + lambda - beta[i]*beta[i]/d
	}
	return 1 / d
}
