package accel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/race"
)

// TestOpenBLASRoutines compares the routines that call OpenBLAS with gonum's, for random shapes, strides, transposes
// and scalars.
func TestOpenBLASRoutines(t *testing.T) {
	useBLAS(t, requireOpenBLAS(t))
	compareRoutines(t, 0x1p-53, float64Routines(float64s{}), float64Routines(gonum.Implementation{}))
	compareRoutines(t, 0x1p-24, float32Routines(float32s{}), float32Routines(gonum.Implementation{}))
}

// operandSource draws random operands.
type operandSource[T float] struct {
	*rand.Rand
}

// dim draws a dimension: small ones, those around the block sizes of both libraries, and sometimes a long one.
func (g operandSource[T]) dim() int {
	dimensions := []int{1, 2, 3, 5, 8, 17, 31, 40, 64, 65, 97, 130}
	if g.IntN(12) == 0 {
		return 9001
	}
	return dimensions[g.IntN(len(dimensions))]
}

// dims draws three dimensions, at most one of which is long.
func (g operandSource[T]) dims() (m, n, k int) {
	for {
		m, n, k = g.dim(), g.dim(), g.dim()
		if float64(m)*float64(n)*float64(k) < 3e6 && m*n+n*k+m*k < 1e6 {
			return m, n, k
		}
	}
}

func (g operandSource[T]) value() T { return T(2*g.Float64() - 1) }

func (g operandSource[T]) slice(n int) []T {
	values := make([]T, n)
	for i := range values {
		values[i] = g.value()
	}
	return values
}

// matrix draws an r×c matrix with a stride of at least c. The slice ends with the last element or extends beyond it.
func (g operandSource[T]) matrix(r, c int) (a []T, ld int) {
	ld = c + g.IntN(2)*g.IntN(9)
	return g.slice((r-1)*ld + c + g.IntN(2)*g.IntN(20)), ld
}

// triangle draws a well-conditioned triangular matrix. The elements that must not be read are NaN: the other
// triangle, and the diagonal of a unit triangular matrix.
func (g operandSource[T]) triangle(ul blas.Uplo, d blas.Diag, n int) (a []T, ld int) {
	a, ld = g.matrix(n, n)
	for i := range n {
		for j := range n {
			switch {
			case i == j && d == blas.NonUnit:
				a[i*ld+j] = 1 + T(g.Float64())
			case i == j, (ul == blas.Upper) != (j > i):
				a[i*ld+j] = T(nan)
			default:
				a[i*ld+j] /= T(n)
			}
		}
	}
	return a, ld
}

// scalars draws α and β, often 0 and 1.
func (g operandSource[T]) scalars() (alpha, beta T) {
	special := []T{0, 1, -1}
	if alpha = g.value(); g.IntN(2) == 0 {
		alpha = special[g.IntN(3)]
	}
	if beta = g.value(); g.IntN(2) == 0 {
		beta = special[g.IntN(3)]
	}
	return alpha, beta
}

func (g operandSource[T]) trans() blas.Transpose {
	return []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans}[g.IntN(3)]
}
func (g operandSource[T]) uplo() blas.Uplo { return []blas.Uplo{blas.Upper, blas.Lower}[g.IntN(2)] }
func (g operandSource[T]) side() blas.Side { return []blas.Side{blas.Left, blas.Right}[g.IntN(2)] }
func (g operandSource[T]) diag() blas.Diag { return []blas.Diag{blas.NonUnit, blas.Unit}[g.IntN(2)] }

// output draws an output operand, which is full of NaN if β = 0, because it must then not be read.
func (g operandSource[T]) output(r, c int, beta T) (a []T, ld int) {
	a, ld = g.matrix(r, c)
	if beta == 0 {
		for i := range r {
			for j := range c {
				a[i*ld+j] = T(nan)
			}
		}
	}
	return a, ld
}

// near returns an error for the first element of got that differs from want by more than tol, relative to the larger
// of 1 and |want|. NaN equals NaN.
func near[T float](got, want []T, tol float64) error {
	for i, expected := range want {
		deviation := math.Abs(float64(got[i]) - float64(expected))
		if deviation > tol*max(1, math.Abs(float64(expected))) || (got[i] != got[i]) != (expected != expected) {
			return fmt.Errorf("element %d is %v, want %v (error %.3g, allowed %.3g)", i, got[i], expected, deviation,
				tol)
		}
	}
	return nil
}

// compareRoutines compares our routines with the reference ones, where u is the unit roundoff.
func compareRoutines[T float](t *testing.T, u float64, ours, ref level3Routines[T]) {
	source := operandSource[T]{rand.New(rand.NewPCG(7, 8))}
	check := func(got, want []T, k int, format string, args ...any) {
		t.Helper()
		if err := near(got, want, 4*u*float64(k+8)); err != nil {
			t.Fatalf(format+": %v", append(args, err)...)
		}
	}
	trials := 150
	if suite.Small() || race.Enabled {
		trials = 30
	}
	for range trials {
		m, n, k := source.dims()
		alpha, beta := source.scalars()
		tA, tB, ul, s, d := source.trans(), source.trans(), source.uplo(), source.side(), source.diag()

		a, lda := source.matrix(opDims(tA, m, k))
		b, ldb := source.matrix(opDims(tB, k, n))
		c, ldc := source.output(m, n, beta)
		want := slices.Clone(c)
		ours.gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		ref.gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, want, ldc)
		check(c, want, k, "gemm %c%c %d %d %d α=%v β=%v", tA, tB, m, n, k, alpha, beta)

		x, incX := source.vector(lenOp(tA, n, m))
		y, incY := source.vector(lenOp(tA, m, n))
		a, lda = source.matrix(m, n)
		if beta == 0 {
			for i := range lenOp(tA, m, n) {
				y[i*max(incY, -incY)] = T(nan)
			}
		}
		want = slices.Clone(y)
		ours.gemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
		ref.gemv(tA, m, n, alpha, a, lda, x, incX, beta, want, incY)
		check(y, want, max(m, n), "gemv %c %d %d inc %d %d α=%v β=%v", tA, m, n, incX, incY, alpha, beta)

		if n > 1000 {
			continue // square matrices of this order would be too large
		}
		a, lda = source.matrix(opDims(tA, n, k))
		c, ldc = source.output(n, n, beta)
		want = slices.Clone(c)
		if beta == 0 { // gonum reads C for Aᵀ·A into a lower triangle although β = 0
			clear(want)
			for i := range c {
				if c[i] == c[i] || !isLarge(n, n, k, syrkWork) || alpha == 0 || (ul == blas.Upper) != (i%ldc >= i/ldc) {
					c[i] = 0
				}
			}
		}
		ours.syrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		ref.syrk(ul, tA, n, k, alpha, a, lda, beta, want, ldc)
		check(c, want, k, "syrk %c%c %d %d α=%v β=%v", ul, tA, n, k, alpha, beta)

		if order(s, m, n) > 1000 {
			continue
		}
		a, lda = source.triangle(ul, d, order(s, m, n))
		for name, call := range map[string]func(routines level3Routines[T], b []T){
			"trsm": func(routines level3Routines[T], b []T) {
				routines.trsm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
			},
			"trmm": func(routines level3Routines[T], b []T) {
				routines.trmm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
			},
		} {
			b, ldb = source.matrix(m, n)
			want = slices.Clone(b)
			call(ours, b)
			call(ref, want)
			check(b, want, order(s, m, n), "%s %c%c%c%c %d %d α=%v", name, s, ul, tA, d, m, n, alpha)
		}
	}
}

// lenOp returns the number of rows of op(A) for an r×c matrix A.
func lenOp(t blas.Transpose, r, c int) int {
	n, _ := opDims(t, r, c)
	return n
}

// vector draws a vector of n elements with a random increment.
func (g operandSource[T]) vector(n int) (x []T, inc int) {
	inc = []int{1, 1, 2, 3, -1, -2}[g.IntN(6)]
	return g.slice((n-1)*max(inc, -inc) + 1 + g.IntN(2)*g.IntN(9)), inc
}

// TestOpenBLASMisuse checks that our routines panic with the same text as gonum's for invalid arguments, and only for
// those. The arguments are drawn around valid ones.
func TestOpenBLASMisuse(t *testing.T) {
	useBLAS(t, requireOpenBLAS(t))
	comparePanics(t, float64Routines(float64s{}), float64Routines(gonum.Implementation{}))
	comparePanics(t, float32Routines(float32s{}), float32Routines(gonum.Implementation{}))
}

// comparePanics compares the panics of our routines with those of the reference for random arguments.
func comparePanics[T float](t *testing.T, ours, ref level3Routines[T]) {
	source := operandSource[T]{rand.New(rand.NewPCG(9, 10))}
	trials := 3000
	if suite.Small() || race.Enabled {
		trials = 600
	}
	// shrink returns n, and sometimes a number that is too small.
	shrink := func(n int) int {
		if source.IntN(8) == 0 {
			return n - 1 - source.IntN(3)
		}
		return n
	}
	dim := func() int {
		if source.IntN(10) == 0 {
			return source.IntN(3) - 1
		}
		return 24 + source.IntN(16)
	}
	flag := func(b byte) byte {
		if source.IntN(30) == 0 {
			return "XnLURT\x00"[source.IntN(7)]
		}
		return b
	}
	length := func(r, c, ld int) int { return max(0, shrink(max(0, (r-1)*ld+c))) }
	panics := 0
	compare := func(name string, call func(routines level3Routines[T], out []T), out []T) {
		t.Helper()
		want, got := slices.Clone(out), slices.Clone(out)
		wantPanic := panicOf(func() { call(ref, want) })
		gotPanic := panicOf(func() { call(ours, got) })
		if wantPanic != nil {
			panics++
		}
		if fmt.Sprint(wantPanic) != fmt.Sprint(gotPanic) {
			t.Fatalf("%s panics with %v, gonum's with %v", name, gotPanic, wantPanic)
		}
		if wantPanic == nil {
			if err := near(got, want, 1e-3); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	for range trials {
		m, n, k := dim(), dim(), dim()
		alpha, beta := source.scalars()
		tA, tB := blas.Transpose(flag(byte(source.trans()))), blas.Transpose(flag(byte(source.trans())))
		ul, s, d := blas.Uplo(flag(byte(source.uplo()))), blas.Side(flag(byte(source.side()))),
			blas.Diag(flag(byte(source.diag())))

		ra, ca := opDims(tA, m, k)
		rb, cb := opDims(tB, k, n)
		lda, ldb, ldc := shrink(ca), shrink(cb), shrink(n)
		a, b := source.slice(length(ra, ca, lda)), source.slice(length(rb, cb, ldb))
		compare("gemm", func(routines level3Routines[T], c []T) {
			routines.gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		}, source.slice(length(m, n, ldc)))

		ra, ca = opDims(tA, n, k)
		lda, ldc = shrink(ca), shrink(n)
		a = source.slice(length(ra, ca, lda))
		compare("syrk", func(routines level3Routines[T], c []T) {
			routines.syrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		}, source.slice(length(n, n, ldc)))

		q := order(s, m, n)
		lda, ldb, ldc = shrink(q), shrink(n), shrink(n)
		a, b = source.slice(length(q, q, lda)), source.slice(length(m, n, ldb))
		for i := range a { // close to the identity, so that solutions stay small
			if a[i] /= 40; lda > 0 && i%(lda+1) == 0 {
				a[i]++
			}
		}
		compare("trsm", func(routines level3Routines[T], b []T) {
			routines.trsm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		}, b)
		compare("trmm", func(routines level3Routines[T], b []T) {
			routines.trmm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		}, b)

		m, n = 3*m, 3*n
		incX, incY := source.IntN(5)-2, source.IntN(5)-2
		lda = shrink(n)
		a = source.slice(length(m, n, lda))
		x := source.slice(length(lenOp(tA, n, m), 1, max(incX, -incX)))
		compare("gemv", func(routines level3Routines[T], y []T) {
			routines.gemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
		}, source.slice(length(lenOp(tA, m, n), 1, max(incY, -incY))))
	}
	if panics < trials {
		t.Errorf("only %d panics in %d trials: the drawn arguments are valid too often", panics, trials)
	}
}

// TestDimensionsFit32Bits checks that matrices and vectors with a dimension that exceeds 32 bits, or with too few
// elements, are not passed to C.
func TestDimensionsFit32Bits(t *testing.T) {
	n := math.MaxInt32
	tooLarge := n + 1
	if tooLarge < 0 {
		t.Skip("int has 32 bits")
	}
	for _, test := range []struct{ rows, cols, ld, length int }{
		{tooLarge, 1, 1, tooLarge}, {1, tooLarge, tooLarge, tooLarge}, {2, 1, tooLarge, tooLarge + 1}, {0, 1, 1, 5}, {1,
			0, 1, 5},
		{2, 3, 2, 50}, {2, 3, 3, 5}, {-1, 3, 3, 5}, {1, -1, 3, 5},
	} {
		if fitsMatrix(test.rows, test.cols, test.ld, test.length) {
			t.Errorf("fitsMatrix(%+v) is true", test)
		}
	}
	if !fitsMatrix(tooLarge-1, 2, 3, (tooLarge-2)*3+2) || fitsVector(tooLarge, 1, tooLarge) || fitsVector(2, tooLarge,
		2*tooLarge) || fitsVector(3, 0, 5) ||
		fitsVector(3, 2, 4) || fitsVector(3, -2, 4) || !fitsVector(3, -2, 5) {
		t.Error("fitsMatrix or fitsVector is wrong at its bound")
	}
	if isLarge(1, -5, -5000, 10) {
		t.Error("a product with negative dimensions is large")
	}
	if !isLarge(n, n, n, 10) {
		t.Error("the number of operations overflows in isLarge")
	}
}

// TestOpenBLASNoAllocation checks that the routines that call OpenBLAS allocate nothing.
func TestOpenBLASNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes pools forget")
	}
	useBLAS(t, requireOpenBLAS(t))
	checkNoAllocation(t, float64Routines(float64s{}))
}
