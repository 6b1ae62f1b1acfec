package pcg

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// dots sets dst_j = x_jᵀy_j for the columns of two n×k blocks with contiguous rows.
func (s *solver) dots(dst []float64, x, y *mat.Dense) {
	_, k := x.Dims()
	s.left, s.right = x.RawMatrix().Data, y.RawMatrix().Data
	s.sweep.run(dst[:k], s.n, 0, (*dotRows)(s))
}

type dotRows solver

func (s *dotRows) rows(i0, i1 int, sum, _ []float64) {
	k := len(sum)
	for i := i0; i < i1; i++ {
		x, y := s.left[i*k:(i+1)*k], s.right[i*k:(i+1)*k]
		for j, v := range x {
			sum[j] += v * y[j]
		}
	}
}

// turn sets p_j = z_j + β_j·p_j for the columns of P.
func (s *solver) turn() { s.sweep.run(nil, s.n, 0, (*turnRows)(s)) }

type turnRows solver

func (s *turnRows) rows(i0, i1 int, _, _ []float64) {
	k := len(s.cols)
	p, z, beta := s.p.RawMatrix().Data, s.z.RawMatrix().Data, s.beta[:k]
	for i := i0; i < i1; i++ {
		pi, zi := p[i*k:(i+1)*k], z[i*k:(i+1)*k]
		for j, b := range beta {
			pi[j] = zi[j] + b*pi[j] // p_j ← z_j + β_jp_j
		}
	}
}

// copyBlock sets dst = src for two blocks of one shape.
func copyBlock(dst, src *mat.Dense) { copy(dst.RawMatrix().Data, src.RawMatrix().Data) }

// subtract sets r_j = scale_j·b_j − w_j for n×t matrices; a nil w is 0. r and w have
// contiguous rows.
func subtract(r, b, w *mat.Dense, scale []float64) {
	n, t := b.Dims()
	rd, raw := r.RawMatrix().Data, b.RawMatrix()
	for i := range n {
		ri, bi := rd[i*t:(i+1)*t], raw.Data[i*raw.Stride:i*raw.Stride+t]
		for j, v := range bi {
			ri[j] = scale[j] * v
		}
		if w != nil {
			for j, v := range w.RawMatrix().Data[i*t : (i+1)*t] {
				ri[j] -= v
			}
		}
	}
}

// compact moves the columns keep, ascending, of the n×k block at the start of buf
// to the n×len(keep) block there.
func compact(buf []float64, n, k int, keep []int) {
	q := len(keep)
	for i := range n {
		for j, c := range keep {
			buf[i*q+j] = buf[i*k+c]
		}
	}
}

// columnScale returns 2^e that brings the largest entry of column c of b into
// [½, 1), and the norm of the column times it. A column of zeros has norm 0.
func columnScale(b *mat.Dense, c int) (scale, norm float64) {
	raw := b.RawMatrix()
	var top float64
	for i := range raw.Rows {
		top = max(top, math.Abs(raw.Data[i*raw.Stride+c]))
	}
	if top == 0 {
		return 1, 0
	}
	_, e := math.Frexp(top)
	scale = math.Ldexp(1, min(-e, 1022))
	for i := range raw.Rows {
		v := scale * raw.Data[i*raw.Stride+c]
		norm += v * v
	}
	return scale, math.Sqrt(norm)
}

// slabRows is the number of rows of a table that are allocated together.
const slabRows = 1024

// table is a growing list of rows of t numbers.
type table struct {
	t    int
	rows [][]float64
	slab []float64
}

// newTable returns a table with room for the given number of rows.
func newTable(t, rows int) table {
	return table{t: t, rows: make([][]float64, 0, rows), slab: make([]float64, t*rows)}
}

// add appends a row of zeros and returns it.
func (h *table) add() []float64 {
	if len(h.slab) == 0 {
		h.slab = make([]float64, h.t*slabRows)
	}
	row := h.slab[:h.t:h.t]
	h.slab = h.slab[h.t:]
	h.rows = append(h.rows, row)
	return row
}

// rowTimes sets dst = row·F for F with len(row) rows and len(dst) columns.
func rowTimes(dst, row, f []float64) {
	clear(dst)
	q, a := len(dst), 0
	for ; a+4 <= len(row); a += 4 {
		axpy4(dst, row[a], row[a+1], row[a+2], row[a+3], f[a*q:(a+4)*q])
	}
	for ; a < len(row); a++ {
		axpy(dst, row[a], f[a*q:(a+1)*q])
	}
}

// product sets dst = XY for an m×k matrix X and a k×l matrix Y, all with contiguous rows.
func product(dst, x, y []float64, m, k, l int) {
	for i := range m {
		rowTimes(dst[i*l:(i+1)*l], x[i*k:(i+1)*k], y[:k*l])
	}
}

// transpose sets dst = Xᵀ for an m×k matrix X.
func transpose(dst, x []float64, m, k int) {
	for i := range m {
		for j := range k {
			dst[j*m+i] = x[i*k+j]
		}
	}
}

// identity sets dst = I, k×k.
func identity(dst []float64, k int) {
	clear(dst[:k*k])
	for i := range k {
		dst[i*k+i] = 1
	}
}

// axpy adds c·x to dst.
func axpy(dst []float64, c float64, x []float64) {
	x = x[:len(dst)]
	for j := range dst {
		dst[j] += c * x[j]
	}
}

// axpy4 adds c0·x_0 + c1·x_1 + c2·x_2 + c3·x_3 to dst, where the x_i follow each other in x.
func axpy4(dst []float64, c0, c1, c2, c3 float64, x []float64) {
	q := len(dst)
	x0, x1, x2, x3 := x[:q], x[q:2*q], x[2*q:3*q], x[3*q:4*q]
	for j := range dst {
		dst[j] += c0*x0[j] + c1*x1[j] + c2*x2[j] + c3*x3[j]
	}
}
