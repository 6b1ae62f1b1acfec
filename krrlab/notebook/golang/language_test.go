package golang

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
)

// language has programs for each section of the language specification and for the generic functions of slices,
// maps, cmp, sync and iter, each with what it prints when Go compiles it.
//
//go:embed testdata/language.txt
var language string

// languagePrograms are the titles, codes and outputs of the programs.
func languagePrograms() (out [][3]string) {
	for _, p := range strings.Split(language, "\n## ") {
		title, rest, _ := strings.Cut(strings.TrimPrefix(p, "## "), "\n")
		code, prints, _ := strings.Cut(rest, "\n-- prints --\n")
		out = append(out, [3]string{title, code, strings.TrimRight(prints, "\n")})
	}
	return out
}

// printed is what a cell has printed.
func printed(p *sheet) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, e := range p.events {
		b.WriteString(strings.TrimPrefix(e, "stdout: "))
	}
	return strings.TrimRight(b.String(), "\n")
}

// TestLanguage runs each program as a cell.
func TestLanguage(t *testing.T) {
	s := open(t, nil)
	all := languagePrograms()
	if len(all) < 100 {
		t.Fatalf("%d programs", len(all))
	}
	failed := 0
	for i, p := range all {
		s.do(s.startInterpreter)
		sheet := &sheet{}
		r := s.Run(fmt.Sprintf("Cell %d", i), p[1], sheet)
		got := printed(sheet)
		if r.Err != nil {
			got += "\n✗" + r.Err.Error()
		}
		if got != p[2] {
			failed++
			t.Errorf("%s\n got %q\nwant %q", p[0], got, p[2])
		}
	}
	t.Logf("%d of %d programs run as cells", len(all)-failed, len(all))
}
