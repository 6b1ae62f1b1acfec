package golang

import (
	"errors"
	"fmt"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/krrlab/lab/krrlab/internal/group"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// segment is a part of a cell: a command, or lines of Go code.
type segment struct {
	line    int    // first line in the cell, from 1
	command string // text of the command without its line end; "" for Go code
	code    string
	isTimed bool // print the run time of the code
}

// splitCell splits a cell into segments. A line that begins with %, ! or $ is a command if it is outside of brackets,
// strings and comments. %time with code times this code; %time alone times the rest of the cell. If the first line is a
// cell command (see isCellCommand), it is one command together with all following lines.
func splitCell(lines []string) []segment {
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) != "" }); i >= 0 &&
		isCellCommand(lines[i]) {
		return []segment{{line: i + 1, command: strings.TrimSpace(lines[i]) + "\n" + strings.Join(lines[i+1:], "\n")}}
	}
	var segments []segment
	var code []string
	start, isTimed := 1, false // first line of the collected code, from 1, and whether the code is timed
	flush := func(nextLine int) {
		if strings.TrimSpace(strings.Join(code, "")) != "" {
			segments = append(segments, segment{line: start, code: strings.Join(code, "\n"), isTimed: isTimed})
		}
		code, start = nil, nextLine
	}
	for i, line := range lines {
		text := strings.TrimSpace(line)
		if !isCommand(line) || insideGo(lines[:i]) {
			code = append(code, line)
			continue
		}
		flush(i + 2)
		name, arg, _ := strings.Cut(text, " ")
		if name == "%time" || name == "%%time" {
			if arg = strings.TrimSpace(arg); arg != "" {
				segments = append(segments, segment{line: i + 1, code: arg, isTimed: true})
			} else {
				isTimed = true
			}
			continue
		}
		segments = append(segments, segment{line: i + 1, command: text})
	}
	flush(0)
	return segments
}

// insideGo reports whether code ends inside brackets, a raw string or a comment. Commands in the lines are ignored.
func insideGo(lines []string) bool {
	openBrackets, quote := engine.OpenBrackets(blankCommands(strings.Join(lines, "\n") + "\n"))
	return len(openBrackets) > 0 || quote >= 0
}

// question matches a name with a question mark, which asks for its documentation.
var question = regexp.MustCompile(`^[\pL_][\pL\pN_.]*\?$`)

// isCommand reports whether a line looks like a command.
func isCommand(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && strings.ContainsRune("%!$", rune(line[0])) || question.MatchString(line)
}

// blankCommands replaces the lines of code that look like commands by spaces.
func blankCommands(code string) string {
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		if isCommand(line) {
			lines[i] = strings.Repeat(" ", len(line))
		}
	}
	return strings.Join(lines, "\n")
}

// startTimer returns a function that prints the time and the allocations since the call of startTimer.
func (s *Session) startTimer() (printTime func()) {
	start := time.Now()
	var startStats runtime.MemStats
	runtime.ReadMemStats(&startStats)
	return func() {
		elapsed := time.Since(start)
		var endStats runtime.MemStats
		runtime.ReadMemStats(&endStats)
		s.out.printf(stdout, "time %v, %.1f MB allocated\n", elapsed.Round(time.Microsecond),
			float64(endStats.TotalAlloc-startStats.TotalAlloc)/1e6)
	}
}

// listNames returns a line with name and type for each declaration of the cells, sorted.
func (s *Session) listNames() (names []string) {
	objects, imported := s.interp.VisibleNames()
	for name, obj := range objects {
		if strings.HasPrefix(name, engine.ReservedPrefix) || obj.Pkg().Path() != "main" || obj == s.builtIns[name] {
			continue
		}
		kind := engine.TypeString(obj.Type())
		if _, ok := obj.(*types.TypeName); ok {
			kind = "type"
		}
		names = append(names, name+"  "+kind)
	}
	for name, path := range imported {
		names = append(names, name+"  package "+path)
	}
	slices.Sort(names)
	return names
}

// changeDir changes the working directory, unless dir is empty, and prints it. A leading ~ is the home directory.
func (s *Session) changeDir(dir string) error {
	if dir != "" {
		if subdir, ok := strings.CutPrefix(dir, "~"); ok {
			home, err := exec.Command("sh", "-c", "echo ~").Output()
			if err != nil {
				return fmt.Errorf("no home folder: %w", err)
			}
			dir = strings.TrimSpace(string(home)) + subdir
		}
		if err := os.Chdir(filepath.FromSlash(dir)); err != nil {
			return err
		}
	}
	workDir, err := os.Getwd()
	if err == nil {
		s.out.printf(stdout, "%s\n", workDir)
	}
	return err
}

// shell runs a script, until it ends or an interrupt kills it. Background processes of the script keep their output
// streams, print into the output of later cells, and end with the session.
func (s *Session) shell(program, script string) error {
	ctx := s.ctx.Load()
	cmd := exec.CommandContext(ctx, program, "-c", script)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	group.SignalOnCancel(cmd, syscall.SIGKILL)
	err := cmd.Run()
	group.EndWithProgram(cmd)
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

// doc displays the documentation of a name or package, or prints a list of the packages if name is empty. A package can
// be given by its path, if that has a slash.
func (s *Session) doc(name string) error {
	if name == "" {
		s.out.printf(stdout, "%s\n", strings.Join(packagePaths(), "\n"))
		return nil
	}
	text, ok := s.lookupDoc(name, "")
	if !strings.Contains(name, "/") {
		text, ok = s.describe(name)
	}
	if !ok {
		return fmt.Errorf("no documentation for %s; for a package, import it first or give its full path", name)
	}
	s.out.show(display.MakeData(display.MIMETypeText, text))
	return nil
}
