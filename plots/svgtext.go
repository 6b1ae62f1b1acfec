package plots

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

// In SVG a line of text is one text element, its raised and lowered runs are tspan elements within,
// and the element says at which end it is anchored and how long it is: the line then holds
// together in any font, though its place was computed with the widths of Liberation Sans.
// The canvas knows no such thing. What it is given is the line with marks, which flow
// replaces in the document. A mark is a private-use character, which oneLine removes from labels.

// The marks: at the start of a line, the anchor and the length (of digits); of a run, its level.
const (
	markStart  = '\ue000' // + 0, 1, 2: anchored at the start, the middle, the end
	markLength = '\ue003' // ends the length
	markPlain  = '\ue004' // a run at the line's height
	markRaised = '\ue005'
	markLow    = '\ue006'
)

// isMark reports whether a character is private, and so of no use in a label.
func isMark(r rune) bool { return r >= '\ue000' && r <= '\uf8ff' }

// marked writes a line as flow reads it.
func marked(s string, length vg.Length, align float64) string {
	var b strings.Builder
	b.WriteRune(markStart + rune(2*align+0.5))
	b.WriteString(strconv.FormatFloat(length.Points(), 'f', 2, 64))
	b.WriteRune(markLength)
	for _, r := range runs(s) {
		b.WriteRune([...]rune{markLow, markPlain, markRaised}[r.level+1])
		b.WriteString(r.text)
	}
	return b.String()
}

var (
	markedText = regexp.MustCompile(`<text ([^>]*)>([\x{e000}-\x{e002}])([0-9.]+)\x{e003}([^<]*)</text>`)
	fontSize   = regexp.MustCompile(`font-size:([0-9.]+)px`)
	markedRun  = regexp.MustCompile(`([\x{e004}-\x{e006}])([^\x{e004}-\x{e006}]*)`)
)

// flow replaces the marked lines of an SVG document by text elements with tspans.
func flow(svg []byte) []byte {
	return markedText.ReplaceAllFunc(svg, func(element []byte) []byte {
		m := markedText.FindSubmatch(element)
		anchor := []string{"start", "middle", "end"}[[]rune(string(m[2]))[0]-markStart]
		size := 10.0
		if f := fontSize.FindSubmatch(m[1]); f != nil {
			size, _ = strconv.ParseFloat(string(f[1]), 64)
		}
		var b strings.Builder
		fmt.Fprintf(&b, `<text %s text-anchor="%s" textLength="%s" lengthAdjust="spacingAndGlyphs" xml:space="preserve">`, m[1], anchor, m[3])
		at := 0.0 // height of the run before, down
		for _, r := range markedRun.FindAllStringSubmatch(string(m[4]), -1) {
			to, small := 0.0, ""
			switch []rune(r[1])[0] {
			case markRaised:
				to, small = -size*scriptRaise, fmt.Sprintf(` font-size="%.4gpx"`, size*scriptSize)
			case markLow:
				to, small = size*scriptDrop, fmt.Sprintf(` font-size="%.4gpx"`, size*scriptSize)
			}
			if to == at {
				b.WriteString(r[2])
				continue
			}
			fmt.Fprintf(&b, `<tspan dy="%.4g"%s>%s</tspan>`, to-at, small, r[2])
			at = to
		}
		return []byte(b.String() + "</text>")
	})
}
