package plots

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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
// each of which has its own plot, or if Validate refuses it.
func (f *Figure) Plot() (*plot.Plot, error) {
	if n := len(f.Panels); n > 0 {
		return nil, fmt.Errorf("plots: figure %q has %d panels; take the plot of each, such as Panels[0].Plot()",
			oneLine(f.Title), n)
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
		p.Add(layer{d, func(d *drawing) { d.drawSeries(i) }, g.extentOf(i), 0})
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
		boxes = append(boxes,
			plot.GlyphBox{X: 1, Y: 0.5, Rectangle: vg.Rectangle{Max: vg.Point{X: l.of.w - l.of.box.Max.X}}})
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

// Convergence returns the figure of an iterative solve: relative residuals
// ‖y−Ac‖₂/‖y‖₂ on a log axis against the iteration, and the tolerance τ as a dashed
// line. The Y of each series are the residuals after 0, 1, 2, … iterations; its X may
// say otherwise. A tolerance that is not positive is left out.
func Convergence(title string, tol float64, series ...Series) *Figure {
	f := &Figure{
		Title:  title,
		X:      Axis{Label: "iteration"},
		Y:      Axis{Label: "relative residual", Log: true},
		Series: series,
	}
	f.level("tolerance ", tol)
	return f
}

// level adds a horizontal line at a positive value, named with it.
func (f *Figure) level(name string, at float64) {
	if at > 0 && !math.IsInf(at, 1) {
		f.HLines = append(f.HLines, RefLine{At: at, Label: name + scientific(at)})
	}
}

// Spectrum returns the figure of one or more spectra: the Y of each series are
// eigenvalues, drawn from the largest down, on a log axis against their index from 1, which is
// logarithmic too if there are more than fifty; the X of a series may say otherwise.
// The ridge λ is a dashed line, left out if it is not positive: how many eigenvalues
// are above it is what a sketch must catch.
func Spectrum(title string, lambda float64, series ...Series) *Figure {
	f := &Figure{
		Title: title,
		X:     Axis{Label: "index i"},
		Y:     Axis{Label: "eigenvalue", Log: true},
	}
	for _, s := range series {
		if s.X == nil {
			s.X = make([]float64, len(s.Y))
			order := make([]int, len(s.Y))
			for i := range s.X {
				s.X[i], order[i] = float64(i+1), i
			}
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.Y[b], s.Y[a]) })
			for _, v := range []*[]float64{&s.Y, &s.Lo, &s.Hi} {
				if old := *v; old != nil {
					*v = make([]float64, len(old))
					for i, k := range order {
						(*v)[i] = old[k]
					}
				}
			}
		}
		f.X.Log = f.X.Log || len(s.Y) > 50
		f.Series = append(f.Series, s)
	}
	f.level("λ = ", lambda)
	return f
}

// Ladder returns the figure of a ladder of sketch sizes, each usually twice the last: a
// quantity such as κ against s, both on log axes, every rung a point with its interval,
// and the target as a dashed line, left out if it is not positive. The rungs are the
// ticks. chosen is the index of the rung taken, marked in the first series; none is
// marked if it is out of range. A series that is a Line is drawn as Points.
func Ladder(title, quantity string, target float64, chosen int, rungs ...Series) *Figure {
	f := &Figure{
		Title: title,
		X:     Axis{Label: "sketch size s", Log: true},
		Y:     Axis{Label: quantity, Log: true},
	}
	for _, s := range rungs {
		if s.Style == Line {
			s.Style = Points
		}
		f.Series = append(f.Series, s)
		f.X.Ticks = append(f.X.Ticks, s.X...)
	}
	slices.Sort(f.X.Ticks)
	f.X.Ticks = slices.Compact(f.X.Ticks)
	f.level("target ", target)
	if len(rungs) > 0 && chosen >= 0 && chosen < min(len(rungs[0].X), len(rungs[0].Y)) {
		x := rungs[0].X[chosen]
		f.Marks = []Mark{{X: x, Y: rungs[0].Y[chosen], Label: "s = " + plainLabel(x)}}
	}
	return f
}

// Sweep returns the figure of a sweep over a parameter: quantities on a log axis
// against the parameter on another, an estimate with its Lo and Hi as a band, bounds
// and measurements beside it, and values of the parameter to be known by name, such
// as λ and λ+η in a sweep over λ_p, as dashed vertical lines.
func Sweep(title, parameter, quantity string, at []RefLine, series ...Series) *Figure {
	return &Figure{
		Title:  title,
		X:      Axis{Label: parameter, Log: true},
		Y:      Axis{Label: quantity, Log: true},
		Series: series,
		VLines: at,
	}
}

// Map returns the heat map of a quantity over two parameters on log axes, such as κ or
// seconds over the sketch size s and λ_p: z[i][j] belongs to y[i] and x[j]. The values
// are in the cells, and the colors are logarithmic. Each Mark added to the figure
// frames the cell it is in and stands in the legend.
func Map(title, xLabel, yLabel, quantity string, x, y []float64, z [][]float64) *Figure {
	return &Figure{
		Title: title,
		X:     Axis{Label: xLabel, Log: true},
		Y:     Axis{Label: yLabel, Log: true},
		Map:   &HeatMap{X: x, Y: y, Z: z, Color: Axis{Label: quantity, Log: true}},
	}
}

// Grid returns the figure of several panels in rows, columns side by side (0 chooses).
// Each panel keeps its title and its axes; set ShareX or ShareY to give all of them the
// same axis, labeled once. The panels are copied.
func Grid(title string, columns int, panels ...*Figure) *Figure {
	f := &Figure{Title: title, Columns: columns}
	for _, p := range panels {
		f.Panels = append(f.Panels, *p)
	}
	return f
}
