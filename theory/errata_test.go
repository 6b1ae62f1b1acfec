package theory

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/sketch"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
)

// The tests of this file show for entries of ERRATA.md that the printed form is wrong and the corrected one is right.
// Entries 1, 3, 4 and 6, and entry 2 once more, are tested by TestFaults. Entries 12 and 13 are about tables and are
// tested in package experiments. TestTensorSketchMoments, the last one, is about no entry, but about closed forms that
// the paper only bounds.

// TestErratum2 checks that (xᵀz)² is the product of all ordered pairs of coordinates, and not of the distinct
// monomials alone.
func TestErratum2(t *testing.T) {
	x := points.NewDense(2, 3, []float64{1, -2, 0.5, 3, 1, 2})
	want := homogeneous(2).Eval(x.Row(0), x.Row(1))
	v := tensors(x, 2)
	ordered, distinct := 0.0, 0.0
	for c := range 9 {
		product := v.At(0, c) * v.At(1, c)
		ordered += product
		if c/3 <= c%3 {
			distinct += product
		}
	}
	if math.Abs(ordered-want) > 1e-12 || math.Abs(distinct-want) < 0.1 {
		t.Errorf("(xᵀz)² = %g, all ordered products %g, distinct monomials %g", want, ordered, distinct)
	}
}

// TestErratum5 checks that the preconditioner M = Z₃Z₃ᵀ+λI, with the features Z₃ after the last sketch of a chain, must
// be factored from Z₃. The printed Algorithm 1 factors the features Z₁ before the sketches. It also checks that a
// Hadamard transform is orthogonal for a padded vector, and not if its order is no power of two.
func TestErratum5(t *testing.T) {
	const lambda = 0.5
	g := rng.New(3)
	x := randomPoints(g, 6, 4, 0.8)
	c := feature.Chain{Features: feature.TensorSketch{Kernel: homogeneous(2)}, Width: 24,
		Sketches: sketch.Composition{{Dist: sketch.SRHT{}, Width: 8}, {Dist: sketch.Gaussian{}}}}
	chain := must(c.Sample(4, 5, g))
	z3 := must(feature.Matrix(t.Context(), chain, x, nil))
	z1 := must(feature.Matrix(t.Context(), chain.(*feature.ChainMap).Level(1), x, nil))
	want := inverse(addRidge(timesTranspose(toFloat64(z3)), lambda))
	inverseError := func(z *points.Dense32) float64 { // of M⁻¹ by the factor of ZᵀZ+λI
		m := must(builtinParts().Precond(t.Context(), z, lambda, lambda, precond.FormU))
		return maxDifference(denseInverse(t.Context(), m), want)
	}
	if d := inverseError(z3); !(d < 1e-6) {
		t.Errorf("M⁻¹ by the factor of Z₃ᵀZ₃+λI has an error of %g, want the rounding error of float32", d)
	}
	if d := inverseError(z1); !(d >= 1e-2) {
		t.Errorf("M⁻¹ by the factor of Z₁ᵀZ₁+λI has an error of %g, want a large one", d)
	}
	o := must(sketch.SRHT{}.Sample(24, 32, g)) // padded to 32
	if d := maxDifference(timesTranspose(matrixOf(o).T()), identity(24)); d > 1e-12 {
		t.Errorf("padded: |SᵀS−I| = %g", d)
	}
	unpadded := mat.DenseCopyOf(matrixOf(o).Slice(0, 24, 0, 24)) // the leading 24 rows of H₃₂, as if of order 24
	unpadded.Scale(math.Sqrt(32.0/24), unpadded)
	if d := maxDifference(timesTranspose(unpadded.T()), identity(24)); d < 0.1 {
		t.Errorf("without padding: |SᵀS−I| = %g only", d)
	}
}

// TestErratum7 checks that n − λ·tr((K+I)⁻¹), as printed, is s_λ(K) only for λ = 1.
func TestErratum7(t *testing.T) {
	mu := []float64{0.2, 1, 5, 40}
	for _, lambda := range []float64{0.1, 1, 10} {
		corrected, printed := 4.0, 4.0
		for _, v := range mu {
			corrected -= lambda / (v + lambda)
			printed -= lambda / (v + 1)
		}
		want := statDimOf(mu, lambda)
		if math.Abs(corrected-want) > 1e-12 {
			t.Errorf("λ = %g: n − λ·tr((K+λI)⁻¹) = %g, want %g", lambda, corrected, want)
		}
		if difference := math.Abs(printed - want); (difference < 0.1) != (lambda == 1) {
			t.Errorf("λ = %g: the printed form has an error of %g", lambda, difference)
		}
	}
}

// TestErratum8 checks that ν²s_λ²+ξ² is ¼ for the corrected constants and 1 if the printed s_λ⁻¹/2√2 is read from left
// to right. It also checks that the norm of S₁Qᵀ in the proof of Theorem 6 may be below ½.
func TestErratum8(t *testing.T) {
	const sLambda = 7.0
	goal := func(nu, xi float64) float64 { return nu*nu*sLambda*sLambda + xi*xi }
	if got := goal(1/(sLambda*2*math.Sqrt2), 1/(2*math.Sqrt2)); math.Abs(got-0.25) > 1e-15 {
		t.Errorf("1/(2√2): %g, want ¼", got)
	}
	if got := goal(1/sLambda/2*math.Sqrt2, 1.0/2*math.Sqrt2); got < 0.9 {
		t.Errorf("read from left to right: %g", got)
	}
	// One point with k(x, x) = λ: ‖Qᵀ‖² = ½, and of the draws with |‖S₁Qᵀ‖²−½| ≤ ¼ some are below ½,
	// none below ¼. S₁Qᵀ is zᵀ/√(k(x, x)+λ), where z has the features of x.
	x := points.NewDense(1, 4, []float64{1, 1, 1, 1})
	const kPlusLambda = 16 + 16 // k(x, x) = (xᵀx)² = 16
	belowHalf, smallest := 0, 1.0
	for i := range 200 {
		z := featureMatrix(feature.TensorSketch{Kernel: homogeneous(2)}, x, 200, rng.New(uint64(i)))
		if v := timesTranspose(z).At(0, 0) / kPlusLambda; math.Abs(v-0.5) <= 0.25 {
			smallest = min(smallest, v)
			if v < 0.49 {
				belowHalf++
			}
		}
	}
	if belowHalf < 10 || smallest < 0.25 {
		t.Errorf("‖S₁Qᵀ‖² < ½ in %d of 200 draws, at least %g, want 10 or more draws, and at least ¼", belowHalf, smallest)
	}
}

// TestErratum9 checks the bounds that the presets guarantee, and the bound that the paper's own inequalities give: κ ≤
// (1+c)/(1−c) with c = 0.21 + 11/15.
func TestErratum9(t *testing.T) {
	checkNear := func(name string, got, want, tol float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tol*want) {
			t.Errorf("%s = %.8g, want %.8g", name, got, want)
		}
	}
	checkNear("hi of the paper's constants", sketchsize.PaperConstants.Upper(), 1.432, 5e-4)
	checkNear("lo of the paper's constants", sketchsize.PaperConstants.Lower(), 0.672, 7e-4)
	for i, want := range []struct{ bound, factor float64 }{{2.13, 11130}, {4.99, 73.6}, {9.95, 16}} {
		c := presets[i]
		checkNear(c.Name+": κ", c.Bound(), want.bound, 2e-3)
		checkNear(c.Name+": factor", c.FeatureFactor(), want.factor, 5e-3)
	}
	c := 0.21 + 11.0/15
	checkNear("the paper's chain", (1+c)/(1-c), 34.3, 1e-3)
}

// TestErratum10 checks that three steps of power iteration accept, for most random starts, a matrix whose norm is above
// the limit. The upper end of the 95 % interval of Lanczos accepts it for at most 5 % of the starts.
func TestErratum10(t *testing.T) {
	const n, limit, steps = 60, 1.0, 3
	spectrum := tabulate(n, func(i int) float64 { return 0.9 * float64(i) / n })
	spectrum[n-1] = 1.1 // above the limit, by one eigenvalue
	a := withSpectrum(rng.New(1), spectrum)
	acceptedByPower, acceptedByLanczos := 0, 0
	const starts = 200
	for i := range starts {
		x := mat.NewVecDense(n, nil)
		rng.New(uint64(i)).Sub("start").Normals(x.RawVector().Data, 0)
		for range steps {
			x.ScaleVec(1/mat.Norm(x, 2), x)
			x.MulVec(a, x)
		}
		if mat.Norm(x, 2) <= limit {
			acceptedByPower++
		}
		r, err := lanczos.Run(context.Background(), operator{a},
			&lanczos.Options{Steps: steps, Tol: -1, Quantity: lanczos.LargestEigenvalue, Definite: true,
				Start: rng.New(uint64(i))})
		if err != nil {
			t.Fatal(err)
		}
		if r.Max.Hi <= limit {
			acceptedByLanczos++
		}
	}
	if acceptedByPower < starts/2 {
		t.Errorf("power iteration accepts %d of %d starts only", acceptedByPower, starts)
	}
	if clopperPearson(acceptedByLanczos, starts) > 0.05 { // the lower end of the 99.9 % interval of the share
		t.Errorf("Lanczos accepts %d of %d starts, want at most 5 %%", acceptedByLanczos, starts)
	}
}

// TestErratum11 checks that an error in the A-norm below ε = τ does not imply a residual below τ‖y‖, and that an error
// below τ/√κ(A) does.
func TestErratum11(t *testing.T) {
	const n, tau = 60, 0.05
	kappa := 2000.0
	spectrum := chebyshevExtrema(n, kappa)
	a := mat.NewSymDense(n, nil)
	y, c := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for i, mu := range spectrum {
		a.SetSym(i, i, mu)
	}
	// c solves ac = y, along the eigenvector of the smallest eigenvalue. x has the relative error ‖x−c‖_A/‖c‖_A = 0.9τ,
	// all of it along the eigenvector of the largest eigenvalue.
	c.SetVec(0, 1)
	y.SetVec(0, spectrum[0])
	x := mat.VecDenseCopyOf(c)
	x.SetVec(n-1, 0.9*tau*math.Sqrt(spectrum[0]/spectrum[n-1]))
	p := &problem{n: n, a: a, y: y, c: c}
	if d := p.distance(x); d > tau {
		t.Fatalf("‖x−c‖_A/‖c‖_A = %g, want at most τ = %g", d, tau)
	}
	relative := func(x mat.Vector) float64 { return mat.Norm(residual(a, x, y), 2) / mat.Norm(y, 2) }
	if r := relative(x); r < 10*tau {
		t.Errorf("the residual is %g for an A-norm error below τ = %g", r, tau)
	}
	x.SetVec(n-1, x.AtVec(n-1)/math.Sqrt(kappa))
	if r := relative(x); r > tau*(1+1e-12) {
		t.Errorf("the residual is %g for an A-norm error below τ/√κ(A)", r)
	}
}

// TestTensorSketchMoments compares the closed forms of the moments with means over all hashes and signs of a small
// TensorSketch.
func TestTensorSketchMoments(t *testing.T) {
	x := points.NewDense(2, 2, []float64{0.7, -1.2, 0.4, 0.9})
	for _, s := range []int{2, 3} {
		for _, q := range []int{1, 2} {
			t.Run(fmt.Sprintf("q=%d s=%d", q, s), func(t *testing.T) { checkMoments(t, x, q, s) })
		}
	}
}

// hashTable contains the hashes h[f][i] and the signs g[f][i] of a TensorSketch, for factor f and coordinate i.
type hashTable struct{ h, g [][]int }

// Hash implements hashFunctions.
func (m hashTable) Hash(f, i int) (int, float64) { return m.h[f][i], float64(m.g[f][i]) }

// checkMoments checks the mean and the variance of φ(x₁)ᵀφ(x₂) for the two points of x and a TensorSketch with q
// factors and s buckets.
func checkMoments(t *testing.T, x *points.Dense, q, s int) {
	d := x.D
	v := tensors(x, q)
	var meanProduct, meanSquare float64
	count := 0
	// The digits of code are a hash and a sign for every factor and coordinate.
	for code := range power(2*s, q*d) {
		table := hashTable{h: make([][]int, q), g: make([][]int, q)}
		remaining := code
		for f := range q {
			for range d {
				table.h[f] = append(table.h[f], remaining%s)
				remaining /= s
				table.g[f] = append(table.g[f], 1-2*(remaining%2))
				remaining /= 2
			}
		}
		var z mat.Dense
		z.Mul(v, sketchMatrix(table, q, d, s).T())
		k := mat.Dot(z.RowView(0), z.RowView(1))
		meanProduct += k
		meanSquare += k * k
		count++
	}
	meanProduct /= float64(count)
	meanSquare /= float64(count)
	want := homogeneous(q).Eval(x.Row(0), x.Row(1))
	if math.Abs(meanProduct-want) > 1e-10 {
		t.Errorf("mean %g, want %g", meanProduct, want)
	}
	if cov := tensorSketchCovariance(x, q, s)(0, 1, 0, 1); math.Abs(meanSquare-meanProduct*meanProduct-cov) > 1e-10 {
		t.Errorf("variance %g, closed form %g", meanSquare-meanProduct*meanProduct, cov)
	}
}
