package krrlab

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
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
	got := testkit.Must(lab.SketchSize(ctx, SketchSizeOptions{First: 16, Target: 20}))
	if got.Status != sketchsize.Found || got.S <= 16 {
		t.Fatalf("%v", got)
	}
	for _, s := range []int{got.S, got.S / 2} {
		z := testkit.Must(sketchLab(t, Config{Kernel: k, Lambda: 0.3, Seed: 4, Precond: Features{S: s}}).Z(ctx))
		v := denseSpectrum(t, k, lab.train.X, 0.3, z, 0.3)
		if kappa := v[z.N-1] / v[0]; (kappa <= 20) != (s == got.S) {
			t.Errorf("s = %d: κ = %g, target 20, chosen %d", s, kappa, got.S)
		}
	}
}

// TestSketchSizeViews checks the picture, for both tests.
func TestSketchSizeViews(t *testing.T) {
	ctx := context.Background()
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1}, kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}} {
		lab := sketchLab(t, Config{Kernel: k, Lambda: 0.3, Seed: 4})
		for _, o := range []SketchSizeOptions{
			{First: 16, Max: 64, Target: 1.5},
			{First: 16, Max: 64, Test: sketchsize.Theorem7, Constants: sketchsize.PaperTest},
			{First: 16, Max: 64, Test: sketchsize.Theorem7, Eigen: 32},
		} {
			s := testkit.Must(lab.SketchSize(ctx, o))
			f := s.Plot()
			last := f.Series[len(f.Series)-1]
			if want := s.Rungs[1].Kappa.Lo; len(last.X) != len(s.Rungs) || o.Test == "" &&
				(last.Lo[1] != want || f.HLines[0].At != 1.5) ||
				o.Test == sketchsize.Theorem7 &&
					math.Abs(last.Y[1]*s.Constants.Bound()/s.Rungs[1].Kappa.Value-1) > 1e-12 {
				t.Errorf("κ is drawn as %+v", last)
			}
			if o.Test == sketchsize.Theorem7 {
				c := s.Rungs[0].Conditions
				if got, want := f.Series[0].Y[0], c.Norm.Value/s.Constants.Alpha; got != want {
					t.Errorf("condition 1 is drawn at %g, want %g", got, want)
				}
				if _, poly := k.(kernel.Polynomial); poly != strings.Contains(s.Coverage, "covers this kernel") {
					t.Errorf("%v: coverage %q", k, s.Coverage)
				}
			}
		}
	}
}
