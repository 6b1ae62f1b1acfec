package accel_test

import (
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestDistributedMatrix checks that the inverse of the Cholesky factor, computed on several ranks, some of them without
// a block column, has the bits of one process, for which L⁻¹L = I. All ranks must name a pivot that is not positive,
// and an error of one communication must end all ranks.
func TestDistributedMatrix(t *testing.T) {
	n := 2*accel.TileOrder + 37
	entry := func(i, j int) float64 {
		value := math.Exp(-float64((i-j)*(i-j)) / 50)
		if i == j {
			value += 0.5
		}
		return value
	}
	fill := func(d *accel.DistributedMatrix) {
		for b, column := range d.Columns {
			width := min(accel.TileOrder, n-b*accel.TileOrder)
			for k := range column {
				column[k] = entry(b*accel.TileOrder+k/width, b*accel.TileOrder+k%width)
			}
		}
	}
	lower := make([]float64, n*n)
	for i := range n {
		for j := range i + 1 {
			lower[i*n+j] = entry(i, j)
		}
	}
	undistributed := accel.WrapMatrix(n, lower, n)
	undistributed.Diagonal(func(value *float64) { *value += 0.25 })
	if failedPivot, _, err := undistributed.Potrf(); failedPivot != n || err != nil {
		t.Fatal(failedPivot, err)
	}
	l := append([]float64(nil), lower...)
	want := make([][]float64, n)
	oneRank := accel.NewDistributedMatrix(n, 0, 1, nil)
	fill(oneRank)
	oneRank.Diagonal(func(value *float64) { *value += 0.25 })
	if failedPivot, _, err := oneRank.Potrf(); failedPivot != n || err != nil {
		t.Fatal(failedPivot, err)
	}
	testkit.OK(t, oneRank.Invert(func(i int, row []float64) { want[i] = append([]float64(nil), row...) }))
	for _, i := range []int{0, accel.TileOrder, n - 1} { // row i of L⁻¹L
		for j := range i + 1 {
			var sum float64
			for k := j; k <= i; k++ {
				sum += want[i][k] * l[k*n+j]
			}
			if i == j {
				sum--
			}
			if deviation := math.Abs(sum); deviation > 1e-12 {
				t.Fatalf("L⁻¹L is off I by %g at (%d, %d)", deviation, i, j)
			}
		}
	}
	errLink := errors.New("no link")
	for _, test := range []struct {
		ranks, failingCall int     // Broadcast fails at this call of each rank; 0 for none
		shift              float64 // added to the diagonal
	}{{2, 0, 0.25}, {5, 0, 0.25}, {2, 1, 0.25}, {2, 0, -1.5}, {2, 4, 0.25}} {
		var group sync.WaitGroup
		for _, local := range comm.Local(test.ranks, 0) {
			group.Go(func() {
				calls := 0
				d := accel.NewDistributedMatrix(n, local.Rank(), test.ranks, func(x []float64, root int) error {
					if calls++; calls == test.failingCall {
						return errLink
					}
					return comm.BroadcastFloats(t.Context(), local, x, root)
				})
				fill(d)
				d.Diagonal(func(value *float64) { *value += test.shift })
				failedPivot, pivot, err := d.Potrf()
				if test.shift < 0 {
					if failedPivot != 0 || pivot != entry(0, 0)+test.shift || err != nil {
						t.Errorf("rank %d: failed pivot %d with value %v, error %v; want pivot 0", local.Rank(),
							failedPivot, pivot, err)
					}
					return
				}
				if err == nil {
					err = d.Invert(func(i int, row []float64) {
						for k, value := range row {
							if value != want[i][k] && test.failingCall == 0 {
								t.Errorf("rank %d of %d: L⁻¹ is %v at (%d, %d), want %v", local.Rank(), test.ranks,
									value, i, k, want[i][k])
								return
							}
						}
					})
				}
				if test.failingCall == 0 && err != nil || test.failingCall > 0 && !errors.Is(err, errLink) {
					t.Errorf("rank %d, failure of call %d: error %v", local.Rank(), test.failingCall, err)
				}
			})
		}
		group.Wait()
	}
}
