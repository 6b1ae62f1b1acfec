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
	side  blas.Side
	uplo  blas.Uplo
	trans blas.Transpose
	diag  blas.Diag
}

func (v variant) String() string { return fmt.Sprintf("%c%c%c%c", v.side, v.uplo, v.trans, v.diag) }

// variants returns all variants.
func variants() (all []variant) {
	for _, side := range []blas.Side{blas.Left, blas.Right} {
		for _, uplo := range []blas.Uplo{blas.Lower, blas.Upper} {
			for _, trans := range transposes {
				for _, diag := range []blas.Diag{blas.NonUnit, blas.Unit} {
					all = append(all, variant{side, uplo, trans, diag})
				}
			}
		}
	}
	return all
}

// drawTriangle draws a well-conditioned triangular matrix of order q, with NaN where it must not be read.
func drawTriangle[T float](random *rand.Rand, v variant, q int) operand[T] {
	a := newOperand[T](random, blas.NoTrans, q, q)
	for i := range q {
		for j := range q {
			entry := &a.data[i*a.ld+j]
			switch {
			case i == j && v.diag == blas.NonUnit:
				*entry = T(math.Copysign(1+random.Float64(), float64(*entry)))
			case i == j, (v.uplo == blas.Upper) != (j > i):
				*entry = T(math.NaN())
			default:
				*entry /= T(q)
			}
		}
	}
	return a
}

// element returns element (i, j) of op(A).
func (v variant) element(i, j int, elementOf func(t blas.Transpose, i, j int) float64) float64 {
	isStored := (v.uplo == blas.Lower) == ((i > j) == (v.trans == blas.NoTrans))
	switch {
	case i == j && v.diag == blas.Unit:
		return 1
	case i != j && !isStored:
		return 0
	}
	return elementOf(v.trans, i, j)
}

// testTriangular solves or multiplies with a triangular matrix of order q and checks the bounds of the package
// comment: those of op(A)·X − α·B for a solve, and of X − α·op(A)·B for a product.
func testTriangular[T float](t *testing.T, operation Operation, random *rand.Rand, kind variant, q, vectors int,
	alpha T) {
	t.Helper()
	m, n := q, vectors
	if kind.side == blas.Right {
		m, n = vectors, q
	}
	a, b := drawTriangle[T](random, kind, q), newOperand[T](random, blas.NoTrans, m, n)
	before := slices.Clone(b.whole)
	old := slices.Clone(b.data)
	Triangular(Triangle[T]{operation, kind.side, kind.uplo, kind.trans, kind.diag, m, n, alpha, a.data, a.ld, b.data,
		b.ld})
	element := func(elements []T, i, v int) float64 { // element i of vector v
		if kind.side == blas.Right {
			i, v = v, i
		}
		return float64(elements[i*b.ld+v])
	}
	for i := range q {
		row := make([]float64, q)
		for j := range q {
			if row[j] = kind.element(i, j, a.at); kind.side == blas.Right {
				row[j] = kind.element(j, i, a.at)
			}
		}
		for v := range vectors {
			input, output := old, b.data
			if operation == Solve {
				input, output = b.data, old
			}
			sum, absSum := 0.0, 0.0
			for j, coefficient := range row {
				if coefficient != 0 {
					sum += coefficient * element(input, j, v)
					absSum += math.Abs(coefficient * element(input, j, v))
				}
			}
			got, want := element(output, i, v), float64(alpha)*sum
			absSum *= math.Abs(float64(alpha))
			if operation == Solve {
				got, want = float64(alpha)*element(output, i, v), sum
				absSum /= math.Abs(float64(alpha))
			}
			if deviation := math.Abs(got - want); !(deviation <= 2*float64(q+5)*unitRoundoff[T]()*absSum) {
				t.Fatalf("%v order %d, %d vectors, α=%v, operation %v: row %d of vector %d is wrong by %.3g, allowed %.3g",
					kind, q, vectors, alpha, operation, i, v, deviation, 2*float64(q+5)*unitRoundoff[T]()*absSum)
			}
		}
	}
	for i := range m { // the elements around B must be unchanged
		copy(b.data[i*b.ld:i*b.ld+n], old[i*b.ld:i*b.ld+n])
	}
	for i, element := range before {
		if !equalOrNaN(b.whole[i], element) {
			t.Fatalf("%v %d %d: wrote outside B", kind, m, n)
		}
	}
}

// TestTriangular checks solves and products of all variants, for orders around the block sizes.
func TestTriangular(t *testing.T) {
	onPaths(t, testTriangularSizes[float32], testTriangularSizes[float64])
}

// testTriangularSizes runs TestTriangular in one precision, with 1 to 34 vectors.
func testTriangularSizes[T float](t *testing.T) {
	random := rand.New(rand.NewPCG(41, 42))
	for _, kind := range variants() {
		orders := []int{1, 2, 3, 5, 6, 7, 12, 13, 14, 15, 64, 251, 252, 253}
		if kind.trans != blas.ConjTrans && kind.diag == blas.NonUnit && !suite.Small() && !race.Enabled {
			orders = append(orders, 505)
		}
		for _, q := range orders {
			for _, vectors := range []int{1, 3, 8, 17, 34} {
				if q > 20 && (vectors+q)%3 != 0 || q > 300 && vectors > 8 {
					continue
				}
				alpha := []T{1, -1, 0.75}[random.IntN(3)]
				testTriangular(t, Solve, random, kind, q, vectors, alpha)
				testTriangular(t, Multiply, random, kind, q, vectors, alpha)
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
func testTriangularSpecialValues[T float](t *testing.T) {
	random := rand.New(rand.NewPCG(45, 46))
	const q, vectors = 40, 11
	for _, kind := range variants() {
		a := drawTriangle[T](random, kind, q)
		m, n := q, vectors
		if kind.side == blas.Right {
			m, n = vectors, q
		}
		position := func(i, v int) int { // position of element i of vector v
			if kind.side == blas.Right {
				return v*n + i
			}
			return i*n + v
		}
		spreadsDown := (kind.uplo == blas.Lower) == ((kind.side == blas.Left) == (kind.trans == blas.NoTrans))
		for _, operation := range []Operation{Solve, Multiply} {
			clean := uniformNumbers[T](random, m*n)
			dirty := slices.Clone(clean)
			for v, bad := range []float64{3: math.NaN(), 5: math.Inf(1), 9: math.Inf(-1)} {
				if bad != 0 {
					dirty[position(20, v)] = T(bad)
				}
			}
			Triangular(Triangle[T]{operation, kind.side, kind.uplo, kind.trans, kind.diag, m, n, 1, a.data, a.ld, clean,
				n})
			Triangular(Triangle[T]{operation, kind.side, kind.uplo, kind.trans, kind.diag, m, n, 1, a.data, a.ld, dirty,
				n})
			for i := range q {
				for v := range vectors {
					cleanElement, dirtyElement := clean[position(i, v)], dirty[position(i, v)]
					affected := (v == 3 || v == 5 || v == 9) && (i == 20 || (i > 20) == spreadsDown)
					if finite := dirtyElement-dirtyElement == 0; finite == affected || !affected &&
						cleanElement != dirtyElement {
						t.Fatalf("%v: element %d of vector %d is %v, %v without special values", kind, i, v,
							dirtyElement, cleanElement)
					}
				}
			}
		}
	}
}
