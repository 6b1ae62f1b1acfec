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

// magics are the commands with what %help prints about them: name, argument, text.
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

// help is what %help shows.
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

// wholeCell reports whether a line is a command for all lines behind it.
func wholeCell(line string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	name, _, _ = strings.Cut(name, "\n")
	return strings.HasPrefix(name, "%%") && name != "%%time"
}

// command runs one command of a cell.
func (s *Session) command(text string) error {
	if text[0] == '!' || text[0] == '$' {
		return s.shell("sh", text[1:])
	}
	line, body, _ := strings.Cut(text, "\n")
	name, arg, _ := strings.Cut(line, " ")
	arg = strings.TrimSpace(arg)
	say := func(text string) { s.out.printf(stdout, "%s\n", strings.TrimSuffix(text, "\n")) }
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
			say(text)
		}
		return err
	case "%install":
		return s.install(arg)
	case "%cd":
		return s.changeDir(unquoted(arg))
	case "%doc":
		return s.doc(arg)
	case "%who":
		say(strings.Join(s.names(), "\n"))
	case "%reset":
		s.start()
	case "%help":
		say(help())
	case "%timeit", "%%timeit":
		return fmt.Errorf("%s wants code to time", name)
	default:
		return fmt.Errorf("unknown command %s; %%help lists them", name)
	}
	return nil
}

// unquoted takes the quotes off a file name.
func unquoted(s string) string {
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// writeFile writes the rest of a cell to a file, behind -a at its end, and says so.
func writeFile(arg, body string) (string, error) {
	name, end := strings.CutPrefix(arg, "-a ")
	name = unquoted(strings.TrimSpace(name))
	if name == "" || name == "-a" {
		return "", errors.New("want the name of a file: %%writefile data.csv")
	}
	word, mode := "Writing ", os.O_TRUNC
	if end {
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

// asCode turns commands that time code into code, which runs as other code does.
func asCode(p part) part {
	line, body, whole := strings.Cut(p.command, "\n")
	name, arg, _ := strings.Cut(line, " ")
	if whole {
		arg = "\n" + body + "\n"
	}
	if name = strings.TrimLeft(name, "%"); name == "timeit" && strings.TrimSpace(arg) != "" {
		return part{line: p.line, code: timing(arg)}
	}
	return p
}

// timing returns code that times code. Package testing runs it in a separate goroutine, where a panic would end the
// process.
func timing(code string) string {
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

// completeMagic completes the command at the end of a line, or the file that it is about.
func (s *Session) completeMagic(line string) (found []string, n int, ok bool) {
	name, arg, more := strings.Cut(line, " ")
	if !more {
		for _, m := range magics {
			found = append(found, m[0])
		}
		return prefixed(found, line), len(line), true
	}
	arg = arg[strings.LastIndexByte(arg, ' ')+1:]
	switch name {
	case "%cd", "%%writefile":
		return s.inString("", arg), len(arg), true
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
