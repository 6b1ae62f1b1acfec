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

// hutchinson estimates s_λ(K) by Hutchinson's method (1990, see the package) from m probes z, random vectors of signs:
//
//	y = zᵀ(I−λA⁻¹)z,  A = K+λI,
//
// where A⁻¹z is computed by block conjugate gradients, preconditioned by M = ZZᵀ+λ_pI (Z is n×s), with
// w = zᵀ(I−λ_pM⁻¹)z as control variate. The work is iterations·m·(2n²+4ns) flops. If ctx ends, hutchinson returns the
// result of the complete batches, or nil if there is none, together with ctx's error.
func hutchinson(ctx context.Context, p *problem, options *Options) (*Estimates, error) {
	var values probeValues
	products, iterations := 0, 0
	return p.narrowInterval(options, func(m int, tol float64, current estimate.Interval) (*Estimates, error) {
		for len(values.y) < m {
			z := estimate.RandomSigns(p.K.Dim(), len(values.y), min(m-len(values.y), blockColumns), options.stream)
			solution, err := p.solveProbes(ctx, z, tol, options, current)
			if err == nil {
				err = p.appendControl(ctx, &values, z)
			}
			if err != nil {
				return nil, err
			}
			y, halfWidths := solution.quadraticForms(p)
			values.y, values.halfWidths = append(values.y, y...), append(values.halfWidths, halfWidths...)
			iterations += solution.iterations
			products += solution.products
		}
		estimates := &Estimates{Probes: m, Steps: iterations, Products: products}
		p.setEstimate(estimates, &values, options, "hutchinson")
		return estimates, nil
	})
}

// blockColumns is the maximum number of probes in a block solve. A larger block shares each product with K among more
// probes, and takes more memory.
const blockColumns = 32

// probesCanNarrow reports whether more probes can narrow the interval to the requested width. They cannot if the
// half-widths due to truncation and to storage alone exceed it.
func (e *Estimates) probesCanNarrow(options *Options) bool {
	return 2*(e.Truncation+e.Storage) < options.Width*e.Estimate.Value
}

// initialGuess returns a low guess of s_λ(K): half of s_λ(ZZᵀ), or the lower bound that tr K gives, if that is larger
// or there is no Z.
func (p *problem) initialGuess() float64 {
	lo, _ := traceBounds(p.K.Dim(), p.K.Trace(), p.Lambda)
	if p.Control == nil {
		return lo
	}
	if control, err := p.Control.WithLambda(p.Lambda); err == nil {
		lo = max(lo, 0.5*control.StatDim())
	}
	return lo
}

// probeTolerance returns the relative residual τ of the solves. At this τ the truncation, which is about τ²n, is a
// tenth of the requested width if s_λ is as guessed. τ is at least 10⁻⁷, near which rounding ends the solves, and at
// most 0.1.
func (p *problem) probeTolerance(options *Options, guess float64) float64 {
	return max(1e-7, min(math.Sqrt(0.1*options.Width*guess/float64(p.K.Dim())), 0.1))
}

// appendControl appends w = zᵀz − λ_p·zᵀM⁻¹z of the probes, the columns of z, to values.w. Without a control variate
// it does nothing.
func (p *problem) appendControl(ctx context.Context, values *probeValues, z *mat.Dense) error {
	if p.Control == nil {
		return nil
	}
	var x mat.Dense
	x.CloneFrom(z)
	if err := p.Control.SolveTo(ctx, &x, z); err != nil {
		return err
	}
	zx, zz := columnDots(z, &x), columnDots(z, z)
	for j := range zx {
		values.w = append(values.w, zz[j]-p.Control.LambdaP()*zx[j])
	}
	return nil
}

// probeSolution has the solutions x ≈ A⁻¹z for m probes, the columns of z, and their true residuals r = z−Ax, all n×m.
type probeSolution struct {
	z, x, r    *mat.Dense
	iterations int
	products   int // number of vectors multiplied by K
}

// quadraticForms returns the forms y_j = z_jᵀ(I−λA⁻¹)z_j and bounds halfWidths of their errors. The form is
//
//	zᵀ(I−λA⁻¹)z = zᵀz − λ(zᵀx+xᵀr) − λ·rᵀA⁻¹r,  0 ≤ rᵀA⁻¹r ≤ ‖r‖²/(λ−e),
//
// where λ−e is a lower bound of the eigenvalues of A (eigenvalueBound). y_j is the middle of this interval.
func (s *probeSolution) quadraticForms(p *problem) (y, halfWidths []float64) {
	y, halfWidths = columnDots(s.z, s.z), columnDots(s.r, s.r) // zᵀz and rᵀr to begin with
	zx, xr := columnDots(s.z, s.x), columnDots(s.x, s.r)
	for j := range y {
		halfWidths[j] *= p.Lambda / p.eigenvalueBound() / 2 // half of the length of the interval
		y[j] += -p.Lambda*(zx[j]+xr[j]) - halfWidths[j]     // middle of the interval
	}
	return y, halfWidths
}

// solveProbes solves Ax = z for the columns of z to the relative residual tol, or for at most maxSteps iterations, and
// forms the true residual. current is the estimate so far, for reports of progress. It returns an error if A or M is
// not positive definite.
func (p *problem) solveProbes(ctx context.Context, z *mat.Dense, tol float64, options *Options,
	current estimate.Interval) (*probeSolution, error) {
	var preconditioner pcg.Preconditioner
	if p.Control != nil {
		preconditioner = p.Control
	}
	a := shiftedMatrix{p.K, p.Lambda}
	result, err := pcg.SolveBlock(ctx, a, preconditioner, z, &pcg.Options{Tol: tol, MaxIter: maxSteps,
		Monitor: func(iteration *pcg.Iteration) error {
			share := math.Log(iteration.MaxRelRes) / math.Log(tol)
			options.progress(int(100*max(0, min(share, 1))), 100, current)
			return nil
		}})
	if err != nil {
		return nil, err
	}
	switch result.Status {
	case pcg.Indefinite, pcg.IndefinitePreconditioner, pcg.Breakdown:
		return nil, fmt.Errorf("statdim: the solve for the probes failed: %v", result)
	}
	solution := &probeSolution{z: z, x: result.X, r: new(mat.Dense), iterations: result.Iterations,
		products: result.Stats.MulTo.Columns}
	solution.r.CloneFrom(z)
	if err := a.MulTo(ctx, solution.r, solution.x); err != nil {
		return nil, err
	}
	solution.r.Sub(z, solution.r) // r = z − Ax
	_, m := z.Dims()
	solution.products += m // the products for the residuals
	return solution, nil
}

// shiftedMatrix is the matrix K+λI.
type shiftedMatrix struct {
	k      matrix
	lambda float64
}

// Dim returns the order n of the matrix.
func (a shiftedMatrix) Dim() int { return a.k.Dim() }

// MulTo sets dst = (K+λI)src.
func (a shiftedMatrix) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	if err := a.k.KMulTo(ctx, dst, src); err != nil {
		return err
	}
	for i := range a.Dim() {
		floats.AddScaled(dst.RawRowView(i), a.lambda, src.RawRowView(i))
	}
	return nil
}
