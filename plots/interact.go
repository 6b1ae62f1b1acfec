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

// The data of a figure as its script takes them.
type (
	figureData struct {
		Panels   []panelData   `json:"panels"`
		ShareX   bool          `json:"shareX,omitempty"`
		Controls *controlsData `json:"controls,omitempty"`
	}
	panelData struct {
		Box    numbers      `json:"box"` // left, bottom, right, top, in points
		X      axisData     `json:"x"`
		Y      axisData     `json:"y"`
		Series []seriesData `json:"series"`
		H      [][2]any     `json:"h"` // reference lines
		V      [][2]any     `json:"v"`
		Marks  [][3]any     `json:"marks"`
		Map    *mapData     `json:"map,omitempty"`
		Fixed  bool         `json:"fixed,omitempty"` // values on hover only
		HideX  bool         `json:"hideX,omitempty"`
	}
	axisData struct {
		Log   bool    `json:"log"`
		Min   float64 `json:"min"`
		Max   float64 `json:"max"`
		Label string  `json:"label"`
	}
	seriesData struct {
		Name   string  `json:"n"`
		Style  string  `json:"s"`
		Color  string  `json:"c"`
		Dashes string  `json:"d"`
		Marker string  `json:"m"`
		X      numbers `json:"x"`
		Y      numbers `json:"y"`
		Lo     numbers `json:"lo,omitempty"`
		Hi     numbers `json:"hi,omitempty"`
	}
	mapData struct {
		Label string    `json:"label"`
		X     numbers   `json:"x"`
		Y     numbers   `json:"y"`
		Z     []numbers `json:"z"`
	}
	controlsData struct {
		Name    string   `json:"name"`
		Sliders []Slider `json:"sliders"`
		Data    any      `json:"data"`
	}
)

// data returns the JSON for the script, of a figure that was drawn.
func (f *Figure) data(drawn []*drawing) string {
	out := figureData{ShareX: f.ShareX}
	for _, d := range drawn {
		out.Panels = append(out.Panels, d.data())
	}
	if c := f.Controls; c != nil {
		out.Controls = &controlsData{c.Name, slices.Clone(c.Sliders), c.Data}
		for i, s := range c.Sliders {
			out.Controls.Sliders[i].Name = flat(s.Name)
		}
	}
	b, err := json.Marshal(out) // which writes < as \u003c
	if err != nil {
		b, _ = json.Marshal(figureData{})
	}
	return string(b)
}

// data returns the data of one plot as it was drawn.
func (d *drawing) data() panelData {
	axis := func(s *scale) axisData { return axisData{s.of.Log, s.min, s.max, flat(s.of.Label)} }
	f := d.f
	p := panelData{
		Box: numbers{d.box.Min.X.Points(), d.box.Min.Y.Points(), d.box.Max.X.Points(), d.box.Max.Y.Points()},
		X:   axis(d.x), Y: axis(d.y), HideX: d.hideX, Fixed: f.Map != nil,
		Series: []seriesData{}, H: lines(f.HLines), V: lines(f.VLines), Marks: [][3]any{},
	}
	for i := range f.Series {
		p.Series = append(p.Series, d.seriesData(i))
	}
	for _, m := range f.Marks {
		if f.X.shows(m.X) && f.Y.shows(m.Y) {
			p.Marks = append(p.Marks, [3]any{m.X, m.Y, flat(m.Label)})
		}
	}
	if m := f.Map; m != nil {
		p.Map = &mapData{Label: flat(m.Color.Label), X: m.X, Y: m.Y}
		for _, row := range m.Z {
			p.Map.Z = append(p.Map.Z, row)
		}
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

func (d *drawing) seriesData(i int) seriesData {
	s, l := &d.f.Series[i], d.lookOf(i)
	out := seriesData{Name: flat(s.Name), Style: []string{"line", "points", "steps"}[s.Style],
		Color: fmt.Sprintf("#%02X%02X%02X", l.color.R, l.color.G, l.color.B), Marker: markers[l.marker].svg(),
		X: numbers{}, Y: numbers{}}
	for _, w := range l.dash {
		out.Dashes = strings.TrimSpace(fmt.Sprintf("%s %g", out.Dashes, w.Points()))
	}
	var last vg.Point
	for j, y := range s.Y {
		x := s.x(j)
		if len(s.Y) > mostSamples && j > 0 && j < len(s.Y)-1 && d.f.X.shows(x) && d.f.Y.shows(y) {
			at := vg.Point{X: d.px(x), Y: d.py(y)}
			if distance(at, last) < 0.25 {
				continue
			}
			last = at
		}
		out.X, out.Y = append(out.X, x), append(out.Y, y)
		if s.Lo != nil {
			out.Lo, out.Hi = append(out.Lo, s.Lo[j]), append(out.Hi, s.Hi[j])
		}
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
