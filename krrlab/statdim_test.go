package krrlab

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/suite"
)

var statDimMethods = []StatDimMethod{AutoStatDim, ExactStatDim, Hutchinson, SLQ, FreeStatDim}

// eigenvalues returns those of K formed from Eval, ascending.
func eigenvalues(t testing.TB, l *Lab) []float64 {
	t.Helper()
	r := newReference(t, l.cfg.Kernel, l.train.X, l.cfg.Lambda, l.y)
	var e mat.EigenSym
	if !e.Factorize(r.a, false) {
		t.Fatal("eigenvalues")
	}
	mu := e.Values(nil)
	for i := range mu {
		mu[i] -= l.cfg.Lambda
	}
	return mu
}

// dimension returns Σ μ/(μ+λ).
func dimension(mu []float64, lambda float64) (s float64) {
	for _, m := range mu {
		s += m / (m + lambda)
	}
	return s
}

func statDimLab(t testing.TB, cfg Config) *Lab {
	t.Helper()
	if cfg.Kernel == nil {
		cfg.Kernel = gauss
	}
	cfg.Solver = PCG
	l := newLab(t, regression(kinds(250, 4, 3)["float64"]), cfg)
	return l
}

// TestStatDim checks every method and preconditioner against the eigenvalues of K, at the λ
// asked and along the curve.
func TestStatDim(t *testing.T) {
	for _, p := range []Preconditioner{Features{S: 60, LambdaP: 0.1}, Nystrom{S: 60, LambdaP: 0.1}, RPCholesky{S: 60, LambdaP: 0.1}, None{}} {
		l := statDimLab(t, Config{Lambda: 0.05, Seed: 3, Precond: p, Storage: gram.Float64})
		mu := eigenvalues(t, l)
		for _, m := range statDimMethods {
			if m == FreeStatDim && p == Preconditioner(None{}) {
				continue
			}
			s, err := l.StatDim(t.Context(), StatDimOptions{Method: m, Confidence: 0.999, Measure: true})
			if err != nil {
				t.Fatal(err)
			}
			if exact := dimension(mu, 0.05); !s.Estimate.Covers(exact) || m != FreeStatDim && !s.Reached {
				t.Errorf("%v, %v: s_λ = %.6g, got %v, reached %v", p, m, exact, s.Estimate, s.Reached)
			}
			for _, c := range s.Curve {
				if exact := dimension(mu, c.Lambda); !c.Estimate.Covers(exact) || c.Estimate.Lo > c.Estimate.Value || c.Estimate.Hi < c.Estimate.Value {
					t.Errorf("%v, %v: s_%g = %.6g, got %v", p, m, c.Lambda, exact, c.Estimate)
				}
			}
			if len(s.Curve) != 21 {
				t.Errorf("%v, %v: %d points of the curve", p, m, len(s.Curve))
			}
		}
	}
}

// TestStatDimView checks what a stage promises: JSON that round-trips, lines, table, picture.
func TestStatDimView(t *testing.T) {
	l := statDimLab(t, Config{Lambda: 0.05, Precond: Features{S: 60}})
	for _, m := range statDimMethods {
		s, err := l.StatDim(t.Context(), StatDimOptions{Method: m, Measure: true, Lambdas: []float64{0.01, 1}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back StatDim
		if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(*s, back) {
			t.Errorf("%v: JSON gives %+v, want %+v (%v)", m, back, *s, err)
		}
		for _, want := range []string{"s_λ(K)", "interval", s.Method} {
			if !strings.Contains(s.String(), want) {
				t.Errorf("%v: %q is not in\n%s", m, want, s)
			}
		}
		if err := s.Plot().Validate(); err != nil {
			t.Error(err)
		}
		if got := len(s.Table().Rows); got != len(s.Curve) {
			t.Errorf("%v: %d rows for %d points", m, got, len(s.Curve))
		}
		if h := s.HTML(); !strings.Contains(h, "<svg") || !strings.Contains(h, "<table") {
			t.Errorf("%v: HTML without picture or table", m)
		}
	}
}

// TestStatDimSameBits checks that the number of threads and earlier calls change nothing.
func TestStatDimSameBits(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	for _, m := range statDimMethods {
		var first *StatDim
		for _, threads := range []int{1, 2} {
			accel.SetThreads(threads)
			l := statDimLab(t, Config{Lambda: 0.05, Precond: Features{S: 60}, Seed: 5})
			if threads == 2 { // another order of calls
				if _, err := l.StatDim(t.Context(), StatDimOptions{Method: SLQ, MaxProbes: 16}); err != nil {
					t.Fatal(err)
				}
			}
			s, err := l.StatDim(t.Context(), StatDimOptions{Method: m})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = s
			} else if s.Estimate.Value != first.Estimate.Value || s.Estimate.Lo != first.Estimate.Lo || s.Estimate.Hi != first.Estimate.Hi {
				t.Errorf("%v: %d threads give %v, one %v", m, threads, s.Estimate, first.Estimate)
			}
		}
	}
}

func TestStatDimBadArguments(t *testing.T) {
	l := statDimLab(t, Config{Lambda: 0.05, Precond: Features{S: 60}})
	for name, o := range map[string]StatDimOptions{
		"unknown method":  {Method: 9},
		"confidence 1":    {Confidence: 1},
		"width":           {Width: -1},
		"at most 3":       {MaxProbes: 3},
		"grid":            {Lambdas: []float64{}},
		"λ = 0 in the":    {Lambdas: []float64{1, 0}},
		"λ = +Inf in the": {Lambdas: []float64{math.Inf(1)}},
	} {
		if _, err := l.StatDim(t.Context(), o); err == nil || !strings.Contains(err.Error(), strings.Split(name, " ")[0]) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain := statDimLab(t, Config{Lambda: 0.05, Precond: None{}})
	if _, err := plain.StatDim(t.Context(), StatDimOptions{Method: FreeStatDim}); err == nil {
		t.Error("free without features")
	}
	if _, err := ParseStatDimMethod("guess"); err == nil {
		t.Error("method guess")
	}
}

// TestStatDimInterrupted checks that what the batches before gave is returned.
func TestStatDimInterrupted(t *testing.T) {
	for _, m := range []StatDimMethod{Hutchinson, SLQ} {
		ctx, cancel := context.WithCancel(t.Context())
		l := statDimLab(t, Config{Lambda: 20, Precond: Features{S: 2}, Monitor: func(e Event) error {
			if e.Stage == stage.Probes && e.Detail != "" { // the second batch
				cancel()
			}
			return nil
		}})
		s, err := l.StatDim(ctx, StatDimOptions{Method: m, Width: 1e-4})
		if !errors.Is(err, context.Canceled) || s == nil || s.Probes != 16 || s.Reached || !(s.Estimate.Lo < s.Estimate.Hi) {
			t.Errorf("%v: %v, %v", m, s, err)
		}
		cancel()
		if s, err := l.StatDim(ctx, StatDimOptions{Method: m}); s != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %v, %v from a context that has ended", m, s, err)
		}
	}
}

// TestStatDimCoverage counts how often the default interval covers the exact value on subsets of
// real data. It takes some minutes: KRRLAB_LONG.
func TestStatDimCoverage(t *testing.T) {
	dir := suite.RealData(t)
	if lib, err := accel.OpenBLAS(); err == nil { // for the time it takes
		accel.Use(lib)
		defer accel.Use(nil)
	}
	for name, sigma := range map[string]float64{"mnist": 8.5, "ijcnn1": 0.3} {
		p, err := datasets.Load(t.Context(), name, &datasets.LoadOptions{Dirs: []string{dir}, N: 2000})
		if err != nil {
			t.Fatal(err)
		}
		var shared *gram.Matrix
		var exact float64
		for _, m := range []StatDimMethod{Hutchinson, SLQ} {
			covered, reached, start := 0, 0, time.Now()
			for seed := range 100 {
				l := newLab(t, p.Train, Config{Kernel: kernel.Gaussian{Sigma: sigma}, Lambda: 0.01, Solver: PCG, Seed: uint64(seed)})
				if shared == nil {
					if shared, err = l.K(t.Context()); err != nil {
						t.Fatal(err)
					}
					exact = dimension(eigenvalues(t, l), 0.01)
				}
				l.k.a, l.k.accuracy = shared, l.accuracy()
				s, err := l.StatDim(t.Context(), StatDimOptions{Method: m})
				if err != nil {
					t.Fatal(err)
				}
				if s.Estimate.Covers(exact) {
					covered++
				}
				if s.Reached {
					reached++
				}
			}
			t.Logf("%s, %v: s_λ = %.5g covered in %d of 100 seeds, width reached in %d, %.0f s", name, m, exact, covered, reached, time.Since(start).Seconds())
			if covered < 90 || reached < 90 {
				t.Errorf("%s, %v: covered %d, reached %d of 100", name, m, covered, reached)
			}
		}
	}
}
