package draw

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/krrlab/lab/plots"
	"github.com/krrlab/lab/plots/internal/text"
)

// jsonFloats is encoded in JSON as an array of numbers with 8 significant digits. NaN becomes null, and ±Inf becomes
// ±1e999, which JavaScript reads as infinite.
type jsonFloats []float64

// MarshalJSON implements json.Marshaler.
func (v jsonFloats) MarshalJSON() ([]byte, error) {
	text := []byte{'['}
	for i, number := range v {
		if i > 0 {
			text = append(text, ',')
		}
		switch {
		case math.IsNaN(number):
			text = append(text, "null"...)
		case math.IsInf(number, 0):
			text = append(text, map[bool]string{true: "1e999", false: "-1e999"}[number > 0]...)
		default:
			text = strconv.AppendFloat(text, number, 'g', 8, 64)
		}
	}
	return append(text, ']'), nil
}

// jsonObject is a part of the data that are passed to the script of a figure.
type jsonObject map[string]any

// figureData returns the data for the script as JSON. drawings are the drawings of f that drawTo returned. If the data
// cannot be encoded, the result has no panels.
func figureData(f *plots.Figure, drawings []*drawing) string {
	var panels []jsonObject
	for _, d := range drawings {
		panels = append(panels, d.plotData())
	}
	out := jsonObject{"panels": panels, "shareX": f.ShareX}
	if controls := f.Controls; controls != nil {
		sliders := slices.Clone(controls.Sliders)
		for i := range sliders {
			sliders[i].Name = text.Flat(sliders[i].Name)
		}
		out["controls"] = jsonObject{"name": controls.Name, "sliders": sliders, "data": controls.Data}
	}
	text, err := json.Marshal(out) // writes < as \u003c, so that the data cannot end the script element
	if err != nil {
		return `{"panels":null}`
	}
	return string(text)
}

// plotData returns the data of one drawn plot: the sides of its box (left, bottom, right, top) in points, its axes,
// series, reference lines (h and v) and marks, and the cells of its map. A plot with a map or with names on an axis is
// fixed: it shows values on hover, but cannot be zoomed.
func (d *drawing) plotData() jsonObject {
	axis := func(s *scale) jsonObject {
		return jsonObject{"log": s.axis.Log, "min": s.min, "max": s.max, "label": text.Flat(s.axis.Label),
			"ticks": jsonFloats(s.axis.Ticks), "names": s.axis.Names}
	}
	f, low, high := d.figure, d.box.Min, d.box.Max
	series, marks := []jsonObject{}, [][3]any{}
	for i := range f.Series {
		series = append(series, d.seriesData(i))
	}
	for _, mark := range f.Marks {
		if f.X.Shows(mark.X) && f.Y.Shows(mark.Y) {
			marks = append(marks, [3]any{mark.X, mark.Y, text.Flat(mark.Label)})
		}
	}
	plot := jsonObject{"box": jsonFloats{low.X.Points(), low.Y.Points(), high.X.Points(), high.Y.Points()},
		"x": axis(d.x), "y": axis(d.y), "series": series, "h": refLineData(f.HLines), "v": refLineData(f.VLines),
		"marks": marks,
		"hideX": d.hideX, "fixed": f.Map != nil || f.X.Names != nil || f.Y.Names != nil}
	if m := f.Map; m != nil {
		var rows []jsonFloats
		for _, row := range m.Z {
			rows = append(rows, row)
		}
		plot["map"] = jsonObject{"label": text.Flat(m.Color.Label), "x": jsonFloats(m.X), "y": jsonFloats(m.Y),
			"z": rows}
	}
	return plot
}

// refLineData returns the position and the label of each line. A line whose position is not finite is omitted.
func refLineData(refLines []plots.RefLine) [][2]any {
	out := [][2]any{}
	for _, line := range refLines {
		if !math.IsNaN(line.At) && !math.IsInf(line.At, 0) {
			out = append(out, [2]any{line.At, text.Flat(line.Label)})
		}
	}
	return out
}

// thinningThreshold is the number of samples above which a series is thinned before it is passed to the script. A
// sample that the axes can show, other than the first and the last of the series, is then omitted if it is drawn less
// than minDistance from the previous such sample that was passed. Other samples are never omitted. A larger value makes
// larger pages, in which more samples can be seen after zooming. It is a judgment.
const thinningThreshold = 4000

// seriesData returns the data of series i: its name (n), style (s), color (c), dashes (d), marker (m), and samples (x,
// y, and lo and hi for a band).
func (d *drawing) seriesData(i int) jsonObject {
	s, style := &d.figure.Series[i], d.appearanceOf(i)
	dashes := ""
	for _, length := range style.dash {
		dashes = strings.TrimSpace(fmt.Sprintf("%s %g", dashes, length.Points()))
	}
	var previousPoint vg.Point
	x, y, lo, hi := jsonFloats{}, jsonFloats{}, jsonFloats{}, jsonFloats{}
	for j, v := range s.Y {
		pt := point(d.canvasX(s.Abscissa(j)), d.canvasY(v))
		if len(s.Y) > thinningThreshold && j > 0 && j < len(s.Y)-1 && d.figure.X.Shows(s.Abscissa(j)) &&
			d.figure.Y.Shows(v) {
			if distance(pt, previousPoint) < minDistance {
				continue
			}
			previousPoint = pt
		}
		x, y = append(x, s.Abscissa(j)), append(y, v)
		if s.Lo != nil {
			lo, hi = append(lo, s.Lo[j]), append(hi, s.Hi[j])
		}
	}
	out := jsonObject{"n": text.Flat(s.Name), "s": []string{"line", "points", "steps", "bars"}[s.Style], "d": dashes,
		"x": x,
		"y": y,
		"c": fmt.Sprintf("#%02X%02X%02X", style.color.R, style.color.G, style.color.B),
		"m": markers[style.marker].pathData(style.radius)}
	if s.Lo != nil {
		out["lo"], out["hi"] = lo, hi
	}
	return out
}

// pathData returns the outline of the marker for a radius, centered at the origin, in the syntax of the d attribute of
// an SVG path.
func (m shape) pathData(radius vg.Length) string {
	if m.corners == 0 {
		r := float64(m.outer * radius)
		return fmt.Sprintf("M%.3g,0A%.3g,%.3g 0 1 0 %.3g,0A%.3g,%.3g 0 1 0 %.3g,0Z", r, r, r, -r, r, r, r)
	}
	path := "M"
	for i, component := range m.path(vg.Point{}, radius) {
		if component.Type == vg.CloseComp {
			break
		}
		if i > 0 {
			path += "L"
		}
		path += fmt.Sprintf("%.3g,%.3g", component.Pos.X.Points(), -component.Pos.Y.Points())
	}
	return path + "Z"
}
