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

// SRHT is the distribution of subsampled randomized Hadamard transforms
//
//	S = s^(−1/2)·P·H·D
//
// (definition 11 of the paper, with the scale for an H of entries ±1). D is diagonal with independent random signs. H
// is the Walsh–Hadamard matrix whose order M is the smallest power of two ≥ m; it is applied to vectors padded with
// zeros. P selects s of its rows, 1 ≤ s ≤ M, without replacement and in ascending order. A row takes M·log₂M additions,
// or fewer if the padding is long. A transform pruned to the sampled rows would take M·log₂s additions. It is not used,
// because it would only save log₂(M/s) of the stages, which are the fastest ones.
type SRHT struct{}

// SRHTOperator is a draw of SRHT. It takes 4m + 4s bytes.
type SRHTOperator struct {
	m, s, order int       // order is M, the order of H
	signs       []float32 // the first m diagonal entries ±1 of D; the others multiply zeros
	rows        []int32   // the rows that P selects, in ascending order
	scale       float64   // s^(−1/2)
}

var (
	_ Dist     = SRHT{}
	_ Operator = (*SRHTOperator)(nil)
)

// String implements Dist.
func (SRHT) String() string { return "srht" }

// Sample implements Dist. Sign j is determined by bit 0 of g.Sub("srht sign").Uint64(j); the rows are the first s of
// g.Sub("srht rows").Perm(M). Sample returns an error if s > M.
func (d SRHT) Sample(m, s int, g rng.Stream) (Operator, error) {
	if err := checkSample(d, m, s); err != nil {
		return nil, err
	}
	order := 1 << bits.Len(uint(m-1))
	if s > order {
		return nil, fmt.Errorf("sketch: srht from %d to %d numbers: it samples rows of the transform of length %d "+
			"without replacement, want s ≤ %d", m, s, order, order)
	}
	o := &SRHTOperator{m: m, s: s, order: order, signs: make([]float32, m), rows: make([]int32, s),
		scale: 1 / math.Sqrt(float64(s))}
	sign := g.Sub("srht sign")
	for j := range o.signs {
		o.signs[j] = 1 - 2*float32(sign.Uint64(uint64(j))&1)
	}
	for i, row := range g.Sub("srht rows").Perm(order)[:s] {
		o.rows[i] = int32(row)
	}
	slices.Sort(o.rows)
	return o, nil
}

// Dims implements Operator.
func (o *SRHTOperator) Dims() (m, s int) { return o.m, o.s }

// Sign returns D_jj, 0 ≤ j < m.
func (o *SRHTOperator) Sign(j int) float64 { return float64(o.signs[j]) }

// Row returns the index of the row of H that P selects for row i of S, and the order M of H.
func (o *SRHTOperator) Row(i int) (row, order int) { return int(o.rows[i]), o.order }

// paddedLength returns the length to which vectors are padded, max(M, 8), because the transform processes eight numbers
// at a time. The first M rows and columns of the Walsh–Hadamard matrix of order 8 are those of order M.
func (o *SRHTOperator) paddedLength() int { return max(o.order, 8) }

// Apply32 implements Operator.
func (o *SRHTOperator) Apply32(b Rows32, w *Workspace) {
	transform(o, b, &w.row32)
}

// Apply64 implements Operator.
func (o *SRHTOperator) Apply64(b Rows64, w *Workspace) {
	transform(o, b, &w.row64)
}

// The fast Walsh–Hadamard transform y ← H·y of length M = 2^k, H_ij = (−1)^|i∧j|, is k
// stages h = 1, 2, 4, …, M/2 of butterflies
//
//	(y_i, y_{i+h}) ← (y_i + y_{i+h}, y_i − y_{i+h}),  i∧h = 0.
//
// The first three stages are done in registers, on eight numbers at a time, while the numbers are loaded and multiplied
// by their signs. The other stages call the SIMD butterfly on long runs, in recursive order, so that in all but the
// last few stages the numbers are in the first-level cache. A group of R rows is transformed together, interleaved in
// units of eight: number 8q+l of row r is
//
//	y[8(qR + r) + l].
//
// The runs of the early stages, which are short, are then R times as long.

const (
	groupRows = 4    // R, the number of rows transformed together
	inCache   = 4096 // largest length that is transformed stage by stage: 16 kB in float32, half a first-level cache
)

// position returns the index in y of number j of row 0, in a group of the given number of rows. For row r, the index is
// larger by 8r.
func position(j, rows int) int { return j&^7*rows + j&7 }

// load stores the first three stages of the transform of D·x in y, as row r of a group of the given number of rows. It
// stores only as many units of eight numbers as x has.
func load[T float](y, x []T, signs []float32, r, rows int) {
	full, step := len(x)&^7, 8*rows
	signs = signs[:len(x)]
	offset := 8 * r
	for i := 0; i < full; i += 8 {
		load8(y[offset:offset+8:offset+8], x[i:i+8:i+8], signs[i:i+8:i+8])
		offset += step
	}
	if full < len(x) {
		var tail [8]T
		var sign [8]float32
		copy(tail[:], x[full:])
		copy(sign[:], signs[full:])
		load8(y[offset:offset+8:offset+8], tail[:], sign[:])
	}
}

// load8 sets y to the first three stages of D·x for eight numbers.
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

// stages performs the stages h = 8, …, M/2 of the R rows in y, of length MR. Only the first setCount numbers of y are
// set; the others are treated as zeros. minRun is 8R, the length of the runs of the first of these stages.
func stages[T float](y []T, setCount, minRun int) {
	half := len(y) / 2
	switch {
	case half < minRun: // no stage is left
	case setCount <= half: // the second half is zero: (a+0, a−0)
		stages(y[:half], setCount, minRun)
		copy(y[half:], y[:half])
	case len(y) > inCache:
		stages(y[:half], half, minRun)
		stages(y[half:], setCount-half, minRun)
		simd.Butterfly(y[:half], y[half:])
	default:
		clear(y[setCount:])
		for run := minRun; run < len(y); run *= 2 {
			for i := 0; i < len(y); i += 2 * run {
				simd.Butterfly(y[i:i+run], y[i+run:i+2*run])
			}
		}
	}
}

// transform sets every row of b.Dst to S times the row of b.Src, with scratch memory for groupRows rows in buf.
func transform[T float](o *SRHTOperator, b rowBlock[T], buf *[]T) {
	b.check(o)
	group, scale := buffer.Grow(buf, groupRows*o.paddedLength()), T(o.scale)
	for r0 := 0; r0 < b.Count; r0 += groupRows {
		count := min(groupRows, b.Count-r0)
		y := group[:count*o.paddedLength()]
		for r := range count {
			load(y, b.Src[(r0+r)*b.SrcStride:(r0+r)*b.SrcStride+o.m], o.signs, r, count)
		}
		stages(y, count*((o.m+7)&^7), 8*count)
		for r := range count {
			out := b.Dst[(r0+r)*b.DstStride : (r0+r)*b.DstStride+o.s]
			transformed := y[8*r:]
			for i, row := range o.rows {
				out[i] = scale * transformed[position(int(row), count)]
			}
		}
	}
}
