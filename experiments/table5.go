package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/plots"
)

// Roles of table 5: the tolerance.
const (
	coarseRole = "τ = 10⁻²"
	fineRole   = "τ = 10⁻³"
	coarseTol  = 1e-2
)

// table5Plan runs the classification sets of table 1 to both tolerances: with the test for
// one seed; what further seeds take to 10⁻² is read off their solves to 10⁻³.
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
		c := w.pcg(w.width(table, "s"), 1)
		out = append(out, w.seeded(fineRole, c, "table5", "tol_1e-3_iterations")...)
		c.Tol = coarseTol
		out = append(out, w.entry(coarseRole, c, "table5", "tol_1e-2_iterations"))
	}
	return out
}

// coarse returns the sample of τ = 10⁻²: the solve itself for one seed, and for the others
// where their solve to 10⁻³ passed it.
func (r *Report) coarse(row string) *sample {
	others := slices.DeleteFunc(r.Find(row, fineRole), func(e *Entry) bool { return !e.Case.CountOnly })
	return gather(append(r.Find(row, coarseRole), others...), coarseTol)
}

func table5Table(r *Report) *plots.Table {
	t := r.newTable(
		r.caption("The s of table 1, λ_p = λ. Iterations to 10⁻² of all seeds but the first are those after "+
			"which their solve to 10⁻³ had every column within 10⁻²."),
		"data", "s", "10⁻²: iterations :", "published :", "ratio %.2f", "error :", "published :",
		"10⁻³: iterations :", "published :", "ratio %.2f", "error :", "published :", "error of 10⁻² − of 10⁻³ :")
	for _, row := range r.ranRows() {
		a, b, p := r.coarse(row), r.sampleOf(row, fineRole), r.printed("table5", row)
		if a.first == nil || b.first == nil {
			continue
		}
		change := plots.Blank()
		if d := a.result().Error() - b.result().Error(); !math.IsNaN(d) {
			change = shown(d, fmt.Sprintf("%+.2f %%", 100*d))
		}
		t.Add(row, b.c.S, a.besideIterations(p, "tol_1e-2_iterations"), a.besideError(p, "tol_1e-2_error"),
			b.besideIterations(p, "tol_1e-3_iterations"), b.besideError(p, "tol_1e-3_error"), change)
	}
	return t
}

// costsAtMost is how much error a tolerance of 10⁻² may cost: 0.05 %.
const costsAtMost = 0.0005

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
		j.on = append(j.on, row)
		j.add(known(d <= costsAtMost+1e-12), "%s %+.2f %%", row, 100*d)
	}
	coarse := r.iterationsAgree("iterations to 10⁻²", func(row string) (*sample, float64) {
		return r.coarse(row), r.printed("table5", row).number("tol_1e-2_iterations")
	})
	fine := r.iterationsAgree("iterations to 10⁻³", r.beside(fineRole, "tol_1e-3_iterations"))
	return []Verdict{j.verdict(), coarse, fine}
}
