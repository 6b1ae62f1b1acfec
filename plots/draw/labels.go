package draw

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// raster is an image of the drawn data in which free places for labels are searched. It has one pixel per point of
// length.
type raster struct{ *vgimg.Canvas }

// Stroke implements vg.Canvas. It draws long paths in pieces, because the time of the rasterizer grows with the square
// of the number of points of a path.
func (r raster) Stroke(path vg.Path) {
	const piece = 32 // points of a piece; a judgment
	r.Canvas.Stroke(path[:min(piece, len(path))])
	for i := piece; i < len(path); i += piece {
		r.Canvas.Stroke(append(vg.Path{{Type: vg.MoveComp, Pos: path[i-1].Pos}}, path[i:min(i+piece, len(path))]...))
	}
}

// rasterizeData draws the data into d.raster, so that labels and the legend can be placed where no data are.
func (d *drawing) rasterizeData() {
	d.raster = raster{vgimg.NewWith(vgimg.UseWH(d.width, d.height), vgimg.UseDPI(72),
		vgimg.UseBackgroundColor(backgroundColor))}
	rasterDrawing := *d
	rasterDrawing.pen = pen{d.raster}
	rasterDrawing.drawData()
}

// darknessIn returns the sum of the darkness of the pixels in r, where a white pixel has darkness 0 and a black one 1.
// It is 0 if nothing is drawn in r.
func (d *drawing) darknessIn(r vg.Rectangle) (sum float64) {
	for x := int(r.Min.X); x <= int(r.Max.X); x++ {
		for y := int(d.height - r.Max.Y); y <= int(d.height-r.Min.Y); y++ {
			r, g, b, _ := d.raster.Image().At(x, y).RGBA()
			sum += 1 - float64(r+g+b)/(3*math.MaxUint16)
		}
	}
	return sum
}

// placedLabel is a label with its position.
type placedLabel struct {
	text        string
	start       vg.Point // left end of the baseline
	orientation orientation
	mark        *vg.Point     // position of the mark that the label belongs to, or nil for a reference line
	veiled      *vg.Rectangle // rectangle that is lightened before the label is drawn over data, or nil
}

// placeLabels sets d.labels: it finds a place for the label of each reference line, along the line, and of each mark,
// around the mark. A map has its labels outside, so d.labels is nil.
func (d *drawing) placeLabels() {
	d.labels = nil
	if d.figure.Map != nil {
		return
	}
	d.rasterizeData()
	for _, line := range d.refLines() {
		along, sides := point(1, 0), []vg.Point{{Y: 2}, {Y: -markSize - 4}}
		if line.orientation == vertical {
			along, sides = point(0, 1), []vg.Point{{X: -markSize - 2}, {X: 2}}
		}
		lowest, highest := line.a.Add(along.Scale(5)), line.b.Sub(along.Scale(textWidth(line.label, markSize)+4))
		var corners []vg.Point
		for _, t := range []vg.Length{0, 1, 0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875} {
			start := highest.Scale(1 - t).Add(lowest.Scale(t))
			corners = append(corners, start.Add(sides[0]), start.Add(sides[1]))
		}
		d.placeLabel(placedLabel{text: line.label, orientation: line.orientation}, corners)
	}
	for _, mark := range d.figure.Marks {
		pt, ok := d.markPoint(mark)
		if !ok {
			continue
		}
		width := textWidth(mark.Label, markSize)
		// The candidates are left, right, above and below the mark, the nearest ones first.
		var corners []vg.Point
		for _, height := range []vg.Length{5, 9, 24, 42, 62, 84, 110} { // from 24 on, a line leads to the mark
			for _, side := range []vg.Length{7, -width - 7, -width / 2} {
				corners = append(corners, pt.Add(point(side, height)), pt.Add(point(side, -height-markSize)))
			}
		}
		d.placeLabel(placedLabel{text: mark.Label, mark: &pt}, corners)
	}
}

// placeLabel appends l to d.labels, at the first of the candidates for its lower left corner where it covers the least
// data, and marks this place as occupied in d.raster. The label is veiled if it covers data inside the plot. An empty
// label is ignored.
func (d *drawing) placeLabel(l placedLabel, corners []vg.Point) {
	if l.text == "" {
		return
	}
	const outside = 1e6 // cost of a label that reaches beyond the plot
	box, w, h := d.box, textWidth(l.text, markSize), markSize
	if l.orientation == vertical {
		w, h = h, w
	}
	best, bestCost := vg.Rectangle{}, math.Inf(1)
	for _, p := range corners {
		r := vg.Rectangle{Min: p, Max: point(p.X+w, p.Y+h)}
		cost := d.darknessIn(r)
		if r.Min.X < box.Min.X || r.Max.X > box.Max.X || r.Min.Y < box.Min.Y || r.Max.Y > box.Max.Y {
			cost += outside
		}
		if cost < bestCost {
			best, bestCost = r, cost
		}
	}
	if bestCost > 0 && bestCost < outside {
		l.veiled = &best
	}
	d.raster.SetColor(textColor)
	d.raster.Fill(best.Path())
	l.start = point(best.Min.X, best.Min.Y+markSize*0.22)
	if l.orientation == vertical {
		l.start = point(best.Max.X-markSize*0.22, best.Min.Y)
	}
	d.labels = append(d.labels, l)
}

// drawLabels draws the labels that placeLabels has placed.
func (d *drawing) drawLabels() {
	for _, l := range d.labels {
		if l.veiled != nil {
			d.pen.SetColor(veilColor)
			d.pen.Fill(l.veiled.Path())
		}
		d.drawLeader(l)
		d.pen.text(l.text, l.start, textStyle{size: markSize, color: textColor, orientation: l.orientation})
	}
}

// drawLeader draws a thin line from a mark to its label if they are at least minLeader apart.
func (d *drawing) drawLeader(l placedLabel) {
	const minLeader = 15 // in points; a nearer label clearly belongs to its mark
	if l.mark == nil {
		return
	}
	width := textWidth(l.text, markSize)
	end := point(min(max(l.mark.X, l.start.X), l.start.X+width), l.start.Y-2.5)
	if l.mark.Y > l.start.Y {
		end.Y = l.start.Y + markSize
	}
	gap := distance(*l.mark, end)
	if gap < minLeader {
		return
	}
	start := l.mark.Add(end.Sub(*l.mark).Scale((markRadius*1.7 + 1) / gap))
	d.area().StrokeLines(lineStyle(axisColor, 0.7), []vg.Point{start, end})
}
