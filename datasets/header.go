package datasets

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
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
	dropped, named, err := dropColumns(c.o, first)
	if c.weight = -1; err == nil && c.o.Weights != "" {
		if c.weight, named, err = weightColumn(c.o, first, dropped, named); err == nil {
			dropped[c.weight] = true
		}
	}
	if err == nil {
		var byName bool
		c.target, byName, err = targetColumn(c.o, first, len(first)-len(dropped))
		named = named || byName
	}
	if err == nil && c.target >= 0 && c.target == c.weight {
		err = fmt.Errorf("column %d is both the target and the weights: name the target by --target", c.target)
	} else if err == nil && dropped[c.target] {
		err = fmt.Errorf("the target, column %d, is among those dropped: name the target by --target", c.target)
	}
	if err == nil && c.target >= 0 {
		err = c.moreTargets(first, dropped)
	}
	if err == nil {
		var byName bool
		byName, err = c.categories(first, dropped)
		named = named || byName
	}
	if err != nil {
		return false, c.s.fail(line, 0, "%v", err)
	}
	for j := range first {
		if j != c.target && !dropped[j] {
			c.keep = append(c.keep, j)
		}
	}
	if header, err = c.isHeader(first, line, named); err != nil {
		return false, err
	}
	if header {
		c.header = first
	}
	if c.o.AnswersOnly {
		c.keep = nil
		return header, nil
	}
	switch {
	case c.width == 1 && c.target == 0:
		return false, c.s.fail(line, 0, "one column only: no features beside the target")
	case len(c.keep) == 0:
		return false, c.s.fail(line, 0, "no column is left for a feature")
	case c.o.Dim > 0 && len(c.keep) != c.o.Dim:
		beside := ""
		if c.target >= 0 {
			beside = fmt.Sprintf("; column %d is taken for the target", c.target+1)
		}
		return false, c.s.fail(line, 0, "%s%s", c.o.wrongDim(len(c.keep)), beside)
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
	look := c.keep
	if c.target >= 0 {
		look = append(slices.Clone(look), c.target)
		slices.Sort(look)
	}
	for _, j := range look {
		cell := first[j]
		if c.words[j] != nil { // words in any case
			continue
		}
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
			if localNumber(cell) != "" {
				_, err := number(cell)
				return false, c.s.fail(line, j+1, "%v", err)
			}
			missing = missing && isMissing(cell)
		}
	}
	if firstWord >= 0 && firstNumber >= 0 {
		return false, c.s.fail(line, firstWord+1, "%s is neither a number nor, beside the number %s, of a header: want a header of words, or numbers only",
			quote(first[firstWord]), quote(first[firstNumber]))
	}
	return firstWord >= 0 && !missing, nil
}

// dropColumns returns the columns that are left out, and whether one was found by its name.
func dropColumns(o *ReadOptions, first []string) (dropped map[int]bool, named bool, err error) {
	if o.TargetOptional && len(first) == o.Dim { // the features alone
		return nil, false, nil
	}
	dropped = map[int]bool{}
	for _, column := range o.Drop {
		j, byName, err := findColumn(first, column)
		if err != nil && !(o.TargetOptional && !isIndex(column)) {
			return nil, false, fmt.Errorf("drop: %w", err)
		}
		if err == nil {
			dropped[j] = true
		}
		named = named || byName
	}
	return dropped, named, nil
}

// weightColumn returns the column of the weights, and whether one was found by its name.
func weightColumn(o *ReadOptions, first []string, dropped map[int]bool, named bool) (int, bool, error) {
	j, byName, err := findColumn(first, o.Weights)
	if err == nil && dropped[j] {
		err = fmt.Errorf("column %d is among those dropped", j)
	}
	if err != nil {
		return -1, named, fmt.Errorf("weights: %w", err)
	}
	return j, named || byName, nil
}

// moreTargets finds the columns of further targets, which are no features.
func (c *csvReader) moreTargets(first []string, dropped map[int]bool) error {
	for _, name := range c.o.More {
		j, _, err := findColumn(first, name)
		if err == nil && (dropped[j] || j == c.target) {
			err = fmt.Errorf("column %d is dropped or named twice", j)
		}
		if err != nil {
			return fmt.Errorf("target: %w", err)
		}
		dropped[j] = true
		c.more, c.others = append(c.more, j), append(c.others, nil)
	}
	return nil
}

// targetColumn returns the column of the answers, -1 for none, and whether it was found
// by its name; left is the number of columns that are not dropped.
func targetColumn(o *ReadOptions, first []string, left int) (col int, named bool, err error) {
	switch {
	case o.Target == "none":
		return -1, false, nil
	case (o.Target == "" || o.TargetOptional) && o.Dim > 0 && left == o.Dim:
		return -1, false, nil
	case o.Target == "":
		return len(first) - 1, false, nil
	}
	if col, named, err = findColumn(first, o.Target); err != nil {
		if o.TargetOptional && o.Dim > 0 {
			return 0, false, fmt.Errorf("%s, and %w", o.wrongDim(left), err)
		}
		return 0, false, fmt.Errorf("target: %w", err)
	}
	return col, named, nil
}

// isIndex reports whether a column is given by its number.
func isIndex(column string) bool {
	_, err := strconv.Atoi(column)
	return err == nil
}

// findColumn returns the column that is given by its number, from the end if it is negative, or
// by its name in the first row.
func findColumn(first []string, column string) (col int, named bool, err error) {
	w := len(first)
	i, err := strconv.Atoi(column)
	if err != nil {
		if i = slices.Index(first, column); i < 0 {
			return 0, false, fmt.Errorf("no column is named %s: %s", quote(column), namesIn(first))
		}
		if slices.Contains(first[i+1:], column) {
			return 0, false, fmt.Errorf("several columns are named %s: say which by its number, counted from 0", quote(column))
		}
		return i, true, nil
	}
	if i < -w || i >= w {
		return 0, false, fmt.Errorf("column %d: the rows have %d columns, 0 to %d", i, w, w-1)
	}
	return (i + w) % w, false, nil
}

// namesIn says which names the first row has.
func namesIn(first []string) string {
	const most = 20
	var names []string
	for _, cell := range first {
		if _, err := strconv.ParseFloat(cell, 64); err != nil {
			names = append(names, quote(cell))
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

// oneLine is what is wrong with a table that has no row after its first line.
const oneLine = "one line only: a header without rows, or CR line ends (save with LF or CRLF)"

// open sets up the splitting of records; the separator is the first of semicolon, comma
// and tab that the first line has outside quotes, and else blanks.
func (c *csvReader) open() error {
	head, _ := c.s.r.Peek(1 << 14)
	if i := bytes.IndexByte(head, '\r'); i >= 0 && i < len(head)-1 && bytes.IndexByte(head, '\n') < 0 {
		return c.s.fail(0, 0, oneLine)
	}
	c.long = &lineGuard{s: c.s, r: c.s.r}
	var r io.Reader = c.long
	comma := separator(firstLine(head))
	if comma == ' ' {
		r, comma = &blanks{r: c.long}, ','
	}
	c.r = csv.NewReader(r)
	c.r.Comma = comma
	c.r.Comment = '#'
	c.r.TrimLeadingSpace = comma != '\t'
	c.r.FieldsPerRecord = -1
	c.r.ReuseRecord = true
	return nil
}

// firstLine returns the first line that is neither blank nor a comment.
func firstLine(head []byte) []byte {
	for line := range bytes.Lines(head) {
		if len(bytes.TrimSpace(line)) > 0 && line[0] != '#' {
			return line
		}
	}
	return nil
}

// separator returns what separates the cells of a line: a blank stands for runs of them.
func separator(line []byte) rune {
	var found [256]bool
	quoted := false
	for _, b := range line {
		if b == '"' {
			quoted = !quoted
		} else if !quoted {
			found[b] = true
		}
	}
	for _, b := range ";,\t " { // a semicolon stands where commas are in the cells
		if found[b] {
			return b
		}
	}
	return ','
}

// blanks turns each run of blanks within a line into a comma and drops those at its ends.
type blanks struct {
	r   io.Reader
	buf [4096]byte
	out []byte // what has been made of buf and not been read
	err error  // of r, after out
	gap bool   // blanks are pending
	in  bool   // the line has content
}

func (b *blanks) Read(p []byte) (int, error) {
	for len(b.out) == 0 && b.err == nil {
		var n int
		n, b.err = b.r.Read(b.buf[:])
		b.out = b.out[:0]
		for _, c := range b.buf[:n] {
			switch c {
			case ' ', '\t', '\r':
				b.gap = true
				continue
			case '\n':
				b.gap, b.in = false, false
			default:
				if b.gap && b.in {
					b.out = append(b.out, ',')
				}
				b.gap, b.in = false, true
			}
			b.out = append(b.out, c)
		}
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	if n == 0 {
		return 0, b.err
	}
	return n, nil
}
