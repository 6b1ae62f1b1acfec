package plots

import (
	"fmt"
	"math"
	"strings"
)

// Table returns the numbers of the figure: one row for each sample, with the series'
// name, x, y and the ends of its interval, or for each cell of a map, with its value as
// y's last column; in a grid the panel's title comes first. Columns that would be empty
// are left out.
func (f *Figure) Table() *Table {
	t := &Table{Title: f.Title, Caption: f.Caption}
	panels := []Figure{*f}
	if len(f.Panels) > 0 {
		panels = f.Panels
	}
	use := struct{ name, bounds, cells bool }{}
	for i := range panels {
		use.cells = use.cells || panels[i].Map != nil
		for j := range panels[i].Series {
			s := &panels[i].Series[j]
			use.name = use.name || s.Name != ""
			use.bounds = use.bounds || s.Lo != nil
		}
	}
	add := func(use bool, name string) {
		if use {
			t.Columns = append(t.Columns, Column{Name: name})
		}
	}
	add(len(f.Panels) > 0, "panel")
	add(use.name, "series")
	add(true, common(panels, "x", func(p *Figure) string { return p.X.Label }))
	add(true, common(panels, "y", func(p *Figure) string { return p.Y.Label }))
	add(use.bounds, "lower")
	add(use.bounds, "upper")
	add(use.cells, common(panels, "value", func(p *Figure) string {
		if p.Map == nil {
			return ""
		}
		return p.Map.Color.Label
	}))
	for i := range panels {
		p := &panels[i]
		p.samples(func(series string, x, y, lo, hi, z Cell) {
			var row []Cell
			for _, c := range []struct {
				use  bool
				cell Cell
			}{{len(f.Panels) > 0, Text(p.Title)}, {use.name, Text(series)}, {true, x}, {true, y},
				{use.bounds, lo}, {use.bounds, hi}, {use.cells, z}} {
				if c.use {
					row = append(row, c.cell)
				}
			}
			t.Rows = append(t.Rows, row)
		})
	}
	return t
}

// samples calls add for each sample and each cell of a valid figure without panels.
func (f *Figure) samples(add func(series string, x, y, lo, hi, z Cell)) {
	for i := range f.Series {
		s := &f.Series[i]
		for j, y := range s.Y {
			lo, hi := Blank(), Blank()
			if j < len(s.Lo) && j < len(s.Hi) {
				lo, hi = Number(s.Lo[j]), Number(s.Hi[j])
			}
			x := Blank()
			if s.X == nil || j < len(s.X) {
				x = Number(s.x(j))
			}
			add(s.Name, x, Number(y), lo, hi, Blank())
		}
	}
	if m := f.Map; m != nil {
		for i := range min(len(m.Z), len(m.Y)) {
			for j := range min(len(m.Z[i]), len(m.X)) {
				add("", Number(m.X[j]), Number(m.Y[i]), Blank(), Blank(), Number(m.Z[i][j]))
			}
		}
	}
}

// common returns the label that all panels with one have, or another word.
func common(panels []Figure, other string, label func(*Figure) string) string {
	found := ""
	for i := range panels {
		switch l := label(&panels[i]); {
		case l == "":
		case found == "":
			found = l
		case l != found:
			return other
		}
	}
	if found == "" {
		return other
	}
	return found
}

// String returns what the figure holds in a few lines: the title, the quantities, and
// for each series its number of samples and their range.
func (f *Figure) String() string {
	var b strings.Builder
	if f.Title != "" {
		b.WriteString(oneLine(f.Title) + "\n")
	}
	if n := len(f.Panels); n > 0 {
		fmt.Fprintf(&b, "%d panels\n", n)
		for i := range f.Panels {
			b.WriteString("  " + strings.ReplaceAll(strings.TrimSuffix(f.Panels[i].String(), "\n"), "\n", "\n  ") + "\n")
		}
		return b.String()
	}
	if f.X.Label != "" || f.Y.Label != "" {
		b.WriteString(common([]Figure{*f}, "y", func(p *Figure) string { return oneLine(p.Y.Label) }) + " against " +
			common([]Figure{*f}, "x", func(p *Figure) string { return oneLine(p.X.Label) }) + "\n")
	}
	for i := range f.Series {
		s := &f.Series[i]
		name := oneLine(s.Name)
		if name == "" {
			name = "series"
		}
		fmt.Fprintf(&b, "%s: %d samples%s\n", name, len(s.Y), span(s.Y))
	}
	if m := f.Map; m != nil {
		var all []float64
		for _, row := range m.Z {
			all = append(all, row...)
		}
		name := oneLine(m.Color.Label)
		if name == "" {
			name = "map"
		}
		fmt.Fprintf(&b, "%s: %d×%d cells%s\n", name, len(m.Y), len(m.X), span(all))
	}
	return b.String()
}

// span writes the range of the finite values.
func span(v []float64) string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, x := range v {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			lo, hi = math.Min(lo, x), math.Max(hi, x)
		}
	}
	if lo > hi {
		return ""
	}
	return " from " + scientific(lo) + " to " + scientific(hi)
}
