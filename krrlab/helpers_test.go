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

// kernels are all kernels with parameters.
var kernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 1.5}, kernel.Laplacian{Sigma: 3}, kernel.Matern32{Sigma: 1.5}, kernel.Matern52{Sigma: 1.5},
	kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 3},
}

// setThreads sets the number of threads for the test: what tiles need grows with it, so that what
// fits into a limit of memory depends on it.
func setThreads(t *testing.T, n int) {
	was := accel.Threads()
	t.Cleanup(func() { accel.SetThreads(was) })
	accel.SetThreads(n)
}

// ridge returns λ_p of the configured preconditioner, 1 for M = I.
func ridge(l *Lab) float64 {
	if p := l.approximation(); p != nil {
		return p.LambdaP
	}
	return 1
}

// wholeZ returns Z of the configured preconditioner, nil for M = I.
func wholeZ(t testing.TB, l *Lab) *points.Dense32 {
	t.Helper()
	if l.isIdentity() {
		return nil
	}
	return testkit.Must(l.Z(t.Context()))
}

// reference is a dense float64 K+λI from Eval alone, and its solution.
type reference struct {
	x [][]float64
	k kernel.Kernel
	a *mat.SymDense
	c mat.Dense
}

func newReference(t testing.TB, k kernel.Kernel, x points.Points, lambda float64, y *mat.Dense) *reference {
	t.Helper()
	r := &reference{k: k, x: rows(x)}
	n := len(r.x)
	r.a = mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			r.a.SetSym(i, j, k.Eval(r.x[i], r.x[j]))
		}
		r.a.SetSym(i, i, r.a.At(i, i)+lambda)
	}
	var chol mat.Cholesky
	if !chol.Factorize(r.a) {
		t.Fatal("reference: not positive definite")
	}
	testkit.OK(t, chol.SolveTo(&r.c, y))
	return r
}

// residuals returns ‖y_j−Ac_j‖₂/‖y_j‖₂.
func (r *reference) residuals(c, y *mat.Dense) []float64 {
	n, t := y.Dims()
	var res mat.Dense
	res.Mul(r.a, c)
	res.Sub(y, &res)
	rel := make([]float64, t)
	for j := range rel {
		var rr, yy float64
		for i := range n {
			rr += res.At(i, j) * res.At(i, j)
			yy += y.At(i, j) * y.At(i, j)
		}
		rel[j] = math.Sqrt(rr / yy)
	}
	return rel
}

// predict returns f at the points z.
func (r *reference) predict(z points.Points) *mat.Dense {
	_, t := r.c.Dims()
	at := rows(z)
	f := mat.NewDense(len(at), t, nil)
	for a, p := range at {
		for i, x := range r.x {
			v := r.k.Eval(p, x)
			for j := range t {
				f.Set(a, j, f.At(a, j)+v*r.c.At(i, j))
			}
		}
	}
	return f
}

func rows(x points.Points) [][]float64 {
	n, d := x.Dims()
	r := make([][]float64, n)
	for i := range r {
		r[i] = make([]float64, d)
		x.RowTo(r[i], i)
	}
	return r
}

// kinds returns n points of dimension d, a third of their numbers not zero, in every
// form there is.
func kinds(n, d int, seed uint64) map[string]points.Points {
	all := testkit.PointsInEachFormat(n, d, rng.New(seed).Sub("points"))
	delete(all, "bytes")
	return all
}

// regression labels points with a smooth function.
func regression(x points.Points) *datasets.Dataset {
	d := &datasets.Dataset{Name: "test", Task: datasets.Regression, X: x}
	for _, p := range rows(x) {
		d.Target = append(d.Target, math.Sin(p[0])+0.5*p[1])
	}
	return d
}

// classes gives the points one of k labels in turn.
func classes(x points.Points, k int) *datasets.Dataset {
	n, _ := x.Dims()
	d := &datasets.Dataset{Name: "test", Task: datasets.Classification, X: x}
	for c := range k {
		d.Labels = append(d.Labels, strconv.Itoa(c))
	}
	for i := range n {
		d.Class = append(d.Class, i%k)
	}
	return d
}

// precondFor returns p for a solver that has a preconditioner, nil for another.
func precondFor(s Solver, p Preconditioner) Preconditioner {
	if unpreconditioned(s) {
		return nil
	}
	return p
}

// newLab makes a lab or ends the test.
func newLab(t testing.TB, train *datasets.Dataset, cfg Config) *Lab {
	t.Helper()
	return testkit.Must(New(train, cfg))
}

// solveLab solves the problem of a lab or ends the test.
func solveLab(t testing.TB, l *Lab) *Solution {
	t.Helper()
	return testkit.Must(l.Solve(t.Context()))
}

// mustSolve solves or ends the test.
func mustSolve(t testing.TB, train *datasets.Dataset, cfg Config) *Solution {
	t.Helper()
	return solveLab(t, newLab(t, train, cfg))
}

// verified verifies a model or ends the test.
func verified(t testing.TB, m *model.Model, o VerifyOptions) *Verification {
	t.Helper()
	return testkit.Must(Verify(t.Context(), m, o))
}

// onRanks does what p ranks do together, each with its group.
func onRanks(p int, do func(ranks comm.Comm)) {
	var wg sync.WaitGroup
	for _, c := range comm.Local(p, comm.Options{}) {
		wg.Go(func() { do(c) })
	}
	wg.Wait()
}

// solveOn solves with a group of ranks, and reports an error.
func solveOn(t testing.TB, ranks comm.Comm, train *datasets.Dataset, cfg Config) (sol *Solution) {
	t.Helper()
	cfg.Comm = ranks
	l, err := New(train, cfg)
	if err == nil {
		sol, err = l.Solve(t.Context())
	}
	if err != nil {
		t.Errorf("rank %d: %v", ranks.Rank(), err)
	}
	return sol
}

// off returns ‖c_j−c_j*‖_A and ‖c_j*‖_A of coefficients C.
func (r *reference) off(c *mat.Dense, j int) (is, size float64) {
	var e mat.VecDense
	e.SubVec(r.c.ColView(j), c.ColView(j))
	return math.Sqrt(mat.Inner(&e, r.a, &e)), math.Sqrt(mat.Inner(r.c.ColView(j), r.a, r.c.ColView(j)))
}

// apart returns max|a−b| / max|b|.
func apart(a, b mat.Matrix) float64 {
	var d mat.Dense
	d.Sub(a, b)
	return maxAbs(&d) / maxAbs(b)
}

// worst returns the largest of v, NaN if there is one.
func worst(v []float64) (w float64) {
	for _, x := range v {
		w = math.Max(w, x)
	}
	return w
}

func maxAbs(a mat.Matrix) (m float64) {
	n, t := a.Dims()
	for i := range n {
		for j := range t {
			m = max(m, math.Abs(a.At(i, j)))
		}
	}
	return m
}

// sized is a preconditioner of another size and λ_p.
func sized(p stage.LowRank, s int, lambdaP float64) Preconditioner {
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
