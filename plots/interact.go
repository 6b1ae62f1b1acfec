package plots

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

//go:embed interact.js
var interactJS string

// script is interact.js as a figure carries it: without comments and indents.
var liveScript = "<script>" + slim(interactJS) + "</script>\n"

// slim takes the lines of comment and the indents out of a script.
func slim(js string) string { return jsSpace.ReplaceAllString(js, "") }

var jsSpace = regexp.MustCompile(`(?m)^\s+|^\s*//.*\n`)

// Controls are the sliders of an interactive figure and what they compute.
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
	svg, drawn, err := f.inline()
	if err != nil {
		return "<pre>" + html.EscapeString(oneLine(err.Error())) + "</pre>\n"
	}
	var b strings.Builder
	b.WriteString("<figure class=\"krr-figure\">\n" + svg)
	if f.Caption != "" {
		b.WriteString("<figcaption>" + markup(f.Caption) + "</figcaption>\n")
	}
	b.WriteString(`<script type="application/json">` + f.data(drawn) + "</script>\n")
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

// inline returns the drawing as an svg element that fits its page, and what was drawn.
func (f *Figure) inline() (svg string, drawn []*drawing, err error) {
	if err := f.Validate(); err != nil {
		return "", nil, err
	}
	w, h := f.size()
	b, err := render("groups", w, h, f.Title, f.Caption, func(p pen, w, h vg.Length) { drawn = f.drawTo(p, w, h) })
	_, svg, _ = strings.Cut(string(b), "<svg ")
	return `<svg style="max-width:100%;height:auto" ` + svg, drawn, err
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
`, html.EscapeString(flat(f.Title)), f.HTML())
}

// numbers are values as JSON has them: null for NaN, and a number beyond all others for an infinite one.
type numbers []float64

// MarshalJSON implements json.Marshaler.
func (v numbers) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case math.IsNaN(x):
			b = append(b, "null"...)
		case math.IsInf(x, 0):
			b = append(b, map[bool]string{true: "1e999", false: "-1e999"}[x > 0]...)
		default:
			b = strconv.AppendFloat(b, x, 'g', 8, 64)
		}
	}
	return append(b, ']'), nil
}

// object is a part of the data of a figure, as its script takes them.
type object map[string]any

// data returns the JSON for the script, of a figure that was drawn.
func (f *Figure) data(drawn []*drawing) string {
	var panels []object
	for _, d := range drawn {
		panels = append(panels, d.data())
	}
	out := object{"panels": panels, "shareX": f.ShareX}
	if c := f.Controls; c != nil {
		sliders := slices.Clone(c.Sliders)
		for i := range sliders {
			sliders[i].Name = flat(sliders[i].Name)
		}
		out["controls"] = object{"name": c.Name, "sliders": sliders, "data": c.Data}
	}
	b, err := json.Marshal(out) // which writes < as \u003c
	if err != nil {
		return `{"panels":null}`
	}
	return string(b)
}

// data returns the data of one plot as it was drawn: the sides of its box (left, bottom, right, top) in points, axes,
// series, reference lines (h and v), marks, and the cells of a map, which is fixed: it has values on hover only.
func (d *drawing) data() object {
	axis := func(s *scale) object {
		return object{"log": s.of.Log, "min": s.min, "max": s.max, "label": flat(s.of.Label)}
	}
	f, low, high := d.f, d.box.Min, d.box.Max
	series, marks := []object{}, [][3]any{}
	for i := range f.Series {
		series = append(series, d.seriesData(i))
	}
	for _, m := range f.Marks {
		if f.X.shows(m.X) && f.Y.shows(m.Y) {
			marks = append(marks, [3]any{m.X, m.Y, flat(m.Label)})
		}
	}
	p := object{"box": numbers{low.X.Points(), low.Y.Points(), high.X.Points(), high.Y.Points()},
		"x": axis(d.x), "y": axis(d.y), "series": series, "h": lines(f.HLines), "v": lines(f.VLines), "marks": marks,
		"hideX": d.hideX, "fixed": f.Map != nil}
	if m := f.Map; m != nil {
		var rows []numbers
		for _, row := range m.Z {
			rows = append(rows, row)
		}
		p["map"] = object{"label": flat(m.Color.Label), "x": numbers(m.X), "y": numbers(m.Y), "z": rows}
	}
	return p
}

func lines(of []RefLine) [][2]any {
	out := [][2]any{}
	for _, l := range of {
		if !math.IsNaN(l.At) && !math.IsInf(l.At, 0) {
			out = append(out, [2]any{l.At, flat(l.Label)})
		}
	}
	return out
}

// mostSamples is how many samples of a series the script has; of a longer one those that are not drawn
// on the place of the one before.
const mostSamples = 4000

// seriesData returns the data of series i: its name, style, color, dashes, marker and samples.
func (d *drawing) seriesData(i int) object {
	s, l := &d.f.Series[i], d.lookOf(i)
	dashes := ""
	for _, w := range l.dash {
		dashes = strings.TrimSpace(fmt.Sprintf("%s %g", dashes, w.Points()))
	}
	var last vg.Point
	x, y, lo, hi := numbers{}, numbers{}, numbers{}, numbers{}
	for j, v := range s.Y {
		at := vg.Point{X: d.px(s.x(j)), Y: d.py(v)}
		if len(s.Y) > mostSamples && j > 0 && j < len(s.Y)-1 && d.f.X.shows(s.x(j)) && d.f.Y.shows(v) {
			if distance(at, last) < 0.25 {
				continue
			}
			last = at
		}
		x, y = append(x, s.x(j)), append(y, v)
		if s.Lo != nil {
			lo, hi = append(lo, s.Lo[j]), append(hi, s.Hi[j])
		}
	}
	out := object{"n": flat(s.Name), "s": []string{"line", "points", "steps"}[s.Style], "d": dashes, "x": x, "y": y,
		"c": fmt.Sprintf("#%02X%02X%02X", l.color.R, l.color.G, l.color.B), "m": markers[l.marker].svg()}
	if s.Lo != nil {
		out["lo"], out["hi"] = lo, hi
	}
	return out
}

// svg returns the marker around the origin as the data of a path.
func (m shape) svg() string {
	if m.corners == 0 {
		r := float64(m.outer * markRadius)
		return fmt.Sprintf("M%.3g,0A%.3g,%.3g 0 1 0 %.3g,0A%.3g,%.3g 0 1 0 %.3g,0Z", r, r, r, -r, r, r, r)
	}
	d := "M"
	for i, c := range m.path(vg.Point{}, markRadius) {
		if c.Type == vg.CloseComp {
			break
		}
		if i > 0 {
			d += "L"
		}
		d += fmt.Sprintf("%.3g,%.3g", c.Pos.X.Points(), -c.Pos.Y.Points())
	}
	return d + "Z"
}
