package golang

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestFirstCellsOfNewUser runs cells as somebody may type them in the first ten minutes, and checks that results and
// errors contain the expected text and no internals of the interpreter.
func TestFirstCellsOfNewUser(t *testing.T) {
	for _, test := range scriptCells(t, "Newcomer") {
		t.Run(test.code, func(t *testing.T) {
			s := openSession(t, nil)
			output := &outputRecorder{reply: func(string) (string, error) { return "bob", nil }}
			got := outcome(s.Run("Cell 1", test.code, output), output)
			if !strings.Contains(got, test.want) || strings.Contains(got, "warning") || strings.Contains(got, "*ast.") {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestSlowKernel checks that a laboratory with many points and a kernel that a cell declares prints how long the
// interpreted kernel takes. There must be no such message for few points or for a built-in kernel.
func TestSlowKernel(t *testing.T) {
	s := openSession(t, nil)
	run(s, `import ("github.com/krrlab/lab/krrlab"; "github.com/krrlab/lab/krrlab/kernel"; "github.com/krrlab/lab/datasets"; "math")
type Cauchy struct{ S float64 }
func (c Cauchy) Eval(x, z []float64) float64 { s := 0.0; for i := range x { s += math.Abs(x[i]-z[i]) }; return 1/(1+s/c.S) }
func (c Cauchy) String() string { return "cauchy" }
pair, err := datasets.Load(ctx, "synthetic-regression", &datasets.LoadOptions{N: 4000})
few := pair.Train.Head(20)`)
	config := "krrlab.Config{Kernel: %s, Lambda: 0.1, Solver: krrlab.Direct})"
	newLab := func(data, kernel string) string {
		return run(s, "lab, err := krrlab.New("+data+", "+strings.Replace(config, "%s", kernel, 1)+"\n1")
	}
	if got := newLab("pair.Train", "Cauchy{1}"); !strings.Contains(got, "stderr: the kernel cauchy is interpreted: ") ||
		!strings.HasSuffix(got, "→1") {
		t.Errorf("interpreted: %q", got)
	}
	for _, got := range []string{newLab("few", "Cauchy{1}"), newLab("pair.Train", "kernel.Gaussian{Sigma: 1}")} {
		testkit.Equal(t, got, "→1")
	}
}
