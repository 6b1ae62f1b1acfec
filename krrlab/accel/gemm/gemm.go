package gemm

import (
	"gonum.org/v1/gonum/blas"

	"github.com/krrlab/lab/krrlab/accel/simd"
)

// Product holds the arguments of C = α·op(A)·op(B) + β·C. C is M×N, op(A) is M×K and op(B) is K×N, all row-major with
// strides LDA, LDB and LDC. op(X) is X for blas.NoTrans and Xᵀ otherwise. C is not read if β = 0.
type Product[T float] struct {
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

// Gemm computes the product p on the calling goroutine. The package comment bounds its rounding error.
//
// The arguments must be valid for the BLAS (package accel checks them), with nonzero dimensions and α ≠ 0.
func Gemm[T float](p Product[T]) { multiply(partialProduct[T]{p, wholeMatrix}) }

// Syrk computes one triangle of C = α·op(A)·op(A)ᵀ + β·C, N×N. It does not use M, TransB, B and LDB. The other
// triangle is neither read nor written. The elements have the same bits as those that Gemm computes. Syrk takes little
// more than half of the time of Gemm. The requirements on the arguments are those of Gemm.
func Syrk[T float](ul blas.Uplo, p Product[T]) {
	region := lowerTriangle
	if ul == blas.Upper {
		region = upperTriangle
	}
	multiply(partialProduct[T]{p.Symmetric(), region})
}

// Symmetric returns p with op(B) = op(A)ᵀ and M = N.
func (p Product[T]) Symmetric() Product[T] {
	p.M, p.B, p.LDB, p.TransB = p.N, p.A, p.LDA, blas.Trans
	if p.TransA != blas.NoTrans {
		p.TransB = blas.NoTrans
	}
	return p
}

// multiply computes the product p with a workspace from the pool.
func multiply[T float](p partialProduct[T]) {
	w := workspacePool.Get().(*workspaces)
	pick[*workspace[T]](&w.f32, &w.f64).gemm(*kernelOf[T](currentKernels()), &p)
	workspacePool.Put(w)
}

// TileSize returns the numbers of rows and columns of the tile of C that the micro-kernel computes. Blocks of C whose
// dimensions are multiples of these waste no work at their borders.
func TileSize[T float]() (rows, cols int) {
	micro := kernelOf[T](currentKernels())
	return micro.mr, micro.nr
}

// currentKernels returns the micro-kernels of the path in use. The path must not be simd.Portable, for which package
// accel uses gonum's code.
func currentKernels() *kernels { return byPath[simd.CurrentPath()] }

// kernelOf returns the micro-kernel of pathKernels for the number format T.
func kernelOf[T float](pathKernels *kernels) *kernel[T] {
	return pick[*kernel[T]](&pathKernels.f32, &pathKernels.f64)
}

// pick returns f32 if it has the type P, and otherwise f64, which must have it.
func pick[P any](f32, f64 any) P {
	if picked, ok := f32.(P); ok {
		return picked
	}
	return f64.(P)
}
