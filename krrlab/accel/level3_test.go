package accel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/race"
)

// TestGoRoutines compares Go's own routines with gonum's, for valid and invalid arguments.
func TestGoRoutines(t *testing.T) {
	useThreads(t, 3)
	useBLAS(t, nil)
	t.Run("float32", func(t *testing.T) {
		compareGoRoutines(t, 0x1p-24, float32Routines(float32s{}), float32Routines(gonum.Implementation{}))
	})
	t.Run("float64", func(t *testing.T) {
		compareGoRoutines(t, 0x1p-53, float64Routines(float64s{}), float64Routines(gonum.Implementation{}))
	})
}

// compareGoRoutines compares Go's own routines with gonum's in one precision with the unit roundoff u.
func compareGoRoutines[T float](t *testing.T, u float64, ours, ref level3Routines[T]) {
	t.Run("misuse", func(t *testing.T) { comparePanics(t, ours, ref) })
	t.Run("values", func(t *testing.T) {
		syrk := ours.syrk
		ours.syrk = func(ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int) {
			// gonum reads C although β = 0, and compareRoutines expects that for small problems.
			for i := 0; beta == 0 && i < n; i++ {
				clear(triangleRow(ul, n, c, ldc, i))
			}
			syrk(ul, tA, n, k, alpha, a, lda, beta, c, ldc)
		}
		compareRoutines(t, u, ours, ref)
	})
}

// TestEntriesOfBlocks checks on each path that the products of Go's own routines have the same entries in every block
// that contains them: the error of K is measured on large blocks, and small tiles must have the same.
func TestEntriesOfBlocks(t *testing.T) {
	useThreads(t, 1)
	useBLAS(t, nil)
	defer simd.UsePath(simd.CurrentPath())
	for _, path := range simd.Paths() {
		simd.UsePath(path)
		for _, k := range []int{1, 2, 3, 5, 17, 60, 130} {
			checkEntriesOfBlocks(t, k, float32Routines(float32s{}))
			checkEntriesOfBlocks(t, k, float64Routines(float64s{}))
		}
	}
}

// checkEntriesOfBlocks compares XXᵀ, for n points x of dimension k, with its blocks of 7 rows and columns.
func checkEntriesOfBlocks[T float](t *testing.T, k int, ours level3Routines[T]) {
	const n, size = 147, 7
	random, x := rand.New(rand.NewPCG(33, 34)), make([]T, n*k)
	for i := range x {
		x[i] = T(random.NormFloat64())
	}
	whole, triangle := make([]T, n*n), make([]T, n*n)
	ours.gemm(blas.NoTrans, blas.Trans, n, n, k, 1, x, k, x, k, 0, whole, n)
	ours.syrk(blas.Lower, blas.NoTrans, n, k, 1, x, k, 0, triangle, n)
	for i := 0; i < n; i += size {
		for j := 0; j < n; j += size {
			var block [size * size]T
			ours.gemm(blas.NoTrans, blas.Trans, size, size, k, 1, x[i*k:], k, x[j*k:], k, 0, block[:], size)
			for blockRow := range size {
				if row := whole[(i+blockRow)*n+j:][:size]; !slices.Equal(block[blockRow*size:][:size], row) {
					t.Fatalf("%v, %T, k = %d: row %d of the block (%d, %d) is %v, in the whole product %v",
						simd.CurrentPath(), block[0], k, blockRow, i, j, block[blockRow*size:][:size], row)
				}
				if row := triangle[(i+blockRow)*n+j:][:size]; j < i && !slices.Equal(block[blockRow*size:][:size],
					row) {
					t.Fatalf("%v, %T, k = %d: row %d of the block (%d, %d) is %v, in the triangle %v",
						simd.CurrentPath(), block[0], k, blockRow, i, j, block[blockRow*size:][:size], row)
				}
			}
		}
	}
}

// TestGoRoutinesOnThreads checks that Go's own routines have the same bits for any number of threads, outside and
// inside ForEach.
func TestGoRoutinesOnThreads(t *testing.T) {
	useBLAS(t, nil)
	if simd.CurrentPath() == simd.Portable {
		t.Skip("gonum's own products are in use")
	}
	compareGoRoutinesOnThreads(t, 0x1p-24, float32Routines(float32s{}), float32Routines(gonum.Implementation{}))
	compareGoRoutinesOnThreads(t, 0x1p-53, float64Routines(float64s{}), float64Routines(gonum.Implementation{}))
}

// compareGoRoutinesOnThreads checks the bits and, with the unit roundoff u, the values in one precision.
func compareGoRoutinesOnThreads[T float](t *testing.T, u float64, ours, ref level3Routines[T]) {
	source := operandSource[T]{rand.New(rand.NewPCG(31, 32))}
	for _, shape := range [][3]int{{200, 90, 100}, {1, 3000, 400}, {3000, 1, 400}, {7, 400, 500}, {520, 1030, 30},
		{130, 130, 130}} {
		m, n, k := shape[0], shape[1], shape[2]
		for trial := range 4 {
			tA, tB, beta := source.trans(), source.trans(), T(trial%2)
			a, lda := source.matrix(opDims(tA, m, k))
			b, ldb := source.matrix(opDims(tB, k, n))
			c, ldc := source.matrix(m, n)
			got := sameBits(t, fmt.Sprintf("gemm %c%c %v", tA, tB, shape), c, func(c []T) {
				ours.gemm(tA, tB, m, n, k, 1.5, a, lda, b, ldb, beta, c, ldc)
			})
			ref.gemm(tA, tB, m, n, k, 1.5, a, lda, b, ldb, beta, c, ldc)
			if err := near(got, c, 4*u*float64(k+8)); err != nil {
				t.Fatal(err)
			}

			ul, syrkOrder := source.uplo(), min(m, 800)
			transA := blas.NoTrans // how A is used as a matrix of syrkOrder rows
			if tA != blas.NoTrans {
				transA = blas.Trans
			}
			d, ldd := source.matrix(syrkOrder, syrkOrder)
			sameBits(t, fmt.Sprintf("syrk %c%c %v", ul, transA, shape), d, func(d []T) {
				ours.syrk(ul, transA, syrkOrder, k, 1.5, a, lda, beta, d, ldd)
			})
		}
	}
	for _, shape := range [][2]int{{130, 300}, {300, 130}, {400, 40}, {40, 900}, {270, 270}} {
		m, n := shape[0], shape[1]
		for _, side := range []blas.Side{blas.Left, blas.Right} {
			for range 4 {
				ul, tA, d := source.uplo(), source.trans(), source.diag()
				a, lda := source.triangle(ul, d, order(side, m, n))
				b, ldb := source.matrix(m, n)
				name := fmt.Sprintf("%c%c%c%c %v", side, ul, tA, d, shape)
				for _, call := range []func(routines level3Routines[T], b []T){
					func(routines level3Routines[T], b []T) {
						routines.trsm(side, ul, tA, d, m, n, 1.5, a, lda, b, ldb)
					},
					func(routines level3Routines[T], b []T) {
						routines.trmm(side, ul, tA, d, m, n, 1.5, a, lda, b, ldb)
					},
				} {
					got, want := sameBits(t, name, b, func(b []T) { call(ours, b) }), slices.Clone(b)
					call(ref, want)
					if err := near(got, want, 4*u*float64(order(side, m, n)+8)); err != nil {
						t.Fatal(name, err)
					}
				}
			}
		}
	}
}

// sameBits runs f on copies of output with several numbers of threads, outside and inside ForEach. It checks that all
// copies have the same bits, and returns the first one.
func sameBits[T float](t *testing.T, name string, output []T, f func(output []T)) (first []T) {
	t.Helper()
	oldThreads := Threads()
	defer SetThreads(oldThreads)
	for _, threads := range []int{1, 2, 3, 8} {
		SetThreads(threads)
		for _, inside := range []bool{false, true} {
			got := slices.Clone(output)
			if inside {
				_ = ForEach(context.Background(), 1, func(_, _ int) { f(got) })
			} else {
				f(got)
			}
			if first == nil {
				first = got
			}
			if !slices.Equal(got, first) {
				t.Fatalf("%s, %d threads, inside ForEach: %v: other bits than on one thread", name, threads, inside)
			}
		}
	}
	return first
}

// TestPieceSize checks that the pieces of a product are multiples of the register tile, not too large, and enough for
// the threads.
func TestPieceSize(t *testing.T) {
	if simd.CurrentPath() == simd.Portable {
		t.Skip("gonum's own products are in use")
	}
	testPieceSize[float32](t)
	testPieceSize[float64](t)
}

// testPieceSize runs TestPieceSize in one precision.
func testPieceSize[T float](t *testing.T) {
	mr, nr := gogemm.TileSize[T]()
	for _, threads := range []int{2, 3, 7, 16, 64} {
		for _, shape := range [][2]int{{1, 1}, {1, 5000}, {5000, 1}, {512, 512}, {256, 2000}, {2000, 256}, {20000,
			20000},
			{7, 33}} {
			rows, cols := pieceSize[T](shape[0], shape[1], threads)
			count := (shape[0] + rows - 1) / rows * ((shape[1] + cols - 1) / cols)
			tiles := (shape[0] + mr - 1) / mr * ((shape[1] + nr - 1) / nr)
			if rows%mr != 0 || cols%nr != 0 || rows > maxPieceRows+mr || cols > maxPieceCols+nr ||
				2*count < min(threads, tiles) {
				t.Errorf("%v on %d threads: %d pieces of %d×%d", shape, threads, count, rows, cols)
			}
		}
	}
}

// TestGoRoutinesNoAllocation checks that Go's own routines allocate nothing on one thread, as inside ForEach. On
// several threads a product allocates the bodies of its pieces.
func TestGoRoutinesNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes pools forget")
	}
	useThreads(t, 1)
	useBLAS(t, nil)
	if simd.CurrentPath() == simd.Portable {
		t.Skip("gonum's own products are in use")
	}
	checkNoAllocation(t, float32Routines(float32s{}))
	checkNoAllocation(t, float64Routines(float64s{}))
}

// checkNoAllocation checks that the given routines allocate nothing.
func checkNoAllocation[T float](t *testing.T, ours level3Routines[T]) {
	const n = 150
	a, b, c := make([]T, n*n), make([]T, n*n), make([]T, n*n)
	if allocations := testing.AllocsPerRun(50, func() {
		ours.gemm(blas.NoTrans, blas.Trans, n, n, n, 1, a, n, b, n, 0, c, n)
		ours.syrk(blas.Lower, blas.NoTrans, n, n, 1, a, n, 0, c, n)
		ours.trsm(blas.Left, blas.Lower, blas.NoTrans, blas.Unit, n, n, 1, a, n, b, n)
		ours.trmm(blas.Right, blas.Lower, blas.Trans, blas.Unit, n, n, 1, a, n, b, n)
		ours.gemv(blas.NoTrans, n, n, 1, a, n, b, 1, 0, c, 1)
	}); allocations >= 1 {
		t.Errorf("%.1f allocations", allocations)
	}
}
