package precond

import (
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/points"
)

// TestShapes: each shape that does not fit is refused in the package's own words, for each entry.
func TestShapes(t *testing.T) {
	const n, s = 40, 8
	w, err := New(t.Context(), wide(n, s), 0.1, &Options{Form: FormEigen})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Family([]float64{0.1, 1})
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(dst, src *mat.Dense) error{
		"product":       func(dst, src *mat.Dense) error { return w.MulTo(t.Context(), dst, src) },
		"without ridge": func(dst, src *mat.Dense) error { return w.ZZMulTo(t.Context(), dst, src) },
		"solve":         func(dst, src *mat.Dense) error { return w.SolveTo(t.Context(), dst, src) },
		"family":        func(dst, src *mat.Dense) error { return f.SolveTo(t.Context(), dst, src) },
		"columns":       func(dst, src *mat.Dense) error { return f.SolveColumnsTo(t.Context(), dst, src, []int{1, 0}) },
	}
	for name, call := range calls {
		for _, c := range []struct {
			dn, dt, sn, st int
			fits           bool
		}{{n, 2, n, 2, true}, {n - 1, 2, n, 2, false}, {n, 3, n, 2, false}, {n, 2, n - 1, 2, false}, {n, 2, n, 3, false}, {n + 1, 2, n + 1, 2, false}} {
			var v any
			func() {
				defer func() { v = recover() }()
				if err := call(mat.NewDense(c.dn, c.dt, nil), mat.NewDense(c.sn, c.st, nil)); err != nil {
					t.Error(name, err)
				}
			}()
			words, _ := v.(string)
			if c.fits && v != nil || !c.fits && !strings.HasPrefix(words, "precond: ") {
				t.Errorf("%s: %d×%d into %d×%d: panic %v", name, c.sn, c.st, c.dn, c.dt, v)
			}
		}
	}
}

// TestRanksForm: ranks never choose the form U, which they do not have, also where n is small.
func TestRanksForm(t *testing.T) {
	for _, n := range []int{100, 200, 300} {
		const s = 120
		if n == 200 { // so many solves that a process alone would take U
			if f := choose(n, s, 10, 10000, false); f != FormU {
				t.Fatalf("a process takes %v", f)
			}
		}
		onRanks(2, wide(n, s), func(c comm.Comm, own *points.Dense32) {
			w, err := NewOnRanks(t.Context(), c, n, own, 0.1, &Options{Iterations: 10000, RHS: 10})
			if err != nil {
				t.Error(err)
				return
			}
			if w.form == FormU {
				t.Errorf("n = %d: form %v", n, w.form)
			}
		})
	}
}
