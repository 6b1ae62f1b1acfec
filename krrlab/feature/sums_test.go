package feature

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestNorms: sums of squares of every length, and the largest norm for every type of points.
func TestNorms(t *testing.T) {
	for n := range 12 {
		v := make([]float64, n)
		want := 0.0
		for i := range v {
			v[i] = float64(i + 1)
			want += v[i] * v[i]
		}
		if got := sumSq(v); got != want {
			t.Errorf("%d numbers: %g, want %g", n, got, want)
		}
	}
	x := points.NewDense(3, 2, []float64{3, 4, 0, 0, -6, 8})
	x32 := points.NewDense32(3, 2, []float32{3, 4, 0, 0, -6, 8})
	s := &points.CSR{N: 3, D: 2, Ptr: []int{0, 2, 2, 4}, Col: []int32{0, 1, 0, 1}, Val: []float64{3, 4, -6, 8}}
	for _, p := range []points.Points{x, x32, s} {
		if got := maxNorm(p, &Workspace{}); got != 10 {
			t.Errorf("%T: %g, want 10", p, got)
		}
	}
	x.Data[2] = math.NaN()
	if got := maxNorm(x, &Workspace{}); !math.IsInf(got, 1) {
		t.Errorf("a norm that is no number: %g", got)
	}
	x.Data[2] = 1e200
	if got := maxNorm(x, &Workspace{}); !math.IsInf(got, 1) {
		t.Errorf("a norm that overflows: %g", got)
	}
}

// TestFactors checks the helpers that choose a length for the FFT against division by hand.
func TestFactors(t *testing.T) {
	for _, c := range []struct {
		n, rest int
		sum     float64
	}{{1, 1, 0}, {2, 1, 2}, {3, 1, 3}, {4, 1, 4}, {6, 1, 5}, {7, 7, 7}, {9, 1, 6}, {25, 1, 10}, {49, 49, 14}, {30, 1, 10}, {77, 77, 18}, {360, 1, 17}, {1001, 1001, 31}} {
		if got := rest(c.n); got != c.rest {
			t.Errorf("%d without 2, 3 and 5: %d, want %d", c.n, got, c.rest)
		}
		if got := primeSum(c.n); got != c.sum {
			t.Errorf("prime factors of %d add up to %g, want %g", c.n, got, c.sum)
		}
	}
}

// TestPartBounds: which parts of a doubled map can be asked for.
func TestPartBounds(t *testing.T) {
	kern := kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}
	for _, c := range []struct {
		first, from, to int
		fourier, ok     bool
	}{
		{4, 0, 4, false, true}, {4, 4, 8, false, true}, {4, 8, 16, false, true}, {4, 0, 11, false, true},
		{4, 6, 8, false, false}, {4, -1, 4, false, false}, {0, 0, 4, false, false}, {4, 4, 4, false, false}, {4, 8, 4, false, false},
		{4, 0, 4, true, true}, {4, 3, 9, true, true}, {4, -1, 4, true, false}, {0, 0, 4, true, false}, {4, 5, 5, true, false},
	} {
		f := Doubling{Dist: TensorSketch{Kernel: kern}, First: c.first}
		if c.fourier {
			f.Dist = Fourier{Kernel: kernel.Gaussian{Sigma: 1}}
		}
		var m Map
		var err error
		panicked := func() (v any) {
			defer func() { v = recover() }()
			m, err = f.Part(3, c.from, c.to, rng.New(1))
			return nil
		}()
		if (panicked == nil) != c.ok || err != nil {
			t.Errorf("%+v: panic %v, error %v", c, panicked, err)
			continue
		}
		if c.ok {
			if d, s := m.Dims(); d != 3 || s != c.to-c.from {
				t.Errorf("%+v: a map of R^%d to R^%d", c, d, s)
			}
		}
	}
}
