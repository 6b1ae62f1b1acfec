package draw

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/krrlab/lab/plots"
)

// entry is one name in the legend. It belongs to a series, or to a mark on a map.
type entry struct {
	drawing *drawing
	index   int  // index of the series or mark in its figure
	isMark  bool // the entry is a mark on a map
	name    string
}

// entries returns the legend's entries for a drawing, or for all panels of a grid. They are the named series, and the
// named marks inside a map. In a grid, a name that several panels share is listed once.
func entries(drawings ...*drawing) (list []entry) {
	type id struct {
		name   string
		isMark bool
	}
	isListed := map[id]bool{}
	add := func(e entry) {
		if n := (id{e.name, e.isMark}); e.name != "" && (!isListed[n] || len(drawings) == 1) {
			isListed[n], list = true, append(list, e)
		}
	}
	for _, d := range drawings {
		for i := range d.figure.Series {
			add(entry{d, i, false, d.figure.Series[i].Name})
		}
		for i, m := range d.figure.Marks {
			if d.figure.Map != nil {
				if _, _, ok := cellAt(d.figure, m.X, m.Y); ok {
					add(entry{d, i, true, m.Label})
				}
			}
		}
	}
	return list
}

// legend holds the entries of the legend and, if it stands inside the plot, its rectangle.
type legend struct {
	entries []entry
	box     vg.Rectangle
}

const (
	sampleLength    vg.Length = 26 // length of the line drawn as a sample of a series
	sampleGap       vg.Length = 6  // distance from the sample to the name
	legendPadding   vg.Length = 5  // distance from the legend's frame to its content
	legendRowHeight vg.Length = legendSize * 1.4
)

// placeLegend returns the legend, and reports whether it can stand inside the plot. It tries the corners of the plot
// and the middles of its sides, and takes the first place where no data are drawn, with a distance of 4 points around
// it. A legend that is wider or higher than most of the plot is not tried, and a map never has its legend inside. An
// empty legend is inside.
func (d *drawing) placeLegend() (lg legend, isInside bool) {
	lg.entries = entries(d)
	if len(lg.entries) == 0 || d.figure.Map != nil {
		return lg, len(lg.entries) == 0
	}
	var w vg.Length
	for _, e := range lg.entries {
		w = max(w, textWidth(e.name, legendSize))
	}
	w += sampleLength + sampleGap + 2*legendPadding
	h := legendRowHeight*vg.Length(len(lg.entries)) + 2*legendPadding - legendSize*0.3
	size, b := point(w, h), inset(d.box, 5)
	if w > d.box.Size().X*0.6 || h > d.box.Size().Y*0.7 {
		return lg, false
	}
	free := b.Size().Sub(size) // the distances by which the legend can be moved
	for _, fraction := range [][2]vg.Length{{1, 1}, {0, 1}, {1, 0}, {0, 0}, {0.5, 1}, {1, 0.5}, {0, 0.5}, {0.5, 0}} {
		lg.box.Min = b.Min.Add(point(fraction[0]*free.X, fraction[1]*free.Y))
		lg.box.Max = lg.box.Min.Add(size)
		if d.darknessIn(inset(lg.box, -4)) == 0 {
			return lg, true
		}
	}
	return lg, false
}

// inset returns r with each side moved inward by distance, or outward if it is negative.
func inset(r vg.Rectangle, distance vg.Length) vg.Rectangle {
	diagonal := point(distance, distance)
	return vg.Rectangle{Min: r.Min.Add(diagonal), Max: r.Max.Sub(diagonal)}
}

// draw draws the entry's sample and its name. The baseline starts at pt.
func (e entry) draw(p pen, pt vg.Point) {
	p.group("krr-entry", e.name, func() {
		p.text(e.name, point(pt.X+sampleLength+sampleGap, pt.Y), textStyle{size: legendSize, color: textColor})
		e.drawSample(p, point(pt.X, pt.Y+legendSize*0.33))
	})
}

// drawSample draws the sample of the entry: the frame of a mark, or a piece of the series' line with its band and
// marker. start is the middle of the sample's left side.
func (e entry) drawSample(p pen, start vg.Point) {
	mid, end := start.Add(point(sampleLength/2, 0)), start.Add(point(sampleLength, 0))
	if e.isMark && e.drawing.figure.Map.Bare {
		p.drawRing(mid)
		return
	}
	if e.isMark {
		half := point(8, 4.5)
		p.drawFrame(vg.Rectangle{Min: mid.Sub(half), Max: mid.Add(half)}, e.drawing.frameNumbers.numberOf(e.name,
			e.index))
		return
	}
	s, l, c := &e.drawing.figure.Series[e.index], e.drawing.appearanceOf(e.index), &draw.Canvas{Canvas: p.Canvas}
	line := lineStyle(l.color, lineWidth, l.dash...)
	switch up := (point(0, 4)); { // half the height of the sample of a band
	case s.Style == plots.Points && s.Lo != nil:
		c.StrokeLine2(lineStyle(l.color, 1), mid.X, mid.Y-5, mid.X, mid.Y+5)
	case s.Lo != nil:
		c.FillPolygon(l.tint(), []vg.Point{start.Sub(up), end.Sub(up), end.Add(up), start.Add(up)})
	}
	if s.Style != plots.Points {
		c.StrokeLine2(line, start.X, mid.Y, end.X, mid.Y)
	}
	if len(e.drawing.markerPoints(e.index)) > 0 {
		p.drawMarker(l, mid)
	}
}

// drawInside draws the legend in its box, with one name in each row.
func (lg *legend) drawInside(p pen) {
	if len(lg.entries) == 0 {
		return
	}
	p.SetColor(backgroundColor)
	p.Fill(lg.box.Path())
	p.strokePath(lg.box.Path(), lineStyle(gridColor, 0.6))
	lg.draw(p, point(lg.box.Min.X+legendPadding, lg.box.Max.Y-legendPadding-legendSize*0.8), 0)
}

// draw draws the legend in rows of the given width. The baseline of the first row starts at pt.
func (lg *legend) draw(p pen, pt vg.Point, width vg.Length) {
	lg.arrange(width, func(e entry, x vg.Length, row int) {
		e.draw(p, point(pt.X+x, pt.Y-legendRowHeight*vg.Length(row)))
	})
}

// arrange distributes the entries over rows of the given width and returns the number of rows. It calls place for each
// entry with its row and its horizontal offset. A row has at least one entry, even if that is wider than the row.
func (lg *legend) arrange(width vg.Length, place func(e entry, x vg.Length, row int)) (n int) {
	x, row := vg.Length(0), 0
	for _, e := range lg.entries {
		w := sampleLength + sampleGap + textWidth(e.name, legendSize) + 14
		if x > 0 && x+w > width {
			x, row = 0, row+1
		}
		place(e, x, row)
		x += w
	}
	return row + 1
}

// height returns the height of the legend above a plot of the given width.
func (lg *legend) height(width vg.Length) vg.Length {
	return legendRowHeight*vg.Length(lg.arrange(width, func(entry, vg.Length, int) {})) + 4
}
