package engine

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
)

// TestLaterMethod declares methods in later cells than their types: all there is of the type gets them.
func TestLaterMethod(t *testing.T) {
	cells{
		{"type p struct{ x, y int }\na := p{3, 4}\nlist, m, q := []p{{1, 2}}, map[string]p{\"k\": {5, 6}}, &a\nvar boxed any = a\nvar in struct{ v any }\nin.v = &a\nfunc double(v p) p { return p{2 * v.x, 2 * v.y} }\nmove := func() { a.x++ }", ""},
		{"func (v p) Sum() int { return v.x + v.y }\nfunc (v *p) Set(x int) { v.x = x }", ""},
		{"fmt.Println(a.Sum(), list[0].Sum(), m[\"k\"].Sum(), q.Sum(), double(a).Sum())", "7 3 11 7 14\n"},
		{"a.Set(10)\nmove()\nfmt.Println(a.Sum(), q.x, p.Sum(a), (*p).Sum(q))", "15 11 15 15\n"},
		{"type sums interface{ Sum() int }\nvar s sums = a\n_, ok := boxed.(sums)\n_, is := boxed.(p)\n_, deep := in.v.(sums)\n_, ptr := in.v.(*p)\nfmt.Println(s.Sum(), ok, is, deep, ptr)", "15 true true true true\n"},
		{"fmt.Println(a)", "{11 4}\n"},
		{"func (v p) String() string { return fmt.Sprint(\"p\", v.Sum()) }", ""},
		{"fmt.Println(a, list, boxed, s, q)\na", "p15 [p3] p7 p15 p15\n→p15"},
		{"func (v p) String() string { return v.name() + \"!\" }\nfunc (v p) name() string { return \"P\" }", ""},
		{"fmt.Println(a, list, boxed, s)\ns.Sum()", "P! [P!] P! P!\n→15"},
		{"type w struct{ n int }\nx := w{7}\ntype alias = w\n_ = 1\nfunc (v alias) M() int { return v.n }\nx.M()", "→7"},
		{"var memo = map[int]int{1: x.Get(2)}\nfunc (v w) Get(n int) int { return v.n * n }\nfunc (v w) Memo() int { return memo[1] }\nfmt.Println(memo, x.Memo())", "map[1:14] 14\n"},
		{"type two struct{ p; n int }\nfunc (t two) Both() int { return t.Sum() + t.n }\nfmt.Println(two{a, 1}.Both(), two{a, 1})", "16 P!\n"},
	}.run(t)
}

// TestLaterMethodOfMany has types that mention each other, and values of them in goroutines and functions.
func TestLaterMethodOfMany(t *testing.T) {
	cells{
		{"type node struct { v int; next *node; of *tree }\ntype tree struct{ first *node; all map[*node]tree }\nfunc (t *tree) push(v int) *tree { t.first = &node{v, t.first, t}; return t }", ""},
		{"var t tree\nt.push(1).push(2)\nch := make(chan *node, 2)\nin := make(chan tree)\nout := make(chan int)\ngo func() { for t := range in { out <- t.first.v } }()", ""},
		{"func (n *node) sum() int { if n == nil { return 0 }; return n.v + n.next.sum() }", ""},
		{"func (t tree) Sum() int { return t.first.sum() }", ""},
		{"t.push(3)\nch <- t.first\nin <- t\nfmt.Println(t.Sum(), (<-ch).sum(), <-out)", "6 6 3\n"},
		{"func total(ts ...tree) (n int) { for _, t := range ts { n += t.Sum() }; return }\ntotal(t, t)", "→12"},
		{"type pair[T any] struct{ a, b T }\nvar ps pair[tree] = pair[tree]{t, t}", ""},
		{"func (t tree) String() string { return fmt.Sprint(\"tree of \", t.Sum()) }\nfunc (t *tree) push(v int) *tree { t.first = &node{10 * v, t.first, t}; return t }", ""},
		{"fmt.Println(ps.a, total(*t.push(1)))\nfmt.Sprint([]any{ps.b, &ps.a})", "tree of 6 16\n→[tree of 6 tree of 6]"},
	}.run(t)
}

// TestLaterMethodChain reaches the end of a long chain of pointers.
func TestLaterMethodChain(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(8 << 20))
	cells{
		{"type link struct { v any; next *link }\ntype end struct{}\nvar head *link\nfor i := range 50_000 { head = &link{i, head} }\nlast := head\nfor last.next != nil { last = last.next }\nlast.v = []any{end{}}\nlast = nil", ""},
		{"func (end) M() int { return 7 }", ""},
		{"l := head\nfor l.next != nil { l = l.next }\nl.v.([]any)[0].(interface{ M() int }).M()", "→7"},
	}.run(t)
}

// TestLaterMethodAgain declares a method again and again: those of before are forgotten, but where functions call them.
func TestLaterMethodAgain(t *testing.T) {
	e, run := open(t)
	run("type p struct{ n int }\nx := p{1}\nvar i any = x")
	run("func (v p) M() int { return -1 }\nfunc (v p) K() int { return v.n }")
	run("func first() int { return x.M() }")
	for n := range 40 {
		if got := run(fmt.Sprintf("func (v p) M() int { return %d }\nx.M() + i.(interface{ M() int }).M() + first() + x.K()", n)); got != fmt.Sprint("→", 2*n) {
			t.Fatalf("%d: %s", n, got)
		}
	}
	if len(e.units) > 10 {
		t.Errorf("%d units are kept", len(e.units))
	}
}

// TestLaterMethodWrong has methods that cannot be added: nothing of the cell is kept.
func TestLaterMethodWrong(t *testing.T) {
	cells{
		{"type p struct{ x int }\ntype g[T any] struct{ v T }\ntype i interface{ M() }", ""},
		{"func (v p) x() {}", "✗cell:1:25: field and method with the same name x"},
		{"func (v p) A() {}\nfunc (v *p) A() {}", "✗cell:2:13: method p.A already declared"},
		{"func (v p) A() int { return \"a\" }", "✗cell:1:42: cannot use \"a\""},
		{"func (v g[T]) A() {}", "✗cell:1:22: cannot define new methods on non-local type main.g[T]"},
		{"func (v i) A() {}", "✗cell:1:22: invalid receiver type i (pointer or interface type)"},
		{"func (v int) A() {}", "✗cell:1:22: cannot define new methods on non-local type int"},
		{"type u struct{}\nfunc (v p) A() u { return u{} }", "✗cell:2:12: the method p.A of a type of an earlier cell mentions u, which is declared with it"},
		{"var y = p{1}.A()\nvar z = 5\nfunc (v p) A() int { return f() }\nfunc f() int { return z }", "✗cell:4:23: z is used before it has its value"},
		{"func (v p) A() int { return v.x }\nx := nothing", "✗cell:2:6: undefined: nothing"},
		{"p{1}.A()", "✗cell:1:37: p{…}.A undefined"},
		{"func (v p) A() int { return v.x }\nv := p{2}.A()\nv", "→2"},
		{"type p struct{ y int }", ""},
		{"p{1}.A()", "✗cell:1:37: p{…}.A undefined"},
		{"func (v p) A() int { return 10 * v.y }\np{1}.A()", "→10"},
	}.run(t)
}

// TestNoRoom adds a method where there is no room for it: the type is what it was, and so are its values.
func TestNoRoom(t *testing.T) {
	_, run := open(t)
	run("type p struct{ n int }\nfunc (v p) A() int { return v.n }\nx := p{3}\nvar i interface{ A() int } = x")
	defer func(n int) { spare = n }(spare)
	spare = 1 << 20
	if got := run("func (v p) B() int { return v.n }"); !strings.Contains(got, "no room for ") {
		t.Fatal(got)
	}
	spare = 100
	for code, want := range map[string]string{"x.B()": "✗cell:1:34: x.B undefined", "x.A()": "→3", "_, ok := i.(p)\nok": "→true", "var j interface{ A() int } = x\ni == j": "→true"} {
		if got := run(code); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
	if got := run("func (v p) B() int { return v.n + 1 }\nx.B()"); got != "→4" {
		t.Error(got)
	}
}
