package adapt

import (
	"errors"
	"testing"

	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestStop drives the rule that ends the Lanczos process: a narrow interval, a clear verdict fit to
// be drawn, or a rejection whose inner end rests, which takes 16 steps to see.
func TestStop(t *testing.T) {
	for name, c := range map[string]struct {
		at   func(step int) judgement
		ends int // step at which it ends, of 40; 0 for never
	}{
		"open and wide":       {func(int) judgement { return judgement{Open, 0.5, 1} }, 0},
		"narrow":              {func(k int) judgement { return judgement{Open, 1 / float64(k*100), 1} }, 10},
		"clear and drawn":     {func(k int) judgement { return judgement{Accept, 1 / float64(k), 1} }, 10},
		"clear, not drawn":    {func(int) judgement { return judgement{Accept, 0.101, 1} }, 0},
		"rejected, at rest":   {func(int) judgement { return judgement{Reject, 1, 5} }, 17},
		"rejected, just so":   {func(k int) judgement { return judgement{Reject, 1, 100 + 2*float64(k)/16} }, 17},
		"rejected, it climbs": {func(k int) judgement { return judgement{Reject, 1, float64(uint64(1) << k)} }, 0},
	} {
		step := 0
		o := (&search{o: Options{Steps: 40}}).options(0.9, rng.New(1), func(*lanczos.Result) judgement { return c.at(step) })
		ended := 0
		for step = 1; step <= 40; step++ {
			if err := o.Monitor(nil); err != nil {
				if !errors.Is(err, errEnough) {
					t.Fatal(err)
				}
				ended = step
				break
			}
		}
		if ended != c.ends {
			t.Errorf("%s: ends at step %d, want %d", name, ended, c.ends)
		}
		if o.Steps != 40 || o.Confidence != 0.9 {
			t.Errorf("%d steps, confidence %g", o.Steps, o.Confidence)
		}
	}
}

// TestDefaults: the documented defaults, and the bytes of a rung by the formula.
func TestDefaults(t *testing.T) {
	o, err := (*Options)(nil).Settled(2000, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if o.Test != Kappa || o.Target != 30 || o.Constants != Kappa5 || o.Confidence != 0.95 || o.Check != 4 || o.Eigen != 2048 || o.Steps != 150 || o.First != 128 || o.Max != 1999 {
		t.Errorf("%+v", o)
	}
	if o, err = (*Options)(nil).Settled(80, 1, 1); err != nil || o.First != 10 || o.Max != 79 {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = (*Options)(nil).Settled(5, 1, 1); err != nil || o.First != 1 || o.Max != 4 {
		t.Errorf("%+v, %v", o, err)
	}
	const n, w = 1000, 100
	for _, c := range []struct {
		o    Options
		want int64
	}{{Options{Test: Kappa}, 6*n*w + 18*w*w}, {Options{Test: Theorem7}, 6*n*w + 34*w*w}, {Options{Test: Theorem7, Sketched: true, Check: 4}, 6*n*w + 34*w*w + 16*n*w}, {Options{Test: Kappa, Sketched: true, Check: 4}, 6*n*w + 18*w*w}} {
		s := &search{o: c.o}
		s.n = n
		if got := s.bytes(w); got != c.want {
			t.Errorf("%+v: %d bytes, want %d", c.o, got, c.want)
		}
	}
}
