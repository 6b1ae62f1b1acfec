package datasets

import (
	"regexp"
	"strconv"
	"strings"
)

// parenthesizedAmount matches a number in parentheses, the way accountants write a negative amount.
var parenthesizedAmount = regexp.MustCompile(`^\(\s*([^()]+?)\s*\)$`)

// parseAmount parses a number in a form that parseNumber does not read: in parentheses, such as (3.00), which is
// negative, or with unambiguous thousands separators, such as 1,234.50 or (1,234.50). isNegative reports that the
// number is in parentheses. ok is false for all other texts, including plain numbers.
func parseAmount(text string) (v float64, isNegative, ok bool) {
	if len(text) > maxQuotedBytes {
		return 0, false, false
	}
	if match := parenthesizedAmount.FindStringSubmatch(text); match != nil {
		text, isNegative = match[1], true
		if strings.ContainsAny(text, "+-") {
			return 0, false, false
		}
	}
	v, err := parseNumber(text)
	if err != nil {
		number, isUnambiguous := removeSeparators(text)
		if !isUnambiguous {
			return 0, false, false
		}
		if v, err = parseNumber(number); err != nil {
			return 0, false, false
		}
	} else if !isNegative {
		return 0, false, false
	}
	if isNegative {
		v = 0 - v // -v would be −0 for (0)
	}
	return v, isNegative, isFinite(v)
}

// removeSeparators returns a number without its thousands separators, or "" if the text is not a number with such
// separators, all of them the same character. isUnambiguous reports that the separator cannot be a decimal point or a
// decimal comma, because it occurs several times or because the decimals follow a different character.
func removeSeparators(text string) (number string, isUnambiguous bool) {
	match := groupedNumber.FindStringSubmatch(text)
	if match == nil {
		return "", false
	}
	leading, separator, secondGroup, otherGroups, decimals := match[1], match[2], match[3], match[4], match[5]
	if strings.Trim(otherGroups, "0123456789"+separator) != "" {
		return "", false
	}
	if number = leading + secondGroup + strings.ReplaceAll(otherGroups, separator, ""); decimals == "" {
		return number, otherGroups != ""
	}
	return number + "." + decimals, !strings.HasSuffix(text, separator+decimals)
}

// recordAmount parses a cell of column j as an amount, and ok reports whether it is one. The amount is recorded in the
// faults of the column, because only the end of the file shows whether the column has amounts in parentheses.
func (t *Table) recordAmount(line, j int, text string) (v float64, ok bool) {
	v, isNegative, ok := parseAmount(text)
	if !ok {
		return 0, false
	}
	faults := t.faultsOf(j)
	if isNegative {
		faults.parenthesizedCells++
	} else if faults.groupedErr == nil {
		_, err := parseFinite(text)
		faults.groupedErr = t.cellFault(line, j, err)
	}
	return v, true
}

// reportAmounts adds a note for each column that has amounts in parentheses and no words, and deletes the faults of the
// column if it has no missing cells either. It returns the error of the first number with thousands separators in a
// column without amounts in parentheses; nil if there is none.
func (t *Table) reportAmounts() error {
	for j := range t.columns {
		switch faults := t.columns[j].faults; {
		case faults == nil:
		case faults.parenthesizedCells == 0 && faults.groupedErr != nil:
			return faults.groupedErr
		case faults.parenthesizedCells > 0 && faults.wordCells == 0:
			t.report.note("%s: amounts in parentheses, in %d rows, are read as negative", t.columnName(j),
				faults.parenthesizedCells)
			if faults.missingCells == 0 {
				t.columns[j].faults = nil
			}
		}
	}
	return nil
}

// replaceAmounts replaces amounts in the answers by plain numbers if all answers are numbers or amounts, and some are
// amounts in parentheses. It returns the number of rows with amounts in parentheses, or 0 if it replaced nothing.
func (a *answers) replaceAmounts() (rows int) {
	texts, isNegative := make([]string, len(a.texts)), make([]bool, len(a.texts))
	for k, text := range a.texts {
		if texts[k] = text; isWord(text) {
			v, hasParentheses, ok := parseAmount(text)
			if !ok {
				return 0
			}
			texts[k], isNegative[k] = strconv.FormatFloat(v, 'g', -1, 64), hasParentheses
		}
	}
	for _, k := range a.textIndices {
		if isNegative[k] {
			rows++
		}
	}
	if rows > 0 {
		a.texts = texts
	}
	return rows
}
