package draw

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/krrlab/lab/plots"
)

// drawing is one figure, or one panel of a grid, on its way to a canvas: the scales,
// the rectangle of the plot, and what already stands in it.
type drawing struct {
	f      *plots.Figure
	pen    pen
	w, h   vg.Length
	extent extent // what the axes must show
	x, y   *scale
	color  *scale       // of the map, if there is one
	box    vg.Rectangle // the plot inside its axes
	bar    vg.Rectangle // the bar of the map's colors

	labels []placed // of reference lines and marks
	ground ground   // everything drawn in box, to place labels by

	panel                  // what it has from the grid that it belongs to
	names, rings numbering // of series and of marks on a map: one name has one look
}

// panel is what a drawing has from the grid that it belongs to.
type panel struct {
	inGrid    bool
	least     margins
	hideX     bool // another panel has the labels of the x axis
	outdented bool // the title begins at the panel's edge, not at the plot's
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

// drawTo draws a valid figure on a canvas of w×h points, and returns the drawings of its panels or its one.
func drawTo(f *plots.Figure, p pen, w, h vg.Length) []*drawing {
	p.SetColor(paper)
	p.Fill(vg.Rectangle{Max: point(w, h)}.Path())
	if len(f.Panels) > 0 {
		return drawPanels(f, p, w, h)
	}
	d := &drawing{f: f, pen: p, w: w, h: h, extent: extentOf(f)}
	key, inside := d.arrange()
	d.draw()
	if inside {
		key.drawInside(p)
	} else {
		w := d.box.Size().X
		key.draw(p, point(d.box.Min.X, d.box.Max.Y+d.tagRoom()+key.height(w)+4-keyRow), w)
	}
	return []*drawing{d}
}

// arrange lays out a figure that stands alone, and reports whether its legend is inside.
func (d *drawing) arrange() (k key, inside bool) {
	d.layout(0)
	d.placeLabels()
	if k, inside = d.placeLegend(); !inside {
		// No free corner: the legend goes above the plot, which shrinks.
		d.layout(k.height(d.box.Size().X))
		d.placeLabels()
	}
	return k, inside
}

// draw draws everything but the legend.
func (d *drawing) draw() {
	d.drawTitle()
	d.pen.group("krr-axes", "", func() {
		d.drawGrid()
		d.drawMap()
		d.drawAxes()
	})
	d.drawAxisLabels()
	d.pen.group("krr-data", "", func() {
		d.drawData()
		d.drawLabels()
	})
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
	cells := plots.HeatMap{}
	if f.Map != nil {
		cells = *f.Map
	}
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
	d.y = fit(&f.Y, e.y, cells.Y, count(height, 26), func(s *scale) bool { return s.crowded(height, true) })

	left := margin + tickLength + 3 + maxWidth(d.y.ticks)
	if f.Y.Label != "" {
		left += labelSize * 1.6
	}
	left, right := max(left, least.left), max(margin+4+d.mapRoom(), least.right)
	d.x = fit(&f.X, e.x, cells.X, count(d.w-left-right, 62), func(s *scale) bool {
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
		if !t.IsMinor() && over > 0 && t.Value >= d.x.min && t.Value <= d.x.max && !d.hideX {
			d.box.Max.X -= over
		}
	}
}

// px and py return the place of a value on the canvas.
func (d *drawing) px(v float64) vg.Length {
	return d.box.Min.X + vg.Length(d.x.norm(v))*d.box.Size().X
}

func (d *drawing) py(v float64) vg.Length {
	return d.box.Min.Y + vg.Length(d.y.norm(v))*d.box.Size().Y
}

// area returns the plot's rectangle as a canvas that can clip.
func (d *drawing) area() *draw.Canvas {
	return &draw.Canvas{Canvas: d.pen.Canvas, Rectangle: d.box}
}

// columns returns the number of panels side by side.
func columnsOf(f *plots.Figure) int {
	n := len(f.Panels)
	if f.Columns > 0 {
		return min(f.Columns, n)
	}
	return min(n, 3, max(2, int(math.Ceil(math.Sqrt(float64(n))))))
}

func rowsOf(f *plots.Figure) int { return (len(f.Panels) + columnsOf(f) - 1) / columnsOf(f) }

// gridHeight returns the height that the panels need, in inches: rows as high as reads
// well at their width.
func gridHeight(f *plots.Figure) float64 {
	row := []float64{2.7, 2.4, 2.1}[min(columnsOf(f), 3)-1]
	w := cmp.Or(f.Width, 6.5)
	k := key{entries: entries(panelsOf(f, pen{})...)}
	head := titleSize*1.35 + k.height(vg.Length(w)*vg.Inch-2*margin)
	return min(max(row*w/6.5*float64(rowsOf(f))+float64(head/vg.Inch), 1), 50)
}

// drawPanels draws the panels in rows and columns of equal plots, one legend above.
func drawPanels(f *plots.Figure, p pen, w, h vg.Length) []*drawing {
	ds := panelsOf(f, p)
	k := key{entries: entries(ds...)}
	top := margin
	if f.Title != "" {
		top += titleSize * 1.35
	}
	above := top
	if len(k.entries) > 0 {
		top += k.height(w - 2*margin)
	}
	alignPanels(f, ds, w, h-top)
	// where one title has no room over its plot all begin at the panels' edges
	outdented := slices.ContainsFunc(ds, func(d *drawing) bool {
		return textWidth(d.f.Title, d.titleSize(), true) > d.w-margin-d.box.Min.X
	})
	(&drawing{f: f, pen: p, w: w, h: h, panel: panel{outdented: true}}).drawTitle()
	k.draw(p, point(margin, h-above+4-keyRow), w-2*margin)
	x, y := vg.Length(0), h-top
	for i, d := range ds {
		if i%columnsOf(f) == 0 {
			x, y = 0, y-d.h
		}
		p.Push()
		p.Translate(point(x, y))
		d.outdented = outdented
		d.placeLabels()
		d.draw()
		p.Pop()
		x += d.w
	}
	return ds
}

// panels returns the drawing of each panel: what its axes must show, which labels it
// has, and the looks of its series, one for each name.
func panelsOf(f *plots.Figure, p pen) []*drawing {
	all := none // of x
	for i := range f.Panels {
		x := extentOf(&f.Panels[i]).x
		all.add(&f.Panels[i].X, x.lo, x.hi)
	}
	cols := columnsOf(f)
	names, rings := numbering{}, numbering{}
	ds := make([]*drawing, len(f.Panels))
	for i := range ds {
		g := f.Panels[i] // a copy: shared ends are set in it
		d := &drawing{f: &g, pen: p, extent: extentOf(&g), names: names, rings: rings, panel: panel{inGrid: true}}
		if f.ShareX {
			d.extent.x, d.hideX = all, i+cols < len(ds)
			g.X.Min, g.X.Max = f.Panels[0].X.Min, f.Panels[0].X.Max
		}
		ds[i] = d
	}
	return ds
}

// alignPanels lays the panels out on w×h points so that all plots have one size, and
// those of a row and of a column stand in line.
func alignPanels(f *plots.Figure, ds []*drawing, w, h vg.Length) {
	cols, rows := columnsOf(f), rowsOf(f)
	side, edge := make([]margins, cols), make([]margins, rows)
	bw, bh := w/vg.Length(cols), h/vg.Length(rows)
	// The labels that fit depend on the plot's size, which depends on the labels: a
	// second and a third round settle it; the fourth lays out.
	for round := range 4 {
		for i, d := range ds {
			s, e := &side[i%cols], &edge[i/cols]
			d.w, d.h = max(s.left+bw+s.right, 20), max(e.top+bh+e.bottom, 20)
			d.least = margins{s.left, s.right, e.top, e.bottom}
			if d.layout(0); round == 3 {
				continue
			}
			s.left = max(s.left, d.box.Min.X)
			if right := d.w - d.box.Max.X; i < cols || !f.ShareX && right < s.right || f.ShareX && right > s.right {
				s.right = right // free axes: a map's bar makes its own plot narrower, not the column's
			}
			e.bottom, e.top = max(e.bottom, d.box.Min.Y), max(e.top, d.h-d.box.Max.Y)
		}
		bw, bh = w, h
		for _, s := range side {
			bw -= s.left + s.right
		}
		for _, e := range edge {
			bh -= e.top + e.bottom
		}
		bw, bh = max(bw/vg.Length(cols), 10), max(bh/vg.Length(rows), 10)
	}
}
