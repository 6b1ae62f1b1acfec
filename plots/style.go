package plots

import (
	"image/color"

	"gonum.org/v1/plot/vg"
)

// palette is that of Okabe and Ito without its yellow, which is faint on white.
var palette = []color.NRGBA{
	{0x00, 0x72, 0xB2, 0xFF}, // blue
	{0xD5, 0x5E, 0x00, 0xFF}, // vermilion
	{0x00, 0x9E, 0x73, 0xFF}, // bluish green
	{0xCC, 0x79, 0xA7, 0xFF}, // reddish purple
	{0xE6, 0x9F, 0x00, 0xFF}, // orange
	{0x56, 0xB4, 0xE9, 0xFF}, // sky blue
	{0x00, 0x00, 0x00, 0xFF}, // black
}

var (
	ink   = color.NRGBA{0x22, 0x22, 0x22, 0xFF} // text
	soft  = color.NRGBA{0x55, 0x55, 0x55, 0xFF} // reference lines and axes
	grid  = color.NRGBA{0xE4, 0xE4, 0xE4, 0xFF}
	faint = color.NRGBA{0xF2, 0xF2, 0xF2, 0xFF} // minor grid
	paper = color.NRGBA{0xFF, 0xFF, 0xFF, 0xFF}
	veil  = color.NRGBA{0xFF, 0xFF, 0xFF, 0xC8} // pales what is under a label
)

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
