package golang

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
)

// language contains programs for each section of the language specification and for the generic functions of slices,
// maps, cmp, sync and iter, each with the output that it prints when it is compiled by Go.
//
//go:embed testdata/language.txt
var language string

// languageProgram is a program of the language tests, with its expected output.
type languageProgram struct{ title, code, output string }

// languagePrograms returns the programs in language.
func languagePrograms() (programs []languageProgram) {
	for _, section := range strings.Split(language, "\n## ") {
		title, rest, _ := strings.Cut(strings.TrimPrefix(section, "## "), "\n")
		code, output, _ := strings.Cut(rest, "\n-- prints --\n")
		programs = append(programs, languageProgram{title, code, strings.TrimRight(output, "\n")})
	}
	return programs
}

// printed returns the text that a cell has printed.
func printed(output *outputRecorder) string {
	output.mu.Lock()
	defer output.mu.Unlock()
	var text strings.Builder
	for _, event := range output.events {
		text.WriteString(strings.TrimPrefix(event, "stdout: "))
	}
	return strings.TrimRight(text.String(), "\n")
}

// TestLanguage runs each program as a cell and compares its output with that of compiled Go.
func TestLanguage(t *testing.T) {
	s := openSession(t, nil)
	programs := languagePrograms()
	if len(programs) < 100 {
		t.Fatalf("%d programs", len(programs))
	}
	failed := 0
	for i, program := range programs {
		s.runOnWorker(s.startInterpreter)
		out := &outputRecorder{}
		result := s.Run(fmt.Sprintf("Cell %d", i), program.code, out)
		got := printed(out)
		if result.Err != nil {
			got += "\n✗" + result.Err.Error()
		}
		if got != program.output {
			failed++
			t.Errorf("%s\n got %q\nwant %q", program.title, got, program.output)
		}
	}
	t.Logf("%d of %d programs run as cells", len(programs)-failed, len(programs))
}
