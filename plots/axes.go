package plots

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// axisScale makes try number 0, 1, … of an axis of the figure for data in [lo, hi] and
// some n labels. Each try has fewer labels; done is set when they are not crowded, or
// when fewer are not to be had.
func (f *Figure) axisScale(a *Axis, lo, hi float64, n, try int, crowded func(*scale) bool) (s *scale, done bool) {
	values, every := a.Ticks, try+1
	if m := f.Map; m != nil {
		cells := m.X
		if a == &f.Y {
			cells = m.Y
		}
		if values == nil && every <= 2 && len(cells) <= 9*every {
			values = cells
		}
		a = a.tight(lo, hi)
	}
	s = newScale(a, lo, hi, max(n-try, 1))
	if values != nil {
		s.ticks = valueTicks(a, s, values, every)
	}
	groupAlike(s.ticks)
	if !crowded(s) {
		return s, true
	}
	if try < n+len(a.Ticks) {
		return s, false
	}
	for crowded(s) && labelled(s.ticks) > 2 {
		dropLabels(s.ticks)
	}
	return s, true
}

// tight returns the axis with its ends at lo and hi where they are free.
func (a *Axis) tight(lo, hi float64) *Axis {
	t := *a
	t.Min, t.Max = a.ends()
	if math.IsNaN(t.Min) {
		t.Min = math.Max(lo, -math.MaxFloat64/4) // hi−lo must not overflow
	}
	if math.IsNaN(t.Max) {
		t.Max = math.Min(hi, math.MaxFloat64/4)
	}
	return &t
}

// valueTicks labels every so-manyth of the given values that are on the scale.
func valueTicks(a *Axis, s *scale, values []float64, every int) (ts []tick) {
	write := plainLabel
	for _, v := range values {
		if a.shows(v) && !isPlain(v) {
			write = scientific
		}
	}
	for i, v := range values {
		if !a.shows(v) || v < s.lo || v > s.hi {
			continue
		}
		t := tick{at: v}
		if i%every == 0 {
			t.label = write(v)
		}
		ts = append(ts, t)
	}
	return ts
}

// groupAlike writes whole labels of four digits with a comma where a longer one of the axis has one.
func groupAlike(ts []tick) {
	if !slices.ContainsFunc(ts, func(t tick) bool { return strings.Contains(t.label, ",") }) {
		return
	}
	for i, t := range ts {
		ts[i].label = commas(t.label, 4)
	}
}

// dropLabels takes away every other label.
func dropLabels(ts []tick) {
	k := 0
	for i := range ts {
		if ts[i].label == "" {
			continue
		}
		if k++; k%2 == 0 {
			ts[i].label = ""
		}
	}
}

// drawTitle writes the title above the plot, smaller if it is too long.
func (d *drawing) drawTitle() {
	if d.f.Title == "" {
		return
	}
	size, left := d.titleSize(), d.box.Min.X
	w := textWidth(d.f.Title, size, true)
	if d.panel != nil && d.panel.outdented || w > d.w-margin-left {
		left = margin
	}
	y := d.h - margin - size*0.8
	if w > d.w-2*margin {
		size *= (d.w - 2*margin) / w
	}
	if d.panel != nil { // a panel's title stays with its plot
		y = d.box.Max.Y + d.tagRoom() + panelTitleSize*0.6
	}
	d.pen.text(d.f.Title, vg.Point{X: left, Y: y}, size, ink, 0, true, false)
}

// drawGrid draws the lines of the grid, the minor ones first.
func (d *drawing) drawGrid() {
	if d.f.Map != nil {
		return
	}
	b, c := d.box, d.area()
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
}

// drawAxes draws both axes, their ticks and their labels.
func (d *drawing) drawAxes() {
	b, p, c := d.box, d.pen, d.area()
	hideX, hideY := d.panel != nil && d.panel.hideX, d.panel != nil && d.panel.hideY
	axis := draw.LineStyle{Color: soft, Width: 0.8}
	c.StrokeLines(axis, []vg.Point{{X: b.Min.X, Y: b.Max.Y}, b.Min, {X: b.Max.X, Y: b.Min.Y}})
	for _, t := range d.x.ticks {
		x := d.px(t.at)
		if t.label == "" || !c.ContainsX(x) {
			continue
		}
		c.StrokeLine2(axis, x, b.Min.Y, x, b.Min.Y-tickLength)
		if !hideX {
			p.text(t.label, vg.Point{X: x, Y: b.Min.Y - tickLength - tickSize}, tickSize, ink, 0.5, false, false)
		}
	}
	for _, t := range d.y.ticks {
		y := d.py(t.at)
		if t.label == "" || !c.ContainsY(y) {
			continue
		}
		c.StrokeLine2(axis, b.Min.X-tickLength, y, b.Min.X, y)
		if !hideY {
			p.text(t.label, vg.Point{X: b.Min.X - tickLength - 3, Y: y - tickSize*0.35}, tickSize, ink, 1, false, false)
		}
	}
	mid := vg.Point{X: (b.Min.X + b.Max.X) / 2, Y: (b.Min.Y + b.Max.Y) / 2}
	if !hideX {
		p.text(d.f.X.Label, vg.Point{X: mid.X, Y: b.Min.Y - tickLength - tickSize*1.25 - labelSize*1.2}, labelSize, ink, 0.5, false, false)
	}
	if !hideY {
		x := b.Min.X - tickLength - 3 - maxWidth(d.y.ticks) - labelSize*0.8
		p.text(d.f.Y.Label, vg.Point{X: x, Y: mid.Y}, labelSize, ink, 0.5, false, true)
	}
}
