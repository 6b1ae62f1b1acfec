package sketch

import (
	"fmt"
	"strings"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// Level is one sketch of a sequence, and the width s_k that it sketches to.
type Level struct {
	Dist  Dist
	Width int // of the last level it may be 0: what is asked of Sample
}

// Composition is the distribution S = S_k⋯S_2S_1 of independent sketches, the first applied
// first. With E[S_kᵀS_k] = I for each, E[SᵀS] = I.
type Composition []Level

// CompositionOperator is a draw of Composition.
type CompositionOperator struct {
	Levels []Operator // S_1, S_2, …; those of a level that is a composition itself are its own
}

var (
	_ Dist     = Composition(nil)
	_ Operator = (*CompositionOperator)(nil)
)

// String names the sketches, for instance "srht:4000,gaussian".
func (d Composition) String() string {
	var parts []string
	for _, l := range d {
		if l.Width == 0 {
			parts = append(parts, l.Dist.String())
			continue
		}
		parts = append(parts, fmt.Sprintf("%v:%d", l.Dist, l.Width))
	}
	return strings.Join(parts, ",")
}

// widths returns the widths of the levels where s is asked of Sample, or why there are none.
func (d Composition) widths(s int) ([]int, error) {
	if len(d) == 0 {
		return nil, fmt.Errorf("sketch: a composition of no sketches")
	}
	widths := make([]int, len(d))
	for k, l := range d {
		widths[k] = l.Width
		last := k == len(d)-1
		switch {
		case last && l.Width == 0:
			widths[k] = s
		case last && l.Width != s:
			return nil, fmt.Errorf("sketch: %v ends with %d numbers, %d are asked for", d, l.Width, s)
		case l.Width < 1:
			return nil, fmt.Errorf("sketch: level %d of %v has the width %d: want at least 1", k+1, d, l.Width)
		}
	}
	return widths, nil
}

// Sample implements Dist: level k = 0, 1, … is drawn with g.Sub("level", k). The width of
// the last level must be s or 0.
func (d Composition) Sample(m, s int, g rng.Stream) (Operator, error) {
	if err := checkSample(d, m, s); err != nil {
		return nil, err
	}
	widths, err := d.widths(s)
	if err != nil {
		return nil, err
	}
	o := &CompositionOperator{}
	for k, l := range d {
		op, err := l.Dist.Sample(m, widths[k], g.Sub("level", uint64(k)))
		if err != nil {
			return nil, err
		}
		if c, ok := op.(*CompositionOperator); ok {
			o.Levels = append(o.Levels, c.Levels...)
		} else {
			o.Levels = append(o.Levels, op)
		}
		m = widths[k]
	}
	return o, nil
}

// Dims implements Operator.
func (o *CompositionOperator) Dims() (m, s int) {
	m, _ = o.Levels[0].Dims()
	_, s = o.Levels[len(o.Levels)-1].Dims()
	return m, s
}

// Apply32 implements Operator. Between the levels is a panel of 256 rows of scratch.
func (o *CompositionOperator) Apply32(dst []float32, ldd int, src []float32, lds, rows int, w *Workspace) {
	compose(o, dst, ldd, src, lds, rows, &w.panel32, w, Operator.Apply32)
}

// Apply64 implements Operator.
func (o *CompositionOperator) Apply64(dst []float64, ldd int, src []float64, lds, rows int, w *Workspace) {
	compose(o, dst, ldd, src, lds, rows, &w.panel64, w, Operator.Apply64)
}

// compose applies one operator after the other to a panel of rows, by way of two panels in turn.
func compose[T float](c *CompositionOperator, dst []T, ldd int, src []T, lds, rows int, panels *[2][]T, w *Workspace,
	apply func(o Operator, dst []T, ldd int, src []T, lds, rows int, w *Workspace)) {
	checkApply(c, len(dst), ldd, len(src), lds, rows)
	for r := 0; r < rows; r += panelRows {
		from, ldf, m := src[r*lds:], lds, min(panelRows, rows-r)
		for k, o := range c.Levels {
			_, s := o.Dims()
			out, ldo := dst[r*ldd:], ldd
			if k < len(c.Levels)-1 {
				out, ldo = buffer.Grow(&panels[k%2], m*s), s
			}
			apply(o, out, ldo, from, ldf, m, w)
			from, ldf = out, ldo
		}
	}
}
