package plots

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
)

// markers is the number of different markers.
const markers = 7

// drawMarker fills marker k of radius r at pt with a white rim, which keeps markers
// apart where they overlap.
func (p pen) drawMarker(k int, pt vg.Point, r vg.Length, clr color.Color) {
	path := markerPath(k, pt, r)
	p.SetColor(clr)
	p.Fill(path)
	p.SetColor(paper)
	p.SetLineWidth(0.6)
	p.SetLineDash(nil, 0)
	p.Stroke(path)
}

func markerPath(k int, pt vg.Point, r vg.Length) vg.Path {
	switch k {
	case 0:
		var path vg.Path
		path.Move(vg.Point{X: pt.X + r, Y: pt.Y})
		path.Arc(pt, r, 0, 2*math.Pi)
		path.Close()
		return path
	case 1: // square
		return polygon(pt, 1.2*r, 4, math.Pi/4)
	case 2: // triangle
		return polygon(pt, 1.35*r, 3, math.Pi/2)
	case 3: // diamond
		return polygon(pt, 1.35*r, 4, 0)
	case 4: // triangle, point down
		return polygon(pt, 1.35*r, 3, -math.Pi/2)
	case 5: // pentagon
		return polygon(pt, 1.25*r, 5, math.Pi/2)
	default: // star
		var path vg.Path
		for i := range 10 {
			q := 1.5 * r
			if i%2 == 1 {
				q = 0.65 * r
			}
			corner(&path, i, pt, q, math.Pi/2+float64(i)*math.Pi/5)
		}
		path.Close()
		return path
	}
}

// polygon returns a regular polygon of n corners at distance r, the first at angle a.
func polygon(pt vg.Point, r vg.Length, n int, a float64) vg.Path {
	var path vg.Path
	for i := range n {
		corner(&path, i, pt, r, a+2*math.Pi*float64(i)/float64(n))
	}
	path.Close()
	return path
}

func corner(path *vg.Path, i int, pt vg.Point, r vg.Length, a float64) {
	sin, cos := math.Sincos(a)
	q := vg.Point{X: pt.X + r*vg.Length(cos), Y: pt.Y + r*vg.Length(sin)}
	if i == 0 {
		path.Move(q)
	} else {
		path.Line(q)
	}
}
