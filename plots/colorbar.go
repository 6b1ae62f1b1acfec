package plots

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	barGap   vg.Length = 12 // from the plot to the bar
	barWidth vg.Length = 11
)

// mapRoom makes the scale of the colors and returns the room that the bar and the tags
// of horizontal lines need at the right of the plot.
func (d *drawing) mapRoom() vg.Length {
	m := d.f.Map
	if m == nil {
		return 0
	}
	lo, hi := m.extent()
	height := d.box.Size().Y
	d.color = newScale(m.Color.tight(lo, hi), lo, hi)
	d.color.label(count(height, 24), m.Color.Ticks, 1)
	d.color.dropLabels(func() bool { return d.color.crowded(height, true) })
	return barGap + d.sideTags() + barWidth + d.barLabels()
}

// barLabels returns the room for the labels of the bar.
func (d *drawing) barLabels() vg.Length {
	w := tickLength + 3 + maxWidth(d.color.ticks) - 4
	if d.f.Map.Color.Label != "" {
		w += labelSize * 1.5
	}
	return w
}

// placeBar puts the bar beside the plot.
func (d *drawing) placeBar() {
	left := d.box.Max.X + barGap + d.sideTags()
	d.bar = vg.Rectangle{Min: vg.Point{X: left, Y: d.box.Min.Y}, Max: vg.Point{X: left + barWidth, Y: d.box.Max.Y}}
}

// drawBar draws the colors with their values.
func (d *drawing) drawBar() {
	const strips = 96
	b, p := d.bar, d.pen
	for k := range strips { // each covers the rest of the bar, so that no seam shows
		r := b
		r.Min.Y += b.Size().Y * vg.Length(k) / strips
		p.SetColor(colorAt((float64(k) + 0.5) / strips))
		p.Fill(r.Path())
	}
	c := &draw.Canvas{Canvas: p.Canvas}
	sty := draw.LineStyle{Color: soft, Width: 0.8}
	for _, t := range d.color.ticks {
		at := d.color.Norm(t.Value)
		if t.IsMinor() || at < -1e-9 || at > 1+1e-9 {
			continue
		}
		y := b.Min.Y + vg.Length(at)*b.Size().Y
		c.StrokeLine2(sty, b.Max.X, y, b.Max.X+tickLength-1, y)
		p.text(t.Label, vg.Point{X: b.Max.X + tickLength + 2, Y: y - tickSize*0.35}, tickSize, ink, 0, false, false)
	}
	x := b.Max.X + tickLength + 2 + maxWidth(d.color.ticks) + labelSize*1.25
	p.text(d.f.Map.Color.Label, vg.Point{X: x, Y: (b.Min.Y + b.Max.Y) / 2}, labelSize, ink, 0.5, false, true)
}

// tagRoom returns the room above a map for the tags of its vertical lines.
func (d *drawing) tagRoom() vg.Length {
	if d.f.Map == nil {
		return 0
	}
	for _, l := range d.f.VLines {
		if l.Label != "" {
			return markSize*1.2 + 7
		}
	}
	return 0
}

// sideTags returns the room beside a map for the tags of its horizontal lines.
func (d *drawing) sideTags() (w vg.Length) {
	for _, l := range d.f.HLines {
		if l.Label != "" {
			w = max(w, textWidth(l.Label, markSize, false)+3)
		}
	}
	return w
}

// tag is a label outside the plot of a map, at a place along its border.
type tag struct {
	text         string
	place, start vg.Length // of the pointer, and of the label
	length       vg.Length
}

// drawTags draws a pointer at the border of a map for each reference line, and its
// label outside: a line across the cells would strike out their values.
func (d *drawing) drawTags() {
	var above, beside []tag
	for _, r := range d.refLines() {
		if r.upright {
			above = append(above, tag{text: r.label, place: r.a.X, length: textWidth(r.label, markSize, false) + 6})
		} else {
			beside = append(beside, tag{text: r.label, place: r.a.Y, length: markSize * 1.2})
		}
	}
	b, p := d.box, d.pen
	spread(above, b.Min.X-20, d.w-margin)
	spread(beside, b.Min.Y-8, b.Max.Y+8)
	draw := func(t tag, turn float64, pointer, label vg.Point) {
		p.SetColor(ink)
		p.Fill(shape{3, turn, 1, 0}.path(pointer, 3))
		p.text(t.text, label, markSize, ink, 0, false, false)
	}
	for _, t := range above {
		draw(t, -math.Pi/2, vg.Point{X: t.place, Y: b.Max.Y + 4}, vg.Point{X: t.start + 3, Y: b.Max.Y + 10})
	}
	for _, t := range beside {
		draw(t, math.Pi, vg.Point{X: b.Max.X + 4, Y: t.place}, vg.Point{X: b.Max.X + 9, Y: t.start + markSize*0.25})
	}
}

// spread sets the starts of labels: centered on their places, moved apart where they
// would touch, and between lo and hi.
func spread(ts []tag, lo, hi vg.Length) {
	slices.SortStableFunc(ts, func(a, b tag) int { return cmp.Compare(a.place, b.place) })
	for i := range ts {
		ts[i].start = max(ts[i].place-ts[i].length/2, lo)
		lo = ts[i].start + ts[i].length
	}
	for i := len(ts) - 1; i >= 0; i-- {
		ts[i].start = min(ts[i].start, hi-ts[i].length)
		hi = ts[i].start
	}
}
