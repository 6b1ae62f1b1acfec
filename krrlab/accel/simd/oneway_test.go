package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMany compares products of large tiles with the portable ones, for all numbers of right-hand sides that are
// divided into passes in different ways.
func TestMany(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		testMany[float32](t, 1e-3)
		testMany[float64](t, 1e-12)
	})
}

// testMany runs TestMany in one precision.
func testMany[T number](t *testing.T, tol float64) {
	g := rand.New(rand.NewPCG(15, 16))
	var w Workspace
	for k := 1; k <= 2*maxPassSides+1; k++ {
		rows, cols := 2*chunkRows+k, 2*blockCols+7*k
		ld := cols + k
		tile := draw[T](g, rows*ld)
		x, z := draw[float64](g, cols*k), draw[float64](g, rows*k)
		y, u := make([]float64, cols*k), make([]float64, rows*k)
		AddProduct(tile, ld, columns(x, k, cols, cols), columns(u, k, rows, rows))
		AddTransposeProduct(tile, ld, columns(y, k, cols, cols), columns(z, k, rows, rows), &w)
		wy, wu := make([]float64, cols*k), make([]float64, rows*k)
		portable(0, &tileProduct[T, float64]{true, true, rows, cols, tile, ld, x, wy, cols, z, wu, rows, k})
		closeTo := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12 }
		if !slices.EqualFunc(y, wy, closeTo) || !slices.EqualFunc(u, wu, closeTo) {
			t.Fatalf("%T, t=%d: one way differs", tile, k)
		}
		x1, z1, y1, u1 := make([]T, cols*k), make([]T, rows*k), make([]T, cols*k), make([]T, rows*k)
		for i, v := range x {
			x1[i] = T(v)
		}
		for i, v := range z {
			z1[i] = T(v)
		}
		AddBothProducts(rows, cols, tile, ld, x1, y1, z1, u1, k, &w)
		close := func(a T, b float64) bool { return math.Abs(float64(a)-b) <= tol }
		if !slices.EqualFunc(y1, wy, close) || !slices.EqualFunc(u1, wu, close) {
			t.Fatalf("%T, t=%d: both ways differ", tile, k)
		}
	}
}

// TestPieces checks that the pieces of a tile cover each of its entries once.
func TestPieces(t *testing.T) {
	for _, forward := range []bool{true, false} {
		for _, size := range [][2]int{{1, 8}, {24, 512}, {25, 520}, {71, 1536}, {7, 2000}} {
			rows, body := size[0], size[1]
			seen := make([]int, rows*body)
			i, product := 0, tileProduct[float32, float64]{sums: forward, rows: rows}
			for a := product.piece(i, body); a.m > 0 && a.k > 0; a = product.piece(i, body) {
				for r := a.r; r < a.r+a.m; r++ {
					for c := a.c; c < a.c+a.k; c++ {
						seen[r*body+c]++
					}
				}
				i++
			}
			for j, n := range seen {
				if n != 1 {
					t.Fatalf("%d×%d, forward %v: entry (%d, %d) is in %d pieces", rows, body, forward, j/body, j%body, n)
				}
			}
		}
	}
}

// TestShare checks that as many rows are prefetched as requested, if the groups are large enough, and at most one
// group more.
func TestShare(t *testing.T) {
	for want := range 40 {
		for groups := range 13 {
			for rows := 2; rows <= 4; rows++ {
				streamed, wide := fetchGroups(want, groups, rows)
				got := streamed*rows + wide
				if streamed < 0 || wide < 0 || streamed+wide > groups || got < min(want, groups*rows) ||
					got >= want+rows {
					t.Errorf("%d rows beside %d groups of %d: %d and %d", want, groups, rows, streamed, wide)
				}
			}
		}
	}
}

// TestTake checks that the passes process all right-hand sides, in the smallest number of passes.
func TestTake(t *testing.T) {
	for sides := 1; sides <= maxPassSides; sides++ {
		p := &passes[float32, float64]{maxSides: sides}
		for k := 1; k <= 40; k++ {
			n, remaining := 0, k
			for ; remaining > 0; n++ {
				remaining -= p.take(remaining)
			}
			if remaining < 0 || n != (k+sides-1)/sides {
				t.Errorf("%d right-hand sides, %d in a pass: %d passes, %d left", k, sides, n, remaining)
			}
		}
	}
}
