package sketch

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// Level is one sketch of a Composition.
type Level struct {
	Dist  Dist
	Width int // the length s_k of the sketched vectors; 0 in the last level means the s of Sample
}

// Composition is the distribution of S = S_k⋯S_2S_1 for independent sketches, where the first level S_1 is applied
// first. Since E[S_kᵀS_k] = I for each sketch, E[SᵀS] = I.
type Composition []Level

// CompositionOperator is a draw of Composition.
type CompositionOperator struct {
	Levels []Operator // S_1, S_2, …; a level that is a composition is replaced by its levels
}

var (
	_ Dist     = Composition(nil)
	_ Operator = (*CompositionOperator)(nil)
)

// String names the sketches, for instance "srht:4000,gaussian".
func (d Composition) String() string {
	var parts []string
	for _, level := range d {
		if level.Width == 0 {
			parts = append(parts, level.Dist.String())
			continue
		}
		parts = append(parts, fmt.Sprintf("%v:%d", level.Dist, level.Width))
	}
	return strings.Join(parts, ",")
}

// widths returns the widths of all levels for Sample with s, or an error if they are not valid.
func (d Composition) widths(s int) ([]int, error) {
	if len(d) == 0 {
		return nil, fmt.Errorf("sketch: a composition of no sketches")
	}
	widths := make([]int, len(d))
	for k, level := range d {
		widths[k] = level.Width
		isLast := k == len(d)-1
		switch {
		case isLast && level.Width == 0:
			widths[k] = s
		case isLast && level.Width != s:
			return nil, fmt.Errorf("sketch: %v ends with %d numbers, %d are asked for", d, level.Width, s)
		case level.Width < 1:
			return nil, fmt.Errorf("sketch: level %d of %v has the width %d: want at least 1", k+1, d, level.Width)
		}
	}
	return widths, nil
}

// OperatorBytes returns the memory of an operator R^m → R^s in bytes. It counts the Gaussian levels only, because the
// other levels need little memory.
func (d Composition) OperatorBytes(m, s int) int64 {
	var sum float64
	for _, level := range d {
		width := cmp.Or(level.Width, s)
		switch dist := level.Dist.(type) {
		case Gaussian:
			sum += float64(dist.operatorBytes(m, width))
		case Composition:
			sum += float64(dist.OperatorBytes(m, width))
		}
		m = width
	}
	return accel.SaturateInt64(sum)
}

// Sample implements Dist. Level k = 0, 1, … is drawn with g.Sub("level", k). The width of the last level must be s or
// 0.
func (d Composition) Sample(m, s int, g rng.Stream) (Operator, error) {
	if err := checkSample(d, m, s); err != nil {
		return nil, err
	}
	widths, err := d.widths(s)
	if err != nil {
		return nil, err
	}
	o := &CompositionOperator{}
	for k, level := range d {
		op, err := level.Dist.Sample(m, widths[k], g.Sub("level", uint64(k)))
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

// Apply32 implements Operator. Intermediate results of 256 rows are stored in w.
func (o *CompositionOperator) Apply32(rows Rows32, w *Workspace) {
	compose(o, rows, &w.panel32, w, Operator.Apply32)
}

// Apply64 implements Operator.
func (o *CompositionOperator) Apply64(rows Rows64, w *Workspace) {
	compose(o, rows, &w.panel64, w, Operator.Apply64)
}

// compose applies the levels one after the other to panels of rows. Intermediate results alternate between two panels.
func compose[T float](composition *CompositionOperator, b rowBlock[T], panels *[2][]T, w *Workspace,
	apply func(o Operator, b rowBlock[T], w *Workspace)) {
	b.check(composition)
	for start := 0; start < b.Count; start += panelRows {
		level := rowBlock[T]{Src: b.Src[start*b.SrcStride:], SrcStride: b.SrcStride,
			Count: min(panelRows, b.Count-start)}
		for k, o := range composition.Levels {
			_, s := o.Dims()
			level.Dst, level.DstStride = b.Dst[start*b.DstStride:], b.DstStride
			if k < len(composition.Levels)-1 {
				level.Dst, level.DstStride = buffer.Grow(&panels[k%2], level.Count*s), s
			}
			apply(o, level, w)
			level.Src, level.SrcStride = level.Dst, level.DstStride
		}
	}
}
