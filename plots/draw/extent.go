package draw

import (
	"cmp"
	"math"

	"github.com/krrlab/lab/plots"
)

// sizeOf returns the figure's width and height in inches, with defaults for those that are zero.
func sizeOf(f *plots.Figure) (w, h float64) {
	w, h = cmp.Or(f.Width, 6.5), cmp.Or(f.Height, 4)
	if f.Height == 0 && len(f.Panels) > 0 {
		h = gridHeight(f)
	}
	return w, h
}

// limits holds the minimum lo and the maximum hi of a set of values.
type limits struct{ lo, hi float64 }

// emptyLimits holds the limits of the empty set, with lo > hi.
var emptyLimits = limits{math.Inf(1), math.Inf(-1)}

// include widens the limits to include those of the values that the axis can show.
func (l *limits) include(a *plots.Axis, values ...float64) {
	for _, v := range values {
		if a.Shows(v) {
			l.lo, l.hi = math.Min(l.lo, v), math.Max(l.hi, v)
		}
	}
}

// extent holds the limits of the data in x and in y.
type extent struct{ x, y limits }

// include widens the extent to include the samples of a series of the figure, with their intervals. Samples that an
// axis cannot show are ignored.
func (e *extent) include(f *plots.Figure, s *plots.Series) {
	for j, y := range s.Y {
		x := s.Abscissa(j)
		if !f.X.Shows(x) || !f.Y.Shows(y) {
			continue
		}
		e.x.include(&f.X, x)
		e.y.include(&f.Y, y)
		bounded, axis := &e.y, &f.Y // Lo and Hi are bounds of y, or of x for Bars
		if s.Style == plots.Bars {
			e.x.include(&f.X, 0)
			e.y.include(&f.Y, y-halfBarHeight, y+halfBarHeight)
			bounded, axis = &e.x, &f.X
		}
		if s.Lo != nil {
			bounded.include(axis, s.Lo[j], s.Hi[j])
		}
	}
}

// extentOf returns the extent of the series and the map of a figure. For a figure without a map, it returns the extent
// of the series, the reference lines and the marks.
func extentOf(f *plots.Figure) extent {
	e := extent{emptyLimits, emptyLimits}
	for i := range f.Series {
		e.include(f, &f.Series[i])
	}
	if m := f.Map; m != nil { // the axes end at the edges of the map; reference lines and marks do not widen it
		e.x.include(&f.X, edges(m.X, &f.X)...)
		e.y.include(&f.Y, edges(m.Y, &f.Y)...)
		return e
	}
	for _, line := range f.HLines {
		e.y.include(&f.Y, line.At)
	}
	for _, line := range f.VLines {
		e.x.include(&f.X, line.At)
	}
	for _, mark := range f.Marks {
		e.include(f, &plots.Series{X: []float64{mark.X}, Y: []float64{mark.Y}})
	}
	return e
}
