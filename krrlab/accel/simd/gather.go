package simd

import "fmt"

// gatherMask[4-t:] is a mask that selects the first t of four vectors.
var gatherMask = [8]uint64{1<<64 - 1, 1<<64 - 1, 1<<64 - 1, 1<<64 - 1}

// GatherDot sets y = S·x for a sparse matrix S and t vectors that are stored by rows,
//
//	y[r·t+c] = Σ_a value_a·x[col_a·t+c],
//
// where row r of S has the entries a = start_r, …, start_{r+1}−1. The sum is formed in eight lanes: entry 8i+l of a row
// is added to s_l. The entries after the last complete group of eight are added, in their order, to
//
//	((s₀+s₄)+(s₂+s₆)) + ((s₁+s₅)+(s₃+s₇)).
//
// Each operation is rounded to float64, so that the bits are the same on every path and for any t. GatherDot panics if
// a slice is too short. Not all paths detect columns beyond x.
func GatherDot(start []int64, col []int32, value []float32, x, y []float64, t int) {
	rows := len(start) - 1
	if rows < 1 || t < 1 {
		return
	}
	if end := start[rows]; len(y) < rows*t || int64(len(col)) < end || int64(len(value)) < end || len(x) < t {
		panic(fmt.Sprintf("simd: GatherDot: %d rows and %d entries of %d columns and %d values, with %d into %d "+
			"numbers",
			rows, end, len(col), len(value), len(x), len(y)))
	}
	switch {
	case !current().hasElementwise || start[rows] == start[0]:
		for c := range t {
			gatherPortable(start, col, value, x[c:], y[c:], t)
		}
	case t == 1:
		gatherAVX2(rows, &start[0], &col[0], &value[0], &x[0], &y[0])
	default:
		for c := 0; c < t; c += 4 {
			gathersAVX2(rows, &start[0], &col[0], &value[0], &x[c], &y[c], t, &gatherMask[max(0, 4-(t-c))])
		}
	}
}

// gatherPortable is GatherDot for one of t vectors.
func gatherPortable(start []int64, col []int32, value []float32, x, y []float64, t int) {
	for r := range len(start) - 1 {
		col, value := col[start[r]:start[r+1]], value[start[r]:start[r+1]]
		var sums [8]float64
		for len(col) >= 8 {
			columns, values := col[:8:8], value[:8:8]
			for l := range sums {
				sums[l] += float64(float64(values[l]) * x[int(columns[l])*t])
			}
			col, value = col[8:], value[8:]
		}
		sum := ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
		for entry, j := range col {
			sum += float64(float64(value[entry]) * x[int(j)*t])
		}
		y[r*t] = sum
	}
}
