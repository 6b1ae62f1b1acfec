package experiments

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/plots"
)

// sample is what the seeds of one case gave.
type sample struct {
	first      *Entry    // the first seed that ran: the one that was tested, if it did; nil if none ran
	iterations []int     // of the seeds that converged, ascending
	seconds    []float64 // of training, of the seeds that ran, ascending
	seeds      int       // planned
	ran        int       // seeds that ran
	capped     *Entry    // a seed that did not converge; nil if all did
}

// sampleOf collects the seeds of a row and a role.
func (r *Report) sampleOf(row, role string) sample {
	var s sample
	for _, e := range r.Find(row, role) {
		if x := e.Result; s.add(e, func() (int, bool) { return x.Iterations, x.Converged }) {
			s.seconds = append(s.seconds, x.Train())
			s.first = cmp.Or(s.first, e)
		}
	}
	slices.Sort(s.seconds)
	return s
}

// add counts a seed, with the iterations that it took to the tolerance if it ran, and reports whether it did; ok is
// false where it did not come so far.
func (s *sample) add(e *Entry, took func() (iterations int, ok bool)) bool {
	s.seeds++
	if !e.Result.Ran() {
		return false
	}
	s.ran++
	if k, ok := took(); ok {
		i, _ := slices.BinarySearch(s.iterations, k)
		s.iterations = slices.Insert(s.iterations, i, k)
	} else {
		s.capped = cmp.Or(s.capped, e)
	}
	return true
}

// median returns the median number of iterations, of an even number halfway between the middle two; NaN where a seed did not
// converge or none ran.
func (s sample) median() float64 {
	if s.capped != nil || len(s.iterations) == 0 {
		return math.NaN()
	}
	n := len(s.iterations)
	return float64(s.iterations[(n-1)/2]+s.iterations[n/2]) / 2
}

// needs returns what is known of the iterations to the tolerance: the median; more than were allowed
// where a seed did not converge; nothing where none ran.
func (s sample) needs() bounds {
	if s.capped != nil {
		return bounds{float64(s.capped.Result.Iterations) + 1, math.Inf(1)}
	}
	return bounds{s.median(), s.median()}
}

// text gives the iterations as "85", "85 (83–88)" for several seeds, "FAIL (1000)" in the
// paper's word where one did not converge within the iterations allowed, what else it ended
// with, and a blank where none ran; how many of the seeds these are, where it is not all.
func (s sample) text() plots.Cell {
	switch {
	case s.ran == 0:
		return plots.Blank()
	case s.capped != nil:
		how := s.capped.Result.Status
		if how.Is(pcg.MaxIterations) {
			how = "FAIL"
		}
		return plots.Text(fmt.Sprintf("%s (%d)%s", how, s.capped.Result.Iterations, s.share()))
	case s.ran < s.seeds:
		return plots.Text(s.spread() + s.share())
	case len(s.iterations) == 1:
		return plots.Number(s.median())
	}
	return plots.Text(s.spread())
}

// spread gives the iterations as "85" or "85 (83–88)".
func (s sample) spread() string {
	if len(s.iterations) == 1 {
		return fmt.Sprint(s.iterations[0])
	}
	return fmt.Sprintf("%g (%d–%d)", s.median(), s.iterations[0], s.iterations[len(s.iterations)-1])
}

// share says how many of the seeds ran where it is not all: ", 2 of 5 seeds".
func (s sample) share() string {
	if s.ran >= s.seeds {
		return ""
	}
	return fmt.Sprintf(", %d of %d seeds", s.ran, s.seeds)
}

// words gives the iterations in a sentence: "90 (85–95) iterations", "more than 1000 iterations".
func (s sample) words() string {
	switch {
	case s.capped == nil && s.ran == 0:
		return "no iterations"
	case s.capped == nil:
		return s.spread() + " iterations" + s.share()
	case s.capped.Result.Status.Is(pcg.MaxIterations):
		return fmt.Sprintf("more than %d iterations", s.capped.Result.Iterations)
	}
	return fmt.Sprintf("%d iterations without an answer (%s)", s.capped.Result.Iterations, s.capped.Result.Status)
}

// width returns s; blank where none ran.
func (s sample) width() plots.Cell {
	if s.first == nil {
		return plots.Blank()
	}
	return s.first.Case.width()
}

// width returns s; blank for a method without.
func (c Case) width() plots.Cell {
	if c.S == 0 {
		return plots.Blank()
	}
	return plots.Number(float64(c.S))
}

// train returns the median of the seconds of training; NaN if no seed ran.
func (s sample) train() float64 { return median(s.seconds) }

// result returns the first seed's result; nil if none ran.
func (s sample) result() *Result {
	if s.first == nil {
		return nil
	}
	return s.first.Result
}

// number returns a cell of v, blank for a NaN.
func number(v float64) plots.Cell {
	if math.IsNaN(v) {
		return plots.Blank()
	}
	return plots.Number(v)
}

// optional returns a cell of *v, blank for nil.
func optional(v *float64) plots.Cell {
	if v == nil {
		return plots.Blank()
	}
	return plots.Number(*v)
}

// ratio returns ours/theirs, blank where one is missing, or where the problem is not the
// published one.
func ratio(e *Entry, ours, theirs float64) plots.Cell {
	if e == nil || !e.sameProblem() || math.IsNaN(ours) || math.IsNaN(theirs) || theirs == 0 {
		return plots.Blank()
	}
	return plots.Number(ours / theirs)
}

// errorText gives an error as the paper does: per cent for classification, ‖ŷ−y‖/‖y‖ for
// regression.
func errorText(r *Result) plots.Cell {
	switch {
	case r == nil:
		return plots.Blank()
	case r.TestError != nil:
		return plots.Text(percent(*r.TestError))
	case r.RelErr != nil:
		return plots.Text(fmt.Sprintf("%.3g", *r.RelErr))
	}
	return plots.Blank()
}

func percent(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }

// publishedError gives a published error the same way.
func publishedError(table, name, column string) plots.Cell {
	v := published1(table, name, column)
	switch {
	case math.IsNaN(v):
		return plots.Blank()
	case name == "YEARMSD":
		return plots.Text(fmt.Sprintf("%.3g", v))
	}
	return plots.Text(percent(v))
}

// published returns a cell of a published table as printed; blank for a row that it does
// not have.
func publishedCell(table, name, column string) plots.Cell {
	t, err := Published(table)
	if err != nil {
		panic(err)
	}
	c, _ := lookup(t, name, column)
	return c
}

// first returns the first entry that ok accepts; nil if there is none.
func (r *Report) first(ok func(*Entry) bool) *Entry {
	for i := range r.Entries {
		if e := &r.Entries[i]; ok(e) {
			return e
		}
	}
	return nil
}

// paperOf returns the published row of a row of the report.
func (r *Report) paperOf(row string) string {
	if e := r.first(func(e *Entry) bool { return e.Row == row }); e != nil {
		return e.Paper
	}
	return ""
}

// any returns an entry of the row that ran; nil if there is none.
func (r *Report) any(row string) *Entry {
	return r.first(func(e *Entry) bool { return e.Row == row && e.Result.Ran() })
}

// ranRows returns the rows of which something ran.
func (r *Report) ranRows() []string {
	return slices.DeleteFunc(r.Rows(), func(row string) bool { return r.any(row) == nil })
}

// once appends v to a list that does not have it.
func once[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// Columns that tables share.
var (
	dataColumn  = plots.Column{Name: "data"}
	ratioColumn = plots.Column{Name: "ratio", Format: "%.2f"}
)

func seconds(name string) plots.Column  { return plots.Column{Name: name, Unit: "s", Format: "%.1f"} }
func textual(name string) plots.Column  { return plots.Column{Name: name, Align: plots.Right} }
func residual(name string) plots.Column { return plots.Column{Name: name, Format: "%.1e"} }

// caption says what holds of all tables at the report's scale.
func (r *Report) caption(text string) string {
	const how = " Iterations: median of the seeds (least–most). Seconds: of training, median. All else: first seed." +
		" Ratios only where the training data are the paper's, whole."
	s := text + how
	switch r.Scale {
	case Smoke:
		s += " Smoke scale: small problems that show that everything runs; none of the numbers says anything of the paper's."
	case Laptop:
		s += " Laptop scale."
	}
	return s
}

const curvesCaption = "The worst column's relative residual ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂, by recurrence, against the iteration; a jump up is a restart from the residual recomputed. First seed, %s scale."

// convergence returns the figure of a role's residuals against the iteration, first seeds: a
// panel for each tolerance, a line for each row.
func (r *Report) convergence(roles ...string) []Figure {
	return r.residuals(1, roles, func(row, _ string, c Case) (panel, line string) { return "τ = " + power(c.Tol), row })
}

// comparison returns the figure of several roles' residuals: a panel for each row, a line for
// each role.
func (r *Report) comparison(roles ...string) []Figure {
	return r.residuals(2, roles, func(row, role string, _ Case) (panel, line string) { return row, role })
}

// residuals returns the figure with the lines of rows and roles in the panels that at names; none if there is no line.
func (r *Report) residuals(columns int, roles []string, at func(row, role string, c Case) (panel, line string)) []Figure {
	var panels []*plots.Figure
	for _, row := range r.ranRows() {
		for _, role := range roles {
			e := r.sampleOf(row, role).first
			if e == nil || len(e.Result.History) == 0 {
				continue
			}
			title, line := at(row, role, e.Case)
			i := slices.IndexFunc(panels, func(f *plots.Figure) bool { return f.Title == title })
			if i < 0 {
				i = len(panels)
				panels = append(panels, plots.Convergence(title, e.Case.Tol))
			}
			panels[i].Series = append(panels[i].Series, plots.Series{Name: line, Y: e.Result.History})
		}
	}
	if len(panels) == 0 {
		return nil
	}
	f := panels[0]
	if len(panels) > 1 {
		f = plots.Grid(r.Title, columns, panels...)
	}
	f.Caption = fmt.Sprintf(curvesCaption, r.Scale)
	return []Figure{{r.ID + "-convergence", f}}
}

// power writes a power of ten below 1 as 10⁻³, another number as it is.
func power(v float64) string {
	exponent, ok := strings.CutPrefix(strconv.FormatFloat(v, 'e', -1, 64), "1e-")
	if !ok {
		return fmt.Sprint(v)
	}
	digits := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	return "10⁻" + strings.Map(func(c rune) rune { return digits[c-'0'] }, strings.TrimLeft(exponent, "0"))
}
