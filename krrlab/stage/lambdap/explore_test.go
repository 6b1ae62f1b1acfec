package lambdap

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/plots"
)

// exploreNumbers are the numbers that the script of the figure shows for one position of its sliders.
type exploreNumbers struct{ Kappa, Lo, Hi, Iterations, Bound float64 }

// TestExplore runs the script of the figure in node for every position of the slider of λ_p, and two of that of τ. K
// and ZZᵀ commute here, so that κ is known at every λ_p. At a measured λ_p the script must show the numbers of the
// sweep; at any other λ_p it must show an interval that contains κ.
func TestExplore(t *testing.T) {
	const lambda, tau, confidence = 0.1, 1e-3, 0.95
	eigK, eigZZ := []float64{40, 9, 3, 1, 0.2, 0}, []float64{44, 7, 3.5, 0.4, 0, 0.3} // eigenvalues of K and ZZᵀ
	// extremes returns the extreme eigenvalues of M⁻¹A.
	extremes := func(lambdaP float64) (lo, hi float64) {
		lo, hi = math.Inf(1), 0
		for i := range eigK {
			ratio := (eigK[i] + lambda) / (eigZZ[i] + lambdaP)
			lo, hi = math.Min(lo, ratio), math.Max(hi, ratio)
		}
		return lo, hi
	}
	intervalAround := func(v float64) estimate.Interval {
		return estimate.Interval{Value: v, Lo: 0.99 * v, Hi: 1.02 * v, Confidence: confidence}
	}
	// residuals returns made-up relative residuals after one, two and three iterations.
	residuals := func(lambdaP float64) []float64 { return []float64{0.5, 0.2 + lambdaP/10, 0.01 + lambdaP/100} }

	sweep := &Sweep{S: 5, Lambda: lambda, Best: -1}
	for _, lambdaP := range []float64{0.01, 0.1, 0.7, 5} {
		lo, hi := extremes(lambdaP)
		point := Point{Row: pencil.Row{LambdaP: lambdaP, Spectrum: pencil.Spectrum{Kappa: intervalAround(hi / lo),
			Min: intervalAround(lo), Max: intervalAround(hi)}, Iteration: pencil.Iteration{Predicted: 1}}}
		// T = LLᵀ of a PCG run with steps of length 1: β_j = ‖r_j‖/‖r_{j−1}‖ and α_j = 1+β_{j−1}².
		last, beta := 1.0, 0.0
		for _, r := range residuals(lambdaP) {
			point.Alpha = append(point.Alpha, 1+beta*beta)
			beta, last = r/last, r
			point.Beta, point.Steps = append(point.Beta, beta), point.Steps+1
		}
		sweep.Points = append(sweep.Points, point)
	}
	result := &Result{Sweeps: []*Sweep{sweep}}
	result.Lambda, result.Tol = lambda, tau
	controls := result.Plot().Controls
	if controls == nil || len(controls.Sliders) != 2 || controls.Sliders[0].Value != lambda ||
		len(controls.Sliders[0].Values) != 3*subdivisions+1 || controls.Sliders[1].Value != tau {
		t.Fatalf("sliders %+v", controls)
	}

	var positions [][]float64 // λ_p and τ
	for _, lambdaP := range controls.Sliders[0].Values {
		positions = append(positions, []float64{lambdaP, tau}, []float64{lambdaP, 0.3})
	}
	for i, got := range runScript(t, controls, positions) {
		lambdaP, tol := positions[i][0], positions[i][1]
		lo, hi := extremes(lambdaP)
		// The interval must contain κ, and not be trivially wide.
		if kappa := hi / lo; !(got.Lo <= kappa && kappa <= got.Hi) || got.Hi > 12*got.Lo {
			t.Errorf("λ_p = %g: κ in [%g, %g], is %g", lambdaP, got.Lo, got.Hi, kappa)
		}
		if want := pcg.IterationBound(got.Hi, tol); got.Bound != float64(want) {
			t.Errorf("λ_p = %g, τ = %g: bound of %g iterations, want %d", lambdaP, tol, got.Bound, want)
		}
		measured := sweep.At(lambdaP)
		if measured == nil {
			continue
		}
		// The first residual that meets τ, or else a decrease from the third one by the factor (√κ−1)/(√κ+1) of
		// conjugate gradients in each further iteration.
		relativeResiduals, root := residuals(lambdaP), math.Sqrt(measured.Kappa.Value)
		want := float64(1 + slices.IndexFunc(relativeResiduals, func(v float64) bool { return v <= tol }))
		if want == 0 {
			want = math.Ceil(3 + math.Log(tol/relativeResiduals[2])/math.Log((root-1)/(root+1)))
		}
		if kappa := measured.Kappa; got.Kappa != kappa.Value || got.Lo != kappa.Lo || got.Hi != kappa.Hi ||
			got.Iterations != want {
			t.Errorf("λ_p = %g, τ = %g: %+v, want κ %v and %g iterations", lambdaP, tol, got, kappa, want)
		}
	}
}

// runScript returns the numbers that the script of the controls shows at each position of the sliders. It skips the
// test if node is not installed.
func runScript(t *testing.T, controls *plots.Controls, positions [][]float64) (numbers []exploreNumbers) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node")
	}
	data, _ := json.Marshal(controls.Data)
	arguments, _ := json.Marshal(positions)
	source := "const f =\n" + controls.Script + ";\nconsole.log(JSON.stringify(" + string(arguments) +
		".map((v) => f(" + string(data) + ", v, String).numbers)))\n"
	file := filepath.Join(t.TempDir(), "explore.js")
	testkit.OK(t, os.WriteFile(file, []byte(source), 0o600))
	out, err := exec.Command(node, file).CombinedOutput()
	if err == nil {
		err = json.Unmarshal(out, &numbers)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return numbers
}
