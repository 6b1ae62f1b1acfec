package lambdap

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
)

// TestExplore moves the sliders of the figure in JavaScript. K and ZZᵀ commute here, so that κ is known at every λ_p.
// At the measured λ_p the numbers must be those of Go, and between them the interval must contain κ.
func TestExplore(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node")
	}
	const lambda, tau, confidence = 0.1, 1e-3, 0.95
	k, g := []float64{40, 9, 3, 1, 0.2, 0}, []float64{44, 7, 3.5, 0.4, 0, 0.3} // eigenvalues of K and ZZᵀ
	extremes := func(p float64) (lo, hi float64) {
		lo, hi = math.Inf(1), 0
		for i := range k {
			r := (k[i] + lambda) / (g[i] + p)
			lo, hi = math.Min(lo, r), math.Max(hi, r)
		}
		return lo, hi
	}
	intervalAround := func(v float64) estimate.Interval {
		return estimate.Interval{Value: v, Lo: 0.99 * v, Hi: 1.02 * v, Confidence: confidence}
	}
	residuals := func(p float64) []float64 { return []float64{0.5, 0.2 + p/10, 0.01 + p/100} }
	sweep := &Sweep{S: 5, Lambda: lambda, Best: -1}
	for _, p := range []float64{0.01, 0.1, 0.7, 5} {
		lo, hi := extremes(p)
		at := Point{Row: pencil.Row{LambdaP: p, Spectrum: pencil.Spectrum{Kappa: intervalAround(hi / lo), Min: intervalAround(lo), Max: intervalAround(hi)}, Iteration: pencil.Iteration{Predicted: 1}}}
		last, beta := 1.0, 0.0
		for _, r := range residuals(p) { // the tridiagonal matrix T of a process with unit pivots and these residuals
			at.Alpha = append(at.Alpha, 1+beta*beta)
			beta, last = r/last, r
			at.Beta, at.Steps = append(at.Beta, beta), at.Steps+1
		}
		at.Kappa.Confidence = confidence
		sweep.Points = append(sweep.Points, at)
	}
	s := &Result{Sweeps: []*Sweep{sweep}}
	s.Lambda, s.Tol = lambda, tau
	c := s.Plot().Controls
	if c == nil || len(c.Sliders) != 2 || c.Sliders[0].Value != lambda || len(c.Sliders[0].Values) != 25 ||
		c.Sliders[1].Value != tau {
		t.Fatalf("sliders %+v", c)
	}
	var values [][]float64
	for _, p := range c.Sliders[0].Values {
		values = append(values, []float64{p, tau}, []float64{p, 0.3})
	}
	data, _ := json.Marshal(c.Data)
	arguments, _ := json.Marshal(values)
	file := filepath.Join(t.TempDir(), "a.js")
	src := "const f =\n" + c.Script + ";\nconsole.log(JSON.stringify(" + string(arguments) + ".map((v) => f(" +
		string(data) + ", v, String).numbers)))\n"
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(node, file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []struct{ Kappa, Lo, Hi, Iterations, Bound float64 }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, v := range values {
		p, tau, n := v[0], v[1], got[i]
		lo, hi := extremes(p)
		if truth := hi / lo; !(n.Lo <= truth && truth <= n.Hi) || n.Hi > 12*n.Lo {
			t.Errorf("λ_p = %g: κ in [%g, %g], is %g", p, n.Lo, n.Hi, truth)
		}
		if want := pcg.IterationBound(n.Hi, tau); n.Bound != float64(want) {
			t.Errorf("λ_p = %g, τ = %g: bound of %g iterations, want %d", p, tau, n.Bound, want)
		}
		q := sweep.At(p)
		if q == nil {
			continue
		}
		want, root := 0.0, math.Sqrt(q.Kappa.Value)
		for j := 2; j >= 0; j-- {
			if residuals(p)[j] <= tau {
				want = float64(j + 1)
			}
		}
		if want == 0 {
			want = math.Ceil(3 + math.Log(tau/residuals(p)[2])/math.Log((root-1)/(root+1)))
		}
		if n.Kappa != q.Kappa.Value || n.Lo != q.Kappa.Lo || n.Hi != q.Kappa.Hi || n.Iterations != want {
			t.Errorf("λ_p = %g, τ = %g: %+v, want κ %v and %g iterations", p, tau, n, q.Kappa, want)
		}
	}
}
