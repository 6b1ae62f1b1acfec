package plots

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// collect samples everything that will be drawn in the plot, for labels and the legend
// to keep clear of.
func (d *drawing) collect() {
	c := d.area()
	for i := range d.f.Series {
		s := &d.f.Series[i]
		for _, ps := range d.pieces(i) {
			if s.Style == Points {
				d.takePoints(ps)
				continue
			}
			for _, l := range c.ClipLinesXY(thin(ps)) {
				d.takeLine(l)
			}
			d.takePoints(ps[:1])
		}
		for j := range s.Lo {
			if x := s.x(j); d.f.X.shows(x) && !math.IsNaN(s.Lo[j]) && !math.IsNaN(s.Hi[j]) {
				d.takePoints([]vg.Point{{X: d.px(x), Y: d.bound(s.Lo[j], false)}, {X: d.px(x), Y: d.bound(s.Hi[j], true)}})
			}
		}
	}
	for _, l := range d.f.HLines {
		if d.f.Y.shows(l.At) {
			y := d.py(l.At)
			d.takeLine([]vg.Point{{X: d.box.Min.X, Y: y}, {X: d.box.Max.X, Y: y}})
		}
	}
	for _, l := range d.f.VLines {
		if d.f.X.shows(l.At) {
			x := d.px(l.At)
			d.takeLine([]vg.Point{{X: x, Y: d.box.Min.Y}, {X: x, Y: d.box.Max.Y}})
		}
	}
	for _, m := range d.f.Marks {
		if d.f.X.shows(m.X) && d.f.Y.shows(m.Y) {
			d.takePoints([]vg.Point{{X: d.px(m.X), Y: d.py(m.Y)}})
		}
	}
}

func (d *drawing) takePoints(ps []vg.Point) {
	c := d.area()
	for _, p := range ps {
		if c.Contains(p) {
			d.taken = append(d.taken, p)
		}
	}
}

// takeLine samples a line every three points of length.
func (d *drawing) takeLine(ps []vg.Point) {
	for i := 1; i < len(ps); i++ {
		n := int(distance(ps[i-1], ps[i])/3) + 1
		for k := 0; k <= n; k++ {
			t := vg.Length(k) / vg.Length(n)
			d.taken = append(d.taken, vg.Point{
				X: ps[i-1].X + t*(ps[i].X-ps[i-1].X), Y: ps[i-1].Y + t*(ps[i].Y-ps[i-1].Y)})
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
}

// placeLabels finds a place for the labels of reference lines and marks.
func (d *drawing) placeLabels() (out []placed) {
	b := d.box
	for _, l := range d.f.HLines {
		if y := d.py(l.At); d.f.Y.shows(l.At) && y >= b.Min.Y && y <= b.Max.Y {
			w := textWidth(l.Label, markSize, false)
			var at []vg.Point
			for _, x := range []vg.Length{b.Max.X - w - 4, b.Min.X + 5, (b.Min.X + b.Max.X - w) / 2} {
				at = append(at, vg.Point{X: x, Y: y + 2}, vg.Point{X: x, Y: y - markSize - 2})
			}
			out = d.place(out, l.Label, false, at)
		}
	}
	for _, l := range d.f.VLines {
		if x := d.px(l.At); d.f.X.shows(l.At) && x >= b.Min.X && x <= b.Max.X {
			w := textWidth(l.Label, markSize, false)
			var at []vg.Point
			for _, y := range []vg.Length{b.Max.Y - w - 4, b.Min.Y + 5, (b.Min.Y + b.Max.Y - w) / 2} {
				at = append(at, vg.Point{X: x - markSize - 2, Y: y}, vg.Point{X: x + 2, Y: y})
			}
			out = d.place(out, l.Label, true, at)
		}
	}
	for _, m := range d.f.Marks {
		pt := vg.Point{X: d.px(m.X), Y: d.py(m.Y)}
		if c := d.area(); !d.f.X.shows(m.X) || !d.f.Y.shows(m.Y) || !c.Contains(pt) {
			continue
		}
		w := textWidth(m.Label, markSize, false)
		var at []vg.Point
		for _, o := range []vg.Point{{X: 7, Y: 5}, {X: -w - 7, Y: 5}, {X: 7, Y: -markSize - 5}, {X: -w - 7, Y: -markSize - 5},
			{X: -w / 2, Y: 9}, {X: -w / 2, Y: -markSize - 9}, {X: 9, Y: -markSize / 2}, {X: -w - 9, Y: -markSize / 2}} {
			at = append(at, pt.Add(o))
		}
		out = d.place(out, m.Label, false, at)
	}
	return out
}

// place puts a label at the one of some lower left corners where it covers least.
func (d *drawing) place(out []placed, text string, up bool, at []vg.Point) []placed {
	if text == "" {
		return out
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
	d.takeBox(best)
	base := vg.Point{X: best.Min.X, Y: best.Min.Y + markSize*0.22}
	if up {
		base = vg.Point{X: best.Max.X - markSize*0.22, Y: best.Min.Y}
	}
	return append(out, placed{text, base, up})
}

func (d *drawing) drawLabels(ls []placed) {
	for _, l := range ls {
		d.pen.text(l.text, l.at, markSize, ink, 0, false, l.up)
	}
}

// key is the legend: its entries and, inside the plot, its rectangle.
type key struct {
	entries []int // indices of the series with a name
	names   []string
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
	var w vg.Length
	named := false
	for i := range d.f.Series {
		name := d.f.Series[i].Name
		if name == "" {
			continue
		}
		named = true
		k.entries = append(k.entries, i)
		k.names = append(k.names, name)
		w = max(w, textWidth(name, legendSize, false))
	}
	if !named {
		return k, true
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

// drawThumb draws a sample of series i and its name, the baseline starting at pt.
func (d *drawing) drawThumb(i int, name string, pt vg.Point) {
	s, l := &d.f.Series[i], lookOf(i)
	mid := vg.Point{X: pt.X + thumb/2, Y: pt.Y + legendSize*0.33}
	c := &draw.Canvas{Canvas: d.pen.Canvas}
	if s.Lo != nil && s.Style != Points {
		c.FillPolygon(d.pen.tint(l), []vg.Point{{X: pt.X, Y: mid.Y - 4}, {X: pt.X + thumb, Y: mid.Y - 4},
			{X: pt.X + thumb, Y: mid.Y + 4}, {X: pt.X, Y: mid.Y + 4}})
	}
	if s.Style != Points {
		c.StrokeLines(draw.LineStyle{Color: l.color, Width: lineWidth, Dashes: l.dash},
			[]vg.Point{{X: pt.X, Y: mid.Y}, {X: pt.X + thumb, Y: mid.Y}})
	} else if s.Lo != nil {
		c.StrokeLine2(draw.LineStyle{Color: l.color, Width: 1}, mid.X, mid.Y-5, mid.X, mid.Y+5)
	}
	if len(d.markerPoints(i)) > 0 {
		d.pen.drawMarker(l.marker, mid, markRadius, l.color)
	}
	d.pen.text(name, vg.Point{X: pt.X + thumb + thumbTo, Y: pt.Y}, legendSize, ink, 0, false, false)
}

func (d *drawing) drawKeyInside(k key) {
	if len(k.entries) == 0 {
		return
	}
	d.pen.SetColor(paper)
	d.pen.Fill(k.box.Path())
	d.pen.SetColor(grid)
	d.pen.SetLineDash(nil, 0)
	d.pen.SetLineWidth(0.6)
	d.pen.Stroke(k.box.Path())
	for j, i := range k.entries {
		y := k.box.Max.Y - keyPad - legendSize*0.8 - keyRow*vg.Length(j)
		d.drawThumb(i, k.names[j], vg.Point{X: k.box.Min.X + keyPad, Y: y})
	}
}

// rows breaks the entries into lines of the given width and calls put for each.
func (k *key) rows(width vg.Length, put func(j int, x vg.Length, row int)) (n int) {
	x, row := vg.Length(0), 0
	for j, name := range k.names {
		w := thumb + thumbTo + textWidth(name, legendSize, false) + 14
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

func (d *drawing) drawKeyAbove(k key) {
	b := d.box
	n := k.rows(b.Size().X, nil)
	k.rows(b.Size().X, func(j int, x vg.Length, row int) {
		y := b.Max.Y + 8 + keyRow*vg.Length(n-1-row)
		d.drawThumb(k.entries[j], k.names[j], vg.Point{X: b.Min.X + x, Y: y})
	})
}
