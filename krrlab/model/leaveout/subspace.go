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
	converged []bool    // whether the error of column c at λ_j is at most the tolerance
	rr        []float64 // ‖r‖²
	energy    []float64 // bᵀx

	// ratio and ratioLambda are indexed by c: the last rᵀM⁻¹r/‖r‖², and the λ at which it was computed. For another λ,
	// M⁻¹ is at most max(1, ratioLambda/λ) times the M⁻¹ at ratioLambda, and at most 1/λ.
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
		s.bb[c] = columnDot(b, b, c, c)
		s.ratio[c] = math.Inf(1)
		for j := range lambdas {
			s.converged[j*q+c] = s.bb[c] == 0
		}
	}
	return s
}

// columnDot returns a_cᵀb_e, where a_c is column c of a and b_e is column e of b.
func columnDot(a, b *mat.Dense, c, e int) (sum float64) {
	rawA, rawB := a.RawMatrix(), b.RawMatrix()
	for i := range rawA.Rows {
		sum += rawA.Data[i*rawA.Stride+c] * rawB.Data[i*rawB.Stride+e]
	}
	return sum
}

// setNorms sets ‖r‖² and bᵀx of all columns at λ_j, which takes 2qk² flops:
//
//	‖r‖² = ‖b‖² − 2wᵀ(KV+λV)ᵀb + wᵀ((KV)ᵀKV + 2λVᵀKV + λ²I)w.
func (s *subspace) setNorms(j int) {
	lambda, w, q := s.lambdas[j], s.w[j].RawMatrix(), len(s.bb)
	h, p := s.h.RawMatrix(), s.p.RawMatrix()
	k := w.Rows
	gram := blas64.General{Rows: k, Cols: k, Stride: k, Data: make([]float64, k*k)}
	for i := range k {
		for e, v := range h.Data[i*h.Stride : i*h.Stride+k] {
			gram.Data[i*k+e] = p.Data[i*p.Stride+e] + 2*lambda*v
		}
		gram.Data[i*k+i] += lambda * lambda
	}
	gw := blas64.General{Rows: k, Cols: q, Stride: q, Data: make([]float64, k*q)}
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, gram, w, 0, gw)
	rr, energy := s.rr[j*q:(j+1)*q], s.energy[j*q:(j+1)*q]
	copy(rr, s.bb)
	clear(energy)
	for i := range k {
		vb, kb := s.vb.RawRowView(i), s.kb.RawRowView(i)
		for c := range q {
			wi := w.Data[i*w.Stride+c]
			rr[c] += wi * (gw.Data[i*q+c] - 2*kb[c] - 2*lambda*vb[c])
			energy[c] += wi * vb[c]
		}
	}
}

// worstLambdas returns, for each column of B that has not converged at every λ_j, the column and the index j of the
// largest residual relative to its energy bᵀx. It sets converged where the error is certainly at most the tolerance.
func (s *subspace) worstLambdas(tolerances []float64) (columns, lambdaIndices []int) {
	for c, bb := range s.bb {
		largestError, worst := 0.0, -1
		for j, lambda := range s.lambdas {
			index := j*len(s.bb) + c
			if s.converged[index] {
				continue
			}
			// The squared error is relative to the energy. It is a bound, since M⁻¹ ≼ I/λ.
			squaredError := max(0, s.rr[index]) / (lambda * max(s.energy[index], 1e-300))
			if s.v == nil {
				squaredError = bb / lambda
			}
			if s.v != nil &&
				squaredError*min(1, s.ratio[c]*max(lambda, s.ratioLambda[c])) <= tolerances[c]*tolerances[c] {
				s.converged[index] = true
				continue
			}
			if squaredError > largestError {
				largestError, worst = squaredError, j
			}
		}
		if worst >= 0 {
			columns, lambdaIndices = append(columns, c), append(lambdaIndices, worst)
		}
	}
	return columns, lambdaIndices
}

// residuals returns r = b − (KV)w − λVw for the columns columns[i] of B and λ_j, j = lambdaIndices[i].
func (s *subspace) residuals(ctx context.Context, columns, lambdaIndices []int) (*mat.Dense, error) {
	n, _ := s.b.Dims()
	r := mat.NewDense(n, len(columns), nil)
	for i, c := range columns {
		for row := range n {
			r.Set(row, i, s.b.At(row, c))
		}
	}
	if s.v == nil {
		return r, nil
	}
	_, k := s.v.Dims()
	w, scaledW := mat.NewDense(k, len(columns), nil), mat.NewDense(k, len(columns), nil)
	for i, c := range columns {
		for e := range k {
			w.Set(e, i, s.w[lambdaIndices[i]].At(e, c))
			scaledW.Set(e, i, s.lambdas[lambdaIndices[i]]*s.w[lambdaIndices[i]].At(e, c))
		}
	}
	if err := addProduct(ctx, -1, s.kv, w, r); err != nil {
		return nil, err
	}
	return r, addProduct(ctx, -1, s.v, scaledW, r)
}

// observe updates the state of column c at λ_j from its residual r and z = M⁻¹r, given rr = rᵀr and rz = rᵀz. If M ≼
// K+λ_jI, the squared error in the norm of K+λ_jI is at most rz.
func (s *subspace) observe(j, c int, rr, rz, tol float64) {
	energy := s.energy[j*len(s.bb)+c]
	s.ratio[c], s.ratioLambda[c] = rz/rr, s.lambdas[j]
	s.converged[j*len(s.bb)+c] = rz <= tol*tol*energy
}

// orthonormalize returns an orthonormal basis of the directions that the columns of z add to V, or nil if there are
// none. Each column is orthogonalized twice, against rounding errors. It is dropped if its component outside V and the
// previous columns has at most 1e-10 of its norm.
func (s *subspace) orthonormalize(ctx context.Context, z *mat.Dense) (*mat.Dense, error) {
	n, t := z.Dims()
	norms := make([]float64, t)
	for c := range t {
		norms[c] = math.Sqrt(columnDot(z, z, c, c))
	}
	for range 2 {
		if s.v != nil {
			vz, err := transposeMul(ctx, s.v, z)
			if err == nil {
				err = addProduct(ctx, -1, s.v, vz, z)
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
				f := columnDot(z, z, e, c)
				for i := range n {
					row := z.RawRowView(i)
					row[c] -= f * row[e]
				}
			}
		}
		norm := math.Sqrt(columnDot(z, z, c, c))
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
	for i, factors := range [4][2]*mat.Dense{{s.v, ku}, {s.kv, ku}, {u, s.b}, {ku, s.b}} {
		var err error
		if products[i], err = transposeMul(ctx, factors[0], factors[1]); err != nil {
			return err
		}
	}
	s.h, s.p = appendBorder(s.h, products[0]), appendBorder(s.p, products[1])
	s.vb, s.kb = stack(s.vb, products[2]), stack(s.kb, products[3])
	failed := make([]bool, len(s.lambdas))
	err := accel.ForEach(ctx, len(s.lambdas), func(_, j int) { failed[j] = !s.solve(j) })
	for j, isFailed := range failed {
		if err == nil && isFailed {
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
	factor, isDefinite := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Lower, N: k, Stride: a.Stride, Data: a.Data})
	if !isDefinite {
		return false
	}
	s.w[j] = mat.DenseCopyOf(s.vb)
	lapack64.Potrs(factor, s.w[j].RawMatrix())
	s.setNorms(j)
	return !math.IsNaN(floats.Sum(s.rr[j*len(s.bb) : (j+1)*len(s.bb)]))
}

// appendBorder extends a symmetric matrix by the columns cols and the corresponding rows. cols has all rows of the
// result.
func appendBorder(a, cols *mat.Dense) *mat.Dense {
	k, added := cols.Dims()
	bordered := mat.NewDense(k, k, nil)
	if a != nil {
		bordered.Slice(0, k-added, 0, k-added).(*mat.Dense).Copy(a)
	}
	for i := range k {
		for c := range added {
			v := cols.At(i, c)
			if i >= k-added { // the corner is made symmetric
				v = (v + cols.At(k-added+c, i-(k-added))) / 2
			}
			bordered.Set(i, k-added+c, v)
			bordered.Set(k-added+c, i, v)
		}
	}
	return bordered
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

// panelRows is the number of rows that a goroutine multiplies at a time. Sums over panels are added in their order, so
// that the bits do not depend on the number of threads.
const panelRows = 1024

// transposeMul returns aᵀb.
func transposeMul(ctx context.Context, a, b *mat.Dense) (*mat.Dense, error) {
	rawA, rawB := a.RawMatrix(), b.RawMatrix()
	panels := (rawA.Rows + panelRows - 1) / panelRows
	parts := make([][]float64, panels)
	err := accel.ForEach(ctx, panels, func(_, panel int) {
		parts[panel] = make([]float64, rawA.Cols*rawB.Cols)
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, rowPanel(rawA, panel), rowPanel(rawB, panel), 0,
			blas64.General{Rows: rawA.Cols, Cols: rawB.Cols, Stride: rawB.Cols, Data: parts[panel]})
	})
	if err != nil {
		return nil, err
	}
	for _, part := range parts[1:] {
		for i, v := range part {
			parts[0][i] += v
		}
	}
	return mat.NewDense(rawA.Cols, rawB.Cols, parts[0]), nil
}

// addProduct adds alpha·a·b to dst.
func addProduct(ctx context.Context, alpha float64, a, b, dst *mat.Dense) error {
	rawA, rawDst := a.RawMatrix(), dst.RawMatrix()
	return accel.ForEach(ctx, (rawA.Rows+panelRows-1)/panelRows, func(_, panel int) {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, alpha, rowPanel(rawA, panel), b.RawMatrix(), 1, rowPanel(rawDst, panel))
	})
}

// rowPanel returns panel p of the rows of a.
func rowPanel(a blas64.General, panel int) blas64.General {
	lo, hi := panel*panelRows, min((panel+1)*panelRows, a.Rows)
	return blas64.General{Rows: hi - lo, Cols: a.Cols, Stride: a.Stride, Data: a.Data[lo*a.Stride:]}
}
