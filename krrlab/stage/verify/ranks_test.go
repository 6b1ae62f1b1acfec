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
	Product, Rounding []float64 // results of Apply
	Spectrum          *Spectrum
	Prediction        *Prediction
	IsStored          bool
}

// TestRanks checks that 1, 2, 3 and 5 ranks get exactly the results of one process, whether K is stored or its rows are
// formed again for each product.
func TestRanks(t *testing.T) {
	const n, columns, lambda = 333, 2, 0.1
	for _, spec := range specs {
		for _, density := range []float64{1, 0.2} {
			for _, memory := range []int64{0, 1 << 30} {
				x, z := normalPoints(n, 5, density, 1), normalPoints(50, 5, density, 2)
				c, y := testkit.RandomPoints(3, n, columns).Data, testkit.RandomPoints(4, n, columns).Data
				verifyAnswer := func(ranks comm.Comm) *results {
					m, err := New(t.Context(), ranks, spec, x, memory, nil)
					if err != nil {
						t.Error(err)
						return nil
					}
					r := &results{IsStored: m.Stored}
					if r.Product, r.Rounding, err = m.Apply(t.Context(), c, columns, lambda); err == nil {
						r.Spectrum, err = m.Cond(t.Context(), lambda, 6, rng.New(5))
					}
					if err == nil {
						residual := m.Residual(r.Product, r.Rounding, c, y, columns, lambda)
						r.Prediction, err = m.Predict(t.Context(), z, c, columns, residual, lambda)
					}
					if err != nil {
						t.Error(err)
					}
					return r
				}
				want := verifyAnswer(nil)
				testkit.Equal(t, want.IsStored, memory > 0, "K is stored with a memory of", memory)
				for _, rankCount := range []int{1, 2, 3, 5} {
					var wg sync.WaitGroup
					for _, ranks := range comm.Local(rankCount, 0) {
						wg.Go(func() {
							if got := verifyAnswer(ranks); !reflect.DeepEqual(got, want) {
								t.Errorf("%s, density %g, memory %d: rank %d of %d:\n%+v\none process:\n%+v", spec.Name,
									density, memory, ranks.Rank(), rankCount, got, want)
							}
						})
					}
					wg.Wait()
				}
			}
		}
	}
}
