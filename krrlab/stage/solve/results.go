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

// addIterations adds the result of a run of conjugate gradients to the solution. seconds is the total time of the run,
// and bounds[k] the error bound after iteration k (HistoryRow.Bound). Iterations, seconds and history are added to
// those of earlier runs; the other fields are replaced.
func (s *Solution) addIterations(res *pcg.Result, bounds []float64, seconds float64) {
	s.Seconds.Residual += res.Stats.Exact.Seconds
	s.Seconds.Solve += seconds - res.Stats.Exact.Seconds
	s.Result = res
	s.Iterations += res.Iterations
	s.Status, s.ColumnTrueResiduals, s.ColumnRoundings = res.Status, res.TrueRelRes, res.Rounding
	if k := res.Cond(); !math.IsNaN(k) {
		s.Kappa = stage.Number(k)
	}
	for k, h := range res.History.RelRes {
		s.History = append(s.History, HistoryRow{Iteration: len(s.History), Residual: floats.Max(h), Columns: h,
			Bound: stage.Number(bounds[k])})
	}
}

// addDirect sets the result of a direct solve.
func (s *Solution) addDirect(res *direct.Result) {
	s.Status = res.Status
	s.ColumnTrueResiduals, s.ColumnRoundings, s.ResidualKind = res.TrueRelRes, res.Rounding, ResidualInFloat64
	s.KBound = stage.Number(res.KError)
	s.Storage, s.KBytes = fmt.Sprintf("dense %v", res.Precision), res.Bytes
	s.Seconds.Kernel, s.Seconds.Factor = res.Seconds.Kernel, res.Seconds.Factor
	s.Seconds.Solve, s.Seconds.Residual = res.Seconds.Solve, res.Seconds.Residual
	for i, r := range res.History {
		s.History = append(s.History, HistoryRow{Iteration: i, Residual: floats.Max(r), Columns: r,
			Bound: stage.Unknown})
	}
}

// setLargest sets the largest residual, and the largest of its errors, from those of the columns. If one of a list is
// not finite, which JSON cannot express, the list and its largest number become unknown.
func (s *Solution) setLargest() {
	s.TrueResidual, s.ColumnTrueResiduals = largestKnown(s.ColumnTrueResiduals)
	s.Rounding, s.ColumnRoundings = largestKnown(s.ColumnRoundings)
	s.SampledResidual, s.ColumnSampledResiduals = largestKnown(s.ColumnSampledResiduals)
	s.StorageResidual, s.ColumnStorageResiduals = largestKnown(s.ColumnStorageResiduals)
	if !s.TrueResidual.Known() { // the rounding of an unknown residual is unknown as well
		s.Rounding, s.ColumnRoundings = stage.Unknown, nil
	}
}

// largestKnown returns the largest number of the list, and the list. It returns Unknown and nil if the list is empty or
// has a number that is not finite.
func largestKnown(list []float64) (stage.Number, []float64) {
	if len(list) > 0 {
		if w := stage.Number(slices.Max(list)); w.Known() {
			return w, list
		}
	}
	return stage.Unknown, nil
}
