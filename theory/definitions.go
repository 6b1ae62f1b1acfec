package theory

import (
	"fmt"
	"math"
	"math/bits"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

// forms are the forms in which M⁻¹ is represented.
var forms = []precond.Form{precond.FormL, precond.FormLInv, precond.FormU, precond.FormEigen}

// lqFactorization is a λ-LQ factorization A = LQ of a random m×n matrix A = Zᵀ, with LLᵀ = AAᵀ+λI.
type lqFactorization struct {
	z      *points.Dense32 // n×m
	a      *mat.Dense      // m×n
	m, n   int
	lambda float64
	l      *mat.TriDense
	q      *mat.Dense
	aat    *mat.SymDense
}

// newLQ draws a factorization: sizes from 1 to 12, a rank, singular values over three decades, and λ over six decades.
func newLQ(g rng.Stream) *lqFactorization {
	size := g.Sub("sizes")
	f := &lqFactorization{m: 1 + size.IntN(0, 12), n: 1 + size.IntN(1, 12),
		lambda: logUniform(g.Sub("lambda"), 1e-3, 1e3)}
	rank := 1 + size.IntN(2, min(f.m, f.n))
	leftFactor, rightFactor := gaussianMatrix(g.Sub("left"), f.n, rank), gaussianMatrix(g.Sub("right"), rank, f.m)
	leftFactor.Apply(func(_, j int, v float64) float64 { return v * math.Pow(10, 0.5-3*float64(j)/12) }, leftFactor)
	var z mat.Dense
	z.Mul(leftFactor, rightFactor)
	f.z = roundToFloat32(&z)
	f.a = mat.DenseCopyOf(z.T())
	f.aat = timesTranspose(f.a)
	f.l = choleskyByAccel(addRidge(f.aat, f.lambda))
	f.q = solveLower(f.l, f.a)
	return f
}

// choleskyByAccel returns the Cholesky factor L of a, computed by the project's own factorization.
func choleskyByAccel(a *mat.SymDense) *mat.TriDense {
	n := a.SymmetricDim()
	factor := mat.DenseCopyOf(a)
	if !accel.Dpotrf(n, factor.RawMatrix().Data, n) {
		fail("a matrix of order %d is not positive definite", n)
	}
	return mat.NewTriDense(n, mat.Lower, factor.RawMatrix().Data)
}

// trialDefinition1 checks the defining equations of a λ-LQ factorization, that M⁻¹ has the factor Q in each form, and
// that Q has orthonormal rows for λ = 0.
func trialDefinition1(e *experiment, i int, g rng.Stream, t *trial) {
	f := newLQ(g)
	var product, ll, qq mat.Dense
	product.Mul(f.l, f.q)
	ll.Mul(f.l, f.l.T())
	a := addRidge(f.aat, f.lambda)
	t.checkAtMost("|A − LQ|/|AAᵀ+λI|", maxDifference(&product, f.a)/maxAbs(a), 1e-12)
	t.checkAtMost("|LLᵀ − AAᵀ − λI|, relative", maxDifference(&ll, a)/maxAbs(a), 1e-12)
	qq.Mul(f.q.T(), f.q)
	for _, form := range forms {
		inv := denseInverse(e.ctx, e.preconditioner(f.z, f.lambda, f.lambda, form))
		inv.Scale(-f.lambda, inv)
		inv.Add(inv, identity(f.n)) // I − λM⁻¹
		t.checkAtMost(fmt.Sprintf("|I − λM⁻¹ − QᵀQ|, form %v", form), maxDifference(inv, &qq), 1e-9)
	}
	t.checkAtMost("|QQᵀ − I| at λ = 0", orthonormalityError(g), 1e-9)
}

// orthonormalityError returns |QQᵀ−I| of the factorization at λ = 0 for a well-conditioned m×n matrix, n ≥ m.
func orthonormalityError(g rng.Stream) float64 {
	size := g.Sub("orthonormal sizes")
	m := 1 + size.IntN(0, 8)
	n := m + size.IntN(1, 6)
	var a mat.Dense
	a.Mul(spectrumRoot(g.Sub("orthonormal"), tabulate(m, func(i int) float64 { return 1 + float64(i) })),
		orthogonal(g.Sub("rows"), n).Slice(0, m, 0, n))
	return maxDifference(timesTranspose(solveLower(choleskyByAccel(timesTranspose(&a)), &a)), identity(m))
}

// tabulate returns f(0), …, f(n−1).
func tabulate(n int, f func(i int) float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = f(i)
	}
	return v
}

// checkDefinition2 checks approximate matrix products of TensorSketch and of Fourier features: the probability of a
// large error, and the mean squared error.
func checkDefinition2(e *experiment) {
	poly := kernel.Polynomial{Gamma: 0.6, Coef0: 0.4, Degree: 2}
	gauss := kernel.Gaussian{Sigma: 1.5}
	x := randomPoints(e.random.Sub("cloud"), 8, 12, 0.85)
	const nu, delta, fewFeatures = 0.5, 0.1, 24 // with more features hardly a draw has a collision: see assumedSkewness
	e.checkProducts(e.products("TensorSketch", poly, x, e.parts.TensorSketch(poly),
		func(s int) covariance { return tensorSketchCovariance(lift(poly, x), poly.Degree, s) }),
		lemma4Features(2, nu, delta), nu, delta, fewFeatures)
	fourierProducts := e.products("Fourier", gauss, x, e.parts.Fourier(gauss),
		func(s int) covariance { return fourierCovariance(gauss, x, s) })
	// By Chebyshev's inequality.
	s := int(math.Ceil(fourierProducts.expectation(1) / (nu * nu * fourierProducts.size * delta)))
	e.checkProducts(fourierProducts, s, nu, delta, s, fewFeatures)
}

// srhtEntries gives access to the random signs and rows of an SRHT. *sketch.SRHTOperator implements it.
type srhtEntries interface {
	Sign(j int) float64
	Row(i int) (row, order int)
}

// checkDefinition3 compares the entries of an SRHT with their definition, and the means of SRHT and CountSketch with
// their expectations.
func checkDefinition3(e *experiment) {
	e.runTrials("entries", func(_ int, g rng.Stream, t *trial) {
		size := g.Sub("sizes")
		m := 1 + size.IntN(0, 40)
		order := 1 << bits.Len(uint(m-1))
		err64, err32 := entryErrors(must(e.parts.SRHT.Sample(m, 1+size.IntN(1, order), g)))
		t.checkAtMost("|S − s^(−1/2)PHD|, float64", err64, 1e-12)
		t.checkAtMost("|S − s^(−1/2)PHD|, float32", err32, 1e-5)
		s := matrixOf(must(e.parts.SRHT.Sample(m, order, g)))
		t.checkAtMost("|SᵀS − I| at s = m", maxDifference(timesTranspose(s.T()), identity(m)), 1e-12)
	})
	const n, d, s = 6, 50, 16
	y := gaussianMatrix(e.random.Sub("vectors"), n, d)
	y.Apply(func(_, j int, v float64) float64 { return v * math.Pow(0.9, float64(j)) }, y)
	x := rowsOf(y)
	e.checkUnbiased(unbiasedFeatures{"SRHT", homogeneous(1), linearSketch{e.parts.SRHT}, x, s, srhtCovariance(x, 64, s)})
	e.checkUnbiased(unbiasedFeatures{"CountSketch", homogeneous(1), linearSketch{e.parts.CountSketch}, x, s,
		tensorSketchCovariance(x, 1, s)})
}

// linearSketch uses a sketch as a feature map of the kernel xᵀz.
type linearSketch struct{ sketch.Dist }

// Sample implements feature.Dist.
func (l linearSketch) Sample(d, s int, g rng.Stream) (feature.Map, error) {
	o, err := l.Dist.Sample(d, s, g)
	return linearMap{o}, err
}

// linearMap uses the sketch S as the feature map φ(x) = Sx.
type linearMap struct{ sketch.Operator }

// MapTo implements feature.Map. x must be *points.Dense.
func (m linearMap) MapTo(z []float64, ld int, x points.Points, _ *feature.Workspace) {
	dense := x.(*points.Dense)
	m.Apply64(sketch.Rows64{Dst: z, DstStride: ld, Src: dense.Data, SrcStride: dense.D, Count: dense.N},
		new(sketch.Workspace))
}

// matrixOf returns the matrix S of a sketch, by applying the sketch to the unit vectors.
func matrixOf(o sketch.Operator) *mat.Dense {
	m, s := o.Dims()
	unit, st := mat.DenseCopyOf(identity(m)), mat.NewDense(m, s, nil)
	o.Apply64(sketch.Rows64{Dst: st.RawMatrix().Data, DstStride: s, Src: unit.RawMatrix().Data, SrcStride: m, Count: m},
		new(sketch.Workspace))
	return mat.DenseCopyOf(st.T())
}

// entryErrors returns the largest differences between the entries of S and their definition, in float64 and float32.
func entryErrors(o sketch.Operator) (err64, err32 float64) {
	entries, ok := o.(srhtEntries)
	if !ok {
		fail("an SRHT without access to its signs and rows")
	}
	m, s := o.Dims()
	computed := matrixOf(o)
	unit, st := make([]float32, m*m), make([]float32, m*s)
	for j := range m {
		unit[j*m+j] = 1
	}
	o.Apply32(sketch.Rows32{Dst: st, DstStride: s, Src: unit, SrcStride: m, Count: m}, new(sketch.Workspace))
	for i := range s {
		row, order := entries.Row(i)
		if row < 0 || row >= order {
			fail("row %d of a transform of order %d", row, order)
		}
		for j := range m {
			h := 1 - 2*float64(bits.OnesCount(uint(row&j))&1)
			expectedEntry := h * entries.Sign(j) / math.Sqrt(float64(s))
			err64 = math.Max(err64, math.Abs(computed.At(i, j)-expectedEntry))
			err32 = math.Max(err32, math.Abs(float64(st[j*s+i])-expectedEntry))
		}
	}
	return err64, err32
}
