package golang

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"

	"github.com/krrlab/lab/krrlab/notebook/display"
)

// command is a command of cells. Either run executes the command, or code returns Go code that executes it. A command
// with neither function, such as %time, is executed elsewhere and listed only for %help.
type command struct {
	name, arg, text string // name, arguments and description for %help, which omits commands without text
	run             func(s *Session, line commandLine) error
	code            func(s *Session, line commandLine) (string, error)
}

// commandLine is a use of a command: its name, its argument, and the following lines of the cell, for a cell command.
type commandLine struct{ name, arg, body string }

// commands lists the commands. It is set by init, because %help depends on it.
var commands []command

func init() {
	script := func(s *Session, line commandLine) error { return s.shell(line.name[2:], line.body) }
	commands = []command{
		{name: "!cmd", text: "run a command of the shell"},
		{name: "%%bash", text: "run the rest of the cell in bash; %%sh in sh", run: script},
		{name: "%%sh", run: script},
		{name: "%%go", text: "compile the rest of the cell, which may contain only declarations; this needs the go command"},
		{name: "%cd", arg: "[DIR]", text: "change the folder, or print its name",
			run: func(s *Session, line commandLine) error { return s.changeDir(unquoted(line.arg)) }},
		{name: "%env", arg: "[NAME[=VALUE]]", text: "set a variable of the environment, or print one or all",
			code: environmentCode},
		{name: "%%writefile", arg: "[-a] FILE", text: "write the rest of the cell to a file, with -a at its end",
			run: func(s *Session, line commandLine) error {
				text, err := writeFile(line.arg, line.body)
				s.printLine(text)
				return err
			}},
		{name: "%capture", arg: "NAME", text: "assign the text that the rest of the cell prints to a string variable",
			run: (*Session).startRecording},
		{name: "%time", arg: "[code]", text: "print how long code, or the rest of the cell, takes once"},
		{name: "%timeit", arg: "code",
			text: "print the average time of code over many runs; %%timeit: of the rest of the cell",
			code: timingCode},
		{name: "%%timeit", code: timingCode},
		{name: "%test", arg: "[FLAGS] [PATTERN]", text: "run the functions TestXxx(*testing.T) of cells by go test",
			run: func(s *Session, line commandLine) error { return s.runTests(line.arg, "Test", "-run", "-bench=^$") }},
		{name: "%bench", arg: "[FLAGS] [PATTERN]", text: "run the functions BenchmarkXxx(*testing.B) by go test -bench",
			run: func(s *Session, line commandLine) error {
				return s.runTests(line.arg, "Benchmark", "-bench", "-run=^$")
			}},
		{name: "%%html", text: "show the rest of the cell as HTML; %%markdown as formatted text",
			run: func(s *Session, line commandLine) error { s.out.show(display.HTML(line.body)); return nil }},
		{name: "%%markdown",
			run: func(s *Session, line commandLine) error { s.out.show(display.Markdown(line.body)); return nil }},
		{name: "NAME?", text: "show the documentation of a name, as Shift-Tab does"},
		{name: "%doc", arg: "[NAME]", text: "show the documentation of a package, name or method, or list the packages",
			run: func(s *Session, line commandLine) error { return s.doc(line.arg) }},
		{name: "%install", arg: "PACKAGE[@VERSION]", text: "download a package, as krrlab notebook add does",
			run: func(s *Session, line commandLine) error { return s.install(line.arg) }},
		{name: "%autoget", arg: "on|off", text: "download missing packages when a cell imports them, or do not (the default)",
			run: (*Session).setAutoget},
		{name: "%who", text: "list the variables, functions and packages of this notebook",
			run: func(s *Session, _ commandLine) error { s.printLine(strings.Join(s.listNames(), "\n")); return nil }},
		{name: "%reset", text: "forget all variables, functions, types and imports",
			run: func(s *Session, _ commandLine) error { s.startInterpreter(); return nil }},
		{name: "%help", text: "print this list",
			run: func(s *Session, _ commandLine) error { s.printLine(help()); return nil }},
	}
}

// help returns the text of %help.
func help() string {
	text := "Commands, each on its own line; one that begins with %% is the first line of a cell:\n"
	for _, cmd := range commands {
		if cmd.text != "" {
			text += fmt.Sprintf("  %-27s %s\n", strings.TrimSpace(cmd.name+" "+cmd.arg), cmd.text)
		}
	}
	return text +
		"In cells: ctx, Must(v, err), Display(v), DisplayID(id, v), Update(id, v), Clear(), Input(prompt), " +
		"Password(prompt), Progress(), Explore(…).\n"
}

// printLine prints a line, unless it is empty.
func (s *Session) printLine(text string) {
	if text != "" {
		s.out.printf(stdout, "%s\n", strings.TrimSuffix(text, "\n"))
	}
}

// isCellCommand reports whether a line is a command that applies to all following lines of the cell.
func isCellCommand(line string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	name, _, _ = strings.Cut(name, "\n")
	return strings.HasPrefix(name, "%%") && name != "%%time" && name != "%%capture"
}

// runCommand runs a command, the text of a segment. If Go code executes the command, it only returns this code. A
// command can be written with one more %, as %%timeit for %timeit.
func (s *Session) runCommand(text string) (code string, err error) {
	if text[0] == '!' || text[0] == '$' {
		return "", s.shell("sh", text[1:])
	}
	if name, ok := strings.CutSuffix(text, "?"); ok {
		return "", s.doc(name)
	}
	line, body, _ := strings.Cut(text, "\n")
	name, arg, _ := strings.Cut(line, " ")
	for _, cmd := range commands {
		call := commandLine{name, strings.TrimSpace(arg), body}
		switch {
		case cmd.name != name && "%"+cmd.name != name:
		case cmd.code != nil:
			return cmd.code(s, call)
		case cmd.run != nil:
			return "", cmd.run(s, call)
		}
	}
	return "", fmt.Errorf("unknown command %s; %%help lists them", name)
}

// environmentCode returns code that executes %env.
func environmentCode(_ *Session, line commandLine) (string, error) {
	name, value, isSet := strings.Cut(line.arg, "=")
	name = strings.TrimSpace(name)
	switch {
	case isSet:
		return fmt.Sprintf("if err := os.Setenv(%q, %q); err != nil { panic(err) }", name, strings.TrimSpace(value)),
			nil
	case name == "":
		return `for _, line := range os.Environ() { fmt.Println(line) }`, nil
	}
	return fmt.Sprintf("if value, ok := os.LookupEnv(%q); ok { fmt.Println(value) } else { panic(%q) }", name,
		name+" is not in the environment"), nil
}

// setAutoget executes %autoget.
func (s *Session) setAutoget(line commandLine) error {
	if line.arg != "on" && line.arg != "off" {
		return errors.New("want %autoget on or %autoget off")
	}
	s.autoget = line.arg == "on"
	return nil
}

// recorder is the Output of a cell whose printed text becomes the value of a variable.
type recorder struct {
	Output
	variable string
	text     strings.Builder
}

// Stream records text of stdout and passes on all other text.
func (r *recorder) Stream(name, text string) {
	if name == streamNames[stdout] {
		r.text.WriteString(text)
	} else {
		r.Output.Stream(name, text)
	}
}

// startRecording executes %capture: the printed text of the rest of the cell goes to a recorder.
func (s *Session) startRecording(line commandLine) error {
	c := s.runningCell.Load()
	if !token.IsIdentifier(line.arg) {
		return errors.New("want the name of a variable: %capture text")
	}
	if c.recorder != nil {
		return errors.New("the cell has a %capture already")
	}
	c.recorder = &recorder{Output: c.out, variable: line.arg}
	s.out.startCell(c.recorder)
	return nil
}

// endRecording assigns the recorded text of a cell to its variable, which it declares. If the cell was interrupted, it
// prints the text.
func (s *Session) endRecording(c *cell) {
	s.out.startCell(c.out)
	text := c.recorder.text.String()
	if c.interrupts.Load() > 0 {
		s.printLine(text)
		return
	}
	assignment := segment{line: 1, code: fmt.Sprintf("%s := %q", c.recorder.variable, text)}
	if result := s.runGo(c, assignment); result.Err != nil {
		s.out.printf(stderr, "%s\n", result.Err.Value)
		return
	}
	s.addHistory(c, assignment)
}

// unquoted removes the quotes around a file name.
func unquoted(name string) string {
	if len(name) > 1 && (name[0] == '"' || name[0] == '\'') && name[len(name)-1] == name[0] {
		return name[1 : len(name)-1]
	}
	return name
}

// writeFile writes body to the file that arg names and returns a message. After -a, it appends to the file.
func writeFile(arg, body string) (string, error) {
	name, isAppend := strings.CutPrefix(arg, "-a ")
	name = unquoted(strings.TrimSpace(name))
	if name == "" || name == "-a" {
		return "", errors.New("want the name of a file: %%writefile data.csv")
	}
	action, mode := "Writing ", os.O_TRUNC
	if isAppend {
		action, mode = "Appending to ", os.O_APPEND
	} else if _, err := os.Stat(name); err == nil {
		action = "Overwriting "
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|mode, 0o644)
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(strings.TrimSuffix(body, "\n") + "\n")
	return action + name, cmp.Or(err, file.Close())
}

// timingCode returns code that measures the run time of the rest of the line, or of the lines below it, with package
// testing, and prints it. It evaluates an expression that is not a call without using its value.
func timingCode(_ *Session, line commandLine) (string, error) {
	code := line.arg
	if line.body != "" {
		code = "\n" + line.body + "\n"
	}
	if strings.TrimSpace(code) == "" {
		return "", fmt.Errorf("%s wants code to time", line.name)
	}
	if expr, err := parser.ParseExpr(code); err == nil {
		if _, isCall := expr.(*ast.CallExpr); !isCall {
			code = "_ = " + code
		}
	}
	// Package testing runs the code in another goroutine, in which a panic would end the process. So it is recovered
	// there, and repeated afterwards.
	return `if true { testing.Init(); flag.Set("test.benchtime", "300ms"); var krrlab_p any; krrlab_r := ` +
		`testing.Benchmark(func(krrlab_b *testing.B) { ` +
		`defer func() { if krrlab_p = recover(); krrlab_p != nil { krrlab_b.FailNow() } }(); ` +
		`for range krrlab_b.N { ` + code + ` } }); if krrlab_p != nil { panic(krrlab_p) }; ` +
		`fmt.Println("a run", krrlab_r, krrlab_r.MemString()) }`, nil
}

// completeCommand completes a command at the end of a line, or the file name that is its argument. n is the number of
// bytes to replace; ok is false if line needs ordinary completion.
func completeCommand(line string) (matches []string, n int, ok bool) {
	name, arg, hasArg := strings.Cut(line, " ")
	if !hasArg {
		for _, cmd := range commands {
			matches = append(matches, cmd.name)
		}
		return withPrefix(matches, line), len(line), true
	}
	arg = arg[strings.LastIndexByte(arg, ' ')+1:]
	switch name {
	case "%cd", "%%writefile":
		return completeString("", arg), len(arg), true
	}
	return nil, 0, false
}

// install executes %install: it downloads packages. It accepts the arguments of go get.
func (s *Session) install(arg string) error {
	arg = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(arg, "-U "), "go get "))
	names := strings.Fields(arg)
	if len(names) == 0 {
		return errors.New("want packages: %install github.com/google/uuid@v1.6.0")
	}
	for _, name := range names {
		pkg, err := s.finder.Download(s.ctx.Load(), name)
		if err != nil {
			return err
		}
		s.out.printf(stdout, "import %q works: %s\n", pkg.Path, pkg.Module)
	}
	return nil
}
