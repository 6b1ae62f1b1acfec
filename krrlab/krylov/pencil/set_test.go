package pencil

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// solverFunc is a preconditioner of order n with nothing but SolveTo.
type solverFunc struct {
	n     int
	solve func(dst, r *mat.Dense) error
}

func (m solverFunc) Dim() int                                           { return m.n }
func (m solverFunc) SolveTo(_ context.Context, dst, r *mat.Dense) error { return m.solve(dst, r) }

// diagonalMetric is M = diag(m), with random vectors of covariance M and a known determinant.
type diagonalMetric []float64

func (m diagonalMetric) Dim() int { return len(m) }

func (m diagonalMetric) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	dst.Apply(func(i, _ int, v float64) float64 { return v / m[i] }, r)
	return nil
}

func (m diagonalMetric) NormalTo(_ context.Context, dst *mat.Dense, stream rng.Stream) error {
	stream.Normals(dst.RawMatrix().Data, 0)
	dst.Apply(func(i, _ int, v float64) float64 { return v * math.Sqrt(m[i]) }, dst)
	return nil
}

func (m diagonalMetric) LogDet() (sum float64) {
	for _, v := range m {
		sum += math.Log(v)
	}
	return sum
}

// bench has the problem A = K+I = diag(a) with targets 0, and makes one preconditioner.
type bench struct {
	stage.Bench
	a              diagonal
	preconditioner pcg.Preconditioner
}

func (b bench) Problem() *stage.Problem {
	n := len(b.a)
	return &stage.Problem{Header: stage.Header{N: n, Lambda: 1}, Comm: comm.Alone(), Y: mat.NewDense(n, 1, nil)}
}

func (b bench) Dense(context.Context, int64) (*mat.Dense, float64, error) {
	k := mat.NewDense(len(b.a), len(b.a), nil)
	for i, v := range b.a {
		k.Set(i, i, v-1)
	}
	return k, 1e-9, nil
}

func (b bench) Make(context.Context, stage.Entry, int) (*stage.BuiltPreconditioner, error) {
	return &stage.BuiltPreconditioner{M: b.preconditioner, S: 3, LambdaP: 2, Bytes: 5, CondBound: math.Inf(1)}, nil
}

// TestSet compares five preconditioners of A = diag(a) side by side. One of them fails, one is indefinite and one
// cannot draw random vectors. Each row must contain the results of its M alone: the iterations and residuals of
// conjugate gradients for one and two right-hand sides, intervals that cover κ, ln det A and the likelihood, and all
// eigenvalues if M⁻¹ is symmetric. A is stored with an error of a tenth of λ, which the intervals must allow for.
func TestSet(t *testing.T) {
	const n, storageError = 40, 0.1
	a, stored, m := make(diagonal, n), make(diagonal, n), make(diagonalMetric, n)
	for i := range a {
		a[i], m[i] = 1+float64(i*i)/20, 1+float64(i)/3
		stored[i] = a[i] + storageError*math.Pow(-1, float64(i))
	}
	errBroken, indefinite := errors.New("broken"), append(diagonalMetric{-1}, m[1:]...)
	preconditioners := []pcg.Preconditioner{nil, m, solverFunc{n, func(dst, row *mat.Dense) error {
		return m.SolveTo(t.Context(), dst, row)
	}},
		solverFunc{n, func(*mat.Dense, *mat.Dense) error { return errBroken }}, indefinite}
	for _, columns := range []int{1, 2} {
		sides := NewPreconditioners(n, comm.Alone(), preconditioners...)
		set := &Set{A: stored, M: sides, StorageError: storageError, LambdaMinA: 0.9, LambdaMin: make([]float64,
			len(preconditioners)), Probes: 3,
			Notify: func(context.Context, stage.Event) {}, RecursiveResiduals: true}
		for range preconditioners {
			row := NewRow("M")
			row.FailureReason = NotReached
			set.Rows = append(set.Rows, &row)
		}
		set.LambdaMin[0], set.LambdaMin[1] = 0.9, 0.05
		b := mat.NewDense(n, columns, testkit.Normals(1, 1, n*columns))
		testkit.OK(t, set.Solve(t.Context(), b, pcg.Options{Tol: 1e-5, TolFraction: 1}))
		testkit.OK(t, set.Lanczos(t.Context(), lanczos.Options{Steps: n, Tol: 1e-9, Start: rng.New(3)}, 1e-5))
		testkit.OK(t, set.Exact(t.Context(), bench{a: a}))
		logDet := diagonalMetric(a).LogDet()
		energy := logDet + float64(n)*math.Log(2*math.Pi)
		for i, value := range a {
			energy += b.At(i, 0) * b.At(i, 0) / value
		}
		for c, row := range set.Rows[:3] {
			ratio := slices.Clone(a)
			if c > 0 {
				floats.Div(ratio, m)
			}
			kappa := floats.Max(ratio) / floats.Min(ratio)
			separate := testkit.Must(pcg.Solve(t.Context(), stored, preconditioners[c], b, &pcg.Options{Tol: 1e-5,
				TolFraction: 1}))
			var widest float64 // largest ratio of the extreme Ritz values of a column
			for j := range columns {
				ritz := separate.Ritz(j)
				widest = max(widest, ritz[len(ritz)-1]/ritz[0])
			}
			testkit.Near(t, row.Ritz[1]/row.Ritz[0], widest, 1e-9*widest, c)
			for k, value := range row.Residuals {
				testkit.Near(t, value, floats.Max(separate.History.RelRes[k]), 1e-9*value, c, k)
			}
			if row.FailureReason != "" || *row.Iterations != separate.Iterations || row.Status != pcg.Converged ||
				len(row.Residuals) != *row.Iterations+1 || row.Residuals[row.Reached[3]] > 1e-5 &&
				row.Residuals[row.Reached[3]-1] < 1e-5 {
				t.Errorf("M %d: %s, %v iterations, alone %d, reached %v", c, row.FailureReason, *row.Iterations,
					separate.Iterations, row.Reached)
			}
			if !row.Kappa.Contains(kappa) || !row.Min.Contains(floats.Min(ratio)) ||
				!row.Max.Contains(floats.Max(ratio)) ||
				!row.Exact.Contains(kappa) || row.Exact.RelativeWidth() > 1e-6 || math.IsInf(row.Kappa.Hi,
				1) != (c == 2) {
				t.Errorf("M %d: κ = %g, %v, exactly %v", c, kappa, row.Kappa, row.Exact)
			}
			trace, logDetRatio := floats.Sum(ratio)/n, diagonalMetric(ratio).LogDet()
			testkit.Near(t, float64(row.Trace), trace, 1e-9, c)
			testkit.Near(t, float64(row.LogDet), logDetRatio, 1e-9, c)
			testkit.Near(t, float64(row.Kaporin), n*math.Log(trace)-logDetRatio, 1e-9, c)
			if logDetInterval := row.LogDetA; (logDetInterval != nil) != (c < 2) || logDetInterval != nil &&
				!logDetInterval.Contains(logDet) {
				t.Errorf("M %d: ln det A = %g, %v", c, logDet, logDetInterval)
			}
			if likelihood := row.Likelihood; (likelihood != nil) != (c < 2 && columns == 1) || likelihood != nil &&
				!(likelihood.Contains(energy) && likelihood.Lo > energy-60) {
				t.Errorf("M %d: −2 ln p = %g, %v", c, energy, likelihood)
			}
		}
		testkit.Equal(t, set.Rows[3].FailureReason, "broken")
		testkit.Contains(t, set.Rows[4].FailureReason, "M⁻¹ is not positive definite")
		row := NewRow("skew")
		set.M, set.Rows = NewPreconditioners(n, comm.Alone(), skewed{m, 9}), []*Row{&row}
		testkit.OK(t, set.Exact(t.Context(), bench{a: a}))
		testkit.Equal(t, row.NotDefinite && row.Exact == nil, true)
	}
}

// TestScaleOfM checks that all results for M but λ_min and λ_max of M⁻¹A do not depend on the scale of M, for ten
// scales from 10⁻³⁰⁰ to 10³⁰⁰, and that those of Lanczos processes and of conjugate gradients belong to the same M.
func TestScaleOfM(t *testing.T) {
	const n = 40
	a := make(diagonal, n)
	for i := range a {
		a[i] = 1 + float64(i*i)/20
	}
	b := mat.NewDense(n, 1, testkit.Normals(1, 1, n))
	rowOf := func(factor float64) *Row {
		m := make(diagonalMetric, n)
		for i := range m {
			m[i] = factor * (1 + float64(i)/3)
		}
		row := NewRow("M")
		set := &Set{A: a, M: NewPreconditioners(n, comm.Alone(), m), Rows: []*Row{&row}, LambdaMinA: 0.9,
			LambdaMin: []float64{0.05 / factor}, Notify: func(context.Context, stage.Event) {}}
		testkit.OK(t, set.Lanczos(t.Context(), lanczos.Options{Steps: n, Tol: 1e-3, Start: rng.New(3)}, 1e-5))
		testkit.OK(t, set.Solve(t.Context(), b, pcg.Options{Tol: 1e-8}))
		testkit.OK(t, set.Exact(t.Context(), bench{a: a}))
		return &row
	}
	want := rowOf(1)
	for _, factor := range []float64{1e-300, 1e-250, 1e-200, 1e-100, 1e-30, 1e30, 1e100, 1e200, 1e250, 1e300} {
		row := rowOf(factor)
		testkit.Equal(t, row.FailureReason, "")
		testkit.Equal(t, *row.Iterations, *want.Iterations, factor)
		testkit.Equal(t, row.Steps, want.Steps, factor)
		for i, pair := range [][2]float64{{row.Kappa.Lo, want.Kappa.Lo}, {row.Kappa.Hi, want.Kappa.Hi},
			{row.Exact.Value, want.Exact.Value}, {row.LogDetA.Lo, want.LogDetA.Lo}, {row.Likelihood.Hi,
				want.Likelihood.Hi},
			{float64(row.Kaporin), float64(want.Kaporin)}, {row.ErrorBounds[5], want.ErrorBounds[5]},
			{row.Ritz[1] / row.Max.Value, want.Ritz[1] / want.Max.Value}} {
			testkit.Near(t, pair[0], pair[1], 1e-6*math.Abs(pair[1]), factor, i)
		}
	}
}

// TestMakePreconditioner checks that MakePreconditioner refuses an M⁻¹ that is not symmetric positive definite of order
// n, and names the reason.
func TestMakePreconditioner(t *testing.T) {
	const n = 6
	calls := 0
	changedIdentity := func(change func(dst, r *mat.Dense)) solverFunc {
		return solverFunc{n, func(dst, r *mat.Dense) error { dst.Copy(r); change(dst, r); return nil }}
	}
	for want, m := range map[string]pcg.Preconditioner{
		"":                changedIdentity(func(dst, _ *mat.Dense) { dst.Scale(2, dst) }),
		"M is of order 5": solverFunc{n: 5},
		"refused":         solverFunc{n, func(*mat.Dense, *mat.Dense) error { return errors.New("refused") }},
		"zero or not finite: ‖x‖₂‖M⁻¹x‖₂ = 0": changedIdentity(func(dst, _ *mat.Dense) { dst.Zero() }),
		"zero or not finite: ‖x‖₂‖M⁻¹x‖₂ = +Inf": changedIdentity(func(dst, _ *mat.Dense) {
			dst.Set(1, 1, math.Inf(1))
		}),
		"not symmetric": changedIdentity(func(dst, r *mat.Dense) {
			dst.Set(0, 0, r.At(1, 0))
			dst.Set(0, 1, r.At(1, 1))
		}),
		"when asked for again": changedIdentity(func(dst, _ *mat.Dense) {
			if calls++; calls > 1 {
				dst.Scale(1+2e-5, dst)
			}
		}),
		"not positive definite": changedIdentity(func(dst, _ *mat.Dense) { dst.Scale(-1, dst) }),
	} {
		row := NewRow("M")
		preconditioner, err := MakePreconditioner(t.Context(), bench{a: make(diagonal, n), preconditioner: m},
			stage.Entry{}, &row)
		if want != "" {
			testkit.Fails(t, err, want)
			testkit.Equal(t, row.S == 0 && math.IsNaN(row.Kappa.Value) && math.IsInf(row.Max.Hi, 1), true, want)
			continue
		}
		if err != nil || preconditioner.S != 3 || row.S != 3 || row.LambdaP != 2 || row.Bytes != 5 ||
			row.KappaUpperBound != 0 || row.Solve <= 0 {
			t.Errorf("%+v, %v", row, err)
		}
	}
	for _, factor := range []float64{0, math.Inf(1)} { // a draw of zeros, and one that is not finite
		preconditioners := NewPreconditioners(n, comm.Alone(), diagonalMetric{factor, factor, factor, factor, factor,
			factor}, nil)
		draws := mat.NewDense(n, 2, nil)
		testkit.OK(t, preconditioners.NormalColumnsTo(t.Context(), draws, rng.New(1)))
		if testkit.Fails(t, preconditioners.Errs[0], "a draw of N(0, M) has norm"); !math.IsNaN(draws.At(0, 0)) ||
			math.IsNaN(draws.At(0, 1)) {
			t.Errorf("draws %v", mat.Formatted(draws))
		}
	}
}

// TestClipByEta checks 1/max(1, (λ_p+η)/λ) ≤ λ_min and λ_max ≤ max(1, (λ+η)/λ_p), and that clipping never makes an
// interval empty.
func TestClipByEta(t *testing.T) {
	for _, test := range []struct{ lambda, eta, lambdaP, minLo, maxHi, kappaHi float64 }{
		{2, 1, 4, 0.4, 1, 2.5}, {2, 1, 1, 1, 3, 3}, {1, 9, 1, 0.2, 6, 30}, {1, 0, 1, 1, 1, 1},
	} {
		row := Row{LambdaP: test.lambdaP, Spectrum: Spectrum{Min: estimate.Interval{Lo: 0.2, Hi: 1},
			Max: estimate.Interval{Lo: 1, Hi: 6}, Kappa: estimate.Interval{Lo: 1, Hi: 30}}}
		row.ClipByEta(test.lambda, test.eta)
		got := [3]float64{row.Min.Lo, row.Max.Hi, row.Kappa.Hi}
		testkit.Near(t, floats.Distance(got[:], []float64{test.minLo, test.maxHi, test.kappaHi}, 2), 0, 1e-12, test,
			got)
		row.FailureReason, row.Min.Lo = "failed", 0
		row.ClipByEta(test.lambda, test.eta)
		testkit.Equal(t, row.Min.Lo, 0)
	}
}
