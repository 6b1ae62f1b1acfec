package sketchsize

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestThresholds checks that each condition is accepted for a constant 1 % above the value for Z, and rejected for one
// 1 % below.
func TestThresholds(t *testing.T) {
	const lambda, near = 0.5, 0.01
	kern := kernel.Polynomial{Gamma: 1, Degree: 1}
	x := scaledNormals(200, 6, 0.5)
	p := newTestProblem(t, kern, x, lambda)
	// Z has 4 columns for 6 coordinates; the other two coordinates determine the norm of condition 1
	p.Map = scaledLinear{1.2}
	ref := newReference(t, testkit.KernelMatrix(kern, x), denseFeatures(t, p.Map, x, 4, 4, rng.New(3)), lambda, 0.3)
	gamma := max(ref.high-1, 1-ref.low)
	if ref.norm == 0 || gamma >= 1/(1+near) {
		t.Fatalf("norm %g, γ %g: the test needs other parameters", ref.norm, gamma)
	}
	for _, test := range []struct {
		scale        float64
		want1, want2 Verdict
	}{{1 + near, Accept, Accept}, {1 - near, Reject, Reject}} {
		options := Options{Test: Theorem7, First: 4, Max: 4, Steps: 200,
			Constants: ConditionConstants{Theta: 0.3, Alpha: test.scale * ref.norm, Gamma: test.scale * gamma}}
		conditions := searchSeed(t, p, options, 3).Rungs[0].Conditions
		if conditions.Verdict1 != test.want1 || conditions.Verdict2 != test.want2 {
			t.Errorf("α and γ are %g times the values for Z: %s and %s, want %s and %s", test.scale,
				conditions.Verdict1, conditions.Verdict2, test.want1, test.want2)
		}
	}
}

// TestUpperEnd checks that a rung is accepted only if the upper end of the interval of κ is at most the target, even if
// κ itself is below the target.
func TestUpperEnd(t *testing.T) {
	p := newTestProblem(t, kernel.Gaussian{Sigma: 1.5}, scaledNormals(400, 3, 0.8), 0.2)
	across := 0
	for steps := range 25 {
		options := Options{First: 64, Max: 64, Target: 60, Steps: steps + 2}
		rung := searchSeed(t, p, options, 5).Rungs[0]
		if (rung.Verdict == Accept) != (rung.Kappa.Hi <= options.Target) {
			t.Errorf("%d steps: %s with κ %v", options.Steps, rung.Verdict, rung.Kappa)
		}
		if rung.Kappa.Value < options.Target && rung.Kappa.Hi > options.Target {
			across++
		}
	}
	if across < 3 {
		t.Errorf("only %d intervals contain the target: the test needs other parameters", across)
	}
}

// scaledLinear is a distribution of the features √factor·x_c, c < s, of the kernel xᵀz: ZZᵀ = factor·K if s is at least
// the dimension of x.
type scaledLinear struct{ factor float64 }

func (f scaledLinear) String() string { return "biased linear features" }

func (f scaledLinear) Sample(d, s int, _ rng.Stream) (feature.Map, error) {
	return scaledLinearMap{f.factor, d, s}, nil
}

type scaledLinearMap struct {
	factor float64
	d, s   int
}

func (m scaledLinearMap) Dims() (d, s int) { return m.d, m.s }

func (m scaledLinearMap) MapTo(z []float64, ld int, x points.Points, _ *feature.Workspace) {
	n, _ := x.Dims()
	row := make([]float64, m.d)
	for i := range n {
		x.RowTo(row, i)
		for column := range m.s {
			z[i*ld+column] = 0
			if column < m.d {
				z[i*ld+column] = math.Sqrt(m.factor) * row[column]
			}
		}
	}
}

// storedOperator is K+λI with the storage error size·uuᵀ, where ‖u‖₂ = 1.
type storedOperator struct {
	stage.Operator
	size float64
	u    *mat.VecDense
}

// addErrorTo adds size·uuᵀ·src to dst and returns err.
func (a storedOperator) addErrorTo(dst, src *mat.Dense, err error) error {
	var inner mat.VecDense
	inner.MulVec(src.T(), a.u)
	dst.RankOne(dst, a.size, a.u, &inner)
	return err
}

func (a storedOperator) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return a.addErrorTo(dst, src, a.Operator.MulTo(ctx, dst, src))
}

func (a storedOperator) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	return a.addErrorTo(dst, src, a.Operator.KMulTo(ctx, dst, src))
}

// TestStorageError checks that the intervals contain the values of K itself although K is stored with an error. A
// stored K+λI that is indefinite is an error.
func TestStorageError(t *testing.T) {
	const lambda = 0.5
	kern := kernel.Polynomial{Gamma: 0.5, Coef0: 0.3, Degree: 2}
	x := scaledNormals(150, 4, 0.7)
	exact := newTestProblem(t, kern, x, lambda)
	dense := testkit.KernelMatrix(kern, x)
	ref := newReference(t, dense, denseFeatures(t, exact.Map, x, 64, 64, rng.New(3)), lambda, 0.3)
	var eig mat.EigenSym
	if !eig.Factorize(dense, true) {
		t.Fatal("no eigenvalues of K")
	}
	var vectors mat.Dense
	eig.VectorsTo(&vectors)
	options := Options{Test: Theorem7, First: 64, Max: 64, Constants: ConditionConstants{Theta: 0.3, Alpha: 0.36,
		Gamma: 0.3}}
	for _, size := range []float64{0.2, -0.2, 0.4, -0.4} {
		for _, col := range []int{0, 75, 140, 149} {
			p := exact
			p.K, p.Error = storedOperator{exact.K, size, mat.VecDenseCopyOf(vectors.ColView(col))}, math.Abs(size)
			rung := searchSeed(t, p, options, 3).Rungs[0]
			if rung.Conditions == nil {
				t.Fatalf("error %g along eigenvector %d: no conditions", size, col)
			}
			ref.checkRung(t, rung, size, col)
		}
	}
	p := exact
	p.K, p.Error = storedOperator{exact.K, -2 * lambda, mat.VecDenseCopyOf(vectors.ColView(0))}, 0.01
	testkit.Fails(t, testkit.ErrOf(Search(t.Context(), p, &options, rng.New(3))), "K as stored has an error above λ")
}

// TestJudgments compares the verdict, the relative width and the inner end for κ, for a norm and for the two extreme
// eigenvalues of a pencil with values computed by hand.
func TestJudgments(t *testing.T) {
	interval := func(value, lo, hi float64) estimate.Interval { return estimate.Interval{Value: value, Lo: lo, Hi: hi} }
	r := &lanczos.Result{Min: interval(2, 1, 2), Max: interval(8, 8, 10)} // κ in [4, 10]
	for _, test := range []struct {
		name string
		got  lanczosState
		want lanczosState
	}{
		{"κ below the target", judgeKappa(r, 0, 10), lanczosState{Accept, 1.5, 4}},
		{"κ on both sides of the target", judgeKappa(r, 0, 9), lanczosState{Open, 1.5, 4}},
		{"κ above the target", judgeKappa(r, 0, 3.9), lanczosState{Reject, 1.5, 4}},
		{"κ with a storage error", judgeKappa(r, 0.2, 10), lanczosState{Open, 1.5, 4}},
		{"norm below", judgeNorm(r, 0, 10), lanczosState{Accept, 0.25, 8}},
		{"norm with a storage error", judgeNorm(r, 0.5, 10), lanczosState{Open, 0.25, 8}},
		// The width is relative to a tenth of the limit if the norm is smaller.
		{"norm far below", judgeNorm(r, 0, 400), lanczosState{Accept, 0.05, 8}},
		{"norm above", judgeNorm(r, 0.5, 7), lanczosState{Reject, 0.25, 8}},
		{"ratios", judgeRatios(&lanczos.Result{Min: interval(0.9, 0.6, 0.9), Max: interval(1.2, 1.2, 1.5)}, 0, 0.5),
			lanczosState{Accept, 0.3 / 0.9, 1.2 / 0.9}},
		{"ratios with a storage error", judgeRatios(&lanczos.Result{Min: interval(0.9, 0.6, 0.9),
			Max: interval(1.2, 1.2, 1.5)}, 0.2, 0.5), lanczosState{Open, 0.3 / 0.9, 1.2 / 0.9}},
		{"smallest ratio with the upper end 0", judgeRatios(&lanczos.Result{Min: interval(0.5, 0.25, 0),
			Max: interval(1, 1, 2)}, 0, 0.5), lanczosState{Reject, 1, 0x1p50}},
	} {
		if test.got.verdict != test.want.verdict || math.Abs(test.got.width-test.want.width) > 1e-14 ||
			math.Abs(test.got.innerEnd-test.want.innerEnd) > 1e-14*test.want.innerEnd {
			t.Errorf("%s: %+v, want %+v", test.name, test.got, test.want)
		}
	}
}
