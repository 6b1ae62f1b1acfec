package feature

import (
	"fmt"
	"strings"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/sketch"
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
	ops   sketch.CompositionOperator // none: Z₁
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
		m.ops = *op.(*sketch.CompositionOperator)
	}
	return m, nil
}

// Dims implements Map.
func (m *ChainMap) Dims() (d, s int) {
	d, s = m.first.Dims()
	if len(m.ops.Levels) > 0 {
		_, s = m.ops.Dims()
	}
	return d, s
}

// Levels returns the number of levels, the features among them.
func (m *ChainMap) Levels() int { return 1 + len(m.ops.Levels) }

// Level returns the map x ↦ S_k⋯S₂·φ₁(x) to level k of Z, 1 ≤ k ≤ Levels().
func (m *ChainMap) Level(k int) *ChainMap {
	return &ChainMap{m.first, sketch.CompositionOperator{Levels: m.ops.Levels[:k-1]}}
}

// Sketch returns S_k, 2 ≤ k ≤ Levels().
func (m *ChainMap) Sketch(k int) sketch.Operator { return m.ops.Levels[k-2] }

// chainSpace is the scratch of a chain: what the levels need, and a panel of Z₁.
type chainSpace struct {
	first  Workspace
	sketch sketch.Workspace
	z32    []float32
	z64    []float64
	tmp    []float64
}

// MapTo implements Map.
func (m *ChainMap) MapTo(z []float64, ld int, x points.Points, w *Workspace) {
	c := w.chained()
	through(m, z, ld, x, &c.z64, &c.sketch, func(z []float64, ld int,
		x points.Points) {
		m.first.MapTo(z, ld, x, &c.first)
	}, m.ops.Apply64)
}

// MapTo32 implements Map32: float32 all the way.
func (m *ChainMap) MapTo32(z []float32, ld int, x points.Points, w *Workspace) {
	c := w.chained()
	through(m, z, ld, x, &c.z32, &c.sketch, func(z []float32, ld int,
		x points.Points) {
		mapTo32(m.first, z, ld, x, &c.first, &c.tmp)
	}, m.ops.Apply32)
}

// chained returns the scratch of a chain.
func (w *Workspace) chained() *chainSpace {
	if w.chain == nil {
		w.chain = &chainSpace{}
	}
	return w.chain
}

// through takes the points through all levels, a panel at a time, by way of Z₁ of a panel.
func through[T float32 | float64](m *ChainMap, z []T, ld int, x points.Points, z1 *[]T, w *sketch.Workspace,
	features func(z []T, ld int, x points.Points), apply func(dst []T, ldd int, src []T, lds, rows int,
		w *sketch.Workspace)) {
	n := checkMap(m, len(z), ld, x)
	_, width := m.first.Dims()
	for i := 0; i < n; i += panelRows {
		j := min(i+panelRows, n)
		p := panel(x, i, j)
		if len(m.ops.Levels) == 0 {
			features(z[i*ld:], ld, p)
			continue
		}
		src := buffer.Grow(z1, (j-i)*width)
		features(src, width, p)
		apply(z[i*ld:], ld, src, width, j-i, w)
	}
}
