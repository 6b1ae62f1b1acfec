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

// dotRows is a solver as the rowTask of dots: rows adds x_jᵀy_j over the rows i0 to i1−1 to sum_j. Types such as this
// one implement rowTask without a closure, which would be allocated in every iteration.
type dotRows solver

// rows implements rowTask.
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

// directionRows is a solver as the rowTask of updateDirections.
type directionRows solver

// rows implements rowTask.
func (s *directionRows) rows(i0, i1 int, _, _ []float64) {
	k := len(s.cols)
	p, z, beta := s.p.RawMatrix().Data, s.z.RawMatrix().Data, s.beta[:k]
	for i := i0; i < i1; i++ {
		pRow, zRow := p[i*k:(i+1)*k], z[i*k:(i+1)*k]
		for j, betaJ := range beta {
			pRow[j] = zRow[j] + betaJ*pRow[j] // p_j ← z_j + β_jp_j
		}
	}
}

// compact replaces the n×k block at the start of buf by the n×len(columns) block of the given columns. The columns must
// ascend, so that no number is overwritten before it is read.
func compact(buf []float64, n, k int, columns []int) {
	width := len(columns)
	for i := range n {
		for j, c := range columns {
			buf[i*width+j] = buf[i*k+c]
		}
	}
}

// table is a growing list of rows of cols numbers.
type table struct {
	cols int
	data []float64
}

// newTable returns an empty table with capacity for the given number of rows.
func newTable(cols, rows int) table { return table{cols, make([]float64, 0, cols*rows)} }

// addRow appends a row of zeros and returns it. The returned slice is valid until the next call.
func (t *table) addRow() []float64 {
	t.data = append(t.data, make([]float64, t.cols)...)
	return t.lastRow()
}

// lastRow returns the last row, or an empty slice if there is none.
func (t *table) lastRow() []float64 { return t.data[max(0, len(t.data)-t.cols):] }

// rows returns the rows, which share memory with the table, or nil if rows have no numbers.
func (t *table) rows() [][]float64 {
	if t.cols == 0 {
		return nil
	}
	return slices.AppendSeq(make([][]float64, 0, len(t.data)/t.cols), slices.Chunk(t.data, t.cols))
}

// product sets dst = XY for an m×k matrix X and a k×l matrix Y, all with contiguous rows. It adds four terms at a time,
// and then the remaining terms one by one.
func product(dst, x, y []float64, m, k, l int) {
	for i := range m {
		for j := range l {
			sum, term := 0., 0
			for ; term+4 <= k; term += 4 {
				xTerms, yTerms := x[i*k+term:i*k+term+4], y[term*l+j:]
				sum += xTerms[0]*yTerms[0] + xTerms[1]*yTerms[l] + xTerms[2]*yTerms[2*l] + xTerms[3]*yTerms[3*l]
			}
			for ; term < k; term++ {
				sum += x[i*k+term] * y[term*l+j]
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
