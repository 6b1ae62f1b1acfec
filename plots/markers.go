package plots

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
)

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
		path.Move(vg.Point{X: pt.X + r, Y: pt.Y})
		path.Arc(pt, r, 0, 2*math.Pi)
	}
	for i := range m.corners {
		q := m.outer * r
		if i%2 == 1 && m.inner > 0 {
			q = m.inner * r
		}
		sin, cos := math.Sincos(m.turn + 2*math.Pi*float64(i)/float64(m.corners))
		corner := pt.Add(vg.Point{X: q * vg.Length(cos), Y: q * vg.Length(sin)})
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
	p.SetColor(paper)
	p.SetLineWidth(0.6)
	p.SetLineDash(nil, 0)
	p.Stroke(path)
}
