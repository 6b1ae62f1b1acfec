package accel

import (
	"math"
	"runtime"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/internal/dl"
)

// float is a number format of the BLAS.
type float interface{ float32 | float64 }

// maxInt is the largest dimension or stride that fits the 32-bit integers of the library.
const maxInt = math.MaxInt32

// fitsMatrix reports whether a nonempty r×c matrix with row stride ld is valid, fits a slice of the given length, and
// has dimensions that fit 32 bits.
func fitsMatrix(r, c, ld, length int) bool {
	return 0 < r && 0 < c && c <= ld && r <= maxInt && ld <= maxInt && (r-1)*ld+c <= length
}

// fitsVector reports whether a nonempty vector of n elements with increment inc is valid, fits a slice of the given
// length, and has dimensions that fit 32 bits. inc must not be 0.
func fitsVector(n, inc, length int) bool {
	if inc < 0 {
		inc = -inc
	}
	return 0 < n && n <= maxInt && 0 < inc && inc <= maxInt && (n-1)*inc < length
}

// isUplo, isSide, isDiag and isTrans report whether an argument is valid.
func isUplo(u blas.Uplo) bool { return u == blas.Upper || u == blas.Lower }
func isSide(s blas.Side) bool { return s == blas.Left || s == blas.Right }
func isDiag(d blas.Diag) bool { return d == blas.NonUnit || d == blas.Unit }
func isTrans(t blas.Transpose) bool {
	return t == blas.NoTrans || t == blas.Trans || t == blas.ConjTrans
}

// flipUplo, flipSide and flipTrans return the argument that a column-major routine needs for a row-major matrix,
// because it reads the memory of the matrix as the transpose.
func flipUplo(u blas.Uplo) byte { return 'U' + 'L' - byte(u) }

func flipSide(s blas.Side) byte { return 'L' + 'R' - byte(s) }

func flipTrans(t blas.Transpose) byte {
	if t == blas.NoTrans {
		return 'T'
	}
	return 'N'
}

// opDims returns the dimensions of A if op(A) is r×c.
func opDims(t blas.Transpose, r, c int) (int, int) {
	if t == blas.NoTrans {
		return r, c
	}
	return c, r
}

// order returns the order of a triangular or symmetric matrix that multiplies an m×n matrix from side s.
func order(s blas.Side, m, n int) int {
	if s == blas.Left {
		return m
	}
	return n
}

// gemmForm lists the parameters of xGEMM, as routine.form does.
const gemmForm = "cciiiapipibpi"

// routine is a call of the library's routine at an address. The letters of form list the parameters of the routine in
// order: c is the next of chars, i the next of ints, p the next of the arrays of the call, a is α, b is β, and o is
// the result info, LAPACK's error code.
type routine[T float] struct {
	address     uintptr
	form        string
	chars       [4]byte
	ints        [6]int
	alpha, beta T
}

// callFortran makes the call r and returns the result info of the routine, or 0 if it has none. The operands are
// row-major and must satisfy fitsMatrix or fitsVector; the library takes them for column-major matrices, that is for
// their transposes.
func callFortran[T float](lib *Library, r routine[T], arrays ...[]T) (info int32) {
	frame := frames.Get().(*frame)
	if lib.model == openmp {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		lib.passThreads(frame)
	}
	frame.chars, frame.info = r.chars, 0
	*(*T)(unsafe.Pointer(&frame.alpha)), *(*T)(unsafe.Pointer(&frame.beta)) = r.alpha, r.beta
	var charCount, intCount, arrayCount int
	for parameter := range len(r.form) {
		var address unsafe.Pointer
		switch r.form[parameter] {
		case 'c':
			address, charCount = unsafe.Pointer(&frame.chars[charCount]), charCount+1
		case 'i':
			frame.ints[intCount] = int32(r.ints[intCount])
			address, intCount = unsafe.Pointer(&frame.ints[intCount]), intCount+1
		case 'p':
			address = unsafe.Pointer(unsafe.SliceData(arrays[arrayCount]))
			frame.pointers[arrayCount], arrayCount = address, arrayCount+1
		case 'a':
			address = unsafe.Pointer(&frame.alpha)
		case 'b':
			address = unsafe.Pointer(&frame.beta)
		case 'o':
			address = unsafe.Pointer(&frame.info)
		}
		frame.args[parameter] = uintptr(address)
	}
	for char := range charCount {
		frame.args[len(r.form)+char] = 1 // hidden Fortran argument: the length of a character string
	}
	dl.Call(r.address, frame.args[:len(r.form)+charCount]...)
	info, frame.pointers = frame.info, [5]unsafe.Pointer{} // the pointers kept the operands alive until here
	frames.Put(frame)
	return info
}

// triangleRow returns the elements of row i of an n×n matrix that belong to its triangle ul.
func triangleRow[T float](ul blas.Uplo, n int, a []T, lda, i int) []T {
	if ul == blas.Upper {
		return a[i*lda+i : i*lda+n]
	}
	return a[i*lda : i*lda+i+1]
}

// float32s is the blas.Float32 in use. It is gonum's, except for the most expensive routines, which level3 computes.
type float32s struct {
	gonum.Implementation
}

var _ blas.Float32 = float32s{}

// Sgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n.
func (float32s) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	level3of32.gemm(productArgs[float32]{tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc})
}

// Ssyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or of C = α·Aᵀ·A + β·C, A k×n, if tA is a transpose.
func (float32s) Ssyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32,
	c []float32, ldc int) {
	level3of32.syrk(ul, productArgs[float32]{tA, 0, n, n, k, alpha, a, lda, nil, 0, beta, c, ldc})
}

// Strsm computes B = α·op(A)⁻¹·B or, from the right, α·B·op(A)⁻¹, B m×n and A
// triangular.
func (float32s) Strsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32,
	lda int, b []float32, ldb int) {
	level3of32.triangular(triangleArgs[float32]{gogemm.Solve, s, ul, tA, d, m, n, alpha, a, lda, b, ldb})
}

// Strmm computes B = α·op(A)·B or, from the right, α·B·op(A), B m×n and A
// triangular.
func (float32s) Strmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32,
	lda int, b []float32, ldb int) {
	level3of32.triangular(triangleArgs[float32]{gogemm.Multiply, s, ul, tA, d, m, n, alpha, a, lda, b, ldb})
}

// Sgemv computes y = α·op(A)·x + β·y, A m×n.
func (float32s) Sgemv(tA blas.Transpose, m, n int, alpha float32, a []float32, lda int, x []float32, incX int,
	beta float32, y []float32, incY int) {
	level3of32.gemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
}

// float64s is the blas.Float64 in use. It is gonum's, except for the most expensive routines, which level3 computes.
type float64s struct {
	gonum.Implementation
}

var _ blas.Float64 = float64s{}

// Dgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n.
func (float64s) Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int,
	beta float64, c []float64, ldc int) {
	level3of64.gemm(productArgs[float64]{tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc})
}

// Dsyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or of C = α·Aᵀ·A + β·C, A k×n, if tA is a transpose.
func (float64s) Dsyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float64, a []float64, lda int, beta float64,
	c []float64, ldc int) {
	level3of64.syrk(ul, productArgs[float64]{tA, 0, n, n, k, alpha, a, lda, nil, 0, beta, c, ldc})
}

// Dtrsm computes B = α·op(A)⁻¹·B or, from the right, α·B·op(A)⁻¹, B m×n and A
// triangular.
func (float64s) Dtrsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64,
	lda int, b []float64, ldb int) {
	level3of64.triangular(triangleArgs[float64]{gogemm.Solve, s, ul, tA, d, m, n, alpha, a, lda, b, ldb})
}

// Dtrmm computes B = α·op(A)·B or, from the right, α·B·op(A), B m×n and A
// triangular.
func (float64s) Dtrmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64,
	lda int, b []float64, ldb int) {
	level3of64.triangular(triangleArgs[float64]{gogemm.Multiply, s, ul, tA, d, m, n, alpha, a, lda, b, ldb})
}

// Dgemv computes y = α·op(A)·x + β·y, A m×n.
func (float64s) Dgemv(tA blas.Transpose, m, n int, alpha float64, a []float64, lda int, x []float64, incX int,
	beta float64, y []float64, incY int) {
	level3of64.gemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
}
