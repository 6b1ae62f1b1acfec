package datasets

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// What a file is read as is decided by its first windowBytes bytes, windowRows rows at most.
const (
	windowBytes = 1 << 16
	windowRows  = 200
)

// separators are what may stand between cells, the likeliest first, with their names; a blank is a run of blanks and
// tabs.
var separators = []struct {
	sep  rune
	name string
}{{';', "semicolon"}, {',', "comma"}, {'\t', "tab"}, {'|', "pipe"}, {' ', "blank"}}

// ParseSeparator returns what a word stands for: a character, or its name; 0 for "auto" and "".
func ParseSeparator(word string) (rune, error) {
	for _, s := range separators {
		if word == s.name {
			return s.sep, nil
		}
	}
	switch r := []rune(strings.ReplaceAll(word, `\t`, "\t")); {
	case word == "" || word == "auto":
		return 0, nil
	case len(r) == 1 && !strings.ContainsRune("\"\r\n\uFFFD", r[0]):
		return r[0], nil
	}
	return 0, fmt.Errorf("separator %s: want auto, one character, or comma, semicolon, tab, pipe or blank", quote(word))
}

func separatorName(sep rune) string {
	for _, s := range separators {
		if sep == s.sep {
			return s.name
		}
	}
	return strconv.Quote(string(sep))
}

// records calls row with the cells of each record of a table, without blanks at their ends and gone when it has
// returned, the record's line, counted from 0, and the line after it, until row says that it wants no more. Where a
// blank separates, a run of them does once, with tabs among them, and none at an end. Texts with quotes or comments are
// split by encoding/csv.
func records(text []byte, sep, mark rune, row func(cells []string, line, next int) bool) error {
	if sep == ' ' {
		text = bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	}
	if mark == 0 && bytes.IndexByte(text, '"') < 0 {
		plainRecords(string(text), sep, row)
		return nil
	}
	c := csv.NewReader(bytes.NewReader(text))
	c.Comma, c.Comment, c.TrimLeadingSpace, c.FieldsPerRecord, c.ReuseRecord = sep, mark, sep != '\t', -1, true
	for {
		cells, err := c.Read()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if n := len(cells); sep == ' ' && n > 1 && cells[n-1] == "" {
			cells = cells[:n-1]
		}
		line, _ := c.FieldPos(0)
		next := line
		for j, cell := range cells {
			next += strings.Count(cell, "\n")
			cells[j] = strings.TrimSpace(cell)
		}
		if !row(cells, line-1, next) {
			return nil
		}
	}
}

// plainRecords is records of a text without quotes and comments.
func plainRecords(text string, sep rune, row func(cells []string, line, next int) bool) {
	var cells []string
	at, by := 0, string(sep)
	for line := range strings.Lines(text) {
		at++
		if strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r") == "" {
			continue
		}
		cells = cells[:0]
		for more := true; more; {
			var cell string
			if sep == ' ' {
				line = strings.TrimSpace(line)
			}
			cell, line, more = strings.Cut(line, by)
			cells = append(cells, strings.TrimSpace(cell))
		}
		if !row(cells, at-1, at) {
			return
		}
	}
}

// window returns the first rows of a text; the last is left out where the text is cut.
func window(text []byte, cut bool, sep, comment rune) (rows [][]string) {
	_ = records(text, sep, comment, func(cells []string, _, _ int) bool { // an error is met again as the file is read
		if len(cells) > 1 || cells[0] != "" {
			rows = append(rows, slices.Clone(cells))
		}
		return len(rows) < windowRows
	})
	if cut && len(rows) > 1 && len(rows) < windowRows {
		rows = rows[:len(rows)-1]
	}
	return rows
}

// usual returns the number of cells that most rows have, and how many rows these are; a first row of one cell less, as
// R writes it, is counted as one of them.
func usual(rows [][]string) (width, of int) {
	count := map[int]int{}
	for _, row := range rows {
		if count[len(row)]++; count[len(row)] > of || count[len(row)] == of && len(row) > width {
			width, of = len(row), count[len(row)]
		}
	}
	if of > 1 && rowNames(rows, width) {
		of++
	}
	return width, of
}

// rowNames reports whether the first row, of one cell less than all others, is a header that does not name the first
// column.
func rowNames(rows [][]string, width int) bool {
	if len(rows) < 3 || len(rows[0]) != width-1 {
		return false
	}
	return !slices.ContainsFunc(rows[1:], func(row []string) bool { return len(row) != width || row[width-1] == "" }) &&
		!slices.ContainsFunc(rows[0], func(cell string) bool { return kindOf(cell) != word })
}

// separate decides what separates cells: what gives most rows one width, of two cells or more, and most cells that are
// numbers and fewest that hold another separator.
func separate(text []byte, cut bool, comment rune) (sep rune, why string, err error) {
	best, rival := 0.0, rune(0)
	for _, s := range separators {
		rows := window(text, cut, s.sep, comment)
		width, of := usual(rows)
		if width < 2 {
			continue
		}
		numbers, cells := 0, 0
		for _, row := range rows {
			for _, cell := range row {
				cells++
				switch {
				case kindOf(cell) != word:
					numbers++
				case strings.ContainsAny(cell, ";,\t|"):
					numbers--
				}
			}
		}
		fit := float64(of)/float64(len(rows)) + float64(numbers)/float64(cells)
		if sep != 0 && fit == best && s.sep != ' ' {
			rival = s.sep
		}
		if sep == 0 || fit > best {
			sep, best, rival, why = s.sep, fit, 0, fmt.Sprintf("%d cells in %d of %d rows", width, of, len(rows))
		}
	}
	switch {
	case rival != 0:
		return 0, "", fmt.Errorf("cells may be separated by a %s or a %s: say which by --separator",
			separatorName(sep), separatorName(rival))
	case sep == 0:
		return ',', "one column", nil
	}
	return sep, why, nil
}

// kind is what a cell may be.
type kind int

const (
	word kind = iota
	missingCell
	number
	local // a number in a local form, a date or a time
)

// kindOf says what a cell may be.
func kindOf(cell string) kind {
	if isMissing(cell) {
		return missingCell
	}
	if _, err := parse(cell); !isSyntax(err) {
		return number
	}
	if localForm(cell) != "" {
		return local
	}
	return word
}

// evidence is what the first row and those below it show of whether it is a header: counts of columns.
type evidence struct {
	nums            []float64 // numbers in the first row
	plain, missing  bool      // none of them is in a local form; no cell but the target's has a value
	words           int       // words in the first row
	over, overOther int       // words over columns of numbers; those that are not over the target
	again, fresh    int       // words that are in other rows too; a target that is not, where others are in many
	fractions       int       // columns with numbers that are not whole
}

// look returns the evidence, target being the column of the answers.
func look(first []string, rest [][]string, target int) *evidence {
	e := &evidence{plain: true, missing: true}
	for j, cell := range first {
		k, count, texts, whole := kindOf(cell), [local + 1]int{}, map[string]int{}, true
		for _, row := range rest {
			if j < len(row) {
				count[kindOf(row[j])]++
				texts[row[j]]++
				whole = whole && !strings.ContainsAny(row[j], ".eE")
			}
		}
		if e.missing = e.missing && (k == missingCell || j == target && len(first) > 1); !whole {
			e.fractions++
		}
		if k == number || k == local {
			v, _ := parse(cell)
			e.nums, e.plain = append(e.nums, v), e.plain && k == number
		}
		if k != word {
			continue
		}
		switch e.words++; {
		case 10*count[word] < count[number]+count[local]: // a few may be mistyped
			if e.over++; j != target {
				e.overOther++
			}
		case texts[cell] > 0:
			e.again++
		case j == target && len(rest) >= 10 && len(texts)*rowsPerGuess <= len(rest):
			e.fresh++
		}
	}
	return e
}

// headed decides whether the first of the rows is a header, target the column of the answers. A column of numbers under
// a word shows that it is; so do numbers that count the columns, or that rise as years and wavelengths do, beside a
// word that is in no other row. Words that are in other rows too show that it is not.
func headed(first []string, rest [][]string, target int) (yes bool, why string, err error) {
	const either = "say --header yes if it is a header, --header no if it is none"
	e := look(first, rest, target)
	n := len(e.nums)
	rises := e.plain && n > 1
	for i := 1; i < n; i++ {
		rises = rises && e.nums[i] > e.nums[i-1]
	}
	counts := rises && (e.nums[0] == 0 || e.nums[0] == 1) && e.nums[n-1] == e.nums[0]+float64(n-1)
	switch {
	case e.missing:
		return false, "the first row has no values", nil
	case n == 0 && (e.over > 0 || e.again == 0):
		return true, "words", nil
	case n == 0:
		return false, "the words of the first row are in others too", nil
	case counts && e.words > 0 && e.again == 0 && e.over+e.fresh > 0,
		counts && e.words == 0 && n > 2 && 2*e.fractions > len(first):
		return true, "numbers that count the columns", nil
	case counts && e.words == 0 && n > 4 && len(rest) >= 10:
		return false, "", fmt.Errorf("the first row counts the columns: %s", either)
	case rises && e.over+e.fresh > 0 && e.overOther == 0 && e.again == 0 && (e.over > 0 || n > 2):
		return true, "numbers that rise, and the word " + quote(first[target]), nil
	case rises && e.fresh > 0:
		return false, "", fmt.Errorf("%s of the first row is in no other: %s", quote(first[target]), either)
	}
	return false, "the first row has numbers", nil
}
