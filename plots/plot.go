package plots

import (
	"math"
	"slices"

	"github.com/krrlab/lab/plots/internal/text"
)

// Convergence returns the figure of an iterative solve: relative residuals
// ‖y−Ac‖₂/‖y‖₂ on a log axis against the iteration, and the tolerance τ as a dashed
// line. The Y of each series are the residuals after 0, 1, 2, … iterations; its X may
// say otherwise. A tolerance that is not positive is left out.
func Convergence(title string, tol float64, series ...Series) *Figure {
	f := &Figure{
		Title:  title,
		X:      Axis{Label: "iteration"},
		Y:      Axis{Label: "relative residual", Log: true},
		Series: series,
	}
	f.level("tolerance ", tol)
	return f
}

// level adds a horizontal line at a positive value, named with it.
func (f *Figure) level(name string, value float64) {
	if value > 0 && !math.IsInf(value, 1) {
		f.HLines = append(f.HLines, RefLine{At: value, Label: name + text.Scientific(value)})
	}
}

// Spectrum returns the figure of one or more spectra. The Y of each series are
// eigenvalues, drawn in decreasing order (in the given order if they have bounds) on a
// log axis. The other axis is the index from 1, or the X of a series if it has any; it
// is logarithmic, too, if there are more than fifty eigenvalues.
// The ridge λ is a dashed line, left out if it is not positive: how many eigenvalues
// are above it is what a sketch must catch.
func Spectrum(title string, lambda float64, series ...Series) *Figure {
	f := &Figure{
		Title: title,
		X:     Axis{Label: "index i"},
		Y:     Axis{Label: "eigenvalue", Log: true},
	}
	for _, s := range series {
		if s.X == nil {
			if s.X = make([]float64, len(s.Y)); s.Lo == nil {
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
	f.level("λ = ", lambda)
	return f
}

// Ladder returns the figure of a ladder of sketch sizes, each usually twice the last: a
// quantity such as κ against s, both on log axes, every rung a point with its interval,
// and the target as a dashed line, left out if it is not positive. The rungs are the
// ticks. chosen is the index of the rung taken, marked in the first series; none is
// marked if it is out of range. A series that is a Line is drawn as Points.
func Ladder(title, quantity string, target float64, chosen int, rungs ...Series) *Figure {
	f := &Figure{
		Title: title,
		X:     Axis{Label: "sketch size s", Log: true},
		Y:     Axis{Label: quantity, Log: true},
	}
	for _, s := range rungs {
		if s.Style == Line {
			s.Style = Points
		}
		f.Series = append(f.Series, s)
		f.X.Ticks = append(f.X.Ticks, s.X...)
	}
	slices.Sort(f.X.Ticks)
	f.X.Ticks = slices.Compact(f.X.Ticks)
	f.level("target ", target)
	if len(rungs) > 0 && chosen >= 0 && chosen < min(len(rungs[0].X), len(rungs[0].Y)) {
		x := rungs[0].X[chosen]
		f.Marks = []Mark{{X: x, Y: rungs[0].Y[chosen], Label: "s = " + text.Plain(x)}}
	}
	return f
}

// Sweep returns the figure of a sweep over a parameter: quantities on a log axis
// against the parameter on another. An estimate has its Lo and Hi as a band. Named
// values of the parameter, such as λ and λ+η in a sweep over λ_p, are dashed vertical
// lines.
func Sweep(title, parameter, quantity string, marks []RefLine, series ...Series) *Figure {
	return &Figure{
		Title:  title,
		X:      Axis{Label: parameter, Log: true},
		Y:      Axis{Label: quantity, Log: true},
		Series: series,
		VLines: marks,
	}
}

// Map returns the heat map of a quantity over two parameters on log axes, such as κ or
// seconds over the sketch size s and λ_p: z[i][j] belongs to y[i] and x[j]. The values
// are in the cells, and the colors are logarithmic. Each Mark added to the figure
// frames the cell it is in and stands in the legend.
func Map(title, xLabel, yLabel, quantity string, x, y []float64, z [][]float64) *Figure {
	return &Figure{
		Title: title,
		X:     Axis{Label: xLabel, Log: true},
		Y:     Axis{Label: yLabel, Log: true},
		Map:   &HeatMap{X: x, Y: y, Z: z, Color: Axis{Label: quantity, Log: true}},
	}
}

// Grid returns the figure of several panels in rows, columns side by side (0 chooses).
// Each panel keeps its title and its axes; set ShareX to give all of them the
// same x axis, labeled once. The panels are copied.
func Grid(title string, columns int, panels ...*Figure) *Figure {
	f := &Figure{Title: title, Columns: columns}
	for _, p := range panels {
		f.Panels = append(f.Panels, *p)
	}
	return f
}
