package feature

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/rng"
)

// drawOrthogonal fills W with blocks of at most d frequencies of orthogonal
// directions (Yu et al. 2016, section 3): with G d×r, r ≤ d, of independent
// standard normals and G = QR, diag R > 0, the columns of Q are the first r of a
// uniformly distributed orthonormal basis. Frequency j is
//
//	w_j = ρ_j·q_j,  ρ_j = √χ²(d)·spread,
//
// the length that the independent draw has, so that each w_j alone has the
// kernel's spectral measure.
func (m *FourierMap) drawOrthogonal(k kernel.Mixture, g rng.Stream) {
	blocks := (m.s + m.d - 1) / m.d
	each(blocks, func(_, block int) {
		j0, j1 := block*m.d, min((block+1)*m.d, m.s)
		rows := haar(m.d, j1-j0, g.Sub("orthogonal", uint64(block)))
		for j := j0; j < j1; j++ {
			g := g.Sub("frequencies", uint64(j))
			length := math.Sqrt(g.Sub("length").ChiSquare(0, float64(m.d))) * k.Spread(g.Sub("mix"))
			for c := range m.d {
				rows[(j-j0)*m.d+c] *= length
			}
		}
		m.store(rows, j0, j1)
	})
}

// haar returns the first r vectors of a random orthonormal basis of R^d, one after
// the other. Vector j depends on the first j columns of G only, whose numbers are
// jd, …, jd+d-1 of the stream.
func haar(d, r int, g rng.Stream) []float64 {
	q := blas64.General{Rows: d, Cols: r, Stride: r, Data: make([]float64, d*r)}
	rows := make([]float64, r*d)
	for j := range r {
		col := rows[j*d : (j+1)*d]
		g.Normals(col, uint64(j)*uint64(d))
		for c, v := range col {
			q.Data[c*r+j] = v
		}
	}
	tau := make([]float64, r)
	query := make([]float64, 1)
	lapack64.Geqrf(q, tau, query, -1)
	work := make([]float64, int(query[0]))
	lapack64.Geqrf(q, tau, work, len(work)) // G = QR
	negative := make([]bool, r)
	for j := range negative {
		negative[j] = q.Data[j*r+j] < 0
	}
	lapack64.Orgqr(q, tau, query, -1)
	work = make([]float64, int(query[0]))
	lapack64.Orgqr(q, tau, work, len(work))
	for j := range r {
		sign := 1.0
		if negative[j] {
			sign = -1 // R_jj > 0 makes Q unique, hence uniformly distributed
		}
		for c := range d {
			rows[j*d+c] = sign * q.Data[c*r+j]
		}
	}
	return rows
}
