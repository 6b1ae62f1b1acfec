package results

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/direct"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
)

// TakeOn takes up where a run of conjugate gradients ended, behind those before it; seconds are all that it took, and bounds[k]
// is of the error after iteration k (HistRow.Bound).
func (s *Solution) TakeOn(res *pcg.Result, bounds []float64, seconds float64) {
	s.Seconds.Residual += res.Stats.Exact.Seconds
	s.Seconds.Solve += seconds - res.Stats.Exact.Seconds
	s.Result = res
	s.Iterations += res.Iterations
	s.Status, s.TrueResiduals, s.Roundings = res.Status, res.TrueRelRes, res.Rounding
	if k := res.Cond(); !math.IsNaN(k) {
		s.Kappa = stage.Number(k)
	}
	for k, h := range res.History.RelRes {
		s.History = append(s.History, HistRow{Iteration: len(s.History), Residual: floats.Max(h), Columns: h, Bound: stage.Number(bounds[k])})
	}
}

// TakeOnDirect takes up where a direct solve ended.
func (s *Solution) TakeOnDirect(res *direct.Result) {
	s.Status = res.Status
	s.TrueResiduals, s.Roundings, s.ResidualKind = res.TrueRelRes, res.Rounding, InFloat64
	s.KBound = stage.Number(res.KError)
	s.Storage, s.KBytes = fmt.Sprintf("dense %v", res.Precision), res.Bytes
	s.Seconds.Kernel, s.Seconds.Factor = res.Seconds.Kernel, res.Seconds.Factor
	s.Seconds.Solve, s.Seconds.Residual = res.Seconds.Solve, res.Seconds.Residual
	for i, r := range res.History {
		s.History = append(s.History, HistRow{Iteration: i, Residual: floats.Max(r), Columns: r, Bound: stage.Unknown})
	}
}

// Settle sets the worst of the residuals, of every kind, once they are those of the answer. A kind of which one is not finite, which JSON
// cannot carry, is unknown.
func (s *Solution) Settle() {
	s.TrueResidual, s.TrueResiduals = worst(s.TrueResiduals)
	s.Rounding, s.Roundings = worst(s.Roundings)
	s.SampledResidual, s.SampledResiduals = worst(s.SampledResiduals)
	s.StorageResidual, s.StorageResiduals = worst(s.StorageResiduals)
	if !s.TrueResidual.Known() { // nor is what rounding does to it
		s.Rounding, s.Roundings = stage.Unknown, nil
	}
}

// worst returns the largest number and all of them, nothing where there are none or one is not finite.
func worst(list []float64) (stage.Number, []float64) {
	if len(list) > 0 {
		if w := stage.Number(slices.Max(list)); w.Known() {
			return w, list
		}
	}
	return stage.Unknown, nil
}

// Counting returns a function that adds what this rank sends from now on, as the counters of a, K+λI, and m, nil for none, have it: after a run of
// conjugate gradients with them, with that. Of Z this rank has so many rows.
func (r *Ranks) Counting(a *gram.Matrix, m *precond.Woodbury, rows int) func(*pcg.Result) {
	solved := func() int64 {
		if m == nil {
			return 0
		}
		return m.Traffic().Bytes
	}
	products, solves := a.Traffic().Bytes, solved()
	return func(res *pcg.Result) {
		mul, pre := res.Stats.MulTo, res.Stats.SolveTo
		r.Products += mul.Calls
		r.ProductBytes += a.Traffic().Bytes - products
		r.ProductFormula += a.ProductBytes(mul.Columns) + int64(mul.Calls-1)*a.ProductBytes(0)
		r.Solves += pre.Calls
		r.SolveBytes += solved() - solves
		if m != nil {
			r.SolveFormula += precond.SolveBytes(m.Features(), pre.Columns, rows)
		}
	}
}
