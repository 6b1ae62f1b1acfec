package draw

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"math"
	"regexp"

	stdfont "golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/krrlab/lab/plots"
	"github.com/krrlab/lab/plots/internal/text"
)

// render draws on a canvas of width×height inches in one of the three formats, or as "groups": SVG with those of
// pen.group. SVG has the title and the caption.
func render(format string, width, height float64, title, caption string, draw func(p pen, w, h vg.Length)) ([]byte,
	error) {
	w, h := vg.Length(width)*vg.Inch, vg.Length(height)*vg.Inch
	var buf bytes.Buffer
	switch format {
	case "svg", "groups":
		c := vgsvg.New(w, h)
		draw(pen{svgCanvas{c, format == "groups"}}, w, h)
		_, err := c.WriteTo(&buf)
		return describe(buf.Bytes(), title, caption), err
	case "png":
		c := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(plots.DotsPerInch), vgimg.UseBackgroundColor(paper))
		draw(pen{c}, w, h)
		return encodePNG(c.Image())
	}
	c := vgpdf.New(w, h)
	draw(pen{pdfCanvas{c}}, w, h)
	_, err := c.WriteTo(&buf)
	return pdfDate.ReplaceAll(buf.Bytes(), []byte("${1}20000101000000")), err
}

// svgCanvas says how long each text is, so that a line of raised and lowered runs holds
// together in any font, though the runs were placed with the widths of Liberation Sans.
// The canvas of vgsvg knows no such thing: it is given the length between two marks
// before the text, which describe makes an attribute. The marks are private-use
// characters, which oneLine removes from labels.
type svgCanvas struct {
	*vgsvg.Canvas
	groups bool // for the script of the interactive figure
}

// FillString implements vg.Canvas.
func (c svgCanvas) FillString(f font.Face, pt vg.Point, s string) {
	c.Canvas.FillString(f, pt, fmt.Sprintf("\ue000%.2f\ue001%s", f.Width(s).Points(), s))
}

var (
	textLength = regexp.MustCompile(`>\x{e000}([0-9.]+)\x{e001}`)
	fontFamily = regexp.MustCompile(`font-family:[^;"]*`)
	groupBegin = regexp.MustCompile(`<text[^>]*>\x{e002}([^\x{e003}]*)\x{e003}([^<]*)</text>`)
	groupEnd   = regexp.MustCompile(`<text[^>]*>\x{e004}</text>`)
)

// group draws a part of a drawing that an SVG document has as a group with a class and a name, for the script
// of the interactive figure. Its marks are texts, as those of lengths are.
func (p pen) group(class, name string, draw func()) {
	c, ok := p.Canvas.(svgCanvas)
	mark := func(s string) {
		if ok && c.groups {
			c.Canvas.FillString(fonts.Lookup(fontOf(1, false), 1), vg.Point{}, s)
		}
	}
	mark("\ue002" + class + "\ue003" + text.Flat(name))
	draw()
	mark("\ue004")
}

// describe puts the title and the caption into an SVG document, for those who listen
// to it, names substitutes of the same metrics for the font, and sets the texts' lengths.
func describe(svg []byte, title, caption string) []byte {
	svg = fontFamily.ReplaceAll(svg, []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif"))
	svg = groupBegin.ReplaceAll(svg, []byte(`<g class="$1" data-name="$2">`))
	svg = groupEnd.ReplaceAll(svg, []byte("</g>"))
	svg = textLength.ReplaceAll(svg, []byte(` textLength="$1" lengthAdjust="spacingAndGlyphs" xml:space="preserve">`))
	head := ">\n"
	if title != "" {
		head += "<title>" + html.EscapeString(text.Flat(title)) + "</title>\n"
	}
	if caption != "" {
		head += "<desc>" + html.EscapeString(text.Flat(caption)) + "</desc>\n"
	}
	svg = bytes.Replace(svg, []byte(">\n<g"), []byte(head+"<g"), 1)
	return bytes.Replace(svg, []byte("<svg "), []byte(`<svg role="img" `), 1)
}

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
	c.Canvas.SetColor(straight(nrgba(cmp.Or[color.Color](clr, color.Black))))
}

// FillString implements vg.Canvas: it fills the glyphs of s with their baseline at pt.
func (c pdfCanvas) FillString(f font.Face, pt vg.Point, s string) {
	var buf sfnt.Buffer
	em := fixed.Int26_6(f.Face.UnitsPerEm())
	unit := f.Font.Size / vg.Length(em)
	for i, r := range s {
		x := pt.X + f.Width(s[:i])
		at := func(q fixed.Point26_6) vg.Point {
			return point(x+vg.Length(q.X)*unit, pt.Y-vg.Length(q.Y)*unit)
		}
		idx, err := f.Face.GlyphIndex(&buf, r)
		segments, failed := f.Face.LoadGlyph(&buf, idx, em, nil)
		if cmp.Or(err, failed) != nil {
			continue
		}
		var path vg.Path // of closed curves: to fill one closes it
		for _, s := range segments {
			switch a, b, c := at(s.Args[0]), at(s.Args[1]), at(s.Args[2]); s.Op {
			case sfnt.SegmentOpMoveTo:
				path.Move(a)
			case sfnt.SegmentOpLineTo:
				path.Line(a)
			case sfnt.SegmentOpQuadTo:
				path.QuadTo(a, b)
			case sfnt.SegmentOpCubeTo:
				path.CubeTo(a, b, c)
			}
		}
		if len(path) > 0 {
			c.Fill(path)
		}
	}
}

// pdfDate finds the dates in a PDF file, which are replaced by one of the same length:
// the file's table of offsets stays right, and the same figure gives the same bytes.
var pdfDate = regexp.MustCompile(`(/(?:Creation|Mod)Date \(D:)\d{14}`)

// closeEnough is by how much a component of a pixel's color may differ, of 255: it is not seen.
const closeEnough = 12

// encodePNG writes an image with a palette where at most 256 colors are close enough to
// those of all pixels: lines and text then take a fourth of the bytes.
func encodePNG(img image.Image) ([]byte, error) {
	if p := withPalette(img); p != nil {
		img = p
	}
	var b bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, img)
	return b.Bytes(), err
}

// withPalette returns the image with a palette, which begins with the colors of the
// style, or nil if it has too many colors.
func withPalette(img image.Image) *image.Paletted {
	var colors color.Palette
	for _, c := range append(palette, paper, ink, soft, grid, faint) {
		colors = append(colors, color.RGBA(c))
	}
	index := map[color.RGBA]int{} // of the pixels' colors
	r := img.Bounds()
	out := image.NewPaletted(r, nil)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			k, known := index[c]
			if !known {
				k = colors.Index(c)
				switch near := alike(colors[k].(color.RGBA), c); {
				case !near && len(colors) == 256:
					return nil
				case !near:
					k, colors = len(colors), append(colors, c)
				}
				index[c] = k
			}
			out.SetColorIndex(x, y, uint8(k))
		}
	}
	out.Palette = colors
	return out
}

// alike reports whether two colors look the same.
func alike(a, b color.RGBA) bool {
	differ := func(x, y uint8) bool { return max(x, y)-min(x, y) > closeEnough }
	return !differ(a.R, b.R) && !differ(a.G, b.G) && !differ(a.B, b.B) && !differ(a.A, b.A)
}

// fonts holds Liberation Sans among others, whose metrics are those of Helvetica and Arial.
var fonts = font.DefaultCache

// fontOf returns the one typeface of the package at a size in points.
func fontOf(size vg.Length, bold bool) font.Font {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = stdfont.WeightBold
	}
	return f
}

// Heights of a raised and a lowered run, and their size, in units of the text's size.
const (
	scriptSize  = 0.72
	scriptRaise = 0.36
	scriptDrop  = 0.16
)

// set returns the face of a run in a text of font f, and its height above the baseline.
func set(r text.Run, f font.Font) (face font.Face, up vg.Length) {
	switch {
	case r.Level > 0:
		return fonts.Lookup(f, f.Size*scriptSize), f.Size * scriptRaise
	case r.Level < 0:
		return fonts.Lookup(f, f.Size*scriptSize), -f.Size * scriptDrop
	}
	return fonts.Lookup(f, f.Size), 0
}

// textWidth returns the width of one line of text.
func textWidth(s string, size vg.Length, bold bool) (w vg.Length) {
	for _, r := range text.Runs(s) {
		face, _ := set(r, fontOf(size, bold))
		w += face.Width(r.Text)
	}
	return w
}

// pen draws text, markers and frames on a canvas.
type pen struct{ vg.Canvas }

// text writes one line with its baseline at pt, aligned there by the fraction align of
// its width (0 left, ½ center, 1 right), turned by a quarter to the left if up.
func (p pen) text(s string, pt vg.Point, size vg.Length, clr color.Color, align float64, bold, up bool) {
	if s == "" {
		return
	}
	p.Push()
	defer p.Pop()
	p.SetColor(clr)
	if up {
		p.Translate(pt)
		p.Rotate(math.Pi / 2)
		pt = vg.Point{}
	}
	pt.X -= vg.Length(align) * textWidth(s, size, bold)
	for _, r := range text.Runs(s) {
		face, up := set(r, fontOf(size, bold))
		p.FillString(face, pt.Add(point(0, up)), r.Text)
		pt.X += face.Width(r.Text)
	}
}
