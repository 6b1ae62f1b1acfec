package notebook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/golang"
)

// CellError says which cell of a notebook failed.
type CellError struct {
	File string
	Cell int // of the code cells, from 1
	Err  *golang.Error
}

// Error names the cell.
func (e *CellError) Error() string { return fmt.Sprintf("%s: cell %d: %v", e.File, e.Cell, e.Err) }

// Run runs the cells of a notebook in order, in its folder, and writes their outputs to the file out (the notebook
// itself, or another; "" for none), and to o.HTML as a page. It stops at the first cell that fails and has no tag
// raises-exception, with a *CellError, and writes what there is by then, but not over the notebook itself. Where ctx
// ends first it interrupts the cell that runs, writes nothing and returns the context's error. A notebook in another
// language than Go is an error before any cell runs.
func Run(ctx context.Context, file, out string, o *Options) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var nb map[string]any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&nb); err != nil {
		return fmt.Errorf("%s: not a notebook (%w)", file, err)
	}
	cells, ok := nb["cells"].([]any)
	if !ok {
		return fmt.Errorf("%s: no cells; want a notebook of format 4", file)
	}
	if other := otherLanguage(b); other != "" {
		return fmt.Errorf("%s: a notebook in %s, not in Go: nothing was run or written; run it with its own kernel "+
			"(jupyter nbconvert --execute)", file, other)
	}
	s, err := golang.New(o.DataDirs)
	if err != nil {
		return err
	}
	defer s.Close()
	page, whole := o.HTML, file
	for _, name := range []*string{&whole, &out, &page} {
		if *name != "" {
			if *name, err = filepath.Abs(*name); err != nil {
				return err
			}
		}
	}
	if dir := filepath.Dir(file); dir != "." {
		back, err := os.Getwd()
		if err != nil {
			return err
		}
		defer os.Chdir(back)
		if err := os.Chdir(dir); err != nil {
			return err
		}
	}
	failed := runCells(ctx, s, file, cells)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if out != "" && !(failed != nil && sameFile(whole, out)) {
		if err := writeNotebook(out, nb); err != nil {
			return err
		}
	}
	if page != "" {
		b, err := exportHTML(file, nb)
		if err == nil {
			err = atomicfile.Put(page, b)
		}
		if err != nil {
			return err
		}
	}
	return failed
}

// goKernels are kernels for Go by the names under which they are installed.
var goKernels = []string{"krrlab", "gophernotes", "gonb", "go", "golang"}

// otherLanguage returns the language that a notebook says it is in, or its kernel where it names no language, unless
// that is Go; "" for Go and for a notebook that says nothing. In VS Code a cell may have its own language.
func otherLanguage(notebook []byte) string {
	var nb struct {
		Metadata struct {
			Spec struct{ Language, Name string } `json:"kernelspec"`
			Info struct{ Name string }           `json:"language_info"`
		}
		Cells []struct {
			Type     string `json:"cell_type"`
			Metadata struct{ VSCode struct{ LanguageID string } }
		}
	}
	_ = json.Unmarshal(notebook, &nb) // what is not as expected says nothing
	said := []string{nb.Metadata.Spec.Language, nb.Metadata.Info.Name}
	if said[0]+said[1] == "" {
		base, _, _ := strings.Cut(nb.Metadata.Spec.Name, "-") // install --name krrlab-2
		said[0] = base
	}
	for _, c := range nb.Cells {
		if c.Type == "code" {
			said = append(said, c.Metadata.VSCode.LanguageID)
		}
	}
	for _, language := range said {
		if language != "" && !slices.Contains(goKernels, strings.ToLower(language)) {
			return language
		}
	}
	return ""
}

// sameFile reports whether two names are of one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// runCells runs the code cells and puts their outputs in, until ctx ends.
func runCells(ctx context.Context, s *golang.Session, file string, cells []any) error {
	n, shown := 0, &shownAs{ids: map[string][]map[string]any{}}
	for _, c := range cells {
		cell, ok := c.(map[string]any)
		if !ok || cell["cell_type"] != "code" {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n++
		p := &page{ctx: ctx, shown: shown}
		r := s.Run(fmt.Sprintf("Cell %d", n), source(cell["source"]), p)
		cell["outputs"], cell["execution_count"] = p.take(result(n, r)...), n
		if r.Err != nil && !mayFail(cell) {
			return &CellError{file, n, r.Err}
		}
	}
	return nil
}

// mayFail reports whether a cell has the tag raises-exception, after which nbclient continues, too.
func mayFail(cell map[string]any) bool {
	meta, _ := cell["metadata"].(map[string]any)
	tags, _ := meta["tags"].([]any)
	return slices.Contains(tags, any("raises-exception"))
}

// result returns how cell n ended, as the last of its outputs.
func result(n int, r golang.Result) (out []map[string]any) {
	if r.Value != nil {
		out = append(out, map[string]any{"output_type": "execute_result", "execution_count": n,
			"data": r.Value.Data, "metadata": r.Value.Metadata})
	}
	if r.Err != nil {
		out = append(out, map[string]any{"output_type": "error", "ename": r.Err.Name, "evalue": r.Err.Value,
			"traceback": r.Err.Traceback})
	}
	return out
}

// source joins the lines of a cell.
func source(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	lines, _ := v.([]any)
	for _, l := range lines {
		fmt.Fprint(&b, l)
	}
	return b.String()
}

// writeNotebook writes a notebook as Jupyter does: one space of indent, keys in order.
func writeNotebook(name string, nb map[string]any) error {
	meta, _ := nb["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["language_info"] = languageInfo()
	if meta["kernelspec"] == nil {
		meta["kernelspec"] = map[string]any{"display_name": "Go (krrlab)", "language": "go", "name": "krrlab"}
	}
	nb["metadata"] = meta
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(nb); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return atomicfile.Put(name, b.Bytes())
}

// shownAs has the outputs of all cells by their display_id.
type shownAs struct {
	mu  sync.Mutex // guards the outputs too
	ids map[string][]map[string]any
}

// page collects the outputs of a cell as a notebook keeps them, until they are taken.
type page struct {
	ctx     context.Context // whose end interrupts the cell
	shown   *shownAs
	outputs []map[string]any
	clear   bool // when something new comes
	taken   bool // what comes now is dropped
}

// change calls f under the lock, unless the outputs are taken.
func (p *page) change(f func()) {
	p.shown.mu.Lock()
	defer p.shown.mu.Unlock()
	if !p.taken {
		f()
	}
}

func (p *page) add(o map[string]any) {
	if p.clear {
		p.outputs, p.clear = nil, false
	}
	p.outputs = append(p.outputs, o)
}

// take adds the last outputs and returns all.
func (p *page) take(last ...map[string]any) []map[string]any {
	p.change(func() {
		for _, o := range last {
			p.add(o)
		}
		p.taken = true
	})
	return append([]map[string]any{}, p.outputs...)
}

// Stream appends text, to the output before if that is of the same stream.
func (p *page) Stream(name, text string) {
	p.change(func() {
		if n := len(p.outputs); n > 0 && !p.clear && p.outputs[n-1]["name"] == name {
			p.outputs[n-1]["text"] = p.outputs[n-1]["text"].(string) + text
			return
		}
		p.add(map[string]any{"output_type": "stream", "name": name, "text": text})
	})
}

// Display appends a value.
func (p *page) Display(d display.Data) {
	p.change(func() {
		o := map[string]any{"output_type": "display_data", "data": d.Data, "metadata": d.Metadata}
		p.add(o)
		if id, ok := d.Transient["display_id"].(string); ok {
			p.shown.ids[id] = append(p.shown.ids[id], o)
		}
	})
}

// Update replaces what has the same display_id, in the cells before too.
func (p *page) Update(d display.Data) {
	p.change(func() {
		id, _ := d.Transient["display_id"].(string)
		for _, o := range p.shown.ids[id] {
			o["data"], o["metadata"] = d.Data, d.Metadata
		}
	})
}

// Clear removes what there is.
func (p *page) Clear(wait bool) {
	p.change(func() {
		if p.clear = wait; !wait {
			p.outputs = nil
		}
	})
}

// Interrupts is closed when the context ends.
func (p *page) Interrupts() <-chan struct{} { return p.ctx.Done() }

// Input has nobody to ask.
func (p *page) Input(string, bool) (string, error) {
	return "", fmt.Errorf("the notebook runs without a reader: no input")
}
