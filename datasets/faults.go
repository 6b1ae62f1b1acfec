package datasets

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/base/safe"
)

// columnFaults counts the cells of a column that are not numbers, and keeps the first missing cell and the first word
// for the error.
type columnFaults struct {
	missingCells, wordCells int
	firstMissing            *ParseError     // error of the first missing cell
	firstWord               *ParseError     // error of the first word
	firstWordText           string          // text of the first word
	distinctWords           map[string]bool // the distinct words, maxCategories+1 at most
	startsWithDate          bool            // the first word is a date or a time of day
	dates                   *dateReader     // has read the words up to the first one that is not a date or time
	dateErr                 error           // error of the first such word; nil if all words are dates or times
	parenthesizedCells      int             // number of amounts in parentheses
	// groupedErr is the error of the first number with thousands separators. It applies if the column has no amounts in
	// parentheses.
	groupedErr error
}

// faultsOf returns the faults of column j.
func (t *Table) faultsOf(j int) *columnFaults {
	if t.columns[j].faults == nil {
		t.columns[j].faults = &columnFaults{}
	}
	return t.columns[j].faults
}

// addMissing counts a missing cell, whose error is fault.
func (f *columnFaults) addMissing(fault *ParseError) {
	f.missingCells++
	f.firstMissing = cmp.Or(f.firstMissing, fault)
}

// recordMissing records a missing cell of a feature.
func (t *Table) recordMissing(line, j int, cell string) {
	if t.report.Missing++; !t.options.KeepMissing {
		_, err := parseFinite(cell)
		t.faultsOf(j).addMissing(t.cellFault(line, j, err))
	}
}

// recordNonNumber records a cell of a feature that is not a number. It returns an error if no flag of the command can
// repair the fault.
func (t *Table) recordNonNumber(line, j int, cell string) error {
	if isMissing(cell) {
		t.recordMissing(line, j, cell)
		return nil
	}
	_, err := parseFinite(cell)
	if t.header != nil && cell == t.header[j] {
		err = fmt.Errorf("%w: the header again? remove the line", err)
	}
	form := localFormAdvice(cell)
	isDateOrTime := dateForm.MatchString(cell) || clockForm.MatchString(cell)
	// If Dim is given, the columns to drop have been chosen already.
	if !isWord(cell) || t.options.Dim > 0 || t.header != nil && cell == t.header[j] || form != "" && !isDateOrTime {
		return t.cellFault(line, j, err)
	}
	f := t.faultsOf(j)
	if f.wordCells++; f.firstWord == nil {
		f.firstWord, f.firstWordText, f.startsWithDate = t.cellFault(line, j, err), strings.Clone(cell), isDateOrTime
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
// the faults of each column, and the flags that repair them.
func (t *Table) faultError() error {
	if err := t.reportAmounts(); err != nil {
		return err
	}
	var wordColumns []string
	var missingColumns []int
	var flags remedies
	missingCells := 0
	for j := range t.columns {
		f := t.columns[j].faults
		switch {
		case f == nil:
			continue
		case f.wordCells == 0 && !t.isEmptyColumn(j): // some cells are missing, and the others are numbers
			missingColumns, missingCells = append(missingColumns, j), missingCells+f.missingCells
			continue
		case f.wordCells > 0 && t.hasMostlyNumbers(j):
			if f.wordCells > 1 {
				f.firstWord.Reason += fmt.Sprintf(", and %d cells more of the column", f.wordCells-1)
			}
			return f.firstWord
		}
		wordColumns = append(wordColumns, t.columnName(j)+t.describeWords(j, &flags))
	}
	if wordColumns == nil && missingColumns == nil {
		return nil
	}

	parseErr := t.source.Fault(0, 0, "")
	var reasons []string
	if len(wordColumns) > 0 {
		reasons = append(reasons, "columns that are no numbers: "+joinLimited(wordColumns))
	}
	if len(missingColumns) > 0 && (missingCells == 1 || wordColumns == nil) {
		parseErr = t.columns[missingColumns[0]].faults.firstMissing
		for _, j := range missingColumns {
			if fault := t.columns[j].faults.firstMissing; fault.Line < parseErr.Line {
				parseErr = fault
			}
		}
		reasons = append(reasons, parseErr.Reason)
	}
	if missingCells > 1 {
		slices.SortStableFunc(missingColumns, func(a, b int) int { // in descending order
			return t.columns[b].faults.missingCells - t.columns[a].faults.missingCells
		})
		var columnCounts []string
		for _, j := range missingColumns {
			columnCounts = append(columnCounts, fmt.Sprintf("%s %d", t.columnName(j), t.columns[j].faults.missingCells))
		}
		reasons = append(reasons, fmt.Sprintf("in %d rows %d cells are missing: %s", t.rows, missingCells,
			joinLimited(columnCounts)))
	}
	flags.needsImpute = flags.needsImpute || len(missingColumns) > 0
	parseErr.Reason = strings.Join(append(reasons, t.addRemedies(parseErr, flags)...), "; ")
	return parseErr
}

// isEmptyColumn reports whether all cells of a feature are missing in the file of a fit.
func (t *Table) isEmptyColumn(j int) bool {
	return t.columns[j].faults.missingCells == t.rows && t.rows > 1 && j != t.targetColumn && t.options.Dim == 0
}

// hasMostlyNumbers reports whether most values of column j are numbers. Its words are faulty cells then, and the column
// is not proposed as a categorical one.
func (t *Table) hasMostlyNumbers(j int) bool {
	f := t.columns[j].faults
	return t.columns[j].booleanLine == 0 && 2*f.wordCells <= t.rows-f.missingCells || t.rows == 1
}

// describeWords describes the cells of a column that has no numbers, and adds the column to the flag that repairs it.
// In a categorical column a missing cell is a value like any other.
func (t *Table) describeWords(j int, flags *remedies) (text string) {
	f, flag := t.columns[j].faults, &flags.drop
	switch {
	case t.isEmptyColumn(j):
		text = " has no value"
	case f.startsWithDate:
		text = " has dates or times"
		if err := cmp.Or(f.dateErr, f.dates.decideOrder()); err != nil {
			text += fmt.Sprintf(", which --dates cannot read: %v", err)
		} else if f.wordCells+f.missingCells < t.rows {
			text += " and numbers"
		} else if t.options.Space == nil {
			text += fmt.Sprintf(" (--drop %s leaves them out)", safe.Shell(joinNames([]string{t.flagName(j)})))
			flag, flags.needsImpute = &flags.dates, flags.needsImpute || f.missingCells > 0
		}
	default:
		text = fmt.Sprintf(" has words (%d, such as %s)", len(f.distinctWords), quote(f.firstWordText))
		if len(f.distinctWords) <= min(maxCategories, max(maxGuessedClasses, t.rows/minRowsPerClass)) {
			flag = &flags.categorical
		}
	}
	*flag = append(*flag, t.flagName(j))
	return text
}

// remedies are the flags that repair the faults of a table: columns for each flag, as a flag names them.
type remedies struct {
	drop, categorical, dates []string
	needsImpute              bool // missing values have to be filled in
}

// addRemedies adds the flags to parseErr, and returns further sentences for the message.
func (t *Table) addRemedies(parseErr *ParseError, flags remedies) (advice []string) {
	switch {
	case t.targetColumn >= 0 && t.columns[t.targetColumn].faults != nil:
		advice = append(advice, "rows without a target have to be removed")
	case t.options.Space != nil:
		advice = append(advice, "coordinates have to be numbers, such as -12.5: write them so, or remove these rows")
	case t.options.Dim > 0:
		advice = append(advice, "a fit with --impute median fills them in")
	default:
		ids := t.identifiers()
		if ids != nil {
			advice = append(advice, identifierText(quoteAll(ids)))
		}
		parseErr.addFlag("--drop", append(ids, flags.drop...))
		parseErr.addFlag("--categorical", flags.categorical)
		parseErr.addFlag("--dates", flags.dates)
		if flags.needsImpute {
			parseErr.addFlag("--impute", []string{"median"})
		}
	}
	if sep := t.report.separatorName(); sep != "comma" && sep != "" {
		advice = append(advice, "cells are separated by a "+sep+" (--format separator= says otherwise)")
	}
	return advice
}

// addFlag adds a flag that repairs the fault, with the names of columns as its value.
func (e *ParseError) addFlag(flag string, names []string) {
	if len(names) == 0 {
		return
	}
	e.Flags = append(e.Flags, flag, joinNames(names))
}

// flagName returns the name, or if necessary the number, by which a flag refers to column j.
func (t *Table) flagName(j int) string {
	if t.header != nil && t.header[j] != "" && slices.Index(t.header, t.header[j]) == j && !isIndex(t.header[j]) {
		return t.header[j]
	}
	return strconv.Itoa(j)
}
