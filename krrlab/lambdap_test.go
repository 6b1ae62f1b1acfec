package krrlab

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/stage"
)

func lambdaPConfig() Config {
	return Config{Kernel: kernel.Gaussian{Sigma: 2}, Lambda: 0.01, Solver: PCG, Precond: Features{S: 60}, Tol: 1e-4, Seed: 2, Storage: gram.Float64}
}

// TestLambdaP compares the sweep with dense spectra and with Solve at each λ_p, for features of
// both families and for landmarks.
func TestLambdaP(t *testing.T) {
	x := kinds(200, 5, 3)["float32"]
	poly := lambdaPConfig()
	poly.Kernel = kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 2}
	marks := lambdaPConfig()
	size := marks.Precond.(Features).S
	marks.Precond = RPCholesky{S: size}
	for name, cfg := range map[string]Config{"gaussian": lambdaPConfig(), "polynomial": poly, "landmarks": marks} {
		l := newLab(t, regression(x), cfg)
		s, err := l.LambdaP(t.Context(), LambdaPOptions{Points: 6})
		if err != nil {
			t.Fatal(err)
		}
		r := s.Sweeps[0]
		z := wholeZ(t, l)
		least := math.MaxInt
		for _, p := range r.Points {
			v := denseSpectrum(t, cfg.Kernel, x, 0.01, z, p.LambdaP)
			if kappa := v[199] / v[0]; !p.Kappa.Covers(kappa) || p.Bound < kappa*(1-1e-9) {
				t.Errorf("%s: λ_p = %g: κ %v, bound %g, is %g", name, p.LambdaP, p.Kappa, p.Bound, kappa)
			}
			size := l.approximation().s
			cfg.Precond, cfg.MaxIter = sized(l.cfg.Precond.(approximation), size, p.LambdaP), 200 // Solve's M is a tenth off where that is cheaper (precond.Options.Fast)
			sol := mustSolve(t, l.train, cfg)
			if math.Abs(float64(*p.Iterations-sol.Iterations)) > 2+0.15*float64(sol.Iterations) {
				t.Errorf("%s: λ_p = %g: %d iterations, Solve takes %d", name, p.LambdaP, *p.Iterations, sol.Iterations)
			}
			if p.Status == pcg.Converged {
				least = min(least, *p.Iterations)
			}
		}
		if best := r.At(s.BestLambdaP); s.BestS != z.D || best == nil || *best.Iterations != least {
			t.Errorf("%s: the choice is s = %d, λ_p = %g; the least is %d iterations", name, s.BestS, s.BestLambdaP, least)
		}
	}
}

// TestLambdaPMap: a row for each s on one grid; κ at the best λ_p falls as s grows, and the row
// of an s is that of a sweep with it.
func TestLambdaPMap(t *testing.T) {
	l := newLab(t, regression(kinds(300, 4, 3)["float64"]), lambdaPConfig())
	m, err := l.LambdaP(t.Context(), LambdaPOptions{Points: 5, Sizes: []int{80, 20, 40}})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Sweeps) != 3 || m.Sweeps[0].S != 20 || m.Sweeps[2].S != 80 {
		t.Fatalf("%v", m)
	}
	var grid []float64
	for _, r := range m.Sweeps {
		var g []float64
		for _, p := range r.Points {
			g = append(g, p.LambdaP)
			if p.Iterations != nil || p.Predicted > 0 != (p.Seconds > 0) {
				t.Errorf("s = %d: %+v", r.S, p)
			}
		}
		if grid == nil {
			grid = g
		} else if !reflect.DeepEqual(g, grid) {
			t.Errorf("grids %v and %v", g, grid)
		}
	}
	if a, b := m.Sweeps[0].Points[m.Sweeps[0].Best].Kappa.Value, m.Sweeps[2].Points[m.Sweeps[2].Best].Kappa.Value; b >= a {
		t.Errorf("κ %g with 20 features, %g with 80", a, b)
	}
	cfg := lambdaPConfig()
	cfg.Precond = Features{S: 40}
	one, err := newLab(t, l.train, cfg).LambdaP(t.Context(), LambdaPOptions{Grid: grid, Columns: -1})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range one.Sweeps[0].Points {
		if q := m.Sweeps[1].Points[i]; p.Kappa.Value != q.Kappa.Value || p.Kappa.Hi != q.Kappa.Hi {
			t.Errorf("λ_p = %g: κ %v alone, %v in the map", p.LambdaP, p.Kappa, q.Kappa)
		}
	}
	for _, s := range []*LambdaP{m, one} {
		if err := s.Plot().Validate(); err != nil {
			t.Error(err)
		}
		rows := 0
		for _, r := range s.Sweeps {
			rows += len(r.Points)
		}
		if html := s.HTML(); !strings.Contains(html, "<svg") || len(s.Table().Rows) != rows {
			t.Error("the views lack something")
		}
		b, err := json.Marshal(s)
		var back LambdaP
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || !reflect.DeepEqual(*s, back) {
			t.Errorf("another stage comes back from JSON (%v)", err)
		}
	}
}

// TestNested: the features of a map's rows are nested for Fourier maps: Z_s is the first s
// columns of Z_2s, times √2.
func TestNested(t *testing.T) {
	l := newLab(t, regression(kinds(50, 4, 3)["float64"]), lambdaPConfigOf(20))
	var z [2]*points.Dense32
	for i, s := range []int{20, 40} {
		var err error
		if z[i], err = newLab(t, l.train, lambdaPConfigOf(s)).Z(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		for j, v := range z[0].Row(i) {
			if w := float64(z[1].Row(i)[j]) * math.Sqrt2; math.Abs(float64(v)-w) > 1e-5 {
				t.Fatalf("feature %d of point %d: %g and %g", j, i, v, w)
			}
		}
	}
}

func TestLambdaPArguments(t *testing.T) {
	l := newLab(t, regression(kinds(50, 3, 1)["float64"]), lambdaPConfigOf(20))
	for want, o := range map[string]LambdaPOptions{
		"λ_p = 0": {Grid: []float64{0, 1}}, "λ_p = -2": {Grid: []float64{-2}}, "empty grid": {Grid: []float64{}}, "no numbers of features": {Sizes: []int{}},
		"s = 51": {Sizes: []int{10, 51}}, "confidence 1.5": {Confidence: 1.5}, "grid of -1": {Points: -1}, "width -0.1": {Width: -0.1},
	} {
		if _, err := l.LambdaP(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	cfg := lambdaPConfigOf(20)
	cfg.Precond = None{}
	if _, err := newLab(t, l.train, cfg).LambdaP(t.Context(), LambdaPOptions{}); err == nil || !strings.Contains(err.Error(), "preconditioner none") {
		t.Errorf("without a preconditioner: %v", err)
	}
}

func lambdaPConfigOf(s int) Config {
	cfg := lambdaPConfig()
	cfg.Precond = Features{S: s}
	return cfg
}

func TestLambdaPBits(t *testing.T) {
	setThreads(t, accel.Threads())
	train := regression(kinds(300, 6, 2)["float32"])
	var first *LambdaP
	for _, threads := range []int{1, 2} {
		accel.SetThreads(threads)
		s, err := newLab(t, train, lambdaPConfig()).LambdaP(t.Context(), LambdaPOptions{Points: 4})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = s
			continue
		}
		for i, p := range s.Sweeps[0].Points {
			if q := first.Sweeps[0].Points[i]; p.LambdaP != q.LambdaP || p.Kappa.Hi != q.Kappa.Hi || *p.Iterations != *q.Iterations {
				t.Errorf("%d threads: other bits: %+v, %+v", threads, p, q)
			}
		}
	}
}

func TestLambdaPInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := lambdaPConfig()
	started := 0
	cfg.Monitor = func(e Event) error {
		if e.Stage == stage.Lanczos && e.Done == 3 {
			if started++; started == 2 { // in the second row of the map
				cancel()
			}
		}
		return nil
	}
	s, err := newLab(t, regression(kinds(200, 4, 1)["float64"]), cfg).LambdaP(ctx, LambdaPOptions{Points: 5, Sizes: []int{20, 40, 80}})
	if !errors.Is(err, context.Canceled) || s == nil || len(s.Sweeps) != 2 || s.Sweeps[1].Points[0].Steps != 3 {
		t.Fatalf("%v, %v", s, err)
	}
	if err := s.Plot().Validate(); err != nil || s.BestS == 0 {
		t.Errorf("%v: %v", s, err)
	}
}
