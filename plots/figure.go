package plots

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/plots/internal/text"
)

// Style is the way in which a series is drawn.
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
	// Min and Max are the ends of the axis. If they are equal, for example both zero, both ends follow the data. An end
	// that is NaN follows the data too.
	Min, Max float64
	// Ticks are the values to label; some labels are omitted if there is no room for all. Default: round values, or the
	// values of the cells if the figure has a Map.
	Ticks []float64
	// Names are the labels of Ticks, one for each; default: their values. A figure with names on an axis cannot be
	// zoomed.
	Names []string
}

// Shows reports whether the axis has a place for v: v must be finite, and positive on a log axis.
func (a *Axis) Shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0)
}

// Ends returns the ends that the caller fixed. An end that follows the data is NaN.
func (a *Axis) Ends() (lo, hi float64) {
	if a.Min == a.Max {
		return math.NaN(), math.NaN()
	}
	return a.Min, a.Max
}

// Series is one named set of samples (X[i], Y[i]).
type Series struct {
	Name string
	// Style is Line by default.
	Style Style
	// X and Y have the same length. If X is nil, it is 0, 1, 2, ….
	X, Y []float64
	// Lo and Hi are bounds of each value of Y, or of X for Bars. They have the length of Y or are both nil. They are
	// drawn as a band for Line and Steps, and as error bars for Points and Bars.
	Lo, Hi []float64
	// Neutral draws the series in dark gray, for a line or points that belong to none of the other series. The line is
	// dashed and has no markers.
	Neutral bool
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

// AddBand appends a sample and its bounds.
func (s *Series) AddBand(x, y, lo, hi float64) {
	s.Add(x, y)
	s.Lo, s.Hi = append(s.Lo, lo), append(s.Hi, hi)
}

// AddInterval appends a sample whose value and bounds are those of an interval, such as an estimate.Interval.
func (s *Series) AddInterval(x float64, estimate interface {
	Ends() (value, lo, hi float64)
}) {
	value, lo, hi := estimate.Ends()
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
	At    float64 // the value
	Label string  // text along the line
}

// Mark is a labeled point.
type Mark struct {
	X, Y  float64
	Label string
}

// Figure is a picture as data. Zero values of optional fields mean the defaults. The package documentation describes
// the style.
type Figure struct {
	Title   string
	Caption string // not drawn; SVG contains it as its description, and HTML shows it
	X, Y    Axis
	Series  []Series

	// Map is drawn under the series. A figure with a Map needs no series.
	Map *HeatMap

	HLines []RefLine // lines at values of Y; none are allowed with a Map
	VLines []RefLine // lines at values of X
	Marks  []Mark    // labeled points; on a Map, unless it is Bare, each one frames the cell that contains it

	// Panels makes the figure a grid of figures, row by row, with one legend. Series with the same name look the same
	// in all panels. A grid uses only the fields Title and Caption and the fields below.
	Panels []Figure
	// Columns is the number of panels in a row; default: at most three.
	Columns int
	// ShareX gives all panels the same x axis, labeled at the grid's edge.
	ShareX bool

	// Controls are sliders of the interactive figure (HTML); nil for none.
	Controls *Controls

	// Width and Height are in inches. Default: 6.5 and 4, and for Panels the height that the rows need.
	Width, Height float64
}

// HeatMap is a quantity over a grid of two others. It is drawn as colored cells, light for small values and dark for
// large ones, with the values in the cells and a bar that explains the colors. The borders of the cells are half-way
// between the values of the axes, geometrically on a log axis.
type HeatMap struct {
	// X and Y are the values of the cells on the axes, ascending.
	X, Y []float64
	// Z[i][j] is the value of the cell at Y[i] and X[j]. A cell with NaN has no value and is gray.
	Z [][]float64
	// Color is the scale of the colors: its label, its ends, and whether it is logarithmic. Values beyond the ends have
	// the colors of the ends.
	Color Axis
	// Format is a fmt verb for the values, such as "%.1f"; default: three digits.
	Format string
	// Bare omits the values, and draws a ring at a Mark where other maps frame its cell. The values are also omitted if
	// they do not fit into the cells.
	Bare bool
}

// String returns a summary of the figure in a few lines: the title, the quantities, and for each series the number and
// the range of its samples.
func (f *Figure) String() string {
	var summary strings.Builder
	if f.Title != "" {
		summary.WriteString(text.OneLine(f.Title) + "\n")
	}
	if n := len(f.Panels); n > 0 {
		fmt.Fprintf(&summary, "%d panels\n", n)
		for i := range f.Panels {
			for line := range strings.Lines(f.Panels[i].String()) {
				summary.WriteString("  " + line)
			}
		}
		return summary.String()
	}
	if f.X.Label != "" || f.Y.Label != "" {
		summary.WriteString(cmp.Or(text.OneLine(f.Y.Label), "y") + " against " + cmp.Or(text.OneLine(f.X.Label), "x") +
			"\n")
	}
	for i := range f.Series {
		s, name := &f.Series[i], cmp.Or(text.OneLine(f.Series[i].Name), "series")
		fmt.Fprintf(&summary, "%s: %d samples%s\n", name, len(s.Y), rangeText(s.Y))
	}
	if m := f.Map; m != nil {
		name := cmp.Or(text.OneLine(m.Color.Label), "map")
		fmt.Fprintf(&summary, "%s: %d×%d cells%s\n", name, len(m.Y), len(m.X), rangeText(slices.Concat(m.Z...)))
	}
	return summary.String()
}

// rangeText returns the text " from MIN to MAX" with the range of the finite values, or "" if there are none.
func rangeText(values []float64) string {
	isInfinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	finite := slices.DeleteFunc(slices.Clone(values), isInfinite)
	if len(finite) == 0 {
		return ""
	}
	return " from " + text.Compact(slices.Min(finite)) + " to " + text.Compact(slices.Max(finite))
}

// Validate returns an error of one line if the figure cannot be drawn: if it is empty, if its numbers of samples
// differ, if the axes can show no value, if the cells of a map do not fit its axes, if the ends of an axis are
// impossible, or if panels cannot share an axis.
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

// validate does the work of Validate except for the size of the figure. Its errors, and those of the methods below,
// continue a sentence that begins with the figure's name.
func (f *Figure) validate() error {
	if len(f.Panels) > 0 {
		return f.validatePanels()
	}
	if len(f.Series) == 0 && f.Map == nil {
		return fmt.Errorf(" has no series, no map and no panels")
	}
	errs := []error{f.X.validate("x"), f.Y.validate("y"), f.Map.validate(f)}
	for i := range f.Series {
		errs = append(errs, f.Series[i].validate())
	}
	if err := cmp.Or(errs...); err != nil || f.Map != nil || slices.ContainsFunc(f.Series, f.showsSample) {
		return err
	}
	return fmt.Errorf(" has no value that its axes can show")
}

// showsSample reports whether the axes can show a sample of a valid series.
func (f *Figure) showsSample(s Series) bool {
	for i, y := range s.Y {
		if f.X.Shows(s.Abscissa(i)) && f.Y.Shows(y) {
			return true
		}
	}
	return false
}

// validate checks the numbers of samples and bounds, and the style.
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

// validate checks the ends that the caller has fixed, and the number of names. An end that follows the data is NaN, for
// which all comparisons are false.
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

// validateCells checks that the values of a map's cells increase and that the axis can show them.
func (a *Axis) validateCells(name string, values []float64) error {
	if len(values) == 0 {
		return fmt.Errorf(": the map has no values of %s", name)
	}
	for i, v := range values {
		if !a.Shows(v) {
			return fmt.Errorf(": the map has a cell at %s = %g, which the axis cannot show", name, v)
		}
		if i > 0 && v <= values[i-1] {
			return fmt.Errorf(": the map's values of %s must rise, and %g follows %g", name, v, values[i-1])
		}
	}
	return nil
}

// validate checks the map against the axes of its figure. A nil map is valid.
func (m *HeatMap) validate(f *Figure) error {
	if m == nil {
		return nil
	}
	if err := cmp.Or(f.X.validateCells("x", m.X), f.Y.validateCells("y", m.Y)); err != nil {
		return err
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

// validatePanels checks the panels of a grid, which has no other data.
func (f *Figure) validatePanels() error {
	if len(f.Series) > 0 || f.Map != nil || len(f.HLines)+len(f.VLines)+len(f.Marks) > 0 {
		return fmt.Errorf(" has both panels and data; put the data into a panel")
	}
	if f.Columns < 0 {
		return fmt.Errorf(" has %d columns of panels", f.Columns)
	}
	for i := range f.Panels {
		panel := &f.Panels[i]
		if len(panel.Panels) > 0 {
			return fmt.Errorf(": panel %d (%q) has panels of its own", i+1, text.OneLine(panel.Title))
		}
		if err := panel.validate(); err != nil {
			return fmt.Errorf(": panel %d (%q)%w", i+1, text.OneLine(panel.Title), err)
		}
		if f.ShareX && f.Panels[0].X.Log != panel.X.Log {
			return fmt.Errorf(": panels 1 and %d cannot share a logarithmic and a linear x axis", i+1)
		}
	}
	return nil
}
