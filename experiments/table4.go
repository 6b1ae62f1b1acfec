package experiments

import (
	"fmt"
	"math"
	"strings"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/plots"
)

// plainRole is conjugate gradients without a preconditioner.
const plainRole = "no preconditioner"

// failAfter is the paper's rule: FAIL after 1000 iterations.
const failAfter = 1000

func table4Plan(scale Scale) []Entry {
	var out []Entry
	for _, w := range rowsOf("table4", scale) {
		if !w.auto {
			c := w.solve(krrlab.CG)
			c.MaxIter = failAfter
			e := w.entry(plainRole, c, "table4", "cg_iterations")
			if e.Expect == 0 {
				e.Expect = failAfter
			}
			out = append(out, e)
		}
		out = append(out, w.proposed("table4", "proposed_iterations")...)
	}
	return out
}

func table4Table(r *Report) *plots.Table {
	t := r.newTable(
		r.caption("FAIL, as in the paper: the tolerance, 10⁻³ for classification and 10⁻⁵ for regression, "+
			"was not reached in 1000 iterations; the residual and the error are then those of the answer after them."),
		"data", "CG iterations :", "published :", "ratio %.2f", "CG time (s) %.1f",
		"published (s) %.1f", "ratio %.2f", "CG residual %.1e", "CG error :", "s", "iterations :", "published :",
		"ratio %.2f", "time (s) %.1f", "published (s) %.1f", "ratio %.2f", "error :", "CG/proposed :")
	for _, row := range r.ranRows() {
		a, b, p := r.sampleOf(row, plainRole), r.oursOf(row), r.printed("table4", row)
		var plain plots.Cell
		if x := a.result(); x != nil {
			plain = optional(x.residual())
		}
		t.Add(row, a.besideIterations(p, "cg_iterations"), a.besideSeconds(p, "cg_time"), plain, errorText(a.result()),
			b.width(), b.besideIterations(p, "proposed_iterations"), b.besideSeconds(p, "proposed_time"),
			errorText(b.result()), timesMore(a, b))
	}
	return t
}

// table4Plot returns the residuals of both against the iteration, a panel for each row; none if there is no line.
func table4Plot(r *Report) *plots.Figure {
	var panels []*plots.Figure
	for _, row := range r.ranRows() {
		f := plots.Convergence(row, r.any(row).Case.Tol)
		for _, role := range []string{proposed, plainRole} {
			if e := r.sampleOf(row, role).first; e != nil && len(e.Result.History) > 0 {
				f.Series = append(f.Series, plots.Series{Name: role, Y: e.Result.History})
			}
		}
		if len(f.Series) > 0 {
			panels = append(panels, f)
		}
	}
	if len(panels) == 0 {
		return nil
	}
	f := plots.Grid(r.Title, 2, panels...)
	f.Caption = fmt.Sprintf("The worst column's relative residual ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂, by recurrence, against the "+
		"iteration; a jump up is a restart from the residual recomputed. First seed, %s scale.", r.Scale)
	return f
}

// timesMore returns how many times the iterations of b those of a are; a lower bound of it where
// a did not converge.
func timesMore(a, b *sample) plots.Cell {
	if s := b.median(); math.IsNaN(s) {
		return plots.Blank()
	} else if a.capped != nil {
		least := float64(a.capped.Result.Iterations) / s
		return plots.Spread(math.NaN(), least, math.Inf(1), fmt.Sprintf("≥ %.1f", least))
	}
	q := a.median() / b.median()
	if math.IsNaN(q) {
		return plots.Blank()
	}
	return plots.Spread(q, q, q, fmt.Sprintf("%.1f", q))
}

// severalTimes is what "several times the iterations" is taken to mean.
const severalTimes = 3

func table4Verdicts(r *Report) []Verdict {
	j := evidence{claim: fmt.Sprintf("plain CG needs several (at least %d) times the iterations on MNIST, ADULT and "+
		"IJCNN1", severalTimes)}
	for _, name := range []string{"MNIST", "ADULT", "IJCNN1"} {
		a, b := r.published(name, plainRole), r.published(name, proposed)
		if a == nil || b == nil {
			j.missing(name)
			continue
		}
		x, y := r.sampleOf(a.Row, plainRole), r.sampleOf(b.Row, proposed)
		with := y.needs()
		j.add(not(below(x.needs(), bounds{severalTimes * with.lo, severalTimes * with.hi})), "%s %s against %s", name,
			x.words(), strings.TrimSuffix(y.words(), " iterations"))
	}
	plain := r.iterationsAgree("iterations of plain CG", r.beside(plainRole, "cg_iterations"))
	with := r.iterationsAgree("iterations of table 4", r.beside(proposed, "proposed_iterations"))
	return []Verdict{j.verdict(), plain, with}
}
