package engine

import (
	_ "embed"
	"regexp"
	"strings"
	"testing"
)

// sessions are sessions of many cells, each behind a title. A cell ends with a line of -- and how what comes of it
// begins: what it prints, its values behind →, its error behind ✗.
//
//go:embed testdata/sessions.txt
var sessions string

var (
	cellEnd  = regexp.MustCompile(`\n-- ?(.*)\n?`)
	unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n")
)

// TestSessions runs each session: what is declared again, what closures keep, and values of types of before.
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
