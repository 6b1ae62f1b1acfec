package golang

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/suite"
)

// sheet is an Output that keeps what it is sent.
type sheet struct {
	mu     sync.Mutex
	events []string
	reply  func(prompt string) (string, error)
}

func (p *sheet) add(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, s)
}

func (p *sheet) Stream(name, text string) { p.add(name + ": " + text) }
func (p *sheet) Display(d display.Data)   { p.add(fmt.Sprint("display: ", d.Data["text/plain"])) }
func (p *sheet) Update(d display.Data) {
	p.add(fmt.Sprint("update ", d.Transient["display_id"], ": ", d.Data["text/plain"]))
}
func (p *sheet) Clear(wait bool) { p.add(fmt.Sprint("clear ", wait)) }
func (p *sheet) Input(prompt string, password bool) (string, error) {
	return p.reply(prompt)
}

func (p *sheet) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.events, "|")
}

// open starts a session for a test.
func open(t testing.TB, o *Options) *Session {
	t.Helper()
	s := testkit.Must(New(o))
	t.Cleanup(s.Close)
	return s
}

// run runs a cell and returns what it showed, its value and its error, on one line.
func run(s *Session, code string) string {
	p := &sheet{}
	return outcome(s.Run("Cell 1", code, p), p)
}

// declare makes a function known to cells.
func declare[F any](s *Session, name string, f F) { s.e.Declare(map[string]any{name: &f}) }

func outcome(r Result, p *sheet) string {
	out := p.all()
	if r.Value != nil {
		out += fmt.Sprint("→", r.Value.Data["text/plain"])
	}
	if r.Err != nil {
		out += "✗" + r.Err.Error()
	}
	return out
}

// TestCells runs cells one after the other in one session.
func TestCells(t *testing.T) {
	s := open(t, nil)
	for _, c := range []struct{ code, want string }{
		{"", ""},
		{"// nothing", ""},
		{`import ("fmt"; "os"; "strings"; "time"; "sort"; "context"; "errors"; "math")`, ""},
		{"x := 3", ""},
		{"x + 1", "→4"},
		{"x", "→3"},
		{"x;", ""},
		{`fmt.Println("hi", x)`, "stdout: hi 3\n"},
		{`fmt.Println("a"); fmt.Fprintln(os.Stderr, "b"); fmt.Println("c"); Display(5); fmt.Println("d")`, "stdout: a\n|stderr: b\n|stdout: c\n|display: 5|stdout: d\n"},
		{`os.Stdout.WriteString("raw "); fmt.Print("cooked")`, "stdout: raw cooked"},
		{"func f(a, b int) (int, string) { return a + b, \"ok\" }", ""},
		{"f(1, 2)", "→3, ok"},
		{`type P struct { S float64; Name string }
func (p P) HTML() string { return "<p>" + p.Name + "</p>" }`, ""},
		{`p := P{S: 1.5, Name: "n"}
p`, "→{S:1.5 Name:n}"},
		{"p.HTML()", "→<p>n</p>"},
		{"func fail() (int, error) { return 7, errors.New(\"no luck\") }", ""},
		{"fail()", "display: 7✗Error: no luck"},
		{"strings.Repeat(\"ü\", 3)", "→üüü"},
		{"for i := range 3 { fmt.Print(i) }", "stdout: 012"},
		{"for i := range x { fmt.Print(i) }", "stdout: 012"},
		{"for i := range 3 { i *= 2; fmt.Print(i) }", "stdout: 024"},
		{"func each(x []int) int { s := 0; for i := range x { s += x[i] }; return s }\neach([]int{1, 2})", "→3"},
		{"n := 2\nfor i := range n { fmt.Print(i) }\nif true { x := []int{5}; for i := range x { fmt.Print(x[i]) } }", "stdout: 015"},
		{"os.Remove(\"nosuch\")", "✗Error: remove nosuch: no such file or directory"},
		{"os.Setenv(\"KRRLAB_TEST\", \"\")", ""},
		{"failure := errors.New(\"seen\")\nfailure", "→seen"},
		{"y := []int{3, 1, 2}\nsort.Ints(y)\ny", "→[1 2 3]"},
		{"math.Pi", "→3.141592653589793"},
		{"var e error\ne", "→nil"},
		{"DisplayID(\"a\", 1); Update(\"a\", 2); Clear()", "display: 1|update a: 2|clear true"},
		{"ch := make(chan int)\ngo func(v int) { ch <- v }(4)\n<-ch", "→4"},
		{"func add(a float64, c chan float64) { c <- a + 1 }\ncf := make(chan float64)\ngo add(1, cf)\n<-cf", "→2"},
		{"context.Background() == ctx", "→true"},
		{"1, 2", "→1, 2"},
		{"x, strings.ToUpper(\"b\"), []int{1, 2}", "→3, B, [1 2]"},
		{"x, f(1, 2)", "✗CompileError: multiple-value f(1, 2) (value of type (int, string)) in single-value context (Cell 1, line 1)"},
		{"x, failure", "display: 3✗Error: seen"},
		{"p, 3", "display: {S:1.5 Name:n}→3"},
		{"h1() + (H{4}).Get()\nfunc h1() int { return h2() }\nfunc (h H) Get() int { return h.v }\ntype H struct{ v int }\nfunc h2() int { return 1 }\nh1()", "→1"},
		{"fmt.Println(h3())\nfunc h3() int { return x }", "stdout: 3\n"},
		{"k3()\nk := 1\nfunc k3() int { return k }", "✗CompileError: undefined: k; declare it above, or run the cell that does, or import its package (Cell 1, line 3)"},
		{"Must(strconv.Atoi(\"7\")) + 1", "→8"},
		{"_, err := os.Open(\"nosuch\")", "stderr: err is not nil (line 1): open nosuch: no such file or directory; look at it, or write Must(…) around the call\n"},
		{"a, err := strconv.Atoi(\"x\")\nb, err2 := strconv.Atoi(\"y\")\nif err2 != nil { b = 2 }\na + b", "stderr: err is not nil (line 1): strconv.Atoi: parsing \"x\": invalid syntax; look at it, or write Must(…) around the call\n→2"},
		{"_, err = os.Open(\"nosuch\")\n_, err = os.Stat(\".\")", ""},
		{"_, err = os.Open(\"nosuch\")\nfmt.Println(err != nil)", "stdout: true\n"},
		{"func Must(x int) int { return -x }\nMust(2)", "→-2"},
	} {
		if got := run(s, c.code); got != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.code, got, c.want)
		}
	}
}

// TestErrors has one cell for each way to fail.
func TestErrors(t *testing.T) {
	s := open(t, nil)
	s.Run("Cell 0", "import (\"fmt\"; \"strings\"; \"time\"; \"os\")\nn := 1\nword := \"w\"\nfunc at(i int) int {\n\tvar a []int\n\treturn a[i]\n}\ntype P struct { Name string }", &sheet{})
	for _, c := range []struct{ code, want string }{
		{"1 + \"a\"", "CompileError: invalid operation: 1 + \"a\" (mismatched types untyped int and untyped string) (Cell 1, line 1)"},
		{"\n\nn + \"a\"", "CompileError: invalid operation: n + \"a\" (mismatched types int and untyped string) (Cell 1, line 3)"},
		{"word + 1", "CompileError: invalid operation: word + 1 (mismatched types string and untyped int)"},
		{"word == 1", "CompileError: invalid operation: word == 1 (mismatched types string and untyped int)"},
		{"var s string = 65", "as string value in "},
		{"word = 65", "as string value in "},
		{"strings.ToUpper(5)", "as string value in "},
		{"map[string]int{1: 2}", "as string value in "},
		{"[]string{1}", "as string value in "},
		{"P{Name: 3}", "as string value in "},
		{"func g() string { return 3 }", "as string value in "},
		{"n = \"a\"", "CompileError: cannot use \"a\" (untyped string constant) as int value in assignment"},
		{"import \"golang.org/x/nowhere/slices\"", "CompileError: package golang.org/x/nowhere/slices is not in this kernel"},
		{"import \"krrlab\"", "there is github.com/krrlab/lab/krrlab"},
		{"func (p P) Late() string { return p.Name + \"!\" }\nP{Name: \"x\"}.Late()", "→x!"},
		{"type Q struct{ A int }\nq, all := Q{1}, []Q{}", ""},
		{"type Q struct{ A, B int }", ""},
		{"q = Q{1, 2}", "as Q value in assignment; one of them is the Q of before it was declared again: run the cells again"},
		{"q == Q{}", "(mismatched types Q and Q); one of them is the Q of before"},
		{"append(all, Q{})", "as Q value in argument to append; one of them is the Q of before"},
		{"type G[T any] struct{ v T }", ""},
		{"func (g G[T]) Late() {}", "CompileError: the generic type G[T] is of an earlier cell: declare it again in this cell, with all of its methods (Cell 1, line 1)"},
		{"nosuch", "CompileError: undefined: nosuch; declare it"},
		{"x := 1\ny := x + ) 2", "SyntaxError: unexpected ) (Cell 1, line 2)"},
		{"fmt.Printn(1)", "CompileError: undefined: fmt.Printn; press Tab"},
		{"import \"reflect\"\nvar tag reflect.StructTag = \"a\"\ntag", "→a"},
		{"import \"reflect\"\ntag := \"a\"\nreflect.StructTag(tag)", "→a"},
		{"x := 1\n_ = x\nat(3)", "Panic: index out of range [3] with length 0 (in a function of Cell 0, line 6)"},
		{"x := 1\n_ = x\nvar a []int\na[3] = 1", "Panic: index out of range [3] with length 0 (Cell 1, line 4)"},
		{"for i := 0; i < 3; i++ {\n\tif i == 2 {\n\t\tpanic(\"boom\")\n\t}\n}", "Panic: boom"},
		{"x := 1\npanic(x)", "Panic: 1 (Cell 1, line 2)"},
		{"panic(\"alone\")", "Panic: alone (Cell 1, line 1)"},
		{"var p *P\np.Name", "Panic: "},
		{"os.Exit(1)", "Panic: os.Exit(1) would end the kernel"},
		{"1, 2;", "SyntaxError: expected 1 expression"},
		{"1, nosuch", "CompileError: undefined: nosuch"},
		{"1+", "SyntaxError: expected operand, found 'EOF'; the cell ends too early: a bracket or an operand is missing (Cell 1, line 1)"},
		{"y := n *\n\n", "SyntaxError: expected operand, found 'EOF'; the cell ends too early: a bracket or an operand is missing (Cell 1, line 1)"},
		{"\nfor i := range 3 {\n\tif i > 1 {\n\t\tfmt.Println(i)\n}\n", "SyntaxError: this { is not closed (Cell 1, line 2)"},
		{"\nfmt.Println(1,", "SyntaxError: this ( is not closed (Cell 1, line 2)"},
		{"func f() {\n\tx := []int{1,\n\t\t2", "SyntaxError: this { is not closed (Cell 1, line 2)"},
		{"if n == 1", "SyntaxError: "},
		{"import _ \"embed\"\n//go:embed x.txt\nvar es string\nes", "SyntaxError: //go:embed has no effect in a cell; read the file: os.ReadFile (Cell 1, line 2)"},
		{"//go:linkname now time.now\nfunc now() int64", "SyntaxError: //go:linkname has no effect in a cell; use exported names (Cell 1, line 1)"},
		{"// about //go:embed\nn", "→1"},
		{"var z int\nfmt.Scan(&z)\nz", "Panic: no reader (Cell 1, line 2)"},
		{"if true { var z string; fmt.Scanf(\"%s\", &z) }", "Panic: no reader (Cell 1, line 1)"},
		{"Must(os.Open(\"nosuch\"))", "Panic: open nosuch: no such file or directory (Cell 1, line 1)"},
		{"import \"gonum.org/v1/plot/plotter\"\np := plot.New()\np.Y.Scale = plot.LogScale{}\nl, _ := plotter.NewLine(plotter.XYs{{X: 1, Y: 0}, {X: 2, Y: 10}})\np.Add(l)\np",
			"display: plot \"\"✗DisplayError: it cannot be shown: display panicked: Values must be greater than 0"},
		{"Display(&plots.Figure{})", "✗Panic: it cannot be shown: figure: "},
		{"%nosuch", "CommandError: unknown command %nosuch"},
		{"!exit 3", "CommandError: exit 3: exit status 3"},
		{"strings.Repeat(\"a\", -1)", "Panic: strings: negative Repeat count"},
	} {
		p := &sheet{reply: func(string) (string, error) { return "", errors.New("no reader") }}
		if got := outcome(s.Run("Cell 1", c.code, p), p); !strings.Contains(got, c.want) {
			t.Errorf("%s\n got %q\nwant %q", c.code, got, c.want)
		}
		if got := run(s, "n"); got != "→1" {
			t.Fatalf("after %q: n is %q", c.code, got)
		}
	}
}

// TestInterrupt interrupts cells of every kind, twenty times each, and goes on.
func TestInterrupt(t *testing.T) {
	s := open(t, nil)
	run(s, "import (\"fmt\"; \"time\"; \"context\"; \"sort\")\nkept := 0\nfunc wait(ctx context.Context) int { <-ctx.Done(); return 7 }\nfunc spin() { for { } }")
	for _, c := range []struct{ code, want string }{
		{"for { }", "✗Interrupted: "},
		{"for { kept++ }", "✗Interrupted: the cell was interrupted (Cell 1, line 1)"},
		{"spin()", "✗Interrupted: "},
		{"time.Sleep(time.Hour)", "✗Interrupted: "},
		{"!sleep 100", "✗Interrupted: the cell was interrupted"},
		{"sort.Slice([]int{3, 2, 1}, func(i, j int) bool { for { }; return false })", "✗Interrupted: "},
	} {
		for i := range 20 {
			go interruptAfter(s, time.Duration(5+i)*time.Millisecond)
			if got := run(s, c.code); !strings.HasPrefix(got, c.want) {
				t.Fatalf("%s: %q, want %q", c.code, got, c.want)
			}
			if got := run(s, "1 + 1"); got != "→2" {
				t.Fatalf("after %s: %q", c.code, got)
			}
		}
	}
	ticks := begins(s)
	go func() { <-ticks; interruptAfter(s, 0) }()
	if got := run(s, "n := 0\nfor { begun(); n++ }"); got != "✗Interrupted: the cell was interrupted (Cell 1, line 2)" {
		t.Errorf("the second line: %q", got)
	}
}

// begins declares a function begun, whose calls are told on the channel to whoever listens.
func begins(s *Session) <-chan bool {
	told := make(chan bool, 1)
	s.do(func() {
		declare(s, "begun", func() {
			select {
			case told <- true:
			default:
			}
		})
	})
	return told
}

// TestPartial interrupts a solve: the cell keeps what the solve returned.
func TestPartial(t *testing.T) {
	s := open(t, nil)
	told := begins(s)
	run(s, `import ("context"; "time"; "fmt")
var found int
func long(ctx context.Context) (int, error) {
	for i := 1; ; i++ {
		if ctx.Err() != nil { return i, ctx.Err() }
		begun()
		time.Sleep(time.Millisecond)
	}
}`)
	go func() { <-told; interruptAfter(s, 0) }()
	if got := run(s, "found, err := long(ctx)"); got != "✗Interrupted: the cell was interrupted (Cell 1, line 1)" {
		t.Errorf("%q", got)
	}
	if got := run(s, "found > 0"); got != "→true" {
		t.Errorf("found: %q", got)
	}
	if got := run(s, "ctx.Err() == nil"); got != "→true" {
		t.Errorf("the next cell's context: %q", got)
	}
}

// TestGoroutinePanic panics in goroutines of every kind.
func TestGoroutinePanic(t *testing.T) {
	s := open(t, nil)
	run(s, "import \"time\"\nfunc bad(i int) { var a []int; a[i] = 1 }")
	for _, code := range []string{"go func() { panic(\"boom\") }()", "go bad(3)", "go func() { bad(2) }()",
		"var wg sync.WaitGroup\nwg.Go(func() { bad(1) })", "time.AfterFunc(time.Millisecond, func() { bad(1) })", "context.AfterFunc(ctx, func() { bad(1) })\nc, stop := context.WithCancel(ctx)\ncontext.AfterFunc(c, func() { bad(4) })\nstop()"} {
		p, ended := &sheet{}, make(chan bool)
		go func() { s.Run("Cell 1", code+"\ntime.Sleep(time.Hour)", p); close(ended) }()
		for limit := time.Now().Add(2 * time.Minute); p.all() == "" && time.Now().Before(limit); {
			time.Sleep(time.Millisecond)
		}
		interruptAfter(s, 0)
		<-ended
		if got := p.all(); !strings.HasPrefix(got, "stderr: a goroutine of the cell panicked: ") {
			t.Errorf("%s: %q", code, got)
		}
	}
	if got := run(s, "var w sync.WaitGroup\nw.Go(func() { bad(7) })\nw.Wait()"); !strings.HasPrefix(got, "stderr: a goroutine of the cell panicked: ") {
		t.Errorf("waited for: %q", got)
	}
	if got := run(s, "1"); got != "→1" {
		t.Errorf("afterwards: %q", got)
	}
}

// TestOutput prints much, and characters in pieces.
func TestOutput(t *testing.T) {
	s := open(t, &Options{MaxOutput: 1000})
	run(s, "import (\"fmt\"; \"os\"; \"strings\")")
	got := run(s, "for i := 0; i < 100; i++ { fmt.Println(strings.Repeat(\"x\", 1000)) }")
	if !strings.Contains(got, "[output cut after 1000 bytes") || !strings.Contains(got, "[99100 more bytes were printed and omitted]") || len(got) > 1300 {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	got = run(s, "b := []byte(\"aü€😀z\")\nfor _, c := range b { os.Stdout.Write([]byte{c}); for i := 0; i < 30000; i++ { } }")
	if strings.ReplaceAll(strings.ReplaceAll(got, "stdout: ", ""), "|", "") != "aü€😀z" {
		t.Errorf("%q", got)
	}
	if got := run(s, "os.Stdout.Write([]byte{255})"); !strings.HasPrefix(got, "stdout: \xff") {
		t.Errorf("%q", got)
	}
}

// TestMany runs many cells, as many as ten thousand where time is no matter.
func TestMany(t *testing.T) {
	s := open(t, nil)
	run(s, "import \"fmt\"\ntotal := 0")
	n := suite.Scale(100, 300, 10000)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	marks := []int{n / 10, n * 55 / 100, n}
	var at [3]int64
	cell := 0
	for k, mark := range marks {
		for ; cell < mark; cell++ {
			if got, want := run(s, fmt.Sprintf("x := %d\ntotal += x\nfmt.Println(x)\ntotal", cell)), fmt.Sprintf("stdout: %d\n→%d", cell, cell*(cell+1)/2); got != want {
				t.Fatalf("cell %d: %q, want %q", cell, got, want)
			}
		}
		at[k] = heap()
	}
	// What is allocated once, and what other tests leave to the collector, is in one of the halves; what cells leave is in both.
	grown, cells := min(at[1]-at[0], at[2]-at[1]), marks[2]-marks[1]
	if t.Logf("%d cells left %d bytes", cells, grown); grown > int64(cells)*1500 {
		t.Errorf("%d cells left %d bytes in either half", cells, grown)
	}
}

// TestCommands runs the commands.
func TestCommands(t *testing.T) {
	s := open(t, nil)
	t.Chdir(t.TempDir())
	for _, c := range []struct{ code, want string }{
		{"!echo hi", "stdout: hi\n"},
		{"!echo a >&2", "stderr: a\n"},
		{"x := 1\n!echo mid\nx + 1", "stdout: mid\n→2"},
		{"%time x + 5", "→6"},
		{"%time\nx", "→1"},
		{"!mkdir sub\n%cd sub", "sub\n"},
		{"%who", "x  int"},
		{"s := `\n%cd nowhere\n`\nlen(s)", "→13"},
		{"%help", "%reset                 forget them all"},
		{"%env KRRLAB_TEST_A=b c", "KRRLAB_TEST_A=b c\n"},
		{"!echo $KRRLAB_TEST_A", "stdout: b c\n"},
		{"%env KRRLAB_TEST_A", "stdout: b c\n"},
		{"%env KRRLAB_TEST_NONE", "stdout: KRRLAB_TEST_NONE is not set\n"},
		{"\n%%bash\nfor i in 1 2; do echo \"$i)\"; done; [[ 1 == 1 ]] && (exit 3)", "stdout: 1)\n2)\n✗CommandError: for i in"},
		{"%%writefile 'a b.txt'\nline {\n%cd x", "stdout: Writing a b.txt\n"},
		{"%%writefile -a a b.txt\nmore", "stdout: Appending to a b.txt\n"},
		{"!cat 'a b.txt'", "stdout: line {\n%cd x\nmore\n"},
		{"%%writefile", "✗CommandError: want the name of a file"},
		{"fmt.Print(0)\n%capture c.txt\nfmt.Println(1)\nos.Stdout.WriteString(\"2\\n\")\n!echo 3\n4", "3\n→4"},
		{"%capture -a c.txt\nfmt.Println(5)", "stdout: 5\n"},
		{"fmt.Println(6)\n!cat c.txt", "6\n1\n2\n3\n5\n"},
		{"%capture", "✗CommandError: want the name of a file: %capture out.txt"},
		{"%capture /dev/full\nfmt.Println(7)\nfmt.Println(8)", "%capture: write /dev/full: no space left on device\n"},
		{"%goflags -tags=a  -gcflags=-N", "stdout: -tags=a -gcflags=-N\n"},
		{"%goflags", "stdout: -tags=a -gcflags=-N\n"},
		{"%load nowhere.go", "✗CommandError: open nowhere.go"},
		{"%%html\n<b>x</b>", "display: <text/html"},
		{"%%nosuch\nx", "✗CommandError: unknown command %%nosuch"},
		{"%install gonum.org/v1/gonum/mat", "works: it is linked into the kernel"},
		{"%install github.com/x/y@latest", "✗CommandError: packages cannot be added here"},
		{"%test", "✗CommandError: %test: this notebook declares no function TestXxx"},
		{"func twice(x int) int { return 2 * x }\nfunc TestTwice(t *testing.T) { if twice(2) != 4 { t.Error(\"no\") } }\n%test", "ok: 1 passed\n"},
		{"func TestFails(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Fatalf(\"got %d\", twice(3)) }) }\n%test", "got 6"},
		{"%test Fails", "✗Error: a test failed"},
		{"%test Twi", "ok: 1 passed\n"},
		{"%test -v Twice", "--- PASS: TestTwice"},
		{"func BenchmarkTwice(b *testing.B) { for i := 0; i < b.N; i++ { twice(i) } }\n%bench Tw", "ns/op"},
		{"func TestPanics(t *testing.T) { panic(\"oh\") }\n%test Panics", "panic: oh"},
		{"func BenchmarkBad(b *testing.B) { var a []int; a[3]++ }\n%bench Bad", "✗Panic: index out of range [3] with length 0"},
		{"b, i := 2, []int{1}\n%timeit b + i[0]", " a run, average of "},
		{"%timeit i[b]", "✗Panic: index out of range [2] with length 1"},
		{"%doc fmt", "package fmt"},
		{"import \"gonum.org/v1/gonum/mat\"\n%doc mat.NewDense", "NewDense creates a new Dense matrix"},
		{"%doc gonum.org/v1/gonum/mat", "Package mat provides"},
		{"%doc nosuch.Name", "✗CommandError: no documentation of nosuch.Name; of a package it takes the import first"},
		{"%doc", "gonum.org/v1/gonum/mat\n"},
		{"%reset\nx", "undefined: x"},
	} {
		if got := run(s, c.code); !strings.Contains(got, c.want) {
			t.Errorf("%s\n got %q\nwant %q", c.code, got, c.want)
		}
	}
	if err := os.WriteFile("in.go", []byte("x := 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.Run("Cell 1", "%load in.go", &sheet{}); r.Next != "x := 1\n" || r.Err != nil {
		t.Errorf("%%load: %+v", r)
	}
}

// TestInput reads lines from the reader.
func TestInput(t *testing.T) {
	s := open(t, nil)
	run(s, "import \"fmt\"")
	p := &sheet{reply: func(prompt string) (string, error) { return "12 b", nil }}
	if got := outcome(s.Run("Cell 2", "Input(\"? \")", p), p); got != "→12 b" {
		t.Errorf("Input: %q", got)
	}
	if got := outcome(s.Run("Cell 3", "var i int; var w string\nfmt.Scanln(&i, &w)\nfmt.Println(i + 1, w)", p), p); got != "stdout: 13 b\n" {
		t.Errorf("Scanln: %q", got)
	}
	p = &sheet{reply: p.reply}
	if got := outcome(s.Run("Cell 4", "var s string\nfmt.Scanln(&i, &s, &i)\ni", p), p); got != "stderr: fmt.Scan: unexpected newline\n→12" {
		t.Errorf("a line too short: %q", got)
	}
}

// TestComplete asks for names at the end of cells.
func TestComplete(t *testing.T) {
	s := open(t, nil)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("points.csv", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run(s, `import ("fmt"; "strings"; "github.com/krrlab/lab/krrlab"; "github.com/krrlab/lab/krrlab/kernel"; "gonum.org/v1/gonum/mat")
lambda := 3
type P struct { Alpha float64; inner int }
func (p *P) Beta() *P { return p }
p := &P{}
var lab *krrlab.Lab
m := mat.NewDense(2, 2, nil)`)
	for _, c := range []struct{ code, want string }{
		{"lamb", "lambda"}, {"fmt.Printl", "Println"}, {"strings.NewRead", "NewReader"}, {"p.Al", "Alpha"}, {"p.Beta().Be", "Beta"},
		{"lab.Config().Lam", "Lambda"}, {"m.T().Di", "Dims"}, {"kernel.Gaussian{Sigma: 1}.Ev", "Eval"}, {"q := kernel.Gaussian{}\nq.Sig", "Sigma"},
		{"sol, err := lab.Solve(ctx)\nsol.Itera", "Iterations"}, {"import \"gonum.org/v1/gonum/sta", "gonum.org/v1/gonum/stat"},
		{"import (\n\t\"fmt\"\n\t\"distu", "gonum.org/v1/gonum/stat/distuv"}, {"x := \"poi", "points.csv"}, {"%ti", "%time"}, {"%%wr", "%%writefile"}, {"%load poi", "points.csv"}, {"var longname int\nlongn", "longname"},
		{"Disp", "Display"}, {"retu", "return"}, {"p.in", "inner"}, {"krrlab.New(nil, krrlab.Config{Lam", "Lambda"},
		{"krrlab.New(nil, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1},\n\tLam", "Lambda"}, {"p = &P{", "Alpha"}, {"x := P{Alpha: 1, ", "inner"}, {"P{Alpha: lamb", "lambda"}, {"[]P{P{inn", "inner"},
		{"func f() P { Al", ""}, {"if lambda == 3 { Al", ""}, {"P{Alpha: Al", ""},
	} {
		got, start, end := s.Complete(c.code, len(c.code))
		if c.want == "" {
			if len(got) > 0 {
				t.Errorf("%s: %v", c.code, got)
			}
			continue
		}
		if !slices.Contains(got, c.want) || end != len(c.code) || !strings.Contains(c.want, c.code[start:end]) {
			t.Errorf("%s: %v, %d to %d; want %s", c.code, got, start, end, c.want)
		}
	}
	if got := run(s, "lambda"); got != "→3" {
		t.Errorf("afterwards: %q", got)
	}
}

// TestInspect asks for documentation at the end of cells.
func TestInspect(t *testing.T) {
	s := open(t, nil)
	run(s, `import ("strings"; "github.com/krrlab/lab/krrlab"; "github.com/krrlab/lab/krrlab/kernel"; "gonum.org/v1/gonum/mat")
var lab *krrlab.Lab
x := 3
func f(a int) string { return "" }`)
	for _, c := range []struct{ code, want string }{
		{"krrlab.New", "New checks the data"}, {"krrlab.New(nil, ", "func New(train"}, {"lab.Solve", "Solve"}, {"lab.Config().Lambda", "ridge λ > 0"},
		{"mat.NewDense(2, 3, nil).T", "T performs an implicit transpose"}, {"kernel.Gaussian", "type Gaussian struct"}, {"x", "x int"}, {"f", "func f(a int) string"},
		{"ctx", "an interrupt cancels it"}, {"krrlab", "Package krrlab is the bench"}, {"strings.ToUpper", "ToUpper"}, {"m := mat.NewDense(1, 1, nil)\nm.At(", "At returns the element"},
	} {
		got, ok := s.Inspect(c.code, len(c.code), false)
		if !ok || !strings.Contains(got, c.want) {
			t.Errorf("%s: %v %.200q, want %q", c.code, ok, got, c.want)
		}
	}
	if got, ok := s.Inspect("nosuch.Thing", 12, false); ok {
		t.Errorf("nosuch.Thing: %q", got)
	}
}

// TestIsComplete asks of cells whether they can be run.
func TestIsComplete(t *testing.T) {
	s := open(t, nil)
	for code, want := range map[string]string{
		"": "complete", "x := 1": "complete", "for {": "incomplete", "f(1,": "incomplete", "x :=": "incomplete", "x +": "incomplete", "s := `a": "incomplete",
		"/* a": "incomplete", "f(]": "invalid", "}": "invalid", "x := := 1": "invalid", "func f() {\n}": "complete", "%time x": "complete", "!ls (": "complete", "%%bash\nls (": "complete", "if x {\n\tif y {": "incomplete",
	} {
		got, indent := s.IsComplete(code)
		if got != want {
			t.Errorf("%q: %s, want %s", code, got, want)
		}
		if code == "if x {\n\tif y {" && indent != "\t\t" {
			t.Errorf("indent %q", indent)
		}
	}
}

func equal(got, want string) bool { return got == want }

// cells runs cells and compares what comes of each with what follows it.
func cells(t *testing.T, s *Session, match func(got, want string) bool, codes ...string) {
	t.Helper()
	for i := 0; i < len(codes); i += 2 {
		if got := run(s, codes[i]); !match(got, codes[i+1]) {
			t.Errorf("%s\n got %q\nwant %q", codes[i], got, codes[i+1])
		}
	}
}
