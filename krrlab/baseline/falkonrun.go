package baseline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// setup measures the error of tiles, factors and forms K_nm.
func (f *falkon) setup(ctx context.Context) error {
	res, sec := f.res, &f.res.Seconds
	clock := watch{time.Now()}
	rms, err := f.chooseTiles(ctx)
	if err != nil {
		return err
	}
	jitter := 0x1p-52 * float64(res.M)
	top := slices.Max(kernel.Diag(f.k, res.Centres))
	if top > 0 {
		jitter = max(jitter, 2*rms*math.Sqrt(float64(res.M))/top)
	}
	if !(jitter <= maxJitter) {
		return fmt.Errorf("baseline: K_nm of the kernel %v in float32 is off by %.2g (root mean square): take Float64", f.k, rms)
	}
	clock.lap(&sec.Centres)
	w, err := newWhitening(ctx, f.k, f.c, f.wide, res.N, f.lambda, jitter)
	if err != nil {
		return err
	}
	f.white, res.Jitter = w, w.jitter
	clock.lap(&sec.Factor)
	err = f.kx.form(ctx, f.opt.Progress)
	clock.lap(&sec.Tiles)
	return err
}

// chooseTiles settles how tiles are formed, and returns the root mean square of their error: in
// float32 with inner products in float32 where that is at most tileError·max k, in float64 or with
// differences otherwise.
func (f *falkon) chooseTiles(ctx context.Context) (rms float64, err error) {
	if f.opt.Float64 {
		f.kx = newCross64(f.k, f.x, f.c, f.wide, f.keep)
		return 0, nil
	}
	var rows []int
	rows, f.random = kernel.ProbeRows(points.SqNorms(f.x), checkRows-checkFar, checkFar, rng.New(0).Sub("rows of the check"))
	f.sample = points.Gather(f.x, rows)
	if f.exact, err = tilesOf(ctx, f.k, f.sample, f.c, false, f.wide); err != nil {
		return 0, err
	}
	var top float64
	for _, v := range f.exact {
		top = math.Max(top, math.Abs(v))
	}
	for _, f.arith = range []kernel.Arithmetic{kernel.Float32, f.wide} {
		tiles, err := tilesOf(ctx, f.k, f.sample, f.c, true, f.arith)
		if err != nil {
			return 0, err
		}
		if rms = rmsDifference(tiles, f.exact); rms <= tileError*top {
			break
		}
	}
	f.kx = newCross32(f.k, f.x, f.c, f.arith, f.keep)
	return rms, nil
}

// right returns BᵀK_nmᵀY, m×t.
func (f *falkon) right(ctx context.Context) (*mat.Dense, error) {
	m, t := f.res.M, f.res.T
	f.cols = byCols(f.y)
	f.z, f.u, f.a, f.h = make([]float64, t*m), make([]float64, t*m), make([]float64, t*m), make([]float64, t*m)
	clock := time.Now()
	if _, err := f.kx.pass(ctx, f.h, nil, f.cols, t); err != nil { // −K_nmᵀY
		return nil, err
	}
	f.res.Seconds.Products += time.Since(clock).Seconds()
	for k, v := range f.h {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("baseline: the kernel %v of the points and center %d is not finite", f.k, f.res.Indices[k%m])
		}
		f.h[k] = -v
	}
	if err := f.white.toWhite(ctx, f.z, f.h, nil, 0, t); err != nil {
		return nil, err
	}
	return fromCols(f.z, m, t), nil
}

// Dim returns m, MulTo sets dst = BᵀHB·src: f is a pcg.Operator.
func (f *falkon) Dim() int { return f.res.M }

func (f *falkon) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	m, t := src.Dims()
	z, u, a, h := f.z[:t*m], f.u[:t*m], f.a[:t*m], f.h[:t*m]
	for i := range m {
		for j, v := range src.RawRowView(i) {
			z[j*m+i] = v
		}
	}
	clock, sec := watch{time.Now()}, &f.res.Seconds
	if err := f.white.fromWhite(ctx, a, u, z, t); err != nil { // u = C⁻ᵀz, a = L⁻ᵀu
		return err
	}
	clock.lap(&sec.Precond)
	clear(h)
	if _, err := f.kx.pass(ctx, h, a, nil, t); err != nil { // K_nmᵀK_nm·a
		return err
	}
	clock.lap(&sec.Products)
	if err := f.white.toWhite(ctx, z, h, u, f.lambda, t); err != nil { // C⁻¹(L⁻¹h + λu)
		return err
	}
	clock.lap(&sec.Precond)
	for i := range m {
		for j := range dst.RawRowView(i) {
			dst.Set(i, j, z[j*m+i])
		}
	}
	return nil
}

// iterate runs conjugate gradients from zero and says what they reached.
func (f *falkon) iterate(ctx context.Context, b *mat.Dense) (*FalkonResult, error) {
	res := f.res
	var stopped error
	var clocks []float64
	sol, err := pcg.Solve(ctx, f, nil, b, &pcg.Options{Tol: f.opt.Tol, MaxIter: f.opt.MaxIter, Monitor: func(it *pcg.Iteration) error {
		clocks = append(clocks, time.Since(f.began).Seconds())
		if f.opt.Monitor != nil {
			stopped = f.opt.Monitor(FalkonStep{it.Index, clocks[len(clocks)-1], math.NaN(), it.MaxRelRes})
		}
		return stopped
	}})
	if sol == nil {
		return nil, err
	}
	res.Iterations, res.RelRes, res.Cond = sol.Iterations, sol.TrueRelRes, sol.Cond()
	switch {
	case err != nil && errors.Is(err, stopped):
		res.Status = Stopped
	case err != nil && ctx.Err() != nil:
		res.Status = Canceled
	case err != nil:
		return nil, err
	case sol.Status == pcg.Converged:
		res.Status = Converged
	case sol.Status == pcg.MaxIterations:
		res.Status = MaxIterations
	default:
		res.Status = Inaccurate
	}
	f.curve(sol, b, clocks)
	if e := f.finish(ctx, sol.X, err == nil); err == nil {
		err = e
	}
	res.Seconds.Total = time.Since(f.began).Seconds()
	return res, err
}

// curve sets the history. An iteration of conjugate gradients lowers ½βᵀAβ − bᵀβ by ½α‖r‖², and
// so the objective of a column by α‖r‖².
func (f *falkon) curve(sol *pcg.Result, b *mat.Dense, clocks []float64) {
	t := f.res.T
	norms := make([]float64, t)
	for j := range norms {
		norms[j] = mat.Norm(b.ColView(j), 2)
	}
	j := sumSquares(f.cols) // J(0) = ‖Y‖_F²
	for k, seconds := range clocks {
		if k+1 >= len(sol.History.RelRes) || k >= len(sol.History.Alpha) {
			break
		}
		for c, norm := range norms {
			r := sol.History.RelRes[k][c] * norm
			j -= sol.History.Alpha[k][c] * r * r
		}
		f.res.History = append(f.res.History, FalkonStep{k + 1, seconds, j, worst(sol.History.RelRes[k+1])})
	}
}

// finish sets α = Bβ, measures the objective unless the run was interrupted, and the rounding.
func (f *falkon) finish(ctx context.Context, beta *mat.Dense, whole bool) error {
	res, m, t := f.res, f.res.M, f.res.T
	if err := f.white.fromWhite(context.WithoutCancel(ctx), f.a, f.u, byCols(beta), t); err != nil {
		return err
	}
	res.Alpha = fromCols(f.a, m, t)
	var err error
	if res.Rounding, err = f.rounding(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if res.Status == Converged && !(res.Rounding <= f.opt.Tol) {
		res.Status = Inaccurate
	}
	res.Objective = math.NaN()
	if !whole {
		return nil
	}
	clock := time.Now()
	fit, err := f.kx.pass(ctx, nil, f.a, f.cols, t)
	res.Seconds.Products += time.Since(clock).Seconds()
	if err != nil {
		res.Status = Canceled
		return err
	}
	res.Objective = fit + f.lambda*f.white.penalty(f.a, f.u)
	return nil
}

// rounding returns ‖(K̃−K)α‖_F/‖Kα‖_F on some rows, K̃ being K_nm as it is formed.
func (f *falkon) rounding(ctx context.Context) (float64, error) {
	if f.opt.Float64 {
		return 0, nil
	}
	tiles, err := tilesOf(ctx, f.k, f.sample, f.c, true, f.arith)
	if err != nil {
		return 0, err
	}
	for k, v := range f.exact {
		tiles[k] -= v
	}
	m := f.res.M
	rows := len(tiles) / m
	// Random rows stand for all but those of largest norm, which are there themselves.
	weight := float64(f.res.N-(rows-f.random)) / float64(f.random)
	var off, size mat.Dense
	off.Mul(mat.NewDense(rows, m, tiles), f.res.Alpha)
	size.Mul(mat.NewDense(rows, m, f.exact), f.res.Alpha)
	square := func(x *mat.Dense) (sum float64) {
		for i := range rows {
			v := sumSquares(x.RawRowView(i))
			if i < f.random {
				v *= weight
			}
			sum += v
		}
		return sum
	}
	norm := square(&size)
	if norm == 0 {
		return 0, nil
	}
	return math.Sqrt(square(&off) / norm), nil
}
