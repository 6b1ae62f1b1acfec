package experiments

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/plots"
)

// width returns s; blank where none ran, and for a method without.
func (s *sample) width() plots.Cell {
	if s.first == nil || s.c.S == 0 {
		return plots.Blank()
	}
	return plots.Number(float64(s.c.S))
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
	if e == nil || !e.sameProblem() || math.IsNaN(ours) || math.IsNaN(theirs) {
		return plots.Blank()
	}
	return plots.Number(ours / theirs)
}

// besideIterations returns the iterations, those published in a column, and their ratio.
func (s *sample) besideIterations(p printed, column string) []plots.Cell {
	return []plots.Cell{s.text(), p.cell(column), ratio(s.first, s.median(), p.number(column))}
}

// besideSeconds returns the seconds of training, those published, and their ratio, none of what is no answer.
func (s *sample) besideSeconds(p printed, column string) []plots.Cell {
	q := plots.Blank()
	if s.capped == nil {
		q = ratio(s.first, s.train(), p.number(column))
	}
	return []plots.Cell{number(s.train()), number(p.number(column)), q}
}

// besideError returns the error and the one published.
func (s *sample) besideError(p printed, column string) []plots.Cell {
	return []plots.Cell{errorText(s.result()), p.error(column)}
}

// shown returns the cell of a number that is shown as a text.
func shown(v float64, text string) plots.Cell { return plots.Spread(v, math.NaN(), math.NaN(), text) }

// errorText gives an error as the paper does: per cent for classification, ‖ŷ−y‖/‖y‖ for
// regression.
func errorText(r *Result) plots.Cell {
	switch {
	case r == nil:
		return plots.Blank()
	case r.TestError != nil:
		return shown(*r.TestError, percent(*r.TestError))
	case r.RelErr != nil:
		return shown(*r.RelErr, fmt.Sprintf("%.3g", *r.RelErr))
	}
	return plots.Blank()
}

func percent(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }

// first returns the first entry that ok accepts; nil if there is none.
func (r *Report) first(ok func(*Entry) bool) *Entry {
	for i := range r.Entries {
		if e := &r.Entries[i]; ok(e) {
			return e
		}
	}
	return nil
}

// entry returns the first entry of a row, an empty one for another row.
func (r *Report) entry(row string) *Entry {
	return cmp.Or(r.first(func(e *Entry) bool { return e.Row == row }), &Entry{})
}

// printed returns what a published table has beside a row of the report.
func (r *Report) printed(table, row string) printed {
	return printed{table, r.entry(row).Paper}
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

// name is what the paper calls the table or figure: "Table 1".
func (r *Report) name() string {
	end := len(r.ID) - 1
	return firstUpper(r.ID[:end]) + " " + r.ID[end:]
}

// newTable returns the experiment's table without rows.
func (r *Report) newTable(caption string, heads ...string) *plots.Table {
	return &plots.Table{Title: r.name() + ": " + r.Title, Caption: caption, Columns: plots.Heads(heads...)}
}

// caption says what holds of all tables at the report's scale, and what auto chose.
func (r *Report) caption(text string) string {
	s := text + " Iterations: median of the seeds (least–most). Seconds: of training, median. All else: first seed." +
		" Ratios only where the training data are the paper's, whole. " + firstUpper(string(r.Scale)) + " scale."
	if r.Scale == Smoke {
		s += " Small problems that show that everything runs; none of the numbers says anything of the paper's."
	}
	return s + r.autoText()
}
