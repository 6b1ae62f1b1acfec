package leaveout

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
)

// subspace is a subspace with the orthonormal basis V, n×k, in which (K+λ_jI)X_j = B is solved for every λ_j by
// Galerkin's condition,
//
//	X_j = VW_j,  (VᵀKV + λ_jI)W_j = VᵀB.
//
// X_j is the vector of the space that is nearest to the solution in the norm of K+λ_jI. One product KV serves all λ_j.
//
// The columns of B are numbered by c. For each column c and each λ_j, b is the column of B, w that of W_j, x = Vw, and
// r = b − (K+λ_jI)x.
type subspace struct {
	k       matrix
	lambdas []float64
	b       *mat.Dense   // right-hand sides B, n×q
	v, kv   *mat.Dense   // V and KV, n×k
	h, p    *mat.Dense   // VᵀKV, (KV)ᵀKV
	vb, kb  *mat.Dense   // VᵀB, (KV)ᵀB
	bb      []float64    // ‖b_c‖²
	w       []*mat.Dense // W_j for each λ_j, k×q

	// The following slices are indexed by j·q+c.
	converged []bool    // the error of column c at λ_j is at most the tolerance
	rr        []float64 // ‖r‖²
	energy    []float64 // bᵀx

	// ratio and ratioLambda are indexed by c: the last rᵀM⁻¹r/‖r‖², and the λ at which it was computed. For other λ,
	// M⁻¹ is at most max(1, ratioLambda/λ) times that M⁻¹, and at most 1/λ.
	ratio       []float64
	ratioLambda []float64
}

// newSubspace returns the empty space, in which every X_j is 0.
func newSubspace(k matrix, b *mat.Dense, lambdas []float64) *subspace {
	_, q := b.Dims()
	s := &subspace{k: k, lambdas: lambdas, b: b, bb: make([]float64, q), w: make([]*mat.Dense, len(lambdas)),
		converged: make([]bool, len(lambdas)*q), ratio: make([]float64, q),
		ratioLambda: make([]float64, q)}
	s.rr, s.energy = make([]float64, len(lambdas)*q), make([]float64, len(lambdas)*q)
	for c := range q {
		s.bb[c] = dot(b, b, c, c)
		s.ratio[c] = math.Inf(1)
		for j := range lambdas {
			s.converged[j*q+c] = s.bb[c] == 0
		}
	}
	return s
}

// dot returns a_cᵀb_e.
func dot(a, b *mat.Dense, c, e int) (sum float64) {
	ra, rb := a.RawMatrix(), b.RawMatrix()
	for i := range ra.Rows {
		sum += ra.Data[i*ra.Stride+c] * rb.Data[i*rb.Stride+e]
	}
	return sum
}

// setNorms sets ‖r‖² and bᵀx of all columns at λ_j, which takes 2qk² flops:
//
//	‖r‖² = ‖b‖² − 2wᵀ(KV+λV)ᵀb + wᵀ((KV)ᵀKV + 2λVᵀKV + λ²I)w.
func (s *subspace) setNorms(j int) {
	l, w, q := s.lambdas[j], s.w[j].RawMatrix(), len(s.bb)
	h, p := s.h.RawMatrix(), s.p.RawMatrix()
	k := w.Rows
	g := blas64.General{Rows: k, Cols: k, Stride: k, Data: make([]float64, k*k)}
	for i := range k {
		for e, v := range h.Data[i*h.Stride : i*h.Stride+k] {
			g.Data[i*k+e] = p.Data[i*p.Stride+e] + 2*l*v
		}
		g.Data[i*k+i] += l * l
	}
	gw := blas64.General{Rows: k, Cols: q, Stride: q, Data: make([]float64, k*q)}
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, g, w, 0, gw)
	rr, energy := s.rr[j*q:(j+1)*q], s.energy[j*q:(j+1)*q]
	copy(rr, s.bb)
	clear(energy)
	for i := range k {
		vb, kb := s.vb.RawRowView(i), s.kb.RawRowView(i)
		for c := range q {
			wi := w.Data[i*w.Stride+c]
			rr[c] += wi * (gw.Data[i*q+c] - 2*kb[c] - 2*l*vb[c])
			energy[c] += wi * vb[c]
		}
	}
}

// worstLambdas returns, for each column of B that has not converged at every λ_j, the column and the index j of the
// largest residual relative to its energy bᵀx. It sets converged where the error is certainly at most the tolerance.
func (s *subspace) worstLambdas(tol []float64) (cols, js []int) {
	for c, bb := range s.bb {
		largest, worst := 0.0, -1
		for j, l := range s.lambdas {
			index := j*len(s.bb) + c
			if s.converged[index] {
				continue
			}
			squaredError := max(0, s.rr[index]) / (l * max(s.energy[index], 1e-300)) // relative, if M⁻¹ = I/λ
			if s.v == nil {
				squaredError = bb / l
			}
			if s.v != nil && squaredError*min(1, s.ratio[c]*max(l, s.ratioLambda[c])) <= tol[c]*tol[c] {
				s.converged[index] = true
				continue
			}
			if squaredError > largest {
				largest, worst = squaredError, j
			}
		}
		if worst >= 0 {
			cols, js = append(cols, c), append(js, worst)
		}
	}
	return cols, js
}

// residuals returns r = b − (KV)w − λVw for columns cols[i] and λ_j, j = js[i].
func (s *subspace) residuals(ctx context.Context, cols, js []int) (*mat.Dense, error) {
	n, _ := s.b.Dims()
	r := mat.NewDense(n, len(cols), nil)
	for i, c := range cols {
		for row := range n {
			r.Set(row, i, s.b.At(row, c))
		}
	}
	if s.v == nil {
		return r, nil
	}
	_, k := s.v.Dims()
	w, lw := mat.NewDense(k, len(cols), nil), mat.NewDense(k, len(cols), nil)
	for i, c := range cols {
		for e := range k {
			w.Set(e, i, s.w[js[i]].At(e, c))
			lw.Set(e, i, s.lambdas[js[i]]*s.w[js[i]].At(e, c))
		}
	}
	if err := mul(ctx, -1, s.kv, w, r); err != nil {
		return nil, err
	}
	return r, mul(ctx, -1, s.v, lw, r)
}

// observe updates the state of column c at λ_j from its residual r and z = M⁻¹r, given rr = rᵀr and rz = rᵀz. If M ≼
// K+λ_jI, the squared error in the norm of K+λ_jI is at most rz.
func (s *subspace) observe(j, c int, rr, rz, tol float64) {
	energy := s.energy[j*len(s.bb)+c]
	s.ratio[c], s.ratioLambda[c] = rz/rr, s.lambdas[j]
	s.converged[j*len(s.bb)+c] = rz <= tol*tol*energy
}

// orthonormalize returns an orthonormal basis of the directions that the columns of z add to V, or nil if there are
// none. Each column is projected twice. It is dropped if its component outside V and the previous columns is at most
// 1e-10 of it.
func (s *subspace) orthonormalize(ctx context.Context, z *mat.Dense) (*mat.Dense, error) {
	n, t := z.Dims()
	norms := make([]float64, t)
	for c := range t {
		norms[c] = math.Sqrt(dot(z, z, c, c))
	}
	for range 2 {
		if s.v != nil {
			vz, err := tmul(ctx, s.v, z)
			if err == nil {
				err = mul(ctx, -1, s.v, vz, z)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	rank := 0
	for c := range t {
		for range 2 {
			for e := range rank {
				f := dot(z, z, e, c)
				for i := range n {
					row := z.RawRowView(i)
					row[c] -= f * row[e]
				}
			}
		}
		norm := math.Sqrt(dot(z, z, c, c))
		if !(norm > 1e-10*norms[c]) {
			continue
		}
		for i := range n {
			z.Set(i, rank, z.At(i, c)/norm)
		}
		rank++
	}
	if rank == 0 {
		return nil, nil
	}
	return mat.DenseCopyOf(z.Slice(0, n, 0, rank)), nil
}

// extend adds the columns of u, which must be orthonormal to V, and solves again for every λ_j.
func (s *subspace) extend(ctx context.Context, u *mat.Dense) error {
	n, added := u.Dims()
	ku := mat.NewDense(n, added, nil)
	if err := s.k.KMulTo(ctx, ku, u); err != nil {
		return err
	}
	s.v, s.kv = augment(s.v, u), augment(s.kv, ku)
	var products [4]*mat.Dense
	for i, f := range [4][2]*mat.Dense{{s.v, ku}, {s.kv, ku}, {u, s.b}, {ku, s.b}} {
		var err error
		if products[i], err = tmul(ctx, f[0], f[1]); err != nil {
			return err
		}
	}
	s.h, s.p = appendBorder(s.h, products[0]), appendBorder(s.p, products[1])
	s.vb, s.kb = stack(s.vb, products[2]), stack(s.kb, products[3])
	failed := make([]bool, len(s.lambdas))
	err := accel.ForEach(ctx, len(s.lambdas), func(_, j int) { failed[j] = !s.solve(j) })
	for j, f := range failed {
		if err == nil && f {
			err = fmt.Errorf("leaveout: K+λI as stored is not positive definite at λ = %g: take a larger λ or more "+
				"accurate storage", s.lambdas[j])
		}
	}
	return err
}

// augment returns [a, b], or b if a is nil.
func augment(a, b *mat.Dense) *mat.Dense {
	if a == nil {
		return b
	}
	var c mat.Dense
	c.Augment(a, b)
	return &c
}

// solve solves (VᵀKV+λ_jI)W_j = VᵀB. It returns false if the matrix is not positive definite.
func (s *subspace) solve(j int) bool {
	k, _ := s.h.Dims()
	a := mat.DenseCopyOf(s.h).RawMatrix()
	for i := range k {
		a.Data[i*a.Stride+i] += s.lambdas[j]
	}
	t, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Lower, N: k, Stride: a.Stride, Data: a.Data})
	if !ok {
		return false
	}
	s.w[j] = mat.DenseCopyOf(s.vb)
	lapack64.Potrs(t, s.w[j].RawMatrix())
	s.setNorms(j)
	return !math.IsNaN(floats.Sum(s.rr[j*len(s.bb) : (j+1)*len(s.bb)]))
}

// appendBorder extends a symmetric matrix by the columns cols and the corresponding rows.
func appendBorder(a, cols *mat.Dense) *mat.Dense {
	k, added := cols.Dims()
	out := mat.NewDense(k, k, nil)
	if a != nil {
		out.Slice(0, k-added, 0, k-added).(*mat.Dense).Copy(a)
	}
	for i := range k {
		for c := range added {
			v := cols.At(i, c)
			if i >= k-added { // the corner is made symmetric
				v = (v + cols.At(k-added+c, i-(k-added))) / 2
			}
			out.Set(i, k-added+c, v)
			out.Set(k-added+c, i, v)
		}
	}
	return out
}

// stack returns the rows of a followed by those of b, or b if a is nil.
func stack(a, b *mat.Dense) *mat.Dense {
	if a == nil {
		return b
	}
	var c mat.Dense
	c.Stack(a, b)
	return &c
}

// panelRows is the number of rows that a worker multiplies at a time. Sums over panels are added in their order, so
// that the bits do not depend on the number of threads.
const panelRows = 1024

// tmul returns aᵀb.
func tmul(ctx context.Context, a, b *mat.Dense) (*mat.Dense, error) {
	ra, rb := a.RawMatrix(), b.RawMatrix()
	panels := (ra.Rows + panelRows - 1) / panelRows
	parts := make([][]float64, panels)
	err := accel.ForEach(ctx, panels, func(_, p int) {
		parts[p] = make([]float64, ra.Cols*rb.Cols)
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, rowsOf(ra, p), rowsOf(rb, p), 0,
			blas64.General{Rows: ra.Cols, Cols: rb.Cols, Stride: rb.Cols, Data: parts[p]})
	})
	if err != nil {
		return nil, err
	}
	for _, part := range parts[1:] {
		for i, v := range part {
			parts[0][i] += v
		}
	}
	return mat.NewDense(ra.Cols, rb.Cols, parts[0]), nil
}

// mul adds alpha·a·b to dst.
func mul(ctx context.Context, alpha float64, a, b, dst *mat.Dense) error {
	ra, rd := a.RawMatrix(), dst.RawMatrix()
	return accel.ForEach(ctx, (ra.Rows+panelRows-1)/panelRows, func(_, p int) {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, alpha, rowsOf(ra, p), b.RawMatrix(), 1, rowsOf(rd, p))
	})
}

// rowsOf returns panel p of the rows of a.
func rowsOf(a blas64.General, p int) blas64.General {
	lo, hi := p*panelRows, min((p+1)*panelRows, a.Rows)
	return blas64.General{Rows: hi - lo, Cols: a.Cols, Stride: a.Stride, Data: a.Data[lo*a.Stride:]}
}
