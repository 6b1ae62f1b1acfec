package krrlab

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/adapt"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
)

func sketchLab(t testing.TB, cfg Config) *Lab {
	t.Helper()
	lab := newLab(t, datasets.SyntheticRegression(500, 3, 0.1, 1), cfg)
	return lab
}

// TestSketchSizeChoosesZ checks that the Z of the s that was chosen, drawn by Features in a Lab
// of that s, has a κ within the target, and that of the rung before has not, by dense
// linear algebra.
func TestSketchSizeChoosesZ(t *testing.T) {
	ctx := context.Background()
	k := kernel.Gaussian{Sigma: 1}
	lab := sketchLab(t, Config{Kernel: k, Lambda: 0.3, Seed: 4})
	got, err := lab.SketchSize(ctx, SketchSizeOptions{First: 16, Target: 20})
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != adapt.Found || got.S <= 16 {
		t.Fatalf("%v", got)
	}
	for _, s := range []int{got.S, got.S / 2} {
		z, err := sketchLab(t, Config{Kernel: k, Lambda: 0.3, Seed: 4, Precond: Features{S: s}}).Z(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		ref := newReference(t, k, lab.train.X, 0.3, lab.y)
		zz := mat.NewDense(z.N, s, nil)
		for i := range z.N {
			for j, v := range z.Row(i) {
				zz.Set(i, j, float64(v))
			}
		}
		if kappa := denseCond(t, ref.a, zz, 0.3); (kappa <= 20) != (s == got.S) {
			t.Errorf("s = %d: κ = %g, target 20, chosen %d", s, kappa, got.S)
		}
	}
}

// denseCond returns κ of (ZZᵀ+λI)⁻¹A by Cholesky and eigenvalues.
func denseCond(t testing.TB, a *mat.SymDense, z *mat.Dense, lambda float64) float64 {
	t.Helper()
	n := a.SymmetricDim()
	m := mat.NewSymDense(n, nil)
	m.SymOuterK(1, z)
	for i := range n {
		m.SetSym(i, i, m.At(i, i)+lambda)
	}
	var chol mat.Cholesky
	if !chol.Factorize(m) {
		t.Fatal("M is not positive definite")
	}
	var l mat.TriDense
	chol.LTo(&l)
	var w, b mat.Dense
	if w.Solve(&l, a) != nil || b.Solve(&l, w.T()) != nil { // L⁻¹AL⁻ᵀ
		t.Fatal("solve")
	}
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			s.SetSym(i, j, (b.At(i, j)+b.At(j, i))/2)
		}
	}
	var e mat.EigenSym
	if !e.Factorize(s, false) {
		t.Fatal("eigenvalues")
	}
	v := e.Values(nil)
	return v[n-1] / v[0]
}

// TestSketchSizeViews checks JSON's round trip, the table, the picture and the text, for both
// tests.
func TestSketchSizeViews(t *testing.T) {
	ctx := context.Background()
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1}, kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}} {
		lab := sketchLab(t, Config{Kernel: k, Lambda: 0.3, Seed: 4})
		for _, o := range []SketchSizeOptions{
			{First: 16, Max: 64, Target: 1.5},
			{First: 16, Max: 64, Test: adapt.Theorem7, Constants: adapt.PaperTest},
			{First: 16, Max: 64, Test: adapt.Theorem7, Sketched: true, Eigen: 32},
		} {
			s, err := lab.SketchSize(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			js, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var back SketchSize
			if err := json.Unmarshal(js, &back); err != nil || !reflect.DeepEqual(&back, s) {
				t.Errorf("%v: JSON does not round-trip: %v\n%+v\n%+v", k, err, back, *s)
			}
			if rows := s.Table().Rows; len(rows) != len(s.Rungs) || len(rows[0]) != len(s.Table().Columns) {
				t.Errorf("%d rows of %d rungs", len(rows), len(s.Rungs))
			}
			f := s.Plot()
			if err := f.Validate(); err != nil {
				t.Error(err)
			}
			last := f.Series[len(f.Series)-1]
			if want := s.Rungs[1].Kappa.Lo; len(last.X) != len(s.Rungs) || o.Test == "" && (last.Lo[1] != want || f.HLines[0].At != 1.5) ||
				o.Test == adapt.Theorem7 && math.Abs(last.Y[1]*s.Constants.Bound()/s.Rungs[1].Kappa.Value-1) > 1e-12 {
				t.Errorf("κ is drawn as %+v", last)
			}
			if o.Test == adapt.Theorem7 {
				c := s.Rungs[0].Conditions
				if got, want := f.Series[0].Y[0], c.Norm.Value/s.Constants.Alpha; got != want {
					t.Errorf("condition 1 is drawn at %g, want %g", got, want)
				}
				if _, poly := k.(kernel.Polynomial); poly != strings.Contains(s.Note, "covers this kernel") {
					t.Errorf("%v: note %q", k, s.Note)
				}
				if o.Sketched != (c.Sketch == 4*16) {
					t.Errorf("s' = %d", c.Sketch)
				}
			}
			for _, want := range []string{"s = 16", "s = 64", string(s.Status), "λ = 0.3"} {
				if !strings.Contains(s.String(), want) || !strings.Contains(s.HTML(), want) {
					t.Errorf("%q is not in\n%s", want, s)
				}
			}
		}
	}
}

// TestSketchSizeErrors checks that bad arguments give one line, before K is formed.
func TestSketchSizeErrors(t *testing.T) {
	lab := sketchLab(t, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3, Precond: Features{LambdaP: 3}})
	for _, c := range []struct {
		o    SketchSizeOptions
		want string
	}{
		{SketchSizeOptions{Max: 500}, "s = 500"},
		{SketchSizeOptions{First: 600}, "s = 600"},
		{SketchSizeOptions{Target: 0.5}, "κ ≤ 0.5"},
		{SketchSizeOptions{Test: "none"}, `"none"`},
		{SketchSizeOptions{Confidence: 1}, "confidence 1"},
		{SketchSizeOptions{Test: adapt.Theorem7}, "λ_p = 3"},
	} {
		s, err := lab.SketchSize(context.Background(), c.o)
		if err == nil || s != nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: error %v, want one with %q", c.o, err, c.want)
		}
	}
	if lab.k.a != nil {
		t.Error("K was formed")
	}
	setThreads(t, 2)
	limited := sketchLab(t, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3, Memory: 2.2e6})
	if s, err := limited.SketchSize(context.Background(), SketchSizeOptions{First: 16, Target: 1.01}); err != nil || s.Limit != "memory" {
		t.Errorf("%v (%v), want the limit memory", s, err)
	}
}

// TestSketchSizeInterrupted checks that the rungs there are come beside the error.
func TestSketchSizeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cfg := Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3, Monitor: func(e Event) error {
		if e.Stage == stage.SketchSize && e.Done == 1 {
			cancel()
		}
		return nil
	}}
	s, err := sketchLab(t, cfg).SketchSize(ctx, SketchSizeOptions{First: 16, Target: 1.01})
	if !errors.Is(err, context.Canceled) || s == nil || len(s.Rungs) != 1 || s.Status != adapt.Interrupted || s.S != 16 {
		t.Errorf("%+v, error %v", s, err)
	}
}

// TestSketchSizeThreads checks that the same seed gives the same bits on one and two threads.
func TestSketchSizeThreads(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	var got [2]*SketchSize
	for i := range got {
		accel.SetThreads(i + 1)
		var err error
		lab := sketchLab(t, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3})
		if got[i], err = lab.SketchSize(context.Background(), SketchSizeOptions{First: 16, Target: 3}); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range got[0].Rungs {
		o := got[1].Rungs[i]
		if r.Kappa.Lo != o.Kappa.Lo || r.Kappa.Hi != o.Kappa.Hi || r.Verdict != o.Verdict || r.Iterations != o.Iterations {
			t.Errorf("s = %d: %v and %v", r.S, r.Kappa, o.Kappa)
		}
	}
}
