package plots

import (
	_ "embed"
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/krrlab/lab/plots/internal/text"
)

//go:embed interact.js
var interactJS string

// script is interact.js as a figure carries it: without comments and indents.
var liveScript = "<script>" + slim(interactJS) + "</script>\n"

// slim takes the lines of comment and the indents out of a script.
func slim(js string) string { return jsSpace.ReplaceAllString(js, "") }

var jsSpace = regexp.MustCompile(`(?m)^\s+|^\s*//.*\n`)

// Controls are the sliders of an interactive figure and the computation that they drive.
type Controls struct {
	Sliders []Slider
	// Name is that of the computation, Script the JavaScript expression of a function
	//
	//	(data, values, number) => ({text, numbers: {name: value}, at: [{x, y}]})
	//
	// of Data, as encoding/json writes it, of the sliders' values and of a function that writes a number.
	// text is shown below the sliders; at has, for each panel, where a line and a dot stand.
	Name, Script string
	Data         any
}

// Slider is one number to choose: from Min to Max, or one of Values.
type Slider struct {
	Name   string    `json:"name"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Value  float64   `json:"value"` // at first
	Log    bool      `json:"log"`
	Values []float64 `json:"values,omitempty"`
}

// HTML returns the figure as an HTML figure element: inline SVG, the Caption, and the data with a small script
// that makes it answer: it shows values on hover, zooms, switches series and logarithms, and has the Controls.
// Without scripts the picture is the same. A figure that cannot be drawn is the reason as a pre element.
func (f *Figure) HTML() string {
	if err := f.drawable(); err != nil {
		return "<pre>" + html.EscapeString(text.OneLine(err.Error())) + "</pre>\n"
	}
	svg, data := drawer.Interactive(f)
	var b strings.Builder
	b.WriteString("<figure class=\"krr-figure\">\n" + svg)
	if f.Caption != "" {
		b.WriteString("<figcaption>" + text.Markup(f.Caption) + "</figcaption>\n")
	}
	b.WriteString(`<script type="application/json">` + data + "</script>\n")
	if c := f.Controls; c != nil {
		fmt.Fprintf(&b, "<script>(window.krrControls ??= {})[%q] = %s;</script>\n", c.Name,
			strings.TrimSpace(slim(c.Script)))
	}
	b.WriteString(liveScript + "</figure>\n")
	return b.String()
}

// OneScript leaves in a page of several figures one copy of their script.
func OneScript(page string) string {
	n := strings.Count(page, liveScript)
	return strings.Replace(page, liveScript, "", max(n-1, 0)) // the last one finds the figures before it
}

// page returns the figure as a whole HTML document.
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
