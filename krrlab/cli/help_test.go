package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelpGroups checks the help pages. Every command belongs to a group, every flag named in a group exists in some
// command, the flags of fit are printed by group and are at most 46, and no line is wider than the help width plus an
// allowance of 12 characters.
func TestHelpGroups(t *testing.T) {
	root := (&app{env: Env{}}).root()
	known := map[string]bool{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		if cmd.Parent() == root && cmd.IsAvailableCommand() && cmd.GroupID == "" {
			t.Errorf("%s is in no group", cmd.Name())
		}
		for _, group := range flagGroups {
			for _, name := range strings.Fields(group.names) {
				known[name] = known[name] || cmd.Flags().Lookup(name) != nil
			}
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(root)
	for name, exists := range known {
		if !exists {
			t.Errorf("no command has the flag %s", name)
		}
	}
	_, out, _ := runCommand(t, "fit", "--help")
	_, usage, _ := strings.Cut(out, "Examples:")
	_, usage, _ = strings.Cut(usage, "\n\n")
	fitUsage, _, _ := strings.Cut(usage, "Global Flags:")
	if n := len(regexp.MustCompile(`(?m)^  (-., |    )--`).FindAllString(fitUsage, -1)); n > 46 {
		t.Errorf("the help of fit shows %d flags, want at most 46", n)
	}
	if !strings.HasPrefix(usage, "Data:") || !strings.Contains(usage, "\nSolve:\n") {
		t.Errorf("flags in no group:\n%s", usage)
	}
	for line := range strings.Lines(usage) {
		if n := len([]rune(line)); n > helpWidth+12 {
			t.Errorf("a line of %d characters, want at most %d: %s", n, helpWidth+12, line)
		}
	}
	_, out, _ = runCommand(t, "explain", "--help")
	if first, _, _ := strings.Cut(out, "\nData:"); !strings.Contains(first, "--metric") ||
		!strings.Contains(first, "--permutations") {
		t.Errorf("--metric is not among the options of explain:\n%s", out)
	}
	if _, out, _ := runCommand(t, "help"); !strings.Contains(out, "The paper:\n  check ") ||
		strings.Contains(out, "Additional Commands") {
		t.Errorf("the help has no group of the paper, or commands without a group:\n%s", out)
	}
}

// TestProgressWidth checks that a line of progress starts with a carriage return, so that it overwrites the line
// before, is cut to less than the width of the terminal, and shows control characters in escaped form. A width of 0
// means that the width is unknown.
func TestProgressWidth(t *testing.T) {
	for _, c := range []struct {
		width      int
		text, want string
	}{
		{0, "κ of a long line", "\rκ of a long line"}, {10, "κ of a long line", "\rκ of a l…"}, {10, "123456789",
			"\r123456789"}, {10, "1234567890", "\r12345678…"},
		{10, "a\x1b[2J", "\r" + `a\x1b[2J`}, {1, "ab", "\rab"},
	} {
		var terminal bytes.Buffer
		line := &progress{w: &terminal, columns: func() int { return c.width }}
		line.draw("before")
		terminal.Reset()
		line.lineWidth = 0
		if line.draw(c.text); terminal.String() != c.want {
			t.Errorf("%d columns, %q: %q, want %q", c.width, c.text, terminal.String(), c.want)
		}
	}
}
