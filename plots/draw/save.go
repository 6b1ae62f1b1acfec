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

// document describes a drawing to encode.
type document struct {
	format         string  // "svg", "png", "pdf", or "groups" for SVG with the groups of pen.group
	width, height  float64 // in inches
	title, caption string  // SVG contains them for screen readers
}

// render calls draw with a canvas of the document's size, w×h points, and returns the encoded document. A format other
// than those of SVG and "png" is taken for "pdf".
func (d document) render(draw func(p pen, w, h vg.Length)) ([]byte, error) {
	w, h := vg.Length(d.width)*vg.Inch, vg.Length(d.height)*vg.Inch
	var buf bytes.Buffer
	switch d.format {
	case "svg", "groups":
		canvas := vgsvg.New(w, h)
		draw(pen{svgCanvas{canvas, d.format == "groups"}}, w, h)
		_, err := canvas.WriteTo(&buf)
		return finishSVG(buf.Bytes(), d.title, d.caption), err
	case "png":
		canvas := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(plots.DotsPerInch),
			vgimg.UseBackgroundColor(backgroundColor))
		draw(pen{canvas}, w, h)
		return encodePNG(canvas.Image())
	}
	canvas := vgpdf.New(w, h)
	draw(pen{pdfCanvas{canvas}}, w, h)
	_, err := canvas.WriteTo(&buf)
	return pdfDate.ReplaceAll(buf.Bytes(), []byte("${1}20000101000000")), err
}

// svgCanvas is an SVG canvas that records the length of each text. A viewer then fits the text to this length in any
// font, so that raised and lowered runs of a line, which are placed with the widths of Liberation Sans, do not
// overlap.
//
// The canvas of vgsvg has no such attribute. FillString therefore writes the length between two marks before the text,
// and finishSVG converts it to an attribute. The marks are private-use characters, which text.OneLine removes from
// labels.
type svgCanvas struct {
	*vgsvg.Canvas
	hasGroups bool // pen.group writes groups, for the script of the interactive figure
}

// FillString implements vg.Canvas.
func (c svgCanvas) FillString(f font.Face, pt vg.Point, s string) {
	c.Canvas.FillString(f, pt, fmt.Sprintf("\ue000%.2f\ue001%s", f.Width(s).Points(), s))
}

// These expressions match the marks that FillString and group write, and the font in a style.
var (
	textLength = regexp.MustCompile(`>\x{e000}([0-9.]+)\x{e001}`)
	fontFamily = regexp.MustCompile(`font-family:[^;"]*`)
	groupBegin = regexp.MustCompile(`<text[^>]*>\x{e002}([^\x{e003}]*)\x{e003}([^<]*)</text>`)
	groupEnd   = regexp.MustCompile(`<text[^>]*>\x{e004}</text>`)
)

// group calls draw. On an SVG canvas with groups, it encloses the result in a group with a class and a name, for the
// script of the interactive figure. The group's begin and end are written as texts with marks, which finishSVG
// replaces.
func (p pen) group(class, name string, draw func()) {
	canvas, ok := p.Canvas.(svgCanvas)
	mark := func(s string) {
		if ok && canvas.hasGroups {
			canvas.Canvas.FillString(fonts.Lookup(fontOf(1, stdfont.WeightNormal), 1), vg.Point{}, s)
		}
	}
	mark("\ue002" + class + "\ue003" + text.Flat(name))
	draw()
	mark("\ue004")
}

// finishSVG inserts the title and the caption into an SVG document, for screen readers. It also adds substitutes of the
// same metrics to the font, and replaces the marks of svgCanvas by groups and by attributes with the texts' lengths.
func finishSVG(svg []byte, title, caption string) []byte {
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

// pdfCanvas works around two defects of vgpdf. Its fonts have no Greek letters, so pdfCanvas draws text as outlines.
// It also writes translucent colors premultiplied by their opacity, so pdfCanvas passes them unpremultiplied.
type pdfCanvas struct{ *vgpdf.Canvas }

// unpremultiplied is a color whose RGBA method returns components that are not multiplied by the opacity. It violates
// the contract of color.Color, but vgpdf writes the components and the opacity separately and without conversion.
type unpremultiplied color.NRGBA

// RGBA returns the 16-bit components.
func (c unpremultiplied) RGBA() (r, g, b, a uint32) {
	return uint32(c.R) * 0x101, uint32(c.G) * 0x101, uint32(c.B) * 0x101, uint32(c.A) * 0x101
}

// SetColor implements vg.Canvas.
func (c pdfCanvas) SetColor(clr color.Color) {
	c.Canvas.SetColor(unpremultiplied(nrgba(cmp.Or[color.Color](clr, color.Black))))
}

// FillString implements vg.Canvas: it fills the glyphs of s with their baseline at pt.
func (c pdfCanvas) FillString(f font.Face, pt vg.Point, s string) {
	var buf sfnt.Buffer
	em := fixed.Int26_6(f.Face.UnitsPerEm())
	unit := f.Font.Size / vg.Length(em)
	for i, r := range s {
		x := pt.X + f.Width(s[:i])
		toCanvas := func(q fixed.Point26_6) vg.Point {
			return point(x+vg.Length(q.X)*unit, pt.Y-vg.Length(q.Y)*unit)
		}
		idx, err := f.Face.GlyphIndex(&buf, r)
		segments, loadErr := f.Face.LoadGlyph(&buf, idx, em, nil)
		if cmp.Or(err, loadErr) != nil {
			continue
		}
		var path vg.Path // its curves need not be closed, because Fill closes them
		for _, s := range segments {
			switch a, b, c := toCanvas(s.Args[0]), toCanvas(s.Args[1]), toCanvas(s.Args[2]); s.Op {
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

// pdfDate matches the dates in a PDF file. They are replaced by a constant, so that the same figure always gives the
// same bytes. The constant has the same length, so that the file's table of offsets remains valid.
var pdfDate = regexp.MustCompile(`(/(?:Creation|Mod)Date \(D:)\d{14}`)

// colorTolerance is the largest difference of two components of a color, out of 255, that counts as invisible. A larger
// value makes PNG images smaller and their colors less accurate.
const colorTolerance = 12

// encodePNG encodes an image. The image gets a palette if 256 colors are enough to approximate all pixels; lines and
// text then need a fourth of the bytes.
func encodePNG(img image.Image) ([]byte, error) {
	if paletted := withPalette(img); paletted != nil {
		img = paletted
	}
	var encoded bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&encoded, img)
	return encoded.Bytes(), err
}

// withPalette returns the image with a palette of at most 256 colors, which begins with the colors of the style and of
// maps. Each pixel gets a color that looks like its own. withPalette returns nil if the image has too many colors.
func withPalette(img image.Image) *image.Paletted {
	var colors color.Palette
	for _, styleColor := range append(palette, backgroundColor, textColor, axisColor, gridColor, minorGridColor) {
		colors = append(colors, color.RGBA(styleColor))
	}
	for k := range stripCount { // without them, one color of a map would stand for several that look like it
		colors = append(colors, color.RGBA(stripColor(k)))
	}
	index := map[color.RGBA]int{} // palette indices by pixel color
	bounds := img.Bounds()
	out := image.NewPaletted(bounds, nil)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			pixel := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			k, isIndexed := index[pixel]
			if !isIndexed {
				k = colors.Index(pixel)
				switch hasMatch := looksAlike(colors[k].(color.RGBA), pixel); {
				case !hasMatch && len(colors) == 256:
					return nil
				case !hasMatch:
					k, colors = len(colors), append(colors, pixel)
				}
				index[pixel] = k
			}
			out.SetColorIndex(x, y, uint8(k))
		}
	}
	out.Palette = colors
	return out
}

// looksAlike reports whether two colors look the same.
func looksAlike(a, b color.RGBA) bool {
	differ := func(x, y uint8) bool { return max(x, y)-min(x, y) > colorTolerance }
	return !differ(a.R, b.R) && !differ(a.G, b.G) && !differ(a.B, b.B) && !differ(a.A, b.A)
}

// fonts contains Liberation Sans, which has the metrics of Helvetica and Arial.
var fonts = font.DefaultCache

// fontOf returns the font of all texts, Liberation Sans, at a size in points.
func fontOf(size vg.Length, weight stdfont.Weight) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: size}
}

// Size and position of superscripts and subscripts, in units of the text's size.
const (
	scriptSize  = 0.72 // font size of superscripts and subscripts
	scriptRaise = 0.36 // distance of a superscript's baseline above that of the text
	scriptDrop  = 0.16 // distance of a subscript's baseline below that of the text
)

// runFace returns the face of a run in a text of font f, and the height of the run's baseline above that of the text.
func runFace(r text.Run, f font.Font) (face font.Face, height vg.Length) {
	switch {
	case r.Level > 0:
		return fonts.Lookup(f, f.Size*scriptSize), f.Size * scriptRaise
	case r.Level < 0:
		return fonts.Lookup(f, f.Size*scriptSize), -f.Size * scriptDrop
	}
	return fonts.Lookup(f, f.Size), 0
}

// textWidth returns the width of one line of text of normal weight.
func textWidth(s string, size vg.Length) vg.Length { return textStyle{size: size}.width(s) }

// boldWidth returns the width of one line of bold text.
func boldWidth(s string, size vg.Length) vg.Length {
	return textStyle{size: size, weight: stdfont.WeightBold}.width(s)
}

// textStyle describes the appearance and the alignment of one line of text.
type textStyle struct {
	size        vg.Length // font size in points
	weight      stdfont.Weight
	color       color.Color
	align       float64 // fraction of the width before the given point: 0 left, ½ center, 1 right
	orientation orientation
}

// width returns the width of one line of text in the style's size and weight.
func (style textStyle) width(s string) (w vg.Length) {
	for _, r := range text.Runs(s) {
		face, _ := runFace(r, fontOf(style.size, style.weight))
		w += face.Width(r.Text)
	}
	return w
}

// pen draws text, markers and frames on a canvas.
type pen struct{ vg.Canvas }

// text writes one line of text with its baseline at pt, aligned there. Vertical text is rotated by 90°
// counterclockwise.
func (p pen) text(s string, pt vg.Point, style textStyle) {
	if s == "" {
		return
	}
	p.Push()
	defer p.Pop()
	p.SetColor(style.color)
	if style.orientation == vertical {
		p.Translate(pt)
		p.Rotate(math.Pi / 2)
		pt = vg.Point{}
	}
	pt.X -= vg.Length(style.align) * style.width(s)
	for _, r := range text.Runs(s) {
		face, height := runFace(r, fontOf(style.size, style.weight))
		p.FillString(face, pt.Add(point(0, height)), r.Text)
		pt.X += face.Width(r.Text)
	}
}
