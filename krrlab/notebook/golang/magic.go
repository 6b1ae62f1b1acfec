package golang

import (
	"context"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
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
	inside := insideLines(lines)
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
		if inside[i] || !isCommand(l) {
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

// insideLines tells of each line whether it begins inside of a bracket, a raw string or a
// comment.
func insideLines(lines []string) []bool {
	out := make([]bool, len(lines))
	src := []byte(blanked(strings.Join(lines, "\n"))) // commands are no Go
	file := token.NewFileSet().AddFile("", -1, len(src))
	var sc scanner.Scanner
	sc.Init(file, src, func(token.Position, string) {}, scanner.ScanComments)
	depth, line := 0, 1
	mark := func(upTo int, in bool) {
		for ; line < upTo; line++ {
			if in && line < len(out) {
				out[line] = true // index of the next line
			}
		}
	}
	for {
		pos, tok, lit := sc.Scan()
		if tok == token.EOF {
			mark(len(lines)+1, depth > 0)
			return out
		}
		mark(file.Line(pos), depth > 0)
		if n := strings.Count(lit, "\n"); n > 0 && tok != token.SEMICOLON {
			mark(file.Line(pos)+n, true)
		}
		switch tok {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			depth++
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth--
		}
	}
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
		s.out.write(stdout, fmt.Appendf(nil, "time %v, %.1f MB allocated\n", d.Round(time.Microsecond),
			float64(after.TotalAlloc-before.TotalAlloc)/1e6))
	}
}

// names lists what cells declared, with types.
func (s *Session) names() (out []string) {
	objects, imported := s.e.Names()
	for name, o := range objects {
		if strings.HasPrefix(name, engine.Hidden) || o.Pkg().Path() != "main" {
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
		s.out.write(stdout, []byte(wd+"\n"))
	}
	return err
}

// shell runs a script; an interrupt ends it.
func (s *Session) shell(program, script string) error {
	ctx, stop := context.WithCancel(s.ctx.Load())
	defer stop()
	cmd := exec.CommandContext(ctx, program, "-c", script)
	group.Cancel(cmd, syscall.SIGKILL)
	err := s.printed(cmd)
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

// lateOutput is how long a command's output may take to end after the command itself.
const lateOutput = time.Second

// printed runs a command and shows what it prints. What it leaves in the background keeps the
// streams, and prints into the cells to come.
func (s *Session) printed(cmd *exec.Cmd) error {
	var copies sync.WaitGroup
	for stream, to := range []*io.Writer{stdout: &cmd.Stdout, stderr: &cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer w.Close()
		*to = w
		copies.Go(func() {
			defer r.Close()
			_, _ = io.Copy(writer{s.out, stream}, r)
		})
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	cmd.Stdout.(*os.File).Close() // the command has its own
	cmd.Stderr.(*os.File).Close()
	err := cmd.Wait()
	ended := make(chan struct{})
	go func() { copies.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(lateOutput):
	}
	return err
}

// doc shows documentation.
func (s *Session) doc(name string) error {
	if name == "" {
		s.out.write(stdout, []byte(strings.Join(paths(), "\n")+"\n"))
		return nil
	}
	describe := s.describe
	if strings.Contains(name, "/") {
		describe = packageDoc
	}
	text, ok := describe(name, true)
	if !ok {
		return fmt.Errorf("no documentation of %s; of a package it takes the import first, or the whole path", name)
	}
	s.out.show(display.MakeData(display.MIMETypeText, text))
	return nil
}
