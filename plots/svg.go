package plots

import (
	"bytes"
	"fmt"
	"html"
	"regexp"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// svgCanvas says how long each text is, so that a line of raised and lowered runs holds
// together in any font, though the runs were placed with the widths of Liberation Sans.
// The canvas of vgsvg knows no such thing: it is given the length between two marks
// before the text, which describe makes an attribute. The marks are private-use
// characters, which oneLine removes from labels.
type svgCanvas struct{ *vgsvg.Canvas }

// FillString implements vg.Canvas.
func (c svgCanvas) FillString(f font.Face, pt vg.Point, s string) {
	c.Canvas.FillString(f, pt, fmt.Sprintf("\ue000%.2f\ue001%s", f.Width(s).Points(), s))
}

// isMark reports whether a character is private, and so of no use in a label.
func isMark(r rune) bool { return r >= '\ue000' && r <= '\uf8ff' }

var (
	textLength = regexp.MustCompile(`>\x{e000}([0-9.]+)\x{e001}`)
	fontFamily = regexp.MustCompile(`font-family:[^;"]*`)
)

// describe puts the title and the caption into an SVG document, for those who listen
// to it, names substitutes of the same metrics for the font, and sets the texts' lengths.
func describe(svg []byte, title, caption string) []byte {
	svg = fontFamily.ReplaceAll(svg, []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif"))
	svg = textLength.ReplaceAll(svg, []byte(` textLength="$1" lengthAdjust="spacingAndGlyphs" xml:space="preserve">`))
	head := ">\n"
	if title != "" {
		head += "<title>" + html.EscapeString(oneLine(title)) + "</title>\n"
	}
	if caption != "" {
		head += "<desc>" + html.EscapeString(oneLine(caption)) + "</desc>\n"
	}
	svg = bytes.Replace(svg, []byte(">\n<g"), []byte(head+"<g"), 1)
	return bytes.Replace(svg, []byte("<svg "), []byte(`<svg role="img" `), 1)
}
