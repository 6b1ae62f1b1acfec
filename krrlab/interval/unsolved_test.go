package interval

import (
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestUnsolved: intervals that take AC for the targets, which hold no answer where C was solved for coarsely, are refused
// then, by the residual or the bound of the model, and not where C was solved for as is usual.
func TestUnsolved(t *testing.T) {
	const n, lambda, level = 200, 1e-6, 0.9
	k := kernel.Gaussian{Sigma: 1.5}
	all := datasets.SyntheticRegression(n+300, 2, 0.1, 1)
	d, at := all.Subset(rng.New(1).Perm(n + 300)[:n]), all.Subset(rng.New(1).Perm(n + 300)[n:])
	a := dense(k, d.X, d.X)
	for i := range n {
		a.Set(i, i, a.At(i, i)+lambda)
	}
	y := mat.NewDense(n, 1, d.Target)
	for _, c := range []struct {
		tol  float64
		want bool
	}{{0.5, false}, {0.2, false}, {1e-6, true}} {
		res, err := pcg.Solve(t.Context(), product{a}, nil, y, &pcg.Options{Tol: c.tol, MaxIter: 20000})
		if err != nil || res.Status != pcg.Converged {
			t.Fatal(err, res.Status)
		}
		rel := res.MaxTrueRelRes()
		for _, m := range []*model.Model{
			{Origin: model.Origin{TrueResidual: rel}},
			{Origin: model.Origin{TrueResidual: rel}, Error: &model.Error{ANorm: []float64{rel * mat.Norm(y, 2) / math.Sqrt(lambda)}}},
		} {
			m.Kernel, m.Lambda, m.X, m.C = k, lambda, d.X, res.X
			s, err := Cholesky(t.Context(), m, 0)
			if got := err == nil; got != c.want || !got && !errors.Is(err, ErrUnsolved) {
				t.Errorf("τ = %g, residual %.2g: %v, want an error: %v", c.tol, rel, err, !c.want)
			}
			if _, err := Iterative(t.Context(), m, product{a}, nil); (err == nil) != c.want {
				t.Errorf("τ = %g, residual %.2g, iterative: %v, want an error: %v", c.tol, rel, err, !c.want)
			}
			if err != nil {
				continue
			}
			p := predict(t, m, at)
			v, err := FromSystem(t.Context(), s, JackknifePlus, p, at, level)
			if err != nil {
				t.Fatal(err)
			}
			if share := v.Coverage(p, at); share < 2*level-1 {
				t.Errorf("τ = %g: %g of the answers are inside", c.tol, share)
			}
		}
	}
	for _, rel := range []float64{1, 2, math.NaN(), -1} { // ‖y‖₂ is not known
		m := fit(t, d, k, 0.1)
		m.Origin.TrueResidual = rel
		if _, err := Cholesky(t.Context(), m, 0); !errors.Is(err, ErrUnsolved) {
			t.Errorf("residual %g: %v", rel, err)
		}
	}
}

// TestUnits: the intervals of targets in another unit are the same in that unit, where squares of them under- or
// overflow too.
func TestUnits(t *testing.T) {
	const n, lambda, level = 60, 0.01, 0.8
	k := kernel.Gaussian{Sigma: 1}
	d, at := datasets.SyntheticRegression(n, 2, 0.3, 1), datasets.SyntheticRegression(20, 2, 0.3, 2)
	intervals := func(unit float64) map[string]*Intervals {
		scaled := *d
		scaled.Target = make([]float64, n)
		for i, v := range d.Target {
			scaled.Target[i] = unit * v
		}
		m, out := fit(t, &scaled, k, lambda), map[string]*Intervals{}
		for _, method := range []string{JackknifePlus, Gaussian} {
			v, err := FromSystem(t.Context(), cholesky(t, m), method, predict(t, m, at), at, level)
			if err != nil {
				t.Fatal(err)
			}
			out[method] = v
		}
		return out
	}
	want := intervals(1)
	for _, unit := range []float64{0x1p-600, 0x1p480} {
		for method, v := range intervals(unit) {
			v.Lo.Scale(1/unit, v.Lo)
			v.Hi.Scale(1/unit, v.Hi)
			if e := max(apart(v.Lo, want[method].Lo), apart(v.Hi, want[method].Hi)); !(e < 1e-9) {
				t.Errorf("%s of targets times %g: %g apart", method, unit, e)
			}
		}
	}
}
