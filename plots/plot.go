package plots

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Plot returns the figure as a plot of gonum.org/v1/plot, to go on with: its title, its
// axes with their ends, ticks and labels, its legend, and plotters for its data, to which
// more can be added. Width and Height are the size at which the ticks do not touch; they
// follow the axes where the ends are changed. It is an error if the figure has panels,
// each of which has a plot of its own, or if Validate refuses it.
func (f *Figure) Plot() (*plot.Plot, error) {
	if n := len(f.Panels); n > 0 {
		return nil, fmt.Errorf("plots: figure %q has %d panels; take the plot of each, such as Panels[0].Plot()", oneLine(f.Title), n)
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	w, h := f.size()
	g := *f
	d := &drawing{f: &g, w: vg.Length(w) * vg.Inch, h: vg.Length(h) * vg.Inch, extent: g.extent()}
	key, inside := d.arrange()
	p := plot.New()
	p.TextHandler = typesetter{text.Plain{Fonts: fonts}}
	p.Title.Text, p.Title.Padding = f.Title, 6+margin
	setStyle(&p.Title.TextStyle, fontOf(titleSize, true), p)
	p.Title.TextStyle.YAlign -= away
	setAxis(&p.X, d.x, f.X.Label, p)
	setAxis(&p.Y, d.y, f.Y.Label, p)
	p.X.Label.TextStyle.YAlign += away
	p.Y.Label.TextStyle.YAlign -= away

	l := &p.Legend
	setStyle(&l.TextStyle, fontOf(legendSize, false), p)
	l.ThumbnailWidth, l.Padding, l.Left, l.Top, l.XOffs, l.YOffs = thumb, 2, true, true, 6, -3
	for _, e := range key.entries {
		l.Add(e.name, e)
	}
	above := d.tagRoom()
	if inside && len(key.entries) > 0 { // in the same corner, or the one next to it
		if at := key.box.Min; at.X > d.box.Min.X+d.box.Size().X/4 {
			l.Left, l.XOffs = false, -6
		}
		if key.box.Min.Y < d.box.Min.Y+d.box.Size().Y/4 {
			l.Top, l.YOffs = false, 6
		}
	} else if len(key.entries) > 0 { // no corner is free: above the data
		above += l.Rectangle(draw.Canvas{}).Size().Y + 6
	}

	all := extent{d.x.Min, d.x.Max, d.y.Min, d.y.Max}
	p.Add(layer{d, func(d *drawing) { d.drawGrid(); d.drawMap() }, all, above})
	for i := range g.Series {
		p.Add(layer{d, func(d *drawing) { d.drawBand(i) }, all, 0})
	}
	p.Add(layer{d, (*drawing).drawRefLines, all, 0})
	for i := range g.Series {
		if s := &g.Series[i]; s.Plotter != nil {
			p.Add(s.Plotter)
		} else {
			p.Add(layer{d, func(d *drawing) { d.drawSeries(i) }, g.extentOf(i), 0})
		}
	}
	p.Add(layer{d, func(d *drawing) {
		d.drawMarks()
		d.placeLabels(legendBox(p, d.box))
		d.drawLabels()
	}, all, 0})
	return p, nil
}

// away is by how much a text is moved from the picture's edge, where gonum/plot puts it,
// in units of its height.
const away = 0.4

// setStyle sets a text in the package's typeface.
func setStyle(sty *text.Style, f font.Font, p *plot.Plot) {
	sty.Font, sty.Color, sty.Handler = f, ink, p.TextHandler
}

// setAxis sets an axis of a plot to a scale.
func setAxis(a *plot.Axis, s *scale, label string, p *plot.Plot) {
	a.Min, a.Max, a.Scale = s.Min, s.Max, s.Scale
	a.Label.Text, a.Label.Padding, a.Padding = label, 2+margin, 0
	a.LineStyle = draw.LineStyle{Color: soft, Width: 0.8}
	a.Tick.LineStyle, a.Tick.Length, a.Tick.Marker = a.LineStyle, tickLength, ticker{s}
	setStyle(&a.Label.TextStyle, fontOf(labelSize, false), p)
	setStyle(&a.Tick.Label, fontOf(tickSize, false), p)
}

// ticker has the ticks of a scale, and as many others where its ends are changed.
type ticker struct{ *scale }

// Ticks implements plot.Ticker.
func (t ticker) Ticks(min, max float64) []plot.Tick {
	if min == t.Min && max == t.Max {
		return t.ticks
	}
	s := *t.scale
	s.Min, s.Max = min, max
	s.label(labeled(t.ticks), t.of.Ticks, 1)
	return s.ticks
}

// layer is a part of a figure as a plotter.
type layer struct {
	of     *drawing // the figure laid out by itself
	draw   func(d *drawing)
	extent extent
	above  vg.Length // room to leave above the plot
}

// Plot implements plot.Plotter.
func (l layer) Plot(c draw.Canvas, p *plot.Plot) {
	d := *l.of
	d.pen, d.box, d.w = penOn(c.Canvas), c.Rectangle, c.Max.X+d.w-d.box.Max.X
	d.x = &scale{Axis: p.X, of: d.x.of, ticks: p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max)}
	d.y = &scale{Axis: p.Y, of: d.y.of, ticks: p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max)}
	if d.color != nil {
		d.placeBar()
	}
	l.draw(&d)
}

// DataRange implements plot.DataRanger.
func (l layer) DataRange() (xmin, xmax, ymin, ymax float64) {
	return l.extent.xlo, l.extent.xhi, l.extent.ylo, l.extent.yhi
}

// GlyphBoxes implements plot.GlyphBoxer: what stands beside the plot and above it.
func (l layer) GlyphBoxes(*plot.Plot) (boxes []plot.GlyphBox) {
	if l.above > 0 {
		boxes = append(boxes, plot.GlyphBox{X: 0.5, Y: 1, Rectangle: vg.Rectangle{Max: vg.Point{Y: l.above}}})
	}
	if l.of.color != nil {
		boxes = append(boxes, plot.GlyphBox{X: 1, Y: 0.5, Rectangle: vg.Rectangle{Max: vg.Point{X: l.of.w - l.of.box.Max.X}}})
	}
	return boxes
}

// legendBox returns where the legend of a plot is.
func legendBox(p *plot.Plot, b vg.Rectangle) vg.Rectangle {
	r, left := p.Legend.Rectangle(draw.Canvas{Rectangle: b}), b.Min.X
	if !p.Legend.Left {
		left = b.Max.X - r.Size().X
	}
	r.Min.X, r.Max.X = left, left+r.Size().X
	return r
}
