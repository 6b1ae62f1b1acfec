package plots

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// entry is one name in the legend: of a series, or of a mark on a map.
type entry struct {
	d     *drawing
	index int
	mark  bool
	name  string
}

// entries returns what the legend of the figure holds.
func (d *drawing) entries() (es []entry) {
	for i := range d.f.Series {
		if name := d.f.Series[i].Name; name != "" {
			es = append(es, entry{d, i, false, name})
		}
	}
	if d.f.Map == nil {
		return es
	}
	for i, m := range d.f.Marks {
		if _, _, ok := d.f.cellAt(m.X, m.Y); ok && m.Label != "" {
			es = append(es, entry{d, i, true, m.Label})
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
	k.entries = d.entries()
	if len(k.entries) == 0 {
		return k, true
	}
	if d.f.Map != nil {
		return k, false
	}
	var w vg.Length
	for _, e := range k.entries {
		w = max(w, textWidth(e.name, legendSize, false))
	}
	w += thumb + thumbTo + 2*keyPad
	h := keyRow*vg.Length(len(k.entries)) + 2*keyPad - legendSize*0.3
	const off = 5
	b := d.box
	if w > b.Size().X*0.6 || h > b.Size().Y*0.7 {
		return k, false
	}
	l, r, m := b.Min.X+off, b.Max.X-off-w, (b.Min.Y+b.Max.Y-h)/2
	t, o := b.Max.Y-off-h, b.Min.Y+off
	mid := (b.Min.X + b.Max.X - w) / 2
	for _, at := range []vg.Point{{X: r, Y: t}, {X: l, Y: t}, {X: r, Y: o}, {X: l, Y: o},
		{X: mid, Y: t}, {X: r, Y: m}, {X: l, Y: m}, {X: mid, Y: o}} {
		box := vg.Rectangle{Min: at, Max: vg.Point{X: at.X + w, Y: at.Y + h}}
		wide := vg.Rectangle{Min: vg.Point{X: at.X - 4, Y: at.Y - 4}, Max: vg.Point{X: box.Max.X + 4, Y: box.Max.Y + 4}}
		if d.covers(wide) == 0 {
			k.box = box
			return k, true
		}
	}
	return k, false
}

// draw draws a sample of the entry and its name, the baseline starting at pt.
func (e entry) draw(p pen, pt vg.Point) {
	p.text(e.name, vg.Point{X: pt.X + thumb + thumbTo, Y: pt.Y}, legendSize, ink, 0, false, false)
	mid := pt.Y + legendSize*0.33
	e.Thumbnail(&draw.Canvas{Canvas: p.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: pt.X, Y: mid - 5}, Max: vg.Point{X: pt.X + thumb, Y: mid + 5}}})
}

// Thumbnail implements plot.Thumbnailer.
func (e entry) Thumbnail(c *draw.Canvas) {
	p, mid, r := penOn(c), c.Center(), c.Rectangle
	if e.mark {
		p.frame(vg.Rectangle{Min: mid.Sub(vg.Point{X: 8, Y: 4.5}), Max: mid.Add(vg.Point{X: 8, Y: 4.5})}, e.d.rings.of(e.name, e.index))
		return
	}
	s, l := &e.d.f.Series[e.index], e.d.lookOf(e.index)
	c = &draw.Canvas{Canvas: p.Canvas, Rectangle: r}
	if s.Plotter != nil {
		if t, ok := s.Plotter.(plot.Thumbnailer); ok {
			t.Thumbnail(c)
		}
		return
	}
	if s.Style != Points {
		if s.Lo != nil {
			c.FillPolygon(l.tint(), []vg.Point{{X: r.Min.X, Y: mid.Y - 4}, {X: r.Max.X, Y: mid.Y - 4}, {X: r.Max.X, Y: mid.Y + 4}, {X: r.Min.X, Y: mid.Y + 4}})
		}
		c.StrokeLine2(draw.LineStyle{Color: l.color, Width: lineWidth, Dashes: l.dash}, r.Min.X, mid.Y, r.Max.X, mid.Y)
	} else if s.Lo != nil {
		c.StrokeLine2(draw.LineStyle{Color: l.color, Width: 1}, mid.X, mid.Y-5, mid.X, mid.Y+5)
	}
	if len(e.d.markerPoints(e.index)) > 0 {
		p.marker(l.marker, mid, l.color)
	}
}

// drawInside draws the legend in its rectangle.
func (k *key) drawInside(p pen) {
	if len(k.entries) == 0 {
		return
	}
	p.SetColor(paper)
	p.Fill(k.box.Path())
	p.SetColor(grid)
	p.SetLineDash(nil, 0)
	p.SetLineWidth(0.6)
	p.Stroke(k.box.Path())
	for j, e := range k.entries {
		y := k.box.Max.Y - keyPad - legendSize*0.8 - keyRow*vg.Length(j)
		e.draw(p, vg.Point{X: k.box.Min.X + keyPad, Y: y})
	}
}

// rows breaks the entries into lines of the given width and calls put for each.
func (k *key) rows(width vg.Length, put func(j int, x vg.Length, row int)) (n int) {
	x, row := vg.Length(0), 0
	for j, e := range k.entries {
		w := thumb + thumbTo + textWidth(e.name, legendSize, false) + 14
		if x > 0 && x+w > width {
			x, row = 0, row+1
		}
		if put != nil {
			put(j, x, row)
		}
		x += w
	}
	return row + 1
}

// rowsHeight returns the room for the legend above a plot of the given width.
func (k *key) rowsHeight(width vg.Length) vg.Length {
	return keyRow*vg.Length(k.rows(width, nil)) + 4
}

// drawAbove draws the legend in lines of the given width, the lowest one's baseline
// starting at pt.
func (k *key) drawAbove(p pen, pt vg.Point, width vg.Length) {
	n := k.rows(width, nil)
	k.rows(width, func(j int, x vg.Length, row int) {
		k.entries[j].draw(p, vg.Point{X: pt.X + x, Y: pt.Y + keyRow*vg.Length(n-1-row)})
	})
}
