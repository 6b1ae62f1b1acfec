package datasets

import (
	"regexp"
	"strconv"
	"strings"
)

// inParentheses matches a number in parentheses, the way accountants write a negative amount.
var inParentheses = regexp.MustCompile(`^\(\s*([^()]+?)\s*\)$`)

// parseAmount parses a number in a form that parseNumber does not read: in parentheses, such as (3.00), which is
// negative, or with separators of thousands that are unambiguous, such as 1,234.50 or (1,234.50). ok is false for all
// other texts, including plain numbers.
func parseAmount(text string) (v float64, negative, ok bool) {
	if len(text) > maxQuotedBytes {
		return 0, false, false
	}
	if m := inParentheses.FindStringSubmatch(text); m != nil {
		text, negative = m[1], true
		if strings.ContainsAny(text, "+-") {
			return 0, false, false
		}
	}
	v, err := parseNumber(text)
	if err != nil {
		number, certain := removeSeparators(text)
		if !certain {
			return 0, false, false
		}
		if v, err = parseNumber(number); err != nil {
			return 0, false, false
		}
	} else if !negative {
		return 0, false, false
	}
	if negative {
		v = 0 - v // not −v, which would be −0 for (0)
	}
	return v, negative, isFinite(v)
}

// removeSeparators returns a number without its separators of thousands, or "" if the text is not a number with
// separators that are all the same character. certain reports that they cannot be a decimal point or comma: there are
// several of them, or the decimals follow a different character.
func removeSeparators(text string) (number string, certain bool) {
	m := groupedNumber.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	leading, separator, secondGroup, otherGroups, decimals := m[1], m[2], m[3], m[4], m[5]
	if strings.Trim(otherGroups, "0123456789"+separator) != "" {
		return "", false
	}
	if number = leading + secondGroup + strings.ReplaceAll(otherGroups, separator, ""); decimals == "" {
		return number, otherGroups != ""
	}
	return number + "." + decimals, !strings.HasSuffix(text, separator+decimals)
}

// recordAmount parses a cell of column j as an amount, and ok reports whether it is one. It records the amount in the
// column's faults, because only the end of the file shows whether the column has amounts in parentheses.
func (t *Table) recordAmount(line, j int, text string) (v float64, ok bool) {
	v, negative, ok := parseAmount(text)
	if !ok {
		return 0, false
	}
	f := t.faultsOf(j)
	if negative {
		f.negatives++
	} else if f.groupedErr == nil {
		_, err := parseFinite(text)
		f.groupedErr = t.cellFault(line, j, err)
	}
	return v, true
}

// reportAmounts adds a note for each column that has amounts in parentheses and no words, and deletes its faults if it
// has no missing cells either. It returns the error of the first number with separators of thousands in a column
// without amounts in parentheses.
func (t *Table) reportAmounts() error {
	for j := range t.columns {
		switch f := t.columns[j].faults; {
		case f == nil:
		case f.negatives == 0 && f.groupedErr != nil:
			return f.groupedErr
		case f.negatives > 0 && f.wordCells == 0:
			t.report.note("%s: amounts in parentheses, in %d rows, are read as negative", t.columnName(j), f.negatives)
			if f.missingCells == 0 {
				t.columns[j].faults = nil
			}
		}
	}
	return nil
}

// replaceAmounts replaces amounts in the answers by plain numbers if all answers are numbers or amounts, and some are
// amounts in parentheses. It returns the number of rows with amounts in parentheses, or 0 if it replaced nothing.
func (a *answers) replaceAmounts() (rows int) {
	texts, negatives := make([]string, len(a.texts)), make([]bool, len(a.texts))
	for k, text := range a.texts {
		if texts[k] = text; isWord(text) {
			v, negative, ok := parseAmount(text)
			if !ok {
				return 0
			}
			texts[k], negatives[k] = strconv.FormatFloat(v, 'g', -1, 64), negative
		}
	}
	for _, k := range a.codes {
		if negatives[k] {
			rows++
		}
	}
	if rows > 0 {
		a.texts = texts
	}
	return rows
}
