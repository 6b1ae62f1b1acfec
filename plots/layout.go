package plots

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawing is one figure on its way to a canvas: the scales, the rectangle of the plot,
// and what already stands in it.
type drawing struct {
	f    *Figure
	pen  pen
	w, h vg.Length
	x, y *scale
	box  vg.Rectangle // the plot inside its axes

	taken []vg.Point // samples of everything drawn in box, to place labels by
}

// drawTo draws a valid figure on a canvas of w×h points.
func (f *Figure) drawTo(p pen, w, h vg.Length) {
	d := &drawing{f: f, pen: p, w: w, h: h}
	d.layout(0)
	d.collect()
	labels := d.placeLabels()
	key, inside := d.placeLegend()
	if !inside && len(key.entries) > 0 {
		// No free corner: the legend goes above the plot, which shrinks.
		d.layout(key.rowsHeight(d.box.Size().X))
		d.taken = d.taken[:0]
		d.collect()
		labels = d.placeLabels()
	}
	p.SetColor(paper)
	p.Fill(vg.Rectangle{Max: vg.Point{X: w, Y: h}}.Path())
	d.drawAxes()
	for i := range f.Series {
		d.drawBand(i)
	}
	d.drawRefLines()
	for i := range f.Series {
		d.drawSeries(i)
	}
	d.drawMarks()
	d.drawLabels(labels)
	if inside {
		d.drawKeyInside(key)
	} else {
		d.drawKeyAbove(key)
	}
}

// layout chooses scales and the plot's rectangle; above is the room for a legend
// between the title and the plot.
func (d *drawing) layout(above vg.Length) {
	f := d.f
	xlo, xhi, ylo, yhi := f.dataRange()
	top := margin + above
	if f.Title != "" {
		top += titleSize * 1.35
	}
	bottom := margin + tickLength + tickSize*1.25
	if f.X.Label != "" {
		bottom += labelSize * 1.55
	}
	d.box.Min.Y, d.box.Max.Y = bottom, d.h-top-tickSize*0.4
	d.y = newScale(&f.Y, ylo, yhi, count(d.box.Size().Y, 26))

	left := margin + tickLength + 3 + maxWidth(d.y.ticks)
	if f.Y.Label != "" {
		left += labelSize * 1.6
	}
	right := margin + 4
	for n := count(d.w-left-right, 62); ; n-- {
		d.x = newScale(&f.X, xlo, xhi, n)
		d.box.Min.X, d.box.Max.X = left, d.w-right
		for _, t := range d.x.ticks { // the last label may reach over the axis' end
			over := d.px(t.at) + textWidth(t.label, tickSize, false)/2 - (d.w - margin)
			if t.label != "" && over > 0 && d.within(t.at) {
				d.box.Max.X -= over
			}
		}
		if n <= 1 || !d.crowded() {
			break
		}
	}
}

// count returns how many ticks, each of the given room, an axis has place for.
func count(length, room vg.Length) int {
	return min(max(int(length/room), 2), 7)
}

func maxWidth(ts []tick) (w vg.Length) {
	for _, t := range ts {
		w = max(w, textWidth(t.label, tickSize, false))
	}
	return w
}

// within reports whether x is on its axis.
func (d *drawing) within(x float64) bool { return x >= d.x.lo && x <= d.x.hi }

// crowded reports whether labels of the x axis touch.
func (d *drawing) crowded() bool {
	end := vg.Length(math.Inf(-1))
	for _, t := range d.x.ticks {
		if t.label == "" {
			continue
		}
		w := textWidth(t.label, tickSize, false)
		if d.px(t.at)-w/2 < end+5 {
			return true
		}
		end = d.px(t.at) + w/2
	}
	return false
}

// px and py return the place of a value on the canvas. Values far outside the axes
// are brought nearer, so that lines to them can be clipped without overflow.
func (d *drawing) px(v float64) vg.Length {
	return d.box.Min.X + vg.Length(clamp(d.x.at(v)))*d.box.Size().X
}

func (d *drawing) py(v float64) vg.Length {
	return d.box.Min.Y + vg.Length(clamp(d.y.at(v)))*d.box.Size().Y
}

func clamp(t float64) float64 { return math.Min(math.Max(t, -1e3), 1e3) }

// area returns the plot's rectangle as a canvas that can clip.
func (d *drawing) area() *draw.Canvas {
	return &draw.Canvas{Canvas: d.pen.Canvas, Rectangle: d.box}
}

// dataRange returns the least and greatest values that the axes can show.
func (f *Figure) dataRange() (xlo, xhi, ylo, yhi float64) {
	xlo, xhi, ylo, yhi = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	addX := func(v float64) {
		if f.X.shows(v) {
			xlo, xhi = math.Min(xlo, v), math.Max(xhi, v)
		}
	}
	addY := func(v float64) {
		if f.Y.shows(v) {
			ylo, yhi = math.Min(ylo, v), math.Max(yhi, v)
		}
	}
	for i := range f.Series {
		s := &f.Series[i]
		for j, y := range s.Y {
			if !f.X.shows(s.x(j)) || !f.Y.shows(y) {
				continue
			}
			addX(s.x(j))
			addY(y)
			if s.Lo != nil {
				addY(s.Lo[j])
				addY(s.Hi[j])
			}
		}
	}
	for _, l := range f.HLines {
		addY(l.At)
	}
	for _, l := range f.VLines {
		addX(l.At)
	}
	for _, m := range f.Marks {
		if f.X.shows(m.X) && f.Y.shows(m.Y) {
			addX(m.X)
			addY(m.Y)
		}
	}
	return
}

// drawAxes draws the title, the grid, both axes and their labels.
func (d *drawing) drawAxes() {
	b, p := d.box, d.pen
	left := b.Min.X
	if d.f.Title != "" {
		if textWidth(d.f.Title, titleSize, true) > d.w-margin-left {
			left = margin
		}
		size := titleSize
		if w := textWidth(d.f.Title, size, true); w > d.w-2*margin {
			size *= (d.w - 2*margin) / w
		}
		p.text(d.f.Title, vg.Point{X: left, Y: d.h - margin - titleSize*0.8}, size, ink, 0, true, false)
	}
	c := d.area()
	for _, minor := range []bool{true, false} {
		clr := grid
		if minor {
			clr = faint
		}
		sty := draw.LineStyle{Color: clr, Width: 0.6}
		for _, t := range d.x.ticks {
			if x := d.px(t.at); (t.label == "") == minor && c.ContainsX(x) {
				c.StrokeLine2(sty, x, b.Min.Y, x, b.Max.Y)
			}
		}
		for _, t := range d.y.ticks {
			if y := d.py(t.at); (t.label == "") == minor && c.ContainsY(y) {
				c.StrokeLine2(sty, b.Min.X, y, b.Max.X, y)
			}
		}
	}
	axis := draw.LineStyle{Color: soft, Width: 0.8}
	c.StrokeLines(axis, []vg.Point{{X: b.Min.X, Y: b.Max.Y}, b.Min, {X: b.Max.X, Y: b.Min.Y}})
	for _, t := range d.x.ticks {
		x := d.px(t.at)
		if t.label == "" || !c.ContainsX(x) {
			continue
		}
		c.StrokeLine2(axis, x, b.Min.Y, x, b.Min.Y-tickLength)
		p.text(t.label, vg.Point{X: x, Y: b.Min.Y - tickLength - tickSize}, tickSize, ink, 0.5, false, false)
	}
	for _, t := range d.y.ticks {
		y := d.py(t.at)
		if t.label == "" || !c.ContainsY(y) {
			continue
		}
		c.StrokeLine2(axis, b.Min.X-tickLength, y, b.Min.X, y)
		p.text(t.label, vg.Point{X: b.Min.X - tickLength - 3, Y: y - tickSize*0.35}, tickSize, ink, 1, false, false)
	}
	mid := vg.Point{X: (b.Min.X + b.Max.X) / 2, Y: (b.Min.Y + b.Max.Y) / 2}
	p.text(d.f.X.Label, vg.Point{X: mid.X, Y: margin + labelSize*0.15}, labelSize, ink, 0.5, false, false)
	p.text(d.f.Y.Label, vg.Point{X: margin + labelSize*0.8, Y: mid.Y}, labelSize, ink, 0.5, false, true)
}
