package precond_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/race"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/precondtest"
)

var forms = []precond.Form{precond.FormL, precond.FormLInv, precond.FormU, precond.FormEigen}

var _ pcg.Preconditioner = (*precond.Woodbury)(nil)

// decayingFeatures returns Z, n×s, in float32 and the same values in float64. Column j has standard deviation decay^j,
// similar to random features of a smooth kernel.
func decayingFeatures(seed uint64, n, s int, decay float64) (*points.Dense32, *mat.Dense) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	z, z64 := points.NewDense32(n, s, nil), mat.NewDense(n, s, nil)
	for j := range s {
		size := math.Pow(decay, float64(j))
		for i := range n {
			v := float32(size * rnd.NormFloat64())
			z.Data[i*s+j] = v
			z64.Set(i, j, float64(v))
		}
	}
	return z, z64
}

// normalMatrix returns a matrix of standard normal numbers with n rows.
func normalMatrix(seed uint64, n, columns int) *mat.Dense {
	return mat.NewDense(n, columns, testkit.Normals(seed, 7, n*columns))
}

// denseM returns ZZᵀ+λ_pI.
func denseM(z *mat.Dense, lambdaP float64) *mat.SymDense {
	var outer mat.SymDense
	outer.SymOuterK(1, z)
	return testkit.AddRidge(&outer, lambdaP)
}

// buildForm returns M = ZZᵀ+λ_pI in the given form. It panics if New fails.
func buildForm(t testing.TB, z *points.Dense32, lambdaP float64, form precond.Form) *precond.Woodbury {
	t.Helper()
	m := testkit.Must(precond.New(context.Background(), z, lambdaP, &precond.Options{Form: form}))
	if m.Form() != form && form != precond.AutoForm {
		t.Fatalf("form %v, want %v", m.Form(), form)
	}
	return m
}

// solve returns M⁻¹r.
func solve(t testing.TB, m pcg.Preconditioner, r *mat.Dense) *mat.Dense {
	t.Helper()
	n, columns := r.Dims()
	x := mat.NewDense(n, columns, nil)
	testkit.OK(t, m.SolveTo(context.Background(), x, r))
	return x
}

// TestInverse compares M⁻¹R with a dense solve with ZZᵀ+λ_pI. The rounding errors are about 10·2⁻⁵³·σ₁²/λ_p, less than
// 1e-10. The numbers of features are below and above the block size and n, and are no multiples of the block size.
func TestInverse(t *testing.T) {
	testkit.EachBLAS(t, func(t *testing.T) {
		for _, dim := range []struct{ n, s int }{{1, 1}, {2, 3}, {50, 7}, {131, 40}, {300, 129}, {60, 90}, {257, 600}} {
			z, z64 := decayingFeatures(1, dim.n, dim.s, 0.98)
			for _, lambdaP := range []float64{0.05, 30} {
				var chol mat.Cholesky
				if !chol.Factorize(denseM(z64, lambdaP)) {
					t.Fatal("M is not positive definite")
				}
				for _, form := range forms {
					w := buildForm(t, z, lambdaP, form)
					for _, columns := range []int{1, 2, 3, 10, 17} {
						r := normalMatrix(uint64(columns), dim.n, columns)
						var want mat.Dense
						testkit.OK(t, chol.SolveTo(&want, r))
						got := solve(t, w, r)
						got.Sub(got, &want)
						if relative := mat.Norm(got, 2) / mat.Norm(&want, 2); !(relative < 1e-9) {
							t.Errorf("n = %d, s = %d, λ_p = %g, form %v, t = %d: relative error %.3g", dim.n, dim.s,
								lambdaP, form, columns, relative)
						}
					}
				}
			}
		}
	})
}

// familyMember is the preconditioner M_c = ZZᵀ+λ_cI of a RidgeFamily of two.
type familyMember struct {
	*precond.RidgeFamily
	c int
}

func (m familyMember) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	_, t := r.Dims()
	return m.SolveColumnsTo(ctx, dst, r, slices.Repeat([]int{m.c}, t))
}

func (m familyMember) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	draws := mat.NewDense(m.Dim(), 2, nil)
	err := m.NormalColumnsTo(ctx, draws, g)
	dst.Copy(draws.ColView(m.c))
	return err
}

// TestConformance runs the tests of every preconditioner on the identity, every form and a family.
func TestConformance(t *testing.T) {
	z, _ := decayingFeatures(2, 400, 60, 0.9)
	opts := &precondtest.Options{Tol: 1e-11, InPlace: true, Strided: true, Concurrent: true}
	testkit.EachBLAS(t, func(t *testing.T) {
		preconditioners := map[string]pcg.Preconditioner{"identity": precond.Identity{N: 33}}
		for _, form := range forms {
			preconditioners[form.String()] = buildForm(t, z, 0.1, form)
		}
		family := testkit.Must(buildForm(t, z, 0.1, precond.FormEigen).WithLambdas([]float64{0.1, 0.03}))
		preconditioners["family"] = familyMember{family, 1}
		for name, m := range preconditioners {
			if err := precondtest.Test(t.Context(), m, opts); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestAccuracy checks that the relative error of M⁻¹u for the ten leading singular vectors u of Z, the worst
// directions, is a few ε·(1+σ₁²/λ_p), for condition numbers up to 1e8. The reference comes from the singular value
// decomposition of Z. FormEigen may have 30 times that error.
func TestAccuracy(t *testing.T) {
	testkit.EachBLAS(t, func(t *testing.T) {
		const n, s = 300, 40
		z, z64 := decayingFeatures(3, n, s, 0.7)
		var svd mat.SVD
		if !svd.Factorize(z64, mat.SVDThin) {
			t.Fatal("no singular value decomposition of Z")
		}
		var singular mat.Dense
		svd.UTo(&singular)
		sigma := svd.Values(nil)
		for _, ratio := range []float64{1, 1e3, 1e6, 1e8} { // σ₁²/λ_p
			lambdaP := sigma[0] * sigma[0] / ratio
			for _, form := range forms {
				w := buildForm(t, z, lambdaP, form)
				worst := 0.0
				for k := range 10 {
					u := mat.DenseCopyOf(singular.Slice(0, n, k, k+1))
					got := solve(t, w, u)
					got.Scale(sigma[k]*sigma[k]+lambdaP, got) // M⁻¹u_k = u_k/(σ_k²+λ_p)
					got.Sub(got, u)
					worst = max(worst, mat.Norm(got, 2))
				}
				bound := 24 * 0x1p-53 * (1 + ratio)
				if form == precond.FormEigen {
					bound *= 30
				}
				if worst > bound+1e-14 {
					t.Errorf("σ₁²/λ_p = %.0e, form %v: relative error %.2g, bound %.2g", ratio, form, worst, bound)
				}
			}
		}
	})
}

// TestStatDim compares the statistical dimension with Σσ²/(σ²+λ_p), and ln det M with the sum of the logarithms of
// the eigenvalues of M.
func TestStatDim(t *testing.T) {
	for _, dim := range []struct{ n, s int }{{80, 30}, {300, 150}, {40, 70}} {
		z, z64 := decayingFeatures(5, dim.n, dim.s, 0.93)
		var svd mat.SVD
		svd.Factorize(z64, mat.SVDNone)
		for _, lambdaP := range []float64{1e-3, 1, 1e4} {
			want, wantLogDet := 0., float64(dim.n-min(dim.n, dim.s))*math.Log(lambdaP)
			for _, v := range svd.Values(nil) {
				want += v * v / (v*v + lambdaP)
				wantLogDet += math.Log(v*v + lambdaP)
			}
			for _, form := range forms {
				w := buildForm(t, z, lambdaP, form)
				if got := w.StatDim(); math.Abs(got-want) > 1e-10*float64(dim.s) {
					t.Errorf("n = %d, s = %d, λ_p = %g, form %v: s_λ = %.12g, want %.12g", dim.n, dim.s, lambdaP, form,
						got, want)
				}
				if got := w.LogDet(); math.Abs(got-wantLogDet) > 1e-8*float64(dim.n) {
					t.Errorf("n = %d, s = %d, λ_p = %g, form %v: ln det %.12g, want %.12g", dim.n, dim.s, lambdaP, form,
						got, wantLogDet)
				}
			}
		}
	}
}

// TestWithLambda compares M⁻¹r for the M of WithLambda with dense solves. WithLambda must refuse an invalid λ_p, and
// the forms other than FormEigen.
func TestWithLambda(t *testing.T) {
	z, z64 := decayingFeatures(6, 120, 50, 0.9)
	w := buildForm(t, z, 1, precond.FormEigen)
	r := normalMatrix(1, 120, 3)
	for _, lambdaP := range []float64{1e-4, 0.3, 50} {
		other := testkit.Must(w.WithLambda(lambdaP))
		var want mat.Dense
		testkit.OK(t, want.Solve(denseM(z64, lambdaP), r))
		got := solve(t, other, r)
		got.Sub(got, &want)
		relative := mat.Norm(got, 2) / mat.Norm(&want, 2)
		if relative > 1e-8 || other.LambdaP() != lambdaP || w.LambdaP() != 1 {
			t.Errorf("λ_p = %g: relative error %.3g", lambdaP, relative)
		}
		if statDimL := buildForm(t, z, lambdaP, precond.FormL).StatDim(); math.Abs(other.StatDim()-statDimL) > 1e-9 {
			t.Errorf("λ_p = %g: s_λ = %v, form L %v", lambdaP, other.StatDim(), statDimL)
		}
	}
	if _, err := w.WithLambda(-1); err == nil {
		t.Error("λ_p = −1 accepted")
	}
	if _, err := buildForm(t, z, 1, precond.FormL).WithLambda(2); err == nil {
		t.Error("form L accepts another λ_p")
	}
	if v := w.Eigenvalues(); len(v) != 50 || v[0] < 0 || v[49] < v[0] {
		t.Errorf("eigenvalues %v", v)
	}
}

// TestSolveThreads checks M⁻¹r for a Z of several blocks of rows and columns, and that it has the same bits for 1, 2, 3
// and 7 threads.
func TestSolveThreads(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	const n = 4200
	z, z64 := decayingFeatures(7, n, 520, 0.99) // two groups of rows, two blocks of columns
	r := normalMatrix(2, n, 3)
	for _, form := range forms {
		if form == precond.FormEigen {
			continue // computing the eigenvalues in Go is slow, and FormEigen uses the products of the other forms
		}
		var first *mat.Dense
		for _, threads := range []int{1, 2, 3, 7} {
			if form == precond.FormU && (threads == 2 || threads == 3) {
				continue // FormU is slow in Go
			}
			accel.SetThreads(threads)
			w := buildForm(t, z, 0.1, form)
			x := solve(t, w, r)
			if first == nil {
				first = x
				var v, residual mat.Dense // M·M⁻¹r = r
				v.Mul(z64.T(), x)
				residual.Mul(z64, &v)
				residual.Apply(func(i, j int, v float64) float64 { return v + 0.1*x.At(i, j) - r.At(i, j) }, &residual)
				if relative := mat.Norm(&residual, 2) / mat.Norm(r, 2); !(relative < 1e-9) {
					t.Errorf("form %v: ‖Mx−r‖ = %.3g‖r‖", form, relative)
				}
			} else if !mat.Equal(first, x) {
				t.Errorf("form %v: other bits with %d threads", form, threads)
			}
		}
	}
}

// TestSolveAllocations checks that M⁻¹R allocates nothing after the first call, as long as sync.Pool keeps its values.
func TestSolveAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool drops values under the race detector")
	}
	testkit.EachBLAS(t, func(t *testing.T) {
		z, _ := decayingFeatures(8, 1000, 300, 0.99)
		for _, form := range forms {
			w := buildForm(t, z, 0.1, form)
			for _, columns := range []int{10, 1} {
				r, x := normalMatrix(3, 1000, columns), mat.NewDense(1000, columns, nil)
				apply := func() {
					testkit.OK(t, w.SolveTo(context.Background(), x, r))
				}
				apply()
				if count := testkit.AllocationCount(20, apply); count > 0 {
					t.Errorf("form %v, t = %d: %v allocations", form, columns, count)
				}
			}
		}
	})
}

// TestFeatureStride checks that M⁻¹R has the same bits if Z has a stride.
func TestFeatureStride(t *testing.T) {
	z, _ := decayingFeatures(9, 200, 30, 0.9)
	padded := &points.Dense32{N: 200, D: 30, Stride: 37, Data: slices.Repeat([]float32{float32(math.NaN())}, 200*37)}
	for i := range 200 {
		copy(padded.Row(i), z.Row(i))
	}
	r := normalMatrix(4, 200, 4)
	for _, form := range forms {
		if !mat.Equal(solve(t, buildForm(t, z, 0.1, form), r), solve(t, buildForm(t, padded, 0.1, form), r)) {
			t.Errorf("form %v: other bits", form)
		}
	}
}

// TestErrorsAndTexts checks the errors of New for an invalid λ_p, a Z that is not finite and a numerically singular M.
// New, SolveTo and KMulTo must return the error of a canceled context. The texts of M and of its form must be as
// documented.
func TestErrorsAndTexts(t *testing.T) {
	z, _ := decayingFeatures(10, 40, 12, 1)
	ctx := context.Background()
	for _, lambdaP := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := precond.New(ctx, z, lambdaP, nil); err == nil {
			t.Errorf("λ_p = %v accepted", lambdaP)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		original := z.Data[17*12+5]
		z.Data[17*12+5] = float32(bad)
		for _, form := range forms {
			testkit.Fails(t, testkit.ErrOf(precond.New(ctx, z, 1, &precond.Options{Form: form})), "row 17, feature 5")
		}
		z.Data[17*12+5] = original
	}
	// Two equal features make ZᵀZ+λ_pI numerically singular if λ_p is below the rounding errors of ZᵀZ.
	for i := range 40 {
		z.Data[i*12+7] = z.Data[i*12+3]
	}
	for _, form := range []precond.Form{precond.FormL, precond.FormLInv, precond.FormU} {
		w, err := precond.New(ctx, z, 1e-30, &precond.Options{Form: form})
		if err == nil {
			t.Errorf("form %v: no error for a singular matrix: %v", form, w)
		} else if !strings.Contains(err.Error(), "pivot 8 of 12") || !strings.Contains(err.Error(), "λ_p above") {
			t.Errorf("form %v: %v", form, err)
		}
	}
	if _, err := precond.New(ctx, z, 1e-30, &precond.Options{Form: precond.FormEigen}); err != nil {
		t.Errorf("the eigen form: %v", err)
	}
	for _, form := range forms {
		var w *precond.Woodbury
		testkit.CheckCancellation(t, func(ctx context.Context) (err error) {
			w, err = precond.New(ctx, z, 1, &precond.Options{Form: form})
			return err
		})
		r := normalMatrix(6, 40, 2)
		testkit.CheckCancellation(t, func(ctx context.Context) error { return w.SolveTo(ctx, r, r) })
		outerProduct := testkit.Must(precond.NewOuterProduct(ctx, nil, z))
		testkit.CheckCancellation(t, func(ctx context.Context) error { return outerProduct.KMulTo(ctx, r, r) })
		testkit.Contains(t, w.String(), "n = 40, s = 12, λ_p = 1, form "+form.String())
		if text, err := json.Marshal(form); err != nil || string(text) != `"`+form.String()+`"` || w.Features() != 12 {
			t.Errorf("form %s of %d features: %v", text, w.Features(), err)
		}
	}
}

// TestMisusePanics checks that arguments of the wrong shape panic.
func TestMisusePanics(t *testing.T) {
	z, _ := decayingFeatures(11, 10, 3, 1)
	w := buildForm(t, z, 1, precond.FormL)
	testkit.Panics(t, map[string]func(){
		"wrong rows": func() {
			_ = w.SolveTo(context.Background(), mat.NewDense(9, 1, nil), mat.NewDense(9, 1, nil))
		},
		"wrong columns": func() {
			_ = w.SolveTo(context.Background(), mat.NewDense(10, 2, nil), mat.NewDense(10, 1, nil))
		},
		"no points":        func() { _, _ = precond.New(context.Background(), points.NewDense32(0, 3, nil), 1, nil) },
		"unknown form":     func() { _, _ = precond.New(context.Background(), z, 1, &precond.Options{Form: 99}) },
		"cost of AutoForm": func() { precond.Cost(precond.AutoForm, 1, 1, 1, 1) },
		"MulTo":            func() { _ = w.MulTo(t.Context(), mat.NewDense(9, 1, nil), mat.NewDense(9, 1, nil)) },
		"NormalTo":         func() { _ = w.NormalTo(t.Context(), mat.NewDense(9, 1, nil), rng.New(1)) },
		"ZVMulTo": func() {
			_ = buildForm(t, z, 1, precond.FormEigen).ZVMulTo(t.Context(), mat.NewDense(9, 1, nil),
				mat.NewDense(3, 1, nil))
		},
		"fewer features than before": func() {
			var g precond.Gram
			testkit.OK(t, g.Grow(t.Context(), nil, points.NewDense32(10, 4, nil)))
			_ = g.Grow(t.Context(), nil, z)
		},
		"empty Gram": func() { _, _ = precond.NewFromGram(t.Context(), z, new(precond.Gram), 1, nil) },
		"NormalColumnsTo": func() {
			family, _ := buildForm(t, z, 1, precond.FormEigen).WithLambdas([]float64{1, 2})
			_ = family.NormalColumnsTo(t.Context(), mat.NewDense(10, 1, nil), rng.New(1))
		},
		"identity": func() {
			_ = precond.Identity{N: 2}.SolveTo(context.Background(), mat.NewDense(3, 1, nil), mat.NewDense(3, 1, nil))
		},
	})
}

// TestAutoForm checks that AutoForm chooses the form with the smaller predicted cost, and that UnmarshalText parses the
// names of all forms.
func TestAutoForm(t *testing.T) {
	for _, test := range []struct {
		n, s    int
		options *precond.Options
		want    precond.Form
	}{
		{900, 120, nil, precond.FormLInv}, {241, 120, &precond.Options{RHS: 10}, precond.FormLInv},
		{240, 120, &precond.Options{RHS: 10}, precond.FormU},
	} {
		z, _ := decayingFeatures(12, test.n, test.s, 0.99)
		w, err := precond.New(context.Background(), z, 1, test.options)
		if err != nil || w.Form() != test.want {
			t.Errorf("n = %d, s = %d, %+v: form %v, want %v; %v", test.n, test.s, test.options, w.Form(), test.want,
				err)
		}
	}
	var parsed precond.Form
	for _, form := range append(forms, precond.AutoForm) {
		if err := parsed.UnmarshalText([]byte(form.String())); parsed != form || err != nil {
			t.Errorf("%v is read as %v, %v", form, parsed, err)
		}
	}
	if err := parsed.UnmarshalText([]byte("l")); err == nil {
		t.Error("form l accepted")
	}
}

// TestBytes compares Bytes with the sizes of the arrays of each form. After a solve, Bytes must also count the scratch
// memory.
func TestBytes(t *testing.T) {
	const n, s = 700, 90
	z, _ := decayingFeatures(13, n, s, 0.9)
	for form, want := range map[precond.Form]int64{
		precond.FormL: 4*n*s + 8*s*s, precond.FormLInv: 4*n*s + 8*s*s, precond.FormU: 8 * n * s,
		precond.FormEigen: 4*n*s + 8*s*s + 8*s,
	} {
		w := buildForm(t, z, 1, form)
		testkit.Equal(t, w.Bytes(), want, form)
		solve(t, w, normalMatrix(1, n, 2))
		if got := w.Bytes(); got <= want {
			t.Errorf("form %v: Bytes is %d after a solve, want the scratch memory counted", form, got)
		}
		if seconds := w.Seconds(); seconds.Gram <= 0 || seconds.Factor <= 0 {
			t.Errorf("form %v: %+v", form, seconds)
		}
	}
}

func ExampleNew() {
	z := points.NewDense32(4, 2, []float32{1, 0, 0, 1, 1, 1, 0, 0})
	m, err := precond.New(context.Background(), z, 0.5, &precond.Options{Form: precond.FormL})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := mat.NewDense(4, 1, []float64{4.5, 6, 10.5, 2})
	x := mat.NewDense(4, 1, nil)
	if err := m.SolveTo(context.Background(), x, r); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("form %v, s_λ = %.4f\n%.4f\n", m.Form(), m.StatDim(), mat.Formatted(x))
	// Output:
	// form L, s_λ = 1.5238
	// ⎡1.0000⎤
	// ⎢2.0000⎥
	// ⎢3.0000⎥
	// ⎣4.0000⎦
}
