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

// add widens the limits to include those of the values that the axis can show.
func (l *limits) add(a *plots.Axis, values ...float64) {
	for _, v := range values {
		if a.Shows(v) {
			l.lo, l.hi = math.Min(l.lo, v), math.Max(l.hi, v)
		}
	}
}

// extent holds the limits of the data in x and in y.
type extent struct{ x, y limits }

// add widens the extent to include the samples of a series of the figure, with their intervals. Samples that an axis
// cannot show are ignored.
func (e *extent) add(f *plots.Figure, s *plots.Series) {
	for j, y := range s.Y {
		x := s.Abscissa(j)
		if !f.X.Shows(x) || !f.Y.Shows(y) {
			continue
		}
		e.x.add(&f.X, x)
		e.y.add(&f.Y, y)
		bounded, axis := &e.y, &f.Y // what Lo and Hi bound
		if s.Style == plots.Bars {
			e.x.add(&f.X, 0)
			e.y.add(&f.Y, y-halfBarHeight, y+halfBarHeight)
			bounded, axis = &e.x, &f.X
		}
		if s.Lo != nil {
			bounded.add(axis, s.Lo[j], s.Hi[j])
		}
	}
}

// extentOf returns the extent of the series of the figure and of its map, or if it has no map, of its series, reference
// lines and marks.
func extentOf(f *plots.Figure) extent {
	e := extent{emptyLimits, emptyLimits}
	for i := range f.Series {
		e.add(f, &f.Series[i])
	}
	if m := f.Map; m != nil { // the axes end at the edges of the map; reference lines and marks do not widen it
		e.x.add(&f.X, edges(m.X, &f.X)...)
		e.y.add(&f.Y, edges(m.Y, &f.Y)...)
		return e
	}
	for _, l := range f.HLines {
		e.y.add(&f.Y, l.At)
	}
	for _, l := range f.VLines {
		e.x.add(&f.X, l.At)
	}
	for _, m := range f.Marks {
		e.add(f, &plots.Series{X: []float64{m.X}, Y: []float64{m.Y}})
	}
	return e
}
