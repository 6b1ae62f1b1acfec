package plots

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/krrlab/lab/krrlab/atomicfile"
)

// DotsPerInch is the resolution of PNG.
const DotsPerInch = 160

// CheckFormat reports whether Save knows the format that a file's name asks for; ask
// before a long computation whose figure is to be saved.
func CheckFormat(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg", ".png", ".pdf", ".html":
		return nil
	}
	return fmt.Errorf("plots: %s: the name of a figure ends in .svg, .png, .pdf or .html", path)
}

// Save writes the figure to a file in the format of its extension: .svg, .png, .pdf, or .html for a page that answers
// (HTML). The file is written whole or not at all: on an error, what was there before is still there.
func (f *Figure) Save(path string) error {
	if err := CheckFormat(path); err != nil {
		return err
	}
	b, err := f.encode(strings.ToLower(filepath.Ext(path))[1:])
	if err != nil {
		return err
	}
	return atomicfile.Put(path, b)
}

// SVG returns the figure as an SVG document. It implements a notebook's convention
// that a value shows itself, and so has no error: of a figure that Validate refuses it
// draws the reason. Save returns it.
func (f *Figure) SVG() string { return string(f.show("svg")) }

// PNG returns the figure as a PNG image, of the reason where it cannot be drawn.
func (f *Figure) PNG() []byte { return f.show("png") }

// show encodes the figure, or the reason why it cannot be drawn, as the title of an empty one.
func (f *Figure) show(format string) []byte {
	b, err := f.encode(format)
	if err != nil {
		message := oneLine(err.Error())
		b, err = render(format, 6.5, 0.5, "", message, func(p pen, w, h vg.Length) {
			(&drawing{f: &Figure{Title: message}, pen: p, w: w, h: h}).drawTitle()
		})
	}
	if err != nil { // writing to memory does not fail
		panic(err)
	}
	return b
}

// encode draws the figure in one of the formats.
func (f *Figure) encode(format string) ([]byte, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	if format == "html" {
		return f.page(), nil
	}
	w, h := f.size()
	return render(format, w, h, f.Title, f.Caption, func(p pen, w, h vg.Length) { f.drawTo(p, w, h) })
}

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
		c := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(DotsPerInch), vgimg.UseBackgroundColor(paper))
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

// isMark reports whether a character is private, and so of no use in a label.
func isMark(r rune) bool { return r >= '\ue000' && r <= '\uf8ff' }

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
	mark("\ue002" + class + "\ue003" + flat(name))
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
		head += "<title>" + html.EscapeString(flat(title)) + "</title>\n"
	}
	if caption != "" {
		head += "<desc>" + html.EscapeString(flat(caption)) + "</desc>\n"
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
			return vg.Point{X: x + vg.Length(q.X)*unit, Y: pt.Y - vg.Length(q.Y)*unit}
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
