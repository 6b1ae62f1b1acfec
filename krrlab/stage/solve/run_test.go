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
// answer. Up to bound.MaxResidualRows points, all rows are checked, and the factor for the sampling error is 1; for
// more points it is 1.15. The residuals are relative, for τ = 10⁻³.
func TestCorrectStatus(t *testing.T) {
	column := func(residual float64) []float64 { return []float64{residual} } // residuals of a single column
	for _, n := range []int{bound.MaxResidualRows, bound.MaxResidualRows + 1} {
		system := &System{Train: &datasets.Dataset{X: points.NewDense(n, 2, nil)}, Tol: 1e-3}
		sqrtN := math.Sqrt(float64(n))
		for name, test := range map[string]struct {
			status     pcg.Status // status of the iteration
			residuals  Residuals
			wantStatus pcg.Status
		}{
			"no rows are checked": {pcg.Converged, Residuals{ColumnTrueResiduals: column(0)}, pcg.Converged},
			"storage residual below τ": {pcg.Converged, Residuals{ColumnTrueResiduals: column(0),
				ColumnStorageResiduals: column(0.8e-3), ColumnSampledResiduals: column(1)}, pcg.Converged},
			"storage residual above τ": {pcg.Converged, Residuals{ColumnTrueResiduals: column(0),
				ColumnStorageResiduals: column(1.1e-3), ColumnSampledResiduals: column(1)}, pcg.Inaccurate},
			"the iteration did not end at its tolerance": {pcg.Active, Residuals{ColumnTrueResiduals: column(0),
				ColumnStorageResiduals: column(0), ColumnSampledResiduals: column(0)}, pcg.Active},
			"rounding above τ": {pcg.Inaccurate, Residuals{ColumnTrueResiduals: column(1e-5),
				ColumnRoundings: column(8e-3)},
				pcg.Undecided},
			"second rounding below √n·τ": {pcg.Inaccurate, Residuals{ColumnTrueResiduals: []float64{1e-5, 0},
				ColumnRoundings: []float64{2e-3, 0.9e-3 * sqrtN}}, pcg.Undecided},
			"second rounding above √n·τ": {pcg.Inaccurate, Residuals{ColumnTrueResiduals: []float64{1e-5, 0},
				ColumnRoundings: []float64{2e-3, 1.1e-3 * sqrtN}}, pcg.Inaccurate},
			"residual above τ": {pcg.Inaccurate, Residuals{ColumnTrueResiduals: column(1.1e-3),
				ColumnRoundings: column(1e-9)},
				pcg.Inaccurate},
			"residual of NaN": {pcg.Inaccurate, Residuals{ColumnTrueResiduals: column(math.NaN()),
				ColumnRoundings: column(1e-9)},
				pcg.Inaccurate},
			"unknown rounding": {pcg.Inaccurate, Residuals{ColumnTrueResiduals: column(1e-5)}, pcg.Inaccurate},
			"stagnation": {pcg.Stagnated, Residuals{ColumnTrueResiduals: column(1e-5), ColumnRoundings: column(2e-3)},
				pcg.Stagnated},
		} {
			sol := &Solution{Outcome: Outcome{Status: test.status}, Residuals: test.residuals}
			(&run{System: system, sol: sol}).correctStatus()
			testkit.Equal(t, sol.Status, test.wantStatus, name, n)
		}
	}
}

// TestCheckedRowsMeet checks that an answer is accepted by the smaller of two bounds: the residual with the stored K
// plus its estimated error, or the sampled residual. The sampled numbers are multiplied by a factor for the sampling
// error: 1.15 for 1,000 points, and 1 for 200, of which all rows are checked.
func TestCheckedRowsMeet(t *testing.T) {
	const tau = 1e-3
	for _, test := range []struct {
		n int
		// ColumnTrueResiduals, ColumnStorageResiduals and ColumnSampledResiduals, in units of τ
		trueResidual, storageResidual, sampledResidual float64
		wantMet                                        bool
	}{
		{1000, 0.5, 0.42, 9, true}, {1000, 0.5, 0.45, 9, false},
		{1000, 0.99, 9, 0.86, true}, {1000, 0.99, 9, 0.88, false},
		{1000, 0.5, math.NaN(), math.NaN(), false}, {200, 0.5, 0.49, 9, true}, {200, 0.5, 0.51, 9, false},
	} {
		residuals := Residuals{ColumnTrueResiduals: []float64{0, test.trueResidual * tau},
			ColumnStorageResiduals: []float64{0, test.storageResidual * tau},
			ColumnSampledResiduals: []float64{0, test.sampledResidual * tau}}
		r := &run{System: &System{Train: &datasets.Dataset{X: points.NewDense(test.n, 1, nil)}, Tol: tau},
			sol: &Solution{Residuals: residuals}}
		testkit.Equal(t, r.checkedRowsMeet(tau), test.wantMet, test)
	}
}
