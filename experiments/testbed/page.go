package testbed

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"maps"
	"reflect"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
)

//go:embed page.html
var pageHTML []byte

// WritePage writes an HTML page with performance profiles, filters and a table of all runs. The page is one file that
// needs no network.
func (f *File) WritePage(name string) error {
	data, err := f.pageData()
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(name, bytes.Replace(pageHTML, []byte("/*lines*/[]"), data, 1))
}

// unshownFields are the JSON names of the fields of a Line that the page does not use.
var unshownFields = []string{"schema", "d", "t", "draw", "log_det"}

// pageData returns the lines as the page contains them: a JSON array of objects, in the order of the lines. An object
// has only the fields that the page uses and whose values differ from those of the line before, which makes the page
// five times smaller. A field that the line before has and this line lacks is null.
func (f *File) pageData() ([]byte, error) {
	changes := make([]map[string]any, len(f.Lines))
	previous := map[string]any{}
	for i := range f.Lines {
		text, err := json.Marshal(&f.Lines[i])
		if err != nil {
			return nil, err
		}
		fields := map[string]any{}
		if err := json.Unmarshal(text, &fields); err != nil {
			return nil, err
		}
		if f.Lines[i].Exact == nil { // the page compares κ with the exact value only
			delete(fields, "kappa")
		}
		for _, name := range unshownFields {
			delete(fields, name)
		}
		for name := range previous {
			if _, exists := fields[name]; !exists {
				fields[name] = nil // null in JSON
			}
		}
		changes[i] = maps.Clone(fields)
		maps.DeleteFunc(changes[i], func(name string, value any) bool { return reflect.DeepEqual(value, previous[name]) })
		previous = fields
	}
	return json.Marshal(changes) // escapes <
}
