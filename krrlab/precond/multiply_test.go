package precond_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond"
)

// TestMultiply compares M·x and ZZᵀ·x with dense products for every form. FormU does not store Z, so its products are
// an error.
func TestMultiply(t *testing.T) {
	testkit.EachBLAS(t, func(t *testing.T) {
		const n, lambdaP = 700, 0.3
		z, z64 := decayingFeatures(11, n, 90, 0.97)
		x := normalMatrix(12, n, 3)
		var v, zz, m mat.Dense
		v.Mul(z64.T(), x)
		zz.Mul(z64, &v)
		m.Scale(lambdaP, x)
		m.Add(&m, &zz)
		for _, form := range forms {
			w := buildForm(t, z, lambdaP, form)
			got := mat.NewDense(n, 3, nil)
			err := w.MulTo(t.Context(), got, x)
			if form == precond.FormU {
				testkit.Fails(t, err, "does not store Z")
				continue
			}
			if err != nil || !mat.EqualApprox(got, &m, 1e-11) {
				t.Errorf("form %v: M·x is wrong (%v)", form, err)
			}
			got.Copy(x)
			if err := w.OuterProduct().KMulTo(t.Context(), got, got); err != nil || !mat.EqualApprox(got, &zz, 1e-11) {
				t.Errorf("form %v: ZZᵀ·x in place is wrong (%v)", form, err)
			}
			if err := w.SolveTo(t.Context(), got, &m); err != nil || !mat.EqualApprox(got, x, 1e-8) {
				t.Errorf("form %v: M⁻¹·M·x is not x after the products (%v)", form, err)
			}
		}
	})
}

// TestNormal checks the covariance of the draws from N(0, M). For a fixed u the variance of uᵀx must be uᵀMu, and
// xᵀM⁻¹x must have the mean n and the variance 2n of the χ² distribution with n degrees of freedom. The tolerances of
// the means are five standard errors. A column must not depend on the number of columns.
func TestNormal(t *testing.T) {
	const n, draws = 60, 4000
	z, z64 := decayingFeatures(13, n, 20, 0.9)
	w := buildForm(t, z, 0.2, precond.FormL)
	x := mat.NewDense(n, draws, nil)
	testkit.OK(t, w.NormalTo(t.Context(), x, rng.New(3)))
	m := denseM(z64, 0.2)
	u := normalMatrix(14, n, 4)
	var mTimesU, ux mat.Dense
	mTimesU.Mul(m, u)
	ux.Mul(u.T(), x)
	for k := range 4 {
		want := mat.Dot(u.ColView(k), mTimesU.ColView(k))
		row := ux.RowView(k)
		if got := mat.Dot(row, row) / draws; math.Abs(got/want-1) > 5*math.Sqrt(2.0/draws) {
			t.Errorf("variance %g, want %g", got, want)
		}
	}
	y := solve(t, w, x)
	var mean, variance float64
	for j := range draws {
		form := mat.Dot(x.ColView(j), y.ColView(j))
		mean += form / draws
		variance += (form - n) * (form - n) / draws
	}
	if math.Abs(mean-n) > 5*math.Sqrt(2.0*n/draws) || math.Abs(variance/(2*n)-1) > 0.15 {
		t.Errorf("xᵀM⁻¹x has mean %g and variance %g, want %d and %d", mean, variance, n, 2*n)
	}
	column := mat.NewDense(n, 1, nil)
	if err := w.NormalTo(t.Context(), column, rng.New(3)); err != nil ||
		!mat.EqualApprox(column, x.Slice(0, n, 0, 1), 1e-14) {
		t.Errorf("column 0 depends on the others (%v)", err)
	}
	if err := buildForm(t, z, 0.2, precond.FormU).NormalTo(t.Context(), column, rng.New(3)); err == nil {
		t.Error("form U, which does not store Z, has draws")
	}
}
