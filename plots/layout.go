package plots

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawing is one figure, or one panel of a grid, on its way to a canvas: the scales,
// the rectangle of the plot, and what already stands in it.
type drawing struct {
	f      *Figure
	pen    pen
	w, h   vg.Length
	extent extent // what the axes must show
	x, y   *scale
	color  *scale       // of the map, if there is one
	box    vg.Rectangle // the plot inside its axes
	bar    vg.Rectangle // the bar of the map's colors

	labels []placed   // of reference lines and marks
	taken  []vg.Point // samples of everything drawn in box, to place labels by

	panel                  // what it has from the grid that it belongs to
	names, rings numbering // of series and of marks on a map: one name has one look
}

// panel is what a drawing has from the grid that it belongs to.
type panel struct {
	inGrid       bool
	least        margins
	hideX, hideY bool // another panel has the labels of that axis
	outdented    bool // the title begins at the panel's edge, not at the plot's
}

// margins is the room around the plot, in points.
type margins struct{ left, right, top, bottom vg.Length }

// numbering gives each new name the next number.
type numbering map[string]int

// of returns the number of a name, and for no name, or outside a grid, another one.
func (n numbering) of(name string, other int) int {
	if name == "" || n == nil {
		return other
	}
	if _, known := n[name]; !known {
		n[name] = len(n)
	}
	return n[name]
}

// lookOf returns the look of series i.
func (d *drawing) lookOf(i int) look { return lookOf(d.names.of(d.f.Series[i].Name, i)) }

// drawTo draws a valid figure on a canvas of w×h points.
func (f *Figure) drawTo(p pen, w, h vg.Length) {
	p.SetColor(paper)
	p.Fill(vg.Rectangle{Max: vg.Point{X: w, Y: h}}.Path())
	if len(f.Panels) > 0 {
		f.drawPanels(p, w, h)
		return
	}
	d := &drawing{f: f, pen: p, w: w, h: h, extent: f.extent()}
	key, inside := d.arrange()
	d.draw()
	if inside {
		key.drawInside(p)
	} else {
		key.drawAbove(p, vg.Point{X: d.box.Min.X, Y: d.box.Max.Y + d.tagRoom() + 8}, d.box.Size().X)
	}
}

// arrange lays out a figure that stands alone, and reports whether its legend is inside.
func (d *drawing) arrange() (k key, inside bool) {
	d.layout(0)
	d.placeLabels()
	if k, inside = d.placeLegend(); !inside {
		// No free corner: the legend goes above the plot, which shrinks.
		d.layout(k.rowsHeight(d.box.Size().X))
		d.placeLabels()
	}
	return k, inside
}

// draw draws everything but the legend.
func (d *drawing) draw() {
	d.drawTitle()
	d.drawGrid()
	d.drawMap()
	d.drawAxes()
	d.drawData()
	d.drawLabels()
}

// drawData draws the series, the reference lines and the marks.
func (d *drawing) drawData() {
	for i := range d.f.Series {
		d.drawBand(i)
	}
	d.drawRefLines()
	for i := range d.f.Series {
		d.drawSeries(i)
	}
	d.drawMarks()
}

// layout chooses scales and the plot's rectangle; above is the room for a legend
// between the title and the plot.
func (d *drawing) layout(above vg.Length) {
	f, e, least := d.f, d.extent, d.least
	top := margin + above + tickSize*0.4 + d.tagRoom()
	if f.Title != "" {
		top += d.titleSize() * 1.35
	}
	bottom := margin + tickLength
	if !d.hideX {
		bottom += tickSize * 1.25
		if f.X.Label != "" {
			bottom += labelSize * 1.55
		}
	}
	d.box.Min.Y, d.box.Max.Y = max(bottom, least.bottom), d.h-max(top, least.top)
	height := d.box.Size().Y
	d.y = f.fit(&f.Y, e.ylo, e.yhi, count(height, 26), func(s *scale) bool { return s.crowded(height, true) })

	left := margin + tickLength
	if !d.hideY {
		left += 3 + maxWidth(d.y.ticks)
		if f.Y.Label != "" {
			left += labelSize * 1.6
		}
	}
	left, right := max(left, least.left), max(margin+4+d.mapRoom(), least.right)
	d.x = f.fit(&f.X, e.xlo, e.xhi, count(d.w-left-right, 62), func(s *scale) bool {
		d.x = s
		d.fitX(left, right)
		return s.crowded(d.box.Size().X, false)
	})
	d.fitX(left, right)
	if d.color != nil {
		d.placeBar()
	}
}

// fitX sets the sides of the plot so that the last label does not reach over the edge.
func (d *drawing) fitX(left, right vg.Length) {
	d.box.Min.X, d.box.Max.X = left, d.w-right
	for _, t := range d.x.ticks {
		over := d.px(t.Value) + textWidth(t.Label, tickSize, false)/2 - (d.w - margin)
		if !t.IsMinor() && over > 0 && t.Value >= d.x.Min && t.Value <= d.x.Max && !d.hideX {
			d.box.Max.X -= over
		}
	}
}

// px and py return the place of a value on the canvas.
func (d *drawing) px(v float64) vg.Length {
	return d.box.Min.X + vg.Length(d.x.Norm(v))*d.box.Size().X
}

func (d *drawing) py(v float64) vg.Length {
	return d.box.Min.Y + vg.Length(d.y.Norm(v))*d.box.Size().Y
}

// plot returns a plot of gonum with the axes of the drawing, for plotters.
func (d *drawing) plot() *plot.Plot {
	p := plot.New()
	p.X, p.Y = d.x.Axis, d.y.Axis
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(d.x.ticks), plot.ConstantTicks(d.y.ticks)
	return p
}

// area returns the plot's rectangle as a canvas that can clip.
func (d *drawing) area() *draw.Canvas {
	return &draw.Canvas{Canvas: d.pen.Canvas, Rectangle: d.box}
}
