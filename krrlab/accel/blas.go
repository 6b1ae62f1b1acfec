package accel

import (
	"math"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// This file has the calls into the library, for float64 and float32 alike. Each
// takes row-major operands that have passed the checks below and hands them over
// as the column-major transposes that they are.

type real interface{ float32 | float64 }

// maxInt is the largest dimension or stride that the library's integers hold.
const maxInt = math.MaxInt32

// matrix reports whether r×c with row stride ld is a matrix that lies within n
// elements, is not empty, and has dimensions that fit 32 bits.
func matrix(r, c, ld, n int) bool {
	return 0 < r && 0 < c && c <= ld && r <= maxInt && ld <= maxInt && (r-1)*ld+c <= n
}

// vector reports likewise for a vector of n elements with increment inc ≠ 0 that
// lies within l elements.
func vector(n, inc, l int) bool {
	if inc < 0 {
		inc = -inc
	}
	return 0 < n && n <= maxInt && 0 < inc && inc <= maxInt && (n-1)*inc < l
}

func isUplo(u blas.Uplo) bool { return u == blas.Upper || u == blas.Lower }
func isSide(s blas.Side) bool { return s == blas.Left || s == blas.Right }
func isDiag(d blas.Diag) bool { return d == blas.NonUnit || d == blas.Unit }
func isTrans(t blas.Transpose) bool {
	return t == blas.NoTrans || t == blas.Trans || t == blas.ConjTrans
}

// flipUplo returns the triangle as the column-major routine sees it.
func flipUplo(u blas.Uplo) byte {
	if u == blas.Upper {
		return 'L'
	}
	return 'U'
}

func flipSide(s blas.Side) byte {
	if s == blas.Left {
		return 'R'
	}
	return 'L'
}

func flipTrans(t blas.Transpose) byte {
	if t == blas.NoTrans {
		return 'T'
	}
	return 'N'
}

// opDims returns the dimensions in which the operand A of op(A), an r×c matrix,
// is stored.
func opDims(t blas.Transpose, r, c int) (int, int) {
	if t == blas.NoTrans {
		return r, c
	}
	return c, r
}

// order returns the order of the triangular or symmetric matrix that multiplies
// an m×n one from side s.
func order(s blas.Side, m, n int) int {
	if s == blas.Left {
		return m
	}
	return n
}

func base[T real](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// scalar stores v where its address can be passed.
func scalar[T real](at *uint64, v T) { *(*T)(unsafe.Pointer(at)) = v }

func (f *frame) alphaAddr() uintptr { return uintptr(unsafe.Pointer(&f.alpha)) }
func (f *frame) betaAddr() uintptr  { return uintptr(unsafe.Pointer(&f.beta)) }

// gemm calls xGEMM at fn: C = α·op(A)·op(B) + β·C as Cᵀ = α·op(B)ᵀ·op(A)ᵀ + β·Cᵀ.
func gemm[T real](l *Library, fn uintptr, tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int,
	beta T, c []T, ldc int) {
	f := frames.Get().(*frame)
	f.c = [4]byte{byte(tB), byte(tA)}
	f.i = [8]int32{int32(n), int32(m), int32(k), int32(ldb), int32(lda), int32(ldc)}
	scalar(&f.alpha, alpha)
	scalar(&f.beta, beta)
	f.p = [4]unsafe.Pointer{base(b), base(a), base(c)}
	l.call(f, fn, f.char(0), f.char(1), f.num(0), f.num(1), f.num(2), f.alphaAddr(),
		f.ptr(0), f.num(3), f.ptr(1), f.num(4), f.betaAddr(), f.ptr(2), f.num(5), 1, 1)
	f.free()
}

// syrk calls xSYRK at fn: C = α·op(A)·op(A)ᵀ + β·C, one triangle of n×n C.
func syrk[T real](l *Library, fn uintptr, ul blas.Uplo, t blas.Transpose, n, k int, alpha T, a []T, lda int, beta T,
	c []T, ldc int) {
	if beta == 0 {
		clearTriangle(ul, n, c, ldc) // some builds scale by β, and 0·NaN = NaN
	}
	f := frames.Get().(*frame)
	f.c = [4]byte{flipUplo(ul), flipTrans(t)}
	f.i = [8]int32{int32(n), int32(k), int32(lda), int32(ldc)}
	scalar(&f.alpha, alpha)
	scalar(&f.beta, beta)
	f.p = [4]unsafe.Pointer{base(a), base(c)}
	l.call(f, fn, f.char(0), f.char(1), f.num(0), f.num(1), f.alphaAddr(),
		f.ptr(0), f.num(2), f.betaAddr(), f.ptr(1), f.num(3), 1, 1)
	f.free()
}

func clearTriangle[T real](ul blas.Uplo, n int, c []T, ldc int) {
	for i := range n {
		if ul == blas.Upper {
			clear(c[i*ldc+i : i*ldc+n])
		} else {
			clear(c[i*ldc : i*ldc+i+1])
		}
	}
}

// trxm calls xTRSM or xTRMM at fn: B = α·op(A)⁻¹·B or α·op(A)·B, or with op(A)
// on the right.
func trxm[T real](l *Library, fn uintptr, s blas.Side, ul blas.Uplo, t blas.Transpose, d blas.Diag, m, n int, alpha T,
	a []T, lda int, b []T, ldb int) {
	f := frames.Get().(*frame)
	f.c = [4]byte{flipSide(s), flipUplo(ul), byte(t), byte(d)}
	f.i = [8]int32{int32(n), int32(m), int32(lda), int32(ldb)}
	scalar(&f.alpha, alpha)
	f.p = [4]unsafe.Pointer{base(a), base(b)}
	l.call(f, fn, f.char(0), f.char(1), f.char(2), f.char(3), f.num(0), f.num(1), f.alphaAddr(),
		f.ptr(0), f.num(2), f.ptr(1), f.num(3), 1, 1, 1, 1)
	f.free()
}

// gemv calls xGEMV at fn: y = α·op(A)·x + β·y.
func gemv[T real](l *Library, fn uintptr, t blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T,
	y []T, incY int) {
	if beta == 0 { // as in syrk
		lenY, _ := opDims(t, m, n)
		for i, inc := 0, max(incY, -incY); i < lenY; i++ {
			y[i*inc] = 0
		}
	}
	f := frames.Get().(*frame)
	f.c = [4]byte{flipTrans(t)}
	f.i = [8]int32{int32(n), int32(m), int32(lda), int32(incX), int32(incY)}
	scalar(&f.alpha, alpha)
	scalar(&f.beta, beta)
	f.p = [4]unsafe.Pointer{base(a), base(x), base(y)}
	l.call(f, fn, f.char(0), f.num(0), f.num(1), f.alphaAddr(),
		f.ptr(0), f.num(2), f.ptr(1), f.num(3), f.betaAddr(), f.ptr(2), f.num(4), 1)
	f.free()
}

// float32s is the blas.Float32 in use: gonum's, with the routines overridden that the time
// goes into (see level3).
type float32s struct {
	gonum.Implementation
	lib func() *Library
}

var _ blas.Float32 = float32s{}

// Sgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n.
func (o float32s) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	level3of32.gemm(o.lib(), tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Ssyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or with tA of
// C = α·Aᵀ·A + β·C, A k×n.
func (o float32s) Ssyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32,
	c []float32, ldc int) {
	level3of32.syrk(o.lib(), ul, tA, n, k, alpha, a, lda, beta, c, ldc)
}

// Strsm computes B = α·op(A)⁻¹·B or, from the right, α·B·op(A)⁻¹, B m×n and A
// triangular.
func (o float32s) Strsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32,
	lda int, b []float32, ldb int) {
	level3of32.trxm(o.lib(), true, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Strmm computes B = α·op(A)·B or, from the right, α·B·op(A), B m×n and A
// triangular.
func (o float32s) Strmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32,
	lda int, b []float32, ldb int) {
	level3of32.trxm(o.lib(), false, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Sgemv computes y = α·op(A)·x + β·y, A m×n.
func (o float32s) Sgemv(tA blas.Transpose, m, n int, alpha float32, a []float32, lda int, x []float32, incX int,
	beta float32, y []float32, incY int) {
	level3of32.gemv(o.lib(), tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
}

// float64s is the blas.Float64 in use: gonum's, with the routines overridden that the time
// goes into (see level3).
type float64s struct {
	gonum.Implementation
	lib func() *Library
}

var _ blas.Float64 = float64s{}

// Dgemm computes C = α·op(A)·op(B) + β·C, C m×n, op(A) m×k, op(B) k×n.
func (o float64s) Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int,
	beta float64, c []float64, ldc int) {
	level3of64.gemm(o.lib(), tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// Dsyrk computes one triangle of C = α·A·Aᵀ + β·C, A n×k, or with tA of
// C = α·Aᵀ·A + β·C, A k×n.
func (o float64s) Dsyrk(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float64, a []float64, lda int, beta float64,
	c []float64, ldc int) {
	level3of64.syrk(o.lib(), ul, tA, n, k, alpha, a, lda, beta, c, ldc)
}

// Dtrsm computes B = α·op(A)⁻¹·B or, from the right, α·B·op(A)⁻¹, B m×n and A
// triangular.
func (o float64s) Dtrsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64,
	lda int, b []float64, ldb int) {
	level3of64.trxm(o.lib(), true, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Dtrmm computes B = α·op(A)·B or, from the right, α·B·op(A), B m×n and A
// triangular.
func (o float64s) Dtrmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64,
	lda int, b []float64, ldb int) {
	level3of64.trxm(o.lib(), false, s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
}

// Dgemv computes y = α·op(A)·x + β·y, A m×n.
func (o float64s) Dgemv(tA blas.Transpose, m, n int, alpha float64, a []float64, lda int, x []float64, incX int,
	beta float64, y []float64, incY int) {
	level3of64.gemv(o.lib(), tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
}
