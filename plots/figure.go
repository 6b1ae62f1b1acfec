package plots

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/plots/internal/text"
)

// Style says how a series is drawn.
type Style int

const (
	Line   Style = iota // straight lines between the samples
	Points              // a marker at each sample
	Steps               // each value holds until the next sample
	Bars                // a horizontal bar from 0 to X at each Y
)

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
	// Names are the labels of Ticks, one for each; nil writes their values. A figure
	// with names on an axis cannot be zoomed.
	Names []string
}

// Series is one named set of samples (X[i], Y[i]).
type Series struct {
	Name string
	// Style is Line by default.
	Style Style
	// X and Y have one length. X nil means 0, 1, 2, ….
	X, Y []float64
	// Lo and Hi, of Y's length or both nil, bound each value: a band for Line and
	// Steps, error bars for Points. For Bars they bound X.
	Lo, Hi []float64
}

// Abscissa returns X[i], or i if X is nil.
func (s *Series) Abscissa(i int) float64 {
	if s.X == nil {
		return float64(i)
	}
	return s.X[i]
}

// Add appends a sample.
func (s *Series) Add(x, y float64) { s.X, s.Y = append(s.X, x), append(s.Y, y) }

// AddBand appends a sample with its bounds.
func (s *Series) AddBand(x, y, lo, hi float64) {
	s.Add(x, y)
	s.Lo, s.Hi = append(s.Lo, lo), append(s.Hi, hi)
}

// AddInterval appends a sample whose value and bounds are those of an interval, such as an estimate.Interval.
func (s *Series) AddInterval(x float64, e interface {
	Ends() (value, lo, hi float64)
}) {
	value, lo, hi := e.Ends()
	s.AddBand(x, value, lo, hi)
}

// SeriesNamed returns the series of that name, or appends an empty one with the style if there is none. The pointer is
// valid until a series is appended.
func (f *Figure) SeriesNamed(name string, style Style) *Series {
	i := slices.IndexFunc(f.Series, func(s Series) bool { return s.Name == name })
	if i < 0 {
		i, f.Series = len(f.Series), append(f.Series, Series{Name: name, Style: style})
	}
	return &f.Series[i]
}

// RefLine is a dashed straight line across the plot at one value of an axis.
type RefLine struct {
	At    float64
	Label string // drawn along the line
}

// Mark is a labeled point.
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

	HLines []RefLine // at values of Y; not on a Map
	VLines []RefLine // at values of X
	Marks  []Mark    // on a Map each frames the cell that it is in

	// Panels makes the figure a grid of figures, row by row, with one legend: series
	// of the same name have the same style in all panels. Of the other fields, a grid
	// uses Title, Caption and those below.
	Panels []Figure
	// Columns is the number of panels side by side; 0 chooses it, three at most.
	Columns int
	// ShareX gives all panels the same x axis, labeled at the grid's edge.
	ShareX bool

	// Controls are sliders of the interactive figure (HTML); nil for none.
	Controls *Controls

	// Width and Height are in inches; 0 means 6.5 and 4, and for Panels the height
	// that its rows need.
	Width, Height float64
}

// String returns a summary of the figure in a few lines: the title, the quantities, and
// for each series its number of samples and their range.
func (f *Figure) String() string {
	var b strings.Builder
	if f.Title != "" {
		b.WriteString(text.OneLine(f.Title) + "\n")
	}
	if n := len(f.Panels); n > 0 {
		fmt.Fprintf(&b, "%d panels\n", n)
		for i := range f.Panels {
			for line := range strings.Lines(f.Panels[i].String()) {
				b.WriteString("  " + line)
			}
		}
		return b.String()
	}
	if f.X.Label != "" || f.Y.Label != "" {
		b.WriteString(cmp.Or(text.OneLine(f.Y.Label), "y") + " against " + cmp.Or(text.OneLine(f.X.Label), "x") + "\n")
	}
	for i := range f.Series {
		s, name := &f.Series[i], cmp.Or(text.OneLine(f.Series[i].Name), "series")
		fmt.Fprintf(&b, "%s: %d samples%s\n", name, len(s.Y), span(s.Y))
	}
	if m := f.Map; m != nil {
		name := cmp.Or(text.OneLine(m.Color.Label), "map")
		fmt.Fprintf(&b, "%s: %d×%d cells%s\n", name, len(m.Y), len(m.X), span(slices.Concat(m.Z...)))
	}
	return b.String()
}

// span writes the range of the finite values.
func span(v []float64) string {
	v = slices.DeleteFunc(slices.Clone(v), func(x float64) bool { return !new(Axis).Shows(x) })
	if len(v) == 0 {
		return ""
	}
	return " from " + text.Scientific(slices.Min(v)) + " to " + text.Scientific(slices.Max(v))
}

// Validate reports, in one line, why the figure cannot be drawn: nothing in it,
// samples of unequal numbers, nothing that the axes can show, a map whose cells do not
// fit its axes, impossible ends of an axis, or panels that cannot share one.
func (f *Figure) Validate() error {
	err := f.validate()
	if err == nil {
		// The default is 6.5 by 4, and for panels the height that they need, which is in range.
		if w, h := cmp.Or(f.Width, 6.5), cmp.Or(f.Height, 4); !(w >= 1 && w <= 50 && h >= 1 && h <= 50) {
			err = fmt.Errorf(" is %g by %g inches; want 1 to 50", w, h)
		}
	}
	if err != nil {
		return fmt.Errorf("plots: figure %q%w", text.OneLine(f.Title), err)
	}
	return nil
}

// validate is Validate without the figure's name: its errors go on after it.
func (f *Figure) validate() error {
	if len(f.Panels) > 0 {
		return f.validatePanels()
	}
	if len(f.Series) == 0 && f.Map == nil {
		return fmt.Errorf(" has no series, no map and no panels")
	}
	err, isEmpty := cmp.Or(f.X.validate("x"), f.Y.validate("y")), f.Map == nil
	if f.Map != nil {
		err = cmp.Or(err, f.Map.validate(f))
	}
	for i := range f.Series {
		if err = cmp.Or(err, f.Series[i].validate()); err == nil {
			s := &f.Series[i]
			for j, y := range s.Y {
				isEmpty = isEmpty && !(f.X.Shows(s.Abscissa(j)) && f.Y.Shows(y))
			}
		}
	}
	if err != nil {
		return err
	}
	if isEmpty {
		return fmt.Errorf(" has no value that its axes can show")
	}
	return nil
}

func (s *Series) validate() error {
	switch {
	case s.X != nil && len(s.X) != len(s.Y):
		return fmt.Errorf(": series %q has %d values of x and %d of y", s.Name, len(s.X), len(s.Y))
	case (s.Lo != nil || s.Hi != nil) && (len(s.Lo) != len(s.Y) || len(s.Hi) != len(s.Y)):
		return fmt.Errorf(": series %q has %d values of y with %d lower and %d upper bounds", s.Name, len(s.Y),
			len(s.Lo), len(s.Hi))
	case s.Style < Line || s.Style > Bars:
		return fmt.Errorf(": series %q has the unknown style %d", s.Name, int(s.Style))
	}
	return nil
}

func (a *Axis) validate(name string) error {
	lo, hi := a.Ends()
	for _, v := range []float64{lo, hi} {
		if math.IsInf(v, 0) || a.Log && v <= 0 {
			return fmt.Errorf(": the %s axis cannot end at %g", name, v)
		}
	}
	if lo > hi {
		return fmt.Errorf(": the %s axis runs from %g down to %g", name, lo, hi)
	}
	if a.Names != nil && len(a.Names) != len(a.Ticks) {
		return fmt.Errorf(": the %s axis has %d names for %d ticks", name, len(a.Names), len(a.Ticks))
	}
	return nil
}

// validate checks the map against the axes of its figure.
func (m *HeatMap) validate(f *Figure) error {
	for _, t := range []struct {
		name   string
		axis   *Axis
		values []float64
	}{{"x", &f.X, m.X}, {"y", &f.Y, m.Y}} {
		if len(t.values) == 0 {
			return fmt.Errorf(": the map has no values of %s", t.name)
		}
		for i, v := range t.values {
			if !t.axis.Shows(v) {
				return fmt.Errorf(": the map has a cell at %s = %g, which the axis cannot show", t.name, v)
			}
			if i > 0 && v <= t.values[i-1] {
				return fmt.Errorf(": the map's values of %s must rise, and %g follows %g", t.name, v, t.values[i-1])
			}
		}
	}
	if len(m.Z) != len(m.Y) {
		return fmt.Errorf(": the map has %d rows for %d values of y", len(m.Z), len(m.Y))
	}
	for i, row := range m.Z {
		if len(row) != len(m.X) {
			return fmt.Errorf(": row %d of the map has %d cells for %d values of x", i, len(row), len(m.X))
		}
	}
	if !slices.ContainsFunc(slices.Concat(m.Z...), m.Color.Shows) {
		return fmt.Errorf(": the map has no value that its colors can show")
	}
	if len(f.HLines) > 0 {
		return fmt.Errorf(": a map has reference lines at values of x only")
	}
	return m.Color.validate("color")
}

func (f *Figure) validatePanels() error {
	if len(f.Series) > 0 || f.Map != nil || len(f.HLines)+len(f.VLines)+len(f.Marks) > 0 {
		return fmt.Errorf(" has both panels and data; put the data into a panel")
	}
	if f.Columns < 0 {
		return fmt.Errorf(" has %d columns of panels", f.Columns)
	}
	for i := range f.Panels {
		p := &f.Panels[i]
		if len(p.Panels) > 0 {
			return fmt.Errorf(": panel %d (%q) has panels of its own", i+1, text.OneLine(p.Title))
		}
		if err := p.validate(); err != nil {
			return fmt.Errorf(": panel %d (%q)%w", i+1, text.OneLine(p.Title), err)
		}
		if f.ShareX && f.Panels[0].X.Log != p.X.Log {
			return fmt.Errorf(": panels 1 and %d cannot share a logarithmic and a linear x axis", i+1)
		}
	}
	return nil
}

// HeatMap is a quantity over a grid of two others, drawn as colored cells with their
// values in them and a bar that explains the colors, light for small and dark for
// large. The cells meet half-way between the values of the axes, geometrically on a
// log axis.
type HeatMap struct {
	// X and Y are the cells' values on the axes, rising.
	X, Y []float64
	// Z[i][j] belongs to Y[i] and X[j]. A NaN is a cell without a value, left gray.
	Z [][]float64
	// Color is the scale of the colors: its label, whether it is logarithmic, and its
	// ends. Values beyond the ends have the colors of the ends.
	Color Axis
	// Format is a fmt verb for the values, such as "%.1f"; empty means three digits.
	Format string
	// Bare leaves the values out. They are left out, too, where they do not fit.
	Bare bool
}

// Shows reports whether the axis has a place for v.
func (a *Axis) Shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0)
}

// Ends returns the ends that the caller fixed; NaN where an end follows the data.
func (a *Axis) Ends() (lo, hi float64) {
	if a.Min == a.Max {
		return math.NaN(), math.NaN()
	}
	return a.Min, a.Max
}
