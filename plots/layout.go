package plots

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawing is one figure, or one panel of a grid, on its way to a canvas: the scales,
// the rectangle of the plot, and what already stands in it.
type drawing struct {
	f     *Figure
	pen   pen
	w, h  vg.Length
	x, y  *scale
	color *scale       // of the map, if there is one
	box   vg.Rectangle // the plot inside its axes
	bar   vg.Rectangle // the bar of the map's colours
	panel *panel       // nil for a figure that stands alone
	looks []look       // of the series; those beyond have the look of their index
	marks []int        // the kind of frame of each mark on a map, likewise

	taken []vg.Point // samples of everything drawn in box, to place labels by
}

// panel is what a drawing has from the grid that it belongs to.
type panel struct {
	extent       extent // what its axes must show
	least        margins
	hideX, hideY bool // another panel has the labels of that axis
	outdented    bool // the title begins at the panel's edge, not at the plot's
}

// margins is the room around the plot, in points.
type margins struct{ left, right, top, bottom vg.Length }

// lookOf returns the look of series i.
func (d *drawing) lookOf(i int) look {
	if i < len(d.looks) {
		return d.looks[i]
	}
	return lookOf(i)
}

// frameOf returns the kind of frame of mark k on a map.
func (d *drawing) frameOf(k int) int {
	if k < len(d.marks) {
		return d.marks[k]
	}
	return k
}

// drawTo draws a valid figure on a canvas of w×h points.
func (f *Figure) drawTo(p pen, w, h vg.Length) {
	p.SetColor(paper)
	p.Fill(vg.Rectangle{Max: vg.Point{X: w, Y: h}}.Path())
	if len(f.Panels) > 0 {
		f.drawPanels(p, w, h)
		return
	}
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
	d.draw(labels)
	if inside {
		key.drawInside(p)
	} else {
		key.drawAbove(p, vg.Point{X: d.box.Min.X, Y: d.box.Max.Y + d.tagRoom() + 8}, d.box.Size().X)
	}
}

// draw draws everything but the legend.
func (d *drawing) draw(labels []placed) {
	d.drawTitle()
	d.drawGrid()
	d.drawMap()
	d.drawAxes()
	for i := range d.f.Series {
		d.drawBand(i)
	}
	d.drawRefLines()
	for i := range d.f.Series {
		d.drawSeries(i)
	}
	d.drawMarks()
	d.drawLabels(labels)
}

// titleSize returns the size of the title in points.
func (d *drawing) titleSize() vg.Length {
	if d.panel != nil {
		return panelTitleSize
	}
	return titleSize
}

// layout chooses scales and the plot's rectangle; above is the room for a legend
// between the title and the plot.
func (d *drawing) layout(above vg.Length) {
	f, e, least, hideX, hideY := d.f, d.f.extent(), margins{}, false, false
	if p := d.panel; p != nil {
		e, least, hideX, hideY = p.extent, p.least, p.hideX, p.hideY
	}
	top := margin + above + tickSize*0.4 + d.tagRoom()
	if f.Title != "" {
		top += d.titleSize() * 1.35
	}
	bottom := margin + tickLength
	if !hideX {
		bottom += tickSize * 1.25
		if f.X.Label != "" {
			bottom += labelSize * 1.55
		}
	}
	d.box.Min.Y, d.box.Max.Y = max(bottom, least.bottom), d.h-max(top, least.top)
	height := d.box.Size().Y
	for try, done := 0, false; !done; try++ {
		d.y, done = f.axisScale(&f.Y, e.ylo, e.yhi, count(height, 26), try, func(s *scale) bool { return d.crowdedY(s) })
	}

	left := margin + tickLength
	if !hideY {
		left += 3 + maxWidth(d.y.ticks)
		if f.Y.Label != "" {
			left += labelSize * 1.6
		}
	}
	left, right := max(left, least.left), max(margin+4+d.mapRoom(), least.right)
	for try, done := 0, false; !done; try++ {
		d.x, done = f.axisScale(&f.X, e.xlo, e.xhi, count(d.w-left-right, 62), try, func(s *scale) bool {
			d.x = s
			d.fitX(left, right, hideX)
			return d.crowdedX()
		})
	}
	d.fitX(left, right, hideX)
	if d.color != nil {
		d.placeBar()
	}
}

// fitX sets the sides of the plot so that the last label does not reach over the edge.
func (d *drawing) fitX(left, right vg.Length, hidden bool) {
	d.box.Min.X, d.box.Max.X = left, d.w-right
	for _, t := range d.x.ticks {
		over := d.px(t.at) + textWidth(t.label, tickSize, false)/2 - (d.w - margin)
		if t.label != "" && over > 0 && d.within(t.at) && !hidden {
			d.box.Max.X -= over
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

// crowdedX reports whether labels of the x axis touch.
func (d *drawing) crowdedX() bool {
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

// crowdedY reports whether labels of the y axis s touch.
func (d *drawing) crowdedY(s *scale) bool {
	end := math.Inf(-1)
	for _, t := range s.ticks {
		if t.label == "" {
			continue
		}
		at := s.at(t.at) * float64(d.box.Size().Y)
		if at < end+float64(tickSize)*1.2 {
			return true
		}
		end = at
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

// extent is the least and greatest values that the axes can show.
type extent struct{ xlo, xhi, ylo, yhi float64 }

// extent returns the extent of everything in the figure.
func (f *Figure) extent() extent {
	e := extent{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}
	addX := func(v float64) {
		if f.X.shows(v) {
			e.xlo, e.xhi = math.Min(e.xlo, v), math.Max(e.xhi, v)
		}
	}
	addY := func(v float64) {
		if f.Y.shows(v) {
			e.ylo, e.yhi = math.Min(e.ylo, v), math.Max(e.yhi, v)
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
	if m := f.Map; m != nil { // its edges are the axes' ends; lines and marks do not widen it
		for _, v := range edges(m.X, f.X.Log) {
			addX(v)
		}
		for _, v := range edges(m.Y, f.Y.Log) {
			addY(v)
		}
		return e
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
	return e
}
