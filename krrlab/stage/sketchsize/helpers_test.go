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
func scaledNormals(n, dim int, rho float64) *points.Dense {
	x := testkit.RandomPoints(77, n, dim)
	for i := range x.Data {
		x.Data[i] *= math.Pow(rho, float64(i%dim))
	}
	return x
}

// newTestProblem returns the search problem of the points x with the default features of the kernel.
func newTestProblem(t testing.TB, kern kernel.Kernel, x points.Points, lambda float64) Problem {
	t.Helper()
	operator := testkit.Must(gram.New(context.Background(), kern, x, lambda, &gram.Options{Storage: gram.Float64}))
	dist := testkit.Must(feature.For(kern))
	return Problem{K: operator, X: x, Map: dist, Lambda: lambda}
}

// reference holds the quantities of one Z, computed from their definitions by dense linear algebra in float64.
type reference struct {
	kappa                float64 // κ(M⁻¹A)
	lambdaMin, lambdaMax float64 // extreme eigenvalues of M⁻¹A
	rank                 int     // number of eigenvalues of ZZᵀ above θλ, whose eigenvectors W span the range of P
	norm                 float64 // ‖(I−P)K(I−P)‖₂/λ
	low, high            float64 // extreme eigenvalues of the pencil (WᵀKW, WᵀZZᵀW)
}

// denseFeatures returns Z for s features of a ladder that begins at first, as in Search.
func denseFeatures(t testing.TB, dist feature.Dist, x points.Points, first, s int, stream rng.Stream) *mat.Dense {
	t.Helper()
	n, d := x.Dims()
	featureMap := testkit.Must(feature.Doubling{Dist: dist, First: first}.Sample(d, s, stream.Sub("features", 0)))
	z := mat.NewDense(n, s, nil)
	points.RowsTo(testkit.Must(feature.Matrix(context.Background(), featureMap, x, nil)), z.RawMatrix().Data, s)
	return z
}

// newReference computes the reference of a Z for the kernel matrix k.
func newReference(t testing.TB, k *mat.SymDense, z *mat.Dense, lambda, theta float64) reference {
	t.Helper()
	n := k.SymmetricDim()
	zz := mat.NewSymDense(n, nil)
	zz.SymOuterK(1, z)
	var eig mat.EigenSym
	if !eig.Factorize(zz, true) {
		t.Fatal("no eigenvalues of ZZᵀ")
	}
	mu := eig.Values(nil)
	var vectors, rotated mat.Dense
	eig.VectorsTo(&vectors)
	rotated.Product(vectors.T(), k, &vectors) // K in the basis of the eigenvectors of ZZᵀ
	// blockEigenvalues returns the eigenvalues of rows and columns from … to−1 of D·rotated·D, D = diag(scale(i)).
	blockEigenvalues := func(from, to int, scale func(i int) float64) []float64 {
		s := mat.NewSymDense(to-from, nil)
		for i := from; i < to; i++ {
			for j := i; j < to; j++ {
				s.SetSym(i-from, j-from, (rotated.At(i, j)+rotated.At(j, i))/2*scale(i)*scale(j))
			}
		}
		return testkit.Eigenvalues(t, s)
	}
	cut := slices.IndexFunc(mu, func(v float64) bool { return v > theta*lambda })
	if cut < 0 {
		cut = n
	}
	r := reference{rank: n - cut, low: 1, high: 1}
	if cut > 0 {
		r.norm = slices.Max(blockEigenvalues(0, cut, func(int) float64 { return 1 })) / lambda
	}
	if cut < n {
		eigenvalues := blockEigenvalues(cut, n, func(i int) float64 { return 1 / math.Sqrt(mu[i]) })
		r.low, r.high = eigenvalues[0], eigenvalues[len(eigenvalues)-1]
	}
	// M^(-½)AM^(-½) in the basis of the same eigenvectors, in which M is the diagonal matrix of μ_i+λ.
	for i := range n {
		rotated.Set(i, i, rotated.At(i, i)+lambda)
	}
	eigenvalues := blockEigenvalues(0, n, func(i int) float64 { return 1 / math.Sqrt(max(mu[i], 0)+lambda) })
	r.lambdaMin, r.lambdaMax = eigenvalues[0], eigenvalues[n-1]
	r.kappa = r.lambdaMax / r.lambdaMin
	return r
}

// checkRung checks that the intervals of a rung contain the reference values, up to 1e-5 because Z is in float32.
// description is printed with an error.
func (r reference) checkRung(t *testing.T, rung Rung, description ...any) {
	t.Helper()
	for quantity, values := range map[string]struct {
		got  estimate.Interval
		want float64
	}{
		"κ": {rung.Kappa, r.kappa}, "λ_min": {rung.Min, r.lambdaMin}, "λ_max": {rung.Max, r.lambdaMax},
		"‖(I−P)K(I−P)‖/λ":                   {rung.Conditions.Norm, r.norm},
		"smallest eigenvalue of the pencil": {rung.Conditions.Low, r.low},
		"largest eigenvalue of the pencil":  {rung.Conditions.High, r.high},
	} {
		if values.got.Lo > values.got.Hi || !(values.got.Lo*(1-1e-5) <= values.want &&
			values.want <= values.got.Hi*(1+1e-5)) {
			t.Errorf("%v: %s = %v, by dense eigenvalues %g", description, quantity, values.got, values.want)
		}
	}
}

// searchSeed runs a search with the random numbers of the seed.
func searchSeed(t testing.TB, p Problem, o Options, seed uint64) *Result {
	t.Helper()
	return testkit.Must(Search(context.Background(), p, &o, rng.New(seed)))
}

// chosenRung returns the index of the rung that a search chooses, or −1.
func chosenRung(r *Result) int {
	return slices.IndexFunc(r.Rungs, func(rung Rung) bool { return rung.S == r.S })
}
