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

// product sets dst = XY for an m×k matrix X and a k×l matrix Y, all with contiguous rows: sums of four terms, and then
// each by itself.
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
