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

// TestSessions runs each session. The sessions test repeated declarations, variables captured by closures, and values
// of types that were declared again.
func TestSessions(t *testing.T) {
	for session := range strings.SplitSeq(strings.TrimPrefix(sessions, "## "), "\n## ") {
		title, text, _ := strings.Cut(session, "\n")
		t.Run(title, func(t *testing.T) {
			var sessionCells cells
			start := 0
			for _, match := range cellEnd.FindAllStringSubmatchIndex(text, -1) {
				sessionCells = append(sessionCells, struct{ code, wantPrefix string }{
					text[start:match[0]], unescape.Replace(text[match[2]:match[3]])})
				start = match[1]
			}
			if start < len(text) {
				t.Fatalf("a cell without an end: %s", text[start:])
			}
			sessionCells.run(t)
		})
	}
}
