package draw

import (
	"cmp"
	"math"

	"github.com/krrlab/lab/plots"
)

// size returns the width and height in inches.
func sizeOf(f *plots.Figure) (w, h float64) {
	w, h = f.Width, f.Height
	w = cmp.Or(w, 6.5)
	if h == 0 {
		h = 4
		if len(f.Panels) > 0 {
			h = gridHeight(f)
		}
	}
	return w, h
}

// extent is the least and greatest values that the axes can show.
type extent struct{ xlo, xhi, ylo, yhi float64 }

// nothing is the extent of no value.
var nothing = extent{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}

func (e extent) union(g extent) extent {
	return extent{math.Min(e.xlo, g.xlo), math.Max(e.xhi, g.xhi), math.Min(e.ylo, g.ylo), math.Max(e.yhi, g.yhi)}
}

// at returns the extent with the values that the axes of the figure can show.
func (e extent) at(f *plots.Figure, xs, ys []float64) extent {
	for _, x := range xs {
		if f.X.Shows(x) {
			e.xlo, e.xhi = math.Min(e.xlo, x), math.Max(e.xhi, x)
		}
	}
	for _, y := range ys {
		if f.Y.Shows(y) {
			e.ylo, e.yhi = math.Min(e.ylo, y), math.Max(e.yhi, y)
		}
	}
	return e
}

func extentOf(f *plots.Figure, i int) extent {
	s, e := &f.Series[i], nothing
	for j, y := range s.Y {
		if x := s.Abscissa(j); f.X.Shows(x) && f.Y.Shows(y) {
			e = e.at(f, []float64{x}, []float64{y})
			if s.Lo != nil {
				e = e.at(f, nil, []float64{s.Lo[j], s.Hi[j]})
			}
		}
	}
	return e
}

// extent returns the extent of everything in the figure.
func wholeExtent(f *plots.Figure) extent {
	e := nothing
	for i := range f.Series {
		e = e.union(extentOf(f, i))
	}
	if m := f.Map; m != nil { // its edges are the axes' ends; lines and marks do not widen it
		return e.at(f, edges(m.X, &f.X), edges(m.Y, &f.Y))
	}
	for _, l := range f.HLines {
		e = e.at(f, nil, []float64{l.At})
	}
	for _, l := range f.VLines {
		e = e.at(f, []float64{l.At}, nil)
	}
	for _, m := range f.Marks {
		if f.X.Shows(m.X) && f.Y.Shows(m.Y) {
			e = e.at(f, []float64{m.X}, []float64{m.Y})
		}
	}
	return e
}
