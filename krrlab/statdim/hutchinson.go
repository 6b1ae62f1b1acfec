package statdim

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/pcg"
)

// Hutchinson estimates s_λ(K) from m probes z of signs by
//
//	y = zᵀ(I−λA⁻¹)z,  A = K+λI,
//
// the solves by block conjugate gradients preconditioned by M, with w = zᵀ(I−λ_pM⁻¹)z as
// control variate. Work: iterations·m·(2n²+4ns) flops. If ctx ends it returns what the batches
// that are complete gave, nil if there is none, beside ctx's error.
func Hutchinson(ctx context.Context, p *Problem, o *Options) (*Result, error) {
	opt, err := settled(p, o)
	if err != nil {
		return nil, err
	}
	var s sample
	var mean float64
	if p.Control != nil {
		mean = p.Control.StatDim()
	}
	cols, steps := 0, 0
	return p.narrow(&opt, opt.Probes, func(m int, tol float64, so *Result) (*Result, error) {
		for len(s.y) < m {
			z := estimate.Signs(p.K.Dim(), len(s.y), min(m-len(s.y), blockColumns), opt.Stream)
			q, err := p.solve(ctx, z, tol, &opt, so, pcg.SolveBlock)
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
		next := &Result{Probes: m, Steps: steps, Columns: cols}
		var a float64
		a, next.Sampling, next.Truncation, next.Explained = s.fit(mean, opt.Confidence)
		next.Sampling = max(next.Sampling, p.unseen(a, p.Lambda, m, opt.Confidence))
		next.Estimate = p.interval(next, a, p.Lambda, &opt, "hutchinson")
		return next, nil
	})
}

// blockColumns is the most probes that are solved for together.
const blockColumns = 32

// gains reports whether more probes can still narrow the interval to what is asked: not where
// truncation and storage alone are wider.
func (r *Result) gains(o *Options) bool {
	return 2*(r.Truncation+r.Storage) < o.Width*r.Estimate.Value
}

// guess returns a first idea of s_λ, on the low side: the features' or the least there is.
func (p *Problem) guess() float64 {
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
func (p *Problem) tolerance(o *Options, s float64) float64 {
	return max(1e-7, min(math.Sqrt(0.1*o.Width*s/float64(p.K.Dim())), 0.1))
}

// control appends w = zᵀz − λ_p·zᵀM⁻¹z for the probes z.
func (p *Problem) control(ctx context.Context, s *sample, z *mat.Dense) error {
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
func (q *solved) forms(p *Problem) (y, half []float64) {
	zz, zx, xr, rr := dots(q.z, q.z), dots(q.z, q.x), dots(q.x, q.r), dots(q.r, q.r)
	for j := range zz {
		rr[j] *= p.Lambda / p.room(p.Lambda) / 2
		zz[j] += -p.Lambda*(zx[j]+xr[j]) - rr[j]
	}
	return zz, rr
}

// solver is pcg.Solve or pcg.SolveBlock.
type solver func(ctx context.Context, a pcg.Operator, m pcg.Preconditioner, b *mat.Dense, o *pcg.Options) (*pcg.Result, error)

// solve solves Ax = z for the columns of z to the relative residual tol, or as far as
// MaxSteps iterations go, and forms the true residual.
func (p *Problem) solve(ctx context.Context, z *mat.Dense, tol float64, o *Options, so *Result, by solver) (*solved, error) {
	var m pcg.Preconditioner
	if p.Control != nil {
		m = p.Control
	}
	var e estimate.Interval
	if so != nil {
		e = so.Estimate
	}
	a := shifted{p.K, p.Lambda}
	res, err := by(ctx, a, m, z, &pcg.Options{Tol: tol, MaxIter: o.MaxSteps, Monitor: func(it *pcg.Iteration) error {
		share := math.Log(it.MaxRelRes) / math.Log(tol)
		o.Progress(int(100*max(0, min(share, 1))), 100, e)
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
	k      Matrix
	lambda float64
}

func (a shifted) Dim() int { return a.k.Dim() }

func (a shifted) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	if err := a.k.KMulTo(ctx, dst, src); err != nil {
		return err
	}
	d, s := dst.RawMatrix(), src.RawMatrix()
	for i := range d.Rows {
		y, x := d.Data[i*d.Stride:i*d.Stride+d.Cols], s.Data[i*s.Stride:i*s.Stride+d.Cols]
		for j, v := range x {
			y[j] += a.lambda * v
		}
	}
	return nil
}

// XTrace estimates s_λ(K) = tr B, B = I−λA⁻¹ = KA⁻¹, by the exchangeable estimator of Epperly, Tropp
// and Webber from m normal vectors Ω: with QR = BΩ and Q_i the same without column i,
//
//	t_i = tr(Q_iᵀBQ_i) + (n−m+1)·v_iᵀBv_i/‖v_i‖²,  v_i = (I−Q_iQ_iᵀ)ω_i,
//
// each unbiased, averaged to T. The t_i depend on each other, and their spread understates the
// error of T (it was seen to cover in 20 of 30 seeds on a rank-deficient K); so the interval
// is the Student interval of the jackknife's variance,
//
//	V = (m−1)/m·Σ_j (T_j − T̄)²,  T_j being T without ω_j,
//
// which is at least the variance of T for m−1 vectors on average (Efron and Stein). It costs m²
// evaluations of O(1) from m×m matrices. The truncation of the quadratic forms, of second
// order in the residuals, is added. Work: 2m solves, each 2n²+4ns flops an iteration, and 16nm²
// flops. Columns are solved for apart (pcg.Solve), or Q_i would know of ω_i. If ctx ends it
// returns what the batches that are complete gave, nil if there is none, beside ctx's error.
func XTrace(ctx context.Context, p *Problem, o *Options) (*Result, error) {
	opt, err := settled(p, o)
	if err != nil {
		return nil, err
	}
	n := p.K.Dim()
	if n < 4 {
		return nil, fmt.Errorf("statdim: xtrace on %d points: want at least 4, or the exact method", n)
	}
	opt.MaxProbes = min(opt.MaxProbes, max(1, n/2))
	x := &xtrace{p: p, n: n}
	return p.narrow(&opt, min(opt.Probes, opt.MaxProbes), func(m int, tol float64, so *Result) (*Result, error) {
		if err := x.extend(ctx, m, tol, &opt, so); err != nil {
			return nil, err
		}
		next := &Result{Probes: m, Steps: x.steps, Columns: x.cols}
		var a float64
		a, next.Sampling, next.Truncation = x.traces(opt.Confidence)
		next.Estimate = p.interval(next, a, p.Lambda, &opt, "xtrace")
		return next, nil
	})
}

// xtrace holds ω_j, q_j and the solves for both, as rows of length n.
type xtrace struct {
	p           *Problem
	n, m        int
	omega       []float64 // m×n
	ox, or      []float64 // A⁻¹ω and residuals
	q, qx, qr   []float64
	r           [][]float64 // columns of R, j+1 numbers in column j
	steps, cols int
}

// extend goes on to m probes: the QR factorization of BΩ is extended, so that all that was
// solved for stays.
func (x *xtrace) extend(ctx context.Context, m int, tol float64, o *Options, so *Result) error {
	k := m - x.m
	z := mat.NewDense(x.n, k, nil)
	for j := range k {
		col := make([]float64, x.n)
		o.Stream.Sub("probe", uint64(x.m+j)).Normals(col, 0)
		z.SetCol(j, col)
	}
	s, err := x.p.solve(ctx, z, tol, o, so, pcg.Solve)
	if err != nil {
		return err
	}
	y := mat.NewDense(x.n, k, nil)
	y.Scale(-x.p.Lambda, s.x)
	y.Add(z, y) // BΩ ≈ Ω − λX
	q := x.orthonormalise(y)
	w, err := x.p.solve(ctx, q, tol, o, so, pcg.Solve)
	if err != nil {
		return err
	}
	x.omega, x.ox, x.or = appendColumns(x.omega, z), appendColumns(x.ox, s.x), appendColumns(x.or, s.r)
	x.q, x.qx, x.qr = appendColumns(x.q, q), appendColumns(x.qx, w.x), appendColumns(x.qr, w.r)
	x.steps += s.iterations + w.iterations
	x.cols += s.columns + w.columns
	x.m = m
	return nil
}

func appendColumns(rows []float64, a *mat.Dense) []float64 {
	_, t := a.Dims()
	for j := range t {
		rows = append(rows, mat.Col(nil, j, a)...)
	}
	return rows
}

// orthonormalise returns the next columns of Q for the next columns y of BΩ by Gram and
// Schmidt's process, repeated so that Q is orthogonal whatever y, and appends to R.
func (x *xtrace) orthonormalise(y *mat.Dense) *mat.Dense {
	_, k := y.Dims()
	all := append([]float64(nil), x.q...)
	q := mat.NewDense(x.n, k, nil)
	for j := range k {
		have := x.m + j
		v, c := mat.Col(nil, j, y), make([]float64, have)
		vec, coef := blas64.Vector{N: x.n, Inc: 1, Data: v}, blas64.Vector{N: have, Inc: 1, Data: c}
		row := make([]float64, have+1)
		norm := 1.0
		for range 3 {
			if have > 0 {
				blas64.Gemv(blas.NoTrans, 1, rows(all, have, x.n), vec, 0, coef) // c = Qᵀv
				blas64.Gemv(blas.Trans, -1, rows(all, have, x.n), coef, 1, vec)  // v ← v − Qc
			}
			for i, h := range c {
				row[i] += norm * h
			}
			l := blas64.Nrm2(vec)
			if norm *= l; l > 0 {
				blas64.Scal(1/l, vec)
			}
		}
		row[have] = norm
		x.r = append(x.r, row)
		all = append(all, v...)
		q.SetCol(j, v)
	}
	return q
}

// rows is the m×n matrix of these rows.
func rows(data []float64, m, n int) blas64.General {
	return blas64.General{Rows: m, Cols: n, Stride: n, Data: data[:m*n]}
}

// product returns a·bᵀ for rows of length n, m×m.
func (x *xtrace) product(a, b []float64) *mat.Dense {
	c := mat.NewDense(x.m, x.m, nil)
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, rows(a, x.m, x.n), rows(b, x.m, x.n), 0, c.RawMatrix())
	return c
}

func dot(a, b []float64) float64 {
	return blas64.Dot(blas64.Vector{N: len(a), Inc: 1, Data: a}, blas64.Vector{N: len(b), Inc: 1, Data: b})
}
