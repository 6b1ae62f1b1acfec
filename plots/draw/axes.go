package draw

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/krrlab/lab/plots"
	"github.com/krrlab/lab/plots/internal/text"
)

// fit makes the scale of an axis for data within limits with some n labels, or at a map's cells,
// with fewer while they are crowded.
func fit(a *plots.Axis, l limits, cells []float64, n int, crowded func(*scale) bool) *scale {
	if cells != nil {
		a = tight(a, l)
	}
	for every := 1; ; every++ {
		at := a.Ticks
		if at == nil && every <= 2 && len(cells) <= 9*every {
			at = cells
		}
		s := newScale(a, l)
		s.label(max(n+1-every, 1), at, every)
		if !crowded(s) {
			return s
		}
		if every > n+len(a.Ticks) {
			s.dropLabels(func() bool { return crowded(s) })
			return s
		}
	}
}

// titleSize returns the size of the title in points.
func (d *drawing) titleSize() vg.Length {
	if d.inGrid {
		return panelTitleSize
	}
	return titleSize
}

// drawTitle writes the title above the plot, smaller if it is too long.
func (d *drawing) drawTitle() {
	if d.f.Title == "" {
		return
	}
	size, left := d.titleSize(), d.box.Min.X
	w := textWidth(d.f.Title, size, true)
	if d.outdented || w > d.w-margin-left {
		left = margin
	}
	y := d.h - margin - size*0.8
	if w > d.w-2*margin {
		size *= (d.w - 2*margin) / w
	}
	if d.inGrid { // a panel's title stays with its plot
		y = d.box.Max.Y + d.tagRoom() + panelTitleSize*0.6
	}
	d.pen.text(d.f.Title, point(left, y), size, ink, 0, true, false)
}

// drawGrid draws the lines of the grid, the minor ones first, and none at the border.
func (d *drawing) drawGrid() {
	if d.f.Map != nil {
		return
	}
	for _, minor := range []bool{true, false} {
		sty := lineStyle(grid, 0.6)
		if minor {
			sty.Color = faint
		}
		for _, s := range []*scale{d.x, d.y} {
			for _, t := range s.ticks {
				r, ok := d.rule(t.Value, s == d.x, "")
				if ok && t.IsMinor() == minor && distance(r.a, d.box.Min) > 0.3 {
					d.stroke(sty, r)
				}
			}
		}
	}
}

// drawAxes draws both axes, their ticks and their labels.
func (d *drawing) drawAxes() {
	left, low := d.box.Min.X, d.box.Min.Y
	d.area().StrokeLines(axisStyle, []vg.Point{{X: left, Y: d.box.Max.Y}, d.box.Min, {X: d.box.Max.X, Y: low}})
	d.drawTicks(d.x, func(v float64) vg.Point { return point(d.px(v), low) }, point(0, -tickLength),
		point(0, -tickLength-tickSize), 0.5)
	d.drawTicks(d.y, func(v float64) vg.Point { return point(left, d.py(v)) }, point(-tickLength, 0),
		point(-tickLength-3, -tickSize*0.35), 1)
}

// drawTicks draws a line out of the axis at the place of each labeled tick, and the label at a distance, aligned there.
func (d *drawing) drawTicks(s *scale, place func(v float64) vg.Point, out, text vg.Point, align float64) {
	for _, t := range s.ticks {
		if at := s.norm(t.Value); t.IsMinor() || at < -1e-9 || at > 1+1e-9 {
			continue
		}
		at := place(t.Value)
		d.area().StrokeLines(axisStyle, []vg.Point{at, at.Add(out)})
		if s != d.x || !d.hideX {
			d.pen.text(t.Label, at.Add(text), tickSize, ink, align, false, false)
		}
	}
}

func (d *drawing) drawAxisLabels() {
	b := d.box
	mid := point((b.Min.X+b.Max.X)/2, (b.Min.Y+b.Max.Y)/2)
	if !d.hideX {
		d.drawAxisLabel(d.f.X.Label, point(mid.X, b.Min.Y-tickLength-tickSize*1.25-labelSize*1.2),
			b.Size().X, false)
	}
	x := b.Min.X - tickLength - 3 - maxWidth(d.y.ticks) - labelSize*0.8
	d.drawAxisLabel(d.f.Y.Label, point(x, mid.Y), b.Size().Y, true)
}

// drawAxisLabel writes the label of an axis of a length, centered at a point, smaller where it is longer than the axis.
func (d *drawing) drawAxisLabel(label string, at vg.Point, length vg.Length, upright bool) {
	size := labelSize * min(1, length/textWidth(label, labelSize, false))
	d.pen.text(label, at, size, ink, 0.5, false, upright)
}

// count returns how many ticks, each of the given room, an axis has place for.
func count(length, room vg.Length) int { return min(max(int(length/room), 2), 7) }

func maxWidth(ts []plot.Tick) (w vg.Length) {
	for _, t := range ts {
		w = max(w, textWidth(t.Label, tickSize, false))
	}
	return w
}

// crowded reports whether labels of the scale touch on an axis of a length: side by side,
// or one above the other if upright.
func (s *scale) crowded(length vg.Length, upright bool) bool {
	end := vg.Length(math.Inf(-1))
	for _, t := range s.ticks {
		if t.IsMinor() {
			continue
		}
		at, half, gap := length*vg.Length(s.norm(t.Value)), textWidth(t.Label, tickSize, false)/2, vg.Length(5)
		if upright {
			half, gap = 0, tickSize*1.2
		}
		if at-half < end+gap {
			return true
		}
		end = at + half
	}
	return false
}

// linearTicks labels multiples of 1, 2 or 5 times a power of ten: as many as there are
// up to n+1.
func linearTicks(lo, hi float64, n int) (ts []plot.Tick) {
	least := int(math.Floor(math.Log10((hi-lo)/float64(max(n, 2))))) - 1
	for k := 0; ; k++ {
		mult, exp := []float64{1, 2, 5}[k%3], least+k/3
		unit := mult * math.Pow(10, float64(exp))
		first, last := math.Ceil(lo/unit-1e-9), math.Floor(hi/unit+1e-9)
		switch {
		case last-first > float64(n):
			continue
		case last-first < 2 && n < 6: // two ticks do not tell an axis
			return linearTicks(lo, hi, n+1)
		}
		for j := first; j <= last; j++ {
			label := tickLabel(j*mult, exp, math.Max(math.Abs(lo), math.Abs(hi)))
			ts = append(ts, plot.Tick{Value: j * unit, Label: label})
		}
		return ts
	}
}

// tickLabel writes j·10^exp, of a whole j so that no label shows a rounding error: plainly
// where that is short, and with a power of ten otherwise. top is the largest magnitude on
// the axis.
func tickLabel(j float64, exp int, top float64) string {
	if j == 0 {
		return "0"
	}
	if top < 1e7 && exp >= -4 {
		return text.Group(text.Minus(strconv.FormatFloat(j*math.Pow(10, float64(exp)), 'f', max(0, -exp), 64)))
	}
	// Write every label over the power of ten of the largest one.
	p := int(math.Floor(math.Log10(top)))
	return text.Power(strconv.FormatFloat(j*math.Pow(10, float64(exp-p)), 'f', max(0, p-exp), 64), p)
}

// logTicks labels powers of ten, every k-th one if there are many; if there are few
// it labels 2 and 5 times them too, or all their multiples. The rest are minor ticks.
func logTicks(lo, hi float64, n int) []plot.Tick {
	decades := math.Log10(hi) - math.Log10(lo)
	every := 1
	for decades/float64(every) > float64(max(n, 2))+1 {
		every++
	}
	multiples := "1"
	if decades < 1.7 || 3*decades <= float64(n)+1 { // room for 2 and 5 as well
		multiples = "125"
	}
	if decades < 0.7 {
		multiples = "123456789"
	}
	ts := logTicksAt(lo, hi, multiples, every)
	for _, more := range []string{"13", "125", "123456789"} { // two ticks do not tell a logarithmic axis
		if labeled(ts) < 3 && len(more) > len(multiples) {
			ts = logTicksAt(lo, hi, more, 1)
		}
	}
	if labeled(ts) < 3 { // a small part of a decade: linear ticks tell more
		return linearTicks(lo, hi, n)
	}
	return ts
}

// logTicksAt labels these multiples of every so-manyth power of ten.
func logTicksAt(lo, hi float64, multiples string, every int) (ts []plot.Tick) {
	plain := len(multiples) > 1 && lo >= 1e-3 && hi <= 1e6 // labels without powers of ten
	p0, p1 := int(math.Floor(math.Log10(lo)-1e-9)), int(math.Ceil(math.Log10(hi)+1e-9))
	for p := p0; p <= p1; p++ {
		for m := 1; m <= 9; m++ {
			v := float64(m) * math.Pow(10, float64(p))
			if v < lo*(1-1e-12) || v > hi*(1+1e-12) || v == 0 || m > 1 && every > 1 {
				continue
			}
			t := plot.Tick{Value: v}
			if strings.Contains(multiples, strconv.Itoa(m)) && p%every == 0 {
				t.Label = text.Power(strconv.Itoa(m), p)
				if plain {
					t.Label = text.Plain(v)
				}
			}
			ts = append(ts, t)
		}
	}
	return ts
}

func labeled(ts []plot.Tick) (n int) {
	for _, t := range ts {
		if t.Label != "" {
			n++
		}
	}
	return n
}

// isPlain reports whether a tick at v is best labeled without a power of ten.
func isPlain(v float64) bool {
	a := math.Abs(v)
	return v == 0 || a >= 1e-3 && a < 1e3 || a < 1e7 && v == math.Trunc(v)
}
