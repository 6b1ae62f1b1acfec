package race

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/rng"
)

// diagonal is a diagonal matrix.
type diagonal []float64

func (a diagonal) Dim() int { return len(a) }

func (a diagonal) MulTo(_ context.Context, dst, src *mat.Dense) error {
	for i, v := range a {
		dst.Set(i, 0, v*src.At(i, 0))
	}
	return nil
}

// TestState: whenever a runner wins, a solve goes on from its state to the same bits, also when it waits for a product
// that is no iteration's: that of the residual where it has converged. Then there is no state.
func TestState(t *testing.T) {
	const n = 40
	a, y := make(diagonal, n), mat.NewDense(n, 1, nil)
	for i := range n {
		a[i] = 1 + float64(i%7)
		y.Set(i, 0, rng.New(1).Normal(uint64(i)))
	}
	alone, err := pcg.Solve(t.Context(), a, nil, y, &pcg.Options{Tol: 1e-9})
	if err != nil {
		t.Fatal(err)
	}
	r := &race{a: a, y: y, lanes: []*lane{{}}, res: &Result{Field: make([]Standing, 1)}}
	r.o.PCG.Tol = 1e-9
	r.combine()
	if err := r.enter(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	defer r.lanes[0].stop()
	var states []bool // at each product
	for r.res.Field[0].Phase == Running {
		r.res.State = nil
		if err := r.win(0); err != nil {
			t.Fatal(err)
		}
		states = append(states, r.res.State != nil)
		if r.res.State != nil {
			end, err := pcg.Solve(t.Context(), a, nil, y, &pcg.Options{Tol: 1e-9, Resume: r.res.State})
			if err != nil || !reflect.DeepEqual(end.X, alone.X) || end.Iterations != alone.Iterations {
				t.Fatalf("after %d iterations: %v", r.res.Field[0].Iterations, err)
			}
		}
		if err := r.multiply(t.Context(), []int{0}); err != nil {
			t.Fatal(err)
		}
		if err := r.advance(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if k := len(states); k != alone.Iterations+1 || states[0] || states[k-1] || !states[1] {
		t.Errorf("states at the products %v of %d iterations", states, alone.Iterations)
	}
}

// TestWinnerOfAll: the winner is the least of all rows that are shown, built or not, and what is kept is said beside it where that is another.
func TestWinnerOfAll(t *testing.T) {
	ran := func(name string, build float64, done int, left float64) Standing {
		return Standing{Name: name, Phase: Running, Build: build, Iterations: done, Left: left, Residuals: make([]float64, done+1)}
	}
	waits := Standing{Name: "rpcholesky", Build: 0.02, Left: 5}
	out := Standing{Name: "nystrom", Phase: Out, Build: 1e-9, Why: "no"}
	stuck := ran("features", 0.1, 4, math.Inf(1))
	for name, c := range map[string]struct {
		field        []Standing
		kept, winner int
	}{
		"the same":                        {[]Standing{ran("none", 0, 9, 100), ran("features", 0.1, 4, 4)}, 1, 1},
		"building was too dear":           {[]Standing{ran("none", 0, 9, 21), ran("features", 0.1, 4, 4)}, 1, 0},
		"what was not built is faster":    {[]Standing{ran("none", 0, 9, 100), ran("features", 0.1, 4, 4), waits}, 1, 2},
		"one is out":                      {[]Standing{ran("none", 0, 9, 100), out, ran("features", 0.02, 4, 4)}, 2, 2},
		"one gets no nearer":              {[]Standing{ran("none", 0, 9, 100), stuck}, 0, 0},
		"nobody":                          {[]Standing{out, waits}, -1, -1},
		"as fast as the one that is kept": {[]Standing{ran("none", 0, 5, 5), ran("features", 0, 4, 6)}, 1, 1},
	} {
		r := &Report{Racers: make([]Racer, len(c.field))}
		for i := range r.Racers {
			r.Racers[i].S = i
		}
		r.Take(&Result{Winner: c.kept, Field: c.field, Product: 1e-3})
		text := r.String()
		if r.Kept != c.kept || r.Winner != c.winner || strings.Contains(text, "\nkept") != (c.kept != c.winner) || c.winner == 0 && !strings.Contains(text, "winner                 M = I") {
			t.Errorf("%s: kept %d, winner %d\n%s", name, r.Kept, r.Winner, text)
		}
	}
}
