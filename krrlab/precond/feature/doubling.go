package feature

import (
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Doubling makes the maps of Dist nested: for s = 2^k·First features, Z_2s = [Z_s Z_new]/√2. ZᵀZ can then be extended
// by blocks while s doubles (package precond, Gram).
//
// Fourier maps are nested already, because each frequency has its own random stream, and Doubling does not change them.
// For other distributions, the map stacks independent draws φ_j with First, First, 2·First, 4·First, … features, where
// the last draw has the remaining features:
//
//	φ(x) = (√(b₀/s)·φ₀(x), √(b₁/s)·φ₁(x), …),  b_j features in φ_j,  s = Σ_j b_j.
//
// (One half of a wider TensorSketch is not a TensorSketch.) The stacked map has the expectation k(x, z). Its variance
// is that of a single map if the variance is proportional to 1/s.
type Doubling struct {
	Dist  Dist
	First int // ≥ 1
}

var _ Dist = Doubling{}

// String returns the name of the distribution of the stacked maps.
func (f Doubling) String() string {
	if _, ok := f.Dist.(Fourier); ok {
		return f.Dist.String()
	}
	return fmt.Sprintf("%v, stacked from %d", f.Dist, f.First)
}

// Sample implements Dist. Draw 0 uses the stream g, draw j > 0 the stream g.Sub("doubling", j).
func (f Doubling) Sample(d, s int, g rng.Stream) (Map, error) {
	if s < 1 {
		return nil, checkSample(f, d, s)
	}
	return f.Part(d, 0, s, g)
}

// mapBytes returns the memory of a map R^d → R^s in bytes, as if it were a single map of Dist.
func (f Doubling) mapBytes(d, s int) int64 { return MapBytes(f.Dist, d, s) }

// Part returns features start, …, end-1 of the map that Sample draws with end features, scaled so that they alone have
// the expectation k(x, z). If Dist is Fourier, or if end is First or 2^k·First, these features are also features of all
// wider maps; otherwise the last draw, with the remaining features, differs from theirs. Unless Dist is Fourier, start
// must be 0, First or 2^k·First. Part panics if start is not valid, or if end ≤ start.
func (f Doubling) Part(d, start, end int, g rng.Stream) (Map, error) {
	if f.First < 1 || start < 0 || end <= start {
		panic(fmt.Sprintf("feature: features %d to %d of maps doubled from %d", start, end, f.First))
	}
	if dist, ok := f.Dist.(Fourier); ok {
		m, err := dist.Sample(d, end, g)
		if err != nil || start == 0 {
			return m, err
		}
		return m.(*FourierMap).tail(start), nil
	}
	var parts []Map
	for j, i0, i1 := 0, 0, f.First; i0 < end; j, i0, i1 = j+1, i1, 2*i1 { // draw j has features i0, …, i1-1
		if i0 < start {
			if i1 > start {
				panic(fmt.Sprintf("feature: no draw of maps doubled from %d begins at feature %d", f.First, start))
			}
			continue
		}
		stream := g
		if j > 0 {
			stream = g.Sub("doubling", uint64(j))
		}
		m, err := f.Dist.Sample(d, min(i1, end)-i0, stream)
		if err != nil {
			return nil, err
		}
		parts = append(parts, m)
	}
	return stackMaps(parts), nil
}

// tail returns the map with features start, …, s-1, scaled to the expectation k(x, z).
func (m *FourierMap) tail(start int) *FourierMap {
	s := m.s - start
	rest := &FourierMap{d: m.d, s: s, wt: make([]float32, m.d*s), b: m.b[start:], b32: m.b32[start:],
		norms: m.norms[start:], scale: math.Sqrt(2 / float64(s))}
	for c := range m.d {
		copy(rest.wt[c*s:(c+1)*s], m.wt[c*m.s+start:(c+1)*m.s])
	}
	rest.maxNorm = slices.Max(rest.norms)
	return rest
}

// stackMaps returns the map whose features are those of parts, one after the other. A single map is returned unchanged.
func stackMaps(parts []Map) Map {
	if len(parts) == 1 {
		return parts[0]
	}
	stack := &stackedMap{parts: parts}
	for _, part := range parts {
		d, width := part.Dims()
		stack.d, stack.s = d, stack.s+width
	}
	return stack
}

// stackedMap is a map whose features are those of parts, one after the other, scaled by √(b_j/s).
type stackedMap struct {
	d, s  int
	parts []Map
}

// Dims implements Map.
func (m *stackedMap) Dims() (d, s int) { return m.d, m.s }

// MapTo implements Map.
func (m *stackedMap) MapTo(z []float64, ld int, x points.Points, w *Workspace) {
	n := checkMap(m, len(z), ld, x)
	if n == 0 {
		return
	}
	offset := 0
	for _, part := range m.parts {
		_, width := part.Dims()
		part.MapTo(z[offset:(n-1)*ld+offset+width], ld, x, w)
		scale := math.Sqrt(float64(width) / float64(m.s)) // √(b_j/s) for the b_j features of part j
		for i := range n {
			for k := range width {
				z[i*ld+offset+k] *= scale
			}
		}
		offset += width
	}
}
