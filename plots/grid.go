package plots

import (
	"math"

	"gonum.org/v1/plot/vg"
)

// columns returns the number of panels side by side.
func (f *Figure) columns() int {
	n := len(f.Panels)
	if f.Columns > 0 {
		return min(f.Columns, n)
	}
	return min(n, 3, max(2, int(math.Ceil(math.Sqrt(float64(n))))))
}

// rows returns the number of rows of panels.
func (f *Figure) rows() int { return (len(f.Panels) + f.columns() - 1) / f.columns() }

// gridHeight returns the height that the panels need, in inches: rows as high as reads
// well at their width.
func (f *Figure) gridHeight() float64 {
	row := 2.7
	switch f.columns() {
	case 1:
	case 2:
		row = 2.4
	default:
		row = 2.1
	}
	w, _ := (&Figure{Width: f.Width}).size()
	k := gridKey(f.panels(pen{}))
	head := titleSize*1.35 + k.rowsHeight(vg.Length(w)*vg.Inch-2*margin)
	return math.Min(50, row*w/6.5*float64(f.rows())+float64(head/vg.Inch))
}

// drawPanels draws the panels in rows and columns of equal plots, one legend above.
func (f *Figure) drawPanels(p pen, w, h vg.Length) {
	ds := f.panels(p)
	k := gridKey(ds)
	top := margin
	if f.Title != "" {
		top += titleSize * 1.35
	}
	above := top
	if len(k.entries) > 0 {
		top += k.rowsHeight(w - 2*margin)
	}
	f.alignPanels(ds, w, h-top)
	for _, d := range ds { // where one title has no room over its plot all begin at the panels' edges
		if textWidth(d.f.Title, d.titleSize(), true) > d.w-margin-d.box.Min.X {
			for _, d := range ds {
				d.outdented = true
			}
			break
		}
	}
	if f.Title != "" {
		size := titleSize * min(1, (w-2*margin)/textWidth(f.Title, titleSize, true))
		p.text(f.Title, vg.Point{X: margin, Y: h - margin - titleSize*0.8}, size, ink, 0, true, false)
	}
	if len(k.entries) > 0 {
		k.drawAbove(p, vg.Point{X: margin, Y: h - above - k.rowsHeight(w-2*margin) + 8}, w-2*margin)
	}
	cols, y := f.columns(), h-top
	for r := range f.rows() {
		x := vg.Length(0)
		y -= ds[r*cols].h
		for c := 0; c < cols && r*cols+c < len(ds); c++ {
			d := ds[r*cols+c]
			p.Push()
			p.Translate(vg.Point{X: x, Y: y})
			d.placeLabels()
			d.draw()
			p.Pop()
			x += d.w
		}
	}
}

// panels returns the drawing of each panel: what its axes must show, which labels it
// has, and the looks of its series, one for each name.
func (f *Figure) panels(p pen) []*drawing {
	all := nothing
	for i := range f.Panels {
		all = all.union(f.Panels[i].extent())
	}
	cols := f.columns()
	names, rings := numbering{}, numbering{}
	ds := make([]*drawing, len(f.Panels))
	for i := range ds {
		g := f.Panels[i] // a copy: shared ends are set in it
		d := &drawing{f: &g, pen: p, extent: g.extent(), names: names, rings: rings, panel: panel{inGrid: true}}
		if f.ShareX {
			d.extent.xlo, d.extent.xhi, d.hideX = all.xlo, all.xhi, i+cols < len(ds)
			g.X.Min, g.X.Max = f.Panels[0].X.Min, f.Panels[0].X.Max
		}
		if f.ShareY {
			d.extent.ylo, d.extent.yhi, d.hideY = all.ylo, all.yhi, i%cols > 0
			g.Y.Min, g.Y.Max = f.Panels[0].Y.Min, f.Panels[0].Y.Max
		}
		ds[i] = d
	}
	return ds
}

// alignPanels lays the panels out on w×h points so that all plots have one size, and
// those of a row and of a column stand in line.
func (f *Figure) alignPanels(ds []*drawing, w, h vg.Length) {
	cols, rows := f.columns(), f.rows()
	side, edge := make([]margins, cols), make([]margins, rows)
	bw, bh := w/vg.Length(cols), h/vg.Length(rows)
	// The labels that fit depend on the plot's size, which depends on the labels: a
	// second and a third round settle it.
	for range 3 {
		for i, d := range ds {
			s, e := &side[i%cols], &edge[i/cols]
			d.w, d.h = max(s.left+bw+s.right, 20), max(e.top+bh+e.bottom, 20)
			d.least = margins{s.left, s.right, e.top, e.bottom}
			d.layout(0)
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
	for i, d := range ds {
		s, e := side[i%cols], edge[i/cols]
		d.w, d.h = s.left+bw+s.right, e.top+bh+e.bottom
		d.least = margins{s.left, s.right, e.top, e.bottom}
		d.layout(0)
	}
}

// gridKey returns the legend of all panels: each name once.
func gridKey(ds []*drawing) (k key) {
	type id struct {
		name string
		mark bool
	}
	seen := map[id]bool{}
	for _, d := range ds {
		for _, e := range d.entries() {
			if n := (id{e.name, e.mark}); !seen[n] {
				seen[n] = true
				k.entries = append(k.entries, e)
			}
		}
	}
	return k
}
