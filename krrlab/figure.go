package krrlab

import (
	"fmt"
	"slices"

	"github.com/krrlab/lab/plots"
)

// ConvergenceSeries returns the worst relative residual of the columns against the
// iteration.
func (r *Report) ConvergenceSeries() plots.Series {
	s := plots.Series{Name: r.Solver}
	for _, h := range r.History {
		s.X = append(s.X, float64(h.Iteration))
		s.Y = append(s.Y, h.Residual)
	}
	return s
}

// ConvergenceFigure draws the convergence of the solve: the worst column's relative
// residual ‖y_j−Ac_j‖₂/‖y_j‖₂, by recurrence, against the iteration. A direct solve,
// which has no iterations, is drawn as the one residual it ended with.
func (r *Report) ConvergenceFigure() *plots.Figure {
	s := r.ConvergenceSeries()
	if len(s.X) == 0 && r.TrueResidual != nil {
		s.X, s.Y, s.Style = []float64{0}, []float64{*r.TrueResidual}, plots.Points
	}
	f := plots.Convergence(fmt.Sprintf("%s: %s, λ = %g", r.Dataset, kernelWords(r.Kernel), r.Lambda), r.Tol, s)
	// Answers of zeros leave no residual at all, which a log axis cannot show.
	f.Y.Log = slices.ContainsFunc(s.Y, func(v float64) bool { return v > 0 })
	return f
}
