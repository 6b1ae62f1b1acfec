package golang

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/display"
)

// outputRecorder is an Output that keeps the texts and values that it receives as events.
type outputRecorder struct {
	mu     sync.Mutex
	events []string
	reply  func(prompt string) (string, error) // answers Input
}

func (output *outputRecorder) add(event string) {
	output.mu.Lock()
	defer output.mu.Unlock()
	output.events = append(output.events, event)
}

func (output *outputRecorder) Interrupts() <-chan struct{} { return nil }

func (output *outputRecorder) Stream(name, text string) { output.add(name + ": " + text) }
func (output *outputRecorder) Display(d display.Data) {
	output.add(fmt.Sprint("display: ", d.Data["text/plain"]))
}
func (output *outputRecorder) Update(d display.Data) {
	output.add(fmt.Sprint("update ", d.Transient["display_id"], ": ", d.Data["text/plain"]))
}
func (output *outputRecorder) Clear(wait bool) { output.add(fmt.Sprint("clear ", wait)) }
func (output *outputRecorder) Input(prompt string, password bool) (string, error) {
	return output.reply(prompt)
}

// joined returns the events on one line.
func (output *outputRecorder) joined() string {
	output.mu.Lock()
	defer output.mu.Unlock()
	return strings.Join(output.events, "|")
}

// openSession starts a session for a test.
func openSession(t testing.TB, dataDirs []string) *Session {
	t.Helper()
	s := testkit.Must(New(dataDirs))
	t.Cleanup(s.Close)
	return s
}

// run runs a cell and returns its events, its value after → and its error after ✗, on one line.
func run(s *Session, code string) string {
	output := &outputRecorder{}
	return outcome(s.Run("Cell 1", code, output), output)
}

// declare makes a function available to cells under a name.
func declare[F any](s *Session, name string, f F) { s.interp.Declare(map[string]any{name: &f}) }

// outcome returns the events, the value after → and the error after ✗ of a cell that was run.
func outcome(r Result, output *outputRecorder) string {
	text := output.joined()
	if r.Value != nil {
		text += fmt.Sprint("→", r.Value.Data["text/plain"])
	}
	if r.Err != nil {
		text += "✗" + r.Err.Error()
	}
	return text
}

// TestCells runs scripts of cells, each script in a session of its own. The scripts cover cells of all kinds; names
// that are declared again with another type, whose earlier functions keep the old variables; compiled types that refer
// to themselves; loop variables, of which each iteration has its own; and packages of the standard library that are
// newer than the interpreter's own table.
func TestCells(t *testing.T) {
	for _, name := range []string{"Cells", "Retyped", "RecursiveTypes", "LoopVariables", "NewerLibrary"} {
		t.Run(name, func(t *testing.T) { checkCells(t, openSession(t, nil), equal, scriptCells(t, name)...) })
	}
}

// TestErrorMessages runs one cell for each kind of error, and checks that the variables of earlier cells are kept.
func TestErrorMessages(t *testing.T) {
	s := openSession(t, nil)
	s.Run("Cell 0",
		"import (\"fmt\"; \"strings\"; \"time\"; \"os\")\nn := 1\nword := \"w\"\nfunc at(i int) int {\n\tvar a "+
			"[]int\n\treturn a[i]\n}\ntype P struct { Name string }", &outputRecorder{})
	for _, test := range scriptCells(t, "Errors") {
		output := &outputRecorder{reply: func(string) (string, error) { return "", errors.New("no reader") }}
		if got := outcome(s.Run("Cell 1", test.code, output), output); !strings.Contains(got, test.want) {
			t.Errorf("%s\n got %q\nwant %q", test.code, got, test.want)
		}
		if got := run(s, "n"); got != "→1" {
			t.Fatalf("after %q: n is %q", test.code, got)
		}
	}
}

// TestErrorHints checks the advice in error messages, and that the results of print functions are not shown, whatever
// the name is under which package fmt is imported.
func TestErrorHints(t *testing.T) {
	s := openSession(t, nil)
	testkit.Equal(t, run(s, "import f \"fmt\"\nf.Println(3)"), "stdout: 3\n")
	testkit.Equal(t, run(s, "import . \"fmt\"\nPrintln(3)"), "stdout: 3\n")
	checkCells(t, s, strings.Contains, scriptCells(t, "Hints")...)
}

// TestInterrupt interrupts cells of every kind, twenty times each, and checks that the session continues.
func TestInterrupt(t *testing.T) {
	s := openSession(t, nil)
	run(s,
		"import (\"fmt\"; \"time\"; \"context\"; \"sort\")\nkept := 0\nfunc wait(ctx context.Context) int { "+
			"<-ctx.Done(); return 7 }\nfunc spin() { for { } }")
	for _, test := range scriptCells(t, "Interrupt") {
		for i := range 20 {
			go interruptAfter(s, time.Duration(5+i)*time.Millisecond)
			if got := run(s, test.code); !strings.HasPrefix(got, test.want) {
				t.Fatalf("%s: %q, want %q", test.code, got, test.want)
			}
			if got := run(s, "1 + 1"); got != "→2" {
				t.Fatalf("after %s: %q", test.code, got)
			}
		}
	}
	ticks := declareReportCall(s)
	go func() { <-ticks; interruptAfter(s, 0) }()
	testkit.Equal(t, run(s, "n := 0\nfor { reportCall(); n++ }"), "✗Interrupted: the cell was interrupted (Cell 1, line 2)")
}

// declareReportCall declares a function reportCall for cells. Each call of reportCall is reported on the channel,
// unless a report is already waiting there.
func declareReportCall(s *Session) <-chan bool {
	calls := make(chan bool, 1)
	s.runOnWorker(func() {
		declare(s, "reportCall", func() {
			select {
			case calls <- true:
			default:
			}
		})
	})
	return calls
}

// TestInterruptKeepsPartialResult interrupts a solve and checks that the cell keeps the values that the solve returned.
func TestInterruptKeepsPartialResult(t *testing.T) {
	s := openSession(t, nil)
	calls := declareReportCall(s)
	run(s, `import ("context"; "time"; "fmt")
var found int
func long(ctx context.Context) (int, error) {
	for i := 1; ; i++ {
		if ctx.Err() != nil { return i, ctx.Err() }
		reportCall()
		time.Sleep(time.Millisecond)
	}
}`)
	go func() { <-calls; interruptAfter(s, 0) }()
	testkit.Equal(t, run(s, "found, err := long(ctx)"), "✗Interrupted: the cell was interrupted (Cell 1, line 1)")
	testkit.Equal(t, run(s, "found > 0"), "→true")
	testkit.Equal(t, run(s, "ctx.Err() == nil"), "→true")
}

// TestGoroutinePanic checks that a panic in a goroutine of any kind is printed, and does not end the session.
func TestGoroutinePanic(t *testing.T) {
	s := openSession(t, nil)
	run(s, "import \"time\"\nfunc bad(i int) { var a []int; a[i] = 1 }")
	for _, code := range []string{"go func() { panic(\"boom\") }()", "go bad(3)", "go func() { bad(2) }()",
		"var wg sync.WaitGroup\nwg.Go(func() { bad(1) })", "time.AfterFunc(time.Millisecond, func() { bad(1) })", "context.AfterFunc(ctx, func() { bad(1) })\nc, stop := context.WithCancel(ctx)\ncontext.AfterFunc(c, func() { bad(4) })\nstop()"} {
		output, cellEnded := &outputRecorder{}, make(chan bool)
		go func() { s.Run("Cell 1", code+"\ntime.Sleep(time.Hour)", output); close(cellEnded) }()
		for limit := time.Now().Add(2 * time.Minute); output.joined() == "" && time.Now().Before(limit); {
			time.Sleep(time.Millisecond)
		}
		interruptAfter(s, 0)
		<-cellEnded
		if got := output.joined(); !strings.HasPrefix(got, "stderr: a goroutine of the cell panicked: ") {
			t.Errorf("%s: %q, want a report of the panic", code, got)
		}
	}
	if got := run(s, "var w sync.WaitGroup\nw.Go(func() { bad(7) })\nw.Wait()"); !strings.HasPrefix(got,
		"stderr: a goroutine of the cell panicked: ") {
		t.Errorf("waited for: %q", got)
	}
	testkit.Equal(t, run(s, "1"), "→1")
}

// TestOutputLimit prints more than maxOutput bytes, which must be cut, and characters byte by byte, which must be shown
// as whole characters.
func TestOutputLimit(t *testing.T) {
	s := openSession(t, nil)
	run(s, "import (\"fmt\"; \"os\"; \"strings\")")
	got := run(s, "for range 5000 { fmt.Print(strings.Repeat(\"x\", 1000)) }")
	if !strings.Contains(got, "[output cut after 4194304 bytes") ||
		!strings.Contains(got, "[805696 more bytes were printed and omitted]") || len(got) > maxOutput+5000 {
		t.Errorf("%d bytes: %.100q", len(got), got)
	}
	got = run(s,
		"b := []byte(\"aü€😀z\")\nfor _, c := range b { os.Stdout.Write([]byte{c}); for i := 0; i < 30000; i++ { } }")
	testkit.Equal(t, strings.ReplaceAll(strings.ReplaceAll(got, "stdout: ", ""), "|", ""), "aü€😀z", got)
	if got := run(s, "os.Stdout.Write([]byte{255})"); !strings.HasPrefix(got, "stdout: \xff") {
		t.Errorf("a byte that is not UTF-8 is printed as %q", got)
	}
}

// TestMemoryOfManyCells runs many cells, up to ten thousand in the long suite, and checks that they leave at most 1,500
// bytes each.
func TestMemoryOfManyCells(t *testing.T) {
	s := openSession(t, nil)
	run(s, "import \"fmt\"\ntotal := 0")
	total := suite.Scale(100, 300, 10000)
	heapBytes := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	cellCounts := []int{total / 10, total * 55 / 100, total}
	var heapSizes [3]int64
	cellNumber := 0
	for i, count := range cellCounts {
		for ; cellNumber < count; cellNumber++ {
			if got, want := run(s, fmt.Sprintf("x := %d\ntotal += x\nfmt.Println(x)\ntotal",
				cellNumber)), fmt.Sprintf("stdout: %d\n→%d", cellNumber, cellNumber*(cellNumber+1)/2); got != want {
				t.Fatalf("cell %d: %q, want %q", cellNumber, got, want)
			}
		}
		heapSizes[i] = heapBytes()
	}
	// Memory that is allocated only once, or that other tests leave to the garbage collector, appears in only one of
	// the two intervals between the measurements. Memory that the cells leave appears in both, so the smaller growth
	// counts.
	growth, cells := min(heapSizes[1]-heapSizes[0], heapSizes[2]-heapSizes[1]), cellCounts[2]-cellCounts[1]
	if t.Logf("%d cells left %d bytes", cells, growth); growth > int64(cells)*1500 {
		t.Errorf("%d cells left %d bytes in each half", cells, growth)
	}
}

// TestCommands runs the commands that begin with % or !.
func TestCommands(t *testing.T) {
	s := openSession(t, nil)
	t.Chdir(t.TempDir())
	for _, test := range scriptCells(t, "Commands") {
		if got := run(s, test.code); !strings.Contains(got, test.want) {
			t.Errorf("%s\n got %q\nwant %q", test.code, got, test.want)
		}
	}
}

// TestInputFromReader checks that Input and the Scan functions of fmt read lines that the user types.
func TestInputFromReader(t *testing.T) {
	s := openSession(t, nil)
	run(s, "import \"fmt\"")
	output := &outputRecorder{reply: func(prompt string) (string, error) { return "12 b", nil }}
	testkit.Equal(t, outcome(s.Run("Cell 2", "Input(\"? \")", output), output), "→12 b")
	testkit.Equal(t, outcome(s.Run("Cell 3", "var i int; var w string\nfmt.Scanln(&i, &w)\nfmt.Println(i + 1, w)", output),
		output), "stdout: 13 b\n")
	output = &outputRecorder{reply: output.reply}
	testkit.Equal(t, outcome(s.Run("Cell 4", "var s string\nfmt.Scanln(&i, &s, &i)\ni", output),
		output), "stderr: fmt.Scan: unexpected newline\n→12")
}

// TestComplete checks which completions are suggested at the end of cells.
func TestComplete(t *testing.T) {
	s := openSession(t, nil)
	t.Chdir(t.TempDir())
	testkit.OK(t, os.WriteFile("points.csv", nil, 0o644))
	run(s, `import ("fmt"; "strings"; "github.com/krrlab/lab/krrlab"; "github.com/krrlab/lab/krrlab/kernel"; "gonum.org/v1/gonum/mat")
lambda := 3
type P struct { Alpha float64; inner int }
func (p *P) Beta() *P { return p }
p := &P{}
var lab *krrlab.Lab
m := mat.NewDense(2, 2, nil)`)
	for _, test := range scriptCells(t, "Complete") {
		got, start, end := s.Complete(test.code, len(test.code))
		if test.want == "" {
			if len(got) > 0 {
				t.Errorf("%s: %v, want no completions", test.code, got)
			}
			continue
		}
		if !slices.Contains(got, test.want) || end != len(test.code) ||
			!strings.Contains(test.want, test.code[start:end]) {
			t.Errorf("%s: %v, %d to %d; want %s", test.code, got, start, end, test.want)
		}
	}
	testkit.Equal(t, run(s, "lambda"), "→3")
}

// TestInspect checks the documentation of the name at the end of a cell.
func TestInspect(t *testing.T) {
	s := openSession(t, nil)
	run(s, `import ("strings"; "github.com/krrlab/lab/krrlab"; "github.com/krrlab/lab/krrlab/kernel"; "gonum.org/v1/gonum/mat")
var lab *krrlab.Lab
x := 3
func f(a int) string { return "" }`)
	for _, test := range scriptCells(t, "Inspect") {
		got, ok := s.Inspect(test.code, len(test.code), false)
		if !ok || !strings.Contains(got, test.want) {
			t.Errorf("%s: %v %.200q, want %q", test.code, ok, got, test.want)
		}
	}
	if got, ok := s.Inspect("nosuch.Thing", 12, false); ok {
		t.Errorf("nosuch.Thing: %q", got)
	}
}

// TestIsComplete checks whether cells are recognized as complete, incomplete or invalid, and the indent of the next
// line.
func TestIsComplete(t *testing.T) {
	s := openSession(t, nil)
	for code, want := range map[string]string{
		"": "complete", "x := 1": "complete", "for {": "incomplete", "f(1,": "incomplete", "x :=": "incomplete",
		"x +": "incomplete", "s := `a": "incomplete",
		"/* a": "incomplete", "f(]": "invalid", "}": "invalid", "x := := 1": "invalid", "func f() {\n}": "complete",
		"%time x": "complete", "!ls (": "complete", "%%bash\nls (": "complete", "if x {\n\tif y {": "incomplete",
	} {
		got, indent := s.IsComplete(code)
		testkit.Equal(t, got, want, code)
		if code == "if x {\n\tif y {" && indent != "\t\t" {
			t.Errorf("indent %q", indent)
		}
	}
}

// equal is a match for cells that requires equal texts.
func equal(got, want string) bool { return got == want }

// scriptCell is a cell and its expected result.
type scriptCell struct{ code, want string }

// scripts contains the cells of tests, after the names of the tests. A cell ends with a line that consists of -- and
// the expected result: the events of the cell, its value after → and its error after ✗.
//
//go:embed testdata/cells.txt
var scripts string

var (
	cellEnd  = regexp.MustCompile(`(?:^|\n)-- ?(.*)\n`)
	unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\s`, " ")
)

// scriptCells returns the cells of the test with the given name in scripts.
func scriptCells(t *testing.T, name string) (cells []scriptCell) {
	t.Helper()
	_, text, found := strings.Cut("\n"+scripts, "\n## "+name+"\n")
	if !found {
		t.Fatalf("no script %s", name)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	start := 0
	for _, match := range cellEnd.FindAllStringSubmatchIndex(text+"\n", -1) {
		cells = append(cells, scriptCell{text[start:match[0]], unescape.Replace(text[match[2]:match[3]])})
		start = match[1]
	}
	return cells
}

// checkCells runs cells and compares the result of each with the expected one.
func checkCells(t *testing.T, s *Session, match func(got, want string) bool, steps ...scriptCell) {
	t.Helper()
	for _, test := range steps {
		if got := run(s, test.code); !match(got, test.want) {
			t.Errorf("%s\n got %q\nwant %q", test.code, got, test.want)
		}
	}
}
