package bound

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

const (
	drawnRows = 256  // rows that are looked at, drawn at random
	farRows   = 32   // and those of largest norm
	mostFar   = 1024 // of those, where K as stored may fail far from the origin
)

// RowsChecked is how many Rows there are for points that K as stored does not fail for.
const RowsChecked = drawnRows + farRows

// Slack returns by what an estimate from Rows of n points is multiplied to be a bound: 1 if they are all, else three
// standard errors of a norm estimated from 256 rows more.
func Slack(n int) float64 {
	if n <= RowsChecked {
		return 1
	}
	return 1.15
}

// Rows are rows of the residual of an answer C to (K+λI)C = Y whose kernel values are computed in float64, however K
// is stored: F, those of largest norm, and S, drawn at random from the others. They estimate it by
//
//	‖r_j‖² ≈ Σ_{i∈F} r_ij² + ((n−|F|)/|S|) Σ_{i∈S} r_ij²,  r_ij = y_ij − λc_ij − Σ_l K_il c_lj.
//
// Of points.Weighted r_i is about proportional to √w_i, so that S are twice as many rows, drawn with the probabilities
// of kernel.DrawWeighted, and a row of S counts 1/π_i times.
type Rows struct {
	k           kernel.Kernel
	x           points.Points
	lambda, tol float64
	at          []int     // the first ones are F
	weights     []float64 // of the squares: 1 of F, (n−|F|)/|S| or 1/π_i of S
}

// NewRows chooses rows, at random from g, to judge answers to a tolerance τ with K as it is kept.
func NewRows(k kernel.Kernel, x points.Points, lambda, tol float64, kept gram.Choice, g rng.Stream) *Rows {
	r := &Rows{k: k, x: x, lambda: lambda, tol: tol}
	moved, _ := points.Split(x)
	if kept.Centred || kept.Arithmetic == kernel.Differences {
		moved = points.Shift(moved, points.Mean(moved))
	}
	norms := points.SqNorms(moved)
	n := len(norms)
	drawn := g.Perm(n)
	byNorm := slices.Clone(drawn)
	slices.SortStableFunc(byNorm, func(a, b int) int { return cmp.Compare(norms[b], norms[a]) })
	far := min(n, max(farRows, r.doubtful(norms, kept)))
	isFar := make([]bool, n)
	for _, i := range byNorm[:far] {
		isFar[i] = true
	}
	r.at, r.weights = byNorm[:far:far], slices.Repeat([]float64{1}, far)
	if weighted, ok := x.(*points.Weighted); ok {
		some, probabilities := kernel.DrawWeighted(weighted, 2*drawnRows, g.Sub("weighted"))
		for a, i := range some {
			if !isFar[i] {
				r.at, r.weights = append(r.at, i), append(r.weights, 1/probabilities[a])
			}
		}
		return r
	}
	for _, i := range drawn {
		if !isFar[i] && len(r.at) < far+drawnRows {
			r.at = append(r.at, i)
		}
	}
	for range len(r.at) - far {
		r.weights = append(r.weights, float64(n-far)/float64(len(r.at)-far))
	}
	return r
}

// doubtful returns how many of the points, of the given ‖x‖², lie so far from the origin that K as it is kept
// may have entries of two of them wrong by a quarter of τ: a few may lie close together, whose rows would
// hardly be drawn. It is at most mostFar, and 0 if they are more than an eighth of all, which rows drawn at
// random show.
func (r *Rows) doubtful(norms []float64, kept gram.Choice) int {
	if kept.Arithmetic == kernel.Differences || kept.Whole || !kernel.ShiftInvariant(r.k) {
		return 0
	}
	coarser := 1.0
	if kept.Arithmetic == kernel.Float32 {
		coarser = 0x1p29
	}
	n, d := r.x.Dims()
	count := 0
	for _, v := range norms {
		if coarser*kernel.EntryError(r.k, kernel.Float64, kernel.PointSummary{Dim: d, MaxSq: v, Shifted: true}) > r.tol/4 {
			count++
		}
	}
	if count > n/8 {
		return 0
	}
	return min(count, mostFar)
}

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.at) }

// Estimate returns for every column of C, n×t, ‖r_j‖₂/‖y_j‖₂ and the same of the error of the residual by K as stored,
// which is mostly a small part of it, so that the sampling error matters little; of a nil residual all of it is. Both
// have what rounding may make of the rows added (rounding). Ranks that share the work all call it.
func (r *Rows) Estimate(ctx context.Context, ranks comm.Comm, y, c, stored *mat.Dense) (residual, off []float64,
	err error) {
	base, factors := points.Split(r.x)
	scaled := c // Sc
	if factors != nil {
		scaled = mat.DenseCopyOf(c)
		scaled.Apply(func(i, _ int, v float64) float64 { return factors[i] * v }, c)
	}
	f, err := (&model.Model{Kernel: r.k, Lambda: r.lambda, X: base, C: scaled}).
		Decision(ctx, points.Gather(base, r.at), &model.Options{Float64: true, Accuracy: r.tol / 1000, Comm: ranks})
	if err != nil {
		return nil, nil, err
	}
	if factors != nil {
		f.Apply(func(k, _ int, v float64) float64 { return factors[r.at[k]] * v }, f)
	}
	_, t := y.Dims()
	residual, off = make([]float64, t), make([]float64, t)
	rounding := r.rounding(y, c)
	for j := range t {
		size := mat.Norm(y.ColView(j), 2)
		if size == 0 {
			continue // c_j = 0
		}
		var rr, dd float64 // relative: squares of small targets are 0
		for k, i := range r.at {
			v, w := y.At(i, j)-r.lambda*c.At(i, j)-f.At(k, j), r.weights[k]
			d := v
			if stored != nil {
				d -= stored.At(i, j)
			}
			rr += w * (v / size) * (v / size)
			dd += w * (d / size) * (d / size)
		}
		residual[j], off[j] = math.Sqrt(rr)+rounding[j], math.Sqrt(dd)+rounding[j]
	}
	return residual, off, nil
}

// rounding estimates what rounding adds to ‖r_j‖₂/‖y_j‖₂ where r is formed as Estimate forms rows of it,
//
//	u·√(δ/u+n)·√(Σ_l s_l)·√(Σ_l s_l·c_lj²)/‖y_j‖₂,  u = 2⁻⁵³,
//
// s the kernel.Sizes, with δ/u roundings in an entry by kernel.EntryError from differences (inner products are taken only where they add
// next to nothing) and n in sums, as if all were independent: N. J. Higham, T. Mary, A new approach to probabilistic
// rounding error analysis, SIAM J. Sci. Comput. 41, 2019, doi:10.1137/18M1226312.
func (r *Rows) rounding(y, c *mat.Dense) []float64 {
	n, t := y.Dims()
	sizes := kernel.Sizes(r.k, r.x, kernel.Diag(r.k, r.x))
	const u = 0x1p-53
	entry := kernel.EntryError(r.k, kernel.Differences, kernel.SummaryOf(points.NewPanel(r.x)))
	share := u * math.Sqrt(entry/u+float64(n)) * math.Sqrt(floats.Sum(sizes))
	rounding := make([]float64, t)
	for j := range rounding {
		var norm float64
		for l, s := range sizes {
			norm = math.Hypot(norm, math.Sqrt(s)*c.At(l, j))
		}
		if size := mat.Norm(y.ColView(j), 2); size > 0 {
			rounding[j] = share * (norm / size)
		}
	}
	return rounding
}
