package golang

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"os"
	"strings"

	"github.com/krrlab/lab/krrlab/notebook/display"
)

// magics lists the commands with their entries in %help: name, argument, text. A command without text is not listed.
var magics = [][3]string{
	{"!cmd", "", "run a command of the shell"},
	{"%%bash", "", "run the rest of the cell in bash; %%sh in sh"},
	{"%%sh", "", ""},
	{"%%go", "", "compile the functions of the rest of the cell, which has declarations alone; it needs Go"},
	{"%cd", "[DIR]", "change the folder, or say which it is"},
	{"%%writefile", "[-a] FILE", "write the rest of the cell to a file, with -a at its end"},
	{"%time", "[code]", "say how long code, or the rest of the cell, takes once"},
	{"%timeit", "code", "say how long code takes on average over many runs; %%timeit: the rest of the cell"},
	{"%%timeit", "", ""},
	{"%%html", "", "show the rest of the cell as HTML; %%markdown as formatted text"},
	{"%%markdown", "", ""},
	{"%doc", "[NAME]", "documentation of a package, name or method; without a name: the packages"},
	{"%install", "PACKAGE[@VERSION]", "download a package, as krrlab notebook add does"},
	{"%who", "", "the variables and functions of this notebook"},
	{"%reset", "", "forget them all"},
	{"%help", "", "this list"},
}

// help returns the text of %help.
func help() string {
	b := "Commands, each on its own line; one that begins with %% is the first line of a cell:\n"
	for _, m := range magics {
		if m[2] != "" {
			b += fmt.Sprintf("  %-22s %s\n", strings.TrimSpace(m[0]+" "+m[1]), m[2])
		}
	}
	return b +
		"In cells: ctx, Display(v), DisplayID(id, v), Update(id, v), Clear(), Input(prompt), Password(prompt), " +
		"Progress().\n"
}

// isCellCommand reports whether a line is a command that applies to all following lines of the cell.
func isCellCommand(line string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	name, _, _ = strings.Cut(name, "\n")
	return strings.HasPrefix(name, "%%") && name != "%%time"
}

// command runs a command: its line and, for a cell command, the following lines.
func (s *Session) command(text string) error {
	if text[0] == '!' || text[0] == '$' {
		return s.shell("sh", text[1:])
	}
	line, body, _ := strings.Cut(text, "\n")
	name, arg, _ := strings.Cut(line, " ")
	arg = strings.TrimSpace(arg)
	printLine := func(text string) { s.out.printf(stdout, "%s\n", strings.TrimSuffix(text, "\n")) }
	switch name {
	case "%%bash", "%%sh":
		return s.shell(name[2:], body)
	case "%%html":
		s.out.show(display.HTML(body))
	case "%%markdown":
		s.out.show(display.Markdown(body))
	case "%%writefile":
		text, err := writeFile(arg, body)
		if err == nil {
			printLine(text)
		}
		return err
	case "%install":
		return s.install(arg)
	case "%cd":
		return s.changeDir(unquoted(arg))
	case "%doc":
		return s.doc(arg)
	case "%who":
		printLine(strings.Join(s.listNames(), "\n"))
	case "%reset":
		s.startInterpreter()
	case "%help":
		printLine(help())
	case "%timeit", "%%timeit":
		return fmt.Errorf("%s wants code to time", name)
	default:
		return fmt.Errorf("unknown command %s; %%help lists them", name)
	}
	return nil
}

// unquoted removes the quotes around a file name.
func unquoted(s string) string {
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// writeFile writes body to the file that arg names and returns a message. After -a, it appends to the file.
func writeFile(arg, body string) (string, error) {
	name, appends := strings.CutPrefix(arg, "-a ")
	name = unquoted(strings.TrimSpace(name))
	if name == "" || name == "-a" {
		return "", errors.New("want the name of a file: %%writefile data.csv")
	}
	word, mode := "Writing ", os.O_TRUNC
	if appends {
		word, mode = "Appending to ", os.O_APPEND
	} else if _, err := os.Stat(name); err == nil {
		word = "Overwriting "
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|mode, 0o644)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(strings.TrimSuffix(body, "\n") + "\n")
	return word + name, cmp.Or(err, f.Close())
}

// asTimingCode turns the commands %timeit and %%timeit into Go code. Other segments are returned unchanged.
func asTimingCode(seg segment) segment {
	line, body, hasBody := strings.Cut(seg.command, "\n")
	name, arg, _ := strings.Cut(line, " ")
	if hasBody {
		arg = "\n" + body + "\n"
	}
	if name = strings.TrimLeft(name, "%"); name == "timeit" && strings.TrimSpace(arg) != "" {
		return segment{line: seg.line, code: timingCode(arg)}
	}
	return seg
}

// timingCode returns code that measures the run time of the given code with package testing. testing runs the code in a
// separate goroutine, in which a panic would end the process; so panics are recovered there and repeated afterwards.
func timingCode(code string) string {
	if e, err := parser.ParseExpr(code); err == nil {
		if _, call := e.(*ast.CallExpr); !call {
			code = "_ = " + code
		}
	}
	return fmt.Sprintf(`if true { testing.Init(); flag.Set("test.benchtime", "300ms"); var krrlab_p any; krrlab_r := `+
		`testing.Benchmark(func(krrlab_b *testing.B) { `+
		`defer func() { if krrlab_p = recover(); krrlab_p != nil { krrlab_b.FailNow() } }(); for range krrlab_b.N { `+
		`%s } }); if krrlab_p != nil { panic(krrlab_p) }; fmt.Println("a run", krrlab_r, krrlab_r.MemString()) }`, code)
}

// completeMagic completes a command at the end of a line, or the file name that is its argument. n is the number of
// bytes to replace; ok is false if line needs ordinary completion.
func (s *Session) completeMagic(line string) (matches []string, n int, ok bool) {
	name, arg, hasArg := strings.Cut(line, " ")
	if !hasArg {
		for _, m := range magics {
			matches = append(matches, m[0])
		}
		return withPrefix(matches, line), len(line), true
	}
	arg = arg[strings.LastIndexByte(arg, ' ')+1:]
	switch name {
	case "%cd", "%%writefile":
		return s.completeString("", arg), len(arg), true
	}
	return nil, 0, false
}

// install downloads packages.
func (s *Session) install(arg string) error {
	arg = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(arg, "-U "), "go get "))
	names := strings.Fields(arg)
	if len(names) == 0 {
		return errors.New("want packages: %install github.com/google/uuid@v1.6.0")
	}
	for _, name := range names {
		p, err := s.finder.Download(s.ctx.Load(), name)
		if err != nil {
			return err
		}
		s.out.printf(stdout, "import %q works: %s\n", p.Path, p.Module)
	}
	return nil
}
