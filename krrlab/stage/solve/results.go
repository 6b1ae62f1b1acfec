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
// and bounds[k] the error bound after iteration k (HistoryRow.Bound). The iterations, the seconds and the history are
// added to those of earlier runs; the other fields are replaced.
func (s *Solution) addIterations(result *pcg.Result, bounds []float64, seconds float64) {
	s.Seconds.Residual += result.Stats.Exact.Seconds
	s.Seconds.Solve += seconds - result.Stats.Exact.Seconds
	s.Result = result
	s.Iterations += result.Iterations
	s.Status, s.ColumnTrueResiduals, s.ColumnRoundings = result.Status, result.TrueRelRes, result.Rounding
	if kappa := result.Cond(); !math.IsNaN(kappa) {
		s.Kappa = stage.Number(kappa)
	}
	for k, residuals := range result.History.RelRes {
		s.History = append(s.History, HistoryRow{Iteration: len(s.History), Residual: floats.Max(residuals),
			Columns: residuals, Bound: stage.Number(bounds[k])})
	}
}

// addDirect sets the result of a direct solve.
func (s *Solution) addDirect(result *direct.Result) {
	s.Status = result.Status
	s.ColumnTrueResiduals, s.ColumnRoundings, s.ResidualKind = result.TrueRelRes, result.Rounding, ResidualInFloat64
	s.KernelErrorBound = stage.Number(result.KError)
	s.Storage, s.KBytes = fmt.Sprintf("dense %v", result.Precision), result.Bytes
	s.Seconds.Kernel, s.Seconds.Factor = result.Seconds.Kernel, result.Seconds.Factor
	s.Seconds.Solve, s.Seconds.Residual = result.Seconds.Solve, result.Seconds.Residual
	for i, residuals := range result.History {
		s.History = append(s.History, HistoryRow{Iteration: i, Residual: floats.Max(residuals), Columns: residuals,
			Bound: stage.Unknown})
	}
}

// setLargest sets TrueResidual, Rounding, SampledResidual and StorageResidual to the largest numbers of the columns. If
// a list has a number that is not finite, which JSON cannot express, the list becomes nil and its largest number
// unknown.
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
		if largest := stage.Number(slices.Max(list)); largest.Known() {
			return largest, list
		}
	}
	return stage.Unknown, nil
}
