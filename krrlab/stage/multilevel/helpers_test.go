package multilevel

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/sketch"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// gauss is the kernel of the tests in this package.
var gauss = kernel.Gaussian{Sigma: 1.5}

// newTestProblem returns a problem of n points in R⁴ with K in float64, and the kernel matrix computed by Eval.
func newTestProblem(t testing.TB, n int, lambda, lambdaP float64) (*problem, *mat.SymDense) {
	t.Helper()
	x, y := testkit.RandomPoints(5, n, 4), mat.NewDense(n, 3, nil)
	y.Apply(func(i, c int, _ float64) float64 {
		return math.Sin(x.Row(i)[c]) + 0.1*rng.New(9).Normal(uint64(3*i+c))
	}, y)
	a := testkit.Must(gram.New(t.Context(), gauss, x, lambda, &gram.Options{Storage: gram.Float64}))
	return &problem{A: a, X: x, Y: y, LambdaP: lambdaP, Comm: comm.Alone()}, testkit.KernelMatrix(gauss, x)
}

// drawFeatures draws a map of Fourier features of the given width, followed by the sketches.
func drawFeatures(t testing.TB, width int, sketches sketch.Composition, seed uint64) feature.Map {
	t.Helper()
	lastWidth := width
	if count := len(sketches); count > 0 {
		lastWidth = sketches[count-1].Width
	}
	return testkit.Must(feature.Chain{Features: feature.Fourier{Kernel: gauss}, Width: width,
		Sketches: sketches}.Sample(4, lastWidth, rng.New(seed)))
}

// twoSketches is a composition of two sketches, to 60 and then to 30 columns.
var twoSketches = sketch.Composition{{Dist: sketch.SRHT{}, Width: 60}, {Dist: sketch.Gaussian{}, Width: 30}}

// OuterProduct returns ZZᵀ of the features of x, computed in float64.
func OuterProduct(featureMap feature.Map, x points.Points) *mat.SymDense {
	n, _ := x.Dims()
	_, s := featureMap.Dims()
	z := make([]float64, n*s)
	featureMap.MapTo(z, s, x, &feature.Workspace{})
	var zz mat.SymDense
	zz.SymOuterK(1, mat.NewDense(n, s, z))
	return &zz
}

// DenseReference returns ‖ZZᵀ−K‖₂ and κ(M⁻¹A) by dense eigenvalues.
func DenseReference(t testing.TB, zz, k *mat.SymDense, lambda, lambdaP float64) (norm, kappa float64) {
	t.Helper()
	var difference mat.SymDense
	difference.ScaleSym(-1, k)
	difference.AddSym(&difference, zz)
	errorEigenvalues := testkit.Eigenvalues(t, &difference)
	pencilEigenvalues := testkit.PencilEigenvalues(t, testkit.AddRidge(k, lambda), testkit.AddRidge(zz, lambdaP))
	n := len(errorEigenvalues)
	return max(math.Abs(errorEigenvalues[0]), math.Abs(errorEigenvalues[n-1])),
		pencilEigenvalues[n-1] / pencilEigenvalues[0]
}

// completeOptions returns the options with defaults, and with the tolerance 1e-3 of solves.
func completeOptions(o Options) *Options {
	o.tol, o.maxIter = 1e-3, 1000
	if o.progress == nil {
		o.progress = func(string, string, int, int) {}
	}
	if err := o.setDefaults(); err != nil {
		panic(err)
	}
	return &o
}
