package draw

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/krrlab/lab/plots"
)

// runs returns the maximal runs of consecutive samples of series i that the x axis can show and for which isShown
// holds, in canvas coordinates. y returns the vertical position of sample j. For Steps, the corners of the steps are
// inserted.
func (d *drawing) runs(i int, isShown func(j int) bool, y func(j int) vg.Length) (out [][]vg.Point) {
	s := &d.figure.Series[i]
	for j, startsRun := 0, true; j < len(s.Y); j++ {
		x := s.Abscissa(j)
		if !d.figure.X.Shows(x) || !isShown(j) {
			startsRun = true
			continue
		}
		if startsRun {
			out, startsRun = append(out, nil), false
		}
		run, pt := &out[len(out)-1], point(d.canvasX(x), y(j))
		if n := len(*run); s.Style == plots.Steps && n > 0 {
			*run = append(*run, point(pt.X, (*run)[n-1].Y))
		}
		*run = append(*run, pt)
	}
	return out
}

// shownRuns returns the runs of samples of series i that both axes can show, in canvas coordinates.
func (d *drawing) shownRuns(i int) [][]vg.Point {
	y := d.figure.Series[i].Y
	return d.runs(i, func(j int) bool { return d.figure.Y.Shows(y[j]) },
		func(j int) vg.Length { return d.canvasY(y[j]) })
}

// minDistance is the distance of two samples, in points, below which the second one may be omitted. The difference is
// not visible (a pixel of a PNG image is 0.45 points wide), and files of long series become much smaller.
const minDistance = 0.25

// thinOut removes the points that are closer than minDistance to the previous remaining one, except for the last one.
func thinOut(points []vg.Point) []vg.Point {
	out := points[:0:0]
	for i, p := range points {
		if n := len(out); n > 0 && i < len(points)-1 && distance(out[n-1], p) < minDistance {
			continue
		}
		out = append(out, p)
	}
	return out
}

// point returns the point (x, y).
func point(x, y vg.Length) vg.Point { return vg.Point{X: x, Y: y} }

// distance returns the Euclidean distance of two points.
func distance(a, b vg.Point) vg.Length {
	return vg.Length(math.Hypot(float64(a.X-b.X), float64(a.Y-b.Y)))
}

// drawSeries draws the line and the markers of series i, or, for Points, its error bars and markers.
func (d *drawing) drawSeries(i int) {
	s, appearance, c := &d.figure.Series[i], d.appearanceOf(i), d.area()
	markerPoints := d.markerPoints(i)
	switch s.Style {
	case plots.Bars:
		d.drawBars(i)
	case plots.Points:
		d.drawErrorBars(i)
	default:
		for _, run := range d.shownRuns(i) {
			if run = thinOut(run); len(run) == 1 { // a single sample between gaps would be invisible as a line
				markerPoints = append(markerPoints, run[0])
			}
			c.StrokeLines(lineStyle(appearance.color, lineWidth, appearance.dash...), c.ClipLinesXY(run)...)
		}
	}
	for _, pt := range markerPoints {
		if c.Contains(pt) {
			d.pen.drawMarker(appearance, pt)
		}
	}
}

// markerPoints returns the positions of the markers of series i: every sample for Points and for lines of at most
// maxMarked samples, and about ten points along a longer line if the figure has several series. The markers of
// different lines are shifted against each other. Steps, Bars and lines without a marker radius (Neutral) have none.
func (d *drawing) markerPoints(i int) []vg.Point {
	const maxMarked = 16
	s := &d.figure.Series[i]
	if s.Style == plots.Steps || s.Style == plots.Bars || d.appearanceOf(i).radius == 0 {
		return nil
	}
	samples := slices.Concat(d.shownRuns(i)...)
	switch {
	case s.Style == plots.Points:
		return thinOut(samples)
	case len(samples) <= maxMarked:
		return samples
	case len(d.figure.Series) == 1:
		return nil
	}
	var out []vg.Point
	gap := d.box.Size().X / 10
	nextX := d.box.Min.X + gap*(0.5+vg.Length(i)/vg.Length(len(d.figure.Series)))
	for _, pt := range samples {
		if pt.X >= nextX {
			out = append(out, pt)
			nextX = pt.X + gap
		}
	}
	return out
}

// lowerEnd returns the vertical position of the lower end v of an interval. If the axis cannot show v, the position is
// below the plot.
func (d *drawing) lowerEnd(v float64) vg.Length {
	if d.figure.Y.Shows(v) {
		return d.canvasY(v)
	}
	return d.box.Min.Y - 10
}

// upperEnd returns the vertical position of the upper end v of an interval. If the axis cannot show v, the position is
// below the plot for v ≤ 0, which a logarithmic axis cannot show, and otherwise above it.
func (d *drawing) upperEnd(v float64) vg.Length {
	if d.figure.Y.Shows(v) || v <= 0 {
		return d.lowerEnd(v)
	}
	return d.box.Max.Y + 10
}

// hasInterval reports whether both ends of the interval of sample j are numbers.
func hasInterval(s *plots.Series, j int) bool { return !math.IsNaN(s.Lo[j]) && !math.IsNaN(s.Hi[j]) }

// drawBand shades the area between Lo and Hi of series i if it is a Line or Steps.
func (d *drawing) drawBand(i int) {
	s, c := &d.figure.Series[i], d.area()
	if s.Lo == nil || s.Style == plots.Points || s.Style == plots.Bars {
		return
	}
	isShown := func(j int) bool { return hasInterval(s, j) }
	lo := d.runs(i, isShown, func(j int) vg.Length { return d.lowerEnd(s.Lo[j]) })
	hi := d.runs(i, isShown, func(j int) vg.Length { return d.upperEnd(s.Hi[j]) })
	for k := range lo {
		if len(lo[k]) > 1 {
			slices.Reverse(hi[k])
			c.FillPolygon(d.appearanceOf(i).tint(), c.ClipPolygonXY(append(lo[k], hi[k]...)))
		}
	}
}

// halfBarHeight is half the height of a bar in units of the y axis. At 0.5 neighboring bars touch.
const halfBarHeight = 0.36

// drawBars draws the bars of series i, and a line with caps from Lo to Hi over each.
func (d *drawing) drawBars(i int) {
	s, c := &d.figure.Series[i], d.area()
	for j, y := range s.Y {
		x := s.Abscissa(j)
		if !d.figure.X.Shows(x) || !d.figure.Y.Shows(y) {
			continue
		}
		base, end, low, high := d.canvasX(0), d.canvasX(x), d.canvasY(y-halfBarHeight), d.canvasY(y+halfBarHeight)
		c.FillPolygon(d.appearanceOf(i).color, c.ClipPolygonXY([]vg.Point{point(base, low), point(end, low),
			point(end, high), point(base, high)}))
		if s.Lo != nil && hasInterval(s, j) {
			d.drawInterval(point(d.canvasX(s.Lo[j]), d.canvasY(y)), point(d.canvasX(s.Hi[j]), d.canvasY(y)), point(0,
				3), textColor)
		}
	}
}

// drawErrorBars draws a bar with caps from Lo to Hi at each point of series i.
func (d *drawing) drawErrorBars(i int) {
	s := &d.figure.Series[i]
	for j := range s.Lo {
		x := s.Abscissa(j)
		if !d.figure.X.Shows(x) || !d.figure.Y.Shows(s.Y[j]) || !hasInterval(s, j) {
			continue
		}
		d.drawInterval(point(d.canvasX(x), d.lowerEnd(s.Lo[j])), point(d.canvasX(x), d.upperEnd(s.Hi[j])), point(3, 0),
			d.appearanceOf(i).color)
	}
}

// drawInterval draws a thin line from lo to hi. At each end it has a cap that extends by halfCap to both sides.
func (d *drawing) drawInterval(lo, hi, halfCap vg.Point, clr color.Color) {
	c := d.area()
	c.StrokeLines(lineStyle(clr, 1), c.ClipLinesXY([]vg.Point{lo, hi},
		[]vg.Point{lo.Sub(halfCap), lo.Add(halfCap)}, []vg.Point{hi.Sub(halfCap), hi.Add(halfCap)})...)
}

// orientation is the direction of a line, an axis or a text.
type orientation bool

const (
	horizontal orientation = false
	vertical   orientation = true // a vertical text reads from bottom to top
)

// straightLine is a horizontal or vertical line across the plot.
type straightLine struct {
	a, b        vg.Point // the ends, the lower or left one first
	orientation orientation
	label       string
}

// lineAt returns the vertical line at the value v of x, or the horizontal line at the value v of y. ok reports whether
// it is inside the plot.
func (d *drawing) lineAt(v float64, direction orientation, label string) (line straightLine, ok bool) {
	s := d.y
	line = straightLine{d.box.Min, d.box.Max, direction, label}
	if direction == vertical {
		s, line.a.X, line.b.X = d.x, d.canvasX(v), d.canvasX(v)
	} else {
		line.a.Y, line.b.Y = d.canvasY(v), d.canvasY(v)
	}
	return line, s.axis.Shows(v) && s.min <= v && v <= s.max
}

// refLines returns the reference lines that are inside the plot.
func (d *drawing) refLines() (out []straightLine) {
	add := func(refLine plots.RefLine, direction orientation) {
		if line, ok := d.lineAt(refLine.At, direction, refLine.Label); ok {
			out = append(out, line)
		}
	}
	for _, refLine := range d.figure.HLines {
		add(refLine, horizontal)
	}
	for _, refLine := range d.figure.VLines {
		add(refLine, vertical)
	}
	return out
}

// strokeLines draws lines in the given style.
func (d *drawing) strokeLines(style draw.LineStyle, lines ...straightLine) {
	for _, l := range lines {
		d.area().StrokeLines(style, []vg.Point{l.a, l.b})
	}
}

// drawRefLines draws the reference lines. On a map it draws nothing, because drawTags marks them at the border.
func (d *drawing) drawRefLines() {
	if d.figure.Map == nil {
		d.strokeLines(lineStyle(axisColor, 1, 4, 3), d.refLines()...)
	}
}

// strokePath draws a line along a path.
func (p pen) strokePath(path vg.Path, style draw.LineStyle) {
	p.SetColor(style.Color)
	p.SetLineWidth(style.Width)
	p.SetLineDash(style.Dashes, 0)
	p.Stroke(path)
}

// drawFrame draws a dark frame with a white rim inside a rectangle. number selects the dash pattern of the frame.
func (p pen) drawFrame(r vg.Rectangle, number int) {
	p.strokePath(inset(r, 2.2).Path(), lineStyle(backgroundColor, 1.6))
	p.strokePath(inset(r, 0.9).Path(), lineStyle(textColor, 1.8, dashPatterns[number%len(dashPatterns)]...))
}

// drawMarks draws a ring around each mark or, on a map with values, a frame around the cell that contains it.
func (d *drawing) drawMarks() {
	for k, mark := range d.figure.Marks {
		if d.figure.Map != nil && !d.figure.Map.Bare {
			if i, j, ok := cellAt(d.figure, mark.X, mark.Y); ok && isVisible(d.cell(i, j)) {
				d.pen.drawFrame(widen(d.cell(i, j), 3*markRadius), d.frameNumbers.numberOf(mark.Label, k))
			}
		} else if pt, ok := d.markPoint(mark); ok {
			d.pen.drawRing(pt)
		}
	}
}

// drawRing draws a dark ring with a white rim around pt.
func (p pen) drawRing(pt vg.Point) {
	path := markers[0].path(pt, markRadius*1.7)
	p.strokePath(path, lineStyle(backgroundColor, 3))
	p.strokePath(path, lineStyle(textColor, 1.4))
}

// widen returns a rectangle with the center of r whose width and height are those of r, but at least minSize.
func widen(r vg.Rectangle, minSize vg.Length) vg.Rectangle {
	w, h := max(0, minSize-r.Size().X)/2, max(0, minSize-r.Size().Y)/2
	return vg.Rectangle{Min: point(r.Min.X-w, r.Min.Y-h), Max: point(r.Max.X+w, r.Max.Y+h)}
}

// markPoint returns the position of a mark on the canvas. ok reports whether it is inside the plot.
func (d *drawing) markPoint(m plots.Mark) (pt vg.Point, ok bool) {
	if !d.figure.X.Shows(m.X) || !d.figure.Y.Shows(m.Y) {
		return pt, false
	}
	pt = point(d.canvasX(m.X), d.canvasY(m.Y))
	return pt, d.area().Contains(pt)
}

// palette holds the colors of Okabe and Ito. Their yellow is omitted, because it is hardly visible on white.
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
	textColor       = opaque(0x222222)
	axisColor       = opaque(0x555555) // color of axes and reference lines
	gridColor       = opaque(0xE4E4E4)
	minorGridColor  = opaque(0xF2F2F2)
	backgroundColor = opaque(0xFFFFFF)
	veilColor       = color.NRGBA{0xFF, 0xFF, 0xFF, 0xC8} // translucent white, which lightens the data under a label
)

// opaque returns the opaque color 0xRRGGBB.
func opaque(rgb int) color.NRGBA {
	return color.NRGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), 0xFF}
}

// lineStyle returns the style of a line. The line is dashed if the lengths of its dashes and gaps are given.
func lineStyle(c color.Color, width vg.Length, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: width, Dashes: dashes}
}

// axisStyle is the line style of the axes and their ticks.
var axisStyle = lineStyle(axisColor, 0.8)

// dashPatterns holds the lengths of dashes and gaps by which series can be distinguished without color. The first
// pattern is a solid line.
var dashPatterns = [][]vg.Length{
	nil,
	{6, 2.5},
	{1.5, 2},
	{8, 2.5, 1.5, 2.5},
	{3.5, 2},
	{10, 3, 3, 3},
	{6, 2, 1.5, 2, 1.5, 2},
}

// Sizes in points, chosen by eye.
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

// manyPoints is the number of points of a series above which its markers become smaller. At a larger value the markers
// of long series hide one another.
const manyPoints = 500

// appearance holds the properties that distinguish a series from the others.
type appearance struct {
	color  color.NRGBA
	dash   []vg.Length // lengths of dashes and gaps; nil for a solid line
	marker int         // index of the marker's shape in markers
	radius vg.Length   // radius of the markers in points; 0 for none
}

// standardAppearance returns appearance number i. Colors, dash patterns and markers repeat with different periods.
func standardAppearance(i int) appearance {
	return appearance{palette[i%len(palette)], dashPatterns[(i+i/len(palette))%len(dashPatterns)], i % len(markers),
		markRadius}
}

// tint returns the translucent color of a band.
func (a appearance) tint() color.Color {
	tint := a.color
	tint.A = 0x33
	return tint
}

// shape is a regular polygon or star, or a circle. Its distances are in units of the radius for which it is drawn. The
// shapes in markers have different distances, so that they look equally large.
type shape struct {
	corners int       // number of corners; 0 for a circle
	angle   float64   // angle of the first corner, in radians
	outer   vg.Length // distance of the corners from the center
	inner   vg.Length // distance of every second corner, if positive
}

// markers holds the shapes of the series' markers.
var markers = []shape{
	{0, 0, 1, 0},                 // circle
	{4, math.Pi / 4, 1.2, 0},     // square
	{3, math.Pi / 2, 1.35, 0},    // triangle
	{4, 0, 1.35, 0},              // diamond
	{3, -math.Pi / 2, 1.35, 0},   // triangle, point down
	{5, math.Pi / 2, 1.25, 0},    // pentagon
	{10, math.Pi / 2, 1.5, 0.65}, // star
}

// path returns the outline of the shape, centered at pt, for the radius r.
func (m shape) path(pt vg.Point, r vg.Length) (path vg.Path) {
	if m.corners == 0 {
		path.Move(point(pt.X+r, pt.Y))
		path.Arc(pt, r, 0, 2*math.Pi)
	}
	for i := range m.corners {
		distance := m.outer * r
		if i%2 == 1 && m.inner > 0 {
			distance = m.inner * r
		}
		sin, cos := math.Sincos(m.angle + 2*math.Pi*float64(i)/float64(m.corners))
		corner := pt.Add(point(distance*vg.Length(cos), distance*vg.Length(sin)))
		if i == 0 {
			path.Move(corner)
		} else {
			path.Line(corner)
		}
	}
	path.Close()
	return path
}

// drawMarker fills the marker of a series at pt. A white rim separates markers that overlap.
func (p pen) drawMarker(a appearance, pt vg.Point) {
	path := markers[a.marker].path(pt, a.radius)
	p.SetColor(a.color)
	p.Fill(path)
	p.strokePath(path, lineStyle(backgroundColor, a.radius/5))
}
