package krrlab

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestWordsOfAReport: the kernel's parameters are written to four digits and the seconds in a unit that
// shows them; JSON has all digits.
func TestWordsOfAReport(t *testing.T) {
	r := &Solution{
		Header: Header{Dataset: "a", Task: "regression", N: 100, D: 3, T: 1, Kernel: kernel.Spec{Name: "gaussian", Sigma: 1.575566020014298}, Lambda: 0.25},
		Solver: PCG, Precond: "features", Features: "Fourier features of gaussian(sigma=1.575566020014298)", S: 50, LambdaP: 0.25, Form: "L",
		Storage: "float64", KBytes: 80000, Status: pcg.Converged, TrueResidual: stage.Unknown, KBound: stage.Unknown, Kappa: stage.Unknown, BLAS: "go", Threads: 2, PeakBytes: 5e7,
		Seconds: Seconds{Load: 0.00123, Kernel: 0.0214, Features: 0.001, Factor: 0.002, Solve: 0.003, Residual: 0.004, Predict: 0.0005, Total: 0.0331},
	}
	want := `data         a: regression, n = 100, d = 3, t = 1
problem      kernel gaussian(sigma=1.576), λ = 0.25
solver       pcg, Fourier features of gaussian(sigma=1.576), s = 50, λ_p = 0.25, form L
K            float64, 80 kB
result       converged
milliseconds load 1.2, kernel 21.4, features 1.0, factor 2.0, solve 3.0, residual 4.0, predict 0.5, total 33.1
machine      go, 2 threads, peak memory 50 MB
`
	if got := r.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	js, err := json.Marshal(r)
	if err != nil || strings.Count(string(js), "1.575566020014298") != 2 {
		t.Errorf("%s, %v", js, err)
	}
	if got := r.Plot().Title; got != "a: gaussian(sigma=1.576), λ = 0.25" {
		t.Error(got)
	}
}
