package draw

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/krrlab/lab/plots"
)

// entry is one name in the legend: of a series, or of a mark on a map.
type entry struct {
	d     *drawing
	index int
	mark  bool
	name  string
}

// entries returns what the legend of some drawings holds: each name once.
func entries(ds ...*drawing) (es []entry) {
	type id struct {
		name string
		mark bool
	}
	seen := map[id]bool{}
	add := func(e entry) {
		if n := (id{e.name, e.mark}); e.name != "" && (!seen[n] || len(ds) == 1) {
			seen[n], es = true, append(es, e)
		}
	}
	for _, d := range ds {
		for i := range d.f.Series {
			add(entry{d, i, false, d.f.Series[i].Name})
		}
		for i, m := range d.f.Marks {
			if d.f.Map != nil {
				if _, _, ok := cellAt(d.f, m.X, m.Y); ok {
					add(entry{d, i, true, m.Label})
				}
			}
		}
	}
	return es
}

// key is the legend: its entries and, inside the plot, its rectangle.
type key struct {
	entries []entry
	box     vg.Rectangle
}

const (
	thumb   vg.Length = 26 // length of a sample of the line
	thumbTo vg.Length = 6  // from there to the name
	keyPad  vg.Length = 5
	keyRow  vg.Length = legendSize * 1.4
)

// placeLegend looks for a corner without data and reports whether there is one.
func (d *drawing) placeLegend() (k key, inside bool) {
	k.entries = entries(d)
	if len(k.entries) == 0 || d.f.Map != nil {
		return k, len(k.entries) == 0
	}
	var w vg.Length
	for _, e := range k.entries {
		w = max(w, textWidth(e.name, legendSize, false))
	}
	w += thumb + thumbTo + 2*keyPad
	h := keyRow*vg.Length(len(k.entries)) + 2*keyPad - legendSize*0.3
	size, b := point(w, h), inset(d.box, 5)
	if w > d.box.Size().X*0.6 || h > d.box.Size().Y*0.7 {
		return k, false
	}
	room := b.Size().Sub(size)
	for _, at := range [][2]vg.Length{{1, 1}, {0, 1}, {1, 0}, {0, 0}, {0.5, 1}, {1, 0.5}, {0, 0.5}, {0.5, 0}} {
		k.box.Min = b.Min.Add(point(at[0]*room.X, at[1]*room.Y))
		k.box.Max = k.box.Min.Add(size)
		if d.ink(inset(k.box, -4)) == 0 {
			return k, true
		}
	}
	return k, false
}

// inset returns a rectangle that is smaller by some points on each side.
func inset(r vg.Rectangle, by vg.Length) vg.Rectangle {
	in := point(by, by)
	return vg.Rectangle{Min: r.Min.Add(in), Max: r.Max.Sub(in)}
}

// draw draws a sample of the entry and its name, the baseline starting at pt.
func (e entry) draw(p pen, pt vg.Point) {
	p.group("krr-entry", e.name, func() {
		p.text(e.name, point(pt.X+thumb+thumbTo, pt.Y), legendSize, ink, 0, false, false)
		e.sample(p, point(pt.X, pt.Y+legendSize*0.33))
	})
}

// sample draws the frame of a mark, or a piece of a line with its band and marker, from the middle of its left side.
func (e entry) sample(p pen, left vg.Point) {
	mid, right := left.Add(point(thumb/2, 0)), left.Add(point(thumb, 0))
	if e.mark {
		half := point(8, 4.5)
		p.frame(vg.Rectangle{Min: mid.Sub(half), Max: mid.Add(half)}, e.d.rings.of(e.name, e.index))
		return
	}
	s, l, c := &e.d.f.Series[e.index], e.d.lookOf(e.index), &draw.Canvas{Canvas: p.Canvas}
	line := lineStyle(l.color, lineWidth, l.dash...)
	switch up := (point(0, 4)); {
	case s.Style == plots.Points && s.Lo != nil:
		c.StrokeLine2(lineStyle(l.color, 1), mid.X, mid.Y-5, mid.X, mid.Y+5)
	case s.Lo != nil:
		c.FillPolygon(l.tint(), []vg.Point{left.Sub(up), right.Sub(up), right.Add(up), left.Add(up)})
	}
	if s.Style != plots.Points {
		c.StrokeLine2(line, left.X, mid.Y, right.X, mid.Y)
	}
	if len(e.d.markerPoints(e.index)) > 0 {
		p.marker(l.marker, mid, l.color)
	}
}

// drawInside draws the legend in its box, a name in each row.
func (k *key) drawInside(p pen) {
	if len(k.entries) == 0 {
		return
	}
	p.SetColor(paper)
	p.Fill(k.box.Path())
	p.stroke(k.box.Path(), lineStyle(grid, 0.6))
	k.draw(p, point(k.box.Min.X+keyPad, k.box.Max.Y-keyPad-legendSize*0.8), 0)
}

// draw draws the legend in rows of some width, the baseline of the first starting at pt.
func (k *key) draw(p pen, pt vg.Point, width vg.Length) {
	k.rows(width, func(e entry, x vg.Length, row int) {
		e.draw(p, point(pt.X+x, pt.Y-keyRow*vg.Length(row)))
	})
}

// rows breaks the entries into rows of some width, one each where none is so narrow, and calls put for each.
func (k *key) rows(width vg.Length, put func(e entry, x vg.Length, row int)) (n int) {
	x, row := vg.Length(0), 0
	for _, e := range k.entries {
		w := thumb + thumbTo + textWidth(e.name, legendSize, false) + 14
		if x > 0 && x+w > width {
			x, row = 0, row+1
		}
		put(e, x, row)
		x += w
	}
	return row + 1
}

// height returns the room for the legend above a plot of the given width.
func (k *key) height(width vg.Length) vg.Length {
	return keyRow*vg.Length(k.rows(width, func(entry, vg.Length, int) {})) + 4
}
