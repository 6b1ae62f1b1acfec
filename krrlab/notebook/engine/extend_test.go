package engine

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
)

// TestLaterMethodChain reaches the end of a long chain of pointers.
func TestLaterMethodChain(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(8 << 20))
	cells{
		{"type link struct { v any; next *link }\ntype end struct{}\nvar head *link\nfor i := range 50_000 { head " +
			"= &link{i, head} }\nlast := head\nfor last.next != nil { last = last.next }\nlast.v = " +
			"[]any{end{}}\nlast = nil", ""},
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
		if got := run(fmt.Sprintf("func (v p) M() int { return %d }\nx.M() + i.(interface{ M() int }).M() + "+
			"first() + x.K()", n)); got != fmt.Sprint("→", 2*n) {
			t.Fatalf("%d: %s", n, got)
		}
	}
	if len(e.units) > 10 {
		t.Errorf("%d units are kept", len(e.units))
	}
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
	for code, want := range map[string]string{"x.B()": "✗cell:1:34: x.B undefined", "x.A()": "→3",
		"_, ok := i.(p)\nok": "→true", "var j interface{ A() int } = x\ni == j": "→true"} {
		if got := run(code); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
	if got := run("func (v p) B() int { return v.n + 1 }\nx.B()"); got != "→4" {
		t.Error(got)
	}
}
