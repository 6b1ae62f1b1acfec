package draw

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot/palette/brewer"
	"gonum.org/v1/plot/vg"

	"github.com/krrlab/lab/plots"
	"github.com/krrlab/lab/plots/internal/text"
)

// edges returns the borders of cells at the values v of an axis: len(v)+1 values.
func edges(v []float64, a *plots.Axis) []float64 {
	to, from := transform(a)
	n := len(v)
	e := make([]float64, n+1)
	for i := 1; i < n; i++ {
		e[i] = to(v[i-1])/2 + to(v[i])/2
	}
	if n == 1 {
		e[0], e[1] = to(v[0])-0.5, to(v[0])+0.5
	} else {
		e[0] = to(v[0]) - (e[1] - to(v[0]))
		e[n] = to(v[n-1]) + (to(v[n-1]) - e[n-1])
	}
	for i := range e {
		e[i] = from(e[i])
	}
	return e
}

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
	return text.Rounded(v, -3, 4)
}

// drawMap draws the cells, the color bar and the tags of the reference lines.
func (d *drawing) drawMap() {
	m := d.f.Map
	if m == nil {
		return
	}
	d.eachCell(d.drawCell)
	if size := d.cellText(); size > 0 {
		d.eachCell(func(c vg.Rectangle, z float64) {
			at := point((c.Min.X+c.Max.X)/2, (c.Min.Y+c.Max.Y)/2-size*0.35)
			d.pen.text(valueText(m, z), at, size, d.inkOn(z), 0.5, false, false)
		})
	}
	d.drawBar()
	d.drawTags()
}

// cell returns the rectangle of cell (i, j), cut off at the plot's border.
func (d *drawing) cell(i, j int) vg.Rectangle {
	ex, ey := edges(d.f.Map.X, &d.f.X), edges(d.f.Map.Y, &d.f.Y)
	b := d.box
	return vg.Rectangle{
		Min: point(max(d.px(ex[j]), b.Min.X), max(d.py(ey[i]), b.Min.Y)),
		Max: point(min(d.px(ex[j+1]), b.Max.X), min(d.py(ey[i+1]), b.Max.Y)),
	}
}

// eachCell calls do for the cells that are seen.
func (d *drawing) eachCell(do func(r vg.Rectangle, z float64)) {
	for i := range d.f.Map.Z {
		for j, z := range d.f.Map.Z[i] {
			if r := d.cell(i, j); visible(r) {
				do(r, z)
			}
		}
	}
}

func visible(r vg.Rectangle) bool { return r.Max.X > r.Min.X && r.Max.Y > r.Min.Y }

// drawCell fills a cell; a value that the colors cannot show is gray and crossed out.
func (d *drawing) drawCell(r vg.Rectangle, z float64) {
	if s := r.Size(); s.X > 8 && s.Y > 8 { // a thin white line between cells
		r = inset(r, 0.4)
	} else { // no seams: the next cell covers what is too much
		r.Max.X, r.Max.Y = min(r.Max.X+0.5, d.box.Max.X), min(r.Max.Y+0.5, d.box.Max.Y)
	}
	if d.f.Map.Color.Shows(z) {
		d.pen.SetColor(d.shadeOf(z))
		d.pen.Fill(r.Path())
		return
	}
	d.pen.SetColor(grid)
	d.pen.Fill(r.Path())
	if math.IsNaN(z) {
		d.area().StrokeLines(lineStyle(paper, 1), []vg.Point{r.Min, r.Max})
	}
}

// cellText returns the size of the values in the cells, 0 if they do not fit.
func (d *drawing) cellText() vg.Length {
	m := d.f.Map
	if m.Bare {
		return 0
	}
	for _, size := range []vg.Length{9.5, 8.5, 7.5} {
		fits := true
		d.eachCell(func(r vg.Rectangle, z float64) {
			fits = fits && textWidth(valueText(m, z), size, false)+5 <= r.Size().X && size+3 <= r.Size().Y
		})
		if fits {
			return size
		}
	}
	return 0
}

// shades are nine colors from light to dark: ColorBrewer's YlGnBu, whose lightness falls all the
// way, for eyes that do not tell the hues apart.
var shades = func() []color.Color {
	p, err := brewer.GetPalette(brewer.TypeSequential, "YlGnBu", 9)
	if err != nil { // the name is known
		panic(err)
	}
	return p.Colors()
}()

// colorAt returns the color at t in [0, 1].
func colorAt(t float64) color.NRGBA {
	t = math.Min(math.Max(t, 0), 1) * float64(len(shades)-1)
	i := min(int(t), len(shades)-2)
	t -= float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-t) + float64(b)*t)) }
	a, b := nrgba(shades[i]), nrgba(shades[i+1])
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xff}
}

// nrgba returns the components of a color, not multiplied by its opacity.
func nrgba(c color.Color) color.NRGBA { return color.NRGBAModel.Convert(c).(color.NRGBA) }

func (d *drawing) shadeOf(z float64) color.NRGBA { return colorAt(d.color.norm(z)) }

// inkOn returns the color for text on the cell of a value: the one of black and white
// with more contrast.
func (d *drawing) inkOn(z float64) color.NRGBA {
	if d.f.Map.Color.Shows(z) && d.color.norm(z) > 0.66 {
		return paper
	}
	return ink
}

// cellAt returns the row and column of the cell that holds a point, and whether there
// is one.
func cellAt(f *plots.Figure, x, y float64) (i, j int, ok bool) {
	find := func(e []float64, v float64) int {
		if last := len(e) - 1; v == e[last] {
			return last - 1
		}
		return floats.Within(e, v)
	}
	i, j = find(edges(f.Map.Y, &f.Y), y), find(edges(f.Map.X, &f.X), x)
	return i, j, i >= 0 && j >= 0
}

const (
	barGap   vg.Length = 12 // from the plot to the bar
	barWidth vg.Length = 11
)

// mapRoom makes the scale of the colors and returns the room that the bar needs at the right of the plot.
func (d *drawing) mapRoom() vg.Length {
	m := d.f.Map
	if m == nil {
		return 0
	}
	l, height := none, d.box.Size().Y
	l.add(&m.Color, slices.Concat(m.Z...)...)
	d.color = fit(tight(&m.Color, l), l, nil, count(height, 24),
		func(s *scale) bool { return s.crowded(height, true) })
	return barGap + barWidth + d.barLabels()
}

// barLabels returns the room for the labels of the bar.
func (d *drawing) barLabels() vg.Length {
	w := tickLength + 3 + maxWidth(d.color.ticks) - 4
	if d.f.Map.Color.Label != "" {
		w += labelSize * 1.5
	}
	return w
}

// placeBar puts the bar beside the plot.
func (d *drawing) placeBar() {
	left := d.box.Max.X + barGap
	d.bar = vg.Rectangle{Min: point(left, d.box.Min.Y), Max: point(left+barWidth, d.box.Max.Y)}
}

func (d *drawing) drawBar() {
	const strips = 96
	b, p := d.bar, d.pen
	for k := range strips { // each covers the rest of the bar, so that no seam shows
		r := b
		r.Min.Y += b.Size().Y * vg.Length(k) / strips
		p.SetColor(colorAt((float64(k) + 0.5) / strips))
		p.Fill(r.Path())
	}
	place := func(v float64) vg.Point {
		return point(b.Max.X, b.Min.Y+vg.Length(d.color.norm(v))*b.Size().Y)
	}
	d.drawTicks(d.color, place, point(tickLength-1, 0), point(tickLength+2, -tickSize*0.35), 0)
	x := b.Max.X + tickLength + 2 + maxWidth(d.color.ticks) + labelSize*1.25
	d.drawAxisLabel(d.f.Map.Color.Label, point(x, (b.Min.Y+b.Max.Y)/2), b.Size().Y, true)
}

// tagRoom returns the room above a map for the tags of its vertical lines.
func (d *drawing) tagRoom() vg.Length {
	if d.f.Map == nil {
		return 0
	}
	for _, l := range d.f.VLines {
		if l.Label != "" {
			return markSize*1.2 + 7
		}
	}
	return 0
}

// tag is a label above the plot of a map, at a place along its border.
type tag struct {
	text         string
	place, start vg.Length // of the pointer, and of the label
	length       vg.Length
}

// drawTags draws a pointer at the upper border of a map for each reference line, and its
// label above: a line across the cells would strike out their values.
func (d *drawing) drawTags() {
	var tags []tag
	for _, r := range d.refLines() {
		tags = append(tags, tag{text: r.label, place: r.a.X, length: textWidth(r.label, markSize, false) + 6})
	}
	spread(tags, d.box.Min.X-20, d.w-margin)
	for _, t := range tags {
		d.pen.SetColor(ink)
		d.pen.Fill(shape{3, -math.Pi / 2, 1, 0}.path(point(t.place, d.box.Max.Y+4), 3))
		d.pen.text(t.text, point(t.start+3, d.box.Max.Y+10), markSize, ink, 0, false, false)
	}
}

// spread sets the starts of labels: centered on their places, moved apart where they
// would touch, and between lo and hi.
func spread(ts []tag, lo, hi vg.Length) {
	slices.SortStableFunc(ts, func(a, b tag) int { return cmp.Compare(a.place, b.place) })
	for i := range ts {
		ts[i].start = max(ts[i].place-ts[i].length/2, lo)
		lo = ts[i].start + ts[i].length
	}
	for i := len(ts) - 1; i >= 0; i-- {
		ts[i].start = min(ts[i].start, hi-ts[i].length)
		hi = ts[i].start
	}
}
