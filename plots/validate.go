package plots

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Validate reports, in one line, why the figure cannot be drawn: nothing in it,
// samples of unequal numbers, nothing that the axes can show, a map whose cells do not
// fit its axes, impossible ends of an axis, or panels that cannot share one.
func (f *Figure) Validate() error {
	err := f.validate()
	if err == nil {
		if w, h := f.size(); !(w >= 1 && w <= 50 && h >= 1 && h <= 50) {
			err = fmt.Errorf(" is %g by %g inches; want 1 to 50", w, h)
		}
	}
	if err != nil {
		return fmt.Errorf("plots: figure %q%w", oneLine(f.Title), err)
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
	err, e := cmp.Or(f.X.validate("x"), f.Y.validate("y")), nothing
	if f.Map != nil {
		err = cmp.Or(err, f.Map.validate(f))
	}
	for i := range f.Series {
		if err = cmp.Or(err, f.Series[i].validate()); err == nil {
			e = e.union(f.extentOf(i))
		}
	}
	if err != nil {
		return err
	}
	if f.Map == nil && (e.xlo > e.xhi && !f.X.fixed(f) || e.ylo > e.yhi && !f.Y.fixed(f)) {
		return fmt.Errorf(" has no value that its axes can show")
	}
	return nil
}

// fixed reports whether both ends of an axis are given, to a plotter that has no range.
func (a *Axis) fixed(f *Figure) bool {
	lo, hi := a.ends()
	return lo < hi && slices.ContainsFunc(f.Series, func(s Series) bool { return s.Plotter != nil })
}

func (s *Series) validate() error {
	switch {
	case s.Plotter != nil && (s.X != nil || s.Y != nil || s.Lo != nil || s.Hi != nil):
		return fmt.Errorf(": series %q has a plotter and samples; want one", s.Name)
	case s.X != nil && len(s.X) != len(s.Y):
		return fmt.Errorf(": series %q has %d values of x and %d of y", s.Name, len(s.X), len(s.Y))
	case (s.Lo != nil || s.Hi != nil) && (len(s.Lo) != len(s.Y) || len(s.Hi) != len(s.Y)):
		return fmt.Errorf(": series %q has %d values of y with %d lower and %d upper bounds", s.Name, len(s.Y), len(s.Lo), len(s.Hi))
	case s.Style < Line || s.Style > Steps:
		return fmt.Errorf(": series %q has the unknown style %d", s.Name, int(s.Style))
	}
	return nil
}

func (a *Axis) validate(name string) error {
	lo, hi := a.ends()
	for _, v := range []float64{lo, hi} {
		if math.IsInf(v, 0) || a.Log && v <= 0 {
			return fmt.Errorf(": the %s axis cannot end at %g", name, v)
		}
	}
	if lo > hi {
		return fmt.Errorf(": the %s axis runs from %g down to %g", name, lo, hi)
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
			if !t.axis.shows(v) {
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
	if lo, hi := m.extent(); lo > hi {
		return fmt.Errorf(": the map has no value that its colors can show")
	}
	return m.Color.validate("color")
}

func (f *Figure) validatePanels() error {
	if len(f.Series) > 0 || f.Map != nil || len(f.HLines)+len(f.VLines)+len(f.Marks) > 0 {
		return fmt.Errorf(" has panels and data of its own; put the data into a panel")
	}
	if f.Columns < 0 {
		return fmt.Errorf(" has %d columns of panels", f.Columns)
	}
	for i := range f.Panels {
		p := &f.Panels[i]
		if len(p.Panels) > 0 {
			return fmt.Errorf(": panel %d (%q) has panels of its own", i+1, oneLine(p.Title))
		}
		if err := p.validate(); err != nil {
			return fmt.Errorf(": panel %d (%q)%w", i+1, oneLine(p.Title), err)
		}
		for _, t := range []struct {
			name   string
			shared bool
			a, b   *Axis
		}{{"x", f.ShareX, &f.Panels[0].X, &p.X}, {"y", f.ShareY, &f.Panels[0].Y, &p.Y}} {
			if t.shared && t.a.Log != t.b.Log {
				return fmt.Errorf(": panels 1 and %d cannot share a logarithmic and a linear %s axis", i+1, t.name)
			}
		}
	}
	return nil
}
