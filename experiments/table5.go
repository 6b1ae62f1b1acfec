package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/plots"
)

// Table 5 has two roles, which differ in the tolerance. coarseTol is the tolerance of coarseRole.
const (
	coarseRole = "τ = 10⁻²"
	fineRole   = "τ = 10⁻³"
	coarseTol  = 1e-2
)

// table5Plan returns the runs of the classification problems of table 1. The first seed is solved with both tolerances
// and tested. The other seeds are solved with 10⁻³ only; their iterations to 10⁻² are taken from these solves.
func table5Plan(scale Scale) []Entry {
	var out []Entry
	for _, problem := range rowsOf("table5", scale) {
		if problem.info().Task != datasets.Classification {
			continue
		}
		table := "table1"
		if strings.HasPrefix(problem.paper, "MNIST-") {
			table = "table4" // table 1 has no 200K and 300K
		}
		c := problem.pcgCase(problem.featureCount(table, "s"), 1)
		out = append(out, problem.seedEntries(fineRole, c, "table5", "tol_1e-3_iterations")...)
		c.Tol = coarseTol
		out = append(out, problem.newEntry(coarseRole, c, "table5", "tol_1e-2_iterations"))
	}
	return out
}

// coarse returns the sample for τ = 10⁻². It contains the solve with this tolerance for the first seed, and for the
// other seeds the iterations after which their solve with 10⁻³ reached it.
func (r *Report) coarse(row string) *sample {
	furtherSeeds := slices.DeleteFunc(r.Find(row, fineRole), func(e *Entry) bool { return !e.Case.CountOnly })
	return newSample(append(r.Find(row, coarseRole), furtherSeeds...), coarseTol)
}

// table5Table returns our iterations and errors for both tolerances next to the published ones.
func table5Table(r *Report) *plots.Table {
	t := r.newTable(
		r.caption("The s of table 1, λ_p = λ. Iterations to 10⁻² of all seeds but the first are those after "+
			"which their solve to 10⁻³ had every column within 10⁻²."),
		"data", "s", "10⁻²: iterations :", "published :", "ratio %.2f", "error :", "published :",
		"10⁻³: iterations :", "published :", "ratio %.2f", "error :", "published :", "error of 10⁻² − of 10⁻³ :")
	for _, row := range r.rowsWithRuns() {
		coarse, fine, published := r.coarse(row), r.sampleOf(row, fineRole), r.publishedRow("table5", row)
		if coarse.firstRun == nil || fine.firstRun == nil {
			continue
		}
		change := plots.Blank()
		if difference := coarse.result().Error() - fine.result().Error(); !math.IsNaN(difference) {
			change = cellWithText(difference, fmt.Sprintf("%+.2f %%", 100*difference))
		}
		t.Add(row, fine.firstCase.S, coarse.iterationCells(published, "tol_1e-2_iterations"),
			coarse.errorCells(published, "tol_1e-2_error"),
			fine.iterationCells(published, "tol_1e-3_iterations"), fine.errorCells(published, "tol_1e-3_error"),
			change)
	}
	return t
}

// maxErrorIncrease is the largest difference of the errors with τ = 10⁻² and with 10⁻³, as fractions of the test rows,
// for which the claim holds: 0.05 percentage points.
const maxErrorIncrease = 0.0005

// table5Verdicts judges the claims that the larger tolerance costs little accuracy, and that the iterations agree with
// the published ones.
func table5Verdicts(r *Report) []Verdict {
	judged := evidence{claim: "τ = 10⁻² costs at most 0.05 % of error against 10⁻³"}
	for _, row := range r.rowsWithRuns() {
		coarse, fine := r.coarse(row).result(), r.sampleOf(row, fineRole).result()
		difference := coarse.Error() - fine.Error()
		if r.Scale == Smoke || math.IsNaN(difference) {
			continue
		}
		if !coarse.Converged || !fine.Converged {
			judged.addRow(Open, "%s did not converge", row)
			continue
		}
		judged.basis = append(judged.basis, row)
		const rounding = 1e-12 // error of the difference of two fractions
		judged.addRow(outcomeOf(difference <= maxErrorIncrease+rounding), "%s %+.2f %%", row, 100*difference)
	}
	coarseIterations := r.iterationsVerdict("iterations to 10⁻²", func(row string) (*sample, float64) {
		return r.coarse(row), r.publishedRow("table5", row).number("tol_1e-2_iterations")
	})
	fineIterations := r.iterationsVerdict("iterations to 10⁻³", r.comparison(fineRole, "tol_1e-3_iterations"))
	return []Verdict{judged.verdict(), coarseIterations, fineIterations}
}
