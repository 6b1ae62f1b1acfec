package draw

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/krrlab/lab/plots"
)

// drawing holds the layout of one figure, or of one panel of a grid, while it is drawn on a canvas. All lengths are in
// points, with the origin at the lower left corner. Offsets in points, and factors of font sizes, are chosen by eye.
type drawing struct {
	figure        *plots.Figure
	pen           pen
	width, height vg.Length    // size of the canvas, or of the panel
	extent        extent       // range of the data that the axes must show
	x, y          *scale       // scales of the axes
	color         *scale       // scale of the map's colors, or nil without a map
	box           vg.Rectangle // rectangle of the plot inside its axes
	colorBar      vg.Rectangle // rectangle of the map's color bar

	labels []placedLabel // labels of reference lines and marks
	raster raster        // image of the data drawn in box, used to find free places for labels

	gridPanel
	appearanceNumbers numbering // arguments of standardAppearance by series name: the same in all panels of a grid
	frameNumbers      numbering // numbers of the frames around marked cells of a map, by the mark's label
}

// gridPanel holds the settings that a panel gets from its grid. The zero value is for a figure that stands alone.
type gridPanel struct {
	inGrid      bool
	minMargins  margins // smallest margins around the plot, which align it with the plots of other panels
	hideX       bool    // the labels of the x axis are omitted, because the panel below has them
	titleAtEdge bool    // the title begins at the panel's left edge, not at the plot's
}

// margins holds the widths of the space around the plot, in points.
type margins struct{ left, right, top, bottom vg.Length }

// numbering assigns consecutive numbers, from 0, to names in the order of their first use.
type numbering map[string]int

// numberOf returns the number of a name. It returns fallback if the name is empty, or if n is nil, as outside a grid.
func (n numbering) numberOf(name string, fallback int) int {
	if name == "" || n == nil {
		return fallback
	}
	if _, isNumbered := n[name]; !isNumbered {
		n[name] = len(n)
	}
	return n[name]
}

// appearanceOf returns the appearance of series i. In a grid the color, the dashes and the marker depend only on the
// name of the series. The markers of Points become smaller if there are more than manyPoints of them, down to 0.55 of
// the usual radius (a judgment).
func (d *drawing) appearanceOf(i int) appearance {
	s, seriesAppearance := &d.figure.Series[i], appearance{color: axisColor, dash: dashPatterns[1]}
	if !s.Neutral {
		seriesAppearance = standardAppearance(d.appearanceNumbers.numberOf(s.Name, i))
	}
	if s.Style == plots.Points {
		seriesAppearance.radius = markRadius * vg.Length(min(1, max(0.55, manyPoints/float64(len(s.Y)))))
	}
	return seriesAppearance
}

// drawTo draws a valid figure on a canvas of w×h points. It returns the drawings of its panels, or a single drawing if
// the figure has no panels.
func drawTo(f *plots.Figure, p pen, w, h vg.Length) []*drawing {
	p.SetColor(backgroundColor)
	p.Fill(vg.Rectangle{Max: point(w, h)}.Path())
	if len(f.Panels) > 0 {
		return drawPanels(f, p, w, h)
	}
	d := &drawing{figure: f, pen: p, width: w, height: h, extent: extentOf(f)}
	legend, isInside := d.arrange()
	d.draw()
	if isInside {
		legend.drawInside(p)
	} else {
		w := d.box.Size().X
		legend.draw(p, point(d.box.Min.X, d.box.Max.Y+d.tagRoom()+legend.height(w)+4-legendRowHeight), w)
	}
	return []*drawing{d}
}

// arrange lays out a figure that stands alone. It returns the legend of the figure, and reports whether the legend
// stands inside the plot.
func (d *drawing) arrange() (lg legend, isInside bool) {
	d.layout(0)
	d.placeLabels()
	if lg, isInside = d.placeLegend(); !isInside {
		// There is no free corner, so the plot shrinks and the legend goes above it.
		d.layout(lg.height(d.box.Size().X))
		d.placeLabels()
	}
	return lg, isInside
}

// draw draws everything except the legend.
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
	for i := range d.figure.Series {
		d.drawBand(i)
	}
	d.drawRefLines()
	for i := range d.figure.Series {
		d.drawSeries(i)
	}
	d.drawMarks()
}

// layout sets the scales, the plot's rectangle and the rectangle of the color bar. legendHeight is the height of a
// legend between the title and the plot, 0 if there is none.
func (d *drawing) layout(legendHeight vg.Length) {
	f, extent, minMargins := d.figure, d.extent, d.minMargins
	cells := plots.HeatMap{}
	if f.Map != nil {
		cells = *f.Map
	}
	top := margin + legendHeight + tickSize*0.4 + d.tagRoom()
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
	d.box.Min.Y, d.box.Max.Y = max(bottom, minMargins.bottom), d.height-max(top, minMargins.top)
	height := d.box.Size().Y
	d.y = fitScale(&f.Y, extent.y, cells.Y, tickCount(height, 26),
		func(s *scale) bool { return s.isCrowded(height, vertical) })

	leftMargin := margin + tickLength + 3 + maxTickWidth(d.y.ticks)
	if f.Y.Label != "" {
		leftMargin += labelSize * 1.6
	}
	leftMargin, rightMargin := max(leftMargin, minMargins.left), max(margin+4+d.colorBarRoom(), minMargins.right)
	// The width of the plot depends on the labels of the x axis, so it is set anew for each candidate.
	d.x = fitScale(&f.X, extent.x, cells.X, tickCount(d.width-leftMargin-rightMargin, 62), func(s *scale) bool {
		d.x = s
		d.fitX(leftMargin, rightMargin)
		return s.isCrowded(d.box.Size().X, horizontal)
	})
	d.fitX(leftMargin, rightMargin)
	if d.color != nil {
		d.placeColorBar()
	}
}

// fitX sets the left and right sides of the plot from its margins. It moves the right side inward if a label of the
// scale d.x would reach beyond the edge of the canvas.
func (d *drawing) fitX(leftMargin, rightMargin vg.Length) {
	d.box.Min.X, d.box.Max.X = leftMargin, d.width-rightMargin
	for _, t := range d.x.ticks {
		excess := d.canvasX(t.Value) + textWidth(t.Label, tickSize)/2 - (d.width - margin)
		if !t.IsMinor() && excess > 0 && t.Value >= d.x.min && t.Value <= d.x.max && !d.hideX {
			d.box.Max.X -= excess
		}
	}
}

// canvasX returns the horizontal position of an x value on the canvas.
func (d *drawing) canvasX(v float64) vg.Length {
	return d.box.Min.X + vg.Length(d.x.fraction(v))*d.box.Size().X
}

// canvasY returns the vertical position of a y value on the canvas.
func (d *drawing) canvasY(v float64) vg.Length {
	return d.box.Min.Y + vg.Length(d.y.fraction(v))*d.box.Size().Y
}

// area returns a canvas that can clip to the plot's rectangle.
func (d *drawing) area() *draw.Canvas {
	return &draw.Canvas{Canvas: d.pen.Canvas, Rectangle: d.box}
}

// columnsOf returns the number of columns of panels: f.Columns if it is set, else about the square root of the number
// of panels, at most three.
func columnsOf(f *plots.Figure) int {
	n := len(f.Panels)
	if f.Columns > 0 {
		return min(f.Columns, n)
	}
	return min(n, 3, max(2, int(math.Ceil(math.Sqrt(float64(n))))))
}

// rowsOf returns the number of rows of panels.
func rowsOf(f *plots.Figure) int { return (len(f.Panels) + columnsOf(f) - 1) / columnsOf(f) }

// gridHeight returns the default height of a figure with panels, in inches, limited to [1, 50], which Validate accepts.
// The height of a row is proportional to the figure's width and smaller if there are more columns.
func gridHeight(f *plots.Figure) float64 {
	rowHeight := []float64{2.7, 2.4, 2.1}[min(columnsOf(f), 3)-1] // for 1, 2 and 3 columns at a width of 6.5 inches
	w := cmp.Or(f.Width, 6.5)
	lg := legend{entries: entries(panelsOf(f, pen{})...)}
	headHeight := titleSize*1.35 + lg.height(vg.Length(w)*vg.Inch-2*margin)
	return min(max(rowHeight*w/6.5*float64(rowsOf(f))+float64(headHeight/vg.Inch), 1), 50)
}

// drawPanels draws the panels in rows and columns of plots of equal size, with one legend above them.
func drawPanels(f *plots.Figure, p pen, w, h vg.Length) []*drawing {
	drawings := panelsOf(f, p)
	lg := legend{entries: entries(drawings...)}
	top := margin
	if f.Title != "" {
		top += titleSize * 1.35
	}
	legendTop := top
	if len(lg.entries) > 0 {
		top += lg.height(w - 2*margin)
	}
	alignPanels(f, drawings, w, h-top)
	// If one panel's title is wider than its plot, all titles begin at their panels' edges, so that they are aligned.
	titleAtEdge := slices.ContainsFunc(drawings, func(d *drawing) bool {
		return boldWidth(d.figure.Title, d.titleSize()) > d.width-margin-d.box.Min.X
	})
	(&drawing{figure: f, pen: p, width: w, height: h, gridPanel: gridPanel{titleAtEdge: true}}).drawTitle()
	lg.draw(p, point(margin, h-legendTop+4-legendRowHeight), w-2*margin)
	x, y := vg.Length(0), h-top
	for i, d := range drawings {
		if i%columnsOf(f) == 0 {
			x, y = 0, y-d.height
		}
		p.Push()
		p.Translate(point(x, y))
		d.titleAtEdge = titleAtEdge
		d.placeLabels()
		d.draw()
		p.Pop()
		x += d.width
	}
	return drawings
}

// panelsOf returns a drawing of each panel, not yet laid out. With ShareX all panels have the same extent and ends of
// the x axis, and only the lowest panel of a column has labels on it.
func panelsOf(f *plots.Figure, p pen) []*drawing {
	sharedX := emptyLimits
	for i := range f.Panels {
		x := extentOf(&f.Panels[i]).x
		sharedX.include(&f.Panels[i].X, x.lo, x.hi)
	}
	columns := columnsOf(f)
	appearanceNumbers, frameNumbers := numbering{}, numbering{}
	drawings := make([]*drawing, len(f.Panels))
	for i := range drawings {
		panel := f.Panels[i] // a copy, because the shared ends of the x axis are set in it
		d := &drawing{figure: &panel, pen: p, extent: extentOf(&panel), appearanceNumbers: appearanceNumbers,
			frameNumbers: frameNumbers,
			gridPanel:    gridPanel{inGrid: true}}
		if f.ShareX {
			d.extent.x, d.hideX = sharedX, i+columns < len(drawings)
			panel.X.Min, panel.X.Max = f.Panels[0].X.Min, f.Panels[0].X.Max
		}
		drawings[i] = d
	}
	return drawings
}

// alignPanels lays the panels out on w×h points so that all plots have the same size and are aligned in rows and
// columns.
func alignPanels(f *plots.Figure, drawings []*drawing, w, h vg.Length) {
	columnCount, rowCount := columnsOf(f), rowsOf(f)
	columnMargins, rowMargins := make([]margins, columnCount), make([]margins, rowCount)
	boxWidth, boxHeight := w/vg.Length(columnCount), h/vg.Length(rowCount)
	// The labels that fit depend on the plot's size, and the plot's size depends on the labels' width. Three rounds
	// are enough for the margins to converge; the fourth only lays the panels out with them.
	for round := range 4 {
		for i, d := range drawings {
			column, row := &columnMargins[i%columnCount], &rowMargins[i/columnCount]
			d.width, d.height = max(column.left+boxWidth+column.right, 20), max(row.top+boxHeight+row.bottom, 20)
			d.minMargins = margins{column.left, column.right, row.top, row.bottom}
			if d.layout(0); round == 3 {
				continue
			}
			column.left = max(column.left, d.box.Min.X)
			rightMargin := d.width - d.box.Max.X
			if i < columnCount || !f.ShareX && rightMargin < column.right || f.ShareX && rightMargin > column.right {
				// Without ShareX, a map's color bar narrows its own plot, not the whole column.
				column.right = rightMargin
			}
			row.bottom, row.top = max(row.bottom, d.box.Min.Y), max(row.top, d.height-d.box.Max.Y)
		}
		boxWidth, boxHeight = w, h
		for _, column := range columnMargins {
			boxWidth -= column.left + column.right
		}
		for _, row := range rowMargins {
			boxHeight -= row.top + row.bottom
		}
		boxWidth, boxHeight = max(boxWidth/vg.Length(columnCount), 10), max(boxHeight/vg.Length(rowCount), 10)
	}
}
