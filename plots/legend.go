package plots

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
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
	p.group("krr-entry", e.name, func() {
		p.text(e.name, vg.Point{X: pt.X + thumb + thumbTo, Y: pt.Y}, legendSize, ink, 0, false, false)
		mid := pt.Y + legendSize*0.33
		e.Thumbnail(&draw.Canvas{Canvas: p.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: pt.X, Y: mid - 5},
			Max: vg.Point{X: pt.X + thumb, Y: mid + 5}}})
	})
}

// Thumbnail implements plot.Thumbnailer.
func (e entry) Thumbnail(c *draw.Canvas) {
	p, mid, r := penOn(c), c.Center(), c.Rectangle
	if e.mark {
		p.frame(vg.Rectangle{Min: mid.Sub(vg.Point{X: 8, Y: 4.5}), Max: mid.Add(vg.Point{X: 8, Y: 4.5})},
			e.d.rings.of(e.name, e.index))
		return
	}
	s, l := &e.d.f.Series[e.index], e.d.lookOf(e.index)
	c = &draw.Canvas{Canvas: p.Canvas, Rectangle: r}
	if s.Style != Points {
		if s.Lo != nil {
			c.FillPolygon(l.tint(), []vg.Point{{X: r.Min.X, Y: mid.Y - 4}, {X: r.Max.X, Y: mid.Y - 4},
				{X: r.Max.X, Y: mid.Y + 4}, {X: r.Min.X, Y: mid.Y + 4}})
		}
		c.StrokeLine2(draw.LineStyle{Color: l.color, Width: lineWidth, Dashes: l.dash}, r.Min.X, mid.Y, r.Max.X, mid.Y)
	} else if s.Lo != nil {
		c.StrokeLine2(draw.LineStyle{Color: l.color, Width: 1}, mid.X, mid.Y-5, mid.X, mid.Y+5)
	}
	if len(e.d.markerPoints(e.index)) > 0 {
		p.marker(l.marker, mid, l.color)
	}
}

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

// collect draws the data on no canvas and samples what was drawn in the plot, for labels
// and the legend to keep clear of.
func (d *drawing) collect() {
	rec, sketch := new(recorder.Canvas), *d
	sketch.pen = pen{rec}
	sketch.drawData()
	d.taken = nil
	for _, a := range rec.Actions {
		switch a := a.(type) {
		case *recorder.Stroke:
			d.takePath(a.Path)
		case *recorder.Fill:
			d.takePath(a.Path)
		case *recorder.DrawImage:
			d.takeBox(a.Rectangle)
		case *recorder.FillString:
			d.takeLine(a.Point, a.Point.Add(vg.Point{X: textWidth(a.String, a.Size, false)}))
		}
	}
}

// takePath samples an outline; of an arc its four sides.
func (d *drawing) takePath(path vg.Path) {
	var start, at vg.Point
	for _, c := range path {
		switch c.Type {
		case vg.MoveComp:
			start, at = c.Pos, c.Pos
			continue
		case vg.ArcComp:
			for _, o := range []vg.Point{{X: c.Radius}, {X: -c.Radius}, {Y: c.Radius}, {Y: -c.Radius}} {
				d.takeLine(c.Pos.Add(o), c.Pos.Add(o))
			}
			continue
		case vg.CloseComp:
			c.Pos = start
		}
		d.takeLine(at, c.Pos)
		at = c.Pos
	}
}

// takeLine samples a line every three points of length.
func (d *drawing) takeLine(a, b vg.Point) {
	c := d.area()
	n := min(int(distance(a, b)/3)+1, 1000)
	for k := 0; k <= n; k++ {
		if p := a.Add(b.Sub(a).Scale(vg.Length(k) / vg.Length(n))); c.Contains(p) {
			d.taken = append(d.taken, p)
		}
	}
}

// takeBox samples a rectangle.
func (d *drawing) takeBox(r vg.Rectangle) {
	for x := r.Min.X; x <= r.Max.X; x += 4 {
		for y := r.Min.Y; y <= r.Max.Y; y += 4 {
			d.taken = append(d.taken, vg.Point{X: x, Y: y})
		}
	}
}

// covers returns how many samples lie in r.
func (d *drawing) covers(r vg.Rectangle) (n int) {
	for _, p := range d.taken {
		if p.X >= r.Min.X && p.X <= r.Max.X && p.Y >= r.Min.Y && p.Y <= r.Max.Y {
			n++
		}
	}
	return n
}

// placed is a label and its baseline's left end.
type placed struct {
	text string
	at   vg.Point
	up   bool
	mark *vg.Point     // what it belongs to, if that is a point
	veil *vg.Rectangle // what it covers, to be paled under it
}

// placeLabels finds a place for the labels of reference lines and marks, not in some
// rectangles; a map has them outside.
func (d *drawing) placeLabels(keep ...vg.Rectangle) {
	d.labels = nil
	if d.f.Map != nil {
		return
	}
	d.collect()
	for _, r := range keep {
		d.takeBox(r)
	}
	for _, r := range d.refLines() {
		var at []vg.Point
		w := textWidth(r.label, markSize, false)
		if r.upright {
			for _, y := range along(r.b.Y-w-4, r.a.Y+5) {
				at = append(at, vg.Point{X: r.a.X - markSize - 2, Y: y}, vg.Point{X: r.a.X + 2, Y: y})
			}
		} else {
			for _, x := range along(r.b.X-w-4, r.a.X+5) {
				at = append(at, vg.Point{X: x, Y: r.a.Y + 2}, vg.Point{X: x, Y: r.a.Y - markSize - 4})
			}
		}
		d.place(r.label, r.upright, nil, at)
	}
	for _, m := range d.f.Marks {
		pt, ok := d.placeOf(m)
		if !ok {
			continue
		}
		w := textWidth(m.Label, markSize, false)
		var at []vg.Point
		for _, o := range []vg.Point{{X: 7, Y: 5}, {X: -w - 7, Y: 5}, {X: 7, Y: -markSize - 5},
			{X: -w - 7, Y: -markSize - 5},
			{X: -w / 2, Y: 9}, {X: -w / 2, Y: -markSize - 9}, {X: 9, Y: -markSize / 2}, {X: -w - 9, Y: -markSize / 2}} {
			at = append(at, pt.Add(o))
		}
		for _, far := range []vg.Length{24, 42, 62, 84, 110} { // with a line to the mark
			for _, side := range []vg.Length{-w / 2, 8, -w - 8} {
				at = append(at, pt.Add(vg.Point{X: side, Y: far}), pt.Add(vg.Point{X: side, Y: -far - markSize}))
			}
		}
		d.place(m.Label, false, &pt, at)
	}
}

// along returns places for the start of a label on a line: its ends, then between them.
func along(first, second vg.Length) []vg.Length {
	at := []vg.Length{first, second}
	for _, t := range []vg.Length{0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875} {
		at = append(at, first+t*(second-first))
	}
	return at
}

// place puts a label, of a mark if that is given, at the one of some lower left corners
// where it covers least.
func (d *drawing) place(text string, up bool, mark *vg.Point, at []vg.Point) {
	if text == "" {
		return
	}
	b, w, h := d.box, textWidth(text, markSize, false), markSize
	if up {
		w, h = h, w
	}
	best, least := vg.Rectangle{}, math.MaxInt
	for _, p := range at {
		r := vg.Rectangle{Min: p, Max: vg.Point{X: p.X + w, Y: p.Y + h}}
		n := d.covers(r)
		if r.Min.X < b.Min.X || r.Max.X > b.Max.X || r.Min.Y < b.Min.Y || r.Max.Y > b.Max.Y {
			n += 10000 // outside the plot
		}
		if n < least {
			best, least = r, n
		}
	}
	var covered *vg.Rectangle
	if least > 0 && least < 10000 {
		covered = &best
	}
	d.takeBox(best)
	base := vg.Point{X: best.Min.X, Y: best.Min.Y + markSize*0.22}
	if up {
		base = vg.Point{X: best.Max.X - markSize*0.22, Y: best.Min.Y}
	}
	d.labels = append(d.labels, placed{text: text, at: base, up: up, mark: mark, veil: covered})
}

func (d *drawing) drawLabels() {
	for _, l := range d.labels {
		if l.veil != nil {
			d.pen.SetColor(veil)
			d.pen.Fill(l.veil.Path())
		}
		d.drawLeader(l)
		d.pen.text(l.text, l.at, markSize, ink, 0, false, l.up)
	}
}

// drawLeader draws a thin line from a mark to its label where the two are apart.
func (d *drawing) drawLeader(l placed) {
	if l.mark == nil {
		return
	}
	w := textWidth(l.text, markSize, false)
	to := vg.Point{X: min(max(l.mark.X, l.at.X), l.at.X+w), Y: l.at.Y - 2.5}
	if l.mark.Y > l.at.Y {
		to.Y = l.at.Y + markSize
	}
	gap := distance(*l.mark, to)
	if gap < 15 {
		return
	}
	from := l.mark.Add(to.Sub(*l.mark).Scale((markRadius*1.7 + 1) / gap))
	c := &draw.Canvas{Canvas: d.pen.Canvas}
	c.StrokeLine2(draw.LineStyle{Color: soft, Width: 0.7}, from.X, from.Y, to.X, to.Y)
}
