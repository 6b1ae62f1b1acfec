package krrlab

import (
	"math"
	"strconv"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// kernels holds one kernel of each kind that has parameters.
var kernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 1.5}, kernel.Laplacian{Sigma: 3}, kernel.Matern32{Sigma: 1.5}, kernel.Matern52{Sigma: 1.5},
	kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 3},
}

// setThreads sets the number of threads until the test ends. The scratch memory of tiles grows with the number of
// threads, so a test of a memory limit has to fix it.
func setThreads(t *testing.T, threads int) {
	saved := accel.Threads()
	t.Cleanup(func() { accel.SetThreads(saved) })
	accel.SetThreads(threads)
}

// ridge returns λ_p of the configured preconditioner, 1 for M = I.
func ridge(l *Lab) float64 {
	if approximation := l.approximation(); approximation != nil {
		return approximation.LambdaP
	}
	return 1
}

// toFloat64 returns the matrix z in float64.
func toFloat64(z *points.Dense32) *mat.Dense {
	dense := mat.NewDense(z.N, z.D, nil)
	for i := range z.N {
		z.RowTo(dense.RawRowView(i), i)
	}
	return dense
}

// wholeZ returns the matrix Z of the configured preconditioner, or nil for M = I.
func wholeZ(t testing.TB, l *Lab) *points.Dense32 {
	t.Helper()
	if l.isIdentity() {
		return nil
	}
	return testkit.Must(l.Z(t.Context()))
}

// reference holds the dense float64 matrix K+λI, formed with Eval alone, and the exact solution of the system.
type reference struct {
	x [][]float64
	k kernel.Kernel
	a *mat.SymDense
	c mat.Dense
}

// newReference forms K+λI in float64 with Eval and solves for the right-hand sides y by a Cholesky factorization.
func newReference(t testing.TB, k kernel.Kernel, x points.Points, lambda float64, y *mat.Dense) *reference {
	t.Helper()
	ref := &reference{k: k, x: rows(x), a: testkit.AddRidge(testkit.KernelMatrix(k, x), lambda)}
	var chol mat.Cholesky
	if !chol.Factorize(ref.a) {
		t.Fatal("K+λI of the reference is not positive definite")
	}
	testkit.OK(t, chol.SolveTo(&ref.c, y))
	return ref
}

// residuals returns ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂ for each column j.
func (r *reference) residuals(c, y *mat.Dense) []float64 {
	_, t := y.Dims()
	var residual mat.Dense
	residual.Mul(r.a, c)
	residual.Sub(y, &residual)
	relative := make([]float64, t)
	for j := range relative {
		relative[j] = mat.Norm(residual.ColView(j), 2) / mat.Norm(y.ColView(j), 2)
	}
	return relative
}

// predict returns the values of the exact solution's prediction function f at the points z.
func (r *reference) predict(z points.Points) *mat.Dense {
	_, t := r.c.Dims()
	testRows := rows(z)
	values := mat.NewDense(len(testRows), t, nil)
	for row, point := range testRows {
		for i, x := range r.x {
			value := r.k.Eval(point, x)
			for j := range t {
				values.Set(row, j, values.At(row, j)+value*r.c.At(i, j))
			}
		}
	}
	return values
}

// rows returns the points as slices of float64 numbers, one for each row.
func rows(x points.Points) [][]float64 {
	n, d := x.Dims()
	result := make([][]float64, n)
	for i := range result {
		result[i] = make([]float64, d)
		x.RowTo(result[i], i)
	}
	return result
}

// pointsByFormat returns the same n points of dimension d in each storage format except bytes. A third of their numbers
// are not zero.
func pointsByFormat(n, d int, seed uint64) map[string]points.Points {
	all := testkit.PointsInEachFormat(n, d, rng.New(seed).Sub("points"))
	delete(all, "bytes")
	return all
}

// regression returns a regression data set whose targets are a smooth function of the points.
func regression(x points.Points) *datasets.Dataset {
	data := &datasets.Dataset{Name: "test", Task: datasets.Regression, X: x}
	for _, point := range rows(x) {
		data.Target = append(data.Target, math.Sin(point[0])+0.5*point[1])
	}
	return data
}

// classification returns a classification data set in which the points have the classCount labels in turn.
func classification(x points.Points, classCount int) *datasets.Dataset {
	n, _ := x.Dims()
	data := &datasets.Dataset{Name: "test", Task: datasets.Classification, X: x}
	for class := range classCount {
		data.Labels = append(data.Labels, strconv.Itoa(class))
	}
	for i := range n {
		data.Class = append(data.Class, i%classCount)
	}
	return data
}

// precondFor returns p if the solver s uses a preconditioner, and nil otherwise.
func precondFor(s Solver, p Preconditioner) Preconditioner {
	if unpreconditioned(s) {
		return nil
	}
	return p
}

// newLab returns a Lab for the training set and fails the test on an error.
func newLab(t testing.TB, train *datasets.Dataset, cfg Config) *Lab {
	t.Helper()
	return testkit.Must(New(train, cfg))
}

// solveLab solves the lab's problem and fails the test on an error.
func solveLab(t testing.TB, l *Lab) *Solution {
	t.Helper()
	return testkit.Must(l.Solve(t.Context()))
}

// mustSolve makes a lab, solves its problem and fails the test on an error.
func mustSolve(t testing.TB, train *datasets.Dataset, cfg Config) *Solution {
	t.Helper()
	return solveLab(t, newLab(t, train, cfg))
}

// mustVerify returns the verification of a model and fails the test on an error.
func mustVerify(t testing.TB, m *model.Model, options VerifyOptions) *Verification {
	t.Helper()
	return testkit.Must(Verify(t.Context(), m, options))
}

// onRanks runs do on rankCount goroutines that act as the ranks of one group, and waits for all of them.
func onRanks(rankCount int, do func(ranks comm.Comm)) {
	var wg sync.WaitGroup
	for _, ranks := range comm.Local(rankCount, 0) {
		wg.Go(func() { do(ranks) })
	}
	wg.Wait()
}

// solveOn solves the problem on one rank of a group. It reports an error to t and then returns nil.
func solveOn(t testing.TB, ranks comm.Comm, train *datasets.Dataset, cfg Config) (sol *Solution) {
	t.Helper()
	cfg.Comm = ranks
	lab, err := New(train, cfg)
	if err == nil {
		sol, err = lab.Solve(t.Context())
	}
	if err != nil {
		t.Errorf("rank %d: %v", ranks.Rank(), err)
	}
	return sol
}

// energyNorms returns the error ‖c_j−c_j*‖_A of column j of the coefficients c and the norm ‖c_j*‖_A of the exact
// solution, with A = K+λI and ‖v‖_A = (vᵀAv)^½.
func (r *reference) energyNorms(c *mat.Dense, j int) (errorNorm, solutionNorm float64) {
	var difference mat.VecDense
	difference.SubVec(r.c.ColView(j), c.ColView(j))
	return math.Sqrt(mat.Inner(&difference, r.a, &difference)),
		math.Sqrt(mat.Inner(r.c.ColView(j), r.a, r.c.ColView(j)))
}

// relativeDifference returns max|a−b| / max|b|, the largest difference relative to the largest entry of b.
func relativeDifference(a, b mat.Matrix) float64 {
	var difference mat.Dense
	difference.Sub(a, b)
	return maxAbs(&difference) / maxAbs(b)
}

// largestOrNaN returns the largest of the values, or NaN if they contain a NaN.
func largestOrNaN(values []float64) (largest float64) {
	for _, value := range values {
		largest = math.Max(largest, value)
	}
	return largest
}

// maxAbs returns the largest absolute value of the entries of a.
func maxAbs(a mat.Matrix) (largest float64) {
	n, t := a.Dims()
	for i := range n {
		for j := range t {
			largest = max(largest, math.Abs(a.At(i, j)))
		}
	}
	return largest
}

// withSize returns the preconditioner p with s features or landmarks and the parameter λ_p.
func withSize(p stage.LowRank, s int, lambdaP float64) Preconditioner {
	switch p := p.(type) {
	case Features:
		p.S, p.LambdaP = s, lambdaP
		return p
	case Nystrom:
		p.S, p.LambdaP = s, lambdaP
		return p
	case RPCholesky:
		p.S, p.LambdaP = s, lambdaP
		return p
	}
	panic("no such preconditioner")
}
