package statdim

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
)

// slq estimates the curve λ ↦ s_λ(K) at the problem's λ and at Options.Lambdas by stochastic Lanczos quadrature (Ubaru,
// Chen and Saad 2017, see the package). It runs one Lanczos process of K for each probe z, a random vector of signs.
// With T_k the tridiagonal matrix after k steps, zᵀ(K+λI)⁻¹z lies between the Gauss rule n·e₁ᵀ(T_k+λI)⁻¹e₁ and the
// Gauss–Radau rule with a node at −e, for every λ, if no eigenvalue of the stored K is below −e. A process ends when
// these bounds are close enough at the problem's λ. The control variate at each λ is zᵀ(I−λ(ZZᵀ+λI)⁻¹)z.
//
// For m probes of k steps the work is 2kmn² flops for the products and 4k²mn for full orthogonalization. The memory is
// 8kn bytes per probe; the size of a batch limits it to about 1 GB. If ctx ends, slq returns the result of the complete
// batches, or nil if there is none, together with ctx's error.
func slq(ctx context.Context, p *problem, options *Options) (*Estimates, error) {
	state := &slqRun{options: options}
	for _, lambda := range lambdaGrid(p.Lambda, options.Lambdas) {
		curveProblem := *p
		if curveProblem.Lambda = lambda; p.Control != nil {
			var err error
			if curveProblem.Control, err = p.Control.WithLambda(lambda); err != nil {
				return nil, err
			}
		}
		state.curveProblems = append(state.curveProblems, &curveProblem)
		if lambda == p.Lambda {
			state.problem = &curveProblem
		}
	}
	state.samples = make([]probeValues, len(state.curveProblems))
	result, err := p.narrowInterval(options, func(m int, _ float64, current estimate.Interval) (*Estimates, error) {
		for state.probes < m {
			if err := state.runBatch(ctx, min(m-state.probes, state.batchSize()), current); err != nil {
				return nil, err
			}
		}
		return state.result(), nil
	})
	if result != nil {
		for i := range result.Curve {
			result.Curve[i].Estimate.Seconds = result.Estimate.Seconds
		}
	}
	return result, err
}

// slqRun is the state of stochastic Lanczos quadrature.
type slqRun struct {
	problem       *problem      // problem at the λ of the stage
	curveProblems []*problem    // problems at each λ of the curve; problem is one of them
	samples       []probeValues // values of the probes for each of curveProblems
	options       *Options
	probes        int // number of probes of all batches so far
	steps         int // largest number of Lanczos steps of a probe
	products      int // number of vectors multiplied by K
}

// boundInterval is the number of Lanczos steps between two evaluations of the bounds. A larger number saves
// evaluations, and may take that many steps too many.
const boundInterval = 5

// batchSize returns a number of probes whose Lanczos vectors fit in a gigabyte.
func (s *slqRun) batchSize() int {
	const bytes = 1 << 30
	return max(1, min(bytes/(8*s.problem.K.Dim()*min(maxSteps, s.problem.K.Dim())), blockColumns))
}

// result returns the curve estimated from the probes so far.
func (s *slqRun) result() *Estimates {
	var result Estimates
	var curve []CurvePoint
	for i, p := range s.curveProblems {
		var atLambda Estimates
		p.setEstimate(&atLambda, &s.samples[i], s.options, "slq")
		curve = append(curve, CurvePoint{p.Lambda, atLambda.Estimate})
		if p == s.problem {
			result = atLambda
		}
	}
	result.Curve, result.Probes, result.Steps, result.Products = curve, s.probes, s.steps, s.products
	return &result
}

// runBatch runs the Lanczos processes of the next m probes. After every boundInterval steps it bounds the quadratic
// form zᵀ(I−λA⁻¹)z of each probe, and it ends a process when the mean of the bounds is small enough. It then adds the
// forms of all probes to the samples of all λ. current is the estimate so far, for reports of progress.
func (s *slqRun) runBatch(ctx context.Context, m int, current estimate.Interval) error {
	n := s.problem.K.Dim()
	z := estimate.RandomSigns(n, s.probes, m, s.options.stream)
	var running []*lanczos.Result
	y, halfWidths := make([]float64, m), slices.Repeat([]float64{float64(n)}, m) // zᵀ(I−λA⁻¹)z is in [0, n]
	results, err := lanczos.RunFrom(ctx, shiftedMatrix{s.problem.K, 0}, z, &lanczos.Options{
		Steps: maxSteps, Quantity: lanczos.TridiagonalOnly,
		Monitor: func(r *lanczos.Result) error {
			if r.Steps == 1 {
				running = append(running, r)
			}
			if r.Steps%boundInterval != 0 && r.Beta[r.Steps-1] > 0 {
				return nil
			}
			j := slices.Index(running, r)
			y[j], halfWidths[j] = s.problem.quadraticForm(r)
			// The mean truncation may take a tenth of the requested half-width.
			truncation, target, share := stat.Mean(halfWidths, nil), 0.05*s.options.Width*stat.Mean(y, nil), 1.0
			if truncation > target { // the truncation decreases about geometrically, from n
				share = math.Log(float64(n)/truncation) / math.Log(float64(n)/target)
			}
			if s.options.progress(int(100*max(0, share)), 100, current); truncation > target {
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
	for i, p := range s.curveProblems {
		values := &s.samples[i]
		if err := p.appendControl(ctx, values, z); err != nil {
			return err
		}
		for _, r := range results {
			y, halfWidth := p.quadraticForm(r)
			values.y, values.halfWidths = append(values.y, y), append(values.halfWidths, halfWidth)
		}
	}
	s.probes += m
	for _, r := range results {
		s.steps = max(s.steps, r.Steps)
		s.products += r.Steps
	}
	return nil
}

// quadraticForm returns zᵀ(I−λA⁻¹)z, A = K+λI, and its error bound halfWidth, from the Lanczos process that began with
// the signs z. The node of the Gauss–Radau rule is at −λ/2 or above, so that A stays positive definite.
func (p *problem) quadraticForm(r *lanczos.Result) (y, halfWidth float64) {
	largestEntry := max(slices.Max(r.Alpha), slices.Max(r.Beta))
	lower, upper := inverseBounds(r, p.Lambda, -min(p.Error+lanczosRounding(largestEntry, r.N), p.Lambda/2))
	zz := float64(r.N)
	return zz * (1 - p.Lambda*(lower+upper)/2), zz * p.Lambda * (upper - lower) / 2
}

// lanczosRounding returns n·2⁻⁵²·largestEntry, an estimate of how far below zero rounding can move an eigenvalue of the
// Lanczos matrix T of a positive semi-definite n×n matrix. The largest entry of T is at least ‖T‖₂/3.
func lanczosRounding(largestEntry float64, n int) float64 { return float64(n) * 0x1p-52 * largestEntry }

// inverseBounds bounds qᵀ(K+λI)⁻¹q for the starting vector q = z/‖z‖₂ of a Lanczos process: the Gauss rule
// e₁ᵀ(T_k+λI)⁻¹e₁ is the lower bound and, if node ≤ μ_min(K), the Gauss–Radau rule with this node is the upper bound
// (Golub and Meurant, chapter 6).
func inverseBounds(r *lanczos.Result, lambda, node float64) (lower, upper float64) {
	lower = inverseEntry(r.Alpha, r.Beta, lambda)
	alpha := r.RadauDiagonal(node)
	if alpha == nil { // Rounding made node an eigenvalue of T. The bound 1/(λ+node) always holds.
		return lower, 1 / (lambda + node)
	}
	return lower, max(lower, inverseEntry(alpha, r.Beta, lambda))
}

// inverseEntry returns e₁ᵀ(T+λI)⁻¹e₁ = 1/d₁ for the tridiagonal matrix T with the diagonal α and the off-diagonal β,
// where d_k = α_k+λ and d_i = α_i+λ−β_i²/d_{i+1} are the pivots from the end.
func inverseEntry(alpha, beta []float64, lambda float64) float64 {
	k := len(alpha) - 1
	d := alpha[k] + lambda
	for i := k - 1; i >= 0; i-- {
		d = alpha[i] + lambda - beta[i]*beta[i]/d
	}
	return 1 / d
}
