package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/plots"
)

// Roles of table 5, which differ in the tolerance, and the larger tolerance.
const (
	coarseRole = "τ = 10⁻²"
	fineRole   = "τ = 10⁻³"
	coarseTol  = 1e-2
)

// table5Plan runs the classification problems of table 1. The first seed is solved with both tolerances and tested. The
// other seeds are solved with 10⁻³ only; their iterations to 10⁻² are taken from these solves.
func table5Plan(scale Scale) []Entry {
	var out []Entry
	for _, w := range rowsOf("table5", scale) {
		if w.info().Task != datasets.Classification {
			continue
		}
		table := "table1"
		if strings.HasPrefix(w.paper, "MNIST-") {
			table = "table4" // table 1 has no 200K and 300K
		}
		c := w.pcgCase(w.featureCount(table, "s"), 1)
		out = append(out, w.seedEntries(fineRole, c, "table5", "tol_1e-3_iterations")...)
		c.Tol = coarseTol
		out = append(out, w.newEntry(coarseRole, c, "table5", "tol_1e-2_iterations"))
	}
	return out
}

// coarse returns the sample for τ = 10⁻². It contains the solve with this tolerance for the first seed, and for the
// other seeds the iterations after which their solve with 10⁻³ reached it.
func (r *Report) coarse(row string) *sample {
	furtherSeeds := slices.DeleteFunc(r.Find(row, fineRole), func(e *Entry) bool { return !e.Case.CountOnly })
	return newSample(append(r.Find(row, coarseRole), furtherSeeds...), coarseTol)
}

func table5Table(r *Report) *plots.Table {
	t := r.newTable(
		r.caption("The s of table 1, λ_p = λ. Iterations to 10⁻² of all seeds but the first are those after "+
			"which their solve to 10⁻³ had every column within 10⁻²."),
		"data", "s", "10⁻²: iterations :", "published :", "ratio %.2f", "error :", "published :",
		"10⁻³: iterations :", "published :", "ratio %.2f", "error :", "published :", "error of 10⁻² − of 10⁻³ :")
	for _, row := range r.ranRows() {
		a, b, p := r.coarse(row), r.sampleOf(row, fineRole), r.publishedRow("table5", row)
		if a.firstRun == nil || b.firstRun == nil {
			continue
		}
		change := plots.Blank()
		if d := a.result().Error() - b.result().Error(); !math.IsNaN(d) {
			change = cellWithText(d, fmt.Sprintf("%+.2f %%", 100*d))
		}
		t.Add(row, b.firstCase.S, a.compareIterations(p, "tol_1e-2_iterations"), a.compareError(p, "tol_1e-2_error"),
			b.compareIterations(p, "tol_1e-3_iterations"), b.compareError(p, "tol_1e-3_error"), change)
	}
	return t
}

// maxErrorIncrease is the largest increase of the error by a tolerance of 10⁻² for which the claim holds: 0.05 %.
const maxErrorIncrease = 0.0005

func table5Verdicts(r *Report) []Verdict {
	j := evidence{claim: "τ = 10⁻² costs at most 0.05 % of error against 10⁻³"}
	for _, row := range r.ranRows() {
		x, y := r.coarse(row).result(), r.sampleOf(row, fineRole).result()
		d := x.Error() - y.Error()
		if r.Scale == Smoke || math.IsNaN(d) {
			continue
		}
		if !x.Converged || !y.Converged {
			j.add(Open, "%s did not converge", row)
			continue
		}
		j.basis = append(j.basis, row)
		j.add(outcomeOf(d <= maxErrorIncrease+1e-12), "%s %+.2f %%", row, 100*d)
	}
	coarse := r.iterationsAgree("iterations to 10⁻²", func(row string) (*sample, float64) {
		return r.coarse(row), r.publishedRow("table5", row).number("tol_1e-2_iterations")
	})
	fine := r.iterationsAgree("iterations to 10⁻³", r.comparison(fineRole, "tol_1e-3_iterations"))
	return []Verdict{j.verdict(), coarse, fine}
}
