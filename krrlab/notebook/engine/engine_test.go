package engine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	_ "github.com/krrlab/lab/krrlab/notebook/bindings"
)

// printedText collects the text that cells print.
type printedText struct {
	mu   sync.Mutex
	text strings.Builder
}

// openEngine returns an engine and a function that runs a cell. The function returns the printed text, the values
// after → and the error after ✗.
func openEngine(t testing.TB) (*Engine, func(code string) string) {
	t.Helper()
	printed := &printedText{}
	e := New(map[string]any{"fmt.Println": func(args ...any) (int, error) {
		printed.mu.Lock()
		defer printed.mu.Unlock()
		return fmt.Fprintln(&printed.text, args...)
	}})
	e.ImplicitImport = func(name string) string {
		return map[string]string{"fmt": "fmt", "sort": "sort", "errors": "errors", "sync": "sync",
			"strings": "strings", "slices": "slices", "runtime": "runtime"}[name]
	}
	return e, func(code string) string {
		printed.text.Reset()
		cell, err := e.Compile("cell", code)
		if err != nil {
			return "✗" + err.Error()
		}
		values, err := cell.Run(func() bool { return false }, func(int) {})
		e.mu.Lock()
		e.sweep() // must not remove what later cells need
		e.mu.Unlock()
		text := printed.text.String()
		for _, value := range values {
			text += fmt.Sprint("→", value.Value)
		}
		if err != nil {
			text += "✗" + err.Error()
		}
		return text
	}
}

// cells are the cells of a session, each with the start of its result. If wantPrefix is empty, the result must be
// empty.
type cells []struct{ code, wantPrefix string }

// run runs the cells in a new engine and checks their results.
func (session cells) run(t *testing.T) {
	t.Helper()
	_, run := openEngine(t)
	for _, cell := range session {
		if got := run(cell.code); !strings.HasPrefix(got, cell.wantPrefix) || cell.wantPrefix == "" && got != "" {
			t.Errorf("%s\n got %q\nwant %q", cell.code, got, cell.wantPrefix)
		}
	}
}

// TestConcurrentResults calls a function with several results from many goroutines, and checks that no results are
// mixed up.
func TestConcurrentResults(t *testing.T) {
	_, run := openEngine(t)
	got := run(`func withSquare(v int) (int, int) { return v, v * v }
var wg sync.WaitGroup
var mu sync.Mutex
mixedUp := 0
for g := range 8 {
	wg.Go(func() {
		for i := range 2000 {
			v := g*100000 + i
			if same, square := withSquare(v); same != v || square != v*v { mu.Lock(); mixedUp++; mu.Unlock() }
		}
	})
}
wg.Wait()
mixedUp`)
	testkit.Equal(t, got, "→0")
}

// TestGarbageCollection runs the garbage collector while compiled code calls methods of cells with values that have no
// other references.
func TestGarbageCollection(t *testing.T) {
	e, run := openEngine(t)
	sum := func(adder interface {
		Add(p *[]int, s string) string
	}) int {
		length := 0
		for i := range 60 {
			p := &[]int{i, i + 1}
			runtime.GC()
			length += len(adder.Add(p, strings.Repeat("x", i)))
		}
		return length
	}
	e.Declare(map[string]any{"sum": &sum})
	testkit.Equal(t, run("type adder struct{ a, b *int }\nfunc (a adder) Add(p *[]int, s string) string { runtime.GC(); "+
		"return s + fmt.Sprint((*p)[1]-(*p)[0])[:1] }\nx := 1\nsum(adder{&x, &x})"), "→1830")
}

// TestManyTypes declares types with methods in 300 cells that use seven names in turn.
func TestManyTypes(t *testing.T) {
	_, run := openEngine(t)
	for i := range 300 {
		if got := run(fmt.Sprintf("type t%d struct{ v int }\nfunc (t t%d) String() string { return "+
			"fmt.Sprint(\"t\", t.v) }\nfmt.Sprint(t%d{%d})", i%7, i%7, i%7, i)); got != fmt.Sprint("→t", i) {
			t.Fatalf("declaration %d: %q, want →t%[1]d", i, got)
		}
	}
}

// TestMethodTableFull declares more methods than fit into the method table, in a separate process. The cell that
// exceeds the table must fail, and the process must continue.
func TestMethodTableFull(t *testing.T) {
	if os.Getenv("KRRLAB_FILL_METHOD_TABLE") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestMethodTableFull$", "-test.v")
		cmd.Env = append(os.Environ(), "KRRLAB_FILL_METHOD_TABLE=1")
		if out, err := cmd.CombinedOutput(); errors.Is(err, syscall.ENOEXEC) {
			t.Skip("the system can't start this program, which an emulator runs")
		} else if err != nil || !strings.Contains(string(out), "room: ok") {
			t.Errorf("%v, want room: ok: %s", err, out)
		}
		return
	}
	_, run := openEngine(t)
	for i := range 200 {
		code := fmt.Sprintf("type t%d struct{}\n", i)
		for j := range 50 {
			code += fmt.Sprintf("func (t%d) M%d() int { return %d }\n", i, j, j)
		}
		got := run(code)
		if strings.Contains(got, "no room for 100 more methods") {
			// At least 40 types with 50 methods each must fit before the table is full.
			if i < 40 || run("t0{}.M7()") != "→7" || run("1 + 1") != "→2" {
				t.Errorf("%d types: %s", i, run("t0{}.M7()"))
			}
			fmt.Println("room: ok")
			return
		}
		if got != "" {
			t.Fatalf("cell %d prints %q", i, got)
		}
	}
}

// TestStopGoroutine stops a loop, a recursion, a callback of compiled code and a loop that recovers from panics, and
// checks that the engine continues.
func TestStopGoroutine(t *testing.T) {
	e, run := openEngine(t)
	startedIDs := make(chan uint64) // IDs of the goroutines that have called begin
	begin := func() { startedIDs <- GoroutineID() }
	e.Declare(map[string]any{"begin": &begin})
	for _, code := range []string{"begin()\nfor { }", "func f(n int) int { return f(n+1) + f(n) }\nbegin()\nf(0)",
		"begin()\nsort.Slice([]int{2, 1}, func(i, j int) bool { for { } })", "begin()\nfor { func() { defer " +
			"func() { recover() }(); for { } }() }"} {
		go func() { StopGoroutine(<-startedIDs) }()
		result := make(chan string)
		go func() { result <- run(code); ResumeGoroutine(GoroutineID()) }()
		if got := <-result; !strings.Contains(got, "stopped") {
			t.Errorf("%s: %q, want it stopped", code, got)
		}
		if got := run("1 + 1"); got != "→2" {
			t.Fatalf("after %s: %q", code, got)
		}
	}
}

// TestMemberNames checks the names that can follow a dot, for a generic type with an embedded field.
func TestMemberNames(t *testing.T) {
	e, run := openEngine(t)
	run("type in struct{ a int }\nfunc (i *in) B() {}\ntype P[T any] struct { in; V T }\nfunc (p P[T]) Get() T { " +
		"return p.V }\nvar p P[int]")
	obj := e.Cursor("x := p\nif true { fmt.Println(x").Names["x"]
	if obj == nil || TypeString(obj.Type()) != "P[int]" {
		t.Fatalf("x is %v, want a variable of type P[int]", obj)
	}
	got := MemberNames(obj.Type())
	if want := []string{"B", "Get", "V", "a", "in"}; !sort.StringsAreSorted(got) ||
		strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v, want %v", got, want)
	}
}
