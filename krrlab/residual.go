package krrlab

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/results"
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

// residual takes the true residuals r = Y − Ac of c with a, and ‖r_j‖₂/‖y_j‖₂ of every column with
// the bound of its rounding, nil if a has none.
func (s *solve) residual(ctx context.Context, a *gram.Matrix, c *mat.Dense) error {
	n, t := c.Dims()
	r := mat.NewDense(n, t, nil)
	if err := a.MulTo(ctx, r, c); err != nil {
		return err
	}
	r.Sub(s.y, r)
	rel, rounding := relative(r, s.y), a.Rounding(c)
	for j, v := range rounding {
		rounding[j] = 0
		if size := mat.Norm(s.y.ColView(j), 2); size > 0 {
			rounding[j] = pcg.ResidualRounding(v/size, rel[j], n)
		}
	}
	s.r, s.sol.TrueResiduals, s.sol.Roundings = r, rel, rounding
	return nil
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
// and likewise the norm of what r is off of s.r, the residual of K as stored: mostly a small part of
// it, so that the sampling error matters little. Both have what rounding may make of the rows added, rowsRounding.
func (s *solve) checkRows(ctx context.Context, c *mat.Dense) error {
	return timed(&s.sol.Seconds.Residual, func() error { return s.sampleRows(ctx, c) })
}

func (s *solve) sampleRows(ctx context.Context, c *mat.Dense) error {
	sol := s.sol
	n, _, t := s.Dims()
	rows, far := s.rowsToCheck(s.a.Choice())
	x := points.Gather(s.train.X, rows)
	f, err := (&model.Model{Kernel: s.cfg.Kernel, Lambda: s.cfg.Lambda, X: s.train.X, C: c}).
		Decision(ctx, x, &model.Options{Float64: true, Accuracy: s.cfg.Tol / 1000, Comm: s.comm})
	if err != nil {
		return err
	}
	sol.SampledRows, sol.SampledResiduals, sol.StorageResiduals = len(rows), make([]float64, t), make([]float64, t)
	weight := float64(n-far) / float64(max(1, len(rows)-far))
	rounding := s.rowsRounding(c)
	for j := range t {
		size := mat.Norm(s.y.ColView(j), 2)
		if size == 0 {
			continue // c_j = 0
		}
		var rr, dd float64 // relative: squares of small targets are 0
		for k, i := range rows {
			r, w := s.y.At(i, j)-s.cfg.Lambda*c.At(i, j)-f.At(k, j), 1.0
			if k >= far {
				w = weight
			}
			d := r
			if s.r != nil {
				d -= s.r.At(i, j)
			}
			rr += w * (r / size) * (r / size)
			dd += w * (d / size) * (d / size)
		}
		sol.SampledResiduals[j], sol.StorageResiduals[j] = math.Sqrt(rr)+rounding[j], math.Sqrt(dd)+rounding[j]
	}
	return nil
}

// rowsRounding estimates what rounding adds to ‖r_j‖₂/‖y_j‖₂ where r is formed as checkRows forms rows of it,
//
//	u·√(δ/u+n)·√tr K·√(Σ_l k_ll·c_lj²)/‖y_j‖₂,  u = 2⁻⁵³,
//
// with δ/u roundings in an entry by kernel.EntryError from differences (inner products are taken only where they add
// next to nothing) and n in sums, as if all were independent: N. J. Higham, T. Mary, A new approach to probabilistic
// rounding error analysis, SIAM J. Sci. Comput. 41, 2019, doi:10.1137/18M1226312.
func (s *solve) rowsRounding(c *mat.Dense) []float64 {
	n, _, t := s.Dims()
	diag := kernel.Diag(s.cfg.Kernel, s.train.X)
	const u = 0x1p-53
	entry := kernel.EntryError(s.cfg.Kernel, kernel.Differences, kernel.ExtentOf(points.NewPanel(s.train.X)))
	share := u * math.Sqrt(entry/u+float64(n)) * math.Sqrt(floats.Sum(diag))
	rounding := make([]float64, t)
	for j := range rounding {
		var norm float64
		for l, k := range diag {
			norm = math.Hypot(norm, math.Sqrt(k)*c.At(l, j))
		}
		if size := mat.Norm(s.y.ColView(j), 2); size > 0 {
			rounding[j] = share * (norm / size)
		}
	}
	return rounding
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
func (s *solve) within() bool {
	for j, v := range s.sol.TrueResiduals {
		if !(min(v+s.slack()*s.sol.StorageResiduals[j], s.slack()*s.sol.SampledResiduals[j]) <= s.cfg.Tol) {
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
	if kept.Arithmetic == kernel.Differences || kept.Whole || !kernel.ShiftInvariant(l.cfg.Kernel) {
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
func (s *solve) settleSampled() {
	if s.sol.Converged() && s.sol.StorageResiduals != nil && !s.within() {
		s.sol.Status = pcg.Inaccurate
	}
}

// finer returns what residuals are taken with to refine an answer of K as stored, and its
// name; nil if nothing is: K in float64, or beside 16-bit tiles K recomputed in the cheapest
// arithmetic whose error is at most what Gram prefers, or, where that takes long, λ/10.
func (l *Lab) finer(ctx context.Context, a *gram.Matrix) (*gram.Matrix, string, error) {
	switch {
	case l.exact():
		return a.Exact(l.exactness()), results.InFloat64, nil
	case l.cfg.Exact == AutoResidual && a.Storage() == gram.Fixed16:
		o := &gram.Options{Storage: gram.Recompute, Comm: l.comm}
		if l.refines() {
			o.Accuracy = l.preferred()
		}
		f, err := gram.New(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, o)
		if err != nil {
			return nil, "", err
		}
		return f, results.Recomputed(f.Choice().Arithmetic), nil
	case l.refines():
		return a.Exact(l.exactness()), results.InFloat64, nil
	}
	return nil, results.AsStored, nil
}
