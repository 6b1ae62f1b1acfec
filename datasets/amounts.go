package datasets

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// inParentheses matches a negative amount as accountants write it.
var inParentheses = regexp.MustCompile(`^\(\s*([^()]+?)\s*\)$`)

// amount returns the number of a text such as (3.00), which is negative, or (1,234.50) or 1,234.50, whose separators
// leave no doubt; ok is false for all others, plain numbers too.
func amount(text string) (v float64, negative, ok bool) {
	if len(text) > maxQuoted {
		return 0, false, false
	}
	if m := inParentheses.FindStringSubmatch(text); m != nil {
		text, negative = m[1], true
		if strings.ContainsAny(text, "+-") {
			return 0, false, false
		}
	}
	v, err := parse(text)
	if err != nil {
		number, certain := ungrouped(text)
		if !certain {
			return 0, false, false
		}
		v, _ = parse(number)
	} else if !negative {
		return 0, false, false
	}
	if negative {
		v = 0 - v
	}
	return v, negative, isFinite(v)
}

// ungrouped returns a number without its separators of thousands, "" for other texts. It is certain that they are such
// separators, and no decimal point or comma, if there are several or another character comes before the decimals.
func ungrouped(text string) (number string, certain bool) {
	m := thousands.FindStringSubmatch(text)
	if m == nil || strings.Trim(m[4], "0123456789"+m[2]) != "" {
		return "", false
	}
	if number = m[1] + m[3] + strings.ReplaceAll(m[4], m[2], ""); m[5] == "" {
		return number, m[4] != ""
	}
	return number + "." + m[5], !strings.HasSuffix(text, m[2]+m[5])
}

// amount notes a cell of column j that is an amount, and reports whether it is one. Whether the column has amounts in
// parentheses is not known before its end.
func (c *Table) amount(line, j int, text string) (v float64, ok bool) {
	v, negative, ok := amount(text)
	if !ok {
		return 0, false
	}
	f := c.fault1(j)
	if negative {
		f.negative++
	} else if f.grouped == nil {
		_, err := finite(text)
		f.grouped = c.cellFault(line, j, err)
	}
	return v, true
}

// amountsFault notes which columns have amounts in parentheses, forgets those that have no other fault, and returns the
// first number with separators of thousands of another column.
func (c *Table) amountsFault() error {
	for _, j := range slices.Sorted(maps.Keys(c.faults)) {
		switch f := c.faults[j]; {
		case f.negative == 0 && f.grouped != nil:
			return f.grouped
		case f.negative > 0 && f.words == 0:
			c.read.note("%s: amounts in parentheses, in %d rows, are read as negative", c.name(j), f.negative)
			if f.gaps == 0 {
				delete(c.faults, j)
			}
		}
	}
	return nil
}

// amounts replaces the answers by plain numbers if all of them are numbers and some are amounts in parentheses, and
// returns in how many rows they are.
func (a *answers) amounts() (rows int) {
	texts, negatives := make([]string, len(a.texts)), make([]bool, len(a.texts))
	for k, text := range a.texts {
		if texts[k] = text; isWord(text) {
			v, negative, ok := amount(text)
			if !ok {
				return 0
			}
			texts[k], negatives[k] = strconv.FormatFloat(v, 'g', -1, 64), negative
		}
	}
	for _, k := range a.code {
		if negatives[k] {
			rows++
		}
	}
	if rows > 0 {
		a.texts = texts
	}
	return rows
}
