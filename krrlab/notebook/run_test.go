package notebook

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/golang"
)

// TestLateOutputs checks that outputs that arrive after the call of finish do not change the outputs that finish has
// returned.
func TestLateOutputs(t *testing.T) {
	data := func(v any) display.Data {
		return display.Data{Data: display.MIMEMap{"text/plain": v}, Transient: display.MIMEMap{"display_id": "a"}}
	}
	text := func(v any) string {
		encoded := testkit.Must(json.Marshal(v))
		return string(encoded)
	}
	empty := func() *cellOutputs {
		return &cellOutputs{displayed: &displayedOutputs{byID: map[string][]map[string]any{}}}
	}
	outputs := empty()
	for i := range 3 {
		outputs.Display(data(i))
	}
	value := display.Data{Data: display.MIMEMap{"text/plain": "7"}, Metadata: display.MIMEMap{}}
	got := outputs.finish(resultOutputs(1, golang.Result{Value: &value})...)
	want := text(got)
	if len(got) != 4 ||
		!strings.Contains(want,
			`"data":{"text/plain":"7"},"execution_count":1,"metadata":{},"output_type":"execute_result"`) {
		t.Errorf("want three displays and the value, got %s", want)
	}
	streamOutputs := empty()
	streamOutputs.Stream("stdout", "a")
	stream := streamOutputs.finish()
	for _, outputs := range []*cellOutputs{outputs, streamOutputs} {
		outputs.Stream("stdout", "late")
		outputs.Display(data("late"))
		outputs.Update(data("late"))
		outputs.Clear(false)
		outputs.Stream("stdout", "late")
	}
	if text(got[:4:4]) != want || text(stream) != `[{"name":"stdout","output_type":"stream","text":"a"}]` {
		t.Errorf("late outputs change %s or %s", text(got), text(stream))
	}
	if outputs := empty().finish(); text(outputs) != "[]" {
		t.Errorf("no outputs: %s", text(outputs))
	}
}

// TestRunOutputs runs a notebook and checks the outputs saved with each cell: updates of earlier outputs, cleared
// outputs, values that JSON cannot hold, and expected failures. Cells after the failing one keep their old outputs, and
// a failed run does not change the notebook if it is also the output file.
func TestRunOutputs(t *testing.T) {
	cells := []struct{ code, want string }{
		{"panic(\"meant\") // raises-exception", "error Panic"},
		{"import \"fmt\"", ""},
		{"fmt.Println(\"a\"); Clear(); 7", "execute_result 7"},
		{"DisplayID(\"x\", 1); DisplayID(\"y\", 1)", "display_data 3|display_data 4"},
		{"DisplayID(\"x\", 2); Update(\"x\", 3); Update(\"nosuch\", 5)", "display_data 3"},
		{"Update(\"y\", 4)", ""},
		{"m := map[string]interface{}{\"<a>\": 1}\nDisplay(display.Data{Data: " +
			"display.MIMEMap{\"application/json\": m}, Metadata: m})\nm[\"<a>\"] = 2",
			`display_data map[<a>:1] map[<a>:1]`},
		{"Display(display.Data{Data: display.MIMEMap{\"application/json\": math.NaN()}})",
			"display_data NaN (json: unsupported value: NaN)"},
		{"fmt.Println(\"b\"); Clear(); panic(\"p\")", "error Panic"},
		{"1", "old"},
	}
	var savedCells []any
	for _, cell := range cells {
		_, tag, _ := strings.Cut(cell.code, "// ")
		savedCells = append(savedCells, map[string]any{"cell_type": "code", "source": cell.code,
			"outputs": []any{map[string]any{"output_type": "old"}}, "metadata": map[string]any{"tags": []string{"other", tag}}})
	}
	content := testkit.Must(json.Marshal(map[string]any{"cells": savedCells, "nbformat": 4}))
	name := filepath.Join(t.TempDir(), "n.ipynb")
	testkit.OK(t, os.WriteFile(name, content, 0o644))
	for _, out := range []string{name, name + "2"} {
		var cellErr *CellError
		if err := Run(t.Context(), name, out, &Options{}); !errors.As(err, &cellErr) || cellErr.Cell != 9 {
			t.Fatal(err)
		}
	}
	if unchanged, err := os.ReadFile(name); err != nil || string(unchanged) != string(content) {
		t.Errorf("a failed run has changed its notebook, %v", err)
	}
	content = testkit.Must(os.ReadFile(name + "2"))
	var notebook struct {
		Cells []struct{ Outputs []map[string]any }
	}
	testkit.OK(t, json.Unmarshal(content, &notebook))
	for i, cell := range notebook.Cells {
		var got []string
		for _, output := range cell.Outputs {
			line := []any{output["output_type"]}
			for _, key := range []string{"text", "ename"} {
				if output[key] != nil {
					line = append(line, output[key])
				}
			}
			data, _ := output["data"].(map[string]any)
			for _, key := range []string{"text/plain", "application/json"} {
				if v := data[key]; v != nil && v != "" {
					line = append(line, v)
				}
			}
			if metadata, _ := output["metadata"].(map[string]any); len(metadata) > 0 {
				line = append(line, metadata)
			}
			got = append(got, strings.TrimSpace(fmt.Sprintln(line...)))
		}
		testkit.Equal(t, strings.Join(got, "|"), cells[i].want, cells[i].code)
	}
}

// TestOtherLanguage checks that a notebook in another language is refused with the name of the language, that none of
// its cells is run, and that the file stays unchanged. An empty name means that the notebook is in Go and is run.
func TestOtherLanguage(t *testing.T) {
	dir := t.TempDir()
	ranFile := filepath.Join(dir, "ran") // which the cell writes
	for metadata, want := range map[string]string{
		`{}`: "",
		`{"kernelspec": {"name": "krrlab", "language": "go"}, "language_info": {"name": "go"}}`:                     "",
		`{"kernelspec": {"name": "my-kernel", "language": "Go"}}`:                                                   "",
		`{"kernelspec": {"name": "gonb", "display_name": "Go (gonb)"}}`:                                             "",
		`{"kernelspec": {"name": "krrlab-2"}}`:                                                                      "",
		`{"kernelspec": {"name": "python3", "language": "python"}, "language_info": {"name": "python"}}`:            "python",
		`{"kernelspec": {"name": "python3", "display_name": "Python 3"}}`:                                           "python3",
		`{"language_info": {"name": "R"}}`:                                                                          "R",
		`{"kernelspec": {"name": "julia-1.10", "language": "julia"}}`:                                               "julia",
		`{"kernelspec": {"name": "krrlab", "language": "go"}, "language_info": {"name": "python"}}`:                 "python",
		`{"kernelspec": {"name": ".net-csharp", "language": "C#"}, "language_info": {"name": "polyglot-notebook"}}`: "C#",
		`{"vscode": "python"}`:   "python",
		`{"vscode": "markdown"}`: "", // the language of a text cell does not matter
	} {
		os.Remove(ranFile)
		cell := `{"cell_type": "code", "metadata": {}, "execution_count": 3, "outputs": [{"output_type": "stream", "name": "stdout", "text": "old"}], "source": ` +
			fmt.Sprintf("%q", `os.WriteFile("ran", nil, 0o600)`)
		switch metadata {
		case `{"vscode": "markdown"}`:
			metadata, cell = `{}`, `{"cell_type": "markdown", "metadata": {"vscode": {"languageId": "markdown"}}, "source": ""}, `+cell
		case `{"vscode": "python"}`:
			metadata, cell = `{}`, strings.Replace(cell, `"metadata": {}`,
				`"metadata": {"vscode": {"languageId": "python"}}`, 1)
		}
		text := `{"cells": [` + cell + `}], "metadata": ` + metadata + `, "nbformat": 4, "nbformat_minor": 4}`
		name := filepath.Join(dir, "n.ipynb")
		testkit.OK(t, os.WriteFile(name, []byte(text), 0o600))
		err := Run(t.Context(), name, name, &Options{HTML: filepath.Join(dir, "n.html")})
		_, notRun := os.Stat(ranFile)
		after, _ := os.ReadFile(name)
		switch {
		case want == "" && (err != nil || notRun != nil):
			t.Errorf("%s: %v, %v", metadata, err, notRun)
		case want != "" && (err == nil || !strings.Contains(err.Error(), "a notebook in "+want+", not in Go") ||
			strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v", metadata, err)
		case want != "" && (notRun == nil || string(after) != text):
			t.Errorf("%s: run, or changed", metadata)
		}
	}
}

// TestParameters checks that parameters are assigned in a cell after the one with the tag "parameters", numbers as
// numbers and other texts as strings. The cell replaces that of an earlier run. Wrong parameters, and parameters for a
// notebook without such a tag, are errors.
func TestParameters(t *testing.T) {
	dir := t.TempDir()
	input, output := filepath.Join(dir, "in.ipynb"), filepath.Join(dir, "out.ipynb")
	testkit.OK(t, os.WriteFile(input, []byte(`{"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [
{"cell_type": "code", "source": "n, x, name, on := 1, 0.5, \"a\", false", "metadata": {"tags": ["parameters"]}},
{"cell_type": "code", "source": "fmt.Println(n, x, name, on)", "metadata": {}}]}`), 0o600))
	runFrom := func(file string, parameters ...string) (string, error) {
		err := Run(t.Context(), file, output, &Options{Parameters: parameters})
		content, _ := os.ReadFile(output)
		return string(content), err
	}
	for range 2 {
		got, err := runFrom(input, "n=-7", "x=1e-3", "name=b=c", "on=true")
		if err != nil || !strings.Contains(got, `"-7 0.001 b=c true\n"`) || strings.Count(got, "injected-parameters") != 1 {
			t.Errorf("%v: parameters are not as given: %s", err, got)
		}
		input = output
	}
	for wrong, want := range map[string]string{
		"n": `parameter "n": want NAME=VALUE`, "1=2": `parameter "1=2": want NAME=VALUE`, "m=3": "undefined: m",
	} {
		testkit.Fails(t, testkit.ErrOf(runFrom(input, wrong)), want)
	}
	testkit.Fails(t, testkit.ErrOf(withParameters(nil, []string{"n=1"})), "no cell has the tag parameters")
}
