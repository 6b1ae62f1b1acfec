package feature

import (
	"fmt"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

// Chain is the distribution of the maps of Algorithm 2, section 4 of the paper: s₁ = Width random features, followed by
// sketches S₂, S₃, … (package sketch) to smaller and smaller widths,
//
//	φ(x) = S_k⋯S₃S₂·φ₁(x),  Z_{j+1} = Z_j·S_{j+1}ᵀ.
//
// E[φ(x)ᵀφ(z)] = k(x, z), because E[SᵀS] = I for each sketch and all draws are independent. The preconditioner is
// computed from the last Z only; the paper's listing omits C = Z₃ᵀZ₃ + λI. A wide first level is needed because with s₁
// features ‖ZZᵀ−K‖ decreases as 1/√s₁ only; a sketch of these features in R^{s₁} then loses little. Theorem 6 requires
// s_λ² features in the first level, and s_λ·log s_λ numbers after an SRHT.
//
// The width of the last sketch is the s of Sample, or 0. A chain without sketches has the distribution of Features, but
// uses another random stream.
type Chain struct {
	Features Dist
	Width    int                // s₁ ≥ 1
	Sketches sketch.Composition // S₂, S₃, … with their widths s₂, s₃, …
}

var _ Dist = Chain{}

// String returns a text such as "Fourier features of … to 16000 → srht to 4000 → gaussian".
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

// ChainMap is a draw of Chain. It applies all levels to a panel of points before the next panel, so that each thread
// has at most 256 rows of Z₁ at any time.
type ChainMap struct {
	features Map                        // φ₁
	sketches sketch.CompositionOperator // S_k⋯S₂; without levels the map is φ₁
}

var _ Map32 = (*ChainMap)(nil)

// Sample implements Dist. φ₁ is drawn with g.Sub("chain features"), the sketches with
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
	features, err := f.Features.Sample(d, f.Width, g.Sub("chain features"))
	if err != nil {
		return nil, err
	}
	m := &ChainMap{features: features}
	if len(f.Sketches) > 0 {
		op, err := f.Sketches.Sample(f.Width, s, g.Sub("chain sketches"))
		if err != nil {
			return nil, err
		}
		m.sketches = *op.(*sketch.CompositionOperator)
	}
	return m, nil
}

// mapBytes returns the memory of a map R^d → R^s in bytes: that of its features and its sketches.
func (f Chain) mapBytes(d, s int) int64 {
	features, sketches := MapBytes(f.Features, d, f.Width), f.Sketches.OperatorBytes(f.Width, s)
	return accel.SaturateInt64(float64(features) + float64(sketches))
}

// Dims implements Map.
func (m *ChainMap) Dims() (d, s int) {
	d, s = m.features.Dims()
	if len(m.sketches.Levels) > 0 {
		_, s = m.sketches.Dims()
	}
	return d, s
}

// Level returns the map x ↦ S_k⋯S₂·φ₁(x) to level k of Z, where the features are level 1.
func (m *ChainMap) Level(k int) *ChainMap {
	return &ChainMap{m.features, sketch.CompositionOperator{Levels: m.sketches.Levels[:k-1]}}
}

// Sketch returns S_k, the sketch from level k−1 to level k ≥ 2.
func (m *ChainMap) Sketch(k int) sketch.Operator { return m.sketches.Levels[k-2] }

// chainSpace is the scratch memory of a ChainMap.
type chainSpace struct {
	features Workspace
	sketches sketch.Workspace
	z32      []float32 // a panel of Z₁
	z64      []float64 // a panel of Z₁ in float64
	rounded  []float64 // a panel of Z₁ in float64 that is rounded to float32 afterwards
}

// MapTo implements Map.
func (m *ChainMap) MapTo(z []float64, ld int, x points.Points, w *Workspace) {
	space := w.chainSpace()
	mapLevels(m, z, ld, x, chainSteps[float64]{&space.z64, func(z []float64, ld int, x points.Points) {
		m.features.MapTo(z, ld, x, &space.features)
	}, func(dst []float64, dstStride int, src []float64, srcStride, rows int) {
		m.sketches.Apply64(sketch.Rows64{Dst: dst, DstStride: dstStride, Src: src, SrcStride: srcStride, Count: rows},
			&space.sketches)
	}})
}

// MapTo32 implements Map32. All levels are computed in float32.
func (m *ChainMap) MapTo32(z []float32, ld int, x points.Points, w *Workspace) {
	space := w.chainSpace()
	mapLevels(m, z, ld, x, chainSteps[float32]{&space.z32, func(z []float32, ld int, x points.Points) {
		mapTo32(m.features, z, ld, x, &space.features, &space.rounded)
	}, func(dst []float32, dstStride int, src []float32, srcStride, rows int) {
		m.sketches.Apply32(sketch.Rows32{Dst: dst, DstStride: dstStride, Src: src, SrcStride: srcStride, Count: rows},
			&space.sketches)
	}})
}

// chainSpace returns the scratch memory of a chain, allocated in the first call.
func (w *Workspace) chainSpace() *chainSpace {
	if w.chain == nil {
		w.chain = &chainSpace{}
	}
	return w.chain
}

// chainSteps has the two steps of a ChainMap in one precision.
type chainSteps[T float32 | float64] struct {
	z1       *[]T // scratch memory for a panel of Z₁
	features func(z []T, ld int, x points.Points)
	sketches func(dst []T, dstStride int, src []T, srcStride, rows int)
}

// mapLevels applies all levels of m to the points, a panel at a time.
func mapLevels[T float32 | float64](m *ChainMap, z []T, ld int, x points.Points, steps chainSteps[T]) {
	n := checkMap(m, len(z), ld, x)
	_, width := m.features.Dims()
	for i := 0; i < n; i += panelRows {
		j := min(i+panelRows, n)
		p := panel(x, i, j)
		if len(m.sketches.Levels) == 0 {
			steps.features(z[i*ld:], ld, p)
			continue
		}
		src := buffer.Grow(steps.z1, (j-i)*width)
		steps.features(src, width, p)
		steps.sketches(z[i*ld:], ld, src, width, j-i)
	}
}
