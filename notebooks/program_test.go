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

// timed matches lines that differ from run to run.
var timed = regexp.MustCompile(`(?m)^.*(seconds|peak memory).*\n?`)

// shownTexts returns what a notebook shows as text, without times.
func shownTexts(t *testing.T, name string) (out []string) {
	t.Helper()
	for _, c := range cells(t, name) {
		for _, o := range c.Outputs {
			text := joined(o.Data["text/plain"])
			if o.Type == "stream" {
				text = joined(o.Text)
			}
			if text = strings.TrimSpace(timed.ReplaceAllString(text, "")); text != "" {
				out = append(out, text)
			}
		}
	}
	return out
}

// ok ends the test if there is an error.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPrograms makes programs of three notebooks. vet finds nothing in them, they print what the notebook shows, and
// so does the notebook that is made of the program again.
func TestPrograms(t *testing.T) {
	if suite.Scale(0, 0, 1) == 0 {
		t.Skip("long: builds and runs three programs")
	}
	useOpenBLAS(t)
	for _, name := range []string{"00_start", "06_quality", "10_low_rank_and_sparse"} {
		dir := t.TempDir()
		main, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
		first, again := filepath.Join(dir, "a.ipynb"), filepath.Join(dir, "b.ipynb")
		o := &notebook.Options{}
		name += ".ipynb"
		ok(t, notebook.Run(t.Context(), name, first, &notebook.Options{Parameters: fewPoints(t, name)}))
		notes, err := notebook.Export(first, main, o)
		if ok(t, err); notes != nil {
			t.Errorf("%s: %q", name, notes)
		}
		for _, args := range [][]string{{"vet", main}, {"build", "-o", program, main}} {
			if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: go %s: %s", name, args[0], out)
			}
		}
		ok(t, notebook.Import(main, again))
		ok(t, notebook.Run(t.Context(), again, again, o))
		want, got := shownTexts(t, first), shownTexts(t, again)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q\nnow %q", name, want, got)
		}
		cmd := exec.Command(program)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		ok(t, err)
		printed := timed.ReplaceAllString(string(out), "")
		for _, text := range want {
			if !strings.Contains(printed, text) {
				t.Errorf("%s: the program does not print %q", name, text)
			}
		}
	}
}
