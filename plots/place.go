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
		for _, p := range d.markerPoints(i) {
			for _, o := range []vg.Point{{X: -3}, {X: 3}, {Y: -3}, {Y: 3}} {
				d.takePoints([]vg.Point{p.Add(o)})
			}
		}
		for j := range s.Lo {
			if x := s.x(j); d.f.X.shows(x) && !math.IsNaN(s.Lo[j]) && !math.IsNaN(s.Hi[j]) {
				d.takePoints([]vg.Point{{X: d.px(x), Y: d.bound(s.Lo[j], false)}, {X: d.px(x), Y: d.bound(s.Hi[j], true)}})
			}
		}
	}
	if d.f.Map != nil { // it has its labels outside
		return
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
			c := vg.Point{X: d.px(m.X), Y: d.py(m.Y)}
			d.takePoints([]vg.Point{c, c.Add(vg.Point{X: 5}), c.Add(vg.Point{X: -5}), c.Add(vg.Point{Y: 5}), c.Add(vg.Point{Y: -5})})
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
	mark *vg.Point     // what it belongs to, if that is a point
	veil *vg.Rectangle // what it covers, to be paled under it
}

// placeLabels finds a place for the labels of reference lines and marks.
func (d *drawing) placeLabels() (out []placed) {
	b := d.box
	if d.f.Map != nil {
		return nil
	}
	for _, l := range d.f.HLines {
		if y := d.py(l.At); d.f.Y.shows(l.At) && y >= b.Min.Y && y <= b.Max.Y {
			w := textWidth(l.Label, markSize, false)
			var at []vg.Point
			for _, x := range along(b.Max.X-w-4, b.Min.X+5) {
				at = append(at, vg.Point{X: x, Y: y + 2}, vg.Point{X: x, Y: y - markSize - 4})
			}
			out = d.place(out, l.Label, false, at)
		}
	}
	for _, l := range d.f.VLines {
		if x := d.px(l.At); d.f.X.shows(l.At) && x >= b.Min.X && x <= b.Max.X {
			w := textWidth(l.Label, markSize, false)
			var at []vg.Point
			for _, y := range along(b.Max.Y-w-4, b.Min.Y+5) {
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
		for _, far := range []vg.Length{24, 42, 62, 84, 110} { // with a line to the mark
			for _, side := range []vg.Length{-w / 2, 8, -w - 8} {
				at = append(at, pt.Add(vg.Point{X: side, Y: far}), pt.Add(vg.Point{X: side, Y: -far - markSize}))
			}
		}
		n := len(out)
		if out = d.place(out, m.Label, false, at); len(out) > n {
			out[n].mark = &pt
		}
	}
	return out
}

// along returns places for the start of a label on a line: its ends, then between them.
func along(first, second vg.Length) []vg.Length {
	at := []vg.Length{first, second}
	for _, t := range []vg.Length{0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875} {
		at = append(at, first+t*(second-first))
	}
	return at
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
	var veil *vg.Rectangle
	if least > 0 && least < 10000 {
		r := best
		veil = &r
	}
	d.takeBox(best)
	base := vg.Point{X: best.Min.X, Y: best.Min.Y + markSize*0.22}
	if up {
		base = vg.Point{X: best.Max.X - markSize*0.22, Y: best.Min.Y}
	}
	return append(out, placed{text: text, at: base, up: up, veil: veil})
}

func (d *drawing) drawLabels(ls []placed) {
	for _, l := range ls {
		if l.veil != nil {
			d.pen.SetColor(d.pen.veil())
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
