package plots

import (
	"math"
	"slices"

	"github.com/krrlab/lab/plots/internal/text"
)

// Convergence returns the figure of an iterative solve: relative residuals ‖y−Ac‖₂/‖y‖₂ on a log axis against the
// iteration. The Y of each series are the residuals after 0, 1, 2, … iterations, or after the iterations in its X. The
// tolerance is a dashed line. There is none if tol is not positive.
func Convergence(title string, tol float64, series ...Series) *Figure {
	f := &Figure{
		Title:  title,
		X:      Axis{Label: "iteration"},
		Y:      Axis{Label: "relative residual", Log: true},
		Series: series,
	}
	f.addLevel("tolerance ", tol)
	return f
}

// addLevel adds a horizontal line at a value, labeled with the name and the value. It adds nothing unless the value is
// positive and finite.
func (f *Figure) addLevel(name string, value float64) {
	if value > 0 && !math.IsInf(value, 1) {
		f.HLines = append(f.HLines, RefLine{At: value, Label: name + text.Compact(value)})
	}
}

// Spectrum returns the figure of one or more spectra. The Y of each series are eigenvalues, on a log axis. They are
// drawn against the X of the series or, if it has none, against the index from 1 in decreasing order (in the given
// order if they have bounds). The x axis is logarithmic if there are more than fifty eigenvalues.
//
// The ridge λ is a dashed line. There is none if lambda is not positive. A sketch must represent the eigenvalues above
// this line.
func Spectrum(title string, lambda float64, series ...Series) *Figure {
	f := &Figure{
		Title: title,
		X:     Axis{Label: "index i"},
		Y:     Axis{Label: "eigenvalue", Log: true},
	}
	for _, s := range series {
		if s.X == nil {
			s.X = make([]float64, len(s.Y))
			if s.Lo == nil {
				s.Y = slices.Sorted(slices.Values(s.Y))
				slices.Reverse(s.Y)
			}
			for i := range s.X {
				s.X[i] = float64(i + 1)
			}
		}
		f.X.Log = f.X.Log || len(s.Y) > 50
		f.Series = append(f.Series, s)
	}
	f.addLevel("λ = ", lambda)
	return f
}

// Ladder returns the figure of a ladder of sketch sizes, each of which is usually twice the previous one. It shows a
// quantity such as κ against s, both on log axes, with a point and its interval for each rung. The rungs are the ticks.
// A series with the style Line is drawn as Points, as nothing is known between the rungs. The target is a dashed line.
// There is none if target is not positive. chosen is the index of the rung that was chosen, which is marked in the
// first series. No rung is marked if it is out of range.
func Ladder(title, quantity string, target float64, chosen int, series ...Series) *Figure {
	f := &Figure{
		Title: title,
		X:     Axis{Label: "sketch size s", Log: true},
		Y:     Axis{Label: quantity, Log: true},
	}
	for _, s := range series {
		if s.Style == Line {
			s.Style = Points
		}
		f.Series = append(f.Series, s)
		f.X.Ticks = append(f.X.Ticks, s.X...)
	}
	slices.Sort(f.X.Ticks)
	f.X.Ticks = slices.Compact(f.X.Ticks)
	f.addLevel("target ", target)
	if len(series) > 0 && chosen >= 0 && chosen < min(len(series[0].X), len(series[0].Y)) {
		x := series[0].X[chosen]
		f.Marks = []Mark{{X: x, Y: series[0].Y[chosen], Label: "s = " + text.Plain(x)}}
	}
	return f
}

// Sweep returns the figure of a sweep over a parameter: quantities against the parameter, both on log axes. vLines
// are named values of the parameter, such as λ and λ+η in a sweep over λ_p. They are drawn as dashed vertical lines.
func Sweep(title, parameter, quantity string, vLines []RefLine, series ...Series) *Figure {
	return &Figure{
		Title:  title,
		X:      Axis{Label: parameter, Log: true},
		Y:      Axis{Label: quantity, Log: true},
		Series: series,
		VLines: vLines,
	}
}

// Map returns the heat map of a quantity over two parameters on log axes, for example of κ over the sketch size s and
// λ_p. z[i][j] is the value at y[i] and x[j]. The cells show their values, and the scale of the colors is logarithmic.
// A Mark that is added to the figure frames the cell that contains it and is listed in the legend.
func Map(title, xLabel, yLabel, quantity string, x, y []float64, z [][]float64) *Figure {
	return &Figure{
		Title: title,
		X:     Axis{Label: xLabel, Log: true},
		Y:     Axis{Label: yLabel, Log: true},
		Map:   &HeatMap{X: x, Y: y, Z: z, Color: Axis{Label: quantity, Log: true}},
	}
}

// Grid returns a figure with several panels in rows of the given number of columns (0 for the default). Each panel
// keeps its title and its axes. If ShareX is set in the result, all panels have the same x axis, which is labeled once.
// The panels are copied.
func Grid(title string, columns int, panels ...*Figure) *Figure {
	f := &Figure{Title: title, Columns: columns}
	for _, p := range panels {
		f.Panels = append(f.Panels, *p)
	}
	return f
}
