package pcg

import (
	"slices"

	"gonum.org/v1/gonum/mat"
)

// dots sets dst_j = x_jᵀy_j for the columns of two n×k blocks with contiguous rows.
func (s *solver) dots(dst []float64, x, y *mat.Dense) {
	_, k := x.Dims()
	s.leftBlock, s.rightBlock = x.RawMatrix().Data, y.RawMatrix().Data
	s.sweep.run(dst[:k], s.n, 0, (*dotRows)(s))
}

type dotRows solver

func (s *dotRows) rows(i0, i1 int, sum, _ []float64) {
	k := len(sum)
	for i := i0; i < i1; i++ {
		x, y := s.leftBlock[i*k:(i+1)*k], s.rightBlock[i*k:(i+1)*k]
		for j, v := range x {
			sum[j] += v * y[j]
		}
	}
}

// updateDirections sets p_j = z_j + β_j·p_j for the columns of P.
func (s *solver) updateDirections() { s.sweep.run(nil, s.n, 0, (*directionRows)(s)) }

type directionRows solver

func (s *directionRows) rows(i0, i1 int, _, _ []float64) {
	k := len(s.cols)
	p, z, beta := s.p.RawMatrix().Data, s.z.RawMatrix().Data, s.beta[:k]
	for i := i0; i < i1; i++ {
		pi, zi := p[i*k:(i+1)*k], z[i*k:(i+1)*k]
		for j, b := range beta {
			pi[j] = zi[j] + b*pi[j] // p_j ← z_j + β_jp_j
		}
	}
}

// compact replaces the n×k block at the start of buf by the n×len(columns) block of the given columns, which are
// ascending.
func compact(buf []float64, n, k int, columns []int) {
	width := len(columns)
	for i := range n {
		for j, c := range columns {
			buf[i*width+j] = buf[i*k+c]
		}
	}
}

// table is a growing list of rows of t numbers.
type table struct {
	cols int
	data []float64
}

// newTable returns an empty table with capacity for the given number of rows.
func newTable(t, rows int) table { return table{t, make([]float64, 0, t*rows)} }

// addRow appends a row of zeros and returns it. The returned slice is valid until the next call.
func (h *table) addRow() []float64 {
	h.data = append(h.data, make([]float64, h.cols)...)
	return h.lastRow()
}

// lastRow returns the last row, or an empty slice if there is none.
func (h *table) lastRow() []float64 { return h.data[max(0, len(h.data)-h.cols):] }

func (h *table) rows() [][]float64 {
	if h.cols == 0 {
		return nil
	}
	return slices.AppendSeq(make([][]float64, 0, len(h.data)/h.cols), slices.Chunk(h.data, h.cols))
}

// product sets dst = XY for an m×k matrix X and a k×l matrix Y, all with contiguous rows. It adds four terms at a time,
// and then the remaining terms one by one.
func product(dst, x, y []float64, m, k, l int) {
	for i := range m {
		for j := range l {
			sum, a := 0., 0
			for ; a+4 <= k; a += 4 {
				v, w := x[i*k+a:i*k+a+4], y[a*l+j:]
				sum += v[0]*w[0] + v[1]*w[l] + v[2]*w[2*l] + v[3]*w[3*l]
			}
			for ; a < k; a++ {
				sum += x[i*k+a] * y[a*l+j]
			}
			dst[i*l+j] = sum
		}
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
