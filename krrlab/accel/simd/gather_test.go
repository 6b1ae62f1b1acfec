package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// randomSparse returns a rows×cols matrix in CSR format with minEntries + r%variation entries in row r, near the
// diagonal.
func randomSparse(random *rand.Rand, rows, cols, minEntries, variation int) (start []int64, col []int32,
	value []float32) {
	start = []int64{0}
	for r := range rows {
		for range minEntries + r%variation {
			col = append(col, int32(min(cols-1, max(0, r+random.IntN(1000)-500))))
			value = append(value, 2*random.Float32()-1)
		}
		start = append(start, int64(len(col)))
	}
	return start, col, value
}

// TestGatherDot compares GatherDot bit by bit with sums in the documented order, for rows of 0 to 34 entries (there are
// eight lanes) and 0 to 9 vectors, on every path. Nothing beyond the result may be written.
func TestGatherDot(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(7, 8))
		const rows, cols = 50, 90
		start, col, value := randomSparse(random, rows, cols, 0, 35)
		for k := range 10 {
			x, y := normals[float64](random, cols*k), normals[float64](random, rows*k+4)
			want := slices.Clone(y)
			for r := range rows {
				for c := range k {
					var sums [8]float64
					col, value := col[start[r]:start[r+1]], value[start[r]:start[r+1]]
					term := func(a int) float64 { return float64(float64(value[a]) * x[int(col[a])*k+c]) }
					eights := len(col) &^ 7
					for a := range eights {
						sums[a%8] += term(a)
					}
					sum := ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
					for a := eights; a < len(col); a++ {
						sum += term(a)
					}
					want[r*k+c] = sum
				}
			}
			GatherDot(start, col, value, x, y, k)
			if !slices.Equal(y, want) {
				t.Fatalf("%d vectors: Y = %v, want %v", k, y, want)
			}
		}
	})
}

// TestPairSums compares SumSquaredDifferences and SumAbsoluteDifferences with plain loops, bit by bit.
// SumAbsoluteDifferences is checked in both precisions.
func TestPairSums(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	onEachPath(t, func(t *testing.T) {
		for _, n := range edgeSizes {
			checkPairSums(t, normals[float64](random, n), normals[float64](random, n*PairLanes), SumSquaredDifferences,
				func(difference float64) float64 { return difference * difference })
			checkPairSums(t, normals[float64](random, n), normals[float64](random, n*PairLanes), SumAbsoluteDifferences,
				math.Abs)
			checkPairSums(t, normals[float32](random, n), normals[float32](random, n*PairLanes), SumAbsoluteDifferences,
				func(difference float32) float32 { return float32(math.Abs(float64(difference))) })
		}
	})
}

// checkPairSums compares sums with a plain loop over the given term of a difference.
func checkPairSums[T number](t *testing.T, x, z []T, sums func(dst *[PairLanes]T, x, z []T),
	term func(difference T) T) {
	t.Helper()
	got := [PairLanes]T{5} // is overwritten
	sums(&got, x, z)
	for j, v := range got {
		var want T
		for c, xc := range x {
			want += T(term(xc - z[c*PairLanes+j]))
		}
		if v != want {
			t.Errorf("%d coordinates, point %d: sum %v, want %v", len(x), j, v, want)
		}
	}
}

// BenchmarkGatherDot measures products with a sparse matrix with 61 entries per row, the diagonal and 60 neighbors.
func BenchmarkGatherDot(b *testing.B) {
	const n, k = 1 << 14, 61
	random := rand.New(rand.NewPCG(1, 2))
	start, col, value := randomSparse(random, n, n, k, 1)
	for _, vectors := range []int{1, 2, 4, 10} {
		x, y := normals[float64](random, n*vectors), normals[float64](random, n*vectors)
		for _, path := range Paths() {
			b.Run(fmt.Sprintf("%v/t=%d", path, vectors), func(b *testing.B) {
				defer UsePath(CurrentPath())
				UsePath(path)
				shortest := time.Hour
				for b.Loop() {
					callStart := time.Now()
					GatherDot(start, col, value, x, y, vectors)
					shortest = min(shortest, time.Since(callStart))
				}
				b.ReportMetric(shortest.Seconds()*1e9/float64(len(col)*vectors), "ns/term")
			})
		}
	}
}
