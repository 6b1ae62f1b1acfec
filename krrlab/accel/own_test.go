package accel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
)

func TestOwnFloat32(t *testing.T) {
	t.Cleanup(func() { Use(nil) })
	withThreads(t, 3)
	Use(nil)
	if _, ok := blas32.Implementation().(own32); !ok {
		t.Fatalf("blas32 is %T", blas32.Implementation())
	}
	t.Run("values", func(t *testing.T) {
		ours := of32(own32{})
		ours.syrk = func(ul blas.Uplo, tA blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32, c []float32, ldc int) {
			if beta == 0 { // the test expects of small problems what gonum does: reads C
				clearTriangle(ul, n, c, ldc)
			}
			own32{}.Ssyrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		}
		testOverrides(t, 0x1p-24, ours, of32(gonum.Implementation{}))
	})
	t.Run("misuse", func(t *testing.T) { testMisuse(t, of32(own32{}), of32(gonum.Implementation{})) })
}

// TestOwnThreads computes on several numbers of threads, outside and inside ForEach:
// the same bits.
func TestOwnThreads(t *testing.T) {
	t.Cleanup(func() { Use(nil) })
	if gogemm.InUse() == gogemm.Portable {
		t.Skip("gonum's own products are in use")
	}
	Use(nil)
	g := draw[float32]{rand.New(rand.NewPCG(31, 32))}
	for _, s := range [][3]int{{200, 90, 100}, {1, 3000, 400}, {3000, 1, 400}, {7, 400, 500}, {520, 1030, 30}, {130, 130, 130}} {
		m, n, k := s[0], s[1], s[2]
		for q := range 4 {
			tA, tB := g.trans(), g.trans()
			ul := g.uplo()
			a, lda := g.matrix(opDims(tA, m, k))
			b, ldb := g.matrix(opDims(tB, k, n))
			c, ldc := g.matrix(m, n)
			h := min(m, 800)
			d, ldd := g.matrix(h, h)
			at := blas.NoTrans // of A as an h×k matrix
			if tA != blas.NoTrans {
				at = blas.Trans
			}
			beta := float32(q % 2)
			var wantC, wantD []float32
			for _, threads := range []int{1, 2, 3, 8} {
				withThreads(t, threads)
				for _, inside := range []bool{false, true} {
					gotC, gotD := clone(c), clone(d)
					f := func() {
						blas32.Implementation().Sgemm(tA, tB, m, n, k, 1.5, a, lda, b, ldb, beta, gotC, ldc)
						blas32.Implementation().Ssyrk(ul, at, h, k, 1.5, a, lda, beta, gotD, ldd)
					}
					if inside {
						_ = ForEach(context.Background(), 1, func(_, _ int) { f() })
					} else {
						f()
					}
					if wantC == nil {
						wantC, wantD = gotC, gotD
					}
					if !slices.Equal(gotC, wantC) {
						t.Fatalf("gemm %c%c %v, %d threads, inside %v: other bits", tA, tB, s, threads, inside)
					}
					if !slices.Equal(gotD, wantD) {
						t.Fatalf("syrk %c%c %v, %d threads, inside %v: other bits", ul, tA, s, threads, inside)
					}
				}
			}
			want := clone(c)
			gonum.Implementation{}.Sgemm(tA, tB, m, n, k, 1.5, a, lda, b, ldb, beta, want, ldc)
			if err := near(wantC, want, 4*0x1p-24*float64(k+8)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestPieces(t *testing.T) {
	mr, nr := gogemm.Tile()
	for _, threads := range []int{2, 3, 7, 16, 64} {
		for _, s := range [][2]int{{1, 1}, {1, 5000}, {5000, 1}, {512, 512}, {256, 2000}, {2000, 256}, {20000, 20000}, {7, 33}} {
			rows, cols := pieces(s[0], s[1], threads)
			count := (s[0] + rows - 1) / rows * ((s[1] + cols - 1) / cols)
			tiles := (s[0] + mr - 1) / mr * ((s[1] + nr - 1) / nr)
			if rows%mr != 0 || cols%nr != 0 || rows > ownRows+mr || cols > ownCols+nr || 2*count < min(threads, tiles) {
				t.Errorf("%v on %d threads: %d pieces of %d×%d", s, threads, count, rows, cols)
			}
		}
	}
}

func TestOwnNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	t.Cleanup(func() { Use(nil) })
	withThreads(t, 2)
	Use(nil)
	if gogemm.InUse() == gogemm.Portable {
		t.Skip("gonum's own products are in use")
	}
	const n = 150
	a, b, c := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
	if avg := testing.AllocsPerRun(50, func() {
		blas32.Implementation().Sgemm(blas.NoTrans, blas.Trans, n, n, n, 1, a, n, b, n, 0, c, n)
		blas32.Implementation().Ssyrk(blas.Lower, blas.NoTrans, n, n, 1, a, n, 0, c, n)
	}); avg >= 1 {
		t.Errorf("%.1f allocations", avg)
	}
}

// BenchmarkSgemm compares the project's own products with gonum's and OpenBLAS's, on
// one thread, inside ForEach, and on all.
func BenchmarkSgemm(b *testing.B) {
	b.Cleanup(func() { Use(nil) })
	g := draw[float32]{rand.New(rand.NewPCG(33, 34))}
	for _, s := range []struct {
		m, n, k int
		t       blas.Transpose
	}{
		{512, 512, 784, blas.NoTrans}, {512, 512, 784, blas.Trans},
		{256, 2000, 784, blas.NoTrans}, {256, 2000, 784, blas.Trans},
		{10, 512, 512, blas.NoTrans}, {10, 512, 512, blas.Trans}, {16, 16, 16, blas.NoTrans},
	} {
		rb, cb := opDims(s.t, s.k, s.n)
		x, y, z := g.slice(s.m*s.k), g.slice(rb*cb), g.slice(s.m*s.n)
		flop := 2 * float64(s.m) * float64(s.n) * float64(s.k)
		for _, threads := range []int{1, Threads()} {
			for _, name := range []string{"gonum", "go", "openblas"} {
				b.Run(fmt.Sprintf("N%c/%dx%dx%d/%d/%s", s.t, s.m, s.n, s.k, threads, name), func(b *testing.B) {
					withThreads(b, threads)
					Use(nil)
					switch name {
					case "openblas":
						Use(library(b))
					case "gonum":
						if threads == 1 {
							b.Skip("gonum has threads of its own")
						}
						blas32.Use(gonum.Implementation{})
					}
					for b.Loop() {
						blas32.Implementation().Sgemm(blas.NoTrans, s.t, s.m, s.n, s.k, 1, x, s.k, y, cb, 0, z, s.n)
					}
					b.ReportMetric(flop*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
				})
			}
		}
	}
}
