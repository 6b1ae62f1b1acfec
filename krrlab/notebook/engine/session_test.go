package engine

import (
	_ "embed"
	"regexp"
	"strings"
	"testing"
)

// sessions contains sessions of many cells, each after its title. A cell ends with a line that consists of -- and the
// start of the expected result: the printed text, values after →, or an error after ✗.
//
//go:embed testdata/sessions.txt
var sessions string

var (
	cellEnd  = regexp.MustCompile(`\n-- ?(.*)\n?`)
	unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n")
)

// TestSessions runs each session. They test repeated declarations, variables captured by closures, and values of types
// that were declared again.
func TestSessions(t *testing.T) {
	for s := range strings.SplitSeq(strings.TrimPrefix(sessions, "## "), "\n## ") {
		title, text, _ := strings.Cut(s, "\n")
		t.Run(title, func(t *testing.T) {
			var cs cells
			begin := 0
			for _, m := range cellEnd.FindAllStringSubmatchIndex(text, -1) {
				cs = append(cs, struct{ code, want string }{text[begin:m[0]], unescape.Replace(text[m[2]:m[3]])})
				begin = m[1]
			}
			if begin < len(text) {
				t.Fatalf("a cell without an end: %s", text[begin:])
			}
			cs.run(t)
		})
	}
}
