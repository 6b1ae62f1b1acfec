package verify

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// specs holds one kernel of each kind.
var specs = []kernel.Spec{
	{Name: "gaussian", Sigma: 1.5}, {Name: "laplacian", Sigma: 3}, {Name: "matern32", Sigma: 1.5},
	{Name: "matern52", Sigma: 1.5},
	{Name: "polynomial", Gamma: 0.2, Coef0: 1, Degree: 3},
}

// newMatrix returns the matrix of a kernel and fails the test on an error.
func newMatrix(t testing.TB, spec kernel.Spec, x points.Points, memory int64) *Matrix {
	t.Helper()
	return testkit.Must(New(t.Context(), nil, spec, x, memory, nil))
}

// normalPoints returns n points in R^d whose coordinates are standard normal with the probability given by density, and
// otherwise zero.
func normalPoints(n, d int, density float64, seed uint64) *points.Dense {
	x := points.NewDense(n, d, nil)
	stream := rng.New(seed)
	for i := range x.Data {
		if stream.Sub("zero").Float64(uint64(i)) < density {
			x.Data[i] = stream.Sub("value").Normal(uint64(i))
		}
	}
	return x
}

// referenceMatrix returns the kernel matrix, computed by kernel.Eval.
func referenceMatrix(t *testing.T, spec kernel.Spec, x *points.Dense) *mat.SymDense {
	t.Helper()
	return testkit.KernelMatrix(testkit.Must(kernel.FromSpec(spec)), x)
}

// TestMatrix compares the entries of K and the product |K|v with values by kernel.Eval, for points with and without
// many zeros, with K stored and formed again. The difference of an entry may be twice the error bound of the entry,
// because the reference is rounded too.
func TestMatrix(t *testing.T) {
	const n, d, columns = 61, 7, 3
	for _, spec := range specs {
		for _, density := range []float64{1, 0.2} {
			x := normalPoints(n, d, density, 3)
			k := referenceMatrix(t, spec, x)
			for _, memory := range []int64{0, 8 * n * n} {
				m := newMatrix(t, spec, x, memory)
				if m.Stored != (memory > 0) || (m.sqNorms != nil) != (density < 0.5 && spec.Name != "laplacian") {
					t.Errorf("%s: stored %v with %d bytes, zeros skipped %v at density %g", spec.Name, m.Stored, memory,
						m.sqNorms != nil, density)
				}
				for i := range n {
					for j, v := range m.rows(i, i+1)[0] {
						if difference := math.Abs(v - k.At(i, j)); difference > 2*m.EntryError {
							t.Fatalf("%s: entry (%d, %d) has an error of %.2g, bound %.2g", spec.Name, i, j, difference,
								m.EntryError)
						}
					}
				}
				if m.EntryError > 1e-11*m.MaxDiagonal {
					t.Errorf("%s: the bound %.2g of an entry is too wide", spec.Name, m.EntryError)
				}
				v, product := make([]float64, n*columns), make([]float64, n*columns)
				rng.New(5).Normals(v, 0)
				testkit.OK(t, m.mulAbs(t.Context(), product, v, columns))
				for i := range n {
					for column := range columns {
						var want float64
						for j := range n {
							want += math.Abs(k.At(i, j)) * v[j*columns+column]
						}
						if got := product[i*columns+column]; math.Abs(got-want) > 1e-11*m.MaxDiagonal*n {
							t.Fatalf("%s: |K|v is %v, want %v", spec.Name, got, want)
						}
					}
				}
			}
		}
	}
}

// TestCond checks that the intervals contain the eigenvalues and κ, and get narrower with more passes.
func TestCond(t *testing.T) {
	const lambda = 0.3
	for _, spec := range specs {
		x := normalPoints(120, 4, 1, 7)
		k := referenceMatrix(t, spec, x)
		mu := testkit.Eigenvalues(t, k)
		smallest, largest := mu[0], mu[len(mu)-1]
		kappa := (largest + lambda) / (max(smallest, 0) + lambda)
		previousWidth := math.Inf(1)
		for _, passes := range []int{1, 3, 30} {
			m := newMatrix(t, spec, x, 1<<30)
			s := testkit.Must(m.Cond(t.Context(), lambda, passes, rng.New(1)))
			if !s.Cond.Contains(kappa) || !s.Largest.Contains(largest) || !s.Smallest.Contains(max(smallest, 0)) ||
				s.Cond.Hi > s.SimpleBound*(1+1e-9) {
				t.Errorf("%s, %d passes: κ = %g in %v, λ_max = %g in %v, λ_min = %g in %v, simple bound %g",
					spec.Name, passes, kappa, s.Cond, largest, s.Largest, smallest, s.Smallest, s.SimpleBound)
			}
			if s.Cond.RelativeWidth() > previousWidth*(1+1e-12) {
				t.Errorf("%s: the interval widens to %g at %d passes", spec.Name, s.Cond.RelativeWidth(), passes)
			}
			previousWidth = s.Cond.RelativeWidth()
		}
		if spec.Name != "polynomial" && previousWidth > 1.5 {
			t.Errorf("%s: 30 passes leave a width of %g", spec.Name, previousWidth)
		}
	}
}

// TestCondOfZeros checks that the intervals are finite and valid if K has a row of zeros or is zero.
func TestCondOfZeros(t *testing.T) {
	const lambda = 0.5
	for _, nonzero := range []int{9, 0} {
		x := points.NewDense(10, 2, nil)
		for i := range 2 * nonzero {
			x.Data[i] = float64(1 + i)
		}
		m := newMatrix(t, kernel.Spec{Name: "polynomial", Gamma: 1, Degree: 1}, x, 1<<20)
		s := testkit.Must(m.Cond(t.Context(), lambda, 30, rng.New(1)))
		largest := max(0, testkit.Eigenvalues(t, referenceMatrix(t,
			kernel.Spec{Name: "polynomial", Gamma: 1, Degree: 1}, x))[9])
		if kappa := (largest + lambda) / lambda; !s.Cond.Contains(kappa) || math.IsInf(s.Cond.Hi, 1) ||
			math.IsNaN(s.Cond.Value) {
			t.Errorf("%d points that are not zero: κ = %g in %v", nonzero, kappa, s.Cond)
		}
	}
}

// TestBounds checks the residual and the prediction bound for answers with deliberate errors: the distance of
// predictions from those of the exact answer must not exceed the bound, and a proved label must be the label of the
// exact answer. Some of the problems have weights.
func TestBounds(t *testing.T) {
	const n, lambda = 90, 0.05
	for _, columns := range []int{1, 3} {
		for specIndex, spec := range specs {
			x, z := normalPoints(n, 4, 1, 9), normalPoints(200, 4, 1, 10)
			a := referenceMatrix(t, spec, x)
			m := newMatrix(t, spec, x, 1<<30)
			if specIndex%2 == 1 {
				m.Weights = make([]float64, n)
				for i := range n {
					m.Weights[i] = math.Exp(rng.New(6).Normal(uint64(i)))
				}
			}
			for i := range n {
				a.SetSym(i, i, a.At(i, i)+lambda/m.weight(i))
			}
			y := mat.NewDense(n, columns, nil)
			for i := range n {
				for j := range columns {
					y.Set(i, j, -1)
				}
				if columns > 1 || x.Row(i)[0] > 0 {
					y.Set(i, i%columns, 1)
				}
			}
			var cholesky mat.Cholesky
			var c mat.Dense // exact answer
			if !cholesky.Factorize(a) || cholesky.SolveTo(&c, y) != nil {
				t.Fatal("K+λI is not positive definite")
			}
			var perturbed mat.Dense
			perturbed.Apply(func(i, j int, v float64) float64 {
				return v * (1 + 0.05*rng.New(4).Normal(uint64(i*columns+j)))
			}, &c)
			answer := perturbed.RawMatrix().Data
			v, rounding, err := m.Apply(t.Context(), answer, columns, lambda)
			testkit.OK(t, err)
			r := m.Residual(v, rounding, answer, y.RawMatrix().Data, columns, lambda)
			var residual mat.Dense // W^½(Y − AC)
			residual.Mul(a, &perturbed)
			residual.Sub(y, &residual)
			residual.Apply(func(i, _ int, v float64) float64 { return math.Sqrt(m.weight(i)) * v }, &residual)
			for j := range columns {
				if norm := mat.Norm(residual.ColView(j), 2); math.Abs(norm-r.Norms[j]) > r.NormErrors[j] ||
					r.NormErrors[j] > 1e-9*norm {
					t.Errorf("%s: ‖r‖ = %v ± %.2g, want %v", spec.Name, r.Norms[j], r.NormErrors[j], norm)
				}
			}
			p := testkit.Must(m.Predict(t.Context(), z, answer, columns, r, lambda))
			exact := testkit.Must(m.Predict(t.Context(), z, c.RawMatrix().Data, columns, r, lambda))
			proved := 0
			for i := range z.N {
				lo, hi := i*columns, (i+1)*columns
				got, want, bound := p.F[lo:hi], exact.F[lo:hi], p.Bound[lo:hi]
				for j := range columns {
					if difference := math.Abs(got[j] - want[j]); difference > bound[j] {
						t.Errorf("%s: the prediction of point %d has an error of %.3g, bound %.3g", spec.Name, i,
							difference, bound[j])
					}
				}
				if p.Gap[i] > 1 { // the label of point i is proved
					proved++
					testkit.Equal(t, datasets.PredictedClass(got), datasets.PredictedClass(want), spec.Name, i)
				}
			}
			testkit.Near(t, p.OpenShare(), 1-float64(proved)/float64(z.N), 1e-12, spec.Name, proved, z.N)
		}
	}
}

// TestInvalidInput checks that an unknown kernel and points of another dimension are refused.
func TestInvalidInput(t *testing.T) {
	x := normalPoints(10, 3, 1, 1)
	testkit.Fails(t, testkit.ErrOf(New(t.Context(), nil, kernel.Spec{Name: "mine"}, x, 0, nil)), "mine")
	_, err := newMatrix(t, specs[0], x, 0).Predict(t.Context(), normalPoints(2, 4, 1, 1), make([]float64, 10), 1,
		&Residual{}, 1)
	testkit.Fails(t, err, "dimension")
}

// TestWorstRelative checks the largest relative norm of a column: a column counts as 0 if its target and its residual
// are zero, as +Inf if only its target is zero, and the result is NaN if a norm is NaN.
func TestWorstRelative(t *testing.T) {
	r := &Residual{Norms: []float64{0, 3, 1}, NormErrors: []float64{0, 0, 2}, TargetNorms: []float64{0, 6, 4}}
	testkit.Equal(t, r.worstRelative(r.Norms), 0.5)
	testkit.Equal(t, r.worstRelative(r.upperNorms()), 0.75)
	r.NormErrors[0] = 1e-300
	testkit.Equal(t, r.worstRelative(r.upperNorms()), math.Inf(1))
	if r.Norms[1] = math.NaN(); !math.IsNaN(r.worstRelative(r.Norms)) || !math.IsNaN(r.worstRelative(r.upperNorms())) {
		t.Error("a norm of NaN has a worst relative norm") // also after a column whose ratio is infinite
	}
}

// TestUncheckedProperties checks that a built-in kernel without a formula in this package is not called user-defined.
func TestUncheckedProperties(t *testing.T) {
	testkit.Contains(t, uncheckedProperties(false), "user-defined kernel") // false: not a built-in kernel
	if text := uncheckedProperties(true); strings.Contains(text, "user-defined") {
		t.Error(text)
	}
}
