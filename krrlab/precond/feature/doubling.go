package feature

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Doubling makes the maps of Dist nested: with s = 2^k·First features, Z_2s = [Z_s Z_new]/√2,
// so that ZᵀZ grows by blocks while s doubles (package precond, Gram).
//
// A Fourier map is nested as it is, by the counter of its frequencies, and Doubling changes
// nothing. A half of a wider TensorSketch is no TensorSketch; there, and for any other Dist,
// the map stacks independent draws φ_j of First, First, 2·First, 4·First, … features, the
// last of what is left of s,
//
//	φ(x) = (√(b₀/s)·φ₀(x), √(b₁/s)·φ₁(x), …),  b_j features in φ_j,  s = Σ_j b_j,
//
// which has the mean k(x, z), and the variance of one map where that is proportional to 1/s.
// First ≥ 1.
type Doubling struct {
	Dist  Dist
	First int
}

var _ Dist = Doubling{}

func (f Doubling) String() string {
	if _, ok := f.Dist.(Fourier); ok {
		return f.Dist.String()
	}
	return fmt.Sprintf("%v, stacked from %d", f.Dist, f.First)
}

// Sample implements Dist. Draw 0 belongs to g, draw j > 0 to g.Sub("doubling", j).
func (f Doubling) Sample(d, s int, g rng.Stream) (Map, error) {
	if s < 1 {
		return nil, checkSample(f, d, s)
	}
	return f.Part(d, 0, s, g)
}

// Part returns features from, …, to-1 of the map that Sample draws with to features, but
// scaled so that they have the mean k(x, z) themselves. Where Dist is Fourier, or to is First or
// 2^k·First, they are those of all wider maps too; else the last draw, of what is left of to, is
// another than theirs. Unless Dist is Fourier, from must be 0, First or 2^k·First; Part panics if
// it is not, or if to ≤ from.
func (f Doubling) Part(d, from, to int, g rng.Stream) (Map, error) {
	if f.First < 1 || from < 0 || to <= from {
		panic(fmt.Sprintf("feature: features %d to %d of maps doubled from %d", from, to, f.First))
	}
	if dist, ok := f.Dist.(Fourier); ok {
		m, err := dist.Sample(d, to, g)
		if err != nil || from == 0 {
			return m, err
		}
		return m.(*FourierMap).tail(from), nil
	}
	var parts []Map
	for j, i0, i1 := 0, 0, f.First; i0 < to; j, i0, i1 = j+1, i1, 2*i1 {
		if i0 < from {
			if i1 > from {
				panic(fmt.Sprintf("feature: no draw of maps doubled from %d begins at feature %d", f.First, from))
			}
			continue
		}
		stream := g
		if j > 0 {
			stream = g.Sub("doubling", uint64(j))
		}
		m, err := f.Dist.Sample(d, min(i1, to)-i0, stream)
		if err != nil {
			return nil, err
		}
		parts = append(parts, m)
	}
	return stacked(parts), nil
}

// tail returns the map of features from, …, s-1, scaled to the mean k(x, z).
func (m *FourierMap) tail(from int) *FourierMap {
	s := m.s - from
	t := &FourierMap{d: m.d, s: s, wt: make([]float32, m.d*s), b: m.b[from:], b32: m.b32[from:], norm: m.norm[from:],
		scale: math.Sqrt(2 / float64(s))}
	for c := range m.d {
		copy(t.wt[c*s:(c+1)*s], m.wt[c*m.s+from:(c+1)*m.s])
	}
	for _, v := range t.norm {
		t.most = max(t.most, v)
	}
	return t
}

// stacked returns the map of several maps' features, one after the other; of one map it is that map.
func stacked(parts []Map) Map {
	if len(parts) == 1 {
		return parts[0]
	}
	st := &stack{parts: parts}
	for _, p := range parts {
		d, b := p.Dims()
		st.d, st.s = d, st.s+b
	}
	return st
}

// stack is a map of several maps' features, one after the other.
type stack struct {
	d, s  int
	parts []Map
}

// Dims implements Map.
func (m *stack) Dims() (d, s int) { return m.d, m.s }

// MapTo implements Map.
func (m *stack) MapTo(z []float64, ld int, x points.Points, w *Workspace) {
	n := checkMap(m, len(z), ld, x)
	if n == 0 {
		return
	}
	at := 0
	for _, p := range m.parts {
		_, b := p.Dims()
		p.MapTo(z[at:(n-1)*ld+at+b], ld, x, w)
		scale := math.Sqrt(float64(b) / float64(m.s)) // √(b_j/s)
		for i := range n {
			for k := range b {
				z[i*ld+at+k] *= scale
			}
		}
		at += b
	}
}
