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

// Plot draws, for the median draw of each preconditioner, the residuals against iterations and against the seconds of a
// solve with it alone, the bounds of the error against these seconds, and the spectrum of M⁻¹A. With Options.Against it
// draws only the iterations of all draws against the rank or the bytes.
func (r *Result) Plot() *plots.Figure {
	if r.Against != "" {
		return r.plotAgainst()
	}
	iterations := plots.Convergence("residual, by recurrence", r.To)
	time := plots.Convergence("residual, by recurrence", r.To)
	bounds := plots.Convergence("upper bound of the error", 0)
	bounds.Y.Label = "error in norm of A / ‖b‖₂"
	spectrum := &plots.Figure{Title: "spectrum of M⁻¹A", X: plots.Axis{Label: "eigenvalue", Log: true},
		Y: plots.Axis{Label: "share of eigenvalues"}}
	var identity *pencil.Row // M = I, which has no set-up time
	minBuild, maxSeconds := math.Inf(1), 0.0
	panels := []*plots.Figure{iterations, time, bounds, spectrum}
	for _, row := range r.medianDraws() {
		if len(row.Residuals) < 2 {
			continue
		}
		if row.Exact == nil {
			spectrum.Title = "spectrum of M⁻¹A, by quadrature"
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
	iterations.X.Label, iterations.X.Log = "iterations", true
	// The axis of seconds starts at the smallest set-up time, which hides the first iterations of M = I. If M = I ends
	// soon after that time, the axis starts at its first iteration instead.
	if identity != nil && r.totalSeconds(identity) < 2*minBuild {
		minBuild = r.soloSeconds(identity, 1)
	}
	for _, f := range []*plots.Figure{time, bounds} {
		f.X = plots.Axis{Label: "seconds alone, with M, without K", Log: maxSeconds > 10*minBuild,
			Min: minBuild, Max: math.NaN()}
	}
	panels = slices.DeleteFunc(panels, func(f *plots.Figure) bool { return len(f.Series) == 0 })
	f := plots.Grid(r.plotTitle(), 1, panels...)
	f.Caption = fmt.Sprintf("Conjugate gradients with each preconditioner, in the draw with the median number of "+
		"iterations. Seconds are those of making M and of iterations with all t = %d right-hand sides.", r.T)
	return f
}

// panelSeries returns the series of a row in the panels of Plot: the residuals against iterations and seconds, the
// bounds of the error, and the cumulative share of the eigenvalues. A series is empty if it is not known.
func (r *Result) panelSeries(row *pencil.Row) (series [4]plots.Series) {
	for i := range series {
		series[i].Name = stage.FigureLabel(row.Name)
	}
	for k, v := range row.Residuals {
		s := r.soloSeconds(row, k)
		series[0].Add(float64(k), v)
		series[1].Add(s, v)
		if row.ErrorBounds != nil {
			series[2].Add(s, row.ErrorBounds[k])
		}
	}
	series[3].Style = plots.Steps
	var share float64 // of the eigenvalues up to theta
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

// plotAgainst draws the iterations of the draws that reached r.To, against rank or bytes. Names that differ only in the
// rank belong to one series.
func (r *Result) plotAgainst() *plots.Figure {
	f := &plots.Figure{Title: r.plotTitle(), X: plots.Axis{Label: "rank", Log: true},
		Y: plots.Axis{Label: fmt.Sprintf("iterations to %.0e", r.To), Log: true}}
	if r.Against == "bytes" {
		f.X.Label = "bytes of K and M"
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
		f.SeriesNamed(stage.FigureLabel(name), plots.Points).Add(x, float64(max(*row.Iterations, 1)))
	}
	return f
}
