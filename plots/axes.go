package plots

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// fit makes the scale of an axis of the figure for data in [lo, hi] with some n labels,
// with fewer while they are crowded.
func (f *Figure) fit(a *Axis, lo, hi float64, n int, crowded func(*scale) bool) *scale {
	of, values := a, a.Ticks
	var cells []float64
	if f.Map != nil {
		of, cells = a.tight(lo, hi), f.Map.X
		if a == &f.Y {
			cells = f.Map.Y
		}
	}
	for every := 1; ; every++ {
		at := values
		if at == nil && every <= 2 && len(cells) <= 9*every {
			at = cells
		}
		s := newScale(of, lo, hi)
		s.label(max(n+1-every, 1), at, every)
		if !crowded(s) {
			return s
		}
		if every > n+len(a.Ticks) {
			s.dropLabels(func() bool { return crowded(s) })
			return s
		}
	}
}

// titleSize returns the size of the title in points.
func (d *drawing) titleSize() vg.Length {
	if d.inGrid {
		return panelTitleSize
	}
	return titleSize
}

// drawTitle writes the title above the plot, smaller if it is too long.
func (d *drawing) drawTitle() {
	if d.f.Title == "" {
		return
	}
	size, left := d.titleSize(), d.box.Min.X
	w := textWidth(d.f.Title, size, true)
	if d.outdented || w > d.w-margin-left {
		left = margin
	}
	y := d.h - margin - size*0.8
	if w > d.w-2*margin {
		size *= (d.w - 2*margin) / w
	}
	if d.inGrid { // a panel's title stays with its plot
		y = d.box.Max.Y + d.tagRoom() + panelTitleSize*0.6
	}
	d.pen.text(d.f.Title, vg.Point{X: left, Y: y}, size, ink, 0, true, false)
}

// drawGrid draws the lines of the grid, the minor ones first, and none at the border.
func (d *drawing) drawGrid() {
	if d.f.Map != nil {
		return
	}
	for _, minor := range []bool{true, false} {
		sty := draw.LineStyle{Color: grid, Width: 0.6}
		if minor {
			sty.Color = faint
		}
		for _, s := range []*scale{d.x, d.y} {
			for _, t := range s.ticks {
				r, ok := d.rule(t.Value, s == d.x, "")
				if ok && t.IsMinor() == minor && distance(r.a, d.box.Min) > 0.3 {
					d.stroke(sty, r)
				}
			}
		}
	}
}

// drawAxes draws both axes, their ticks and their labels.
func (d *drawing) drawAxes() {
	b, p, c := d.box, d.pen, d.area()
	axis := draw.LineStyle{Color: soft, Width: 0.8}
	c.StrokeLines(axis, []vg.Point{{X: b.Min.X, Y: b.Max.Y}, b.Min, {X: b.Max.X, Y: b.Min.Y}})
	ticks := func(s *scale, out, text vg.Point, align float64, hide bool) {
		for _, t := range s.ticks {
			r, ok := d.rule(t.Value, s == d.x, "")
			if !ok || t.IsMinor() {
				continue
			}
			c.StrokeLines(axis, []vg.Point{r.a, r.a.Add(out)})
			if !hide {
				p.text(t.Label, r.a.Add(text), tickSize, ink, align, false, false)
			}
		}
	}
	ticks(d.x, vg.Point{Y: -tickLength}, vg.Point{Y: -tickLength - tickSize}, 0.5, d.hideX)
	ticks(d.y, vg.Point{X: -tickLength}, vg.Point{X: -tickLength - 3, Y: -tickSize * 0.35}, 1, d.hideY)
	mid := vg.Point{X: (b.Min.X + b.Max.X) / 2, Y: (b.Min.Y + b.Max.Y) / 2}
	if !d.hideX {
		p.text(d.f.X.Label, vg.Point{X: mid.X, Y: b.Min.Y - tickLength - tickSize*1.25 - labelSize*1.2}, labelSize, ink, 0.5, false, false)
	}
	if !d.hideY {
		x := b.Min.X - tickLength - 3 - maxWidth(d.y.ticks) - labelSize*0.8
		p.text(d.f.Y.Label, vg.Point{X: x, Y: mid.Y}, labelSize, ink, 0.5, false, true)
	}
}

// count returns how many ticks, each of the given room, an axis has place for.
func count(length, room vg.Length) int { return min(max(int(length/room), 2), 7) }

func maxWidth(ts []plot.Tick) (w vg.Length) {
	for _, t := range ts {
		w = max(w, textWidth(t.Label, tickSize, false))
	}
	return w
}

// crowded reports whether labels of the scale touch on an axis of a length: side by side,
// or one above the other if upright.
func (s *scale) crowded(length vg.Length, upright bool) bool {
	end := vg.Length(math.Inf(-1))
	for _, t := range s.ticks {
		if t.IsMinor() {
			continue
		}
		at, half, gap := length*vg.Length(s.Norm(t.Value)), textWidth(t.Label, tickSize, false)/2, vg.Length(5)
		if upright {
			half, gap = 0, tickSize*1.2
		}
		if at-half < end+gap {
			return true
		}
		end = at + half
	}
	return false
}
