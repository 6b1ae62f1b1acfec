package datasets

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/base/safe"
)

// columnFaults counts the cells of a column that are not numbers, and keeps the first missing cell and the first word
// for the error.
type columnFaults struct {
	missingCells, wordCells int
	missing, word           *ParseError     // errors of the first missing cell and of the first word
	firstWord               string          // text of the first word
	distinctWords           map[string]bool // the distinct words, maxCategories+1 at most
	isDate                  bool            // the first word is a date or a time of day
	dates                   *dateReader     // has read the words up to the first one that is not a date or time
	dateErr                 error           // error of that word; nil if all words are dates or times
	negatives               int             // number of amounts in parentheses
	// groupedErr is the error of the first number with separators of thousands. It applies if the column has no amounts
	// in parentheses.
	groupedErr error
}

// faultsOf returns the faults of column j.
func (c *Table) faultsOf(j int) *columnFaults {
	if c.faults[j] == nil {
		c.faults[j] = &columnFaults{}
	}
	return c.faults[j]
}

func (f *columnFaults) addMissing(fault *ParseError) {
	f.missingCells++
	f.missing = cmp.Or(f.missing, fault)
}

// noteMissing records a missing cell of a feature.
func (c *Table) noteMissing(line, j int, cell string) {
	if c.report.Missing++; !c.o.KeepMissing {
		_, err := parseFinite(cell)
		c.faultsOf(j).addMissing(c.cellFault(line, j, err))
	}
}

// noteNonNumber records a cell of a feature that is not a number. It returns an error if no flag of the command can
// repair the fault.
func (c *Table) noteNonNumber(line, j int, cell string) error {
	if isMissing(cell) {
		c.noteMissing(line, j, cell)
		return nil
	}
	_, err := parseFinite(cell)
	if c.header != nil && cell == c.header[j] {
		err = fmt.Errorf("%w: the header again? remove the line", err)
	}
	form := localForm(cell)
	isTime := dateForm.MatchString(cell) || clockForm.MatchString(cell)
	// If Dim is given, the columns to drop have been chosen already.
	if !isWord(cell) || c.o.Dim > 0 || c.header != nil && cell == c.header[j] || form != "" && !isTime {
		return c.cellFault(line, j, err)
	}
	f := c.faultsOf(j)
	if f.wordCells++; f.word == nil {
		f.word, f.firstWord, f.isDate = c.cellFault(line, j, err), strings.Clone(cell), isTime
		f.distinctWords, f.dates = map[string]bool{}, &dateReader{}
	}
	if f.dateErr == nil {
		_, f.dateErr = f.dates.parseCell(cell)
	}
	if len(f.distinctWords) <= maxCategories {
		f.distinctWords[strings.Clone(cell)] = true
	}
	return nil
}

// faultError returns one error for all cells that are not numbers; nil if there are none. It shows the first such cell,
// the faults of each column, and the flags that repair them. If most values of a column are numbers, its words are
// faulty cells, and the column is not proposed as a categorical one. In a categorical column a missing cell is a value
// like any other.
func (c *Table) faultError() error {
	if err := c.reportAmounts(); err != nil || len(c.faults) == 0 {
		return err
	}
	var wordColumns []string
	var missingColumns []int
	var r remedies
	missingCells := 0
	for _, j := range slices.Sorted(maps.Keys(c.faults)) {
		f, flags, text := c.faults[j], &r.drop, c.columnName(j) // flags is the list of the flag that repairs column j
		switch {
		case f.missingCells == c.rows && c.rows > 1 && j != c.target && c.o.Dim == 0:
			text += " has no value"
		case f.wordCells == 0: // only missing cells
			missingColumns, missingCells = append(missingColumns, j), missingCells+f.missingCells
			continue
		case c.booleanLine[j] == 0 && 2*f.wordCells <= c.rows-f.missingCells || c.rows == 1: // most values are numbers
			if f.wordCells > 1 {
				f.word.Reason += fmt.Sprintf(", and %d cells more of the column", f.wordCells-1)
			}
			return f.word
		case f.isDate:
			text += " has dates or times"
			if err := cmp.Or(f.dateErr, f.dates.decideOrder(noCodes)); err != nil {
				text += fmt.Sprintf(", which --dates cannot read: %v", err)
			} else if f.wordCells+f.missingCells < c.rows {
				text += " and numbers"
			} else if c.o.Space == nil {
				text += fmt.Sprintf(" (--drop %s leaves them out)", safe.Shell(joinNames([]string{c.flagName(j)})))
				flags, r.impute = &r.dates, r.impute || f.missingCells > 0
			}
		default:
			text += fmt.Sprintf(" has words (%d, such as %s)", len(f.distinctWords), quote(f.firstWord))
			if len(f.distinctWords) <= min(maxCategories, max(maxGuessedClasses, c.rows/minRowsPerClass)) {
				flags = &r.categorical
			}
		}
		wordColumns, *flags = append(wordColumns, text), append(*flags, c.flagName(j))
	}

	pe := &ParseError{File: c.s.name}
	var reason []string
	if len(wordColumns) > 0 {
		reason = append(reason, "columns that are no numbers: "+listed(wordColumns))
	}
	if len(missingColumns) > 0 && (missingCells == 1 || wordColumns == nil) {
		j := slices.MinFunc(missingColumns, func(a, b int) int {
			return cmp.Or(c.faults[a].missing.Line-c.faults[b].missing.Line, a-b)
		})
		pe = c.faults[j].missing
		reason = append(reason, pe.Reason)
	}
	if missingCells > 1 {
		slices.SortStableFunc(missingColumns, func(a, b int) int { // in descending order
			return c.faults[b].missingCells - c.faults[a].missingCells
		})
		var columnCounts []string
		for _, j := range missingColumns {
			columnCounts = append(columnCounts, fmt.Sprintf("%s %d", c.columnName(j), c.faults[j].missingCells))
		}
		reason = append(reason, fmt.Sprintf("in %d rows %d cells are missing: %s", c.rows, missingCells,
			listed(columnCounts)))
	}
	r.impute = r.impute || len(missingColumns) > 0
	pe.Reason = strings.Join(append(reason, c.addRemedies(pe, r)...), "; ")
	return pe
}

// remedies are the flags that repair the faults of a table: columns for each flag, as a flag names them.
type remedies struct {
	drop, categorical, dates []string
	impute                   bool // missing values have to be filled in
}

// addRemedies adds the flags to pe, and returns further advice for the message.
func (c *Table) addRemedies(pe *ParseError, r remedies) (notes []string) {
	f := c.faults[c.target]
	switch {
	case f != nil && f.missingCells > 0:
		notes = append(notes, "rows without a target have to be removed")
	case c.o.Space != nil:
		notes = append(notes, "coordinates have to be numbers, such as -12.5: write them so, or remove these rows")
	case c.o.Dim > 0:
		notes = append(notes, "a fit with --impute median fills them in")
	default:
		ids := c.identifiers()
		if ids != nil {
			notes = append(notes, identifierText(quoted(ids)))
		}
		pe.addFlag("--drop", append(ids, r.drop...))
		pe.addFlag("--categorical", r.categorical)
		pe.addFlag("--dates", r.dates)
		if r.impute {
			pe.addFlag("--impute", []string{"median"})
		}
	}
	if sep, _, _ := strings.Cut(c.report.Separator, " "); sep != "comma" && sep != "" {
		notes = append(notes, "cells are separated by a "+sep+" (--format separator= says otherwise)")
	}
	return notes
}

// addFlag adds a flag that repairs the fault, with the names of columns as its value.
func (e *ParseError) addFlag(flag string, names []string) {
	if len(names) == 0 {
		return
	}
	e.Flags = append(e.Flags, flag, joinNames(names))
}

// joinNames returns names of columns in the form of flags and ReadOptions.Target: a line of csv.
func joinNames(names []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(names)
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// flagName returns the name, or if necessary the number, by which a flag refers to column j.
func (c *Table) flagName(j int) string {
	if c.header != nil && c.header[j] != "" && slices.Index(c.header, c.header[j]) == j && !isIndex(c.header[j]) {
		return c.header[j]
	}
	return strconv.Itoa(j)
}
