package golang

import (
	"strings"
	"testing"
)

// TestNewcomer runs what somebody types in the first ten minutes.
func TestNewcomer(t *testing.T) {
	for _, c := range script(t, "Newcomer") {
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
	run(s,
		"var fs []func() int\nvar ps []*int\nfunc all() (out []int) {\n\tfor _, f := range fs { out = append(out, "+
			"f()) }\n\tfs = nil\n\treturn\n}")
	for _, c := range script(t, "LoopVariables") {
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
	if got := with("pair.Train", "Cauchy{1}"); !strings.Contains(got, "stderr: the kernel cauchy is interpreted: ") ||
		!strings.HasSuffix(got, "→1") {
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
	cells(t, s, equal, script(t, "NewerLibrary")...)
}
