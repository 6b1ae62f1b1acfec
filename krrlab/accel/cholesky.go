package accel

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// Dpotrf computes the Cholesky factorization A = L·Lᵀ of the symmetric positive
// definite n×n matrix a, row-major with row stride lda, in place. Only the lower
// triangle of a is read, and L overwrites it; the upper triangle is not touched.
// Dpotrf reports whether it succeeded. It fails if a pivot is ≤ 0 or NaN; then a is partly
// overwritten, and its diagonal holds that pivot. A pivot of +Inf is accepted, so a must be
// finite for the result to prove that it is definite. Dpotrf panics if n < 0, lda < max(1, n)
// or a is too short.
//
// The computed factor satisfies L·Lᵀ = A + E, |E| ≤ c·n·u·|L|·|L|ᵀ with u = 2⁻⁵³ and
// c about 1 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
// theorem 10.3). The work is n³/3 flops. The tiles are succeeded through Each, with the BLAS and
// LAPACK in use. Unlike that of lapack64.Potrf, the result has the same bits for any number of
// threads. Call Dpotrf outside Each and ForEach.
func Dpotrf(n int, a []float64, lda int) bool {
	checkSquare("Dpotrf", n, lda, len(a))
	failedPivot, _, _ := tileOperations64().cholesky(wrap(n, a, lda))
	return failedPivot == n
}

// tileOperations64 returns the operations on tiles in float64, with the BLAS and LAPACK in use.
func tileOperations64() tileOperations[float64] {
	return tileOperations[float64]{float64Routines(blas64.Implementation()), func(n int, a []float64, lda int) bool {
		_, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: lda, Data: a})
		return ok
	}}
}

// Spotrf is Dpotrf in float32, with u = 2⁻²⁴. It succeeds if λ_min(A) is above about n·u·max a_ii.
func Spotrf(n int, a []float32, lda int) bool {
	checkSquare("Spotrf", n, lda, len(a))
	failedPivot, _, _ := tileOperations[float32]{float32Routines(blas32.Implementation()),
		func(n int, a []float32, lda int) bool {
			if lib := currentLibrary(); lib != nil && n >= lapackOrder && fitsMatrix(n, n, lda, len(a)) {
				return potrf(lib, lib.s.potrf, blas.Lower, n, a, lda)
			}
			return spotrfGo(n, a, lda)
		}}.cholesky(wrap(n, a, lda))
	return failedPivot == n
}

// checkSquare panics, with the name of the calling routine, if an n×n matrix with stride lda is invalid or does not fit
// a slice of the given length.
func checkSquare(name string, n, lda, length int) {
	switch {
	case n < 0:
		panic(fmt.Sprintf("accel: %s: n = %d < 0", name, n))
	case lda < max(1, n):
		panic(fmt.Sprintf("accel: %s: lda = %d < n = %d", name, lda, n))
	case n > 0 && length < (n-1)*lda+n:
		panic(fmt.Sprintf("accel: %s: len(a) = %d < %d for n = %d, lda = %d", name, length, (n-1)*lda+n, n, lda))
	}
}

// tileOrder is the order of the tiles of a factorization. If it is smaller, products of tiles run slower than large
// products. If it is larger, the other workers wait longer while one worker factors a tile on the diagonal.
const tileOrder = 384

// tileOperations holds the operations on tiles of a Cholesky factorization. Each of them runs on one thread.
type tileOperations[T float] struct {
	level3Routines[T]
	// potrf computes A = L·Lᵀ and reports whether it succeeded. On failure the failing pivot, ≤ 0 or NaN, is left on
	// the diagonal.
	potrf func(n int, a []T, lda int) bool
}

// cholesky factors m with the right-looking algorithm. For each block column J:
//
//	L_JJ·L_JJᵀ = A_JJ
//	L_IJ = A_IJ·L_JJ⁻ᵀ,            I > J
//	A_IK ← A_IK − L_IJ·L_KJᵀ,  I ≥ K > J
//
// It returns the index and the value of the first pivot that is not positive, or N and 0. The error is one of
// Broadcast.
func (op tileOperations[T]) cholesky(m *distributed[T]) (int, T, error) {
	blocks := m.blocks()
	for j := range blocks {
		panel, ld := m.column(j)
		rows := func(i int) []T { return panel[(i-j)*tileOrder*ld:] }
		tilesBelow := blocks - j - 1
		if m.ownsColumn(j) {
			succeeded := false
			Each(1, func(_, _ int) { succeeded = op.potrf(m.order(j), panel, ld) })
			Each(tilesBelow, func(_, i int) {
				if i += j + 1; succeeded {
					op.trsm(blas.Right, blas.Lower, blas.Trans, blas.NonUnit, m.order(i), m.order(j), 1, panel, ld,
						rows(i), ld)
				}
			})
		}
		if err := m.broadcast(panel, j); err != nil {
			return 0, 0, err
		}
		for r := range m.order(j) {
			if pivot := panel[r*ld+r]; !(pivot > 0) {
				return j*tileOrder + r, pivot, nil
			}
		}
		Each(tilesBelow*(tilesBelow+1)/2, func(_, block int) {
			i, k := blockIndex(block)
			i, k = i+j+1, k+j+1
			if !m.ownsColumn(k) {
				return
			}
			a, lda := m.tile(i, k)
			if i == k {
				op.syrk(blas.Lower, blas.NoTrans, m.order(i), m.order(j), -1, rows(i), ld, 1, a, lda)
				return
			}
			op.gemm(blas.NoTrans, blas.Trans, m.order(i), m.order(k), m.order(j), -1, rows(i), ld, rows(k), ld, 1,
				a, lda)
		})
	}
	return m.N, 0, nil
}

// Dtrtri overwrites the lower triangular n×n matrix a, row-major with row stride lda, with
// its inverse, and reports whether a is nonsingular. A singular a is not changed. The upper
// triangle is not touched. The work is n³/3 flops. As for Dpotrf, the result has the same bits
// for any number of threads. Call Dtrtri outside Each and ForEach.
func Dtrtri(n int, a []float64, lda int) bool {
	checkSquare("Dtrtri", n, lda, len(a))
	for i := range n {
		if a[i*lda+i] == 0 {
			return false
		}
	}
	m := wrap(n, a, lda)
	m.columnBuffer = make([]float64, n*min(n, tileOrder))
	return invert(m) == nil
}

// invert computes the rows of L⁻¹ that this rank owns, block column by block column from the last to the first. With
// L = [L_JJ 0; P Q] and X = Q⁻¹ from the previous steps, L⁻¹ = [L_JJ⁻¹ 0; −XT X], where T = P·L_JJ⁻¹.
func invert(m *distributed[float64]) error {
	routines := blas64.Implementation()
	blocks := m.blocks()
	for j := blocks - 1; j >= 0; j-- {
		ld, tilesBelow := m.order(j), blocks-j-1
		panel := m.columnBuffer[:(m.N-j*tileOrder)*ld] // L_JJ⁻¹, and T below
		rows := func(i int) []float64 { return panel[(i-j)*tileOrder*ld:] }
		if m.ownsColumn(j) {
			Each(1, func(_, _ int) {
				m.loadTile(j, j, panel)
				lapack64.Trtri(blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: ld, Stride: ld, Data: panel})
			})
			Each(tilesBelow, func(_, i int) { // T_I = P_I·L_JJ⁻¹
				i += j + 1
				m.loadTile(i, j, rows(i))
				routines.Dtrmm(blas.Right, blas.Lower, blas.NoTrans, blas.NonUnit, m.order(i), ld, 1, panel, ld,
					rows(i), ld)
			})
			m.releaseColumn(j)
		}
		if err := m.broadcast(panel, j); err != nil {
			return err
		}
		Each(tilesBelow+1, func(_, i int) { // (L⁻¹)_IJ = −Σ_{J<K≤I} X_IK·T_K, the longest sums first
			if i = blocks - 1 - i; !m.ownsColumn(i) {
				return
			}
			dst, ldd := m.storeTile(i, j, rows(i))
			if i == j {
				return
			}
			x, ldx := m.row(i, i)
			routines.Dtrmm(blas.Left, blas.Lower, blas.NoTrans, blas.NonUnit, m.order(i), ld, -1, x, ldx, dst, ldd)
			for k := j + 1; k < i; k++ {
				x, ldx := m.row(i, k)
				routines.Dgemm(blas.NoTrans, blas.NoTrans, m.order(i), ld, m.order(k), -1, x, ldx, rows(k), ld, 1, dst,
					ldd)
			}
		})
	}
	return nil
}
