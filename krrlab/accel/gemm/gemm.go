package gemm

import (
	"gonum.org/v1/gonum/blas"

	"github.com/krrlab/lab/krrlab/accel/simd"
)

// Gemm computes C = α·op(A)·op(B) + β·C. C is m×n, op(A) is m×k and op(B) is k×n, all row-major. op(X) is X for
// blas.NoTrans and Xᵀ otherwise. C is not read if β = 0. Gemm runs on the calling goroutine. The package comment bounds
// its rounding error.
//
// The arguments must be valid for the BLAS (package accel checks them), with nonzero dimensions and α ≠ 0.
func Gemm[T real](tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	multiply(product[T]{
		tA != blas.NoTrans, tB != blas.NoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, wholeMatrix,
	})
}

// Syrk computes one triangle of C = α·A·Aᵀ + β·C, with A n×k, or, if tA is not blas.NoTrans, of C = α·Aᵀ·A + β·C,
// with A k×n. The other triangle is neither read nor written. The elements have the same bits as those that Gemm
// computes. Syrk takes little more than half of the time of Gemm. The requirements on the arguments are those of Gemm.
func Syrk[T real](ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int) {
	region := lowerTriangle
	if ul == blas.Upper {
		region = upperTriangle
	}
	multiply(product[T]{tA != blas.NoTrans, tA == blas.NoTrans, n, n, k, alpha, a, lda, a, lda, beta, c, ldc, region})
}

// multiply computes the product x with a workspace from the pool.
func multiply[T real](x product[T]) {
	w := pool.Get().(*workspaces)
	pick[*workspace[T]](&w.f32, &w.f64).gemm(*kernelOf[T](currentKernels()), &x)
	pool.Put(w)
}

// Tile returns the numbers of rows and columns of the tile of C that the micro-kernel computes. Blocks of C whose
// dimensions are multiples of these waste no work at their borders.
func Tile[T real]() (rows, cols int) {
	k := kernelOf[T](currentKernels())
	return k.mr, k.nr
}

// currentKernels returns the micro-kernels of the path in use. The path must not be simd.Portable, for which package
// accel uses gonum's code.
func currentKernels() *kernels { return byPath[simd.InUse()] }

// kernelOf returns the micro-kernel of k for the number format T.
func kernelOf[T real](k *kernels) *kernel[T] { return pick[*kernel[T]](&k.f32, &k.f64) }

// pick returns the argument whose type is P, s or d.
func pick[P any](s, d any) P {
	if p, ok := s.(P); ok {
		return p
	}
	return d.(P)
}
