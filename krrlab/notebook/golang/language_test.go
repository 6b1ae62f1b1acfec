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
func languagePrograms() (out []languageProgram) {
	for _, p := range strings.Split(language, "\n## ") {
		title, rest, _ := strings.Cut(strings.TrimPrefix(p, "## "), "\n")
		code, prints, _ := strings.Cut(rest, "\n-- prints --\n")
		out = append(out, languageProgram{title, code, strings.TrimRight(prints, "\n")})
	}
	return out
}

// printed returns the text that a cell has printed.
func printed(p *outputRecorder) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, e := range p.events {
		b.WriteString(strings.TrimPrefix(e, "stdout: "))
	}
	return strings.TrimRight(b.String(), "\n")
}

// TestLanguage runs each program as a cell and compares its output with that of compiled Go.
func TestLanguage(t *testing.T) {
	s := openSession(t, nil)
	programs := languagePrograms()
	if len(programs) < 100 {
		t.Fatalf("%d programs", len(programs))
	}
	failed := 0
	for i, p := range programs {
		s.runOnWorker(s.startInterpreter)
		out := &outputRecorder{}
		r := s.Run(fmt.Sprintf("Cell %d", i), p.code, out)
		got := printed(out)
		if r.Err != nil {
			got += "\n✗" + r.Err.Error()
		}
		if got != p.output {
			failed++
			t.Errorf("%s\n got %q\nwant %q", p.title, got, p.output)
		}
	}
	t.Logf("%d of %d programs run as cells", len(programs)-failed, len(programs))
}
