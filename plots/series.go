package plots

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// pieces returns the runs of samples of series i that the axes can show, in canvas
// coordinates. Steps get their corners.
func (d *drawing) pieces(i int) [][]vg.Point {
	s := &d.f.Series[i]
	var out [][]vg.Point
	var cur []vg.Point
	for j, y := range s.Y {
		x := s.x(j)
		if !d.f.X.shows(x) || !d.f.Y.shows(y) {
			if cur != nil {
				out = append(out, cur)
			}
			cur = nil
			continue
		}
		pt := vg.Point{X: d.px(x), Y: d.py(y)}
		if n := len(cur); s.Style == Steps && n > 0 {
			cur = append(cur, vg.Point{X: pt.X, Y: cur[n-1].Y})
		}
		cur = append(cur, pt)
	}
	if cur != nil {
		out = append(out, cur)
	}
	return out
}

// thin drops points nearer than a quarter of a point to the last one kept; no eye sees
// the difference, and long series stay small files.
func thin(ps []vg.Point) []vg.Point {
	out := ps[:0:0]
	for i, p := range ps {
		if n := len(out); n > 0 && i < len(ps)-1 && distance(out[n-1], p) < 0.25 {
			continue
		}
		out = append(out, p)
	}
	return out
}

func distance(a, b vg.Point) vg.Length {
	return vg.Length(math.Hypot(float64(a.X-b.X), float64(a.Y-b.Y)))
}

// drawSeries draws the line and markers of series i, or its error bars and points.
func (d *drawing) drawSeries(i int) {
	s, l, c := &d.f.Series[i], d.lookOf(i), d.area()
	for _, ps := range d.pieces(i) {
		if s.Style == Points {
			continue
		}
		ps = thin(ps)
		if len(ps) == 1 { // a lone sample between gaps would vanish as a line
			d.marker(ps[0], l)
			continue
		}
		c.StrokeLines(draw.LineStyle{Color: l.color, Width: lineWidth, Dashes: l.dash}, c.ClipLinesXY(ps)...)
	}
	if s.Style == Points && s.Lo != nil {
		d.drawErrorBars(i)
	}
	for _, pt := range d.markerPoints(i) {
		d.marker(pt, l)
	}
}

func (d *drawing) marker(pt vg.Point, l look) {
	if c := d.area(); c.Contains(pt) {
		d.pen.drawMarker(l.marker, pt, markRadius, l.color)
	}
}

// markerPoints returns where series i gets markers: at every sample for Points and for
// short lines, at some ten places along a longer line if there are several lines.
func (d *drawing) markerPoints(i int) []vg.Point {
	s := &d.f.Series[i]
	var all []vg.Point
	for j, y := range s.Y {
		if x := s.x(j); d.f.X.shows(x) && d.f.Y.shows(y) {
			all = append(all, vg.Point{X: d.px(x), Y: d.py(y)})
		}
	}
	switch {
	case s.Style == Points:
		return thin(all)
	case s.Style == Line && len(all) <= 16:
		return all
	case len(d.f.Series) == 1 || s.Style == Steps:
		return nil
	}
	var out []vg.Point
	gap := d.box.Size().X / 10
	next := d.box.Min.X + gap*(0.5+vg.Length(i)/vg.Length(len(d.f.Series)))
	for _, pt := range all {
		if pt.X >= next {
			out = append(out, pt)
			next = pt.X + gap
		}
	}
	return out
}

// bound returns the place of an end of a band; an end that the axis cannot show is
// beyond the picture's edge, below for a lower and above for an upper one.
func (d *drawing) bound(v float64, upper bool) vg.Length {
	switch {
	case d.f.Y.shows(v):
		return d.py(v)
	case upper && !(v <= 0):
		return d.box.Max.Y + 10
	default:
		return d.box.Min.Y - 10
	}
}

// drawBand shades between Lo and Hi of a line or of steps.
func (d *drawing) drawBand(i int) {
	s := &d.f.Series[i]
	if s.Lo == nil || s.Style == Points {
		return
	}
	var lo, hi []vg.Point
	flush := func() {
		if len(lo) > 1 {
			path := append([]vg.Point(nil), lo...)
			for k := len(hi) - 1; k >= 0; k-- {
				path = append(path, hi[k])
			}
			c := d.area()
			c.FillPolygon(d.pen.tint(d.lookOf(i)), c.ClipPolygonXY(path))
		}
		lo, hi = nil, nil
	}
	for j := range s.Y {
		x := s.x(j)
		if !d.f.X.shows(x) || math.IsNaN(s.Lo[j]) || math.IsNaN(s.Hi[j]) {
			flush()
			continue
		}
		px := d.px(x)
		if n := len(lo); s.Style == Steps && n > 0 {
			lo, hi = append(lo, vg.Point{X: px, Y: lo[n-1].Y}), append(hi, vg.Point{X: px, Y: hi[n-1].Y})
		}
		lo = append(lo, vg.Point{X: px, Y: d.bound(s.Lo[j], false)})
		hi = append(hi, vg.Point{X: px, Y: d.bound(s.Hi[j], true)})
	}
	flush()
}

// drawErrorBars draws a bar with caps from Lo to Hi at each point of series i.
func (d *drawing) drawErrorBars(i int) {
	s, c := &d.f.Series[i], d.area()
	sty := draw.LineStyle{Color: d.lookOf(i).color, Width: 1}
	for j, y := range s.Y {
		x := s.x(j)
		if !d.f.X.shows(x) || !d.f.Y.shows(y) || math.IsNaN(s.Lo[j]) || math.IsNaN(s.Hi[j]) {
			continue
		}
		px, lo, hi := d.px(x), d.bound(s.Lo[j], false), d.bound(s.Hi[j], true)
		lines := [][]vg.Point{{{X: px, Y: lo}, {X: px, Y: hi}}}
		for _, py := range []vg.Length{lo, hi} {
			lines = append(lines, []vg.Point{{X: px - 3, Y: py}, {X: px + 3, Y: py}})
		}
		for _, l := range lines {
			c.StrokeLines(sty, c.ClipLinesXY(l)...)
		}
	}
}

// drawRefLines draws the reference lines.
func (d *drawing) drawRefLines() {
	c, b := d.area(), d.box
	if d.f.Map != nil { // they are tags at its border
		return
	}
	sty := draw.LineStyle{Color: soft, Width: 1, Dashes: []vg.Length{4, 3}}
	for _, l := range d.f.HLines {
		if d.f.Y.shows(l.At) && c.ContainsY(d.py(l.At)) {
			c.StrokeLine2(sty, b.Min.X, d.py(l.At), b.Max.X, d.py(l.At))
		}
	}
	for _, l := range d.f.VLines {
		if d.f.X.shows(l.At) && c.ContainsX(d.px(l.At)) {
			c.StrokeLine2(sty, d.px(l.At), b.Min.Y, d.px(l.At), b.Max.Y)
		}
	}
}

// frame draws a dark frame with a white rim inside a rectangle; k tells frames apart.
func (p pen) frame(r vg.Rectangle, k int) {
	p.SetLineDash(nil, 0)
	for _, t := range []struct {
		in, width vg.Length
		clr       color.Color
	}{{2.2, 1.6, paper}, {0.9, 1.8, ink}} {
		in := vg.Point{X: t.in, Y: t.in}
		p.SetColor(t.clr)
		p.SetLineWidth(t.width)
		if t.clr == ink {
			p.SetLineDash(dashes[k%len(dashes)], 0)
		}
		p.Stroke(vg.Rectangle{Min: r.Min.Add(in), Max: r.Max.Sub(in)}.Path())
	}
	p.SetLineDash(nil, 0)
}

// drawMarks draws a ring at each mark, or a frame around its cell.
func (d *drawing) drawMarks() {
	for k, m := range d.f.Marks {
		if d.f.Map != nil {
			if i, j, ok := d.f.cellAt(m.X, m.Y); ok && visible(d.cell(i, j)) {
				d.pen.frame(d.cell(i, j), d.frameOf(k))
			}
			continue
		}
		if !d.f.X.shows(m.X) || !d.f.Y.shows(m.Y) {
			continue
		}
		pt := vg.Point{X: d.px(m.X), Y: d.py(m.Y)}
		if c := d.area(); !c.Contains(pt) {
			continue
		}
		d.pen.SetColor(ink)
		d.pen.SetLineDash(nil, 0)
		d.pen.SetLineWidth(1.4)
		d.pen.Stroke(markerPath(0, pt, markRadius*1.7))
	}
}
