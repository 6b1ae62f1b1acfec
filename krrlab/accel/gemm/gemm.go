package gemm

import (
	"gonum.org/v1/gonum/blas"

	"github.com/krrlab/lab/krrlab/accel/simd"
)

// Gemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n, all row-major: op(X) is X for blas.NoTrans and Xᵀ
// else. It runs on the calling goroutine. C is not read if β = 0. The package comment bounds its error. Arguments are
// those of a BLAS without mistakes (package accel checks them), no dimension is 0, and α is not.
func Gemm[T real](tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	multiply(product[T]{tA != blas.NoTrans, tB != blas.NoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, all})
}

// Syrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or, tA not being blas.NoTrans, of C = α·Aᵀ·A + β·C, A k×n;
// the other triangle is neither read nor written. Elements have the bits that Gemm gives them. It takes little more
// than half of Gemm's time. Arguments are as Gemm's.
func Syrk[T real](ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int) {
	part := lower
	if ul == blas.Upper {
		part = upper
	}
	multiply(product[T]{tA != blas.NoTrans, tA == blas.NoTrans, n, n, k, alpha, a, lda, a, lda, beta, c, ldc, part})
}

func multiply[T real](x product[T]) {
	w := pool.Get().(*workspaces)
	of[*workspace[T]](&w.s, &w.d).gemm(*kernelOf[T](current()), &x)
	pool.Put(w)
}

// Tile returns the size of Gemm's micro-kernel. Pieces of C that are multiples of it waste no work at their borders.
func Tile[T real]() (rows, cols int) {
	k := kernelOf[T](current())
	return k.mr, k.nr
}

// current returns the micro-kernels of the path in use, which is not simd.Portable: accel uses gonum's code there.
func current() *kernels { return byPath[simd.InUse()] }

func kernelOf[T real](k *kernels) *kernel[T] { return of[*kernel[T]](&k.s, &k.d) }

// of returns the one of type P.
func of[P any](s, d any) P {
	if p, ok := s.(P); ok {
		return p
	}
	return d.(P)
}
