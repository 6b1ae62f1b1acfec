package feature

import (
	"fmt"
	"strings"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/sketch"
)

// Chain is the distribution of the maps of Algorithm 2, section 4 of the paper: Width = s₁
// random features, then sketches S₂, S₃, … (package sketch) of ever fewer rows,
//
//	φ(x) = S_k⋯S₃S₂·φ₁(x),  Z_{j+1} = Z_j·S_{j+1}ᵀ,
//
// with E[φ(x)ᵀφ(z)] = k(x, z), since E[SᵀS] = I for each sketch and all are independent. The
// preconditioner is made of the last Z throughout; the paper's print loses its C = Z₃ᵀZ₃ + λI.
// The point of the wide start is that with s₁ features ‖ZZᵀ−K‖ falls as 1/√s₁ only, while a
// sketch of what is in R^{s₁} by then loses little: theorem 6 needs s_λ² features at the start
// and s_λ·log s_λ numbers after an SRHT.
//
// The width of the last sketch is the s of Sample, or 0. A chain of no sketches is Features,
// drawn from another stream.
type Chain struct {
	Features Dist
	Width    int                // s₁ ≥ 1
	Sketches sketch.Composition // S₂, S₃, …, each with the width s₂, s₃, … that it sketches to
}

var _ Dist = Chain{}

func (f Chain) String() string {
	parts := []string{fmt.Sprintf("%v to %d", f.Features, f.Width)}
	for _, l := range f.Sketches {
		if l.Width == 0 {
			parts = append(parts, l.Dist.String())
			continue
		}
		parts = append(parts, fmt.Sprintf("%v to %d", l.Dist, l.Width))
	}
	return strings.Join(parts, " → ")
}

// ChainMap is a draw of Chain. A panel of points is taken through all levels before the next,
// so that no more than 256 rows of Z₁ exist at any time for each thread.
type ChainMap struct {
	first Map
	ops   []sketch.Operator
}

var _ Map32 = (*ChainMap)(nil)

// Sample implements Dist: φ₁ is drawn with g.Sub("chain features"), the sketches with
// g.Sub("chain sketches").
func (f Chain) Sample(d, s int, g rng.Stream) (Map, error) {
	if f.Features == nil {
		return nil, fmt.Errorf("feature: a chain without features")
	}
	if err := checkSample(f, d, s); err != nil {
		return nil, err
	}
	if len(f.Sketches) == 0 && f.Width != s {
		return nil, fmt.Errorf("feature: %v with %d features: no sketch has that width", f, s)
	}
	first, err := f.Features.Sample(d, f.Width, g.Sub("chain features"))
	if err != nil {
		return nil, err
	}
	m := &ChainMap{first: first}
	if len(f.Sketches) > 0 {
		op, err := f.Sketches.Sample(f.Width, s, g.Sub("chain sketches"))
		if err != nil {
			return nil, err
		}
		c := op.(*sketch.CompositionOperator)
		for k := range c.Levels() {
			m.ops = append(m.ops, c.Level(k))
		}
	}
	return m, nil
}

// Dims implements Map.
func (m *ChainMap) Dims() (d, s int) {
	d, s = m.first.Dims()
	if k := len(m.ops); k > 0 {
		_, s = m.ops[k-1].Dims()
	}
	return d, s
}

// Levels returns the number of levels, the features among them.
func (m *ChainMap) Levels() int { return 1 + len(m.ops) }

// Level returns the map x ↦ S_k⋯S₂·φ₁(x) to level k of Z, 1 ≤ k ≤ Levels().
func (m *ChainMap) Level(k int) *ChainMap { return &ChainMap{m.first, m.ops[:k-1]} }

// Sketch returns S_k, 2 ≤ k ≤ Levels().
func (m *ChainMap) Sketch(k int) sketch.Operator { return m.ops[k-2] }

// chainSpace is the scratch of a chain: what the levels need, and panels between them.
type chainSpace struct {
	first   Workspace
	sketch  sketch.Workspace
	panel32 [2][]float32
	panel64 [2][]float64
	tmp     []float64
}

func (c *chainSpace) bytes() int64 {
	b := c.first.Bytes() + c.sketch.Bytes() + 8*int64(cap(c.tmp))
	for i := range c.panel32 {
		b += 4*int64(cap(c.panel32[i])) + 8*int64(cap(c.panel64[i]))
	}
	return b
}

// MapTo implements Map.
func (m *ChainMap) MapTo(z []float64, ld int, x points.Points, w *Workspace) {
	n := checkMap(m, len(z), ld, x)
	c := w.chained()
	for i := 0; i < n; i += panelRows {
		p := panel(x, i, min(i+panelRows, n))
		through(m, z[i*ld:], ld, p, &c.panel64, &c.sketch, func(z []float64, ld int) { m.first.MapTo(z, ld, p, &c.first) }, sketch.Operator.Apply64)
	}
}

// MapTo32 implements Map32: float32 all the way.
func (m *ChainMap) MapTo32(z []float32, ld int, x points.Points, w *Workspace) {
	n := checkMap(m, len(z), ld, x)
	c := w.chained()
	for i := 0; i < n; i += panelRows {
		p := panel(x, i, min(i+panelRows, n))
		through(m, z[i*ld:], ld, p, &c.panel32, &c.sketch, func(z []float32, ld int) { mapTo32(m.first, z, ld, p, &c.first, &c.tmp) }, sketch.Operator.Apply32)
	}
}

// chained returns the scratch of a chain.
func (w *Workspace) chained() *chainSpace {
	if w.chain == nil {
		w.chain = &chainSpace{}
	}
	return w.chain
}

// through takes a panel of points through all levels, by way of two panels in turn.
func through[T float32 | float64](m *ChainMap, z []T, ld int, x points.Points, panels *[2][]T, w *sketch.Workspace,
	features func(z []T, ld int), apply func(o sketch.Operator, dst []T, ldd int, src []T, lds, rows int, w *sketch.Workspace)) {
	n, _ := x.Dims()
	if len(m.ops) == 0 {
		features(z, ld)
		return
	}
	_, width := m.first.Dims()
	src := grow(&panels[0], n*width)
	features(src, width)
	for k, o := range m.ops {
		if k == len(m.ops)-1 {
			apply(o, z, ld, src, width, n, w)
			return
		}
		_, s := o.Dims()
		out := grow(&panels[(k+1)%2], n*s)
		apply(o, out, s, src, width, n, w)
		src, width = out, s
	}
}
