package serve

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

var errRows = errors.New(`want {"rows": [{"column": value, …}, …]}, a list of such rows, or one row`)

// csvRows returns rows in JSON as CSV, and whether it has a header, yes or no.
func csvRows(body []byte) (text []byte, header string, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if err = decoder.Decode(&value); err != nil {
		return nil, "", fmt.Errorf("JSON: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, "", fmt.Errorf("JSON: more text follows the rows")
	}
	if object, ok := value.(map[string]any); ok {
		if value = any([]any{object}); len(object) == 1 && isList(object["rows"]) {
			value = object["rows"]
		}
	}
	rows, ok := value.([]any)
	if !ok || len(rows) == 0 {
		return nil, "", errRows
	}
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	columns, hasNames := rows[0].(map[string]any)
	names := slices.Sorted(maps.Keys(columns))
	if header = "no"; hasNames {
		header = "yes"
		out.Write(names)
	}
	for i, row := range rows {
		cells, ok := row.([]any)
		if hasNames {
			cells, ok = nil, isRow(row)
			object, _ := row.(map[string]any)
			for _, name := range names {
				v, exists := object[name]
				if !exists && ok {
					return nil, "", fmt.Errorf("row %d has no %q, which row 0 has; null is a missing value", i, name)
				}
				cells = append(cells, v)
			}
			for name := range object {
				if _, exists := columns[name]; !exists {
					return nil, "", fmt.Errorf("row %d has %q, which row 0 has not; null is a missing value", i, name)
				}
			}
		}
		if !ok || len(cells) == 0 {
			return nil, "", fmt.Errorf("row %d: %w", i, errRows)
		}
		record := make([]string, len(cells))
		for j, v := range cells {
			if record[j], ok = cellText(v); !ok {
				column := strconv.Itoa(j)
				if hasNames {
					column = names[j]
				}
				return nil, "", fmt.Errorf("row %d, column %s: want a number, a text, true, false or null", i, column)
			}
		}
		out.Write(record) // b does not fail
	}
	out.Flush()
	return b.Bytes(), header, nil
}

func isList(v any) bool { _, ok := v.([]any); return ok }
func isRow(v any) bool  { _, ok := v.(map[string]any); return ok }

// cellText returns a value of JSON as a cell of CSV; false for lists and objects.
func cellText(v any) (text string, ok bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	case string:
		return v, true
	}
	return "", false
}
