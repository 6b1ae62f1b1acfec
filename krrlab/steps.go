package krrlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

const (
	exactWork   = 2e10 // n²d up to which AutoResidual recomputes K in any case
	refineWork  = 5e11 // n²d up to which it does where the rows checked miss the tolerance
	exactRows   = 256  // rows that are checked, drawn at random
	farRows     = 32   // and those of largest norm
	mostFar     = 1024 // or so many, where K as stored may fail far from the origin
	sampleSlack = 1.15 // three standard errors of a norm estimated from 256 rows
	reach       = 0.05 // share of ‖E‖₂/λ to which K as stored reduces a residual, at worst 1; measured 0.1
	share       = 0.01 // of ‖E‖₂‖y‖₂/λ that ‖Ec‖₂ is at most; measured 0.006 on MNIST
	aim32       = 0.8  // share that it aims at where tiles are float32: on MNIST, n = 20,000, they cost 0.16 of τ = 1e-3
	aim         = 0.97 // share of the tolerance that the recurrence aims at; products with float32 tiles are off by less
)

// gramFactor is what κ(M⁻¹A) may gain where ZᵀZ is formed in float32: M⁻¹ is then that of M to a tenth
// (precond.Options.Fast).
const gramFactor = 1.1 / 0.9

// How a true residual was recomputed.
const (
	exactKind  = "K recomputed in float64"
	storedKind = "K as stored"
)

// matrix forms K, of whose memory held bytes are in use; where a solve is resumed, as it was.
func (l *Lab) matrix(ctx context.Context, sol *Solution, held int64) (a *gram.Matrix, err error) {
	a, err = l.cfg.Shared.matrix(l, sol, func() (*gram.Matrix, error) { return l.gram(ctx, held+l.vectors(), sol.as) })
	var full *gram.MemoryError
	if errors.As(err, &full) && sol.as != nil {
		return nil, fmt.Errorf("krrlab: the checkpoint in %s has K as %v, and no other goes on from it: %w", l.cfg.Checkpoint.Dir, sol.as.Storage, err)
	}
	if err == nil {
		c := a.Choice()
		sol.Storage, sol.Choice = a.Storage().String(), c.String()
		sol.KBound, sol.KBytes = c.Error, a.Bytes()
	}
	return a, err
}

// prepare builds preconditioner number rep, and K where *a is nil: after the features,
// when it is known what K may take, or before the landmarks, whose columns are K's.
func (l *Lab) prepare(ctx context.Context, sol *Solution, a **gram.Matrix, rep int) (m *precond.Woodbury, err error) {
	var z *points.Dense32
	switch l.cfg.Precond {
	case RandomFeatures:
		z, err = l.cfg.Shared.features(ctx, l, sol, rep)
	default:
		if *a == nil {
			n, s := int64(l.train.Len()), int64(l.cfg.Features)
			if *a, err = l.matrix(ctx, sol, 8*n*s+8*s*s); err != nil { // F, and on the way to it as much again
				return nil, err
			}
		}
		var f *lowrank.Factor
		err = timed(&sol.Seconds.Features, func() (err error) { f, err = l.LowRank(ctx, *a, rep); return err })
		if err == nil {
			z, sol.Rank = l.ownRows(f.F), f.Rank()
			sol.KappaBound = f.CondBound(l.cfg.Lambda, l.cfg.LambdaP) * gramFactor
		}
	}
	if err != nil {
		return nil, err
	}
	if m, err = l.cfg.Shared.precond(ctx, l, sol, z); err != nil {
		return nil, err
	}
	sol.Form, sol.StatDim = m.Form().String(), m.StatDim()
	if *a == nil {
		*a, err = l.matrix(ctx, sol, m.Bytes())
	}
	return m, err
}

// vectors returns the bytes of the points, the targets and PCG's n×t blocks.
func (l *Lab) vectors() int64 {
	n, _, t := l.Dims()
	return pointBytes(l.train.X) + 8*8*int64(n)*int64(t)
}

// work returns n²d, what it takes to form K.
func (l *Lab) work() float64 {
	n, d, _ := l.Dims()
	return float64(n) * float64(n) * float64(d)
}

// exact reports whether true residuals are taken with K recomputed in float64 from the
// start.
func (l *Lab) exact() bool {
	return l.cfg.Exact == ExactResidual || l.cfg.Exact == AutoResidual && l.work() <= l.cheap
}

// refines reports whether they are where the rows checked miss the tolerance.
func (l *Lab) refines() bool { return l.cfg.Exact == AutoResidual && l.work() <= l.dear }

// finer returns what residuals are taken with to refine an answer of K as stored, and its
// name; nil if nothing is: K in float64, or beside 16-bit tiles K recomputed in the cheapest
// arithmetic whose error is at most what Gram prefers, or, where that takes long, λ/10.
func (l *Lab) finer(ctx context.Context, a *gram.Matrix) (*gram.Matrix, string, error) {
	switch {
	case l.exact():
		return a.Exact(l.exactness()), exactKind, nil
	case l.cfg.Exact == AutoResidual && a.Storage() == gram.Fixed16:
		o := &gram.Options{Storage: gram.Recompute, Comm: l.comm}
		if l.refines() {
			o.Accuracy = l.preferred()
		}
		f, err := gram.New(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, o)
		if err != nil {
			return nil, "", err
		}
		return f, fmt.Sprintf("K recomputed in %v", f.Choice().Arithmetic), nil
	case l.refines():
		return a.Exact(l.exactness()), exactKind, nil
	}
	return nil, storedKind, nil
}

// pcg runs (preconditioned, block) conjugate gradients on AC = Y from C = o.InitX, nil for 0. If
// finer is not nil the true residual is taken with it, and where K as stored is too
// coarse for the tolerance, the restarts of package pcg refine C by it.
func (l *Lab) pcg(ctx context.Context, sol *Solution, a *gram.Matrix, m pcg.Preconditioner, o *pcg.Options, finer *gram.Matrix, kind string) (*mat.Dense, error) {
	o.Aim, o.MaxIter, o.Monitor = aim, l.cfg.MaxIter, l.watchSolve()
	if sol.ResidualKind = storedKind; finer == nil && o.InitX == nil && a.Storage() != gram.Float64 { // leave room for what the rows will find
		o.Aim = max(aim32-share*a.Choice().Error/(l.cfg.Lambda*l.cfg.Tol), 0.5)
	}
	if finer != nil {
		o.Exact, sol.ResidualKind = finer, kind
		o.Refine = min(reach*a.Choice().Error/l.cfg.Lambda, 0.5)
	}
	start, count := time.Now(), l.countTraffic(sol, a, m)
	solve := pcg.Solve
	if l.cfg.Solver == BlockPCG {
		solve = pcg.SolveBlock
	}
	res, err := solve(ctx, a, m, l.y, o)
	if err != nil {
		return nil, err
	}
	sol.Seconds.Residual += res.Stats.Exact.Seconds
	sol.Seconds.Solve += time.Since(start).Seconds() - res.Stats.Exact.Seconds
	count(res)
	sol.Result = res
	sol.Iterations += res.Iterations
	sol.Status, sol.converged = res.Status.String(), res.Status == pcg.Converged
	sol.TrueResidual, sol.Rounding, sol.r = res.TrueRelRes, res.Rounding, res.R
	if k := res.Cond(); !math.IsNaN(k) {
		sol.Kappa = k
	}
	for _, h := range res.History.RelRes {
		sol.History = append(sol.History, HistRow{len(sol.History), floats.Max(h), h})
	}
	return res.X, nil
}

// watchSolve returns a monitor that reports the residual and the time left, judged
// by the mean rate of convergence so far.
func (l *Lab) watchSolve() func(*pcg.Iteration) error {
	start := time.Now()
	return func(it *pcg.Iteration) error {
		e := Event{Stage: "solve", Iteration: it.Index, Residual: it.MaxRelRes, Remaining: -1}
		if rate := -math.Log(it.MaxRelRes) / float64(it.Index); it.Index > 2 && rate > 0 {
			left := math.Log(it.MaxRelRes/l.cfg.Tol) / rate
			left = min(max(left, 0), float64(l.cfg.MaxIter-it.Index))
			e.Remaining = time.Duration(left * float64(time.Since(start)) / float64(it.Index))
		}
		l.cfg.Monitor(e)
		return nil
	}
}

// residual sets r = Y − Ac and returns ‖r_j‖₂/‖y_j‖₂ for every column, with the bound of its
// rounding, nil if a has none.
func (l *Lab) residual(ctx context.Context, a *gram.Matrix, c, r *mat.Dense) (rel, rounding []float64, err error) {
	if err := a.MulTo(ctx, r, c); err != nil {
		return nil, nil, err
	}
	r.Sub(l.y, r)
	rel = relative(r, l.y)
	rounding = a.Rounding(c)
	for j, v := range rounding {
		rounding[j] = 0
		if size := mat.Norm(l.y.ColView(j), 2); size > 0 {
			rounding[j] = pcg.ResidualRounding(v/size, rel[j], l.train.Len())
		}
	}
	return rel, rounding, nil
}

// relative returns ‖r_j‖₂/‖y_j‖₂ of the columns, 0 where both are zero.
func relative(r, y *mat.Dense) []float64 {
	_, t := y.Dims()
	rel := make([]float64, t)
	for j := range rel {
		if size := mat.Norm(r.ColView(j), 2); size > 0 {
			rel[j] = size / mat.Norm(y.ColView(j), 2)
		}
	}
	return rel
}

// checkRows estimates the true residual from rows whose kernel values are computed in float64: F,
// those of largest norm, and S, drawn at random from the others:
//
//	‖r_j‖² ≈ Σ_{i∈F} r_ij² + ((n−|F|)/|S|) Σ_{i∈S} r_ij²,  r_ij = y_ij − λc_ij − Σ_l k(x_i,x_l) c_lj,
//
// and likewise the norm of what r is off of sol.r, the residual of K as stored: mostly a small part of
// it, so that the sampling error matters little.
func (l *Lab) checkRows(ctx context.Context, sol *Solution, a *gram.Matrix, c *mat.Dense) error {
	return timed(&sol.Seconds.Residual, func() error { return l.sampleRows(ctx, sol, a.Choice(), c) })
}

func (l *Lab) sampleRows(ctx context.Context, sol *Solution, kept gram.Choice, c *mat.Dense) error {
	n, _, t := l.Dims()
	rows, far := l.rowsToCheck(kept)
	sol.SampledRows = len(rows)
	x := points.Gather(l.train.X, rows)
	f, err := (&model.Model{Kernel: l.cfg.Kernel, Lambda: l.cfg.Lambda, X: l.train.X, C: c}).
		Decision(ctx, x, &model.Options{Scaled: true, Float64: true, Accuracy: l.cfg.Tol / 10, Comm: l.comm})
	if err != nil {
		return err
	}
	sol.SampledResidual, sol.StorageResidual = make([]float64, t), make([]float64, t)
	weight := float64(n-far) / float64(max(1, len(rows)-far))
	for j := range t {
		size := mat.Norm(l.y.ColView(j), 2)
		if size == 0 {
			continue // c_j = 0
		}
		var rr, dd float64 // relative: squares of small targets are 0
		for k, i := range rows {
			r, w := l.y.At(i, j)-l.cfg.Lambda*c.At(i, j)-f.At(k, j), 1.0
			if k >= far {
				w = weight
			}
			d := r
			if sol.r != nil {
				d -= sol.r.At(i, j)
			}
			rr += w * (r / size) * (r / size)
			dd += w * (d / size) * (d / size)
		}
		sol.SampledResidual[j], sol.StorageResidual[j] = math.Sqrt(rr), math.Sqrt(dd)
	}
	return nil
}

// slack returns by what an estimate from the rows checked is multiplied to be a bound: 1 if they are all.
func (l *Lab) slack() float64 {
	if l.train.Len() <= farRows+exactRows {
		return 1
	}
	return sampleSlack
}

// within reports whether the residuals are at most τ by the rows checked: as they estimate them, or with
// what they say K as stored is off by, either with its sampling error.
func (l *Lab) within(sol *Solution) bool {
	for j, v := range sol.TrueResidual {
		if !(min(v+l.slack()*sol.StorageResidual[j], l.slack()*sol.SampledResidual[j]) <= l.cfg.Tol) {
			return false
		}
	}
	return true
}

// rowsToCheck returns the rows of checkRows for K kept as it says, of which the first are far.
func (l *Lab) rowsToCheck(kept gram.Choice) (rows []int, far int) {
	n := l.train.Len()
	x := l.train.X
	if kept.Centred || kept.Arithmetic == kernel.Differences {
		x = points.Shift(x, points.Mean(x))
	}
	norms := points.SqNorms(x)
	drawn := rng.New(l.cfg.Seed).Sub("residual rows").Perm(n)
	byNorm := slices.Clone(drawn)
	slices.SortStableFunc(byNorm, func(a, b int) int { return cmp.Compare(norms[b], norms[a]) })
	far = min(n, max(farRows, l.doubtful(norms, kept)))
	isFar := make([]bool, n)
	for _, i := range byNorm[:far] {
		isFar[i] = true
	}
	rows = byNorm[:far:far]
	for _, i := range drawn {
		if !isFar[i] && len(rows) < far+exactRows {
			rows = append(rows, i)
		}
	}
	return rows, far
}

// doubtful returns how many of the points, of the given ‖x‖², lie so far from the origin that K as it is kept
// may have entries of two of them wrong by a quarter of τ: a few may lie close together, whose rows would
// hardly be drawn. It is at most mostFar, and 0 if they are more than an eighth of all, which rows drawn at
// random show.
func (l *Lab) doubtful(norms []float64, kept gram.Choice) int {
	if kept.Arithmetic == kernel.Differences || !kernel.ShiftInvariant(l.cfg.Kernel) {
		return 0
	}
	coarser := 1.0
	if kept.Arithmetic == kernel.Float32 {
		coarser = 0x1p29
	}
	n, d, _ := l.Dims()
	count := 0
	for _, v := range norms {
		if coarser*kernel.EntryError(l.cfg.Kernel, kernel.Float64, kernel.Extent{Dim: d, MaxSq: v, Moved: true}) > l.cfg.Tol/4 {
			count++
		}
	}
	if count > n/8 {
		return 0
	}
	return min(count, mostFar)
}

// settleSampled takes back that a solve has converged where the rows checked say that it has not.
func (l *Lab) settleSampled(sol *Solution) {
	if sol.converged && sol.StorageResidual != nil && !l.within(sol) {
		sol.converged, sol.Status = false, pcg.Inaccurate.String()
	}
}

// columns returns the number t of right-hand sides.
func (l *Lab) columns() int {
	_, t := l.y.Dims()
	return t
}
