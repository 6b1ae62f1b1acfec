package plots

import (
	"image/color"
	"math"
	"strings"
	"unicode"

	stdfont "golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/vg"
)

// fonts holds Liberation Sans, whose metrics are those of Helvetica and Arial.
var fonts = font.NewCache(liberation.Collection())

// face returns the one typeface of the package at a size in points.
func face(size vg.Length, bold bool) font.Face {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = stdfont.WeightBold
	}
	return fonts.Lookup(f, size)
}

// run is a piece of text at one height: level +1 is raised, −1 lowered.
type run struct {
	text  string
	level int
}

const (
	raised   = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺⁽⁾ⁿᵀ"
	raisedP  = "0123456789−+()nT"
	lowered  = "₀₁₂₃₄₅₆₇₈₉₋₊₍₎ₐₑᵢⱼₖₘₙₚₛₜ"
	loweredP = "0123456789−+()aeijkmnpst"
)

// translate maps the super- and subscript characters to plain ones.
var translate = func() map[rune]run {
	m := map[rune]run{'ℝ': {"R", 0}, '‑': {"-", 0}}
	for _, t := range []struct {
		from, to string
		level    int
	}{{raised, raisedP, 1}, {lowered, loweredP, -1}} {
		to := []rune(t.to)
		for i, r := range []rune(t.from) {
			m[r] = run{string(to[i]), t.level}
		}
	}
	return m
}()

// runs splits a line of text by height. See the package documentation for the rules.
func runs(s string) []run {
	var out []run
	add := func(text string, level int) {
		if n := len(out); n > 0 && out[n-1].level == level {
			out[n-1].text += text
		} else if text != "" {
			out = append(out, run{text, level})
		}
	}
	rs := []rune(oneLine(s))
	for i := 0; i < len(rs); i++ {
		if group, next, ok := script(rs, i); ok {
			level := -1
			if rs[i] == '^' {
				level = 1
			}
			add(group, level)
			i = next - 1
			continue
		}
		if t, ok := translate[rs[i]]; ok {
			add(t.text, t.level)
			continue
		}
		add(string(rs[i]), 0)
	}
	return out
}

// script reads the sub- or superscript that starts at rs[i], and returns its text and
// the index behind it.
func script(rs []rune, i int) (group string, next int, ok bool) {
	if rs[i] != '_' && rs[i] != '^' || i == 0 || i+1 >= len(rs) {
		return "", 0, false
	}
	if rs[i+1] == '{' {
		if n := strings.IndexRune(string(rs[i+2:]), '}'); n >= 0 {
			g := []rune(string(rs[i+2:])[:n])
			return strings.ReplaceAll(string(g), "-", "−"), i + 3 + len(g), true
		}
		return "", 0, false
	}
	word := func(j int) bool {
		return j >= 0 && j < len(rs) && (unicode.IsLetter(rs[j]) || unicode.IsDigit(rs[j]) || rs[j] == '_')
	}
	if unicode.IsLetter(rs[i-1]) && !word(i-2) && word(i+1) && rs[i+1] != '_' && !word(i+2) {
		return string(rs[i+1]), i + 2, true
	}
	return "", 0, false
}

// Heights of a raised and a lowered run, and their size, in units of the text's size.
const (
	scriptSize  = 0.72
	scriptRaise = 0.36
	scriptDrop  = 0.16
)

// pen draws text on a canvas.
type pen struct {
	vg.Canvas
	outline bool // for PDF: fill the outlines of the glyphs instead of writing text
	flows   bool // for SVG: a line is one element, whose runs follow each other in any font
}

// textWidth returns the width of one line of text.
func textWidth(s string, size vg.Length, bold bool) (w vg.Length) {
	for _, r := range runs(s) {
		sz := size
		if r.level != 0 {
			sz *= scriptSize
		}
		f := face(sz, bold)
		w += f.Width(r.text)
	}
	return w
}

// text writes one line with its baseline at pt, aligned there by the fraction align of
// its width (0 left, ½ centre, 1 right), turned by a quarter to the left if up.
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
	width := textWidth(s, size, bold)
	if p.flows {
		p.FillString(face(size, bold), pt, marked(s, width, align))
		return
	}
	pt.X -= vg.Length(align) * width
	for _, r := range runs(s) {
		sz, at := size, pt
		switch {
		case r.level > 0:
			sz, at.Y = size*scriptSize, pt.Y+size*scriptRaise
		case r.level < 0:
			sz, at.Y = size*scriptSize, pt.Y-size*scriptDrop
		}
		f := face(sz, bold)
		if p.outline {
			p.fillOutline(f, at, r.text)
		} else {
			p.FillString(f, at, r.text)
		}
		pt.X += f.Width(r.text)
	}
}

// fillOutline fills the glyphs of s with their baseline at pt.
func (p pen) fillOutline(f font.Face, pt vg.Point, s string) {
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
			p.Fill(path)
		}
		x = pt.X + f.Width(s[:i+len(string(r))])
	}
}
