package lambdap

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestSweepSizes: all sizes have the grid of the first, or the one that is given in any order; what was swept is returned beside
// the error of a size that fails.
func TestSweepSizes(t *testing.T) {
	a, whole := problem(80, 40, 0.1, 7)
	y := mat.NewDense(80, 1, nil)
	rng.New(8).Normals(y.RawMatrix().Data, 0)
	draw := func(_ context.Context, s int) (*points.Dense32, float64, error) {
		if s > 40 {
			return nil, 0, errors.New("too many")
		}
		z := points.NewDense32(80, s, nil)
		for i := range 80 {
			copy(z.Row(i), whole.Row(i)[:s])
		}
		return z, 0.5, nil
	}
	o := &Options{Points: 4, Columns: -1}
	all, err := SweepSizes(t.Context(), a, []int{20, 40}, y, o, draw)
	if err != nil || len(all) != 2 || all[0].S != 20 || all[1].S != 40 || o.LambdaP != nil {
		t.Fatalf("%v, %v", all, err)
	}
	grid := func(r *Result) (g []float64) {
		for _, q := range r.Points {
			g = append(g, q.LambdaP)
		}
		return g
	}
	if want := Grid(0.1, all[0].Eta.Value, 4); !slices.Equal(grid(all[0]), want) || !slices.Equal(grid(all[1]), want) || !(all[1].SetUp >= 0.5) {
		t.Errorf("grids %v and %v, want %v", grid(all[0]), grid(all[1]), want)
	}
	o.LambdaP = []float64{1, 0.1, 1}
	all, err = SweepSizes(t.Context(), a, []int{20, 60}, y, o, draw)
	if err == nil || len(all) != 1 || !slices.Equal(grid(all[0]), []float64{0.1, 1}) {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := SweepSizes(t.Context(), a, []int{20}, y, &Options{LambdaP: []float64{}}, draw); err == nil {
		t.Error("an empty grid is swept")
	}
}
