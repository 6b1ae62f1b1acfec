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

// randomDefinite draws a symmetric positive definite matrix G·Gᵀ/n + I/10 with row stride ld. Both triangles are
// stored.
func randomDefinite(g *rand.Rand, n, ld int) []float64 {
	f := make([]float64, n*n)
	for i := range f {
		f[i] = g.NormFloat64()
	}
	a := make([]float64, max(0, (n-1)*ld+n))
	for i := range n {
		for j := range n {
			s := 0.0
			for k := range n {
				s += f[i*n+k] * f[j*n+k]
			}
			if a[i*ld+j] = s / float64(n); i == j {
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
	g := rand.New(rand.NewPCG(11, 12))
	useBLAS(t, requireOpenBLAS(t))
	ours, ref := libraryLAPACK{}, gonum.Implementation{}
	for _, n := range orders {
		for _, ul := range []blas.Uplo{blas.Lower, blas.Upper} {
			ld := n + 1 + g.IntN(4)
			a := randomDefinite(g, n, ld)
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
				a = randomDefinite(g, n, ld)
				a[(n-1)*ld+n-1] = bad
				if ours.Dpotrf(ul, n, a, ld) {
					t.Errorf("n = %d: no failure with a_nn = %v", n, bad)
				}
			}
			a = randomDefinite(g, n, ld)
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
	g := operandSource[float64]{rand.New(rand.NewPCG(13, 14))}
	useBLAS(t, requireOpenBLAS(t))
	ours, ref := libraryLAPACK{}, gonum.Implementation{}
	for _, n := range orders[1:] {
		for _, ul := range []blas.Uplo{blas.Lower, blas.Upper} {
			for _, d := range []blas.Diag{blas.NonUnit, blas.Unit} {
				a, ld := g.triangle(ul, d, n)
				want := slices.Clone(a)
				if ok, refOK := ours.Dtrtri(ul, d, n, a, ld), ref.Dtrtri(ul, d, n, want, ld); !ok || !refOK {
					t.Fatalf("n = %d: ok %v, gonum's %v", n, ok, refOK)
				}
				if err := near(a, want, 1e-12); err != nil {
					t.Fatalf("n = %d, %c%c: %v", n, ul, d, err)
				}
			}
			a, ld := g.triangle(ul, blas.NonUnit, n)
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
		for _, m := range []int{-1, n} {
			for _, ld := range []int{n - 1, n} {
				for _, short := range []int{0, 1} {
					for _, lwork := range []int{3*n - 2, 3 * n} {
						a := make([]float64, n*n-short)
						for i := 0; i < len(a); i += n + 1 {
							a[i] = 1
						}
						w, work := make([]float64, n-short), make([]float64, 3*n-short)
						for i, f := range []func(l lapack.Float64){
							func(l lapack.Float64) { l.Dpotrf(ul, m, slices.Clone(a), ld) },
							func(l lapack.Float64) { l.Dtrtri(ul, blas.NonUnit, m, slices.Clone(a), ld) },
							func(l lapack.Float64) { l.Dtrtri(blas.Lower, 'Y', m, slices.Clone(a), ld) },
							func(l lapack.Float64) {
								l.Dsyev(lapack.EVCompute, ul, m, slices.Clone(a), ld, w, work, lwork)
							},
							func(l lapack.Float64) { l.Dsyev('Q', ul, m, slices.Clone(a), ld, w, work, lwork) },
						} {
							got, want := panicOf(func() { f(ours) }), panicOf(func() { f(ref) })
							if got != want {
								t.Errorf("case %d %c m=%d ld=%d short=%d lwork=%d: panics with %v, gonum's with %v", i,
									ul, m, ld, short, lwork, got, want)
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
		g := rand.New(rand.NewPCG(19, 20))
		const n = 150
		a := randomDefinite(g, n, n)
		f := make([]float32, n*n)
		for i, v := range a {
			f[i] = float32(v)
		}
		a32 := slices.Clone(f)
		if !Spotrf(n, f, n) {
			t.Fatal("not ok")
		}
		for i := range n {
			for j := range i + 1 {
				s, abs := 0.0, 0.0
				for k := range j + 1 {
					p := float64(f[i*n+k]) * float64(f[j*n+k])
					s, abs = s+p, abs+math.Abs(p)
				}
				if backward := math.Abs(s - float64(a32[i*n+j])); backward > 2*n*0x1p-24*abs {
					t.Fatalf("(%d, %d): error %.3g, bound %.3g", i, j, backward, 2*n*0x1p-24*abs)
				}
			}
		}
	})
}

// TestSpotrfFails checks that a matrix with a zero row and column is refused, and that invalid arguments panic.
func TestSpotrfFails(t *testing.T) {
	onEachBLAS(t, func(t *testing.T) {
		g := rand.New(rand.NewPCG(21, 22))
		for _, n := range []int{5, 40, 200} {
			for _, position := range []int{0, n / 2, n - 1} {
				f := make([]float32, n*n)
				for i, v := range randomDefinite(g, n, n) {
					if f[i] = float32(v); i/n == position || i%n == position {
						f[i] = 0
					}
				}
				if Spotrf(n, f, n) {
					t.Errorf("n = %d: no failure with zeros in row and column %d", n, position)
				}
			}
		}
		for _, f := range []func(){
			func() { Spotrf(-1, nil, 1) },
			func() { Spotrf(3, make([]float32, 9), 2) },
			func() { Spotrf(3, make([]float32, 8), 3) },
			func() { Spotrf(0, nil, 0) },
		} {
			if panicOf(f) == nil {
				t.Error("misuse does not panic")
			}
		}
	})
}
