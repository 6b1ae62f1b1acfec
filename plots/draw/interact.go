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
func dataOf(f *plots.Figure, drawn []*drawing) string {
	var panels []object
	for _, d := range drawn {
		panels = append(panels, d.data())
	}
	out := object{"panels": panels, "shareX": f.ShareX}
	if c := f.Controls; c != nil {
		sliders := slices.Clone(c.Sliders)
		for i := range sliders {
			sliders[i].Name = text.Flat(sliders[i].Name)
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
		return object{"log": s.of.Log, "min": s.min, "max": s.max, "label": text.Flat(s.of.Label)}
	}
	f, low, high := d.f, d.box.Min, d.box.Max
	series, marks := []object{}, [][3]any{}
	for i := range f.Series {
		series = append(series, d.seriesData(i))
	}
	for _, m := range f.Marks {
		if f.X.Shows(m.X) && f.Y.Shows(m.Y) {
			marks = append(marks, [3]any{m.X, m.Y, text.Flat(m.Label)})
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
		p["map"] = object{"label": text.Flat(m.Color.Label), "x": numbers(m.X), "y": numbers(m.Y), "z": rows}
	}
	return p
}

func lines(of []plots.RefLine) [][2]any {
	out := [][2]any{}
	for _, l := range of {
		if !math.IsNaN(l.At) && !math.IsInf(l.At, 0) {
			out = append(out, [2]any{l.At, text.Flat(l.Label)})
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
		at := point(d.px(s.Abscissa(j)), d.py(v))
		if len(s.Y) > mostSamples && j > 0 && j < len(s.Y)-1 && d.f.X.Shows(s.Abscissa(j)) && d.f.Y.Shows(v) {
			if distance(at, last) < 0.25 {
				continue
			}
			last = at
		}
		x, y = append(x, s.Abscissa(j)), append(y, v)
		if s.Lo != nil {
			lo, hi = append(lo, s.Lo[j]), append(hi, s.Hi[j])
		}
	}
	out := object{"n": text.Flat(s.Name), "s": []string{"line", "points", "steps"}[s.Style], "d": dashes, "x": x, "y": y,
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
