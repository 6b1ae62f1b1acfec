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

// faults are the cells of a column that are no numbers, with the first of the missing ones and of the words.
type faults struct {
	gaps, words       int
	gapLine, wordLine int
	gap, word         error
	first             string          // of the words
	values            map[string]bool // of the words, most of them
	date              bool            // the first of the words is a date or time
	dates             *dateReader     // has read the words up to the first that is no date or time
	noDate            error           // why that one is none; nil if all are
	negative          int             // amounts in parentheses
	grouped           error           // the first number with separators of thousands, wrong without amounts in parentheses
}

// fault1 returns the faults of column j.
func (c *Table) fault1(j int) *faults {
	if c.faults[j] == nil {
		c.faults[j] = &faults{}
	}
	return c.faults[j]
}

func (f *faults) missing(line int, err error) {
	if f.gaps++; f.gap == nil {
		f.gapLine, f.gap = line, err
	}
}

// noNumber notes a cell of a feature that is not a finite number, and returns an error if it is one that no flag of
// the command cures.
func (c *Table) noNumber(line, j int, cell string, nan bool) error {
	_, err := finite(cell)
	if nan || isMissing(cell) {
		if c.read.Missing++; !c.o.KeepMissing {
			c.fault1(j).missing(line, err)
		}
		return nil
	}
	if c.header != nil && cell == c.header[j] {
		err = fmt.Errorf("%w: the header again? remove the line", err)
	}
	form := localForm(cell)
	when := date.MatchString(cell) || clock.MatchString(cell)
	// Where Dim is known, so is what is dropped.
	if !isWord(cell) || c.o.Dim > 0 || c.header != nil && cell == c.header[j] || form != "" && !when {
		return c.cellFault(line, j, err)
	}
	f := c.fault1(j)
	if f.words++; f.word == nil {
		f.wordLine, f.word, f.first, f.date, f.values = line, err, strings.Clone(cell), when, map[string]bool{}
		f.dates = &dateReader{}
	}
	if f.noDate == nil {
		_, f.noDate = f.dates.read(cell)
	}
	if len(f.values) <= maxCategories {
		f.values[strings.Clone(cell)] = true
	}
	return nil
}

// fault returns an error with the first of the cells that are no numbers, what is wrong with which columns, and the
// flags that cure it; nil if there are none. A few words among numbers are no column of words, in which a missing cell
// is a value like any other.
func (c *Table) fault() error {
	if err := c.amountsFault(); err != nil || len(c.faults) == 0 {
		return err
	}
	var words, drop, code, dates []string
	var gaps []int // columns
	total, fill := 0, false
	for _, j := range slices.Sorted(maps.Keys(c.faults)) {
		f, flags, text := c.faults[j], &drop, c.name(j)
		switch {
		case f.gaps == c.rows && c.rows > 1 && j != c.target && c.o.Dim == 0:
			text += " has no value"
		case f.words == 0:
			gaps, total = append(gaps, j), total+f.gaps
			continue
		case c.booleans[j] == 0 && 2*f.words <= c.rows-f.gaps || c.rows == 1:
			if f.words > 1 {
				f.word = fmt.Errorf("%w, and %d cells more of the column", f.word, f.words-1)
			}
			return c.cellFault(f.wordLine, j, f.word)
		case f.date:
			text += " has dates or times"
			if err := cmp.Or(f.noDate, f.dates.settle(noCodes)); err != nil {
				text += fmt.Sprintf(", which --dates cannot read: %v", err)
			} else if f.words+f.gaps < c.rows {
				text += " and numbers"
			} else {
				text += fmt.Sprintf(" (--drop %s leaves them out)", safe.Shell(joinNames([]string{c.flagName(j)})))
				flags, fill = &dates, fill || f.gaps > 0
			}
		default:
			text += fmt.Sprintf(" has words (%d, such as %s)", len(f.values), quote(f.first))
			if len(f.values) <= min(maxCategories, max(maxGuess, c.rows/rowsPerGuess)) {
				flags = &code
			}
		}
		words, *flags = append(words, text), append(*flags, c.flagName(j))
	}
	pe := &ParseError{File: c.s.name}
	var reason []string
	if len(words) > 0 {
		reason = append(reason, "columns that are no numbers: "+listed(words))
	}
	if len(gaps) > 0 && (total == 1 || words == nil) {
		j := slices.MinFunc(gaps, func(a, b int) int { return cmp.Or(c.faults[a].gapLine-c.faults[b].gapLine, a-b) })
		f := c.faults[j]
		pe, _ = c.cellFault(f.gapLine, j, f.gap).(*ParseError)
		if j == c.target {
			pe, _ = c.s.Fault(f.gapLine, 0, "%v", f.gap).(*ParseError)
		}
		reason = append(reason, pe.Reason)
	}
	if total > 1 {
		slices.SortStableFunc(gaps, func(a, b int) int { return c.faults[b].gaps - c.faults[a].gaps }) // most first
		var each []string
		for _, j := range gaps {
			each = append(each, fmt.Sprintf("%s %d", c.name(j), c.faults[j].gaps))
		}
		reason = append(reason, fmt.Sprintf("in %d rows %d cells are missing: %s", c.rows, total, listed(each)))
	}
	pe.Reason = strings.Join(append(reason, c.remedy(pe, fill || len(gaps) > 0, drop, code, dates)...), "; ")
	return pe
}

// remedy sets the flags that cure the fault, and returns what else there is to say.
func (c *Table) remedy(pe *ParseError, gaps bool, drop, code, dates []string) (more []string) {
	f := c.faults[c.target]
	switch {
	case f != nil && f.gaps > 0:
		more = append(more, "rows without a target have to be removed")
	case c.o.Dim > 0:
		more = append(more, "a fit with --impute median fills them in")
	default:
		ids := c.identifiers()
		if ids != nil {
			more = append(more, identifierText(quoted(ids)))
		}
		pe.add("--drop", append(ids, drop...))
		pe.add("--categorical", code)
		pe.add("--dates", dates)
		if gaps {
			pe.add("--impute", []string{"median"})
		}
	}
	if sep, _, _ := strings.Cut(c.read.Separator, " "); sep != "comma" && sep != "" {
		more = append(more, "cells are separated by a "+sep+" (--separator says otherwise)")
	}
	return more
}

// add adds a flag that cures the fault, with names of columns as a flag takes them.
func (e *ParseError) add(flag string, names []string) {
	if len(names) == 0 {
		return
	}
	e.Flags = append(e.Flags, flag, joinNames(names))
}

// joinNames returns names of columns as flags and ReadOptions.Target take them: a line of csv.
func joinNames(names []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(names)
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// flagName names column j for a flag.
func (c *Table) flagName(j int) string {
	if c.header != nil && c.header[j] != "" && slices.Index(c.header, c.header[j]) == j && !isIndex(c.header[j]) {
		return c.header[j]
	}
	return strconv.Itoa(j)
}
