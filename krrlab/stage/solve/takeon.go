package solve

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/krylov/direct"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// takeOn takes up where a run of conjugate gradients ended, behind those before it; seconds are all that it took, and
// bounds[k] is of the error after iteration k (HistRow.Bound).
func (s *Solution) takeOn(res *pcg.Result, bounds []float64, seconds float64) {
	s.Seconds.Residual += res.Stats.Exact.Seconds
	s.Seconds.Solve += seconds - res.Stats.Exact.Seconds
	s.Result = res
	s.Iterations += res.Iterations
	s.Status, s.TrueResiduals, s.Roundings = res.Status, res.TrueRelRes, res.Rounding
	if k := res.Cond(); !math.IsNaN(k) {
		s.Kappa = stage.Number(k)
	}
	for k, h := range res.History.RelRes {
		s.History = append(s.History, HistRow{Iteration: len(s.History), Residual: floats.Max(h), Columns: h,
			Bound: stage.Number(bounds[k])})
	}
}

// takeOnDirect takes up where a direct solve ended.
func (s *Solution) takeOnDirect(res *direct.Result) {
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

// settle sets the worst of the residuals, of every kind, once they are those of the answer. A kind of which one is not
// finite, which JSON cannot carry, is unknown.
func (s *Solution) settle() {
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
