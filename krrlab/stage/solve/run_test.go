package solve

import (
	"math"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// TestCorrectStatus checks how the checked rows, and the rounding bound of the residual, change the status of an
// answer. Up to bound.MaxResidualRows points, all rows are checked, and the factor for the sampling error is 1; beyond
// it
// is 1.15. The residuals are relative, for τ = 10⁻³.
func TestCorrectStatus(t *testing.T) {
	column := func(v float64) []float64 { return []float64{v} }
	for _, n := range []int{bound.MaxResidualRows, bound.MaxResidualRows + 1} {
		task := &System{Train: &datasets.Dataset{X: points.NewDense(n, 2, nil)}, Tol: 1e-3}
		root := math.Sqrt(float64(n))
		for _, c := range []struct {
			sol  Solution
			want pcg.Status
		}{
			{Solution{Outcome: Outcome{Status: pcg.Converged},
				Residuals: Residuals{TrueResiduals: column(0)}}, pcg.Converged}, // no rows were checked
			{Solution{Outcome: Outcome{Status: pcg.Converged},
				Residuals: Residuals{TrueResiduals: column(0), StorageResiduals: column(0.8e-3), SampledResiduals: column(1)}}, pcg.Converged},
			{Solution{Outcome: Outcome{Status: pcg.Converged},
				Residuals: Residuals{TrueResiduals: column(0), StorageResiduals: column(1.1e-3), SampledResiduals: column(1)}}, pcg.Inaccurate},
			{Solution{Residuals: Residuals{TrueResiduals: column(0), StorageResiduals: column(0),
				SampledResiduals: column(0)}}, pcg.Active}, // the iteration did not end at its tolerance
			{Solution{Outcome: Outcome{Status: pcg.Inaccurate},
				Residuals: Residuals{TrueResiduals: column(1e-5), Roundings: column(8e-3)}}, pcg.Undecided},
			{Solution{Outcome: Outcome{Status: pcg.Inaccurate},
				Residuals: Residuals{TrueResiduals: []float64{1e-5, 0}, Roundings: []float64{2e-3, 0.9e-3 * root}}}, pcg.Undecided},
			{Solution{Outcome: Outcome{Status: pcg.Inaccurate},
				Residuals: Residuals{TrueResiduals: []float64{1e-5, 0}, Roundings: []float64{2e-3, 1.1e-3 * root}}}, pcg.Inaccurate},
			{Solution{Outcome: Outcome{Status: pcg.Inaccurate},
				Residuals: Residuals{TrueResiduals: column(1.1e-3), Roundings: column(1e-9)}}, pcg.Inaccurate},
			{Solution{Outcome: Outcome{Status: pcg.Inaccurate},
				Residuals: Residuals{TrueResiduals: column(math.NaN()), Roundings: column(1e-9)}}, pcg.Inaccurate},
			{Solution{Outcome: Outcome{Status: pcg.Inaccurate},
				Residuals: Residuals{TrueResiduals: column(1e-5)}}, pcg.Inaccurate}, // no rounding is known
			{Solution{Outcome: Outcome{Status: pcg.Stagnated},
				Residuals: Residuals{TrueResiduals: column(1e-5), Roundings: column(2e-3)}}, pcg.Stagnated},
		} {
			sol := c.sol
			if (&run{System: task, sol: &sol}).correctStatus(); sol.Status != c.want {
				t.Errorf("%+v: %v, want %v", c.sol, sol.Status, c.want)
			}
		}
	}
}

// TestRowsMeet checks that an answer is accepted by the smaller of two bounds: the residual with the stored K plus its
// estimated error, or the sampled residual, each with its sampling error.
func TestRowsMeet(t *testing.T) {
	const tau = 1e-3
	for _, c := range []struct {
		n      int
		stored float64 // true residual with K̃, in units of τ
		// storage and sampled are Residuals.StorageResiduals and SampledResiduals in units of τ.
		storage, sampled float64
		want             bool
	}{
		{1000, 0.5, 0.42, 9, true}, {1000, 0.5, 0.45, 9, false}, {1000, 0.99, 9, 0.86, true},
		{1000, 0.99, 9, 0.88, false},
		{1000, 0.5, math.NaN(), math.NaN(), false}, {200, 0.5, 0.49, 9, true}, {200, 0.5, 0.51, 9, false},
	} {
		residuals := Residuals{TrueResiduals: []float64{0, c.stored * tau}, StorageResiduals: []float64{0, c.storage * tau},
			SampledResiduals: []float64{0, c.sampled * tau}}
		s := &run{System: &System{Train: &datasets.Dataset{X: points.NewDense(c.n, 1, nil)}, Tol: tau},
			sol: &Solution{Residuals: residuals}}
		testkit.Equal(t, s.rowsMeet(tau), c.want, c, !c.want)
	}
}
