package plots

import (
	"fmt"
	"math"
)

// Style says how a series is drawn.
type Style int

const (
	Line   Style = iota // straight lines between the samples
	Points              // a marker at each sample
	Steps               // each value holds until the next sample
)

// String returns "line", "points" or "steps".
func (s Style) String() string {
	switch s {
	case Line:
		return "line"
	case Points:
		return "points"
	case Steps:
		return "steps"
	}
	return fmt.Sprintf("Style(%d)", int(s))
}

// Axis describes one axis of a Figure.
type Axis struct {
	// Label is the quantity and its unit, such as "time (s)".
	Label string
	// Log makes the axis logarithmic, base 10.
	Log bool
	// Min and Max are the ends of the axis. If they are equal, as when both are
	// zero, both ends follow the data; a NaN leaves that end to the data.
	Min, Max float64
	// Ticks are the values to label, as many as there is room for; nil chooses
	// round ones, or the cells' values where the figure has a Map.
	Ticks []float64
}

// Series is one named set of samples (X[i], Y[i]).
type Series struct {
	Name string
	// X and Y have one length. X nil means 0, 1, 2, ….
	X, Y []float64
	// Style is Line by default.
	Style Style
	// Lo and Hi, of Y's length or both nil, bound each value: a band for Line and
	// Steps, error bars for Points.
	Lo, Hi []float64
}

// x returns the abscissa of sample i.
func (s *Series) x(i int) float64 {
	if s.X == nil {
		return float64(i)
	}
	return s.X[i]
}

// RefLine is a dashed straight line across the plot at one value of an axis.
type RefLine struct {
	At    float64
	Label string // drawn along the line
}

// Mark is a labelled point.
type Mark struct {
	X, Y  float64
	Label string
}

// Figure is a picture as data. The zero values of its optional fields mean the
// defaults; see the package documentation for the style.
type Figure struct {
	Title   string
	Caption string // not drawn: SVG carries it as its description, HTML shows it
	X, Y    Axis
	Series  []Series

	// Map lies under the series; a figure with a Map needs no series.
	Map *HeatMap

	HLines []RefLine // at values of Y
	VLines []RefLine // at values of X
	Marks  []Mark    // on a Map each frames the cell that it is in

	// Panels makes the figure a grid of figures, row by row, with one legend: series
	// of one name look alike in all of them. Only Title, Caption and the fields
	// below count beside it.
	Panels []Figure
	// Columns is the number of panels side by side; 0 chooses it, three at most.
	Columns int
	// ShareX and ShareY give all panels the same axis, labelled at the grid's edge.
	ShareX, ShareY bool

	// Width and Height are in inches; 0 means 6.5 and 4, and for Panels the height
	// that its rows need.
	Width, Height float64
}

// size returns the width and height in inches.
func (f *Figure) size() (w, h float64) {
	w, h = f.Width, f.Height
	if w == 0 {
		w = 6.5
	}
	if h == 0 {
		h = 4
		if len(f.Panels) > 0 {
			h = f.gridHeight()
		}
	}
	return w, h
}

// shows reports whether the axis has a place for v.
func (a *Axis) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0)
}

// ends returns the ends that the caller fixed; NaN where an end follows the data.
func (a *Axis) ends() (lo, hi float64) {
	if a.Min == a.Max {
		return math.NaN(), math.NaN()
	}
	return a.Min, a.Max
}
