package notebooks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/notebook"
)

// compileErrors type-checks the cells of a notebook in order, without running them, by exporting the notebook as a
// program. It returns a line for each cell that fails to compile, and for anything else that a program cannot do.
func compileErrors(t *testing.T, name string) []string {
	t.Helper()
	notes, err := notebook.ExportProgram(name, filepath.Join(t.TempDir(), "main.go"), nil)
	if err != nil {
		notes = append(notes, err.Error())
	}
	return notes
}

// TestCompile checks that all cells of all notebooks compile with the packages of this program. It must detect a
// notebook that uses a field by a name that the field no longer has.
func TestCompile(t *testing.T) {
	for _, name := range allNotebooks(t) {
		for _, line := range compileErrors(t, name) {
			t.Errorf("%s: %s", name, line)
		}
	}
	const laboratory, field = "12_laboratory.ipynb", "row.FailureReason"
	text, err := os.ReadFile(laboratory)
	mustSucceed(t, err)
	outdated := filepath.Join(t.TempDir(), laboratory)
	mustSucceed(t, os.WriteFile(outdated, []byte(strings.Replace(string(text), field, "row.OldName", 1)), 0o600))
	if lines := compileErrors(t, outdated); !slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "cell 5: row.OldName undefined")
	}) {
		t.Errorf("%s with row.OldName instead of %s: %q", laboratory, field, lines)
	}
}
