// Package draw draws the figures of package plots, in SVG, PNG and PDF. A program that draws figures imports it:
//
//	import _ "github.com/krrlab/lab/plots/draw"
//
// It is a separate package for its dependencies, gonum/plot with its fonts and some fifty packages more, which programs
// that draw nothing do not need.
package draw

import (
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/krrlab/lab/plots"
)

func init() { plots.Register(drawer{}) }

// drawer implements plots.Drawer.
type drawer struct{}

func (drawer) Draw(f *plots.Figure, format string) ([]byte, error) {
	w, h := sizeOf(f)
	return render(format, w, h, f.Title, f.Caption, func(p pen, w, h vg.Length) { drawTo(f, p, w, h) })
}

// DrawText draws the line as the title of an empty figure.
func (drawer) DrawText(line, format string) []byte {
	b, err := render(format, 6.5, 0.5, "", line, func(p pen, w, h vg.Length) {
		(&drawing{f: &plots.Figure{Title: line}, pen: p, w: w, h: h}).drawTitle()
	})
	if err != nil { // writing to memory does not fail
		panic(err)
	}
	return b
}

func (drawer) Interactive(f *plots.Figure) (svg, data string) {
	var drawn []*drawing
	w, h := sizeOf(f)
	b, err := render("groups", w, h, f.Title, f.Caption, func(p pen, w, h vg.Length) { drawn = drawTo(f, p, w, h) })
	if err != nil { // writing to memory does not fail
		panic(err)
	}
	_, svg, _ = strings.Cut(string(b), "<svg ")
	return `<svg style="max-width:100%;height:auto" ` + svg, dataOf(f, drawn)
}
