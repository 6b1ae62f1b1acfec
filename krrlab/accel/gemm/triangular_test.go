package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/race"
)

// variant is the side, triangle, transpose and diagonal of one call.
type variant struct {
	s  blas.Side
	ul blas.Uplo
	t  blas.Transpose
	d  blas.Diag
}

func (s variant) String() string { return fmt.Sprintf("%c%c%c%c", s.s, s.ul, s.t, s.d) }

// variants returns all variants.
func variants() (out []variant) {
	for _, s := range []blas.Side{blas.Left, blas.Right} {
		for _, ul := range []blas.Uplo{blas.Lower, blas.Upper} {
			for _, t := range transposes {
				for _, d := range []blas.Diag{blas.NonUnit, blas.Unit} {
					out = append(out, variant{s, ul, t, d})
				}
			}
		}
	}
	return out
}

// drawTriangle draws a well-conditioned triangular matrix of order q, with NaN where it must not be read.
func drawTriangle[T real](g *rand.Rand, s variant, q int) operand[T] {
	a := newOperand[T](g, blas.NoTrans, q, q)
	for i := range q {
		for j := range q {
			v := &a.data[i*a.ld+j]
			switch {
			case i == j && s.d == blas.NonUnit:
				*v = T(math.Copysign(1+g.Float64(), float64(*v)))
			case i == j, (s.ul == blas.Upper) != (j > i):
				*v = T(math.NaN())
			default:
				*v /= T(q)
			}
		}
	}
	return a
}

// element returns element (i, j) of op(A).
func (s variant) element(i, j int, elementOf func(t blas.Transpose, i, j int) float64) float64 {
	stored := (s.ul == blas.Lower) == ((i > j) == (s.t == blas.NoTrans))
	switch {
	case i == j && s.d == blas.Unit:
		return 1
	case i != j && !stored:
		return 0
	}
	return elementOf(s.t, i, j)
}

// testTriangular solves or multiplies with a triangular matrix of order q and checks the bounds of the package
// comment: those of op(A)·X − α·B for a solve, and of X − α·op(A)·B for a product.
func testTriangular[T real](t *testing.T, operation Operation, g *rand.Rand, s variant, q, vectors int, alpha T) {
	t.Helper()
	m, n := q, vectors
	if s.s == blas.Right {
		m, n = vectors, q
	}
	a, b := drawTriangle[T](g, s, q), newOperand[T](g, blas.NoTrans, m, n)
	before := slices.Clone(b.whole)
	old := slices.Clone(b.data)
	Triangular(Triangle[T]{operation, s.s, s.ul, s.t, s.d, m, n, alpha, a.data, a.ld, b.data, b.ld})
	x := func(z []T, i, v int) float64 { // element i of vector v
		if s.s == blas.Right {
			i, v = v, i
		}
		return float64(z[i*b.ld+v])
	}
	for i := range q {
		row := make([]float64, q)
		for j := range q {
			if row[j] = s.element(i, j, a.at); s.s == blas.Right {
				row[j] = s.element(j, i, a.at)
			}
		}
		for v := range vectors {
			from, to := old, b.data
			if operation == Solve {
				from, to = b.data, old
			}
			sum, size := 0.0, 0.0
			for j, w := range row {
				if w != 0 {
					sum += w * x(from, j, v)
					size += math.Abs(w * x(from, j, v))
				}
			}
			got, want := x(to, i, v), float64(alpha)*sum
			size *= math.Abs(float64(alpha))
			if operation == Solve {
				got, want = float64(alpha)*x(to, i, v), sum
				size /= math.Abs(float64(alpha))
			}
			if d := math.Abs(got - want); !(d <= 2*float64(q+5)*unitRoundoff[T]()*size) {
				t.Fatalf("%v order %d, %d vectors, α=%v, operation %v: row %d of vector %d is wrong by %.3g, allowed %.3g",
					s, q, vectors, alpha, operation, i, v, d, 2*float64(q+5)*unitRoundoff[T]()*size)
			}
		}
	}
	for i := range m { // the elements around B must be unchanged
		copy(b.data[i*b.ld:i*b.ld+n], old[i*b.ld:i*b.ld+n])
	}
	for i, w := range before {
		if !equalOrNaN(b.whole[i], w) {
			t.Fatalf("%v %d %d: wrote outside B", s, m, n)
		}
	}
}

// TestTriangular checks solves and products of all variants, for orders around the block sizes.
func TestTriangular(t *testing.T) {
	onPaths(t, testTriangularSizes[float32], testTriangularSizes[float64])
}

// testTriangularSizes runs TestTriangular in one precision, with 1 to 34 vectors.
func testTriangularSizes[T real](t *testing.T) {
	g := rand.New(rand.NewPCG(41, 42))
	for _, s := range variants() {
		orders := []int{1, 2, 3, 5, 6, 7, 12, 13, 14, 15, 64, 251, 252, 253}
		if s.t != blas.ConjTrans && s.d == blas.NonUnit && !suite.Small() && !race.Enabled {
			orders = append(orders, 505)
		}
		for _, q := range orders {
			for _, vectors := range []int{1, 3, 8, 17, 34} {
				if q > 20 && (vectors+q)%3 != 0 || q > 300 && vectors > 8 {
					continue
				}
				alpha := []T{1, -1, 0.75}[g.IntN(3)]
				testTriangular(t, Solve, g, s, q, vectors, alpha)
				testTriangular(t, Multiply, g, s, q, vectors, alpha)
			}
		}
	}
}

// TestTriangularSpecialValues checks that NaN and infinities affect only the vectors that contain them.
func TestTriangularSpecialValues(t *testing.T) {
	onPaths(t, testTriangularSpecialValues[float32], testTriangularSpecialValues[float64])
}

// testTriangularSpecialValues runs TestTriangularSpecialValues in one precision. A special value in element 20 of a
// vector affects that element and those that the recurrence computes from it.
func testTriangularSpecialValues[T real](t *testing.T) {
	g := rand.New(rand.NewPCG(45, 46))
	const q, vectors = 40, 11
	for _, s := range variants() {
		a := drawTriangle[T](g, s, q)
		m, n := q, vectors
		if s.s == blas.Right {
			m, n = vectors, q
		}
		position := func(i, v int) int { // position of element i of vector v
			if s.s == blas.Right {
				return v*n + i
			}
			return i*n + v
		}
		spreadsDown := (s.ul == blas.Lower) == ((s.s == blas.Left) == (s.t == blas.NoTrans))
		for _, operation := range []Operation{Solve, Multiply} {
			clean := uniformNumbers[T](g, m*n)
			dirty := slices.Clone(clean)
			for v, bad := range []float64{3: math.NaN(), 5: math.Inf(1), 9: math.Inf(-1)} {
				if bad != 0 {
					dirty[position(20, v)] = T(bad)
				}
			}
			Triangular(Triangle[T]{operation, s.s, s.ul, s.t, s.d, m, n, 1, a.data, a.ld, clean, n})
			Triangular(Triangle[T]{operation, s.s, s.ul, s.t, s.d, m, n, 1, a.data, a.ld, dirty, n})
			for i := range q {
				for v := range vectors {
					c, d := clean[position(i, v)], dirty[position(i, v)]
					affected := (v == 3 || v == 5 || v == 9) && (i == 20 || (i > 20) == spreadsDown)
					if finite := d-d == 0; finite == affected || !affected && c != d {
						t.Fatalf("%v: element %d of vector %d is %v, %v without special values", s, i, v, d, c)
					}
				}
			}
		}
	}
}
