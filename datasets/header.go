package datasets

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// missingWords are cells that stand for a missing value.
var missingWords = []string{"NA", "N/A", "n/a", "na", "null", "NULL", "None", "none", "missing", "?", "-", "."}

func isMissing(cell string) bool { return cell == "" || slices.Contains(missingWords, cell) }

// begin looks at the first record and reports whether it is a header.
func (c *csvReader) begin(record []string, line int) (header bool, err error) {
	first := make([]string, len(record))
	for j, cell := range record {
		first[j] = strings.TrimSpace(cell)
	}
	c.width = len(first)
	named := false
	if c.target, named, err = targetColumn(c.o, first); err != nil {
		return false, c.s.fail(line, 0, "%v", err)
	}
	if header, err = c.isHeader(first, line, named); err != nil {
		return false, err
	}
	if header {
		c.header = first
	}
	if c.width == 1 && c.target == 0 {
		return false, c.s.fail(line, 0, "one column only: no features beside the target")
	}
	return header, nil
}

// isHeader tells a header from a row of data: it has the target's name, or no number. A
// row in which only the target is no number is data, as is one of missing values alone; a
// row of words and numbers is an error, as it might be either.
func (c *csvReader) isHeader(first []string, line int, named bool) (bool, error) {
	if named {
		return true, nil
	}
	firstWord, firstNumber, missing := -1, -1, true
	for j, cell := range first {
		_, err := strconv.ParseFloat(cell, 64)
		switch {
		case !errors.Is(err, strconv.ErrSyntax):
			if firstNumber < 0 {
				firstNumber = j
			}
		case j != c.target:
			if firstWord < 0 {
				firstWord = j
			}
			if decimalComma(cell) != "" {
				_, err := number(cell)
				return false, c.s.fail(line, j+1, "%v", err)
			}
			missing = missing && isMissing(cell)
		}
	}
	if firstWord >= 0 && firstNumber >= 0 {
		return false, c.s.fail(line, firstWord+1, "%q is neither a number nor, beside the number %q, of a header: want a header of words, or numbers only",
			first[firstWord], first[firstNumber])
	}
	return firstWord >= 0 && !missing, nil
}

// targetColumn returns the column of the answers, -1 for none, and whether it was found
// by its name.
func targetColumn(o *ReadOptions, first []string) (col int, named bool, err error) {
	w, target := len(first), o.Target
	switch {
	case target == "none":
		return -1, false, nil
	case (target == "" || o.TargetOptional) && o.Dim > 0 && w == o.Dim:
		return -1, false, nil
	case target == "":
		return w - 1, false, nil
	}
	i, err := strconv.Atoi(target)
	if err != nil {
		if i = slices.Index(first, target); i < 0 {
			return 0, false, fmt.Errorf("no column is named %q: %s", target, namesIn(first))
		}
		return i, true, nil
	}
	if i < -w || i >= w {
		return 0, false, fmt.Errorf("target column %d: the rows have %d columns, 0 to %d", i, w, w-1)
	}
	return (i + w) % w, false, nil
}

// namesIn says which names the first row has.
func namesIn(first []string) string {
	const most = 20
	var names []string
	for _, cell := range first {
		if _, err := strconv.ParseFloat(cell, 64); err != nil {
			names = append(names, strconv.Quote(cell))
		}
	}
	switch n := len(names); {
	case n == 0:
		return "the first row has numbers only; give the column by its number, counted from 0"
	case n > most:
		return fmt.Sprintf("there are %s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return "there are " + strings.Join(names, ", ")
}
