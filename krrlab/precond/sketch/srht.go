package sketch

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// SRHT is the distribution of subsampled randomized Hadamard transforms (definition 11 of
// the paper, with the scale of an H of entries ±1)
//
//	S = s^(−1/2)·P·H·D,
//
// D diagonal with independent random signs, H the Walsh–Hadamard matrix of order M, the
// least power of two ≥ m, applied to vectors padded with zeros, and P the choice of s of its
// rows, without replacement, in ascending order. 1 ≤ s ≤ M. A row takes M·log₂M additions
// (less where the padding is long). The transform trimmed to the rows sampled, M·log₂s, would
// save log₂(M/s) of its stages, which are the fastest ones; it is not done.
type SRHT struct{}

// SRHTOperator is a draw of SRHT. It holds 4m + 4s bytes.
type SRHTOperator struct {
	m, s, size int       // size is M
	signs      []float32 // D, m numbers ±1; those of the padding do not matter
	rows       []int32   // P: ascending
	scale      float64   // s^(−1/2)
}

var (
	_ Dist     = SRHT{}
	_ Operator = (*SRHTOperator)(nil)
)

func (SRHT) String() string { return "srht" }

// Sample implements Dist. Sign j is that of bit 0 of g.Sub("srht sign").Uint64(j); the rows
// are the first s of g.Sub("srht rows").Perm(M). It is an error if s > M.
func (d SRHT) Sample(m, s int, g rng.Stream) (Operator, error) {
	if err := checkSample(d, m, s); err != nil {
		return nil, err
	}
	size := 1 << bits.Len(uint(m-1))
	if s > size {
		return nil,
			fmt.Errorf("sketch: srht from %d to %d numbers: it samples rows of the transform of length %d without "+
				"replacement, want s ≤ %d", m, s, size, size)
	}
	o := &SRHTOperator{m: m, s: s, size: size, signs: make([]float32, m), rows: make([]int32, s),
		scale: 1 / math.Sqrt(float64(s))}
	sign := g.Sub("srht sign")
	for j := range o.signs {
		o.signs[j] = 1 - 2*float32(sign.Uint64(uint64(j))&1)
	}
	for i, r := range g.Sub("srht rows").Perm(size)[:s] {
		o.rows[i] = int32(r)
	}
	slices.Sort(o.rows)
	return o, nil
}

// Dims implements Operator.
func (o *SRHTOperator) Dims() (m, s int) { return o.m, o.s }

// Sign returns D_jj, 0 ≤ j < m.
func (o *SRHTOperator) Sign(j int) float64 { return float64(o.signs[j]) }

// Row returns the row of H that row i of S is made of, and H's order M.
func (o *SRHTOperator) Row(i int) (row, order int) { return int(o.rows[i]), o.size }

// padded returns the length that vectors are padded to: M, but 8 at least, for which the first M
// rows and columns of H are the same.
func (o *SRHTOperator) padded() int { return max(o.size, 8) }

// Apply32 implements Operator.
func (o *SRHTOperator) Apply32(dst []float32, ldd int, src []float32, lds, rows int, w *Workspace) {
	transform(o, dst, ldd, src, lds, rows, buffer.Grow(&w.row32, together*o.padded()), simd.Butterfly[float32])
}

// Apply64 implements Operator.
func (o *SRHTOperator) Apply64(dst []float64, ldd int, src []float64, lds, rows int, w *Workspace) {
	transform(o, dst, ldd, src, lds, rows, buffer.Grow(&w.row64, together*o.padded()), simd.Butterfly[float64])
}

// The fast Walsh–Hadamard transform y ← H·y of length M = 2^k, H_ij = (−1)^|i∧j|, is k
// stages h = 1, 2, 4, …, M/2 of butterflies
//
//	(y_i, y_{i+h}) ← (y_i + y_{i+h}, y_i − y_{i+h}),  i∧h = 0.
//
// The first three are done on eight numbers in registers while they are loaded and given
// their signs. The others are calls of the vector units' butterfly on long runs, in the
// order of a recursion, so that all stages but the last few find their numbers in the first
// cache. Several rows are taken together, in eights by turns: number 8q+l of row r of R is
//
//	y[8(qR + r) + l],
//
// so that the runs of the early stages, which are short, are R times as long.

const (
	together = 4    // rows taken together
	inCache  = 4096 // numbers taken through their stages one by one: 16 kB in float32, half a first cache
)

// place returns where number j of row 0 of R lies; row r is 8r further on.
func place(j, rows int) int { return j&^7*rows + j&7 }

// load sets row r of the R rows in y to the first three stages of D·x, as far as x goes.
func load[T float](y, x []T, signs []float32, r, rows int) {
	full, step := len(x)&^7, 8*rows
	signs = signs[:len(x)]
	p := 8 * r
	for i := 0; i < full; i += 8 {
		load8(y[p:p+8:p+8], x[i:i+8:i+8], signs[i:i+8:i+8])
		p += step
	}
	if full < len(x) {
		var last [8]T
		var sign [8]float32
		copy(last[:], x[full:])
		copy(sign[:], signs[full:])
		load8(y[p:p+8:p+8], last[:], sign[:])
	}
}

// load8 does three stages of eight numbers.
func load8[T float](y, x []T, d []float32) {
	_, _, _ = y[7], x[7], d[7]
	a0, a1, a2, a3 := x[0]*T(d[0]), x[1]*T(d[1]), x[2]*T(d[2]), x[3]*T(d[3])
	a4, a5, a6, a7 := x[4]*T(d[4]), x[5]*T(d[5]), x[6]*T(d[6]), x[7]*T(d[7])
	a0, a1, a2, a3 = a0+a1, a0-a1, a2+a3, a2-a3 // h = 1
	a4, a5, a6, a7 = a4+a5, a4-a5, a6+a7, a6-a7
	a0, a1, a2, a3 = a0+a2, a1+a3, a0-a2, a1-a3 // h = 2
	a4, a5, a6, a7 = a4+a6, a5+a7, a4-a6, a5-a7
	y[0], y[1], y[2], y[3] = a0+a4, a1+a5, a2+a6, a3+a7 // h = 4
	y[4], y[5], y[6], y[7] = a0-a4, a1-a5, a2-a6, a3-a7
}

// stages does the stages h = 8, …, M/2 of the R rows in y, of length MR, of which only the first
// live numbers are set and the others stand for zeros. least is 8R.
func stages[T float](y []T, live, least int, butterfly func(a, b []T)) {
	half := len(y) / 2
	switch {
	case half < least:
	case live <= half: // (a+0, a−0)
		stages(y[:half], live, least, butterfly)
		copy(y[half:], y[:half])
	case len(y) > inCache:
		stages(y[:half], half, least, butterfly)
		stages(y[half:], live-half, least, butterfly)
		butterfly(y[:half], y[half:])
	default:
		clear(y[live:])
		for run := least; run < len(y); run *= 2 {
			for i := 0; i < len(y); i += 2 * run {
				butterfly(y[i:i+run], y[i+run:i+2*run])
			}
		}
	}
}

// transform sets dst to the rows of scale·P·H·D·src, by way of y.
func transform[T float](o *SRHTOperator, dst []T, ldd int, src []T, lds, rows int, y []T, butterfly func(a, b []T)) {
	checkApply(o, len(dst), ldd, len(src), lds, rows)
	scale := T(o.scale)
	for r0 := 0; r0 < rows; r0 += together {
		k := min(together, rows-r0)
		y := y[:k*o.padded()]
		for r := range k {
			load(y, src[(r0+r)*lds:(r0+r)*lds+o.m], o.signs, r, k)
		}
		stages(y, k*((o.m+7)&^7), 8*k, butterfly)
		for r := range k {
			out := dst[(r0+r)*ldd : (r0+r)*ldd+o.s]
			from := y[8*r:]
			for i, row := range o.rows {
				out[i] = scale * from[place(int(row), k)]
			}
		}
	}
}
