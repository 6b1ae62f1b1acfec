package accel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
)

// randomDefinite draws a symmetric positive definite matrix FFᵀ/n + I/10, F with normal entries, with row stride ld.
// Both triangles are stored.
func randomDefinite(random *rand.Rand, n, ld int) []float64 {
	factor := make([]float64, n*n)
	for i := range factor {
		factor[i] = random.NormFloat64()
	}
	a := make([]float64, max(0, (n-1)*ld+n))
	for i := range n {
		for j := range n {
			sum := 0.0
			for k := range n {
				sum += factor[i*n+k] * factor[j*n+k]
			}
			if a[i*ld+j] = sum / float64(n); i == j {
				a[i*ld+j] += 0.1
			}
		}
	}
	return a
}

// orders are the orders of test matrices, around the block size of gonum.
var orders = []int{0, 1, 2, 31, 32, 33, 64, 65, 130, 200}

// TestDpotrf compares OpenBLAS's Cholesky factor with gonum's, and checks that a matrix that is not positive definite
// is refused.
func TestDpotrf(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	useBLAS(t, requireOpenBLAS(t))
	ours, ref := libraryLAPACK{}, gonum.Implementation{}
	for _, n := range orders {
		for _, ul := range []blas.Uplo{blas.Lower, blas.Upper} {
			ld := n + 1 + random.IntN(4)
			a := randomDefinite(random, n, ld)
			want := slices.Clone(a)
			if ok, refOK := ours.Dpotrf(ul, n, a, ld), ref.Dpotrf(ul, n, want, ld); !ok || !refOK {
				t.Fatalf("n = %d: ok %v, gonum's %v", n, ok, refOK)
			}
			if err := near(a, want, 1e-12); err != nil {
				t.Fatalf("n = %d, %c: %v", n, ul, err)
			}
			if n == 0 {
				continue
			}
			for _, bad := range []float64{-1, nan, math.Inf(-1)} { // not definite
				a = randomDefinite(random, n, ld)
				a[(n-1)*ld+n-1] = bad
				if ours.Dpotrf(ul, n, a, ld) {
					t.Errorf("n = %d: no failure with a_nn = %v", n, bad)
				}
			}
			a = randomDefinite(random, n, ld)
			if n > 1 {
				a[ld], a[1] = nan, nan
				if ours.Dpotrf(ul, n, a, ld) {
					t.Errorf("n = %d: no failure with a_21 = NaN", n)
				}
			}
		}
	}
}

// TestDtrtri compares OpenBLAS's triangular inverse with gonum's, and checks that a singular matrix is refused
// unchanged.
func TestDtrtri(t *testing.T) {
	source := operandSource[float64]{rand.New(rand.NewPCG(13, 14))}
	useBLAS(t, requireOpenBLAS(t))
	ours, ref := libraryLAPACK{}, gonum.Implementation{}
	for _, n := range orders[1:] {
		for _, ul := range []blas.Uplo{blas.Lower, blas.Upper} {
			for _, diag := range []blas.Diag{blas.NonUnit, blas.Unit} {
				a, ld := source.triangle(ul, diag, n)
				want := slices.Clone(a)
				if ok, refOK := ours.Dtrtri(ul, diag, n, a, ld), ref.Dtrtri(ul, diag, n, want, ld); !ok || !refOK {
					t.Fatalf("n = %d: ok %v, gonum's %v", n, ok, refOK)
				}
				if err := near(a, want, 1e-12); err != nil {
					t.Fatalf("n = %d, %c%c: %v", n, ul, diag, err)
				}
			}
			a, ld := source.triangle(ul, blas.NonUnit, n)
			a[(n/2)*ld+n/2] = 0
			want := slices.Clone(a)
			if ours.Dtrtri(ul, blas.NonUnit, n, a, ld) {
				t.Errorf("n = %d: a singular matrix is inverted", n)
			}
			if err := near(a, want, 0); err != nil {
				t.Errorf("n = %d: a singular matrix is changed: %v", n, err)
			}
		}
	}
}

// TestLapackMisuse checks that invalid arguments panic with the same text as gonum's routines.
func TestLapackMisuse(t *testing.T) {
	useBLAS(t, requireOpenBLAS(t))
	ours, ref := libraryLAPACK{}, gonum.Implementation{}
	const n = 40
	for _, ul := range []blas.Uplo{blas.Lower, 'X'} {
		for _, order := range []int{-1, n} {
			for _, ld := range []int{n - 1, n} {
				for _, missing := range []int{0, 1} {
					for _, lwork := range []int{3*n - 2, 3 * n} {
						a := make([]float64, n*n-missing)
						for i := 0; i < len(a); i += n + 1 {
							a[i] = 1
						}
						values, work := make([]float64, n-missing), make([]float64, 3*n-missing)
						for i, call := range []func(implementation lapack.Float64){
							func(implementation lapack.Float64) {
								implementation.Dpotrf(ul, order, slices.Clone(a), ld)
							},
							func(implementation lapack.Float64) {
								implementation.Dtrtri(ul, blas.NonUnit, order, slices.Clone(a), ld)
							},
							func(implementation lapack.Float64) {
								implementation.Dtrtri(blas.Lower, 'Y', order, slices.Clone(a), ld)
							},
							func(implementation lapack.Float64) {
								implementation.Dsyev(lapack.EVCompute, ul, order, slices.Clone(a), ld, values, work,
									lwork)
							},
							func(implementation lapack.Float64) {
								implementation.Dsyev('Q', ul, order, slices.Clone(a), ld, values, work, lwork)
							},
						} {
							got, want := panicOf(func() { call(ours) }), panicOf(func() { call(ref) })
							if got != want {
								t.Errorf("case %d %c m=%d ld=%d short=%d lwork=%d: panics with %v, gonum's with %v", i,
									ul, order, ld, missing, lwork, got, want)
							}
						}
					}
				}
			}
		}
	}
}

// TestSpotrfBackwardError checks L·Lᵀ = A + E with |E| ≤ 2·n·u·|L|·|L|ᵀ, element by element.
func TestSpotrfBackwardError(t *testing.T) {
	onEachBLAS(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(19, 20))
		const n = 150
		a := randomDefinite(random, n, n)
		factor := make([]float32, n*n)
		for i, v := range a {
			factor[i] = float32(v)
		}
		a32 := slices.Clone(factor)
		if !Spotrf(n, factor, n) {
			t.Fatal("not ok")
		}
		for i := range n {
			for j := range i + 1 {
				sum, absSum := 0.0, 0.0
				for k := range j + 1 {
					product := float64(factor[i*n+k]) * float64(factor[j*n+k])
					sum, absSum = sum+product, absSum+math.Abs(product)
				}
				if backward := math.Abs(sum - float64(a32[i*n+j])); backward > 2*n*0x1p-24*absSum {
					t.Fatalf("(%d, %d): error %.3g, bound %.3g", i, j, backward, 2*n*0x1p-24*absSum)
				}
			}
		}
	})
}

// TestSpotrfFails checks that a matrix with a zero row and column is refused, and that invalid arguments panic.
func TestSpotrfFails(t *testing.T) {
	onEachBLAS(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(21, 22))
		for _, n := range []int{5, 40, 200} {
			for _, position := range []int{0, n / 2, n - 1} {
				factor := make([]float32, n*n)
				for i, v := range randomDefinite(random, n, n) {
					if factor[i] = float32(v); i/n == position || i%n == position {
						factor[i] = 0
					}
				}
				if Spotrf(n, factor, n) {
					t.Errorf("n = %d: no failure with zeros in row and column %d", n, position)
				}
			}
		}
		for _, factor := range []func(){
			func() { Spotrf(-1, nil, 1) },
			func() { Spotrf(3, make([]float32, 9), 2) },
			func() { Spotrf(3, make([]float32, 8), 3) },
			func() { Spotrf(0, nil, 0) },
		} {
			if panicOf(factor) == nil {
				t.Error("misuse does not panic")
			}
		}
	})
}
