package draw

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot/palette/brewer"
	"gonum.org/v1/plot/vg"

	"github.com/krrlab/lab/plots"
	"github.com/krrlab/lab/plots/internal/text"
)

// edges returns the len(values)+1 borders of the cells at the given values of an axis. Inner borders are half-way
// between values, geometrically on a log axis; the outer cells extend equally far to both sides of their values.
func edges(values []float64, a *plots.Axis) []float64 {
	forward, inverse := transform(a)
	n := len(values)
	lowest, highest := forward(values[0]), forward(values[n-1])
	borders := make([]float64, n+1)
	for i := 1; i < n; i++ {
		borders[i] = forward(values[i-1])/2 + forward(values[i])/2
	}
	borders[0], borders[n] = lowest-(borders[1]-lowest), highest+(highest-borders[n-1])
	if n == 1 { // a single cell has the width 1 in the coordinate of the axis
		borders[0], borders[1] = lowest-0.5, highest+0.5
	}
	for i := range borders {
		borders[i] = inverse(borders[i])
	}
	return borders
}

// valueText returns the text of the value v in a cell of the map: in the map's format, or with three digits. It is
// empty for NaN.
func valueText(m *plots.HeatMap, v float64) string {
	switch {
	case math.IsNaN(v):
		return ""
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "−∞"
	case m.Format != "":
		return text.Minus(fmt.Sprintf(m.Format, v))
	}
	return text.PlainWithin(v, -3, 4)
}

// drawMap draws the cells, the color bar and the tags of the reference lines.
func (d *drawing) drawMap() {
	m := d.figure.Map
	if m == nil {
		return
	}
	if len(m.X)*len(m.Y) > imageCells {
		d.drawImage()
	} else {
		d.eachCell(d.drawCell)
	}
	if size := d.cellTextSize(); size > 0 {
		d.eachCell(func(cell vg.Rectangle, z float64) {
			pt := point((cell.Min.X+cell.Max.X)/2, (cell.Min.Y+cell.Max.Y)/2-size*0.35)
			d.pen.text(valueText(m, z), pt, textStyle{size: size, color: d.textColorOn(z), align: 0.5})
		})
	}
	d.drawColorBar()
	d.drawTags()
}

const (
	// imageCells is the number of cells above which a map is drawn as an image. A larger value makes larger files, of
	// some 90 bytes for each cell. The value is a judgment.
	imageCells = 2000
	// imageDots is the number of pixels of such an image for each point of length.
	imageDots = 3
)

// drawImage draws the cells as an image.
func (d *drawing) drawImage() {
	box := d.box
	pixels := func(length vg.Length) int { return int(math.Round(float64(length) * imageDots)) }
	img := image.NewNRGBA(image.Rect(0, 0, int(box.Size().X*imageDots), int(box.Size().Y*imageDots)))
	height := img.Rect.Dy()
	d.eachCell(func(cell vg.Rectangle, z float64) {
		pixelRect := image.Rect(pixels(cell.Min.X-box.Min.X), height-pixels(cell.Max.Y-box.Min.Y),
			pixels(cell.Max.X-box.Min.X),
			height-pixels(cell.Min.Y-box.Min.Y))
		imagedraw.Draw(img, pixelRect, image.NewUniform(d.shadeOf(z)), image.Point{}, imagedraw.Src)
	})
	d.pen.DrawImage(box, img)
}

// cellBorders returns the positions of the borders of the map's columns and rows on the canvas, from the left and from
// below. Borders outside the plot are moved to its side.
func (d *drawing) cellBorders() (x, y []vg.Length) {
	box := d.box
	for _, v := range edges(d.figure.Map.X, &d.figure.X) {
		x = append(x, min(max(d.canvasX(v), box.Min.X), box.Max.X))
	}
	for _, v := range edges(d.figure.Map.Y, &d.figure.Y) {
		y = append(y, min(max(d.canvasY(v), box.Min.Y), box.Max.Y))
	}
	return x, y
}

// cell returns the rectangle of cell (i, j), cut off at the plot's border.
func (d *drawing) cell(i, j int) vg.Rectangle {
	x, y := d.cellBorders()
	return vg.Rectangle{Min: point(x[j], y[i]), Max: point(x[j+1], y[i+1])}
}

// eachCell calls visit with the rectangle and the value of each cell that is at least partly inside the plot.
func (d *drawing) eachCell(visit func(r vg.Rectangle, z float64)) {
	x, y := d.cellBorders()
	for i, row := range d.figure.Map.Z {
		for j, z := range row {
			if r := (vg.Rectangle{Min: point(x[j], y[i]), Max: point(x[j+1], y[i+1])}); isVisible(r) {
				visit(r, z)
			}
		}
	}
}

// isVisible reports whether the area of r is positive.
func isVisible(r vg.Rectangle) bool { return r.Max.X > r.Min.X && r.Max.Y > r.Min.Y }

// drawCell fills a cell with the color of its value z. The cell is also crossed out if z is NaN.
func (d *drawing) drawCell(r vg.Rectangle, z float64) {
	if s := r.Size(); s.X > 8 && s.Y > 8 { // leaves a thin white line between cells
		r = inset(r, 0.4)
	} else { // avoids visible seams; the next cell covers the excess
		r.Max.X, r.Max.Y = min(r.Max.X+0.5, d.box.Max.X), min(r.Max.Y+0.5, d.box.Max.Y)
	}
	d.pen.SetColor(d.shadeOf(z))
	d.pen.Fill(r.Path())
	if math.IsNaN(z) {
		d.area().StrokeLines(lineStyle(backgroundColor, 1), []vg.Point{r.Min, r.Max})
	}
}

// cellTextSize returns the largest font size in points at which the values of all cells fit, or 0 if none does.
func (d *drawing) cellTextSize() vg.Length {
	m := d.figure.Map
	if m.Bare {
		return 0
	}
	for _, size := range []vg.Length{9.5, 8.5, 7.5} {
		fits := true
		d.eachCell(func(r vg.Rectangle, z float64) {
			fits = fits && textWidth(valueText(m, z), size)+5 <= r.Size().X && size+3 <= r.Size().Y
		})
		if fits {
			return size
		}
	}
	return 0
}

// shades holds nine colors from light to dark, the scheme YlGnBu of ColorBrewer. The lightness decreases monotonically,
// so that values can be compared without color vision.
var shades = func() []color.Color {
	scheme, err := brewer.GetPalette(brewer.TypeSequential, "YlGnBu", 9)
	if err != nil { // brewer has a palette of this name
		panic(err)
	}
	return scheme.Colors()
}()

// colorAt returns the color at t in [0, 1], linearly interpolated between shades. Other values of t are clipped.
func colorAt(t float64) color.NRGBA {
	t = math.Min(math.Max(t, 0), 1) * float64(len(shades)-1)
	i := min(int(t), len(shades)-2)
	t -= float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-t) + float64(b)*t)) }
	lighter, darker := nrgba(shades[i]), nrgba(shades[i+1])
	return color.NRGBA{mix(lighter.R, darker.R), mix(lighter.G, darker.G), mix(lighter.B, darker.B), 0xff}
}

// nrgba returns the components of a color, not multiplied by its opacity.
func nrgba(c color.Color) color.NRGBA { return color.NRGBAModel.Convert(c).(color.NRGBA) }

// shadeOf returns the color of a cell with the value z. The cell is gray if the color scale cannot show z.
func (d *drawing) shadeOf(z float64) color.NRGBA {
	if !d.figure.Map.Color.Shows(z) {
		return gridColor
	}
	return colorAt(d.color.fraction(z))
}

// textColorOn returns the text color on a cell of the value z: dark on light cells and white on dark ones, so that the
// contrast is at least 3.9 (TestColors).
func (d *drawing) textColorOn(z float64) color.NRGBA {
	const firstDark = 0.66 // position in the color scale from which on white text has the better contrast
	if d.figure.Map.Color.Shows(z) && d.color.fraction(z) > firstDark {
		return backgroundColor
	}
	return textColor
}

// cellAt returns the row i and the column j of the cell that contains the point (x, y). ok is false if there is none.
func cellAt(f *plots.Figure, x, y float64) (i, j int, ok bool) {
	find := func(borders []float64, v float64) int {
		if n := len(borders) - 1; v == borders[n] {
			return n - 1
		}
		return floats.Within(borders, v)
	}
	i, j = find(edges(f.Map.Y, &f.Y), y), find(edges(f.Map.X, &f.X), x)
	return i, j, i >= 0 && j >= 0
}

const (
	colorBarGap   vg.Length = 12 // distance from the plot to the color bar
	colorBarWidth vg.Length = 11 // width of the color bar
)

// colorBarRoom returns the width that a map's color bar and its labels need at the right of the plot. It is 0 without a
// map. colorBarRoom also sets d.color, the scale of the colors, on which the width depends.
func (d *drawing) colorBarRoom() vg.Length {
	m := d.figure.Map
	if m == nil {
		return 0
	}
	values, height := emptyLimits, d.box.Size().Y
	values.include(&m.Color, slices.Concat(m.Z...)...)
	d.color = fitScale(withFixedEnds(&m.Color, values), values, nil, tickCount(height, 24),
		func(s *scale) bool { return s.isCrowded(height, vertical) })
	return colorBarGap + colorBarWidth + d.colorBarLabelWidth()
}

// colorBarLabelWidth returns the width that the tick labels and the label of the color bar need, minus 4 points,
// because layout adds a right margin of 4 points.
func (d *drawing) colorBarLabelWidth() vg.Length {
	width := tickLength + 3 + maxTickWidth(d.color.ticks) - 4
	if d.figure.Map.Color.Label != "" {
		width += labelSize * 1.5
	}
	return width
}

// placeColorBar sets the rectangle of the color bar, to the right of the plot.
func (d *drawing) placeColorBar() {
	x := d.box.Max.X + colorBarGap
	d.colorBar = vg.Rectangle{Min: point(x, d.box.Min.Y), Max: point(x+colorBarWidth, d.box.Max.Y)}
}

// stripCount is the number of colors of the color bar, and of maps in a PNG image with a palette. A smaller number
// shows bands.
const stripCount = 96

// stripColor returns color k of the color bar.
func stripColor(k int) color.NRGBA { return colorAt((float64(k) + 0.5) / stripCount) }

// drawColorBar draws the color bar with its ticks and its label.
func (d *drawing) drawColorBar() {
	bar, p := d.colorBar, d.pen
	for k := range stripCount { // each strip covers the bar up to its top, so that no seams are visible
		strip := bar
		strip.Min.Y += bar.Size().Y * vg.Length(k) / stripCount
		p.SetColor(stripColor(k))
		p.Fill(strip.Path())
	}
	position := func(v float64) vg.Point {
		return point(bar.Max.X, bar.Min.Y+vg.Length(d.color.fraction(v))*bar.Size().Y)
	}
	d.drawTicks(d.color, position, point(tickLength-1, 0), point(tickLength+2, -tickSize*0.35), 0)
	x := bar.Max.X + tickLength + 2 + maxTickWidth(d.color.ticks) + labelSize*1.25
	d.drawAxisLabel(d.figure.Map.Color.Label, point(x, (bar.Min.Y+bar.Max.Y)/2), bar.Size().Y, vertical)
}

// tagRoom returns the height that the labels of vertical reference lines need above a map. It is 0 if there are none.
func (d *drawing) tagRoom() vg.Length {
	if d.figure.Map == nil {
		return 0
	}
	if slices.ContainsFunc(d.figure.VLines, func(line plots.RefLine) bool { return line.Label != "" }) {
		return markSize*1.2 + 7
	}
	return 0
}

// tag is the label of a reference line above a map. All positions are horizontal.
type tag struct {
	text   string
	anchor vg.Length // position of the reference line, where a pointer is drawn
	start  vg.Length // position of the left end of the label
	length vg.Length // width of the label with its padding
}

// drawTags draws a pointer at the upper border of a map for each reference line, and its label above the pointer. A
// line across the cells would make their values unreadable.
func (d *drawing) drawTags() {
	var tags []tag
	for _, line := range d.refLines() {
		tags = append(tags, tag{text: line.label, anchor: line.a.X, length: textWidth(line.label, markSize) + 6})
	}
	spreadTags(tags, d.box.Min.X-20, d.width-margin)
	for _, tag := range tags {
		d.pen.SetColor(textColor)
		d.pen.Fill(shape{3, -math.Pi / 2, 1, 0}.path(point(tag.anchor, d.box.Max.Y+4), 3))
		d.pen.text(tag.text, point(tag.start+3, d.box.Max.Y+10), textStyle{size: markSize, color: textColor})
	}
}

// spreadTags sorts the tags by their anchors and sets the starts of their labels. A label is centered on its anchor,
// unless it has to be moved so that labels do not overlap and stay between lo and hi.
func spreadTags(tags []tag, lo, hi vg.Length) {
	slices.SortStableFunc(tags, func(a, b tag) int { return cmp.Compare(a.anchor, b.anchor) })
	for i := range tags {
		tags[i].start = max(tags[i].anchor-tags[i].length/2, lo)
		lo = tags[i].start + tags[i].length
	}
	for i := len(tags) - 1; i >= 0; i-- {
		tags[i].start = min(tags[i].start, hi-tags[i].length)
		hi = tags[i].start
	}
}
