// Package draw draws the figures of package plots, in SVG, PNG and PDF. A program that draws figures imports it:
//
//	import _ "github.com/krrlab/lab/plots/draw"
//
// It is a separate package because it depends on gonum/plot, its fonts and some fifty further packages. Programs that
// draw nothing do not need them.
package draw

import (
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/krrlab/lab/plots"
)

// init registers the drawer with package plots.
func init() { plots.Register(drawer{}) }

// drawer implements plots.Drawer.
type drawer struct{}

// Draw returns the figure in the format "svg", "png" or "pdf".
func (drawer) Draw(f *plots.Figure, format string) ([]byte, error) {
	w, h := sizeOf(f)
	return document{format, w, h, f.Title, f.Caption}.render(func(p pen, w, h vg.Length) { drawTo(f, p, w, h) })
}

// DrawText draws the line as the title of an empty figure.
func (drawer) DrawText(line, format string) []byte {
	const width, height = 6.5, 0.5 // inches
	encoded, err := document{format, width, height, "", line}.render(func(p pen, w, h vg.Length) {
		(&drawing{figure: &plots.Figure{Title: line}, pen: p, width: w, height: h}).drawTitle()
	})
	if err != nil { // writing to memory does not fail
		panic(err)
	}
	return encoded
}

// Interactive returns the figure as an SVG element whose parts are grouped, and the data for its script as JSON.
func (drawer) Interactive(f *plots.Figure) (svg, data string) {
	var drawings []*drawing
	w, h := sizeOf(f)
	doc := document{"groups", w, h, f.Title, f.Caption}
	encoded, err := doc.render(func(p pen, w, h vg.Length) { drawings = drawTo(f, p, w, h) })
	if err != nil { // writing to memory does not fail
		panic(err)
	}
	_, svg, _ = strings.Cut(string(encoded), "<svg ")
	return `<svg style="max-width:100%;height:auto" ` + svg, figureData(f, drawings)
}
