package sketchsize

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// scaledNormals returns n points of R^d whose coordinate c has the standard deviation ρ^c.
func scaledNormals(n, d int, rho float64) *points.Dense {
	x := points.NewDense(n, d, nil)
	rng.New(77).Normals(x.Data, 0)
	for i := range x.Data {
		x.Data[i] *= math.Pow(rho, float64(i%d))
	}
	return x
}

// newTestProblem returns the search problem of the points x with the default features of the kernel.
func newTestProblem(t testing.TB, k kernel.Kernel, x points.Points, lambda float64) Problem {
	t.Helper()
	a := testkit.Must(gram.New(context.Background(), k, x, lambda, &gram.Options{Storage: gram.Float64}))
	dist := testkit.Must(feature.For(k))
	return Problem{K: a, X: x, Map: dist, Lambda: lambda}
}

// reference holds the quantities of one Z, computed from their definitions by dense linear algebra in float64.
type reference struct {
	kappa             float64
	norm              float64 // ‖(I−P)K(I−P)‖₂/λ
	low, high         float64 // smallest and largest eigenvalue of the pencil (WᵀKW, WᵀZZᵀW)
	rank              int
	lambdaMin, lamMax float64
}

// denseFeatures returns Z for s features of a ladder that begins at first, as in Search.
func denseFeatures(t testing.TB, dist feature.Dist, x points.Points, first, s int, g rng.Stream) *mat.Dense {
	t.Helper()
	n, d := x.Dims()
	m := testkit.Must(feature.Doubling{Dist: dist, First: first}.Sample(d, s, g.Sub("features", 0)))
	z32 := testkit.Must(feature.Matrix(context.Background(), m, x, nil))
	z := mat.NewDense(n, s, nil)
	for i := range n {
		for j, v := range z32.Row(i) {
			z.Set(i, j, float64(v))
		}
	}
	return z
}

// newReference computes the reference of a Z for the kernel matrix k.
func newReference(t testing.TB, k *mat.SymDense, z *mat.Dense, lambda, theta float64) reference {
	t.Helper()
	n := k.SymmetricDim()
	zz := mat.NewSymDense(n, nil)
	zz.SymOuterK(1, z)
	var e mat.EigenSym
	if !e.Factorize(zz, true) {
		t.Fatal("eigenvalues of ZZᵀ")
	}
	vals := e.Values(nil)
	var vecs, kv mat.Dense
	e.VectorsTo(&vecs)
	kv.Product(vecs.T(), k, &vecs) // K in the eigenvectors of ZZᵀ
	block := func(from, to int, scale func(i int) float64) []float64 {
		s := mat.NewSymDense(to-from, nil)
		for i := from; i < to; i++ {
			for j := i; j < to; j++ {
				s.SetSym(i-from, j-from, (kv.At(i, j)+kv.At(j, i))/2*scale(i)*scale(j))
			}
		}
		return testkit.Eigenvalues(t, s)
	}
	cut := slices.IndexFunc(vals, func(v float64) bool { return v > theta*lambda })
	if cut < 0 {
		cut = n
	}
	r := reference{rank: n - cut, low: 1, high: 1}
	if cut > 0 {
		r.norm = slices.Max(block(0, cut, func(int) float64 { return 1 })) / lambda
	}
	if cut < n {
		v := block(cut, n, func(i int) float64 { return 1 / math.Sqrt(vals[i]) })
		r.low, r.high = v[0], v[len(v)-1]
	}
	// M^(-½)AM^(-½) in the basis of the same eigenvectors, in which M is the diagonal matrix of μ_i+λ.
	for i := range n {
		kv.Set(i, i, kv.At(i, i)+lambda)
	}
	v := block(0, n, func(i int) float64 { return 1 / math.Sqrt(max(vals[i], 0)+lambda) })
	r.lambdaMin, r.lamMax = v[0], v[n-1]
	r.kappa = r.lamMax / r.lambdaMin
	return r
}

// checkRung checks that the intervals of a rung contain the reference values, up to 1e-5 because Z is in float32.
func (r reference) checkRung(t *testing.T, u Rung, about ...any) {
	t.Helper()
	for what, e := range map[string]struct {
		got  estimate.Interval
		want float64
	}{
		"κ": {u.Kappa, r.kappa}, "λ_min": {u.Min, r.lambdaMin}, "λ_max": {u.Max, r.lamMax},
		"‖(I−P)K(I−P)‖/λ": {u.Conditions.Norm, r.norm}, "least ratio": {u.Conditions.Low, r.low},
		"largest ratio": {u.Conditions.High, r.high},
	} {
		if e.got.Lo > e.got.Hi || !(e.got.Lo*(1-1e-5) <= e.want && e.want <= e.got.Hi*(1+1e-5)) {
			t.Errorf("%v: %s = %v, dense %g", about, what, e.got, e.want)
		}
	}
}

// searchSeed runs a search with the random numbers of the seed.
func searchSeed(t testing.TB, p Problem, o Options, seed uint64) *Result {
	t.Helper()
	return testkit.Must(Search(context.Background(), p, &o, rng.New(seed)))
}

// chosenRung returns the index of the rung that a search names, or −1.
func chosenRung(r *Result) int {
	return slices.IndexFunc(r.Rungs, func(u Rung) bool { return u.S == r.S })
}
