package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestManyRightHandSides compares products of large tiles with the portable ones, for up to twice as many right-hand
// sides as a pass takes, plus one.
func TestManyRightHandSides(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		testManyRightHandSides[float32](t, 1e-3)
		testManyRightHandSides[float64](t, 1e-12)
	})
}

// testManyRightHandSides runs TestManyRightHandSides in one precision of the tile. tol is the tolerance for vectors in
// that precision.
func testManyRightHandSides[T number](t *testing.T, tol float64) {
	random := rand.New(rand.NewPCG(15, 16))
	var w Workspace
	for k := 1; k <= 2*maxPassSides+1; k++ {
		rows, cols := 2*chunkRows+k, 2*blockCols+7*k
		ld := cols + k
		tile := normals[T](random, rows*ld)
		x, z := normals[float64](random, cols*k), normals[float64](random, rows*k)
		y, u := make([]float64, cols*k), make([]float64, rows*k)
		AddProduct(tile, ld, columns(x, k, cols, cols), columns(u, k, rows, rows))
		AddTransposeProduct(tile, ld, columns(y, k, cols, cols), columns(z, k, rows, rows), &w)
		wantY, wantU := make([]float64, cols*k), make([]float64, rows*k)
		portable(0, &tileProduct[T, float64]{true, true, rows, cols, tile, ld, x, wantY, cols, z, wantU, rows, k})
		isNear := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12 }
		if !slices.EqualFunc(y, wantY, isNear) || !slices.EqualFunc(u, wantU, isNear) {
			t.Fatalf("%T, %d right-hand sides: AddProduct or AddTransposeProduct differs from portable", tile, k)
		}
		x1, z1, y1, u1 := make([]T, cols*k), make([]T, rows*k), make([]T, cols*k), make([]T, rows*k)
		for i, v := range x {
			x1[i] = T(v)
		}
		for i, v := range z {
			z1[i] = T(v)
		}
		AddBothProducts(rows, cols, tile, ld, x1, y1, z1, u1, k, &w)
		isNearInT := func(a T, b float64) bool { return math.Abs(float64(a)-b) <= tol }
		if !slices.EqualFunc(y1, wantY, isNearInT) || !slices.EqualFunc(u1, wantU, isNearInT) {
			t.Fatalf("%T, %d right-hand sides: AddBothProducts differs from portable", tile, k)
		}
	}
}

// TestPiecesCoverTile checks that the pieces of a tile cover each of its entries once.
func TestPiecesCoverTile(t *testing.T) {
	for _, isForward := range []bool{true, false} {
		for _, size := range [][2]int{{1, 8}, {24, 512}, {25, 520}, {71, 1536}, {7, 2000}} {
			rows, cols := size[0], size[1]
			seen := make([]int, rows*cols)
			i, product := 0, tileProduct[float32, float64]{sums: isForward, rows: rows}
			for piece := product.pieceAt(i, cols); piece.rows > 0 && piece.cols > 0; piece = product.pieceAt(i, cols) {
				for r := piece.row; r < piece.row+piece.rows; r++ {
					for c := piece.col; c < piece.col+piece.cols; c++ {
						seen[r*cols+c]++
					}
				}
				i++
			}
			for j, pieces := range seen {
				if pieces != 1 {
					t.Fatalf("%d×%d, forward %v: entry (%d, %d) is in %d pieces", rows, cols, isForward, j/cols, j%cols,
						pieces)
				}
			}
		}
	}
}

// TestFetchGroups checks that fetchGroups divides the groups so that as many rows are prefetched as requested, or all,
// and less than one group more.
func TestFetchGroups(t *testing.T) {
	for wantedRows := range 40 {
		for groups := range 13 {
			for rows := 2; rows <= 4; rows++ {
				streamed, wide := fetchGroups(wantedRows, groups, rows)
				fetched := streamed*rows + wide
				if streamed < 0 || wide < 0 || streamed+wide > groups || fetched < min(wantedRows, groups*rows) ||
					fetched >= wantedRows+rows {
					t.Errorf("%d rows to prefetch in %d groups of %d: %d groups and %d rows", wantedRows, groups, rows,
						streamed, wide)
				}
			}
		}
	}
}

// TestPassesTakeAllSides checks that the passes process all right-hand sides, in the smallest number of passes.
func TestPassesTakeAllSides(t *testing.T) {
	for sides := 1; sides <= maxPassSides; sides++ {
		p := &passes[float32, float64]{maxSides: sides}
		for k := 1; k <= 40; k++ {
			passCount, remaining := 0, k
			for ; remaining > 0; passCount++ {
				remaining -= p.take(remaining)
			}
			if remaining < 0 || passCount != (k+sides-1)/sides {
				t.Errorf("%d right-hand sides, %d in a pass: %d passes, %d remain", k, sides, passCount, remaining)
			}
		}
	}
}
