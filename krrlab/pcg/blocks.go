package pcg

import (
	"slices"

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

// table is a growing list of rows of t numbers.
type table struct {
	t    int
	data []float64
}

// newTable returns a table with room for the given number of rows.
func newTable(t, rows int) table { return table{t, make([]float64, 0, t*rows)} }

// add appends a row of zeros and returns it, valid until the next call.
func (h *table) add() []float64 {
	h.data = append(h.data, make([]float64, h.t)...)
	return h.last()
}

// last returns the last row, nil if there is none.
func (h *table) last() []float64 { return h.data[max(0, len(h.data)-h.t):] }

func (h *table) rows() [][]float64 {
	if h.t == 0 {
		return nil
	}
	return slices.AppendSeq(make([][]float64, 0, len(h.data)/h.t), slices.Chunk(h.data, h.t))
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
