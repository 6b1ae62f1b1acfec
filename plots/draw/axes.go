package draw

import (
	"math"
	"strconv"
	"strings"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/krrlab/lab/plots"
	"github.com/krrlab/lab/plots/internal/text"
)

// fitScale returns the scale of an axis for data within the limits l. cells are the values of a map's cells on the
// axis, nil without a map. The axis gets about n labels, or labels at a.Ticks, or at the values of up to nine cells or
// of every second of up to eighteen. It gets fewer labels as long as isCrowded reports that they touch.
func fitScale(a *plots.Axis, l limits, cells []float64, n int, isCrowded func(*scale) bool) *scale {
	if cells != nil {
		a = withFixedEnds(a, l)
	}
	for every := 1; ; every++ {
		values := a.Ticks
		const maxCellLabels = 9 // more cells have ticks at round values
		if values == nil && every <= 2 && len(cells) <= maxCellLabels*every {
			values = cells
		}
		s := newScale(a, l)
		s.setTicks(max(n+1-every, 1), values, every)
		if !isCrowded(s) {
			return s
		}
		if every > n+len(a.Ticks) {
			s.dropLabels(func() bool { return isCrowded(s) })
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

// drawTitle writes the title above the plot, in a smaller size if it is too long. The factors of font sizes here and
// below are chosen by eye.
func (d *drawing) drawTitle() {
	if d.figure.Title == "" {
		return
	}
	size, x := d.titleSize(), d.box.Min.X
	width := boldWidth(d.figure.Title, size)
	if d.titleAtEdge || width > d.width-margin-x {
		x = margin
	}
	y := d.height - margin - size*0.8
	if width > d.width-2*margin {
		size *= (d.width - 2*margin) / width
	}
	if d.inGrid { // the title of a panel stands directly above its plot
		y = d.box.Max.Y + d.tagRoom() + panelTitleSize*0.6
	}
	d.pen.text(d.figure.Title, point(x, y), textStyle{size: size, weight: stdfont.WeightBold, color: textColor})
}

// drawGrid draws the lines of the grid at the ticks of both axes, the minor ones first. A line that coincides with an
// axis is omitted, and so is the grid of a map.
func (d *drawing) drawGrid() {
	if d.figure.Map != nil {
		return
	}
	for _, isMinor := range []bool{true, false} {
		style := lineStyle(gridColor, 0.6)
		if isMinor {
			style.Color = minorGridColor
		}
		for _, s := range []*scale{d.x, d.y} {
			for _, tick := range s.ticks {
				line, ok := d.lineAt(tick.Value, orientation(s == d.x), "") // a tick of the x axis has a vertical line
				if ok && tick.IsMinor() == isMinor && distance(line.a, d.box.Min) > 0.3 {
					d.strokeLines(style, line)
				}
			}
		}
	}
}

// drawAxes draws both axes, their ticks and their labels.
func (d *drawing) drawAxes() {
	x0, y0 := d.box.Min.X, d.box.Min.Y
	d.area().StrokeLines(axisStyle, []vg.Point{{X: x0, Y: d.box.Max.Y}, d.box.Min, {X: d.box.Max.X, Y: y0}})
	d.drawTicks(d.x, func(v float64) vg.Point { return point(d.canvasX(v), y0) }, point(0, -tickLength),
		point(0, -tickLength-tickSize), 0.5)
	d.drawTicks(d.y, func(v float64) vg.Point { return point(x0, d.canvasY(v)) }, point(-tickLength, 0),
		point(-tickLength-3, -tickSize*0.35), 1)
}

// drawTicks draws the labeled ticks of a scale. position returns the point on the axis for a value. A tick extends
// from there by the vector mark. Its label is drawn at the offset label from there, aligned by the fraction align of
// its width.
func (d *drawing) drawTicks(s *scale, position func(v float64) vg.Point, mark, label vg.Point, align float64) {
	for _, tick := range s.ticks {
		if fraction := s.fraction(tick.Value); tick.IsMinor() || fraction < -1e-9 || fraction > 1+1e-9 {
			continue
		}
		pt := position(tick.Value)
		d.area().StrokeLines(axisStyle, []vg.Point{pt, pt.Add(mark)})
		if s != d.x || !d.hideX {
			d.pen.text(tick.Label, pt.Add(label), textStyle{size: tickSize, color: textColor, align: align})
		}
	}
}

// drawAxisLabels writes the labels of both axes.
func (d *drawing) drawAxisLabels() {
	box := d.box
	center := point((box.Min.X+box.Max.X)/2, (box.Min.Y+box.Max.Y)/2)
	if !d.hideX {
		d.drawAxisLabel(d.figure.X.Label, point(center.X, box.Min.Y-tickLength-tickSize*1.25-labelSize*1.2),
			box.Size().X, horizontal)
	}
	x := box.Min.X - tickLength - 3 - maxTickWidth(d.y.ticks) - labelSize*0.8
	d.drawAxisLabel(d.figure.Y.Label, point(x, center.Y), box.Size().Y, vertical)
}

// drawAxisLabel writes the label of an axis of the given length, centered at center. A label that is longer than the
// axis is written in a smaller size.
func (d *drawing) drawAxisLabel(label string, center vg.Point, length vg.Length, direction orientation) {
	size := labelSize * min(1, length/textWidth(label, labelSize))
	d.pen.text(label, center, textStyle{size: size, color: textColor, align: 0.5, orientation: direction})
}

// tickCount returns the number of ticks, from 2 to 7, for an axis of the given length if each needs the given spacing.
func tickCount(length, spacing vg.Length) int { return min(max(int(length/spacing), 2), 7) }

// maxTickWidth returns the width of the widest label.
func maxTickWidth(ticks []plot.Tick) (width vg.Length) {
	for _, tick := range ticks {
		width = max(width, textWidth(tick.Label, tickSize))
	}
	return width
}

// isCrowded reports whether labels of the scale touch if the axis has the given length and orientation. Labels of a
// horizontal axis stand next to each other, and those of a vertical axis above each other.
func (s *scale) isCrowded(length vg.Length, direction orientation) bool {
	previousEnd := vg.Length(math.Inf(-1))
	for _, tick := range s.ticks {
		if tick.IsMinor() {
			continue
		}
		center, halfWidth, gap := length*vg.Length(s.fraction(tick.Value)), textWidth(tick.Label, tickSize)/2,
			vg.Length(5)
		if direction == vertical {
			halfWidth, gap = 0, tickSize*1.2
		}
		if center-halfWidth < previousEnd+gap {
			return true
		}
		previousEnd = center + halfWidth
	}
	return false
}

// linearTicks returns labeled ticks in [lo, hi] at the multiples of 1, 2 or 5 times a power of ten. It chooses the
// smallest such unit that gives at most n+1 ticks. If n < 6 and fewer than three ticks result, it tries a larger n.
func linearTicks(lo, hi float64, n int) (ticks []plot.Tick) {
	minExponent := int(math.Floor(math.Log10((hi-lo)/float64(max(n, 2))))) - 1
	for k := 0; ; k++ { // units in increasing order
		multiple, exponent := []float64{1, 2, 5}[k%3], minExponent+k/3
		unit := multiple * math.Pow(10, float64(exponent))
		minMultiple, maxMultiple := math.Ceil(lo/unit-1e-9), math.Floor(hi/unit+1e-9)
		switch {
		case maxMultiple-minMultiple > float64(n):
			continue
		case maxMultiple-minMultiple < 2 && n < 6: // two ticks are not enough to read values from an axis
			return linearTicks(lo, hi, n+1)
		}
		for j := minMultiple; j <= maxMultiple; j++ {
			label := tickLabel(j*multiple, exponent, math.Max(math.Abs(lo), math.Abs(hi)))
			ticks = append(ticks, plot.Tick{Value: j * unit, Label: label})
		}
		return ticks
	}
}

// tickLabel writes j·10^exponent, where j is a whole number, so that no label shows a rounding error. largest is the
// largest magnitude on the axis. The label has no power of ten if largest is below 10⁷ and at most four decimals are
// needed. Otherwise all labels of the axis are multiples of the same power of ten, that of largest.
func tickLabel(j float64, exponent int, largest float64) string {
	if j == 0 {
		return "0"
	}
	if largest < 1e7 && exponent >= -4 {
		return text.Group(text.Minus(strconv.FormatFloat(j*math.Pow(10, float64(exponent)), 'f', max(0, -exponent),
			64)))
	}
	largestExponent := int(math.Floor(math.Log10(largest)))
	return text.TimesPower(strconv.FormatFloat(j*math.Pow(10, float64(exponent-largestExponent)), 'f', max(0,
		largestExponent-exponent), 64), largestExponent)
}

// logTicks returns ticks in [lo, hi] for a logarithmic axis with space for about n labels. It labels the powers of ten,
// or every k-th one if there are many. If there are few, it also labels 2 and 5 times them, or all their multiples.
// Multiples without a label are minor ticks. The limits between these cases are judgments.
func logTicks(lo, hi float64, n int) []plot.Tick {
	decades := math.Log10(hi) - math.Log10(lo)
	every := 1 // label every every-th power of ten
	for decades/float64(every) > float64(max(n, 2))+1 {
		every++
	}
	multiples := "1"                                // digits of the labeled multiples
	if decades < 1.7 || 3*decades <= float64(n)+1 { // there is space for 2 and 5 as well
		multiples = "125"
	}
	if decades < 0.7 {
		multiples = "123456789"
	}
	ticks := multipleTicks(lo, hi, multiples, every)
	// At least three labels are needed to recognize a logarithmic axis.
	for _, candidate := range []string{"13", "125", "123456789"} {
		if labelCount(ticks) < 3 && len(candidate) > len(multiples) {
			ticks = multipleTicks(lo, hi, candidate, 1)
		}
	}
	if labelCount(ticks) < 3 { // in a small part of a decade, linear ticks are more useful
		return linearTicks(lo, hi, n)
	}
	return ticks
}

// multipleTicks returns the ticks of a logarithmic axis in [lo, hi] at the multiples 1 to 9 of powers of ten. Ticks at
// the multiples whose digits are in multiples, of every every-th power of ten, are labeled; the other ticks are minor.
// If every exceeds 1, there are ticks at the powers of ten only.
func multipleTicks(lo, hi float64, multiples string, every int) (ticks []plot.Tick) {
	isPlain := len(multiples) > 1 && lo >= 1e-3 && hi <= 1e6 // labels without powers of ten
	minExponent, maxExponent := int(math.Floor(math.Log10(lo)-1e-9)), int(math.Ceil(math.Log10(hi)+1e-9))
	for exponent := minExponent; exponent <= maxExponent; exponent++ {
		for digit := 1; digit <= 9; digit++ {
			v := float64(digit) * math.Pow(10, float64(exponent))
			if v < lo*(1-1e-12) || v > hi*(1+1e-12) || v == 0 || digit > 1 && every > 1 {
				continue
			}
			tick := plot.Tick{Value: v}
			if strings.Contains(multiples, strconv.Itoa(digit)) && exponent%every == 0 {
				tick.Label = text.TimesPower(strconv.Itoa(digit), exponent)
				if isPlain {
					tick.Label = text.Plain(v)
				}
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// labelCount returns the number of ticks that have a label.
func labelCount(ticks []plot.Tick) (n int) {
	for _, tick := range ticks {
		if tick.Label != "" {
			n++
		}
	}
	return n
}

// isShortPlain reports whether v is short when written without a power of ten: if it is 0, from 0.001 to below 1000 in
// magnitude, or a whole number of at most seven digits.
func isShortPlain(v float64) bool {
	magnitude := math.Abs(v)
	return v == 0 || magnitude >= 1e-3 && magnitude < 1e3 || magnitude < 1e7 && v == math.Trunc(v)
}
