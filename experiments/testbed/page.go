package testbed

import (
	"bytes"
	_ "embed"
	"encoding/json"

	"github.com/krrlab/lab/krrlab/stage"
)

//go:embed page.html
var pageHTML []byte

// WritePage writes an HTML page with performance profiles, filters and a table of all runs. The page is one file that
// needs no network.
func (f *File) WritePage(name string) error {
	js, err := json.Marshal(append([]Line{}, f.Lines...)) // escapes <
	if err != nil {
		return err
	}
	return stage.WriteFile(name, bytes.Replace(pageHTML, []byte("/*lines*/[]"), js, 1))
}
