package statdim

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// hutchinson estimates s_λ(K) from m probes z of signs by
//
//	y = zᵀ(I−λA⁻¹)z,  A = K+λI,
//
// the solves by block conjugate gradients preconditioned by M, with w = zᵀ(I−λ_pM⁻¹)z as
// control variate. Work: iterations·m·(2n²+4ns) flops. If ctx ends it returns what the batches
// that are complete gave, nil if there is none, beside ctx's error.
func hutchinson(ctx context.Context, p *problem, o *Options) (*Numbers, error) {
	opt := o.settled()
	var s sample
	cols, steps := 0, 0
	return p.narrow(&opt, opt.probes, func(m int, tol float64, so *Numbers) (*Numbers, error) {
		for len(s.y) < m {
			z := estimate.Signs(p.K.Dim(), len(s.y), min(m-len(s.y), blockColumns), opt.stream)
			q, err := p.solve(ctx, z, tol, &opt, so)
			if err == nil {
				err = p.control(ctx, &s, z)
			}
			if err != nil {
				return nil, err
			}
			y, half := q.forms(p)
			s.y, s.half = append(s.y, y...), append(s.half, half...)
			steps += q.iterations
			cols += q.columns
		}
		next := &Numbers{Probes: m, Steps: steps, Columns: cols}
		p.conclude(next, &s, &opt, "hutchinson")
		return next, nil
	})
}

// blockColumns is the most probes that are solved for together.
const blockColumns = 32

// gains reports whether more probes can still narrow the interval to what is asked: not where
// truncation and storage alone are wider.
func (r *Numbers) gains(o *Options) bool {
	return 2*(r.Truncation+r.Storage) < o.Width*r.Estimate.Value
}

// guess returns a first idea of s_λ, on the low side: the features' or the least there is.
func (p *problem) guess() float64 {
	lo, _ := traceBounds(p.K.Dim(), p.K.Trace(), p.Lambda)
	if p.Control == nil {
		return lo
	}
	if c, err := p.Control.WithLambda(p.Lambda); err == nil {
		lo = max(lo, 0.5*c.StatDim())
	}
	return lo
}

// tolerance returns the relative residual τ of the solves, for which the truncation τ²n is a
// tenth of the width asked, s being what is known of s_λ.
func (p *problem) tolerance(o *Options, s float64) float64 {
	return max(1e-7, min(math.Sqrt(0.1*o.Width*s/float64(p.K.Dim())), 0.1))
}

// control appends w = zᵀz − λ_p·zᵀM⁻¹z for the probes z.
func (p *problem) control(ctx context.Context, s *sample, z *mat.Dense) error {
	if p.Control == nil {
		return nil
	}
	var x mat.Dense
	x.CloneFrom(z)
	if err := p.Control.SolveTo(ctx, &x, z); err != nil {
		return err
	}
	zx, zz := dots(z, &x), dots(z, z)
	for j := range zx {
		s.w = append(s.w, zz[j]-p.Control.LambdaP()*zx[j])
	}
	return nil
}

// solved is x ≈ A⁻¹z with r = z−Ax, n×m.
type solved struct {
	z, x, r             *mat.Dense
	iterations, columns int
}

// forms returns z_jᵀ(I−λA⁻¹)z_j to ± half_j:
//
//	zᵀz − λ(zᵀx+xᵀr) − λ·rᵀA⁻¹r,  0 ≤ rᵀA⁻¹r ≤ ‖r‖²/(λ−e).
func (q *solved) forms(p *problem) (y, half []float64) {
	zz, zx, xr, rr := dots(q.z, q.z), dots(q.z, q.x), dots(q.x, q.r), dots(q.r, q.r)
	for j := range zz {
		rr[j] *= p.Lambda / p.room() / 2
		zz[j] += -p.Lambda*(zx[j]+xr[j]) - rr[j]
	}
	return zz, rr
}

// solve solves Ax = z for the columns of z to the relative residual tol, or as far as
// maxSteps iterations go, and forms the true residual.
func (p *problem) solve(ctx context.Context, z *mat.Dense, tol float64, o *Options, so *Numbers) (*solved, error) {
	var m pcg.Preconditioner
	if p.Control != nil {
		m = p.Control
	}
	var e estimate.Interval
	if so != nil {
		e = so.Estimate
	}
	a := shifted{p.K, p.Lambda}
	res, err := pcg.SolveBlock(ctx, a, m, z, &pcg.Options{Tol: tol, MaxIter: maxSteps,
		Monitor: func(it *pcg.Iteration) error {
			share := math.Log(it.MaxRelRes) / math.Log(tol)
			o.progress(int(100*max(0, min(share, 1))), 100, e)
			return nil
		}})
	if err != nil {
		return nil, err
	}
	switch res.Status {
	case pcg.Indefinite, pcg.IndefinitePreconditioner, pcg.Breakdown:
		return nil, fmt.Errorf("statdim: the solve for the probes failed: %v", res)
	}
	q := &solved{z: z, x: res.X, r: new(mat.Dense), iterations: res.Iterations, columns: res.Stats.MulTo.Columns}
	q.r.CloneFrom(z)
	if err := a.MulTo(ctx, q.r, q.x); err != nil {
		return nil, err
	}
	q.r.Sub(z, q.r) // r = z − Ax
	_, t := z.Dims()
	q.columns += t
	return q, nil
}

// shifted is K+λI.
type shifted struct {
	k      matrix
	lambda float64
}

func (a shifted) Dim() int { return a.k.Dim() }

func (a shifted) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	if err := a.k.KMulTo(ctx, dst, src); err != nil {
		return err
	}
	for i := range a.Dim() {
		floats.AddScaled(dst.RawRowView(i), a.lambda, src.RawRowView(i))
	}
	return nil
}
