package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Plot draws four panels for the median draw of each preconditioner: the residuals against iterations, the residuals
// against the seconds of a solve with this preconditioner alone, the bounds of the error against these seconds, and the
// spectrum of M⁻¹A. With Options.Against the figure has only the iterations of all draws against the rank or the bytes.
func (r *Result) Plot() *plots.Figure {
	if r.Against != "" {
		return r.plotAgainst()
	}
	iterationPanel := plots.Convergence("residual, by recurrence", r.To)
	secondsPanel := plots.Convergence("residual, by recurrence", r.To)
	boundPanel := plots.Convergence("upper bound of the error", 0)
	boundPanel.Y.Label = "error in norm of A / ‖b‖₂"
	spectrumPanel := &plots.Figure{Title: "spectrum of M⁻¹A", X: plots.Axis{Label: "eigenvalue", Log: true},
		Y: plots.Axis{Label: "share of eigenvalues"}}
	var identity *pencil.Row // M = I, which has no set-up time
	minBuild, maxSeconds := math.Inf(1), 0.0
	panels := []*plots.Figure{iterationPanel, secondsPanel, boundPanel, spectrumPanel}
	for _, row := range r.medianDraws() {
		if len(row.Residuals) < 2 {
			continue
		}
		if row.Exact == nil {
			spectrumPanel.Title = "spectrum of M⁻¹A, by quadrature"
		}
		if maxSeconds = max(maxSeconds, r.totalSeconds(row)); row.Build > 0 {
			minBuild = min(minBuild, row.Build)
		} else {
			identity = row
		}
		for i, series := range r.panelSeries(row) {
			if len(series.Y) > 0 {
				panels[i].Series = append(panels[i].Series, series)
			}
		}
	}
	iterationPanel.X.Label, iterationPanel.X.Log = "iterations", true
	// The axis of seconds starts at the smallest set-up time, which hides the first iterations of M = I. If M = I ends
	// soon after that time, the axis starts at its first iteration instead.
	if identity != nil && r.totalSeconds(identity) < 2*minBuild {
		minBuild = r.soloSeconds(identity, 1)
	}
	for _, figure := range []*plots.Figure{secondsPanel, boundPanel} {
		figure.X = plots.Axis{Label: "seconds alone, with M, without K", Log: maxSeconds > 10*minBuild,
			Min: minBuild, Max: math.NaN()}
	}
	panels = slices.DeleteFunc(panels, func(figure *plots.Figure) bool { return len(figure.Series) == 0 })
	figure := plots.Grid(r.plotTitle(), 1, panels...)
	figure.Caption = fmt.Sprintf("Conjugate gradients with each preconditioner, in the draw with the median number of "+
		"iterations. Seconds are those of making M and of iterations with all t = %d right-hand sides.", r.T)
	return figure
}

// panelSeries returns the series of a row in the panels of Plot: the residuals against iterations and seconds, the
// bounds of the error, and the cumulative share of the eigenvalues. A series is empty if it is not known.
func (r *Result) panelSeries(row *pencil.Row) (series [4]plots.Series) {
	for i := range series {
		series[i].Name = stage.FigureLabel(row.Name)
	}
	for iteration, residual := range row.Residuals {
		seconds := r.soloSeconds(row, iteration)
		series[0].Add(float64(iteration), residual)
		series[1].Add(seconds, residual)
		if row.ErrorBounds != nil {
			series[2].Add(seconds, row.ErrorBounds[iteration])
		}
	}
	series[3].Style = plots.Steps
	var share float64 // share of the eigenvalues up to theta
	for i, theta := range row.Nodes {
		if share += row.NodeWeight(i); share > 0 {
			series[3].Add(theta, share)
		}
	}
	return series
}

// plotTitle names the problem.
func (r *Result) plotTitle() string {
	return fmt.Sprintf("%s, n = %d: %s, λ = %g", r.Dataset, r.N, r.Kernel.Prose(), r.Lambda)
}

// plotAgainst plots the iterations of all draws that reached the residual r.To against rank or bytes. Names that differ
// only in the rank belong to one series.
func (r *Result) plotAgainst() *plots.Figure {
	figure := &plots.Figure{Title: r.plotTitle(), X: plots.Axis{Label: "rank", Log: true},
		Y: plots.Axis{Label: fmt.Sprintf("iterations to %.0e", r.To), Log: true}}
	if r.Against == "bytes" {
		figure.X.Label = "bytes of K and M"
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		x := float64(row.S)
		if r.Against == "bytes" {
			x = float64(r.KBytes + row.Bytes)
		}
		if row.Iterations == nil || row.Status != pcg.Converged || row.FailureReason != "" || !(x > 0) {
			continue
		}
		name := strings.Join(slices.DeleteFunc(strings.Fields(row.Name), func(word string) bool {
			return strings.HasPrefix(word, "features=") || strings.HasPrefix(word, "(")
		}), " ")
		figure.SeriesNamed(stage.FigureLabel(name), plots.Points).Add(x, float64(max(*row.Iterations, 1)))
	}
	return figure
}
