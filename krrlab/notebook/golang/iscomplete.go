package golang

import (
	"regexp"
	"strings"

	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// unfinished matches error messages of engine.Engine.CheckSyntax for code that may be continued.
var unfinished = regexp.MustCompile(`is not closed|found 'EOF'|(raw string literal|comment) not terminated`)

// IsComplete reports whether a cell can be run as it is. status is complete, invalid, or incomplete; in the last case
// indent is the indentation of the next line.
func (s *Session) IsComplete(code string) (status, indent string) {
	if isCellCommand(strings.TrimLeft(code, "\n")) {
		return "complete", ""
	}
	code = blankCommands(code)
	var err error
	s.runOnWorker(func() { err = s.interp.CheckSyntax(code) })
	switch {
	case err == nil:
		return "complete", ""
	case !unfinished.MatchString(err.Error()):
		return "invalid", ""
	}
	openBrackets, _ := engine.OpenBrackets(code)
	depth := len(openBrackets)
	if depth == 0 && strings.Contains(err.Error(), "EOF") { // an operand is missing
		depth = 1
	}
	return "incomplete", strings.Repeat("\t", depth)
}
