package golang

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"os"
	"regexp"
	"slices"
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
	{"%env", "[NAME[=VALUE]]", "show or set variables of the environment"},
	{"%load", "FILE", "replace the cell by the content of a file"},
	{"%%writefile", "[-a] FILE", "write the rest of the cell to a file, with -a at its end"},
	{"%time", "[code]", "say how long code, or the rest of the cell, takes once"},
	{"%timeit", "code", "say how long code takes on average over many runs; %%timeit: the rest of the cell"},
	{"%%timeit", "", ""},
	{"%test", "[-v] [REGEXP]", "run the functions TestXxx(*testing.T) of this notebook"},
	{"%bench", "[REGEXP]", "run the functions BenchmarkXxx(*testing.B) of this notebook"},
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

// command runs one command of a cell, and returns what takes the place of the cell if it asks for that.
func (s *Session) command(text string) (next string, err error) {
	if text[0] == '!' || text[0] == '$' {
		return "", s.shell("sh", text[1:])
	}
	line, body, _ := strings.Cut(text, "\n")
	name, arg, _ := strings.Cut(line, " ")
	arg = strings.TrimSpace(arg)
	say := func(text string) { s.out.write(stdout, []byte(strings.TrimSuffix(text, "\n")+"\n")) }
	switch name {
	case "%%bash", "%%sh":
		return "", s.shell(name[2:], body)
	case "%%html":
		s.out.show(display.HTML(body))
	case "%%markdown":
		s.out.show(display.Markdown(body))
	case "%%writefile":
		text, err := writeFile(arg, body)
		if err == nil {
			say(text)
		}
		return "", err
	case "%load":
		b, err := os.ReadFile(unquoted(arg))
		return string(b), err
	case "%install":
		return "", s.install(arg)
	case "%cd":
		return "", s.changeDir(unquoted(arg))
	case "%doc":
		return "", s.doc(arg)
	case "%who":
		say(strings.Join(s.names(), "\n"))
	case "%reset":
		s.start()
	case "%help":
		say(help())
	case "%timeit", "%%timeit":
		return "", fmt.Errorf("%s wants code to time", name)
	case "%test", "%bench":
		kind := map[string]string{"%test": "TestXxx(t *testing.T)", "%bench": "BenchmarkXxx(b *testing.B)"}[name]
		return "", fmt.Errorf("%s: this notebook declares no function %s of that name", strings.TrimSpace(line), kind)
	default:
		return "", fmt.Errorf("unknown command %s; %%help lists them", name)
	}
	return "", nil
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

// environment returns code that shows or sets variables of the environment, which commands of the shell have too.
func environment(arg string) string {
	name, value, set := strings.Cut(arg, "=")
	if !set {
		name, value, set = strings.Cut(arg, " ")
	}
	name, value = strings.TrimSpace(name), unquoted(strings.TrimSpace(value))
	switch {
	case set:
		return fmt.Sprintf("if err := os.Setenv(%q, %q); err != nil { panic(err) }; fmt.Println(%q)", name, value,
			name+"="+value)
	case name == "":
		return `for _, v := range os.Environ() { fmt.Println(v) }`
	}
	return fmt.Sprintf("if v, ok := os.LookupEnv(%q); ok { fmt.Println(v) } else { fmt.Println(%q) }", name,
		name+" is not set")
}

// asCode turns commands about code into code, which runs as other code does.
func (s *Session) asCode(p part) part {
	line, body, whole := strings.Cut(p.command, "\n")
	name, arg, _ := strings.Cut(line, " ")
	code := ""
	switch arg = strings.TrimSpace(arg); name {
	case "%timeit", "%%timeit":
		if whole {
			arg = "\n" + body + "\n"
		}
		code = timing(arg)
	case "%env":
		code = environment(arg)
	case "%test":
		code = s.testing(arg)
	case "%bench":
		code = s.benchmarks(arg)
	}
	if code != "" {
		return part{line: p.line, code: code}
	}
	return p
}

// timing returns code that times code.
func timing(code string) string {
	if strings.TrimSpace(code) == "" {
		return ""
	}
	if e, err := parser.ParseExpr(code); err == nil {
		if _, call := e.(*ast.CallExpr); !call {
			code = "_ = " + code
		}
	}
	return benchmark("a run", "for range krrlab_b.N { "+code+" }")
}

// benchmark returns code that runs other code, for krrlab_b, and tells how long it took. Package testing runs it in a
// separate goroutine, where a panic would end the process.
func benchmark(name, code string) string {
	return fmt.Sprintf(`if true { testing.Init(); flag.Set("test.benchtime", "300ms"); var krrlab_p any; krrlab_r := `+
		`testing.Benchmark(func(krrlab_b *testing.B) { `+
		`defer func() { if krrlab_p = recover(); krrlab_p != nil { krrlab_b.FailNow() } }(); %s }); if krrlab_p != `+
		`nil { panic(krrlab_p) }; fmt.Println(%q, krrlab_r, krrlab_r.MemString()) }; `, code, name)
}

// declared returns the functions of cells that have a prefix and take one argument of a type, and whose names match.
func (s *Session) declared(prefix, typ, match string) (found []string) {
	re, err := regexp.Compile(match)
	if err != nil {
		re = regexp.MustCompile(regexp.QuoteMeta(match))
	}
	objects, _ := s.e.Names()
	for name, o := range objects {
		f, ok := o.(*types.Func)
		if ok && strings.HasPrefix(name, prefix) && re.MatchString(name) && f.Signature().Params().Len() == 1 &&
			f.Signature().Params().At(0).Type().String() == typ {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// testing returns code that runs the tests of this notebook.
func (s *Session) testing(arg string) string {
	match, verbose := strings.CutPrefix(arg, "-v")
	all := s.declared("Test", "*testing.T", strings.TrimSpace(match))
	if len(all) == 0 {
		return ""
	}
	prepareTests()
	var tests string
	for _, name := range all {
		tests += fmt.Sprintf("{Name: %q, F: func(t *testing.T) { defer func() { if r := recover(); r != nil { "+
			"t.Fatal(\"panic:\", r) } }(); %s(t) }}, ", name, name)
	}
	chatty := ""
	if verbose {
		chatty = `old := flag.Lookup("test.v").Value.String(); defer flag.Set("test.v", old); flag.Set("test.v", ` +
			`"true"); `
	}
	return fmt.Sprintf(`(func() error { testing.Init(); %sif !testing.RunTests(func(string, string) (bool, error) { `+
		`return true, nil }, []testing.InternalTest{%s}) { return errors.New("a test failed") }; fmt.Println("ok: %d `+
		`passed"); return nil })()`,
		chatty, tests, len(all))
}

// benchmarks returns code that runs the benchmarks of this notebook.
func (s *Session) benchmarks(arg string) string {
	var code string
	for _, name := range s.declared("Benchmark", "*testing.B", arg) {
		code += benchmark(name, name+"(krrlab_b)")
	}
	return strings.TrimSuffix(code, " ")
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
	case "%cd", "%load", "%%writefile":
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
		s.out.write(stdout, fmt.Appendf(nil, "import %q works: %s\n", p.Path, p.Module))
	}
	return nil
}
