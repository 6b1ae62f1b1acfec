package leaveout

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// inverseOf returns (K+λI)⁻¹.
func inverseOf(t *testing.T, k *mat.Dense, lambda float64) *mat.Dense {
	inv := new(mat.Dense)
	testkit.OK(t, inv.Inverse(testkit.AddRidge(testkit.Symmetric(k), lambda)))
	return inv
}

// newPathSolver returns the solver of Path for n points, with the dense matrices K and ZZᵀ.
func newPathSolver(t *testing.T, n int) (p *pathSolver, k, zz *mat.Dense) {
	problem := testProblems(t, n)[0]
	woodbury, _ := rpCholeskyPrecond(t, problem.k, n/5, 3)
	k, zz = mat.NewDense(n, n, nil), mat.NewDense(n, n, nil)
	testkit.OK(t, problem.k.DenseTo(context.Background(), k))
	identity := testkit.AddRidge(mat.NewSymDense(n, nil), 1)
	testkit.OK(t, woodbury.OuterProduct().KMulTo(context.Background(), zz, mat.DenseCopyOf(identity)))
	opt := (*Problem)(nil).withDefaults()
	rows := testkit.Must(opt.merge(problem.y))
	_, targets := problem.y.Dims()
	p = &pathSolver{k: problem.k, woodbury: woodbury, problem: rows, t: targets, lambdas: []float64{3, 0.02, 0.3},
		options: &opt,
		b:       new(mat.Dense)}
	p.b.Augment(problem.y, estimate.RandomSigns(n, 0, opt.Probes, rng.New(1)))
	return p, k, zz
}

// TestUnbiasedLeverages checks that the estimates of the leverages λ(A⁻¹)_ii are unbiased. Their mean over all 2⁸ sign
// vectors of 8 points must be the exact value, and so must the estimated trace of A⁻¹.
func TestUnbiasedLeverages(t *testing.T) {
	const n, lambda = 8, 0.2
	p, k, zz := newPathSolver(t, n)
	p.lambdas, p.options.Probes = []float64{lambda}, 1<<n
	testkit.OK(t, p.diagonals(context.Background()))
	b := mat.NewDense(n, p.t+1<<n, nil)
	b.Slice(0, n, 0, p.t).(*mat.Dense).Copy(p.problem.y)
	for c := range 1 << n {
		for i := range n {
			b.Set(i, p.t+c, 1-2*float64(c>>i&1))
		}
	}
	probes := mat.DenseCopyOf(b.Slice(0, n, p.t, p.t+1<<n))
	var x, solvedProbes mat.Dense
	inverse := inverseOf(t, k, lambda)
	x.Mul(inverse, b)
	solvedProbes.Mul(inverseOf(t, zz, lambda), probes)
	estimator := p.newEstimator(0, &x, probes, &solvedProbes)
	for i := range n {
		var mean float64
		for _, v := range estimator.leverages.estimates.RawRowView(i) {
			mean += v / (1 << n)
		}
		if want := lambda * inverse.At(i, i); math.Abs(mean-want) > 1e-9 {
			t.Errorf("point %d: the mean estimate of the leverage is %g, want %g", i, mean, want)
		}
	}
	if want := mat.Trace(inverse); math.Abs(estimator.inverseTrace/want-1) > 1e-9 {
		t.Errorf("tr A⁻¹ = %g, want %g", estimator.inverseTrace, want)
	}
}

// TestPathRefuses checks that Path refuses an invalid λ and ends with a canceled context.
func TestPathRefuses(t *testing.T) {
	problem := testProblems(t, 60)[0]
	woodbury, _ := rpCholeskyPrecond(t, problem.k, 10, 1)
	testkit.Fails(t, testkit.ErrOf(Path(t.Context(), problem.k, woodbury, problem.y, []float64{1, 0}, nil)), "λ = 0")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.Fails(t, testkit.ErrOf(Path(ctx, problem.k, woodbury, problem.y, []float64{1}, nil)), "canceled")
}

// TestPathStopped checks that the interval of a run that ended after two passes over K covers the value of a complete
// run.
func TestPathStopped(t *testing.T) {
	problem, lambdas := testProblems(t, 400)[0], []float64{1, 3, 10}
	woodbury, sketchExcess := rpCholeskyPrecond(t, problem.k, 60, 1)
	for seed := range uint64(4) {
		var values [2][]Score
		for i, passes := range []int{2, 0} {
			var err error
			values[i], err = Path(context.Background(), problem.k, woodbury, problem.y, lambdas,
				&Problem{MaxIter: passes, SketchExcess: sketchExcess, Stream: rng.New(seed)})
			testkit.OK(t, err)
		}
		for j, stopped := range values[0] {
			if complete := values[1][j]; !stopped.Error.Contains(complete.Error.Value) {
				t.Errorf("λ = %g: %v after 2 passes, %v in the end", stopped.Lambda, stopped.Error, complete.Error)
			}
		}
	}
}
