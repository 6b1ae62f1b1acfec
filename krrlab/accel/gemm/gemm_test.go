package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"unsafe"

	"gonum.org/v1/gonum/blas"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/race"
)

// TestMain runs the tests only if there are kernels for this processor.
func TestMain(m *testing.M) {
	if simd.CurrentPath() != simd.Portable {
		os.Exit(m.Run())
	}
	fmt.Println("no kernels for this processor")
}

// onPaths runs a test in both precisions on every path of this processor that has kernels.
func onPaths(t *testing.T, f32, f64 func(t *testing.T)) {
	oldPath := simd.CurrentPath()
	t.Cleanup(func() { simd.UsePath(oldPath) })
	for _, path := range simd.Paths()[1:] { // the first path is the portable one, for which accel uses gonum's code
		t.Run(path.String(), func(t *testing.T) {
			simd.UsePath(path)
			t.Run("float32", f32)
			t.Run("float64", f64)
		})
	}
}

// unitRoundoff returns the unit roundoff of T, 2⁻²⁴ or 2⁻⁵³.
func unitRoundoff[T float]() float64 {
	if unsafe.Sizeof(T(0)) == 4 {
		return 0x1p-24
	}
	return 0x1p-53
}

// uniformNumbers returns n numbers uniform in [−1, 1).
func uniformNumbers[T float](random *rand.Rand, n int) []T {
	numbers := make([]T, n)
	for i := range numbers {
		numbers[i] = T(2*random.Float64() - 1)
	}
	return numbers
}

// equalOrNaN reports whether v and w are equal or both NaN.
func equalOrNaN[T float](v, w T) bool { return v == w || v != v && w != w }

// operand is an r×c matrix with row stride ld within a longer, unaligned slice, which is NaN outside the matrix.
type operand[T float] struct {
	r, c, ld int
	data     []T // elements from (0, 0) to the last one of the matrix
	whole    []T // the longer slice
}

// newOperand draws a matrix X for which op(X) is r×c.
func newOperand[T float](random *rand.Rand, trans blas.Transpose, r, c int) operand[T] {
	if trans != blas.NoTrans {
		r, c = c, r
	}
	x := operand[T]{r: r, c: c, ld: max(1, c) + random.IntN(2)*random.IntN(9)}
	offset := random.IntN(5)
	length := max(0, (r-1)*x.ld+c)
	x.whole = make([]T, offset+length+40)
	for i := range x.whole {
		x.whole[i] = T(math.NaN())
	}
	x.data = x.whole[offset : offset+length : offset+length]
	for i := range r {
		if c > 0 {
			copy(x.data[i*x.ld:], uniformNumbers[T](random, c))
		}
	}
	return x
}

// at returns element (i, j) of op(X).
func (x operand[T]) at(trans blas.Transpose, i, j int) float64 {
	if trans != blas.NoTrans {
		i, j = j, i
	}
	return float64(x.data[i*x.ld+j])
}

var transposes = []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans}

// testProduct computes one product of random matrices, compares it with the definition in float64, and checks that
// nothing outside C is written.
func testProduct[T float](t *testing.T, random *rand.Rand, tA, tB blas.Transpose, m, n, k int, alpha, beta T) {
	t.Helper()
	a, b := newOperand[T](random, tA, m, k), newOperand[T](random, tB, k, n)
	c := newOperand[T](random, blas.NoTrans, m, n)
	if beta == 0 {
		for i := range c.data {
			c.data[i] = T(math.NaN())
		}
	}
	before := slices.Clone(c.whole)
	old := operand[T]{r: m, c: n, ld: c.ld, data: slices.Clone(c.data)}
	Gemm(Product[T]{tA, tB, m, n, k, alpha, a.data, a.ld, b.data, b.ld, beta, c.data, c.ld})
	checkProduct(t, tA, tB, k, alpha, beta, a, b, old, c)

	for i := range m { // the elements around C must be unchanged
		copy(c.data[i*c.ld:i*c.ld+n], old.data[i*c.ld:i*c.ld+n])
	}
	for i := range before {
		if !equalOrNaN(c.whole[i], before[i]) {
			t.Fatalf("%c%c %d %d %d: wrote outside C", tA, tB, m, n, k)
		}
	}
}

// checkProduct compares c with α·op(A)·op(B) + β·old. The error must be within the bound of the package comment, (d +
// ⌈k/d⌉ + 1)·u·(|α||A||B| + |β||C|), where d is the depth of a block.
func checkProduct[T float](t *testing.T, tA, tB blas.Transpose, k int, alpha, beta T, a, b, old, c operand[T]) {
	t.Helper()
	blockDepth := max(1, min(k, depthMax))
	count := blockDepth + (k+blockDepth-1)/blockDepth + 1
	if count > k+2 {
		t.Fatalf("k = %d: %d roundings, more than k + 2", k, count)
	}
	for i := range c.r {
		for j := range c.c {
			sum, absSum := 0.0, 0.0
			for p := range k {
				term := a.at(tA, i, p) * b.at(tB, p, j)
				sum += term
				absSum += math.Abs(term)
			}
			want := float64(alpha) * sum
			absSum *= math.Abs(float64(alpha))
			if beta != 0 {
				term := float64(beta) * old.at(blas.NoTrans, i, j)
				want += term
				absSum += math.Abs(term)
			}
			got := float64(c.data[i*c.ld+j])
			allowed := float64(count) * unitRoundoff[T]() * absSum
			if unitRoundoff[T]() < 0x1p-50 {
				allowed *= 2 // the reference rounds too
			}
			if (got != got) != (want != want) || math.IsInf(want, 0) && got != want || math.Abs(got-want) > allowed {
				t.Fatalf("%c%c %d %d %d α=%v β=%v: element %d, %d is %v, want %v ± %.3g",
					tA, tB, c.r, c.c, k, alpha, beta, i, j, got, want, allowed)
			}
		}
	}
}

// TestGemmSizes checks products whose sizes are around those of the register tile and of the blocks, for all transposes
// and several scalars.
func TestGemmSizes(t *testing.T) {
	onPaths(t, testGemmSizes[float32], testGemmSizes[float64])
}

// testGemmSizes runs TestGemmSizes in one precision.
func testGemmSizes[T float](t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []int{1, 5, 6, 7, 13, 14, 15, 16, 17, 31, 32, 33}
	depths := []int{1, 2, 3, 4, 5, 7, 8, 9, 33}
	blockDepths := []int{depthMax - 1, depthMax, depthMax + 1, 2*depthMax - 1, 2 * depthMax, 2*depthMax + 1, 784}
	if suite.Small() || race.Enabled {
		sizes, blockDepths = []int{1, 7, 16, 33}, blockDepths[:3]
	}
	scalars := []T{1, -1, 0.5, 0.3}
	betas := []T{1, 0, -1, 0.5, 0.3}
	count := 0
	for _, m := range sizes {
		for _, n := range sizes {
			for _, k := range append(depths, blockDepths[(m+n)%len(blockDepths)]) {
				for pair := range 4 { // the four pairs of NoTrans and Trans; sometimes two ConjTrans for two Trans
					tA, tB := transposes[pair%2], transposes[pair/2]
					if pair == 3 && count%3 == 0 {
						tA, tB = blas.ConjTrans, blas.ConjTrans
					}
					alpha, beta := scalars[count%4], betas[count/4%5]
					if count%3 == 0 {
						alpha, beta = 1, 0
					}
					testProduct[T](t, random, tA, tB, m, n, k, alpha, beta)
					count++
				}
			}
		}
	}
	for _, shape := range [][3]int{
		{rowsMax + 1, 40, 9}, {3, colsMax + 1, 5}, {2*rowsMax - 1, 33, depthMax + 1}, {1, 3*colsMax - 1, 2},
		{700, 3, 20},
	} {
		for pair := range 4 {
			testProduct[T](t, random, transposes[pair%2], transposes[pair/2], shape[0], shape[1], shape[2], 0.5,
				T(pair%2))
		}
	}
}

// TestSyrk checks that Syrk computes the requested triangle, lower or upper, with the bits of Gemm, and does not
// change the opposite triangle.
func TestSyrk(t *testing.T) {
	onPaths(t, testSyrk[float32], testSyrk[float64])
}

// testSyrk runs TestSyrk in one precision.
func testSyrk[T float](t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	orders := []int{1, 5, 6, 7, 16, 17, 33, 100, 169, 400}
	if suite.Small() || race.Enabled {
		orders = orders[:7]
	}
	for trial, n := range orders {
		for _, k := range []int{1, 8, 260} {
			for variant := range 6 { // three transposes for each of two triangles
				tA, ul := transposes[variant%3], []blas.Uplo{blas.Lower, blas.Upper}[variant/3]
				beta := []T{0, 1, 0.3}[(trial+variant)%3]
				a, c := newOperand[T](random, tA, n, k), newOperand[T](random, blas.NoTrans, n, n)
				if beta == 0 {
					for i := range c.data {
						c.data[i] = T(math.NaN())
					}
				}
				want := slices.Clone(c.data)
				full := slices.Clone(c.data)
				opposite := blas.NoTrans
				if tA == blas.NoTrans {
					opposite = blas.Trans
				}
				Gemm(Product[T]{tA, opposite, n, n, k, -0.7, a.data, a.ld, a.data, a.ld, beta, full, c.ld})
				for i := range n {
					start, end := 0, i+1
					if ul == blas.Upper {
						start, end = i, n
					}
					copy(want[i*c.ld+start:i*c.ld+end], full[i*c.ld+start:])
				}
				Syrk(ul, Product[T]{tA, 0, 0, n, k, -0.7, a.data, a.ld, nil, 0, beta, c.data, c.ld})
				for i, expected := range want {
					if got := c.data[i]; !equalOrNaN(got, expected) {
						t.Fatalf("%c%c %d %d: element %d, %d is %v, want %v", ul, tA, n, k, i/c.ld, i%c.ld, got,
							expected)
					}
				}
			}
		}
	}
}

// TestGemmSpecialValues compares products of matrices with infinities and NaN with their definition.
func TestGemmSpecialValues(t *testing.T) {
	onPaths(t, testGemmSpecialValues[float32], testGemmSpecialValues[float64])
}

// testGemmSpecialValues runs TestGemmSpecialValues in one precision. Each operand has up to two special entries.
func testGemmSpecialValues[T float](t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	special := []T{T(math.NaN()), T(math.Inf(1)), T(math.Inf(-1)), 0}
	for trial := range 200 {
		m, n, k := 1+random.IntN(20), 1+random.IntN(40), 1+random.IntN(20)
		if trial%10 == 0 {
			k += depthMax
		}
		tA, tB := transposes[random.IntN(3)], transposes[random.IntN(3)]
		a, b, c := newOperand[T](random, tA, m, k), newOperand[T](random, tB, k, n), newOperand[T](random, blas.NoTrans,
			m, n)
		for _, matrix := range []operand[T]{a, b, c} {
			for range 2 {
				matrix.data[random.IntN(matrix.r)*matrix.ld+random.IntN(matrix.c)] = special[random.IntN(4)]
			}
		}
		beta := []T{0, 1, -0.5}[trial%3]
		old := operand[T]{r: m, c: n, ld: c.ld, data: slices.Clone(c.data)}
		Gemm(Product[T]{tA, tB, m, n, k, 2, a.data, a.ld, b.data, b.ld, beta, c.data, c.ld})
		checkProduct(t, tA, tB, k, 2, beta, a, b, old, c)
	}
}

// TestGemmExactIntegers multiplies integers, also as multiples of the smallest subnormal number, which must not be
// flushed to zero. The products must be exact.
func TestGemmExactIntegers(t *testing.T) {
	onPaths(t, func(t *testing.T) { testGemmExactIntegers[float32](t, 0x1p-149) },
		func(t *testing.T) { testGemmExactIntegers[float64](t, 0x1p-1074) })
}

// testGemmExactIntegers runs TestGemmExactIntegers in one precision, whose smallest subnormal number is given.
func testGemmExactIntegers[T float](t *testing.T, smallest T) {
	random := rand.New(rand.NewPCG(7, 8))
	const m, n, k = 30, 50, 300
	a, b, c := make([]T, m*k), make([]T, k*n), make([]T, m*n)
	want := make([]T, m*n)
	for _, scale := range []T{1, smallest} {
		for i := range a {
			a[i] = T(random.IntN(201)-100) * scale
		}
		for i := range b {
			b[i] = T(random.IntN(21) - 10)
		}
		for i := range m {
			for j := range n {
				sum := T(0)
				for p := range k {
					sum += a[i*k+p] / scale * b[p*n+j]
				}
				want[i*n+j] = sum * scale
			}
		}
		Gemm(Product[T]{blas.NoTrans, blas.NoTrans, m, n, k, 1, a, k, b, n, 0, c, n})
		if !slices.Equal(c, want) {
			t.Errorf("the product of integers with scale %v is not exact", scale)
		}
	}
}

// TestNoAllocation checks that a product allocates nothing, because it uses the workspaces of earlier products, and
// that the block sizes are multiples of the register tile.
func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes pools forget")
	}
	onPaths(t, testNoAllocation[float32], testNoAllocation[float64])
}

// testNoAllocation runs TestNoAllocation in one precision.
func testNoAllocation[T float](t *testing.T) {
	const n = 70
	a, b, c := make([]T, n*n), make([]T, n*n), make([]T, n*n)
	if allocations := testing.AllocsPerRun(50, func() {
		Gemm(Product[T]{blas.NoTrans, blas.Trans, n, n, n, 1, a, n, b, n, 0, c, n})
	}); allocations >= 1 {
		t.Errorf("%.1f allocations", allocations)
	}
	for _, pathKernels := range byPath[1:] {
		if micro := kernelOf[T](pathKernels); rowsMax%micro.mr != 0 || colsMax%micro.nr != 0 {
			t.Errorf("blocks of %d×%d are no multiple of the tile %d×%d", rowsMax, colsMax, micro.mr, micro.nr)
		}
	}
}
