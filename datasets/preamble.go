package datasets

import (
	"bytes"
	"slices"
	"strings"
)

// oneLine is what is wrong with a table that has no row after its first line.
const oneLine = "one line only: a header without rows, or CR line ends (save with LF or CRLF)"

// open sets up the splitting of records, after what comes before the first row: blank lines, comments, and Excel's
// sep=.
func (c *csvReader) open() error {
	s := c.s
	if head, _ := s.r.Peek(windowBytes); bytes.IndexByte(head, '\n') < 0 {
		if i := bytes.IndexByte(head, '\r'); i >= 0 && i < len(head)-1 {
			return s.refuse(oneLine)
		}
	}
	sep, err := ParseSeparator(c.o.Separator)
	why := "--separator"
	if c.width > 0 {
		why = "as the format has it"
	}
	from := c.before
	var comments []string
	for err == nil {
		head, _ := s.r.Peek(windowBytes)
		line, _, _ := bytes.Cut(head, []byte("\n"))
		text := strings.TrimSpace(string(line))
		is, ok := strings.CutPrefix(strings.ToLower(strings.TrimRight(string(line), "\r")), "sep=")
		if ok && c.before == from && len(is) == 1 {
			if sep == 0 {
				sep, err = ParseSeparator(is)
				why = "the line sep= says so"
			}
		} else if prefix := c.comment(); prefix != 0 && strings.HasPrefix(text, string(prefix)) {
			comments = append(comments, text)
		} else if text != "" || len(head) == 0 {
			break
		}
		c.before++
		s.r.Discard(min(len(line)+1, len(head)))
	}
	if err != nil {
		return s.refuse("%v", err)
	}
	c.read.skip(from+1, c.before-from)
	head, _ := s.r.Peek(windowBytes)
	mark := rune(0)
	if c.o.Comment != "none" && c.o.Comment != "" {
		mark = c.comment()
	}
	if sep == 0 {
		if sep, why, err = separate(head, len(head) == windowBytes, mark); err != nil {
			return s.Fault(c.before+1, 0, "%v", err)
		}
	}
	c.read.Separator = separatorName(sep) + " (" + why + ")"
	c.sep, c.mark = sep, mark
	rows := window(head, len(head) == windowBytes, sep, mark)
	if len(rows) == 0 && len(comments) > 0 && c.o.Comment == "" {
		return s.refuse("all %d lines begin with #, such as %s: say --comment none if they are rows", len(comments),
			quote(comments[0]))
	}
	if len(rows) == 0 {
		return nil
	}
	if c.width > 0 { // the columns are known
		return nil
	}
	width, _ := usual(rows)
	c.names, c.rest = rowNames(rows, width), rows[1:]
	return c.commented(comments, rows, sep)
}

// comment returns what begins a comment, 0 for nothing.
func (c *csvReader) comment() rune {
	switch c.o.Comment {
	case "":
		return '#'
	case "none":
		return 0
	}
	return []rune(c.o.Comment)[0]
}

// commented looks at the last comment before the first row: it may be the header, where it has the name of the target,
// and is refused where it may be a row.
func (c *csvReader) commented(comments []string, rows [][]string, sep rune) error {
	if len(comments) == 0 || c.o.Comment != "" || len(rows[0]) < 2 {
		return nil
	}
	last := comments[len(comments)-1]
	for _, text := range []string{last, strings.TrimLeft(last, "# ")} {
		cells := window([]byte(text), false, sep, 0)
		if len(cells) == 0 || len(cells[0]) != len(rows[0]) {
			continue
		}
		if slices.Contains(cells[0], c.o.Target) || c.o.Columns != nil && slices.Contains(cells[0], c.o.Columns[0]) {
			c.above, c.rest = cells[0], rows
			c.read.note("the header begins with #")
			return nil
		} else if slices.ContainsFunc(cells[0][1:], func(cell string) bool { return kindOf(cell) == number }) {
			return c.s.Fault(c.before, 0, "the line begins with # and has as many cells as the rows: "+
				"say --comment # if it is a comment, --comment none if it is a row")
		}
	}
	return nil
}
