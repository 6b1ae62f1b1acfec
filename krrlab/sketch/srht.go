package sketch

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/rng"
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

// String returns "srht".
func (SRHT) String() string { return "srht" }

// Sample implements Dist. Sign j is that of bit 0 of g.Sub("srht sign").Uint64(j); the rows
// are the first s of g.Sub("srht rows").Perm(M). It is an error if s > M.
func (d SRHT) Sample(m, s int, g rng.Stream) (Operator, error) {
	if err := checkSample(d, m, s); err != nil {
		return nil, err
	}
	size := 1 << bits.Len(uint(m-1))
	if s > size {
		return nil, fmt.Errorf("sketch: srht from %d to %d numbers: it samples rows of the transform of length %d without replacement, want s ≤ %d", m, s, size, size)
	}
	o := &SRHTOperator{m: m, s: s, size: size, signs: make([]float32, m), rows: make([]int32, s), scale: 1 / math.Sqrt(float64(s))}
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
	checkApply(o, len(dst), ldd, len(src), lds, rows)
	transform(o, dst, ldd, src, lds, rows, grow(&w.row32, together*o.padded()), simd.Butterfly32)
}

// Apply64 implements Operator.
func (o *SRHTOperator) Apply64(dst []float64, ldd int, src []float64, lds, rows int, w *Workspace) {
	checkApply(o, len(dst), ldd, len(src), lds, rows)
	transform(o, dst, ldd, src, lds, rows, grow(&w.row64, together*o.padded()), simd.Butterfly64)
}
