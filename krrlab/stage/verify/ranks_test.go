package verify

import (
	"reflect"
	"sync"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// results holds all results of a Matrix for one answer.
type results struct {
	Applied, Rounding []float64
	Spectrum          *Spectrum
	Prediction        *Prediction
	Stored            bool
}

// TestRanks checks that 1, 2, 3 and 5 ranks have exactly the results of one process, whether K is stored or its rows
// are formed again for each product.
func TestRanks(t *testing.T) {
	const n, cols, lambda = 333, 2, 0.1
	for _, spec := range specs {
		for _, density := range []float64{1, 0.2} {
			for _, memory := range []int64{0, 1 << 30} {
				x, z := normalPoints(n, 5, density, 1), normalPoints(50, 5, density, 2)
				c, y := testkit.RandomPoints(3, n, cols).Data, testkit.RandomPoints(4, n, cols).Data
				verify := func(group comm.Comm) *results {
					m, err := New(t.Context(), group, spec, x, memory, nil)
					if err != nil {
						t.Error(err)
						return nil
					}
					got := &results{Stored: m.Stored}
					if got.Applied, got.Rounding, err = m.Apply(t.Context(), c, cols, lambda); err == nil {
						got.Spectrum, err = m.Cond(t.Context(), lambda, 6, rng.New(5))
					}
					if err == nil {
						r := m.Residual(got.Applied, got.Rounding, c, y, cols, lambda)
						got.Prediction, err = m.Predict(t.Context(), z, c, cols, r, lambda)
					}
					if err != nil {
						t.Error(err)
					}
					return got
				}
				want := verify(nil)
				testkit.Equal(t, want.Stored, memory > 0, "K is stored with a memory of", memory)
				for _, p := range []int{1, 2, 3, 5} {
					var wg sync.WaitGroup
					for _, group := range comm.Local(p, 0) {
						wg.Go(func() {
							if got := verify(group); !reflect.DeepEqual(got, want) {
								t.Errorf("%s, density %g, memory %d: rank %d of %d:\n%+v\none process:\n%+v", spec.Name,
									density, memory, group.Rank(), p, got, want)
							}
						})
					}
					wg.Wait()
				}
			}
		}
	}
}
