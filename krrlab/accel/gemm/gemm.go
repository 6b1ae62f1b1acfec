package gemm

import (
	"gonum.org/v1/gonum/blas"

	"github.com/krrlab/lab/krrlab/accel/simd"
)

// Product holds the arguments of C = α·op(A)·op(B) + β·C. C is M×N, op(A) is M×K and op(B) is K×N, all row-major with
// strides LDA, LDB and LDC. op(X) is X for blas.NoTrans and Xᵀ otherwise. C is not read if β = 0.
type Product[T real] struct {
	TransA, TransB blas.Transpose
	M, N, K        int
	Alpha          T
	A              []T
	LDA            int
	B              []T
	LDB            int
	Beta           T
	C              []T
	LDC            int
}

// Gemm computes a product on the calling goroutine. The package comment bounds its rounding error.
//
// The arguments must be valid for the BLAS (package accel checks them), with nonzero dimensions and α ≠ 0.
func Gemm[T real](x Product[T]) { multiply(partialProduct[T]{x, wholeMatrix}) }

// Syrk computes one triangle of C = α·op(A)·op(A)ᵀ + β·C, N×N. It does not use M, TransB, B and LDB. The other
// triangle is neither read nor written. The elements have the same bits as those that Gemm computes. Syrk takes little
// more than half of the time of Gemm. The requirements on the arguments are those of Gemm.
func Syrk[T real](ul blas.Uplo, x Product[T]) {
	region := lowerTriangle
	if ul == blas.Upper {
		region = upperTriangle
	}
	multiply(partialProduct[T]{x.Symmetric(), region})
}

// Symmetric returns x with op(B) = op(A)ᵀ and M = N.
func (x Product[T]) Symmetric() Product[T] {
	x.M, x.B, x.LDB, x.TransB = x.N, x.A, x.LDA, blas.Trans
	if x.TransA != blas.NoTrans {
		x.TransB = blas.NoTrans
	}
	return x
}

// multiply computes the product x with a workspace from the pool.
func multiply[T real](x partialProduct[T]) {
	w := workspacePool.Get().(*workspaces)
	pick[*workspace[T]](&w.f32, &w.f64).gemm(*kernelOf[T](currentKernels()), &x)
	workspacePool.Put(w)
}

// TileSize returns the numbers of rows and columns of the tile of C that the micro-kernel computes. Blocks of C whose
// dimensions are multiples of these waste no work at their borders.
func TileSize[T real]() (rows, cols int) {
	k := kernelOf[T](currentKernels())
	return k.mr, k.nr
}

// currentKernels returns the micro-kernels of the path in use. The path must not be simd.Portable, for which package
// accel uses gonum's code.
func currentKernels() *kernels { return byPath[simd.CurrentPath()] }

// kernelOf returns the micro-kernel of k for the number format T.
func kernelOf[T real](k *kernels) *kernel[T] { return pick[*kernel[T]](&k.f32, &k.f64) }

// pick returns f32 if it has the type P, and otherwise f64, which must have it.
func pick[P any](f32, f64 any) P {
	if p, ok := f32.(P); ok {
		return p
	}
	return f64.(P)
}
