package golang

import (
	"context"
	"errors"
	"fmt"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/krrlab/lab/krrlab/internal/group"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// part is a piece of a cell: a command, or lines of Go.
type part struct {
	line    int    // of the cell, from 1
	command string // without its line end
	code    string
	timed   bool
}

// split takes a cell apart. A line outside of brackets and strings that begins with %, !
// or $ is a command; %time code times the code, and %time alone the rest of the cell. A first line that
// begins with %%, of those for the whole cell, is a command with all lines behind it.
func split(lines []string) []part {
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" }); i >= 0 &&
		wholeCell(lines[i]) {
		return []part{{line: i + 1, command: strings.TrimSpace(lines[i]) + "\n" + strings.Join(lines[i+1:], "\n")}}
	}
	var out []part
	var code []string
	start, timed := 1, false
	flush := func(next int) {
		if strings.TrimSpace(strings.Join(code, "")) != "" {
			out = append(out, part{line: start, code: strings.Join(code, "\n"), timed: timed})
		}
		code, start = nil, next
	}
	for i, l := range lines {
		text := strings.TrimSpace(l)
		if !isCommand(l) || within(lines[:i]) {
			code = append(code, l)
			continue
		}
		flush(i + 2)
		name, rest, _ := strings.Cut(text, " ")
		if name == "%time" || name == "%%time" {
			if rest = strings.TrimSpace(rest); rest != "" {
				out = append(out, part{line: i + 1, code: rest, timed: true})
			} else {
				timed = true
			}
			continue
		}
		out = append(out, part{line: i + 1, command: text})
	}
	flush(0)
	return out
}

// within reports whether code ends inside of a bracket, a raw string or a comment. Commands are no Go.
func within(lines []string) bool {
	open, quote := engine.OpenBrackets(blanked(strings.Join(lines, "\n") + "\n"))
	return len(open) > 0 || quote >= 0
}

// isCommand reports whether a line looks like a command.
func isCommand(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && strings.ContainsRune("%!$", rune(line[0]))
}

// blanked is code with spaces in place of lines that look like commands.
func blanked(code string) string {
	lines := strings.Split(code, "\n")
	for i, l := range lines {
		if isCommand(l) {
			lines[i] = strings.Repeat(" ", len(l))
		}
	}
	return strings.Join(lines, "\n")
}

// timed returns what prints the time since, if it is to be.
func (s *Session) timed(want bool) func() {
	if !want {
		return func() {}
	}
	start := time.Now()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	return func() {
		d := time.Since(start)
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		s.out.printf(stdout, "time %v, %.1f MB allocated\n", d.Round(time.Microsecond),
			float64(after.TotalAlloc-before.TotalAlloc)/1e6)
	}
}

// names lists what cells declared, with types.
func (s *Session) names() (out []string) {
	objects, imported := s.e.Names()
	for name, o := range objects {
		if strings.HasPrefix(name, engine.HiddenPrefix) || o.Pkg().Path() != "main" || o == s.own[name] {
			continue
		}
		what := engine.TypeString(o.Type())
		if _, ok := o.(*types.TypeName); ok {
			what = "type"
		}
		out = append(out, name+"  "+what)
	}
	for name, path := range imported {
		out = append(out, name+"  package "+path)
	}
	slices.Sort(out)
	return out
}

func (s *Session) changeDir(dir string) error {
	if dir != "" {
		if rest, ok := strings.CutPrefix(dir, "~"); ok {
			out, err := exec.Command("sh", "-c", "echo ~").Output()
			if err != nil {
				return fmt.Errorf("no home folder: %w", err)
			}
			dir = strings.TrimSpace(string(out)) + rest
		}
		if err := os.Chdir(filepath.FromSlash(dir)); err != nil {
			return err
		}
	}
	wd, err := os.Getwd()
	if err == nil {
		s.out.printf(stdout, "%s\n", wd)
	}
	return err
}

// shell runs a script; an interrupt ends it. What it leaves in the background keeps the streams, prints into the cells to
// come, and ends with the session.
func (s *Session) shell(program, script string) error {
	ctx, stop := context.WithCancel(s.ctx.Load())
	defer stop()
	cmd := exec.CommandContext(ctx, program, "-c", script)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	group.Cancel(cmd, syscall.SIGKILL)
	err := cmd.Run()
	group.Leave(cmd)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case errors.As(err, &exit):
		line, _, _ := strings.Cut(strings.TrimSpace(script), "\n")
		return fmt.Errorf("%s: %v", line, exit)
	}
	return err
}

// doc shows documentation.
func (s *Session) doc(name string) error {
	if name == "" {
		s.out.printf(stdout, "%s\n", strings.Join(paths(), "\n"))
		return nil
	}
	text, ok, _ := s.lookup(name, "", true)
	if !strings.Contains(name, "/") {
		text, ok = s.describe(name, true)
	}
	if !ok {
		return fmt.Errorf("no documentation of %s; of a package it takes the import first, or the whole path", name)
	}
	s.out.show(display.MakeData(display.MIMETypeText, text))
	return nil
}
