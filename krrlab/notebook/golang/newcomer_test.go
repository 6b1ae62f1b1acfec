package golang

import (
	"strings"
	"testing"
)

// TestNewcomer runs what somebody types in the first ten minutes.
func TestNewcomer(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`fmt.Println(strings.ToUpper("a"))`, "stdout: A\n"},
		{"var b strings.Builder\nb.WriteString(\"x\")\nb.String()", "→x"},
		{"rand.Intn(1)", "→0"},
		{"type P struct{ X int }\nfmt := P{X: 3}\nfmt.X", "→3"},
		{"mat.NewDense(1, 1, nil)", "→1 × 1 *mat.Dense\n           0"},
		{"plot.New()", `→plot ""`},
		{"krrlab.Config{Kernel: kernel.Gaussian{Sigma: 2}}.Kernel", "→gaussian(sigma=2)"},
		{"distuv.Normal{Sigma: 1}.Mean()", "→0"},
		{"mat := 3\nmat + 1", "→4"},
		{"mat.Nosuch", "✗CompileError: undefined: mat.Nosuch; press Tab"},
		{"nosuch.New()", "✗CompileError: undefined: nosuch; declare it"},
		{"errors.Nosuch", "✗CompileError: undefined: errors.Nosuch; press Tab"},
		{"fmt.Printn(1)", "✗CompileError: undefined: fmt.Printn; press Tab"},
		{"z := []int{1}\nz.Foo()", "✗CompileError: z.Foo undefined (type []int has no field or method Foo) (Cell 1, line 2)"},
		{`var q int = "a"`, "✗CompileError: cannot use \"a\" (untyped string constant) as int value in variable declaration (Cell 1, line 1)"},
		{"import (\n\"fmt\"\n\"foo/bar\"\n\"baz/krrlab\"\n)", "✗CompileError: package foo/bar is not in this kernel; package baz/krrlab is not in this kernel; there is github.com/krrlab/lab/krrlab (nothing"},
		{"package main\n\nimport \"fmt\"\n\nfunc twice(x int) int { return 2 * x }\n\nfunc main() {\n\tfmt.Println(twice(4))\n}\n", "stdout: 8\n"},
		{"func main() { panic(1) }\n3", "→3"},
		{"1, 2;", "✗SyntaxError: expected 1 expression"},
		{"nil", "→nil"},
		{"%timeit 1+1", "a run, average of "},
		{"%timeit", "✗CommandError: %timeit wants code to time"},
		{"%%timeit\nx := 1\nx = y", "undefined: y; declare it above, or run the cell that does, or import its package (Cell 1, line 3)"},
		{"%%time 1+1", "→2"},
		{"name := Input(\"? \")\nname", "→bob"},
		{"var name string = Password(\"? \")\nlen(name)", "→3"},
		{"strings.ToUpper(Input(\"? \"))", "→BOB"},
		{"func Input(s string) string { return s + s }\nx := Input(\"a\")\nx", "→aa"},
		{"krrlab.New(nil, krrlab.Config{})", "✗Error: krrlab: no training points: the data set is nil; check the error"},
	} {
		t.Run(c.code, func(t *testing.T) {
			s := open(t, nil)
			p := &sheet{reply: func(string) (string, error) { return "bob", nil }}
			got := outcome(s.Run("Cell 1", c.code, p), p)
			if !strings.Contains(got, c.want) || strings.Contains(got, "warning") || strings.Contains(got, "*ast.") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestLoopVariables keeps the variables of loops in functions and by pointers: each iteration has its own.
func TestLoopVariables(t *testing.T) {
	s := open(t, nil)
	run(s, "var fs []func() int\nvar ps []*int\nfunc all() (out []int) {\n\tfor _, f := range fs { out = append(out, f()) }\n\tfs = nil\n\treturn\n}")
	for _, c := range []struct{ code, want string }{
		{"for i := 0; i < 3; i++ { fs = append(fs, func() int { return i }) }\nall()", "→[0 1 2]"},
		{"for i, v := range []int{5, 6} { fs = append(fs, func() int { v++; return i + v }) }\nall()", "→[6 8]"},
		{"for i := range 3 { fs = append(fs, func() int { return i }) }\nall()", "→[0 1 2]"},
		{"for i := 0; i < 2; i++ { for j := 0; j < 2; j++ { fs = append(fs, func() int { return 10*i + j }) } }\nall()", "→[0 1 10 11]"},
		{"for i := 0; i < 3; i++ { ps = append(ps, &i) }\n*ps[0] + *ps[1] + *ps[2]", "→3"},
		{"for i := 0; i < 4; i++ { if i == 1 { i++ }; fs = append(fs, func() int { return i }) }\nlen(all())", "→3"},
		{"ch := make(chan int, 3)\nfor i := 0; i < 3; i++ { go func() { ch <- i }() }\n<-ch + <-ch + <-ch", "→3"},
		{"n := 0\nfor i := 0; i < 3; i++ { n += func(i int) int { return i }(i) }\nn", "→3"},
	} {
		if got := run(s, c.code); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s\n got %q\nwant %q", c.code, got, c.want)
		}
	}
}

// TestSlowKernel makes a laboratory with a kernel that a cell declares: it says how long K takes.
func TestSlowKernel(t *testing.T) {
	s := open(t, nil)
	run(s, `import ("github.com/krrlab/lab/krrlab"; "github.com/krrlab/lab/krrlab/kernel"; "github.com/krrlab/lab/datasets"; "math")
type Cauchy struct{ S float64 }
func (c Cauchy) Eval(x, z []float64) float64 { s := 0.0; for i := range x { s += math.Abs(x[i]-z[i]) }; return 1/(1+s/c.S) }
func (c Cauchy) String() string { return "cauchy" }
pair, err := datasets.Load(ctx, "synthetic-regression", &datasets.LoadOptions{N: 4000})
few := pair.Train.Head(20)`)
	config := "krrlab.Config{Kernel: %s, Lambda: 0.1, Solver: krrlab.Direct})"
	with := func(data, kernel string) string {
		return run(s, "lab, err := krrlab.New("+data+", "+strings.Replace(config, "%s", kernel, 1)+"\n1")
	}
	if got := with("pair.Train", "Cauchy{1}"); !strings.Contains(got, "stderr: the kernel cauchy is interpreted: ") || !strings.HasSuffix(got, "→1") {
		t.Errorf("interpreted: %q", got)
	}
	for _, got := range []string{with("few", "Cauchy{1}"), with("pair.Train", "kernel.Gaussian{Sigma: 1}")} {
		if got != "→1" {
			t.Errorf("quick: %q", got)
		}
	}
}

// TestNewerLibrary uses what came to the standard library after the release that the interpreter's own table is of.
func TestNewerLibrary(t *testing.T) {
	s := open(t, nil)
	cells(t, s, equal,
		`strings.CutPrefix("ab", "a")`, "→b, true",
		`errors.Join(errors.New("a"), errors.New("b")).Error()`, "→a\nb",
		"var n atomic.Int64\nn.Add(3)\nn.Load()", "→3",
		"time.DateOnly", "→2006-01-02",
		"import \"math/rand/v2\"\nr := rand.New(rand.NewPCG(1, 2))\nr.IntN(1)", "→0",
		"once := sync.OnceFunc(func() { fmt.Print(\"x\") })\nonce(); once()", "stdout: x",
		"context.Cause(ctx) == nil", "→true",
		"string(fmt.Appendf(nil, \"%d\", 7))", "→7",
		"slog.LevelInfo", "→INFO",
	)
}
