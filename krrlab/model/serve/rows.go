package serve

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// errRows says which rows in JSON are accepted.
var errRows = errors.New(`want {"rows": [{"column": value, …}, …]}, a list of such rows, or one row`)

// rowReader converts rows in JSON to CSV. It reads one token after the other, so that the memory for a body does not
// depend on its structure. After an error it reads nothing more.
type rowReader struct {
	json   *json.Decoder
	csv    *csv.Writer
	lines  []int    // line of CSV at which each row begins, counted from 1; its length is the number of rows
	line   int      // line of CSV at which the next row begins
	names  []string // columns of row 0, in its order; nil if the rows are lists of cells
	inList bool     // whether the rows are in a list
	err    error    // the first error
}

// csvRows returns rows in JSON as CSV. header is "yes" if the first line of text has the names of the columns, and else
// "no", as for the option Header of datasets.ReadOptions. lines has the line of text at which each row begins, counted
// from 1. The error is that of the first invalid row.
func csvRows(body []byte) (text []byte, header string, lines []int, err error) {
	var rows bytes.Buffer
	r := &rowReader{json: json.NewDecoder(bytes.NewReader(body)), csv: csv.NewWriter(&rows), line: 1}
	r.json.UseNumber()
	switch r.nextToken() {
	case json.Delim('['):
		r.readList()
	case json.Delim('{'):
		r.readObject()
	default:
		r.setError(errRows)
	}
	if _, err := r.json.Token(); err != io.EOF {
		r.setError(errors.New("JSON: more text follows the rows"))
	}
	r.csv.Flush()
	if header = "yes"; r.names == nil {
		header = "no"
	}
	return rows.Bytes(), header, r.lines, r.err
}

// setError sets the error, unless there is one already.
func (r *rowReader) setError(err error) { r.err = cmp.Or(r.err, err) }

// setRowError sets the error of the current row, unless there is an error already. The format continues "row 3".
func (r *rowReader) setRowError(format string, args ...any) {
	r.setError(fmt.Errorf("row %d"+format, append([]any{len(r.lines)}, args...)...))
}

// nextToken returns the next token, or nil after an error.
func (r *rowReader) nextToken() json.Token {
	if r.err != nil {
		return nil
	}
	t, err := r.json.Token()
	if err == io.EOF && r.json.InputOffset() > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		r.setError(fmt.Errorf("JSON: %w", err))
	}
	return t
}

// hasMore reports whether another element of the list or of the object follows.
func (r *rowReader) hasMore() bool { return r.err == nil && r.json.More() }

// readList reads a list of rows after its opening bracket.
func (r *rowReader) readList() {
	for r.inList = true; r.hasMore(); {
		switch r.nextToken() {
		case json.Delim('{'):
			r.readObject()
		case json.Delim('['):
			var record []string
			for r.hasMore() {
				record = append(record, r.cellText(r.nextToken(), strconv.Itoa(len(record))))
			}
			r.nextToken()
			if r.names != nil {
				record = nil
			}
			r.writeRow(record)
		default:
			r.writeRow(nil)
		}
	}
	if r.nextToken(); len(r.lines) == 0 {
		r.setError(errRows)
	}
}

// readObject reads a row after its opening brace, or the object {"rows": […]}, which has all rows.
func (r *rowReader) readObject() {
	var names []string
	cells := map[string]string{}
	for r.hasMore() {
		name, _ := r.nextToken().(string)
		value := r.nextToken()
		if name == "rows" && value == json.Delim('[') && names == nil && !r.inList {
			if r.readList(); r.nextToken() != json.Delim('}') {
				r.setError(errRows)
			}
			return
		}
		if _, exists := cells[name]; exists {
			r.setRowError(" has %q twice", name)
		}
		cells[name] = r.cellText(value, name)
		names = append(names, name)
	}
	if r.nextToken(); len(r.lines) == 0 && names != nil {
		r.names = names
		r.writeRecord(names)
	}
	var record []string
	for _, name := range r.names {
		text, exists := cells[name]
		if !exists {
			r.setRowError(" has no %q, which row 0 has; null is a missing value", name)
		}
		record = append(record, text)
		delete(cells, name)
	}
	if r.names == nil {
		r.setRowError(": %w", errRows)
	}
	for name := range cells {
		r.setRowError(" has %q, which row 0 has not; null is a missing value", name)
	}
	r.writeRow(record)
}

// cellText returns a value of JSON as a cell of CSV. A list or an object is an error.
func (r *rowReader) cellText(value json.Token, column string) string {
	switch v := value.(type) {
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case string:
		return v
	case json.Delim:
		r.setRowError(", column %s: want a number, a text, true, false or null", column)
	}
	return ""
}

// writeRow writes a row of CSV, which must not be empty. A missing value that is the only cell becomes NA, because
// readers skip some empty lines.
func (r *rowReader) writeRow(record []string) {
	switch {
	case len(record) == 0:
		r.setRowError(": %w", errRows)
	case len(record) == 1 && record[0] == "":
		record[0] = "NA"
	}
	r.lines = append(r.lines, r.line)
	r.writeRecord(record)
}

// writeRecord writes a record of CSV and counts its lines.
func (r *rowReader) writeRecord(record []string) {
	r.csv.Write(record) // returns no error, since the output is in memory
	r.line++
	for _, cell := range record {
		r.line += strings.Count(cell, "\n")
	}
}
