package bound

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
)

// TestParseStop checks that stop rules are read from texts and written again, and that invalid ones are errors.
func TestParseStop(t *testing.T) {
	for text, want := range map[string]Stop{
		"": {}, "residual": {Rule: ByResidual}, "predictions": {Rule: ByPredictions}, "anorm": {Rule: ByANorm},
		"labels=1%": {ByLabels, 0.01}, "labels=0.01": {ByLabels, 0.01},
		"labels=2.5 %": {ByLabels, 0.025},
	} {
		stop, err := parseStop(text)
		if reparsed, reparseErr := parseStop(stop.String()); err != nil || stop != want || reparseErr != nil ||
			reparsed != stop {
			t.Errorf("%q: %v, %v, and again %v, %v", text, stop, err, reparsed, reparseErr)
		}
	}
	for _, text := range []string{"labels", "labels=", "labels=0", "labels=100%", "labels=-1%", "labels=NaN",
		"labels=1", "error", "anorm=1"} {
		if stop, err := parseStop(text); err == nil {
			t.Errorf("%q: %v", text, stop)
		}
	}
	// A round trip through the text rejects invalid options.
	for _, stop := range []Stop{{Rule: 5}, {Rule: ByLabels}, {ByLabels, math.NaN()}} {
		if new(Stop).UnmarshalText([]byte(stop.String())) == nil {
			t.Errorf("the rule %v is accepted", stop)
		}
	}
}

// TestUndecidedRows checks that a row counts as undecided unless the lead of its label exceeds the sum of the two
// bounds, and that NaN counts as undecided.
func TestUndecidedRows(t *testing.T) {
	undecided := func(f, root, errorBound float64) int {
		return UndecidedRows(mat.NewDense(1, 1, []float64{f}), []float64{root}, []float64{errorBound})
	}
	if undecided(0.5, 2, 0.2) != 0 || undecided(-0.5, 2, 0.2) != 0 || undecided(0.4, 2, 0.2) != 1 ||
		undecided(math.NaN(), 1, 0.1) != 1 ||
		undecided(1, 1, math.NaN()) != 1 {
		t.Error("UndecidedRows is wrong for one column")
	}
	f := mat.NewDense(3, 3, []float64{1, 0.5, 0, 1, 0.5, 0.45, 0, 0, 0})
	for _, test := range []struct {
		errors []float64
		want   int
	}{{[]float64{0.2, 0.2, 0.2}, 1}, {[]float64{0.2, 0.3, 0.2}, 3}, {[]float64{0.2, 0.2, 0.36}, 2},
		{[]float64{0, 0, 0}, 1}} {
		testkit.Equal(t, UndecidedRows(f, []float64{1, 1, 1}, test.errors), test.want, test.errors)
	}
}

// problem is K+λI of random points with a Nyström preconditioner.
type problem struct {
	x      points.Points
	k      *gram.Matrix
	a      *mat.SymDense
	factor *lowrank.Factor
	m      *precond.Woodbury
	lambda float64
}

// newProblem draws n points of the plane and forms K+λI and a preconditioner with the given λ_p from 15 Nyström
// landmarks.
func newProblem(t *testing.T, n int, lambda, lambdaP float64) *problem {
	t.Helper()
	x := testkit.RandomPoints(5, n, 2)
	gaussian := kernel.Gaussian{Sigma: 1}
	p := &problem{x: x, a: testkit.AddRidge(testkit.KernelMatrix(gaussian, x), lambda), lambda: lambda}
	p.k = testkit.Must(gram.NewExact(gaussian, x, lambda, 1e-12, nil))
	p.factor = testkit.Must(lowrank.Nystrom(t.Context(), p.k, 15, rng.New(6), nil))
	p.m = testkit.Must(precond.New(t.Context(), p.factor.F, lambdaP, &precond.Options{Form: precond.FormL}))
	return p
}

// inverseNorm returns ‖A⁻¹r‖_A.
func (p *problem) inverseNorm(t *testing.T, r mat.Vector) float64 {
	t.Helper()
	var chol mat.Cholesky
	if !chol.Factorize(p.a) {
		t.Fatal("not positive definite")
	}
	var z mat.VecDense
	testkit.OK(t, chol.SolveVecTo(&z, r))
	return math.Sqrt(mat.Dot(r, &z))
}

// TestLambdaMin checks that μ is a lower bound of the spectrum of M⁻¹A, that it is 0 if the products may have errors
// of size λ, and that it is rounded to seven bits.
func TestLambdaMin(t *testing.T) {
	p := newProblem(t, 40, 0.1, 0.5)
	for i := range uint64(20) {
		r, z := testkit.RandomMatrix(i, 40, 1), mat.NewDense(40, 1, nil)
		testkit.OK(t, p.m.SolveTo(t.Context(), z, r))
		norm := p.inverseNorm(t, r.ColView(0))
		if mu := LambdaMin(p.factor, 0.1, 0.5, 0); !(mu > 0.17 && mu < 0.181) ||
			mu*norm*norm > mat.Dot(r.ColView(0), z.ColView(0)) {
			t.Fatalf("μ = %g: rᵀA⁻¹r = %g, rᵀM⁻¹r = %g", mu, norm*norm, mat.Dot(r.ColView(0), z.ColView(0)))
		}
	}
	if mu := LambdaMin(nil, 0.1, 0, 0.04); mu > 0.06 || mu < 0.059 ||
		mu*math.Ldexp(1, 11) != math.Floor(mu*math.Ldexp(1, 11)) {
		t.Errorf("μ = %v without M", mu)
	}
	if LambdaMin(nil, 0.1, 0, 0.1) != 0 || LambdaMin(p.factor, 0.1, 0.1, 0.2) != 0 ||
		LambdaMin(&lowrank.Factor{EntryError: math.Inf(1)}, 1, 1, 0) != 0 {
		t.Error("LambdaMin is not 0 if products may have errors of size λ")
	}
}

// inexactInverse is M with an inverse whose relative errors are up to relativeError.
type inexactInverse struct {
	*precond.Woodbury
	relativeError float64
}

func (m inexactInverse) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	err := m.Woodbury.SolveTo(ctx, dst, r)
	dst.Apply(func(i, _ int, v float64) float64 { return v * (1 + m.relativeError*math.Sin(float64(i*i))) }, dst)
	return err
}

// solveOnly hides the products with M of a preconditioner, and provides only M⁻¹.
type solveOnly struct{ pcg.Preconditioner }

// TestTightenCertain checks that the certain bound is valid for any error of M⁻¹, close to the error for an accurate
// M⁻¹, and unchanged without products with M or without a factor.
func TestTightenCertain(t *testing.T) {
	const n = 60
	p := newProblem(t, n, 0.01, 0.05)
	for i := range uint64(30) {
		y, c := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
		rng.New(i).Sub("y").Normals(y.RawMatrix().Data, 0)
		res := testkit.Must(pcg.Solve(t.Context(), p.k, p.m, y, &pcg.Options{Tol: 1e-3, MaxIter: 1 + int(i%6)}))
		c.Copy(res.X)
		norm := p.inverseNorm(t, res.R.ColView(0))
		system := &Problem{Lambda: p.lambda, Norms: []float64{mat.Norm(y, 2)}}
		for _, inverseError := range []float64{0, 1e-3, 0.5, 3} {
			rounding := []float64{1e-12}
			errorBounds := system.AnswerErrors(&Answer{C: c, Y: y, Residuals: res.TrueRelRes, Rounding: rounding,
				Certain: true,
				PCG:     res})
			residualBound := errorBounds.Certain[0]
			testkit.OK(t, errorBounds.TightenCertain(t.Context(), system, solveOnly{p.m}, p.factor, 0.05, res.R,
				rounding))
			testkit.OK(t, errorBounds.TightenCertain(t.Context(), system, p.m, nil, 0.05, res.R, rounding))
			testkit.Equal(t, errorBounds.Certain[0], residualBound)
			testkit.OK(t, errorBounds.TightenCertain(t.Context(), system, inexactInverse{p.m, inverseError}, p.factor,
				0.05, res.R, rounding))
			if certain := errorBounds.Certain[0]; certain < norm*(1-1e-10) || certain > residualBound ||
				errorBounds.Bounds[0] > certain ||
				inverseError == 0 && certain > 1.01*math.Sqrt(p.factor.CondBound(0.01, 0.05))*norm {
				t.Errorf("answer %d, M⁻¹ with relative errors up to %g: ‖e‖_A = %.4g, certain %.4g, by the residual %.4g", i,
					inverseError, norm, certain, residualBound)
			}
		}
	}
}

// TestAnswerErrors checks that the bounds include the gap between the true and the recursive residual, and that there
// are no bounds if a number is not finite.
func TestAnswerErrors(t *testing.T) {
	unit := mat.NewDense(1, 1, []float64{1})
	res := &pcg.Result{RelRes: []float64{1e-6}, Gap: []float64{1e-3},
		History: pcg.History{ErrorBounds: [][]float64{{1e-5}}}}
	system := &Problem{Lambda: 0.25, Mu: 1, Norms: []float64{1}}
	answer := &Answer{C: unit, Y: unit, Residuals: []float64{1e-2}, Rounding: []float64{1e-4}, PCG: res}
	result := system.AnswerErrors(answer)
	if want := 2*1e-6 + 2*(1e-3+1e-4); math.Abs(result.Bounds[0]-want) > 1e-7*want || result.Certain != nil ||
		result.Mu != 1 {
		t.Errorf("%+v, want %g", result, want)
	}
	res.Gap[0] = math.NaN()
	if result = system.AnswerErrors(answer); math.Abs(result.Bounds[0]-2*1.01e-2) > 1e-8 {
		t.Errorf("%+v with an unknown gap", result)
	}
	answer.Residuals[0] = math.NaN()
	if result = system.AnswerErrors(answer); result != nil || result.ForModel() != nil {
		t.Errorf("bounds %+v of a NaN residual, want none", result)
	}
}

// TestLabelSample checks that a sample that contains all rows decides by the count of UndecidedRows.
func TestLabelSample(t *testing.T) {
	p := newProblem(t, 50, 0.1, 0.1)
	k := kernel.Gaussian{Sigma: 1}
	rows := testkit.RandomPoints(8, 37, 2)
	c := testkit.RandomMatrix(9, 50, 3)
	f := mat.NewDense(37, 3, nil)
	for row := range 37 {
		for i := range 50 {
			point := make([]float64, 2)
			p.x.RowTo(point, i)
			for j := range 3 {
				f.Set(row, j, f.At(row, j)+k.Eval(rows.Row(row), point)*c.At(i, j))
			}
		}
	}
	for _, bound := range []float64{0.01, 0.1, 0.5, 2} {
		errorBounds := []float64{bound, bound / 2, bound}
		undecided := float64(UndecidedRows(f, DiagonalRoots(k, rows), errorBounds))
		for _, maxUndecided := range []float64{0.02, 0.1, 0.3, 0.9} {
			sample := testkit.Must(NewLabelSample(t.Context(), k, p.x, rows, maxUndecided, rng.New(1)))
			isFew, err := sample.fewUndecided(t.Context(), c, errorBounds)
			if err != nil || isFew != (undecided <= maxUndecided*37) || !sample.needsTest(errorBounds) ||
				sample.needsTest(errorBounds) ||
				sample.needsTest([]float64{bound, 0, 0.9 * bound}) || !sample.needsTest([]float64{bound / 2, 0, 0}) {
				t.Errorf("%g of 37 open, share %g: %v, %v", undecided, maxUndecided, isFew, err)
			}
		}
	}
}
