package draw

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/krrlab/lab/plots"
)

// pieces returns the runs of samples of series i that the x axis can show and of which
// ok holds, in canvas coordinates; y is the place of a sample. Steps get their corners.
func (d *drawing) pieces(i int, ok func(j int) bool, y func(j int) vg.Length) (out [][]vg.Point) {
	s := &d.f.Series[i]
	for j, next := 0, true; j < len(s.Y); j++ {
		x := s.Abscissa(j)
		if !d.f.X.Shows(x) || !ok(j) {
			next = true
			continue
		}
		if next {
			out, next = append(out, nil), false
		}
		cur, pt := &out[len(out)-1], point(d.px(x), y(j))
		if n := len(*cur); s.Style == plots.Steps && n > 0 {
			*cur = append(*cur, point(pt.X, (*cur)[n-1].Y))
		}
		*cur = append(*cur, pt)
	}
	return out
}

// lines returns the runs of samples of series i that the axes can show.
func (d *drawing) lines(i int) [][]vg.Point {
	y := d.f.Series[i].Y
	return d.pieces(i, func(j int) bool { return d.f.Y.Shows(y[j]) }, func(j int) vg.Length { return d.py(y[j]) })
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

// point returns the point (x, y).
func point(x, y vg.Length) vg.Point { return vg.Point{X: x, Y: y} }

func distance(a, b vg.Point) vg.Length {
	return vg.Length(math.Hypot(float64(a.X-b.X), float64(a.Y-b.Y)))
}

// drawSeries draws the line and markers of series i, or its error bars and points.
func (d *drawing) drawSeries(i int) {
	s, l, c := &d.f.Series[i], d.lookOf(i), d.area()
	places := d.markerPoints(i)
	if s.Style == plots.Points {
		d.drawErrorBars(i)
	} else {
		for _, ps := range d.lines(i) {
			if ps = thin(ps); len(ps) == 1 { // a lone sample between gaps would vanish as a line
				places = append(places, ps[0])
			}
			c.StrokeLines(lineStyle(l.color, lineWidth, l.dash...), c.ClipLinesXY(ps)...)
		}
	}
	for _, pt := range places {
		if c.Contains(pt) {
			d.pen.marker(l.marker, pt, l.color)
		}
	}
}

// markerPoints returns where series i gets markers: at every sample for Points and for
// short lines, at some ten places along a longer line if there are several lines.
func (d *drawing) markerPoints(i int) []vg.Point {
	s := &d.f.Series[i]
	if s.Style == plots.Steps {
		return nil
	}
	all := slices.Concat(d.lines(i)...)
	switch {
	case s.Style == plots.Points:
		return thin(all)
	case len(all) <= 16:
		return all
	case len(d.f.Series) == 1:
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
	case d.f.Y.Shows(v):
		return d.py(v)
	case upper && !(v <= 0):
		return d.box.Max.Y + 10
	default:
		return d.box.Min.Y - 10
	}
}

// bounded reports whether sample j has both ends of its interval.
func bounded(s *plots.Series, j int) bool { return !math.IsNaN(s.Lo[j]) && !math.IsNaN(s.Hi[j]) }

// drawBand shades between Lo and Hi of a line or of steps.
func (d *drawing) drawBand(i int) {
	s, c := &d.f.Series[i], d.area()
	if s.Lo == nil || s.Style == plots.Points {
		return
	}
	isBounded := func(j int) bool { return bounded(s, j) }
	lo := d.pieces(i, isBounded, func(j int) vg.Length { return d.bound(s.Lo[j], false) })
	hi := d.pieces(i, isBounded, func(j int) vg.Length { return d.bound(s.Hi[j], true) })
	for k := range lo {
		if len(lo[k]) > 1 {
			slices.Reverse(hi[k])
			c.FillPolygon(d.lookOf(i).tint(), c.ClipPolygonXY(append(lo[k], hi[k]...)))
		}
	}
}

// drawErrorBars draws a bar with caps from Lo to Hi at each point of series i.
func (d *drawing) drawErrorBars(i int) {
	s, c := &d.f.Series[i], d.area()
	sty := lineStyle(d.lookOf(i).color, 1)
	for j := range s.Lo {
		x := s.Abscissa(j)
		if !d.f.X.Shows(x) || !d.f.Y.Shows(s.Y[j]) || !bounded(s, j) {
			continue
		}
		px, lo, hi := d.px(x), d.bound(s.Lo[j], false), d.bound(s.Hi[j], true)
		c.StrokeLines(sty, c.ClipLinesXY([]vg.Point{point(px, lo), point(px, hi)},
			[]vg.Point{point(px-3, lo), point(px+3, lo)}, []vg.Point{point(px-3, hi), point(px+3, hi)})...)
	}
}

// rule is a straight line across the plot, at a value of the x axis if it is upright.
type rule struct {
	a, b    vg.Point
	upright bool
	label   string
}

// rule returns the line at a value, and whether the plot shows it.
func (d *drawing) rule(v float64, upright bool, label string) (r rule, ok bool) {
	s := d.y
	r = rule{d.box.Min, d.box.Max, upright, label}
	if upright {
		s, r.a.X, r.b.X = d.x, d.px(v), d.px(v)
	} else {
		r.a.Y, r.b.Y = d.py(v), d.py(v)
	}
	return r, s.of.Shows(v) && s.min <= v && v <= s.max
}

// refLines returns the reference lines that the plot shows.
func (d *drawing) refLines() (out []rule) {
	add := func(l plots.RefLine, upright bool) {
		if r, ok := d.rule(l.At, upright, l.Label); ok {
			out = append(out, r)
		}
	}
	for _, l := range d.f.HLines {
		add(l, false)
	}
	for _, l := range d.f.VLines {
		add(l, true)
	}
	return out
}

// stroke draws rules.
func (d *drawing) stroke(sty draw.LineStyle, rs ...rule) {
	for _, r := range rs {
		d.area().StrokeLines(sty, []vg.Point{r.a, r.b})
	}
}

// drawRefLines draws the reference lines; on a map they are tags at its border.
func (d *drawing) drawRefLines() {
	if d.f.Map == nil {
		d.stroke(lineStyle(soft, 1, 4, 3), d.refLines()...)
	}
}

// stroke draws an outline.
func (p pen) stroke(path vg.Path, sty draw.LineStyle) {
	p.SetColor(sty.Color)
	p.SetLineWidth(sty.Width)
	p.SetLineDash(sty.Dashes, 0)
	p.Stroke(path)
}

// frame draws a dark frame with a white rim inside a rectangle; k tells frames apart.
func (p pen) frame(r vg.Rectangle, k int) {
	p.stroke(inset(r, 2.2).Path(), lineStyle(paper, 1.6))
	p.stroke(inset(r, 0.9).Path(), lineStyle(ink, 1.8, dashes[k%len(dashes)]...))
}

// drawMarks draws a ring at each mark, or a frame around its cell.
func (d *drawing) drawMarks() {
	for k, m := range d.f.Marks {
		if d.f.Map != nil {
			if i, j, ok := cellAt(d.f, m.X, m.Y); ok && visible(d.cell(i, j)) {
				d.pen.frame(atLeast(d.cell(i, j), 3*markRadius), d.rings.of(m.Label, k))
			}
		} else if pt, ok := d.placeOf(m); ok {
			d.pen.stroke(markers[0].path(pt, markRadius*1.7), lineStyle(ink, 1.4))
		}
	}
}

// atLeast returns a rectangle that is widened about its middle to a least width and height.
func atLeast(r vg.Rectangle, least vg.Length) vg.Rectangle {
	w, h := max(0, least-r.Size().X)/2, max(0, least-r.Size().Y)/2
	return vg.Rectangle{Min: point(r.Min.X-w, r.Min.Y-h), Max: point(r.Max.X+w, r.Max.Y+h)}
}

// placeOf returns the place of a mark, and whether the plot shows it.
func (d *drawing) placeOf(m plots.Mark) (pt vg.Point, ok bool) {
	if !d.f.X.Shows(m.X) || !d.f.Y.Shows(m.Y) {
		return pt, false
	}
	pt = point(d.px(m.X), d.py(m.Y))
	return pt, d.area().Contains(pt)
}

// palette is that of Okabe and Ito without its yellow, which is faint on white.
var palette = []color.NRGBA{
	opaque(0x0072B2), // blue
	opaque(0xD55E00), // vermilion
	opaque(0x009E73), // bluish green
	opaque(0xCC79A7), // reddish purple
	opaque(0xE69F00), // orange
	opaque(0x56B4E9), // sky blue
	opaque(0x000000), // black
}

var (
	ink   = opaque(0x222222) // text
	soft  = opaque(0x555555) // reference lines and axes
	grid  = opaque(0xE4E4E4)
	faint = opaque(0xF2F2F2) // minor grid
	paper = opaque(0xFFFFFF)
	veil  = color.NRGBA{0xFF, 0xFF, 0xFF, 0xC8} // pales what is under a label
)

// opaque returns the color of a number of six hexadecimal digits: red, green, blue.
func opaque(rgb int) color.NRGBA {
	return color.NRGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), 0xFF}
}

// lineStyle returns the style of a line of a color and a width, dashed if there are lengths of dashes and gaps.
func lineStyle(c color.Color, width vg.Length, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: width, Dashes: dashes}
}

// axisStyle is that of the axes and their ticks.
var axisStyle = lineStyle(soft, 0.8)

// dashes tells lines apart without color; the first is solid.
var dashes = [][]vg.Length{
	nil,
	{6, 2.5},
	{1.5, 2},
	{8, 2.5, 1.5, 2.5},
	{3.5, 2},
	{10, 3, 3, 3},
	{6, 2, 1.5, 2, 1.5, 2},
}

// Sizes in points.
const (
	titleSize      vg.Length = 12
	panelTitleSize vg.Length = 10.5
	labelSize      vg.Length = 10.5
	tickSize       vg.Length = 9.5
	legendSize     vg.Length = 9.5
	markSize       vg.Length = 9
	lineWidth      vg.Length = 1.6
	markRadius     vg.Length = 3
	tickLength     vg.Length = 4
	margin         vg.Length = 7
)

// look is how one series is told from the others.
type look struct {
	color  color.NRGBA
	dash   []vg.Length
	marker int
}

// lookOf returns the look of series i.
func lookOf(i int) look {
	return look{palette[i%len(palette)], dashes[(i+i/len(palette))%len(dashes)], i % len(markers)}
}

// tint returns the color of a band.
func (l look) tint() color.Color {
	c := l.color
	c.A = 0x33
	return c
}

// shape is a regular polygon: its first corner is at an angle and a distance in units of
// a radius, every other one at inner if that is set. One without corners is a circle.
type shape struct {
	corners      int
	turn         float64
	outer, inner vg.Length
}

// markers are the shapes of the markers.
var markers = []shape{
	{0, 0, 1, 0},                 // circle
	{4, math.Pi / 4, 1.2, 0},     // square
	{3, math.Pi / 2, 1.35, 0},    // triangle
	{4, 0, 1.35, 0},              // diamond
	{3, -math.Pi / 2, 1.35, 0},   // triangle, point down
	{5, math.Pi / 2, 1.25, 0},    // pentagon
	{10, math.Pi / 2, 1.5, 0.65}, // star
}

// path returns the outline of the shape at pt.
func (m shape) path(pt vg.Point, r vg.Length) (path vg.Path) {
	if m.corners == 0 {
		path.Move(point(pt.X+r, pt.Y))
		path.Arc(pt, r, 0, 2*math.Pi)
	}
	for i := range m.corners {
		q := m.outer * r
		if i%2 == 1 && m.inner > 0 {
			q = m.inner * r
		}
		sin, cos := math.Sincos(m.turn + 2*math.Pi*float64(i)/float64(m.corners))
		corner := pt.Add(point(q*vg.Length(cos), q*vg.Length(sin)))
		if i == 0 {
			path.Move(corner)
		} else {
			path.Line(corner)
		}
	}
	path.Close()
	return path
}

// marker fills marker k at pt with a white rim, which keeps markers apart where they
// overlap.
func (p pen) marker(k int, pt vg.Point, clr color.Color) {
	path := markers[k].path(pt, markRadius)
	p.SetColor(clr)
	p.Fill(path)
	p.stroke(path, lineStyle(paper, 0.6))
}
