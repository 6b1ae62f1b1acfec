package experiments

import (
	"fmt"
	"math"
	"strings"

	"github.com/krrlab/lab/experiments/baseline"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/plots"
)

// admmRole is block ADMM on random features.
const admmRole = "admm"

// admmMost is the most iterations of ADMM; the paper does not say how many it took.
const admmMost = 400

// table3Plan runs ADMM with hinge loss, for regression square loss, on a quarter of n random
// features, the s printed where n is the paper's, and Algorithm 1 as in table 1.
func table3Plan(scale Scale) []Entry {
	var out []Entry
	for _, w := range rowsOf("table3", scale) {
		c := w.solve(krrlab.AutoSolver)
		c.Method, c.S, c.Loss, c.Tol, c.MaxIter = ADMM, w.width("table3", "admm_s"), baseline.Hinge, 1e-3, admmMost
		if (printed{"table3", w.paper}).cell("admm_s").IsBlank() { // the paper's rule
			c.S = w.points() / 4
		}
		if w.tol() < 1e-3 {
			c.Loss = baseline.Square
		}
		out = append(out, w.entry(admmRole, c, "", ""))
		out = append(out, w.entry(proposed, w.pcg(w.width("table1", "s"), 1), "table1", "iterations"))
	}
	return out
}

func table3Table(r *Report) *plots.Table {
	t := r.newTable(
		r.caption("ADMM: hinge loss, for regression square loss, as many random features as s says, at most "+
			"400 iterations, fewer where its residuals are within 10⁻³; gap is what its objective may be above its "+
			"minimum, relative, by a dual bound, 1 where nothing is known. ρ is the one of "+
			strings.Trim(fmt.Sprint(rhoGrid), "[]")+
			fmt.Sprintf(" with the least objective after %d iterations; the seconds are without those of choosing it. ",
				rhoTrial)+
			"Proposed: as in table 1."),
		"data", "ADMM s", "published", "ρ", "iterations :", "gap %.1e", "ADMM time (s) %.1f",
		"published (s) %.1f", "ratio %.2f", "ADMM error :", "published :", "proposed time (s) %.1f",
		"published (s) %.1f", "ratio %.2f", "proposed error :", "published :")
	for _, row := range r.ranRows() {
		a, b, p := r.sampleOf(row, admmRole), r.sampleOf(row, proposed), r.printed("table3", row)
		var rho, iterations, gap any
		if x := a.result(); x != nil {
			rho, iterations, gap = x.value("rho"), x.Iterations, x.value("gap")
		}
		t.Add(row, a.width(), p.cell("admm_s"), rho, iterations, gap, a.besideSeconds(p, "admm_time"),
			a.besideError(p, "admm_error"), b.besideSeconds(p, "proposed_time"), b.besideError(p, "proposed_error"))
	}
	return t
}

func table3Verdicts(r *Report) []Verdict {
	j := evidence{claim: fmt.Sprintf("the method's error is below that of ADMM on random features after at most %d "+
		"iterations", admmMost)}
	for _, row := range r.ranRows() {
		x, y := r.sampleOf(row, admmRole).result(), r.sampleOf(row, proposed).result()
		// Stand-ins are not what the paper claims it of.
		if r.Scale == Smoke || r.printed("", row).row == "" || math.IsNaN(x.Error()) || math.IsNaN(y.Error()) {
			continue
		}
		j.on = append(j.on, row)
		text := fmt.Sprintf("%s %v against ADMM's %v", row, errorText(y), errorText(x))
		if gap, ok := x.Values["gap"]; ok && !x.Converged {
			text += fmt.Sprintf(" (gap %.2g)", gap)
		}
		if !y.Converged {
			j.add(Open, "%s did not converge", row)
			continue
		}
		j.add(known(y.Error() < x.Error()), "%s", text)
	}
	return []Verdict{j.verdict()}
}
