package tune

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/model"
)

// TestErrorCovers: the interval of an RMSE covers that of the law of the errors nearly as often as stated for few rows
// too; of one row nothing is known.
func TestErrorCovers(t *testing.T) {
	const trials = 2000
	for n, least := range map[int]float64{3: 0.85, 5: 0.89, 20: 0.90, 100: 0.92} {
		covered := 0
		for seed := range trials {
			l := &loss{rows: make([]float64, n)}
			g := rng.New(uint64(seed))
			for i := range l.rows {
				e := 3 * g.Normal(uint64(i))
				l.rows[i] = e * e
			}
			if v, lo, hi := l.Error(); lo <= 3 && 3 <= hi && lo <= v && v <= hi {
				covered++
			}
		}
		if share := float64(covered) / trials; share < least {
			t.Errorf("%d rows: %g of the intervals cover", n, share)
		}
	}
	if v, lo, hi := (&loss{rows: []float64{4}}).Error(); v != 2 || lo != 0 || !math.IsInf(hi, 1) {
		t.Errorf("of one row %g in [%g, %g]", v, lo, hi)
	}
}

// judge returns the usual judgment.
func judge(classes bool) *judgment {
	if classes {
		return &judgment{metric: model.ErrorRate}
	}
	return &judgment{metric: model.RMSE}
}
