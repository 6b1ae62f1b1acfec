package sketchsize

import (
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestDefaults checks the documented defaults, and the memory of a rung by its formula.
func TestDefaults(t *testing.T) {
	withDefaults := func(n int) (o Options, err error) { err = o.setDefaults(n, 1, 1); return o, err }
	o, err := withDefaults(2000)
	testkit.OK(t, err)
	if o.Test != Kappa || o.Target != 30 || o.Constants != Kappa5Constants || o.Confidence != 0.95 ||
		o.Eigen != 2048 || o.Steps != 150 || o.First != 128 || o.Max != 1999 {
		t.Errorf("%+v", o)
	}
	if o, err = withDefaults(80); err != nil || o.First != 10 || o.Max != 79 {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = withDefaults(5); err != nil || o.First != 1 || o.Max != 4 {
		t.Errorf("%+v, %v", o, err)
	}
	const n, w = 1000, 100
	for _, c := range []struct {
		o    Options
		want int64
	}{{Options{Test: Kappa}, 6*n*w + 18*w*w}, {Options{Test: Theorem7},
		6*n*w + 34*w*w}} {
		s := &search{options: c.o}
		s.n = n
		testkit.Equal(t, s.bytes(w), c.want, c.o)
	}
}
