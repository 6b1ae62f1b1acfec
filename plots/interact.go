package plots

import (
	_ "embed"
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/krrlab/lab/plots/internal/text"
)

// interactJS is the script of interactive figures.
//
//go:embed interact.js
var interactJS string

// scriptElement is the script element with interact.js that an interactive figure contains.
var scriptElement = "<script>" + minify(interactJS) + "</script>\n"

// minify removes the comment lines and the indentation from a script.
func minify(js string) string { return jsSpace.ReplaceAllString(js, "") }

// jsSpace matches a comment line or an indentation. The comment is first, since otherwise the indentation of a comment
// matches alone.
var jsSpace = regexp.MustCompile(`(?m)^\s*//.*\n|^\s+`)

// Controls are the sliders of an interactive figure and the computation that depends on them.
type Controls struct {
	Sliders []Slider
	// Name identifies the computation. Figures of one page with the same name use the same script.
	Name string
	// Script is the JavaScript expression of the computation, a function
	//
	//	(data, values, number) => ({text, numbers: {name: value}, at: [{x, y}]})
	//
	// data is Data in JSON, values are the values of the sliders, and number is a function that formats a number. text
	// is shown below the sliders. at contains, for each panel, the position of a vertical line and a dot.
	Script string
	// Data is passed to the computation as encoding/json encodes it.
	Data any
}

// Slider chooses a number between Min and Max, or one of Values.
type Slider struct {
	Name   string    `json:"name"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Value  float64   `json:"value"`            // initial value
	Log    bool      `json:"log"`              // the scale of the slider is logarithmic
	Values []float64 `json:"values,omitempty"` // if not nil, the only values that can be chosen
}

// HTML returns the figure as an HTML figure element. It contains the SVG, the Caption, and the data with a small
// script, which shows values on hover, zooms, hides series, switches to logarithmic axes, and runs the Controls. If
// scripts are forbidden, the picture is the same. If the figure cannot be drawn, HTML returns the error as a pre
// element.
func (f *Figure) HTML() string {
	if err := f.checkDrawable(); err != nil {
		return "<pre>" + html.EscapeString(text.OneLine(err.Error())) + "</pre>\n"
	}
	svg, data := drawer.Interactive(f)
	var element strings.Builder
	element.WriteString("<figure class=\"krr-figure\">\n" + svg)
	if f.Caption != "" {
		element.WriteString("<figcaption>" + text.Markup(f.Caption) + "</figcaption>\n")
	}
	element.WriteString(`<script type="application/json">` + data + "</script>\n")
	if controls := f.Controls; controls != nil {
		fmt.Fprintf(&element, "<script>(window.krrControls ??= {})[%q] = %s;</script>\n", controls.Name,
			strings.TrimSpace(minify(controls.Script)))
	}
	element.WriteString(scriptElement + "</figure>\n")
	return element.String()
}

// KeepLastScript returns a page with several figures in which only the last one contains their script.
func KeepLastScript(page string) string {
	n := strings.Count(page, scriptElement)
	return strings.Replace(page, scriptElement, "", max(n-1, 0)) // the script handles all figures before it
}

// page returns the figure as an HTML document.
func (f *Figure) page() []byte {
	return fmt.Appendf(nil, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>%s</title>
<style>body{font-family:sans-serif;color:#222;max-width:60em;margin:1em auto;padding:0 1em}figure{margin:0}`+
		`figure>svg{width:100%%}figcaption{margin-top:.5em}</style>
</head>
<body>
%s</body>
</html>
`, html.EscapeString(text.Flat(f.Title)), f.HTML())
}
