package notebook

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// writeCells writes a notebook with one cell for each code. Lines tag=NAME and kind=KIND before the code set tags and
// the type of the cell.
func writeCells(t *testing.T, name string, codes []string) {
	t.Helper()
	var cells []any
	for _, code := range codes {
		cell := map[string]any{"cell_type": "code", "outputs": []any{}}
		var tags []any
		for {
			line, rest, _ := strings.Cut(code, "\n")
			if tag, ok := strings.CutPrefix(line, "tag="); ok {
				tags = append(tags, tag)
			} else if kind, ok := strings.CutPrefix(line, "kind="); ok {
				cell["cell_type"] = kind
			} else {
				break
			}
			code = rest
		}
		cell["source"], cell["metadata"] = code, map[string]any{"tags": tags}
		cells = append(cells, cell)
	}
	testkit.OK(t, os.WriteFile(name, testkit.Must(json.Marshal(map[string]any{"cells": cells, "nbformat": 4})), 0o600))
}

// shownText returns the outputs of a notebook, one line for each, which begins with the number of the cell.
func shownText(t *testing.T, name string) (lines []string) {
	t.Helper()
	var notebook struct {
		Cells []struct {
			Outputs []struct {
				Text  string
				Name  string `json:"ename"`
				Data  map[string]any
				Value string `json:"evalue"`
			}
		}
	}
	testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile(name)), &notebook))
	for i, cell := range notebook.Cells {
		for _, output := range cell.Outputs {
			text := regexp.MustCompile(`(?m)^time .* allocated\n`).ReplaceAllString(output.Text, "")
			lines = append(lines, fmt.Sprint(i, " ", text, output.Data["text/plain"], output.Name))
		}
	}
	return lines
}

// programCells are cells with everything that an export has to rewrite.
var programCells = []string{
	"kind=markdown\n# A title\n\nwith `%%go` and\n%%go in it",
	"tag=parameters\ntag=more\nn := 3 // points",
	"import (\"fmt\"; r \"math/rand/v2\")\nx, unused := 1.5, 2\n_ = r.IntN\nfmt.Println(x)",
	"// twice doubles x, a variable of another cell.\nfunc twice() float64 { return 2 * x } // of the cell\n\ntwice() // shown",
	"x = 4\nx, y := 5.0, n // x is the same variable\nstrings.Repeat(\"a\", y), twice()",
	"x := x + 0.5 // x is the same variable again\ntwice(), x",
	"type point struct{ X, Y int }\nfunc (p point) String() string { return fmt.Sprint(p.X, \"|\", p.Y) }\nvar p, q = point{1, 2}, point{n, n}\np",
	"type pair []int\nvar none pair\npair{1}, none == nil, slices.Max(pair{3})",
	"for i := range 2 {\n\ts := `raw\n\t\tlines` // in a loop\n\tif t := i; t > 0 { fmt.Println(s) }\n}\nx;",
	"var counter int\nfunc next() int { counter++; return counter }\nnext()\nnext()",
	"next(), counter",
	"f := func() (int, error) { return strconv.Atoi(\"12\") }\nf()",
	"ctx, short := context.WithCancel(context.Background())\nshort()\nctx.Err() != nil",
	"%%go\n// Half is compiled.\nfunc Half(x float64) float64 { return math.Sqrt(x*x) / 2 }",
	"Half(float64(n)), Must(f())",
	"%time\nz := []int{1, 2}\nDisplay(z)\nfmt.Println(\"printed\");",
	"// Only a comment.",
	"kind=raw\nraw text",
	"tag=raises-exception\npanic(\"meant\")",
	"undefinedName + 1",
	"%who",
	"// The last cell.\nfmt.Println(\"n =\", n) // with a comment (of two words)",
}

// TestProgramRoundTrip exports a notebook as a program, imports the program as a notebook, and runs both notebooks:
// their outputs must be the same. With KRRLAB_LONG, the test also builds the program, which must print these outputs.
func TestProgramRoundTrip(t *testing.T) {
	dir := t.TempDir()
	original, imported, programFile := filepath.Join(dir, "a.ipynb"),
		filepath.Join(dir, "b.ipynb"), filepath.Join(dir, "main.go")
	writeCells(t, original, programCells)
	notes := testkit.Must(ExportProgram(original, programFile, nil))
	testkit.Equal(t, strings.Join(notes, "\n"), `cell 15: %time: a comment in the program
cell 17: its tag raises-exception: a comment in the program
cell 18: undefined: undefinedName; declare it above, or run the cell that does, or import its package: a comment in the program
cell 19: %who: a comment in the program`)
	testkit.OK(t, ImportProgram(programFile, imported))
	// The cell with undefinedName is removed because it would end the run.
	failing := len(programCells) - 3
	for _, name := range []string{original, imported} {
		notebook, cells, err := readNotebook(name)
		testkit.OK(t, err)
		if got := joinLines(cells[failing].(map[string]any)["source"]); got != programCells[failing] {
			t.Errorf("%s: cell %d is %q", name, failing, got)
		}
		notebook["cells"] = append(cells[:failing:failing], cells[failing+2])
		testkit.OK(t, writeNotebook(name, notebook))
		testkit.OK(t, Run(t.Context(), name, name, &Options{}))
	}
	want, got := shownText(t, original), shownText(t, imported)
	testkit.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"))
	_, cells, err := readNotebook(imported)
	testkit.OK(t, err)
	testkit.Equal(t, joinLines(cells[0].(map[string]any)["source"]), strings.TrimPrefix(programCells[0],
		"kind=markdown\n"))
	testkit.Equal(t, fmt.Sprint(tags(cells[1])), "[parameters more]")
	if suite.Scale(0, 0, 1) == 0 {
		return
	}
	binary := filepath.Join(dir, "program")
	for _, args := range [][]string{{"vet", programFile}, {"build", "-o", binary, programFile}} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %s", args[0], out)
		}
	}
	cmd := exec.Command(binary)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	testkit.OK(t, err)
	var wantText strings.Builder
	for _, line := range want {
		if _, line, ok := strings.Cut(line, " "); ok && line != "<nil>Panic" {
			wantText.WriteString(strings.TrimSpace(strings.TrimSuffix(line, "<nil>")) + "\n")
		}
	}
	testkit.Equal(t, string(out), wantText.String())
}

// TestExportErrors checks that code that works in cells but not in a program is an error that names the cell, and
// that no program is written.
func TestExportErrors(t *testing.T) {
	dir := t.TempDir()
	for want, cells := range map[string][]string{
		"cell 2: f is declared again, as func f() int":                   {"func f() int { return 1 }", "func f() int { return 2 }"},
		"cell 2: x is declared again, as var x string":                   {"x := 1", "x := `a`"},
		"cell 2: strings is declared again":                              {"strings.Repeat(`a`, 2)", "var strings = 1"},
		"cell 1: it declares main":                                       {"func main() {}"},
		"cell 2: functions use its variable y, whose declaration uses x": {"x := 1", "var y = x\nfunc f() int { return y }"},
		"cell 1: declared and not used: u":                               {"if true { u := 1 }"},
		"cell 2: label again already declared":                           {"again: for { break again }", "again: for { break again }"},
	} {
		name, programFile := filepath.Join(dir, "a.ipynb"), filepath.Join(dir, "main.go")
		writeCells(t, name, cells)
		if _, err := ExportProgram(name, programFile, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := os.Stat(programFile); err == nil {
			t.Errorf("%s: a program was written", want)
		}
	}
}

// TestImportProgram imports and runs a program that ExportProgram has not written, and refuses a program whose cell
// marks do not match.
func TestImportProgram(t *testing.T) {
	dir := t.TempDir()
	programFile, name := filepath.Join(dir, "main.go"), filepath.Join(dir, "a.ipynb")
	testkit.OK(t, os.WriteFile(programFile, []byte("// Command x.\npackage main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(1) }\n"), 0o600))
	testkit.OK(t, ImportProgram(programFile, name))
	testkit.OK(t, Run(t.Context(), name, name, &Options{}))
	testkit.Equal(t, strings.Join(shownText(t, name), ""), "0 1\n<nil>")
	testkit.OK(t, os.WriteFile(programFile, []byte("package main\n\n// %% declarations of cell 4\n\nvar x int\n\nfunc main() {\n\t// %% cell 1\n}\n"), 0o600))
	if err := ImportProgram(programFile, name); err == nil || !strings.Contains(err.Error(), "declarations of cell 4") {
		t.Error(err)
	}
}
