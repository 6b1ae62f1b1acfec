package experiments

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/plots"
)

// featuresCell returns a cell with the number of features; blank if no seed ran, or if the method has no features.
func (s *sample) featuresCell() plots.Cell {
	if s.firstRun == nil || s.firstCase.S == 0 {
		return plots.Blank()
	}
	return plots.Number(float64(s.firstCase.S))
}

// numberCell returns a cell with v, blank if v is NaN.
func numberCell(v float64) plots.Cell {
	if math.IsNaN(v) {
		return plots.Blank()
	}
	return plots.Number(v)
}

// optionalCell returns a cell with *v, blank if v is nil.
func optionalCell(v *float64) plots.Cell {
	if v == nil {
		return plots.Blank()
	}
	return plots.Number(*v)
}

// ratioCell returns a cell with ours/theirs, blank if one of them is NaN or if the entry's problem is not the published
// one.
func ratioCell(e *Entry, ours, theirs float64) plots.Cell {
	if e == nil || !e.sameProblem() {
		return plots.Blank()
	}
	return numberCell(ours / theirs)
}

// iterationCells returns three cells: our iterations, the published iterations of a column, and their ratio.
func (s *sample) iterationCells(published publishedRow, column string) []plots.Cell {
	return []plots.Cell{s.iterationsCell(), published.cell(column),
		ratioCell(s.firstRun, s.medianIterations(), published.number(column))}
}

// secondsCells returns three cells: our seconds of training, the published seconds of a column, and their ratio. The
// ratio is blank if a seed did not converge.
func (s *sample) secondsCells(published publishedRow, column string) []plots.Cell {
	ratio := plots.Blank()
	if s.unconverged == nil {
		ratio = ratioCell(s.firstRun, s.trainSeconds(), published.number(column))
	}
	return []plots.Cell{numberCell(s.trainSeconds()), numberCell(published.number(column)), ratio}
}

// errorCells returns two cells: our test error and the published error of a column.
func (s *sample) errorCells(published publishedRow, column string) []plots.Cell {
	return []plots.Cell{errorCell(s.result()), published.publishedErrorCell(column)}
}

// cellWithText returns a cell with the value v that is displayed as text.
func cellWithText(v float64, text string) plots.Cell {
	return plots.Spread(v, math.NaN(), math.NaN(), text)
}

// errorCell returns the test error of a result in the form of the paper: in percent for classification, and ‖ŷ−y‖/‖y‖
// for regression. It is blank if there is no test error.
func errorCell(r *Result) plots.Cell {
	switch {
	case r == nil:
		return plots.Blank()
	case r.TestError != nil:
		return cellWithText(*r.TestError, percentText(*r.TestError))
	case r.RelErr != nil:
		return cellWithText(*r.RelErr, fmt.Sprintf("%.3g", *r.RelErr))
	}
	return plots.Blank()
}

// percentText returns a fraction as text in percent, such as "1.33 %".
func percentText(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }

// firstEntry returns the first entry for which matches returns true, or nil if there is none.
func (r *Report) firstEntry(matches func(*Entry) bool) *Entry {
	for i := range r.Entries {
		if e := &r.Entries[i]; matches(e) {
			return e
		}
	}
	return nil
}

// firstOfRow returns the first entry of a row. If the report does not have the row, it returns an empty entry.
func (r *Report) firstOfRow(row string) *Entry {
	return cmp.Or(r.firstEntry(func(e *Entry) bool { return e.Row == row }), &Entry{})
}

// publishedRow returns the row of a published table to compare with a row of the report.
func (r *Report) publishedRow(table, row string) publishedRow {
	return publishedRow{table, r.firstOfRow(row).Paper}
}

// firstRanEntry returns the first entry that ran among those of the row, or nil if there is none.
func (r *Report) firstRanEntry(row string) *Entry {
	return r.firstEntry(func(e *Entry) bool { return e.Row == row && e.Result.Ran() })
}

// rowsWithRuns returns the names of the rows with at least one entry that ran.
func (r *Report) rowsWithRuns() []string {
	return slices.DeleteFunc(r.Rows(), func(row string) bool { return r.firstRanEntry(row) == nil })
}

// appendUnique appends v to the list, unless the list already contains it.
func appendUnique[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// paperName returns the name of the table or figure in the paper, such as "Table 1" for the ID "table1". The ID must be
// a word and one digit.
func (r *Report) paperName() string {
	end := len(r.ID) - 1
	return firstUpper(r.ID[:end]) + " " + r.ID[end:]
}

// newTable returns the experiment's table without rows.
func (r *Report) newTable(caption string, heads ...string) *plots.Table {
	return &plots.Table{Title: r.paperName() + ": " + r.Title, Caption: caption, Columns: plots.ParseColumns(heads...)}
}

// caption returns text followed by the conventions of all tables, the scale, and the methods that Auto chose.
func (r *Report) caption(text string) string {
	full := text + " Iterations and training seconds: median of the seeds (least–most); all else: first seed. Ratios " +
		"only if all of the paper's training data were used. " + firstUpper(string(r.Scale)) + " scale."
	if r.Scale == Smoke {
		full += " These small problems only show that everything runs: their numbers cannot be compared with the paper's."
	}
	return full + r.autoText()
}
