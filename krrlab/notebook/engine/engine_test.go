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

	_ "github.com/krrlab/lab/krrlab/notebook/bindings"
)

// lines is a writer of what cells print.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

// open returns an engine, and what runs a cell: it returns what the cell printed, its values and its error.
func open(t testing.TB) (*Engine, func(code string) string) {
	t.Helper()
	out := &lines{}
	hooks := Std()
	hooks["fmt.Println"] = func(a ...any) (int, error) {
		out.mu.Lock()
		defer out.mu.Unlock()
		return fmt.Fprintln(&out.b, a...)
	}
	e := New(hooks)
	e.Named = func(name string) string {
		return map[string]string{"fmt": "fmt", "sort": "sort", "errors": "errors", "sync": "sync", "strings": "strings", "slices": "slices", "runtime": "runtime"}[name]
	}
	return e, func(code string) string {
		out.b.Reset()
		c, err := e.Compile("cell", code)
		if err != nil {
			return "✗" + err.Error()
		}
		v, err := c.Run(func() bool { return false }, func(int) {})
		e.mu.Lock()
		e.sweep() // what a later cell needs must stay
		e.mu.Unlock()
		text := out.b.String()
		if v != nil {
			for _, x := range v.List {
				text += fmt.Sprint("→", x.Value)
			}
		}
		if err != nil {
			text += "✗" + err.Error()
		}
		return text
	}
}

type cells []struct{ code, want string }

func (cs cells) run(t *testing.T) {
	t.Helper()
	_, run := open(t)
	for _, c := range cs {
		if got := run(c.code); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s\n got %q\nwant %q", c.code, got, c.want)
		}
	}
}

// TestIdentity uses a type of one cell in others, and in compiled code: it is the same type.
func TestIdentity(t *testing.T) {
	cells{
		{"type w []int\nfunc (x w) Len() int { return len(x) }\nfunc (x w) Less(i, j int) bool { return x[i] < x[j] }\nfunc (x w) Swap(i, j int) { x[i], x[j] = x[j], x[i] }", ""},
		{"a := w{3, 1, 2}", ""},
		{"sort.Sort(a)\na", "→[1 2 3]"},
		{"type my struct{ n int }\nfunc (m my) Error() string { return fmt.Sprint(\"my\", m.n) }", ""},
		{"var e error = my{3}\ne", "→my3"},
		{"var m my\nerrors.Is(e, my{3}), errors.As(fmt.Errorf(\"x: %w\", e), &m), m.n", "→true→true→3"},
		{"var m my\nfmt.Println(errors.Is(e, my{3}), errors.As(fmt.Errorf(\"x: %w\", e), &m), m.n)", "true true 3\n"},
		{"my{4}.n", "→4"},
		{"type box[T any] struct{ v T }\nfunc (b *box[T]) set(v T) { b.v = v }\nfunc (b box[T]) String() string { return fmt.Sprint(\"box of \", b.v) }", ""},
		{"var b box[my]", ""},
		{"b.set(my{7})\nb", "→box of my7"},
		{"var s fmt.Stringer = &b\ns", "→box of my7"},
		{"_, same := s.(*box[my])\nsame", "→true"},
		{"fmt.Sprintf(\"%T %T\", a, m)", "→main.w main.my"},
		{"type ring[T any] struct { vs []T; of *ring[T] }\nfunc (r *ring[T]) lazy() *ring[T] { if r.of == nil { r.of = r }; return r.of }\nfunc (r *ring[T]) Push(v T) int { r.lazy().vs = append(r.vs, v); return len(r.vs) }", ""},
		{"var r ring[string]\nr.Push(\"a\") + r.lazy().Push(\"b\")", "→3"},
	}.run(t)
}

// TestLaterType gives functions and goroutines of one cell values of types that later cells declare.
func TestLaterType(t *testing.T) {
	cells{
		{"type named interface{ name() string }\nshow := func(n named) string { defer n.name(); return n.name() }\nin, out := make(chan named), make(chan string)\ngo func() { for n := range in { out <- n.name() } }()", ""},
		{"func call(f interface{ two(int, string) (int, string) }) string { a, b := f.two(1, \"x\"); return fmt.Sprint(a, b) }\nkeep := call", ""},
		{"type later struct{ s string }\nfunc (l later) name() string { return l.s }\nfunc (l later) two(i int, s string) (int, string) { return i + 1, s + l.s }", ""},
		{"show(later{\"a\"})", "→a"},
		{"in <- later{\"b\"}\n<-out", "→b"},
		{"keep(later{\"c\"})", "→2xc"},
		{"var n named = &later{\"d\"}\ngo n.name()\nshow(n)", "→d"},
	}.run(t)
}

// TestParallel swaps variables in loops: all of them take their values at once.
func TestParallel(t *testing.T) {
	cells{
		{"a, b, c := 1, 2, 3\nfor i := 0; i < 4; i++ { a, b, c = b, c, a }\nfmt.Sprint(a, b, c)", "→2 3 1"},
		{"func gcd(a, b int) int { for b != 0 { a, b = b, a%b }; return a }\ngcd(84, 36)", "→12"},
		{"func ends(s []int) (int, int) { i, j := 0, len(s)-1; for i < j { s[i], s[j] = s[j], s[i]; i, j = i+1, j-1 }; return s[0], i }\nfmt.Sprint(ends([]int{1, 2, 3}))", "→3 1"},
		{"func odd(n int) bool { x, y := true, false; for range n { x, y = y, x }; return y }\nfmt.Sprint(odd(3), odd(4))", "→true false"},
	}.run(t)
}

// TestDefers defers in loops over functions: the calls run when the function ends.
func TestDefers(t *testing.T) {
	cells{
		{"func two(y func(int) bool) { _ = y(1) && y(2) }\nfunc f() (out []int) {\n\tn := 0\n\tfunc() {\n\t\tfor range two { for range two { n++; defer func(n int) { out = append(out, n) }(n) } }\n\t}()\n\treturn\n}\nf()", "→[4 3 2 1]"},
		{"func g() (out []int) { func() { for i := range two { defer func() { out = append(out, i) }() } }(); return }\ng()", "→[2 1]"},
		{"func h() (err error) { for i := range two { for j := range two { defer func() { if r := recover(); r != nil { err = fmt.Errorf(\"%d%d %v\", i, j, r) } }() } }; panic(\"p\") }\nfmt.Sprint(h())", "→22 p"},
	}.run(t)
}

// TestResults calls a function with several results from many goroutines.
func TestResults(t *testing.T) {
	_, run := open(t)
	got := run(`func both(v int) (int, int) { return v, v * v }
var wg sync.WaitGroup
var mu sync.Mutex
bad := 0
for g := range 8 {
	wg.Go(func() {
		for i := range 2000 {
			v := g*100000 + i
			if a, b := both(v); a != v || b != v*v { mu.Lock(); bad++; mu.Unlock() }
		}
	})
}
wg.Wait()
bad`)
	if got != "→0" {
		t.Errorf("%q", got)
	}
}

// TestCollected runs the garbage collector while compiled code calls methods of cells with values that nothing else holds.
func TestCollected(t *testing.T) {
	e, run := open(t)
	sum := func(f interface {
		Add(p *[]int, s string) string
	}) int {
		n := 0
		for i := range 60 {
			p := &[]int{i, i + 1}
			runtime.GC()
			n += len(f.Add(p, strings.Repeat("x", i)))
		}
		return n
	}
	e.Declare(map[string]any{"sum": &sum})
	if got := run("type adder struct{ a, b *int }\nfunc (a adder) Add(p *[]int, s string) string { runtime.GC(); return s + fmt.Sprint((*p)[1]-(*p)[0])[:1] }\nx := 1\nsum(adder{&x, &x})"); got != "→1830" {
		t.Errorf("%q", got)
	}
}

// TestManyTypes declares types with methods in many cells.
func TestManyTypes(t *testing.T) {
	_, run := open(t)
	for i := range 300 {
		if got := run(fmt.Sprintf("type t%d struct{ v int }\nfunc (t t%d) String() string { return fmt.Sprint(\"t\", t.v) }\nfmt.Sprint(t%d{%d})", i%7, i%7, i%7, i)); got != fmt.Sprint("→t", i) {
			t.Fatalf("%d: %q", i, got)
		}
	}
}

// TestRoom declares more methods than there is room for, in a process of its own: the cell fails, not the process.
func TestRoom(t *testing.T) {
	if os.Getenv("KRRLAB_ROOM") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRoom$", "-test.v")
		cmd.Env = append(os.Environ(), "KRRLAB_ROOM=1")
		if out, err := cmd.CombinedOutput(); errors.Is(err, syscall.ENOEXEC) {
			t.Skip("the system can't start this program, which an emulator runs")
		} else if err != nil || !strings.Contains(string(out), "room: ok") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	_, run := open(t)
	for i := range 200 {
		code := fmt.Sprintf("type t%d struct{}\n", i)
		for j := range 50 {
			code += fmt.Sprintf("func (t%d) M%d() int { return %d }\n", i, j, j)
		}
		got := run(code)
		if strings.Contains(got, "no room for 100 more methods") {
			if i < 40 || run("t0{}.M7()") != "→7" || run("1 + 1") != "→2" {
				t.Errorf("%d types: %s", i, run("t0{}.M7()"))
			}
			fmt.Println("room: ok")
			return
		}
		if got != "" {
			t.Fatalf("%d: %q", i, got)
		}
	}
}

// TestStop stops a loop, a recursion and a callback of compiled code, and goes on.
func TestStop(t *testing.T) {
	e, run := open(t)
	begun := make(chan uint64)
	begin := func() { begun <- Goid() }
	e.Declare(map[string]any{"begin": &begin})
	for _, code := range []string{"begin()\nfor { }", "func f(n int) int { return f(n+1) + f(n) }\nbegin()\nf(0)", "begin()\nsort.Slice([]int{2, 1}, func(i, j int) bool { for { } })", "begin()\nfor { func() { defer func() { recover() }(); for { } }() }"} {
		go func() { Stop(<-begun, true) }()
		done := make(chan string)
		go func() { done <- run(code); Stop(Goid(), false) }()
		if got := <-done; !strings.Contains(got, "stopped") {
			t.Errorf("%s: %q", code, got)
		}
		if got := run("1 + 1"); got != "→2" {
			t.Fatalf("after %s: %q", code, got)
		}
	}
}

// TestMembers lists what can stand behind a dot.
func TestMembers(t *testing.T) {
	e, run := open(t)
	run("type in struct{ a int }\nfunc (i *in) B() {}\ntype P[T any] struct { in; V T }\nfunc (p P[T]) Get() T { return p.V }\nvar p P[int]")
	typ, o := e.Probe("x := p\nif true { fmt.Println(", "x")
	if typ == nil || o == nil || TypeString(typ) != "P[int]" {
		t.Fatal(typ, o)
	}
	got := Members(typ)
	if want := []string{"B", "Get", "V", "a", "in"}; !sort.StringsAreSorted(got) || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNils has nil as a key and as an element of maps, where ixgo panics and deletes.
func TestNils(t *testing.T) {
	cells{
		{"m := map[string]any{\"a\": nil}\nvar x any\nm[\"b\"] = x\nv, ok := m[\"b\"]\nfmt.Println(len(m), v, ok)", "2 <nil> true\n"},
		{"k := map[any]int{nil: 1}\nvar e any\nk[e] += 2\n_, ok := k[\"no\"]\nfmt.Println(k[nil], k[e], ok)\ndelete(k, nil)\nlen(k)", "3 3 false\n→0"},
		{"p := map[error]error{}\np[nil] = nil\nfmt.Println(len(p), p[nil] == nil, p)", "1 true map[<nil>:<nil>]\n"},
		{"func get[K comparable, V any](m map[K]V, k K) (V, bool) { m[k] = *new(V); v, ok := m[k]; return v, ok }\nget(map[any]error{}, nil)", "→<nil>→true"},
	}.run(t)
}

// TestConstraints has type arguments that do not satisfy their constraints: go/types calls these errors soft, as
// those of variables that are not used, and a program with them ended the process.
func TestConstraints(t *testing.T) {
	cells{
		{"func same[N int | float64](x N) N { return x }\nfunc text[S interface{ String() string }](s S) string { return s.String() }", ""},
		{"same(\"a\")", "✗cell:1:32: string does not satisfy int | float64"},
		{"same[string](\"a\")", "✗cell:1:37: string does not satisfy int | float64"},
		{"text(5)", "✗cell:1:32: int does not satisfy interface{String() string}"},
		{"type list[N int | float64] struct{ a N }\nvar l list[string]", "✗cell:2:12: string does not satisfy int | float64"},
		{"for a, b := range 3 { }", "✗cell:1:39: range over 3 (untyped int constant) permits only one iteration variable"},
		{"func f() { x := 1; y, z := 2, 3; _ = y\nunused: }", ""},
	}.run(t)
}

// TestShared calls methods of several compiled types by one instruction in several goroutines; the race
// detector sees what ixgo shares.
func TestShared(t *testing.T) {
	cells{
		{"var b strings.Builder\n_, _ = b.WriteString(\"b\")", ""},
		{"type S interface { Len() int }\nfunc length(s S) int { return s.Len() }\nvar wg sync.WaitGroup\nvar mu sync.Mutex\nbad := 0\n" +
			"for g := range 8 { wg.Add(1); go func() { defer wg.Done(); for range 20000 {\n" +
			"if g%2 == 0 { if length(strings.NewReader(\"abc\")) != 3 { mu.Lock(); bad++; mu.Unlock() }\n} else if length(&b) != 1 { mu.Lock(); bad++; mu.Unlock() } } }() }\nwg.Wait()\nbad", "→0"},
	}.run(t)
}
