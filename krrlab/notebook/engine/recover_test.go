package engine

import "testing"

// TestRecover defers functions and methods that recover: of this cell and of others, by name, as values and by interfaces.
func TestRecover(t *testing.T) {
	cells{
		{"got := \"\"\nh := func() { if r := recover(); r != nil { got = fmt.Sprint(\"h:\", r) } }\nfunc hf() { if r := recover(); r != nil { got = fmt.Sprint(\"hf:\", r) } }\ntype c struct{ n int }\nfunc (x c) Close() { if r := recover(); r != nil { got = fmt.Sprint(\"c:\", r) } }\nx := c{1}", ""},
		{"func f1() { defer hf(); panic(1) }\nf1()\ngot", "→hf:1"},
		{"func f2() { defer x.Close(); panic(2) }\nf2()\ngot", "→c:2"},
		{"func f3() { defer h(); panic(3) }\nf3()\ngot", "→h:3"},
		{"func f4() { g := x.Close; defer g(); panic(4) }\nf4()\ngot", "→c:4"},
		{"m := x.Close", ""},
		{"func f5() { defer m(); panic(5) }\nf5()\ngot", "→c:5"},
		{"func try(f func()) (err error) { defer func() { if r := recover(); r != nil { err = fmt.Errorf(\"%v\", r) } }(); f(); return }\ntv := try", ""},
		{"fmt.Println(try(func() { panic(6) }), tv(func() { panic(7) }), tv(func() {}))", "6 7 <nil>\n"},
		{"func f8() { defer func() { if r := recover(); r != nil { panic(fmt.Sprint(r, \"again\")) } }(); panic(\"8\") }\nfmt.Sprint(tv(f8))", "→8again"},
		{"var cl interface{ Close() } = x\nfunc f9() { defer cl.Close(); panic(9) }\nf9()\ngot", "→c:9"},
		{"type d struct{ n int }\nfunc (x *d) Close() { got = fmt.Sprint(\"d:\", recover()) }\ncl = &d{}\nf9()\ngot", "→d:9"},
		{"func f10() { defer func() { h() }(); panic(10) }\nf10()", "✗10"},
		{"func f11() { defer func() { hf() }(); panic(11) }\nf11()", "✗11"},
		{"func f12() (s string) { defer func(a ...any) { s = fmt.Sprint(a, recover()) }(1, 2); panic(\"12\") }\nf12()", "→[1 2]12"},
		{"v := func(s *string, a ...int) { *s = fmt.Sprint(a, \":\", recover()) }", ""},
		{"func f13() (s string) { defer v(&s, 1, 2); var a []int; a[0] = 1; return }\nf13()", "→[1 2]:runtime error: index out of range [0] with length 0"},
		{"func f14() (n int) { for i := range 3 { defer h(); defer func() { n += i }() }; return 10 }\nf14()", "→13"},
		{"func f15() { var none func(); defer none(); got = \"15\" }\ntry(f15) != nil", "→true"},
	}.run(t)
}

// TestUnlock releases locks that nobody holds: that fails the cell, where the runtime would end the process.
func TestUnlock(t *testing.T) {
	cells{
		{"var mu sync.Mutex\nvar rw sync.RWMutex\ntype box struct { sync.Mutex; n int }\nvar b box", ""},
		{"mu.Lock(); rw.Lock(); b.Lock(); mu.Unlock(); rw.Unlock(); b.Unlock(); rw.RLock(); rw.RLock(); rw.RUnlock(); rw.RUnlock(); 1", "→1"},
		{"mu.Unlock()", "✗sync: unlock of unlocked mutex"},
		{"b.Unlock()", "✗sync: unlock of unlocked mutex"},
		{"func() { defer mu.Unlock(); mu.Lock(); mu.Unlock() }()", "✗sync: unlock of unlocked mutex"},
		{"rw.Unlock()", "✗sync: Unlock of unlocked RWMutex"},
		{"rw.RUnlock()", "✗sync: RUnlock of unlocked RWMutex"},
		{"mu.TryLock() && rw.TryLock() && b.TryLock()", "→true"},
	}.run(t)
}
