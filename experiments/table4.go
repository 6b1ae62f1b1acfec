package experiments

import (
	"fmt"
	"math"
	"strings"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/plots"
)

// plainRole is the role of conjugate gradients without a preconditioner.
const plainRole = "no preconditioner"

// failAfter is the number of iterations after which conjugate gradients fail. It is the paper's.
const failAfter = 1000

func table4Plan(scale Scale) []Entry {
	var out []Entry
	for _, w := range rowsOf("table4", scale) {
		if !w.usesAuto {
			c := w.solverCase(krrlab.CG)
			c.MaxIter = failAfter
			e := w.newEntry(plainRole, c, "table4", "cg_iterations")
			if e.Expect == 0 {
				e.Expect = failAfter
			}
			out = append(out, e)
		}
		out = append(out, w.proposedEntries("table4", "proposed_iterations")...)
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
		a, b, p := r.sampleOf(row, plainRole), r.oursOf(row), r.publishedRow("table4", row)
		var plain plots.Cell
		if x := a.result(); x != nil {
			plain = optionalCell(x.residual())
		}
		t.Add(row, a.compareIterations(p, "cg_iterations"), a.compareSeconds(p, "cg_time"), plain,
			errorCell(a.result()), b.featuresCell(), b.compareIterations(p, "proposed_iterations"), b.compareSeconds(p, "proposed_time"),
			errorCell(b.result()), iterationRatio(a, b))
	}
	return t
}

// table4Plot draws the residuals of both methods against the iteration, with a panel for each row. It returns nil if
// there are no residuals.
func table4Plot(r *Report) *plots.Figure {
	var panels []*plots.Figure
	for _, row := range r.ranRows() {
		f := plots.Convergence(row, r.ranEntry(row).Case.Tol)
		for _, role := range []string{proposedRole, plainRole} {
			if e := r.sampleOf(row, role).firstRun; e != nil && len(e.Result.History) > 0 {
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

// iterationRatio returns a cell with the iterations of a divided by those of b. If a did not converge it is a lower
// bound; it is blank if b did not converge or one of them did not run.
func iterationRatio(a, b *sample) plots.Cell {
	if s := b.median(); math.IsNaN(s) {
		return plots.Blank()
	} else if a.unconverged != nil {
		lowerBound := float64(a.unconverged.Result.Iterations) / s
		return plots.Spread(math.NaN(), lowerBound, math.Inf(1), fmt.Sprintf("≥ %.1f", lowerBound))
	}
	q := a.median() / b.median()
	if math.IsNaN(q) {
		return plots.Blank()
	}
	return plots.Spread(q, q, q, fmt.Sprintf("%.1f", q))
}

// severalTimes is the ratio of iterations from which on they count as "several times" as many.
const severalTimes = 3

func table4Verdicts(r *Report) []Verdict {
	j := evidence{claim: fmt.Sprintf("plain CG needs several (at least %d) times the iterations on MNIST, ADULT and "+
		"IJCNN1", severalTimes)}
	for _, name := range []string{"MNIST", "ADULT", "IJCNN1"} {
		a, b := r.publishedEntry(name, plainRole), r.publishedEntry(name, proposedRole)
		if a == nil || b == nil {
			j.addMissing(name)
			continue
		}
		x, y := r.sampleOf(a.Row, plainRole), r.sampleOf(b.Row, proposedRole)
		needed := y.iterationBounds()
		several := bounds{severalTimes * needed.lo, severalTimes * needed.hi}
		j.addRow(negate(judgeLess(x.iterationBounds(), several)), "%s %s against %s", name,
			x.iterationsText(), strings.TrimSuffix(y.iterationsText(), " iterations"))
	}
	plain := r.iterationsVerdict("iterations of plain CG", r.comparison(plainRole, "cg_iterations"))
	preconditioned := r.iterationsVerdict("iterations of table 4", r.comparison(proposedRole, "proposed_iterations"))
	return []Verdict{j.verdict(), plain, preconditioned}
}
