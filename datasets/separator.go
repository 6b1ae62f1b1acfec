package datasets

import (
	"bytes"
	"encoding/csv"
	"io"
)

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
