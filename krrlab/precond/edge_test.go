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
		"without ridge": func(dst, src *mat.Dense) error { return w.Outer().KMulTo(t.Context(), dst, src) },
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

// TestBasisShapes: VᵀZᵀx and ZVy take n and s rows, and as many columns.
func TestBasisShapes(t *testing.T) {
	const n, s = 20, 6
	w, err := New(t.Context(), wide(n, s), 0.1, &Options{Form: FormEigen})
	if err != nil {
		t.Fatal(err)
	}
	if w.Dim() != n || w.Features() != s || w.LambdaP() != 0.1 || w.Form() != FormEigen {
		t.Errorf("n = %d, s = %d, λ_p = %g, form %v", w.Dim(), w.Features(), w.LambdaP(), w.Form())
	}
	for _, c := range []struct {
		wide, wideCols, short, shortCols int
		fits                             bool
	}{{n, 2, s, 2, true}, {n - 1, 2, s, 2, false}, {n, 2, s - 1, 2, false}, {n, 2, s + 1, 2, false}, {n, 2, s, 1, false}, {s, 2, n, 2, false}} {
		for _, call := range []func(long, short *mat.Dense) error{
			func(long, short *mat.Dense) error { return w.ZVMulTo(t.Context(), short, true, long) },
			func(long, short *mat.Dense) error { return w.ZVMulTo(t.Context(), long, false, short) },
		} {
			var v any
			func() {
				defer func() { v = recover() }()
				if err := call(mat.NewDense(c.wide, c.wideCols, nil), mat.NewDense(c.short, c.shortCols, nil)); err != nil {
					t.Error(err)
				}
			}()
			if words, _ := v.(string); c.fits != (v == nil) || !c.fits && !strings.HasPrefix(words, "precond: ZV of") {
				t.Errorf("%+v: panic %v", c, v)
			}
		}
	}
}

// TestOptionEnds: each option alone out of its range is refused, and at its end is not.
func TestOptionEnds(t *testing.T) {
	z := wide(20, 6)
	for _, c := range []struct {
		o    Options
		fits bool
	}{
		{Options{Form: FormEigen}, true}, {Options{Iterations: 1, RHS: 1}, true},
		{Options{Form: AutoForm - 1}, false}, {Options{Form: FormEigen + 1}, false}, {Options{Iterations: -1}, false}, {Options{RHS: -1}, false},
	} {
		var v any
		func() {
			defer func() { v = recover() }()
			if _, err := New(t.Context(), z, 0.1, &c.o); err != nil {
				t.Error(err)
			}
		}()
		if words, _ := v.(string); c.fits != (v == nil) || !c.fits && !strings.HasPrefix(words, "precond: form") {
			t.Errorf("%+v: panic %v", c.o, v)
		}
	}
}

// TestRanksForm: ranks choose the form that one process does, where n is small U.
func TestRanksForm(t *testing.T) {
	for n, u := range map[int]bool{100: true, 300: false} {
		const s = 120
		z := wide(n, s)
		o := Options{Iterations: 1e6, RHS: 1}
		lone, err := New(t.Context(), z, 0.1, &o)
		if err != nil || (lone.form == FormU) != u {
			t.Fatalf("n = %d: form %v, %v", n, lone.form, err)
		}
		onRanks(2, z, func(c comm.Comm, own *points.Dense32) {
			o := o
			o.Comm = c
			if w, err := New(t.Context(), own, 0.1, &o); err != nil || w.form != lone.form {
				t.Errorf("n = %d: form %v on ranks, %v without, %v", n, w.form, lone.form, err)
			}
		})
	}
}
