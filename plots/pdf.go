package plots

import (
	"image/color"
	"regexp"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgpdf"
)

// pdfCanvas mends two things of vgpdf: a font there has no Greek letters, so text is
// drawn as outlines, and a color is written as it is multiplied by its opacity.
type pdfCanvas struct{ *vgpdf.Canvas }

// straight is a color whose components are not multiplied by its opacity, against the
// contract of color.Color: vgpdf writes them as they are, beside the opacity.
type straight color.NRGBA

// RGBA returns 16-bit components.
func (c straight) RGBA() (r, g, b, a uint32) {
	return uint32(c.R) * 0x101, uint32(c.G) * 0x101, uint32(c.B) * 0x101, uint32(c.A) * 0x101
}

// SetColor implements vg.Canvas.
func (c pdfCanvas) SetColor(clr color.Color) {
	if clr == nil {
		clr = color.Black
	}
	c.Canvas.SetColor(straight(color.NRGBAModel.Convert(clr).(color.NRGBA)))
}

// FillString implements vg.Canvas: it fills the glyphs of s with their baseline at pt.
func (c pdfCanvas) FillString(f font.Face, pt vg.Point, s string) {
	var buf sfnt.Buffer
	em := fixed.Int26_6(f.Face.UnitsPerEm())
	unit := f.Font.Size / vg.Length(em)
	x := pt.X
	for i, r := range s {
		idx, err := f.Face.GlyphIndex(&buf, r)
		if err != nil {
			continue
		}
		segs, err := f.Face.LoadGlyph(&buf, idx, em, nil)
		if err != nil {
			continue
		}
		at := func(q fixed.Point26_6) vg.Point {
			return vg.Point{X: x + vg.Length(q.X)*unit, Y: pt.Y - vg.Length(q.Y)*unit}
		}
		var path vg.Path
		for _, s := range segs {
			switch s.Op {
			case sfnt.SegmentOpMoveTo:
				if len(path) > 0 {
					path.Close()
				}
				path.Move(at(s.Args[0]))
			case sfnt.SegmentOpLineTo:
				path.Line(at(s.Args[0]))
			case sfnt.SegmentOpQuadTo:
				path.QuadTo(at(s.Args[0]), at(s.Args[1]))
			case sfnt.SegmentOpCubeTo:
				path.CubeTo(at(s.Args[0]), at(s.Args[1]), at(s.Args[2]))
			}
		}
		if len(path) > 0 {
			path.Close()
			c.Fill(path)
		}
		x = pt.X + f.Width(s[:i+len(string(r))])
	}
}

// pdfDate finds the dates in a PDF file, which are replaced by one of the same length:
// the file's table of offsets stays right, and the same figure gives the same bytes.
var pdfDate = regexp.MustCompile(`(/(?:Creation|Mod)Date \(D:)\d{14}`)
