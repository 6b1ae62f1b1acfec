package golang

import (
	"regexp"
	"strings"

	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// unfinished matches what Parse says about code that may continue.
var unfinished = regexp.MustCompile(`is not closed|found 'EOF'|(raw string literal|comment) not terminated`)

// IsComplete reports whether a cell can be run as it is: complete, incomplete (with the
// indent of the next line), or invalid.
func (s *Session) IsComplete(code string) (status, indent string) {
	if wholeCell(strings.TrimLeft(code, "\n")) {
		return "complete", ""
	}
	code = blanked(code)
	var err error
	s.do(func() { err = s.e.Parse("", code) })
	switch {
	case err == nil:
		return "complete", ""
	case !unfinished.MatchString(err.Error()):
		return "invalid", ""
	}
	open, _ := engine.OpenBrackets(code)
	depth := len(open)
	if depth == 0 && strings.Contains(err.Error(), "EOF") {
		depth = 1
	}
	return "incomplete", strings.Repeat("\t", depth)
}
