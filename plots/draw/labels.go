package draw

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// ground is an image of the data, of one dot a point, on which free places are searched.
type ground struct{ *vgimg.Canvas }

// Stroke implements vg.Canvas. It draws long lines in pieces: the rasterizer's time grows with the square of a length.
func (g ground) Stroke(path vg.Path) {
	const piece = 32
	g.Canvas.Stroke(path[:min(piece, len(path))])
	for i := piece; i < len(path); i += piece {
		g.Canvas.Stroke(append(vg.Path{{Type: vg.MoveComp, Pos: path[i-1].Pos}}, path[i:min(i+piece, len(path))]...))
	}
}

// collect draws the data, for labels and the legend to keep clear of.
func (d *drawing) collect() {
	d.ground = ground{vgimg.NewWith(vgimg.UseWH(d.w, d.h), vgimg.UseDPI(72), vgimg.UseBackgroundColor(paper))}
	sketch := *d
	sketch.pen = pen{d.ground}
	sketch.drawData()
}

// ink returns how much is drawn in r: the sum of the darkness of its dots, in [0, 1].
func (d *drawing) ink(r vg.Rectangle) (sum float64) {
	for x := int(r.Min.X); x <= int(r.Max.X); x++ {
		for y := int(d.h - r.Max.Y); y <= int(d.h-r.Min.Y); y++ {
			r, g, b, _ := d.ground.Image().At(x, y).RGBA()
			sum += 1 - float64(r+g+b)/(3*math.MaxUint16)
		}
	}
	return sum
}

// placed is a label and its baseline's left end.
type placed struct {
	text string
	at   vg.Point
	up   bool
	mark *vg.Point     // what it belongs to, if that is a point
	veil *vg.Rectangle // what it covers, to be paled under it
}

// placeLabels finds a place for the labels of reference lines and marks; a map has them outside.
func (d *drawing) placeLabels() {
	d.labels = nil
	if d.f.Map != nil {
		return
	}
	d.collect()
	for _, r := range d.refLines() {
		along, sides := point(1, 0), []vg.Point{{Y: 2}, {Y: -markSize - 4}}
		if r.upright {
			along, sides = point(0, 1), []vg.Point{{X: -markSize - 2}, {X: 2}}
		}
		last, first := r.b.Sub(along.Scale(textWidth(r.label, markSize, false)+4)), r.a.Add(along.Scale(5))
		var at []vg.Point
		for _, t := range []vg.Length{0, 1, 0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875} {
			start := last.Scale(1 - t).Add(first.Scale(t))
			at = append(at, start.Add(sides[0]), start.Add(sides[1]))
		}
		d.place(r.label, r.upright, nil, at)
	}
	for _, m := range d.f.Marks {
		pt, ok := d.placeOf(m)
		if !ok {
			continue
		}
		w := textWidth(m.Label, markSize, false)
		var at []vg.Point
		for _, far := range []vg.Length{5, 9, 24, 42, 62, 84, 110} { // from 24 on with a line to the mark
			for _, side := range []vg.Length{7, -w - 7, -w / 2} {
				at = append(at, pt.Add(point(side, far)), pt.Add(point(side, -far-markSize)))
			}
		}
		d.place(m.Label, false, &pt, at)
	}
}

// place puts a label, of a mark if that is given, at the one of some lower left corners
// where it covers least.
func (d *drawing) place(text string, up bool, mark *vg.Point, at []vg.Point) {
	if text == "" {
		return
	}
	const outside = 1e6 // the plot
	b, w, h := d.box, textWidth(text, markSize, false), markSize
	if up {
		w, h = h, w
	}
	best, least := vg.Rectangle{}, math.Inf(1)
	for _, p := range at {
		r := vg.Rectangle{Min: p, Max: point(p.X+w, p.Y+h)}
		n := d.ink(r)
		if r.Min.X < b.Min.X || r.Max.X > b.Max.X || r.Min.Y < b.Min.Y || r.Max.Y > b.Max.Y {
			n += outside
		}
		if n < least {
			best, least = r, n
		}
	}
	var covered *vg.Rectangle
	if least > 0 && least < outside {
		covered = &best
	}
	d.ground.SetColor(ink)
	d.ground.Fill(best.Path())
	base := point(best.Min.X, best.Min.Y+markSize*0.22)
	if up {
		base = point(best.Max.X-markSize*0.22, best.Min.Y)
	}
	d.labels = append(d.labels, placed{text: text, at: base, up: up, mark: mark, veil: covered})
}

func (d *drawing) drawLabels() {
	for _, l := range d.labels {
		if l.veil != nil {
			d.pen.SetColor(veil)
			d.pen.Fill(l.veil.Path())
		}
		d.drawLeader(l)
		d.pen.text(l.text, l.at, markSize, ink, 0, false, l.up)
	}
}

// drawLeader draws a thin line from a mark to its label where the two are apart.
func (d *drawing) drawLeader(l placed) {
	if l.mark == nil {
		return
	}
	w := textWidth(l.text, markSize, false)
	to := point(min(max(l.mark.X, l.at.X), l.at.X+w), l.at.Y-2.5)
	if l.mark.Y > l.at.Y {
		to.Y = l.at.Y + markSize
	}
	gap := distance(*l.mark, to)
	if gap < 15 {
		return
	}
	from := l.mark.Add(to.Sub(*l.mark).Scale((markRadius*1.7 + 1) / gap))
	d.area().StrokeLines(lineStyle(soft, 0.7), []vg.Point{from, to})
}
