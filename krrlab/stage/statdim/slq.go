package statdim

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
)

// slq estimates the curve λ ↦ s_λ(K) at the problem's λ and at Options.Lambdas from one
// Lanczos process of K for each probe z of signs. With T_k the tridiagonal matrix after k steps,
// zᵀ(K+λI)⁻¹z lies between the Gauss rule n·e₁ᵀ(T_k+λI)⁻¹e₁ and the Gauss–Radau rule with a node
// at −e, for every λ; the steps end when that is known closely enough at the problem's λ.
// The control variate at each λ is that of (ZZᵀ+λI)⁻¹. Work: 2kmn² flops for the
// products and 4k²mn for full orthogonalization; memory: 8kn bytes a probe, of which a batch is
// held to some 1 GB. If ctx ends it returns what the batches that are complete gave, nil if
// there is none, beside ctx's error.
func slq(ctx context.Context, p *problem, o *Options) (*Numbers, error) {
	opt := o.settled()
	c := &curve{o: &opt}
	for _, l := range grid(p.Lambda, opt.Lambdas) {
		q := *p
		if q.Lambda = l; p.Control != nil {
			var err error
			if q.Control, err = p.Control.WithLambda(l); err != nil {
				return nil, err
			}
		}
		c.at = append(c.at, &q)
		if l == p.Lambda {
			c.p = &q
		}
	}
	c.samples = make([]sample, len(c.at))
	res, err := p.narrow(&opt, opt.probes, func(m int, _ float64, so *Numbers) (*Numbers, error) {
		for c.probes < m {
			if err := c.batch(ctx, min(m-c.probes, c.batchSize()), so); err != nil {
				return nil, err
			}
		}
		return c.result(), nil
	})
	if res != nil {
		for i := range res.Curve {
			res.Curve[i].Estimate.Seconds = res.Estimate.Seconds
		}
	}
	return res, err
}

// curve is an SLQ under way.
type curve struct {
	p       *problem
	at      []*problem // of each λ, p among them
	samples []sample   // of each
	o       *Options
	probes  int
	steps   int // most steps of a batch
	columns int
}

// batchSize keeps the Lanczos vectors of a batch within a gigabyte.
func (c *curve) batchSize() int {
	const bytes = 1 << 30
	return max(1, min(bytes/(8*c.p.K.Dim()*min(maxSteps, c.p.K.Dim())), blockColumns))
}

// result puts the curve together from the probes so far.
func (c *curve) result() *Numbers {
	res := &Numbers{Probes: c.probes, Steps: c.steps, Columns: c.columns}
	for i, p := range c.at {
		var one Numbers
		p.conclude(&one, &c.samples[i], c.o, "slq")
		res.Curve = append(res.Curve, Point{p.Lambda, one.Estimate})
		if p == c.p {
			res.Estimate, res.Sampling, res.Truncation, res.Storage, res.Explained =
				one.Estimate, one.Sampling, one.Truncation, one.Storage, one.Explained
		}
	}
	return res
}

// batch runs the next m probes.
func (c *curve) batch(ctx context.Context, m int, so *Numbers) error {
	n := c.p.K.Dim()
	z := estimate.Signs(n, c.probes, m, c.o.stream)
	var e estimate.Interval
	if so != nil {
		e = so.Estimate
	}
	var live []*lanczos.Result
	y, half := make([]float64, m), slices.Repeat([]float64{float64(n)}, m)
	all, err := lanczos.RunFrom(ctx, shifted{c.p.K, 0}, z, &lanczos.Options{Steps: maxSteps, Ends: lanczos.Neither,
		Monitor: func(r *lanczos.Result) error {
			if r.Steps == 1 {
				live = append(live, r)
			}
			if r.Steps%5 != 0 && r.Beta[r.Steps-1] > 0 {
				return nil
			}
			j := slices.Index(live, r)
			y[j], half[j] = c.p.form(r)
			left, enough, share := stat.Mean(half, nil), 0.05*c.o.Width*stat.Mean(y, nil), 1.0
			if left > enough {
				share = math.Log(float64(n)/left) / math.Log(float64(n)/enough)
			}
			if c.o.progress(int(100*max(0, share)), 100, e); left > enough {
				return nil
			}
			return lanczos.ErrStop
		}})
	for _, r := range all {
		if err == nil {
			err = r.Err
		}
	}
	if err != nil {
		return err
	}
	for i, p := range c.at {
		s := &c.samples[i]
		if err := p.control(ctx, s, z); err != nil {
			return err
		}
		for _, r := range all {
			y, half := p.form(r)
			s.y, s.half = append(s.y, y), append(s.half, half)
		}
	}
	c.probes += m
	for _, r := range all {
		c.steps = max(c.steps, r.Steps)
		c.columns += r.Steps
	}
	return nil
}

// form returns zᵀ(I−λA⁻¹)z to ± half by the process that began with z, of signs.
func (p *problem) form(r *lanczos.Result) (y, half float64) {
	norm := max(slices.Max(r.Alpha), slices.Max(r.Beta))
	lo, hi := inverse(r, p.Lambda, -min(p.Error+rounding(norm, r.N), p.Lambda/2))
	zz := float64(r.N)
	return zz * (1 - p.Lambda*(lo+hi)/2), zz * p.Lambda * (hi - lo) / 2
}

// rounding returns n·2⁻⁵²·‖K‖₂: how negative rounding can make an eigenvalue of a Lanczos
// matrix of a K that is not.
func rounding(norm float64, n int) float64 { return float64(n) * 0x1p-52 * norm }

// inverse bounds qᵀ(K+λI)⁻¹q, q = z/‖z‖₂, from both sides: the Gauss rule e₁ᵀ(T_k+λI)⁻¹e₁ from below and, with
// a ≤ μ_min(K), the Gauss–Radau rule with a node at a from above.
func inverse(r *lanczos.Result, lambda, a float64) (lo, hi float64) {
	lo = first(r.Alpha, r.Beta, lambda)
	alpha := r.Radau(a)
	if alpha == nil { // by rounding only
		return lo, 1 / (lambda + a)
	}
	return lo, max(lo, first(alpha, r.Beta, lambda))
}

// first returns e₁ᵀ(T+λI)⁻¹e₁ = 1/d₁,  d_k = α_k+λ,  d_i = α_i+λ−β_i²/d_{i+1}.
func first(alpha, beta []float64, lambda float64) float64 {
	k := len(alpha) - 1
	d := alpha[k] + lambda
	for i := k - 1; i >= 0; i-- {
		d = alpha[i] + lambda - beta[i]*beta[i]/d
	}
	return 1 / d
}
