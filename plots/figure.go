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

	HLines []RefLine // at values of Y
	VLines []RefLine // at values of X
	Marks  []Mark

	// Width and Height are in inches; 0 means 6.5 and 4.
	Width, Height float64
}

// Validate reports why the figure cannot be drawn: no series, samples of unequal
// numbers, nothing that the axes can show, or impossible ends of an axis.
func (f *Figure) Validate() error {
	if len(f.Series) == 0 {
		return fmt.Errorf("plots: figure %q has no series", f.Title)
	}
	shown := 0
	for i := range f.Series {
		s := &f.Series[i]
		if s.X != nil && len(s.X) != len(s.Y) {
			return fmt.Errorf("plots: series %q of figure %q has %d values of x and %d of y", s.Name, f.Title, len(s.X), len(s.Y))
		}
		if (s.Lo != nil || s.Hi != nil) && (len(s.Lo) != len(s.Y) || len(s.Hi) != len(s.Y)) {
			return fmt.Errorf("plots: series %q of figure %q has %d values of y with %d lower and %d upper bounds",
				s.Name, f.Title, len(s.Y), len(s.Lo), len(s.Hi))
		}
		if s.Style < Line || s.Style > Steps {
			return fmt.Errorf("plots: series %q of figure %q has the unknown style %d", s.Name, f.Title, int(s.Style))
		}
		for j, y := range s.Y {
			if f.X.shows(s.x(j)) && f.Y.shows(y) {
				shown++
			}
		}
	}
	if shown == 0 {
		return fmt.Errorf("plots: figure %q has no value that its axes can show", f.Title)
	}
	if err := f.X.validate("x"); err != nil {
		return fmt.Errorf("plots: figure %q: %w", f.Title, err)
	}
	if err := f.Y.validate("y"); err != nil {
		return fmt.Errorf("plots: figure %q: %w", f.Title, err)
	}
	if w, h := f.size(); !(w >= 1 && w <= 50 && h >= 1 && h <= 50) {
		return fmt.Errorf("plots: figure %q is %g by %g inches; want 1 to 50", f.Title, w, h)
	}
	return nil
}

// size returns the width and height in inches.
func (f *Figure) size() (w, h float64) {
	w, h = f.Width, f.Height
	if w == 0 {
		w = 6.5
	}
	if h == 0 {
		h = 4
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

func (a *Axis) validate(name string) error {
	lo, hi := a.ends()
	for _, v := range []float64{lo, hi} {
		if math.IsInf(v, 0) || a.Log && v <= 0 {
			return fmt.Errorf("the %s axis cannot end at %g", name, v)
		}
	}
	if lo > hi {
		return fmt.Errorf("the %s axis runs from %g down to %g", name, lo, hi)
	}
	return nil
}

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
	if tol > 0 && !math.IsInf(tol, 1) {
		f.HLines = []RefLine{{At: tol, Label: "tolerance " + scientific(tol)}}
	}
	return f
}
