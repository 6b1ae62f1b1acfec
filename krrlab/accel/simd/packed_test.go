package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPackRow packs rows with special values, of all lengths around a register, on every path, and unpacks them.
// Nothing beyond the row, its mask and its values may be written or read.
func TestPackRow(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		testPackRow[float32](t, 1e-5)
		testPackRow[float64](t, 1e-14)
	})
}

// testPackRow runs TestPackRow in one precision.
func testPackRow[T number](t *testing.T, tol float64) {
	random := rand.New(rand.NewPCG(1, 2))
	const cutoff = 0.5
	for _, length := range append(edgeSizes, 255, 256, 257) {
		for _, fraction := range []float64{0, 0.1, 0.5, 1} {
			row := normals[T](random, length)
			var values []T
			want := make([]uint16, (length+15)/16)
			for j := range row {
				row[j] = T(0.4 * (2*random.Float64() - 1))
				if random.Float64() < fraction {
					row[j] = []T{cutoff, -cutoff, T(math.NaN()), T(math.Inf(-1)), 3}[random.IntN(5)]
				}
				if v := float64(row[j]); !(math.Abs(v) < cutoff) {
					want[j/16] |= 1 << (j % 16)
					values = append(values, row[j])
				}
			}
			name := fmt.Sprintf("%T, %d numbers, about a share %v kept", row, length, fraction)
			got, mask, dropped := normals[T](random, length), make([]uint16, len(want)), normals[T](random, length)
			for w := range mask {
				mask[w] = 0xabcd
			}
			wantDropped := slices.Clone(dropped)
			n, sum := PackRow(got, mask, row, cutoff, dropped)
			if n != len(values) || !slices.Equal(mask, want) || !equalOrNaN(got[:n], values) {
				t.Fatalf("%s: %d values %v under %x, want %v under %x", name, n, got[:n], mask, values, want)
			}
			var total float64
			for j, v := range row {
				if magnitude := math.Abs(float64(v)); magnitude < cutoff {
					total += magnitude
					wantDropped[j] += T(magnitude)
				}
			}
			if !slices.Equal(dropped, wantDropped) || !(math.Abs(float64(sum)-total) <= tol*total) {
				t.Fatalf("%s: dropped %v of sum %v, want %v of %v", name, dropped, sum, wantDropped, total)
			}
			unpacked := normals[T](random, length)
			if read := UnpackRow(unpacked, mask, got[:n:n]); read != n {
				t.Fatalf("%s: %d values read of %d", name, read, n)
			}
			for j := range row {
				if want[j/16]>>(j%16)&1 == 0 {
					row[j] = 0
				}
			}
			if !equalOrNaN(unpacked, row) {
				t.Fatalf("%s: unpacked %v, want %v", name, unpacked, row)
			}
		}
	}
}

// equalOrNaN reports whether a and b are equal, where NaN equals NaN.
func equalOrNaN[T number](a, b []T) bool {
	return slices.EqualFunc(a, b, func(v, w T) bool { return v == w || v != v && w != w })
}

// TestSelectMagnitudes compares SelectMagnitudes with its definition, for rows with NaN and with magnitudes equal to
// the threshold.
func TestSelectMagnitudes(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(5, 6))
		for _, length := range append(edgeSizes, 255, 256, 257) {
			for _, fraction := range []float32{0, 0.1, 0.9, 1} {
				row, thresholds, positions := normals[float32](random, length), normals[float32](random, length),
					make([]int32, length)
				var want []int32
				for b := range row {
					row[b], thresholds[b], positions[b] = 1-2*random.Float32(), 1-fraction*random.Float32(),
						int32(random.IntN(9))
					switch random.IntN(9) {
					case 0:
						row[b] = -thresholds[b]
					case 1:
						row[b] = float32(math.NaN())
					}
					threshold := thresholds[b]
					if positions[b] < 4 {
						threshold = 0.9
					}
					if magnitude := float32(math.Abs(float64(row[b]))); magnitude >= threshold {
						want = append(want, int32(b))
					}
				}
				found := make([]int32, length+1)
				found[length] = -7
				if n := SelectMagnitudes(found[:length], row, thresholds, positions, 0.9, 4); found[length] != -7 ||
					!slices.Equal(found[:n], want) {
					t.Fatalf("selected from %d numbers: %v, want %v", length, found[:n], want)
				}
			}
		}
	})
}

// TestPackPanics checks that PackRow and UnpackRow panic if a slice is one element too short.
func TestPackPanics(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		numbers := func(n int) []float32 { return make([]float32, n) }
		checkPanics(t, map[string]func(){
			"values":          func() { PackRow(numbers(32), make([]uint16, 3), numbers(33), 1, numbers(33)) },
			"mask":            func() { PackRow(numbers(33), make([]uint16, 2), numbers(33), 1, numbers(33)) },
			"dropped":         func() { PackRow(numbers(33), make([]uint16, 3), numbers(33), 1, numbers(32)) },
			"unpacked values": func() { UnpackRow(numbers(33), []uint16{0xffff, 0xffff, 1}, numbers(32)) },
			"unpacked mask":   func() { UnpackRow(numbers(33), []uint16{0xffff, 0xffff}, numbers(32)) },
			"no values":       func() { UnpackRow(numbers(1), []uint16{1}, nil) },
		})
	})
}
