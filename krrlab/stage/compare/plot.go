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

// Plot draws of each preconditioner, in its median draw, the residuals against iterations and against the seconds that
// it takes alone, the bounds of the error against these, and the spectrum of M⁻¹A; with Options.Against only the
// iterations of all draws against the rank or the bytes.
func (r *Result) Plot() *plots.Figure {
	if r.Against != "" {
		return r.against()
	}
	its := plots.Convergence("residual, by recurrence", r.To)
	time := plots.Convergence("residual, by recurrence", r.To)
	bounds := plots.Convergence("upper bound of the error", 0)
	bounds.Y.Label = "error in norm of A / ‖b‖₂"
	spectrum := &plots.Figure{Title: "spectrum of M⁻¹A", X: plots.Axis{Label: "eigenvalue", Log: true},
		Y: plots.Axis{Label: "share of eigenvalues"}}
	var plain *pencil.Row // M = I, which has no set-up
	start, last := math.Inf(1), 0.0
	all := []*plots.Figure{its, time, bounds, spectrum}
	for _, row := range r.typical() {
		if len(row.Residuals) < 2 {
			continue
		}
		name := stage.Label(row.Name)
		series := [4]plots.Series{{Name: name}, {Name: name}, {Name: name}, {Name: name, Style: plots.Steps}}
		for k, v := range row.Residuals {
			s := r.clock(row, k)
			series[0].Add(float64(k), v)
			series[1].Add(s, v)
			if row.Bounds != nil {
				series[2].Add(s, row.Bounds[k])
			}
		}
		var share float64
		if row.Exact == nil {
			spectrum.Title = "spectrum of M⁻¹A, by quadrature"
		}
		for i, theta := range row.Nodes {
			if share += row.Share(i); share > 0 {
				series[3].Add(theta, share)
			}
		}
		if last = max(last, r.seconds(row)); row.Build > 0 {
			start = min(start, row.Build)
		} else {
			plain = row
		}
		for i, f := range all {
			if len(series[i].Y) > 0 {
				f.Series = append(f.Series, series[i])
			}
		}
	}
	its.X.Label, its.X.Log = "iterations", true
	// The axis of seconds starts at the least set-up, so that the first iterations of M = I are not shown, unless M = I
	// ends soon after it.
	if plain != nil && r.seconds(plain) < 2*start {
		start = r.clock(plain, 1)
	}
	for _, f := range []*plots.Figure{time, bounds} {
		f.X = plots.Axis{Label: "seconds alone, with M, without K", Log: last > 10*start, Min: start, Max: math.NaN()}
	}
	all = slices.DeleteFunc(all, func(f *plots.Figure) bool { return len(f.Series) == 0 })
	f := plots.Grid(r.title(), 1, all...)
	f.Caption = fmt.Sprintf("Conjugate gradients with each preconditioner, in the draw with the median number of "+
		"iterations. Seconds are those of making M and of iterations with all t = %d right-hand sides.", r.T)
	return f
}

// title names the problem.
func (r *Result) title() string {
	return fmt.Sprintf("%s, n = %d: %s, λ = %g", r.Dataset, r.N, r.Kernel.Prose(), r.Lambda)
}

// against draws the iterations of the draws that came to r.To against rank or bytes: a series for those that are named
// alike but for the rank.
func (r *Result) against() *plots.Figure {
	f := &plots.Figure{Title: r.title(), X: plots.Axis{Label: "rank", Log: true},
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
		if row.Iterations == nil || row.Status != pcg.Converged || row.Why != "" || !(x > 0) {
			continue
		}
		name := strings.Join(slices.DeleteFunc(strings.Fields(row.Name), func(word string) bool {
			return strings.HasPrefix(word, "features=") || strings.HasPrefix(word, "(")
		}), " ")
		name = stage.Label(name)
		at := slices.IndexFunc(f.Series, func(s plots.Series) bool { return s.Name == name })
		if at < 0 {
			at, f.Series = len(f.Series), append(f.Series, plots.Series{Name: name, Style: plots.Points})
		}
		f.Series[at].Add(x, float64(max(*row.Iterations, 1)))
	}
	return f
}
