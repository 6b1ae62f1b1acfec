package notebook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/golang"
)

// CellError is the failure of a cell of a notebook.
type CellError struct {
	File string
	Cell int // number among the code cells, from 1
	Err  *golang.Error
}

// Error returns a message that names the cell.
func (e *CellError) Error() string { return fmt.Sprintf("%s: cell %d: %v", e.File, e.Cell, e.Err) }

// Run runs the cells of a notebook in order, in the folder of the notebook. It writes the notebook with its outputs to
// the file out (the notebook itself or another file; "" for none), and as an HTML page to options.HTML.
//
// Run stops at the first cell that fails and does not have the tag raises-exception, and returns a *CellError. The
// outputs up to that cell are written, but do not replace the notebook itself. If ctx ends first, Run interrupts the
// running cell, writes nothing and returns the error of the context. A notebook in a language other than Go is an
// error, and no cell is run.
func Run(ctx context.Context, file, out string, options *Options) error {
	notebook, cells, err := readNotebook(file)
	if err != nil {
		return err
	}
	s, err := golang.New(options.DataDirs)
	if err != nil {
		return err
	}
	defer s.Close()
	htmlFile, notebookFile := options.HTML, file
	for _, name := range []*string{&notebookFile, &out, &htmlFile} {
		if *name != "" {
			if *name, err = filepath.Abs(*name); err != nil {
				return err
			}
		}
	}
	if dir := filepath.Dir(file); dir != "." {
		workDir, err := os.Getwd()
		if err != nil {
			return err
		}
		defer os.Chdir(workDir)
		if err := os.Chdir(dir); err != nil {
			return err
		}
	}
	if cells, err = withParameters(cells, options.Parameters); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	notebook["cells"] = cells
	cellErr := runCells(ctx, s, file, cells)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if out != "" && !(cellErr != nil && sameFile(notebookFile, out)) {
		if err := writeNotebook(out, notebook); err != nil {
			return err
		}
	}
	if htmlFile != "" {
		page, err := exportHTML(file, notebook)
		if err == nil {
			err = atomicfile.WriteFile(htmlFile, page)
		}
		if err != nil {
			return err
		}
	}
	return cellErr
}

// readNotebook reads the file of a notebook, and returns it with its cells. It returns an error if the notebook is not
// in Go.
func readNotebook(file string) (notebook map[string]any, cells []any, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&notebook); err != nil {
		return nil, nil, fmt.Errorf("%s: not a notebook (%w)", file, err)
	}
	cells, ok := notebook["cells"].([]any)
	if !ok {
		return nil, nil, fmt.Errorf("%s: no cells; want a notebook of format 4", file)
	}
	if language := otherLanguage(content); language != "" {
		return nil, nil, fmt.Errorf("%s: a notebook in %s, not in Go: nothing was run or written; run it with its own "+
			"kernel (jupyter nbconvert --execute)", file, language)
	}
	return notebook, cells, nil
}

// goKernels lists names of kernels and languages that stand for Go, in lower case.
var goKernels = []string{"krrlab", "gophernotes", "gonb", "go", "golang"}

// otherLanguage returns the language that a notebook declares, or the name of its kernel if it declares no language.
// The result is "" if this is Go or if the notebook declares nothing. In VS Code, cells can have their own language.
func otherLanguage(notebook []byte) string {
	var saved struct {
		Metadata struct {
			Spec struct{ Language, Name string } `json:"kernelspec"`
			Info struct{ Name string }           `json:"language_info"`
		}
		Cells []struct {
			Type     string `json:"cell_type"`
			Metadata struct{ VSCode struct{ LanguageID string } }
		}
	}
	_ = json.Unmarshal(notebook, &saved) // fields of an unexpected form are ignored
	declared := []string{saved.Metadata.Spec.Language, saved.Metadata.Info.Name}
	if declared[0]+declared[1] == "" {
		base, _, _ := strings.Cut(saved.Metadata.Spec.Name, "-") // for example krrlab-2, from install --name
		declared[0] = base
	}
	for _, cell := range saved.Cells {
		if cell.Type == "code" {
			declared = append(declared, cell.Metadata.VSCode.LanguageID)
		}
	}
	for _, language := range declared {
		if language != "" && !slices.Contains(goKernels, strings.ToLower(language)) {
			return language
		}
	}
	return ""
}

// sameFile reports whether two paths denote the same file.
func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// runCells runs the code cells and stores their outputs in them, until a cell fails or ctx ends.
func runCells(ctx context.Context, s *golang.Session, file string, cells []any) error {
	number, displayed := 0, &displayedOutputs{byID: map[string][]map[string]any{}}
	for _, c := range cells {
		cell, ok := c.(map[string]any)
		if !ok || cell["cell_type"] != "code" {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		number++
		outputs := &cellOutputs{ctx: ctx, displayed: displayed}
		res := s.Run(fmt.Sprintf("Cell %d", number), joinLines(cell["source"]), outputs)
		cell["outputs"], cell["execution_count"] = outputs.finish(resultOutputs(number, res)...), number
		if res.Err != nil && !hasTag(cell, "raises-exception") { // nbclient continues after such a cell, too
			return &CellError{file, number, res.Err}
		}
	}
	return nil
}

// tags returns the tags of a cell.
func tags(cell any) (names []string) {
	fields, _ := cell.(map[string]any)
	metadata, _ := fields["metadata"].(map[string]any)
	tagList, _ := metadata["tags"].([]any)
	for _, tag := range tagList {
		names = append(names, fmt.Sprint(tag))
	}
	return names
}

// hasTag reports whether a cell has a tag.
func hasTag(cell any, tag string) bool { return slices.Contains(tags(cell), tag) }

// withParameters returns the cells of a notebook with a cell that assigns the parameters, each of the form name=value,
// after the cell that has the tag parameters. The new cell has the tag injected-parameters, as in papermill, and
// replaces an earlier one. A value that is no Go number, boolean or string literal is a string.
func withParameters(cells []any, parameters []string) ([]any, error) {
	if len(parameters) == 0 {
		return cells, nil
	}
	var code []string
	for _, parameter := range parameters {
		name, value, ok := strings.Cut(parameter, "=")
		if !ok || !token.IsIdentifier(name) {
			return nil, fmt.Errorf("parameter %q: want NAME=VALUE, such as n=500", parameter)
		}
		expr, err := parser.ParseExpr(value)
		if value != "true" && value != "false" && (err != nil || !isLiteral(expr)) {
			value = strconv.Quote(value)
		}
		code = append(code, name+" = "+value)
	}
	cells = slices.DeleteFunc(slices.Clone(cells), func(c any) bool { return hasTag(c, "injected-parameters") })
	declaringCell := slices.IndexFunc(cells, func(c any) bool { return hasTag(c, "parameters") })
	if declaringCell < 0 {
		return nil, errors.New("no cell has the tag parameters: give it to the cell that declares them")
	}
	return slices.Insert(cells, declaringCell+1, any(map[string]any{"cell_type": "code", "metadata": map[string]any{
		"tags": []any{"injected-parameters"}}, "source": strings.Join(code, "\n")})), nil
}

// isLiteral reports whether x is a literal of a number or a string, with an optional sign.
func isLiteral(x ast.Expr) bool {
	if sign, ok := x.(*ast.UnaryExpr); ok && sign.Op == token.SUB {
		x = sign.X
	}
	_, ok := x.(*ast.BasicLit)
	return ok
}

// resultOutputs returns the outputs for the value and the error of cell n.
func resultOutputs(n int, r golang.Result) (out []map[string]any) {
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

// joinLines returns the text of a cell, which is a string or a list of lines.
func joinLines(v any) string {
	if source, ok := v.(string); ok {
		return source
	}
	var text strings.Builder
	lines, _ := v.([]any)
	for _, line := range lines {
		fmt.Fprint(&text, line)
	}
	return text.String()
}

// writeNotebook writes a notebook in the format of Jupyter: indented by one space, with sorted keys. It sets the
// language in the metadata of the notebook and, if there is none, the kernel.
func writeNotebook(name string, notebook map[string]any) error {
	metadata, _ := notebook["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["language_info"] = languageInfo()
	if metadata["kernelspec"] == nil {
		metadata["kernelspec"] = map[string]any{"display_name": "Go (krrlab)", "language": "go", "name": "krrlab"}
	}
	notebook["metadata"] = metadata
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(notebook); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return atomicfile.WriteFile(name, encoded.Bytes())
}

// displayedOutputs holds the outputs of all cells that have a display_id.
type displayedOutputs struct {
	mu   sync.Mutex                  // also guards the outputs of all cells
	byID map[string][]map[string]any // outputs by display_id
}

// cellOutputs collects the outputs of a cell, in the form of notebook files. It implements golang.Output.
type cellOutputs struct {
	ctx       context.Context   // the end of the context interrupts the cell
	displayed *displayedOutputs // shared by all cells
	outputs   []map[string]any
	clearNext bool // remove the outputs when the next one is added
	isClosed  bool // further outputs are dropped
}

// ifOpen calls f while holding the lock p.displayed.mu, unless p is closed.
func (p *cellOutputs) ifOpen(f func()) {
	p.displayed.mu.Lock()
	defer p.displayed.mu.Unlock()
	if !p.isClosed {
		f()
	}
}

// add appends an output. The caller holds the lock.
func (p *cellOutputs) add(output map[string]any) {
	if p.clearNext {
		p.outputs, p.clearNext = nil, false
	}
	p.outputs = append(p.outputs, output)
}

// finish appends the given outputs, closes p and returns all outputs.
func (p *cellOutputs) finish(final ...map[string]any) []map[string]any {
	p.ifOpen(func() {
		for _, output := range final {
			p.add(output)
		}
		p.isClosed = true
	})
	return append([]map[string]any{}, p.outputs...)
}

// Stream appends text, if possible to the preceding output of the same stream.
func (p *cellOutputs) Stream(name, text string) {
	p.ifOpen(func() {
		if n := len(p.outputs); n > 0 && !p.clearNext && p.outputs[n-1]["name"] == name {
			p.outputs[n-1]["text"] = p.outputs[n-1]["text"].(string) + text
			return
		}
		p.add(map[string]any{"output_type": "stream", "name": name, "text": text})
	})
}

// Display appends a value.
func (p *cellOutputs) Display(d display.Data) {
	p.ifOpen(func() {
		output := map[string]any{"output_type": "display_data", "data": d.Data, "metadata": d.Metadata}
		p.add(output)
		if id, ok := d.Transient["display_id"].(string); ok {
			p.displayed.byID[id] = append(p.displayed.byID[id], output)
		}
	})
}

// Update replaces all values with the same display_id, also in earlier cells.
func (p *cellOutputs) Update(d display.Data) {
	p.ifOpen(func() {
		id, _ := d.Transient["display_id"].(string)
		for _, output := range p.displayed.byID[id] {
			output["data"], output["metadata"] = d.Data, d.Metadata
		}
	})
}

// Clear removes the outputs; if wait is true, not before the next output is added.
func (p *cellOutputs) Clear(wait bool) {
	p.ifOpen(func() {
		if p.clearNext = wait; !wait {
			p.outputs = nil
		}
	})
}

// Interrupts returns a channel that is closed when the context ends.
func (p *cellOutputs) Interrupts() <-chan struct{} { return p.ctx.Done() }

// Input returns an error, because there is no reader.
func (p *cellOutputs) Input(string, bool) (string, error) {
	return "", fmt.Errorf("the notebook runs without a reader: no input")
}
