package lambdap

import (
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Result is a sweep of the ridge λ_p of the preconditioner M = ZZᵀ+λ_pI, or a map over (s, λ_p) for several numbers s
// of columns of Z.
type Result struct {
	stage.Header
	Features string   `json:"features"` // features or landmarks of Z
	Sweeps   []*Sweep `json:"sweeps"`   // a sweep for each s, ascending

	BestS       int     `json:"best_s"`             // s of the least predicted time; 0 if no time is known
	BestLambdaP float64 `json:"best_lambda_p"`      // λ_p of the least predicted time; 0 if no time is known
	KError      float64 `json:"kernel_error_bound"` // predicted bound of ‖K_stored−K‖₂
	Seconds     float64 `json:"seconds"`            // total time, including that for K and Z
}

// addSweep adds a sweep, and updates the best point of all sweeps, the one of least predicted time.
func (s *Result) addSweep(added *Sweep) {
	s.Sweeps = append(s.Sweeps, added)
	lowestSeconds := math.Inf(1)
	for _, r := range s.Sweeps {
		if r.Best >= 0 && r.Points[r.Best].Seconds < lowestSeconds {
			lowestSeconds = r.Points[r.Best].Seconds
			s.BestS, s.BestLambdaP = r.S, r.Points[r.Best].LambdaP
		}
	}
}

func (s *Result) String() string {
	var b stage.Lines
	b.AddProblem(&s.Header)
	b.AddText("Z", s.Features)
	for _, r := range s.Sweeps {
		b.Add("η = ‖K−ZZᵀ‖₂", "%s (s = %d)", stage.IntervalText(r.Eta), r.S)
		b.Add("", "an iteration takes %.3g s, the set-up %.3g s; %s of λ_p", r.IterationSeconds, r.SetUpSeconds,
			plural.Count(len(r.Points), "value"))
		if r.Best >= 0 {
			b.AddText("  best", r.Points[r.Best].summary(s.Tol))
		}
		if p := r.At(s.Lambda); p != nil {
			b.AddText("  λ_p = λ", p.summary(s.Tol))
		}
	}
	if s.BestS > 0 && len(s.Sweeps) > 1 {
		b.Add("choice", "s = %d, λ_p = %.4g", s.BestS, s.BestLambdaP)
	}
	b.AddSeconds(s.Seconds)
	return b.String()
}

// summary describes the point on one line; tol is τ.
func (p *Point) summary(tol float64) string { return p.Name + ": " + p.Text(tol, p.Seconds) }

// Table returns a table with one row per s and λ_p.
func (s *Result) Table() *plots.Table {
	var rows []*pencil.Row
	var points []*Point
	for _, r := range s.Sweeps {
		for i := range r.Points {
			rows, points = append(rows, &r.Points[i].Row), append(points, &r.Points[i])
		}
	}
	t := pencil.Table("λ_p: "+s.Dataset, rows, s.Tol, func(r *pencil.Row) float64 {
		return points[slices.Index(rows, r)].Seconds
	})
	t.Columns = append(t.Columns, plots.Column{Name: "bound by η", Format: "%.4g"})
	for i, p := range points { // rows are named after λ_p, which has its own column
		t.Rows[i][0] = plots.Text(s.Features)
		t.Rows[i] = append(t.Rows[i], plots.AtMost(p.Bound))
	}
	return t
}

// Plot draws κ with its interval and the bound by η against λ_p, and the iterations in a second panel. λ, 10λ and λ+η
// are marked, and the choice has a ring. For several sweeps it draws two heat maps over λ_p and s, of κ and of the
// predicted time.
func (s *Result) Plot() *plots.Figure {
	if len(s.Sweeps) > 1 {
		return s.plotMap()
	}
	r := s.Sweeps[0]
	kappa, bound, iterations := plotSeries(r)
	marks := []plots.RefLine{{At: s.Lambda, Label: "λ"}, {At: 10 * s.Lambda, Label: "10λ"},
		{At: s.Lambda + r.Eta.Value, Label: "λ+η"}}
	panels := []*plots.Figure{plots.Sweep("", "λ_p", "κ(M⁻¹A)", marks, kappa, bound)}
	if slices.ContainsFunc(iterations.Y, func(v float64) bool { return v > 0 }) {
		panels = append(panels, plots.Sweep("", "λ_p", "iterations", marks, iterations))
	}
	f := plots.Grid(fmt.Sprintf("%s, λ = %g: the preconditioner's ridge", s.Dataset, s.Lambda), 1, panels...)
	f.ShareX = true
	f.Caption = fmt.Sprintf("M = ZZᵀ+λ_pI, %s, s = %d. Band: κ with %.3g %% confidence at each λ_p.",
		s.Kernel.InProse(s.Features), r.S, 100*r.Points[0].Kappa.Confidence)
	f.Controls = s.controls()
	if r.Best >= 0 {
		p := &r.Points[r.Best]
		f.Panels[0].Marks = []plots.Mark{{X: p.LambdaP, Y: p.Kappa.Value, Label: "least time"}}
	}
	var largestKappa float64
	for _, p := range r.Points {
		largestKappa = max(largestKappa, p.Kappa.Value)
	}
	if largestKappa > 1 && !math.IsInf(largestKappa, 1) { // the bound and the upper ends may be far above κ
		f.Panels[0].Y.Min, f.Panels[0].Y.Max = 1, 30*largestKappa
	}
	return f
}

// plotMap draws heat maps of κ and of the predicted time over λ_p and s.
func (s *Result) plotMap() *plots.Figure {
	var grid, sizes []float64
	for _, p := range s.Sweeps[0].Points {
		grid = append(grid, p.LambdaP)
	}
	for _, r := range s.Sweeps {
		sizes = append(sizes, float64(r.S))
	}
	panel := func(quantity string, value func(p *Point) float64) *plots.Figure {
		var z [][]float64
		for _, r := range s.Sweeps {
			row := make([]float64, len(grid))
			for j, l := range grid {
				if p := r.At(l); p != nil {
					row[j] = value(p)
				}
				if row[j] == 0 { // not measured
					row[j] = math.NaN()
				}
			}
			z = append(z, row)
		}
		f := plots.Map("", "λ_p", "s", quantity, grid, sizes, z)
		f.Y.Ticks = sizes
		f.VLines = []plots.RefLine{{At: s.Lambda, Label: "λ"}, {At: 10 * s.Lambda, Label: "10λ"}}
		if s.BestS > 0 {
			f.Marks = []plots.Mark{{X: s.BestLambdaP, Y: float64(s.BestS), Label: "least time"}}
		}
		return f
	}
	f := plots.Grid(fmt.Sprintf("%s, λ = %g: features and ridge of the preconditioner", s.Dataset, s.Lambda), 1,
		panel("κ(M⁻¹A)", func(p *Point) float64 { return p.Kappa.Value }),
		panel("time (s)", func(p *Point) float64 { return p.Seconds }))
	f.ShareX, f.Controls = true, s.controls()
	f.Caption = fmt.Sprintf("M = ZZᵀ+λ_pI, %s. Time: predicted, set-up and iterations to τ = %g for t = %d "+
		"right-hand sides.", s.Kernel.InProse(s.Features), s.Tol, s.T)
	return f
}

// plotSeries returns κ with its interval, its bound by η, and the counted iterations, or else the predicted ones.
func plotSeries(r *Sweep) (kappa, bound, iterations plots.Series) {
	kappa.Name, bound.Name, iterations.Name = "κ", "bound of κ by η", "predicted iterations"
	counted := slices.ContainsFunc(r.Points, func(p Point) bool { return p.Iterations != nil })
	if counted {
		iterations.Name = "PCG iterations"
	}
	for _, p := range r.Points {
		kappa.AddInterval(p.LambdaP, p.Kappa)
		bound.Add(p.LambdaP, p.Bound)
		y := math.NaN()
		switch {
		case counted && p.Iterations != nil && p.Status == pcg.Converged:
			y = float64(*p.Iterations)
		case !counted && p.Predicted > 0:
			y = float64(p.Predicted)
		}
		iterations.Add(p.LambdaP, y)
	}
	return kappa, bound, iterations
}

// HTML returns the result as text, figure and table.
func (s *Result) HTML() string { return stage.HTML(s) }

// subdivisions is the number of steps of the slider between adjacent measured values of λ_p.
const subdivisions = 8

// controls returns sliders over λ_p, τ and, if there are several sweeps, s. It returns nil if the first sweep has fewer
// than two points, or no Lanczos steps.
func (s *Result) controls() *plots.Controls {
	var sweeps [][]map[string]any
	var sizes []float64
	for _, r := range s.Sweeps {
		var points []map[string]any
		for i := range r.Points {
			points = append(points, r.Points[i].ExploreData(r.Points[i].LambdaP))
		}
		sweeps, sizes = append(sweeps, points), append(sizes, float64(r.S))
	}
	firstSweep := s.Sweeps[0]
	if len(firstSweep.Points) < 2 || firstSweep.Points[0].Steps == 0 {
		return nil
	}
	points := firstSweep.Points
	slider := plots.Slider{Name: "λ_p", Value: points[0].LambdaP}
	if firstSweep.At(s.Lambda) != nil {
		slider.Value = s.Lambda
	}
	for k := range subdivisions*(len(points)-1) + 1 {
		lower, following := points[k/subdivisions].LambdaP, points[min(k/subdivisions+1, len(points)-1)].LambdaP
		slider.Values = append(slider.Values, lower*math.Pow(following/lower, float64(k%subdivisions)/subdivisions))
	}
	sliders := []plots.Slider{slider}
	data := map[string]any{"sweeps": sweeps}
	if len(s.Sweeps) > 1 {
		data["sizes"] = sizes
		value := sizes[0]
		if s.BestS > 0 {
			value = float64(s.BestS)
		}
		sliders = append(sliders, plots.Slider{Name: "s", Value: value, Values: sizes})
	}
	return pencil.ExploreControls(data, firstSweep.Points[0].Kappa.Confidence, s.Tol, sliders...)
}
