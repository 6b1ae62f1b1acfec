package datasets

import (
	"bytes"
	"slices"
	"strings"
)

// oneLineReason is the error for a table that has no row after its first line.
const oneLineReason = "one line only: a header without rows, or CR line ends (save with LF or CRLF)"

// readPreamble skips the lines before the first row, and decides how records are split.
func (c *csvReader) readPreamble() error {
	source := c.source
	if head := source.Head(); bytes.IndexByte(head, '\n') < 0 {
		if i := bytes.IndexByte(head, '\r'); i >= 0 && i < len(head)-1 {
			return source.fileFault(oneLineReason)
		}
	}
	declaredSep, comments := c.skipToTable()
	sep, err := ParseSeparator(c.options.Separator)
	reason := "--format separator"
	if c.width() > 0 {
		reason = "as the format has it"
	}
	if sep == 0 && err == nil && declaredSep != "" {
		sep, err = ParseSeparator(declaredSep)
		reason = "the line sep= says so"
	}
	if err != nil {
		return source.fileFault("%v", err)
	}
	head := source.Head()
	if c.options.Comment != "none" && c.options.Comment != "" {
		c.commentMark = c.commentPrefix()
	}
	if sep == 0 {
		if sep, reason, err = chooseSeparator(head, c.commentMark); err != nil {
			return source.Fault(c.linesBefore+1, 0, "%v", err)
		}
	}
	c.report.Separator = separatorName(sep) + " (" + reason + ")"
	c.sep = sep
	rows := firstRows(head, sep, c.commentMark)
	if len(rows) == 0 && len(comments) > 0 && c.options.Comment == "" {
		return source.fileFault("all %d lines begin with #, such as %s: say --format comment=none if they are rows",
			len(comments), quote(comments[0]))
	}
	if len(rows) == 0 || c.width() > 0 { // the file is empty, or the columns are known
		return nil
	}
	width, rowsOfWidth := commonWidth(rows)
	c.hasRowNames, c.nextRows = isRowNameHeader(rows, width), rows[1:]
	if !c.hasRowNames && len(rows[0]) == 1 && width > 1 && 2*rowsOfWidth > len(rows) {
		return source.Fault(c.linesBefore+1, 0,
			"the line has one cell, and most others have %d: remove the lines before the table", width)
	}
	return c.checkComments(comments, rows, sep)
}

// skipToTable skips the lines before the first row: blank lines, comments, and a first line sep= of Excel. It returns
// the separator that this line declares, or "", and the comments.
func (c *csvReader) skipToTable() (separator string, comments []string) {
	firstLine, prefix := c.linesBefore, c.commentPrefix()
	for {
		head := c.source.Head()
		line, _, _ := bytes.Cut(head, []byte("\n"))
		text := strings.TrimSpace(string(line))
		declared, isDeclaration := strings.CutPrefix(strings.ToLower(strings.TrimRight(string(line), "\r")), "sep=")
		if isDeclaration && c.linesBefore == firstLine && len(declared) == 1 {
			separator = declared
		} else if prefix != 0 && strings.HasPrefix(text, string(prefix)) {
			comments = append(comments, text)
		} else if text != "" || len(head) == 0 {
			c.report.addSkipped(firstLine+1, c.linesBefore-firstLine)
			return separator, comments
		}
		c.linesBefore++
		c.source.r.Discard(min(len(line)+1, len(head)))
	}
}

// commentPrefix returns the character that begins a comment, or 0 if there are no comments.
func (c *csvReader) commentPrefix() rune {
	switch c.options.Comment {
	case "":
		return '#'
	case "none":
		return 0
	}
	return []rune(c.options.Comment)[0]
}

// checkComments examines the last comment before the first row. It is taken as the header if it contains the name of
// the target or of the first feature, and is an error if it could be a row.
func (c *csvReader) checkComments(comments []string, rows [][]string, sep rune) error {
	if len(comments) == 0 || c.options.Comment != "" || len(rows[0]) < 2 {
		return nil
	}
	lastComment := comments[len(comments)-1]
	for _, text := range []string{lastComment, strings.TrimLeft(lastComment, "# ")} {
		cells := firstRows([]byte(text), sep, 0)
		if len(cells) == 0 || len(cells[0]) != len(rows[0]) {
			continue
		}
		if slices.Contains(cells[0], c.options.Target) || c.options.Columns != nil &&
			slices.Contains(cells[0], c.options.Columns[0]) {
			c.commentHeader, c.nextRows = cells[0], rows
			c.report.note("the header begins with #")
			return nil
		} else if slices.ContainsFunc(cells[0][1:], func(cell string) bool { return kindOf(cell) == numberCell }) {
			return c.source.Fault(c.linesBefore, 0, "the line begins with # and has as many cells as the rows: "+
				"say --format comment=# if it is a comment, --format comment=none if it is a row")
		}
	}
	return nil
}
