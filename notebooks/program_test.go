package notebooks

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/notebook"
)

// varyingLine matches lines with times and memory sizes, which differ from run to run.
var varyingLine = regexp.MustCompile(`(?m)^.*(seconds|peak memory).*\n?`)

// shownTexts returns the texts that the cells of a notebook show, without the lines that varyingLine matches.
func shownTexts(t *testing.T, name string) (out []string) {
	t.Helper()
	for _, cell := range readCells(t, name) {
		for _, output := range cell.Outputs {
			text := joinText(output.Data["text/plain"])
			if output.Type == "stream" {
				text = joinText(output.Text)
			}
			if text = strings.TrimSpace(varyingLine.ReplaceAllString(text, "")); text != "" {
				out = append(out, text)
			}
		}
	}
	return out
}

// mustSucceed ends the test if there is an error.
func mustSucceed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPrograms exports three notebooks as Go programs. Each program must pass go vet and print all the texts that the
// notebook shows. A notebook that is imported from the program must show the same texts as the original one.
func TestPrograms(t *testing.T) {
	if suite.Scale(0, 0, 1) == 0 {
		t.Skip("long: builds and runs three programs")
	}
	useOpenBLAS(t)
	for _, name := range []string{"00_start", "06_quality", "10_low_rank_and_sparse"} {
		dir := t.TempDir()
		sourceFile, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
		original, imported := filepath.Join(dir, "a.ipynb"), filepath.Join(dir, "b.ipynb")
		options := &notebook.Options{}
		name += ".ipynb"
		mustSucceed(t, notebook.Run(t.Context(), name, original, &notebook.Options{Parameters: fewPoints(t, name)}))
		notes, err := notebook.ExportProgram(original, sourceFile, nil)
		if mustSucceed(t, err); notes != nil {
			t.Errorf("%s: %q", name, notes)
		}
		for _, args := range [][]string{{"vet", sourceFile}, {"build", "-o", program, sourceFile}} {
			if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: go %s: %s", name, args[0], out)
			}
		}
		mustSucceed(t, notebook.ImportProgram(sourceFile, imported))
		mustSucceed(t, notebook.Run(t.Context(), imported, imported, options))
		want, got := shownTexts(t, original), shownTexts(t, imported)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q\nnow %q", name, want, got)
		}
		cmd := exec.Command(program)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		mustSucceed(t, err)
		printed := varyingLine.ReplaceAllString(string(out), "")
		for _, text := range want {
			if !strings.Contains(printed, text) {
				t.Errorf("%s: the program does not print %q", name, text)
			}
		}
	}
}
