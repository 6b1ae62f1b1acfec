package statdim

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/rng"
)

// TestNext checks the law by which probes are added: 1.1·m·(w/width)², at least 8 more, at most
// twice as many and no more than are allowed.
func TestNext(t *testing.T) {
	o := &Options{Width: 0.1, MaxProbes: 200}
	for _, c := range []struct {
		m    int
		w    float64
		want int
	}{{100, 0.12, 159}, {16, 0.11, 24}, {16, 0.4, 32}, {150, 0.4, 200}, {100, 0.1, 111}} {
		if got := o.next(c.m, c.w); got != c.want {
			t.Errorf("after %d probes and width %g: %d, want %d", c.m, c.w, got, c.want)
		}
	}
}

// TestControlExplains: features close to K remove nearly all of the probes' variance, and narrow the
// interval, with the same probes; without a control nothing is explained.
func TestControlExplains(t *testing.T) {
	s := spectra[1]
	d := s.design(150, 3)
	for _, m := range methods {
		var width [2]float64
		for i := range width {
			p := &Problem{K: d.k, Lambda: s.lambda}
			if i == 1 {
				p.Control = control(t, d.features(100, 1e-3, 5), s.lambda)
			}
			r, err := m.run(t.Context(), p, &Options{Probes: 16, MaxProbes: 16, Width: 1e-5, Stream: rng.New(2)})
			if err != nil {
				t.Fatal(err)
			}
			width[i] = r.Estimate.Width()
			if i == 0 && r.Explained != 0 || i == 1 && !(r.Explained > 0.99) {
				t.Errorf("%s, control %v: explains %g", m.name, i == 1, r.Explained)
			}
		}
		if !(width[1] < width[0]/5) {
			t.Errorf("%s: width %g with a control, %g without", m.name, width[1], width[0])
		}
	}
}

// counted counts the columns that K is multiplied with.
type counted struct {
	dense
	columns *int
}

func (c counted) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	_, t := src.Dims()
	*c.columns += t
	return c.dense.KMulTo(ctx, dst, src)
}

// TestWorkIsCounted: Columns are the vectors that K was multiplied with, and Steps are positive and
// no more.
func TestWorkIsCounted(t *testing.T) {
	s := spectra[1]
	d := s.design(100, 3)
	for _, m := range methods {
		var columns int
		p := &Problem{K: counted{d.k, &columns}, Lambda: s.lambda}
		r, err := m.run(t.Context(), p, &Options{Probes: 8, MaxProbes: 24, Width: 1e-5, Stream: rng.New(2)})
		if err != nil {
			t.Fatal(err)
		}
		if r.Columns != columns || r.Steps < 1 || r.Steps > columns {
			t.Errorf("%s: %d columns and %d steps, K was multiplied with %d", m.name, r.Columns, r.Steps, columns)
		}
	}
}

// large is a matrix of which only the order is asked.
type large struct {
	dense
	n int
}

func (l large) Dim() int { return l.n }

// TestBatchSize: the Lanczos vectors of a batch take a gigabyte, and there is always one probe.
func TestBatchSize(t *testing.T) {
	for _, c := range []struct{ n, steps, want int }{{1 << 20, 400, 1}, {1 << 17, 64, 16}, {1 << 16, 400, 5}, {100, 400, blockColumns}, {1 << 10, 1 << 20, blockColumns}} {
		at := &curve{p: &Problem{K: large{n: c.n}}, o: &Options{MaxSteps: c.steps}}
		if got := at.batchSize(); got != c.want {
			t.Errorf("n = %d, %d steps: %d probes at once, want %d", c.n, c.steps, got, c.want)
		}
	}
}

// TestFreeArguments: what is no distance and no trace is refused, and what is at the bound is not.
func TestFreeArguments(t *testing.T) {
	for _, c := range []struct {
		below, above, trace float64
		ok                  bool
	}{{0, 0, 2, true}, {1, -1e-9, 2, false}, {-1e-9, 1, 2, false}, {1, 1, -1, false}, {1, 1, 0, true}, {math.NaN(), 1, 2, false}, {1, 1, math.NaN(), false}} {
		out, err := Free(3, c.trace, []float64{1, 1}, Distance{c.below, c.above, 1}, []float64{0.5})
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
		if c.ok && (len(out) != 1 || !(out[0].Estimate.Lo <= out[0].Estimate.Hi)) {
			t.Errorf("%+v: %+v", c, out)
		}
	}
}

// TestTraceBoundsAttained: one eigenvalue that has all of the trace, and equal ones, attain the ends.
func TestTraceBoundsAttained(t *testing.T) {
	lo, hi := traceBounds(10, 20, 0.5)
	if want := degree(20, 0.5); math.Abs(lo-want) > 1e-15*want {
		t.Errorf("least %g, want %g", lo, want)
	}
	if want := 10 * degree(2, 0.5); math.Abs(hi-want) > 1e-14*want {
		t.Errorf("most %g, want %g", hi, want)
	}
	if lo, hi := traceBounds(10, 0, 0.5); lo != 0 || hi != 0 {
		t.Errorf("of nothing [%g, %g]", lo, hi)
	}
}

// TestGains: more probes are of use while what they cannot narrow is below half the width.
func TestGains(t *testing.T) {
	r := &Result{Truncation: 0.3, Storage: 0.1}
	r.Estimate.Value = 10
	for width, want := range map[float64]bool{0.081: true, 0.079: false, 1: true} {
		if got := r.gains(&Options{Width: width}); got != want {
			t.Errorf("width %g: %v", width, got)
		}
	}
}

// TestRadauPivot: where the last pivot of T − aI is zero or less, by rounding, the upper bound is that
// of an eigenvalue at the end, not the Gauss rule's lower one.
func TestRadauPivot(t *testing.T) {
	const lambda = 0.5
	for _, last := range []float64{1, 0.5} { // pivots 1 and last − 1
		tr := &tridiagonals{n: 9, m: 1, alpha: [][]float64{{1, last}}, beta: [][]float64{{1, 0.5}}, done: make([]bool, 1)}
		lo, hi := tr.inverse(0, lambda, 0)
		if want := 1 / (1 + lambda - 1/(last+lambda)); math.Abs(lo-want) > 1e-14*want || hi != 1/lambda {
			t.Errorf("last diagonal %g: [%g, %g], want [%g, %g]", last, lo, hi, want, 1/lambda)
		}
	}
}

// TestUnseen: where a group of equal rows among others is all that probes vary by, a few of them may have the same value: the
// interval still covers s_λ as often as it says.
func TestUnseen(t *testing.T) {
	const seeds, lambda = 200, 0.01
	for _, c := range []struct{ n, group int }{{30, 3}, {60, 50}, {2, 2}} {
		k := mat.NewSymDense(c.n, nil)
		for i := range c.n {
			for j := range i + 1 {
				if i == j || i < c.group {
					k.SetSym(i, j, 1)
				}
			}
		}
		g, rest := float64(c.group), float64(c.n-c.group)
		want := g/(g+lambda) + rest/(1+lambda)
		for name, f := range map[string]func(context.Context, *Problem, *Options) (*Result, error){"hutchinson": Hutchinson, "slq": SLQ} {
			covered := 0
			for seed := range seeds {
				r, err := f(t.Context(), &Problem{K: dense{k}, Lambda: lambda}, &Options{Probes: 8, MaxProbes: 32, Stream: rng.New(uint64(seed))})
				if err != nil {
					t.Fatal(err)
				}
				if r.Estimate.Covers(want) {
					covered++
				}
			}
			if covered < seeds*94/100 {
				t.Errorf("%s, %d equal rows of %d: %d of %d intervals cover s_λ", name, c.group, c.n, covered, seeds)
			}
		}
	}
}
