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
// where A⁻¹z is computed by block conjugate gradients, preconditioned by M, with w = zᵀ(I−λ_pM⁻¹)z as control variate.
// The work is iterations·m·(2n²+4ns) flops. If ctx ends, it returns the result of the complete batches, or nil if there
// is none, together with ctx's error.
func hutchinson(ctx context.Context, p *problem, o *Options) (*Estimates, error) {
	var s sample
	products, steps := 0, 0
	return p.narrowInterval(o, func(m int, tol float64, current estimate.Interval) (*Estimates, error) {
		for len(s.y) < m {
			z := estimate.RandomSigns(p.K.Dim(), len(s.y), min(m-len(s.y), blockColumns), o.stream)
			solution, err := p.solveProbes(ctx, z, tol, o, current)
			if err == nil {
				err = p.appendControl(ctx, &s, z)
			}
			if err != nil {
				return nil, err
			}
			y, half := solution.quadraticForms(p)
			s.y, s.halfWidths = append(s.y, y...), append(s.halfWidths, half...)
			steps += solution.iterations
			products += solution.products
		}
		numbers := &Estimates{Probes: m, Steps: steps, Products: products}
		p.setEstimate(numbers, &s, o, "hutchinson")
		return numbers, nil
	})
}

// blockColumns is the maximum number of probes in a block solve. A larger block shares each product with K among more
// probes, and takes more memory.
const blockColumns = 32

// probesCanNarrow reports whether more probes can narrow the interval to the requested width. They cannot if truncation
// and storage error alone exceed it.
func (r *Estimates) probesCanNarrow(o *Options) bool {
	return 2*(r.Truncation+r.Storage) < o.Width*r.Estimate.Value
}

// initialGuess returns a low guess of s_λ: half of the features' s_λ, or the lower bound by the trace.
func (p *problem) initialGuess() float64 {
	lo, _ := traceBounds(p.K.Dim(), p.K.Trace(), p.Lambda)
	if p.Control == nil {
		return lo
	}
	if c, err := p.Control.WithLambda(p.Lambda); err == nil {
		lo = max(lo, 0.5*c.StatDim())
	}
	return lo
}

// tolerance returns the relative residual τ of the solves. At this τ the truncation τ²n is a tenth of the requested
// width, for the guess s of s_λ. It is between 10⁻⁷, near which rounding ends the solves, and 0.1.
func (p *problem) tolerance(o *Options, s float64) float64 {
	return max(1e-7, min(math.Sqrt(0.1*o.Width*s/float64(p.K.Dim())), 0.1))
}

// appendControl appends w = zᵀz − λ_p·zᵀM⁻¹z of the probes, the columns of z, to s. Without a control variate it does
// nothing.
func (p *problem) appendControl(ctx context.Context, s *sample, z *mat.Dense) error {
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

// solution is x ≈ A⁻¹z with the true residual r = z−Ax, all n×m.
type solution struct {
	z, x, r    *mat.Dense
	iterations int
	products   int // number of vectors multiplied by K
}

// quadraticForms returns the forms z_jᵀ(I−λA⁻¹)z_j with error bounds ±half_j, from
//
//	zᵀz − λ(zᵀx+xᵀr) − λ·rᵀA⁻¹r,  0 ≤ rᵀA⁻¹r ≤ ‖r‖²/(λ−e).
func (q *solution) quadraticForms(p *problem) (y, half []float64) {
	zz, zx, xr, rr := dots(q.z, q.z), dots(q.z, q.x), dots(q.x, q.r), dots(q.r, q.r)
	for j := range zz {
		rr[j] *= p.Lambda / p.eigenvalueBound() / 2 // half of the length of the interval
		zz[j] += -p.Lambda*(zx[j]+xr[j]) - rr[j]    // its middle
	}
	return zz, rr
}

// solveProbes solves Ax = z for the columns of z to the relative residual tol, or for at most maxSteps iterations, and
// forms the true residual. current is the estimate so far, for reports of progress. It returns an error if A or M is
// not positive definite.
func (p *problem) solveProbes(ctx context.Context, z *mat.Dense, tol float64, o *Options,
	current estimate.Interval) (*solution, error) {
	var preconditioner pcg.Preconditioner
	if p.Control != nil {
		preconditioner = p.Control
	}
	a := shifted{p.K, p.Lambda}
	res, err := pcg.SolveBlock(ctx, a, preconditioner, z, &pcg.Options{Tol: tol, MaxIter: maxSteps,
		Monitor: func(iteration *pcg.Iteration) error {
			share := math.Log(iteration.MaxRelRes) / math.Log(tol)
			o.progress(int(100*max(0, min(share, 1))), 100, current)
			return nil
		}})
	if err != nil {
		return nil, err
	}
	switch res.Status {
	case pcg.Indefinite, pcg.IndefinitePreconditioner, pcg.Breakdown:
		return nil, fmt.Errorf("statdim: the solve for the probes failed: %v", res)
	}
	solution := &solution{z: z, x: res.X, r: new(mat.Dense), iterations: res.Iterations,
		products: res.Stats.MulTo.Columns}
	solution.r.CloneFrom(z)
	if err := a.MulTo(ctx, solution.r, solution.x); err != nil {
		return nil, err
	}
	solution.r.Sub(z, solution.r) // r = z − Ax
	_, t := z.Dims()
	solution.products += t
	return solution, nil
}

// shifted is the matrix K+λI.
type shifted struct {
	k      matrix
	lambda float64
}

// Dim returns the order n.
func (a shifted) Dim() int { return a.k.Dim() }

// MulTo sets dst = (K+λI)src.
func (a shifted) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	if err := a.k.KMulTo(ctx, dst, src); err != nil {
		return err
	}
	for i := range a.Dim() {
		floats.AddScaled(dst.RawRowView(i), a.lambda, src.RawRowView(i))
	}
	return nil
}
