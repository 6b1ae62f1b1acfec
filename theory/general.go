package theory

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
	"github.com/krrlab/lab/plots"
)

// conditions returns the least α and γ for which K and ZZᵀ meet the conditions at θ; they say nothing if γ ≥ 1.
func conditions(k, zz *mat.SymDense, lambda, theta float64) sketchsize.Test {
	var e mat.EigenSym
	if !e.Factorize(zz, true) {
		fail("no eigenvalues of ZZᵀ")
	}
	vals := e.Values(nil)
	n := len(vals)
	var vecs, kv mat.Dense
	e.VectorsTo(&vecs)
	kv.Product(vecs.T(), k, &vecs) // K in the eigenvectors of ZZᵀ
	cut := slices.IndexFunc(vals, func(v float64) bool { return v > theta*lambda })
	if cut < 0 {
		cut = n
	}
	c := sketchsize.Test{Theta: theta}
	if cut > 0 {
		c.Alpha = math.Max(eigenvalues(symmetrized(kv.Slice(0, cut, 0, cut)))[cut-1], 0) / lambda
	}
	if cut < n {
		b := symmetrized(kv.Slice(cut, n, cut, n))
		for i := range n - cut {
			for j := i; j < n-cut; j++ {
				b.SetSym(i, j, b.At(i, j)/math.Sqrt(vals[cut+i]*vals[cut+j]))
			}
		}
		v := eigenvalues(b)
		c.Gamma = max(1-v[0], v[len(v)-1]-1, 0)
	}
	return c
}

func checkGeneral(e *experiment) {
	e.try("trial", func(i int, g rng.Stream, t *trial) {
		for try := uint64(0); ; try++ { // until γ < 1
			g := g.Sub("try", try)
			p := newTwin(g, 8)
			lambda := spread(g.Sub("lambda"), 1e-2, 1e2)
			c := conditions(p.k, outer(whole(p.z)), lambda, uniform(g.Sub("theta"), 0, 0.6))
			if !(c.Gamma < 1) {
				continue
			}
			v := p.spectrum(e, lambda, lambda, forms[i%len(forms)])
			low, high := e.parts.TestBound(c)
			t.atMost("the lower bound over the least eigenvalue", low/v[0], 1+1e-6)
			t.atMost("the largest eigenvalue over the upper bound", v[len(v)-1]/high, 1+1e-6)
			return
		}
	})
	e.tightConditions()
}

// tightConditions measures pairs that meet the presets' constants and come to the bounds.
func (e *experiment) tightConditions() {
	for _, c := range presets {
		low, high := e.parts.TestBound(c)
		var lows, highs []float64
		for _, big := range []float64{1e2, 1e4} {
			// λ = 1; the second coordinate is outside of P, the eigenvalue there is θ or 0.
			up := e.tightPair(big, 0, math.Sqrt((1+c.Gamma)*big), math.Sqrt(c.Alpha))
			down := e.tightPair(big, c.Theta, math.Sqrt((1-c.Gamma)*big), math.Sqrt(c.Alpha))
			highs, lows = append(highs, up[1]/high), append(lows, low/down[0])
		}
		e.atMost(fmt.Sprintf("the largest eigenvalue over the upper bound, %s, pairs that come to it", c.Name), highs,
			1+1e-6)
		e.atMost(fmt.Sprintf("the lower bound over the least eigenvalue, %s, pairs that come to it", c.Name), lows,
			1+1e-6)
	}
}

// tightPair returns the ends of the spectrum for K = vvᵀ, v = (v₁, v₂), and ZZᵀ = diag(z₁, z₂) at
// λ = 1.
func (e *experiment) tightPair(z1, z2, v1, v2 float64) []float64 {
	z := mat.NewDense(2, 2, []float64{math.Sqrt(z1), 0, 0, math.Sqrt(z2)})
	p := &twin{k: outer(mat.NewDense(2, 1, []float64{v1, v2})), z: rounded(z)}
	return p.spectrum(e, 1, 1, precond.FormEigen)
}

func checkLambdaP(e *experiment) {
	e.try("trial", func(i int, g rng.Stream, t *trial) {
		p := newTwin(g, 8)
		lambda := spread(g.Sub("lambda"), 1e-2, 10)
		lp := spread(g.Sub("lambda_p"), lambda*1e-2, 1e2*(lambda+p.eta))
		form := forms[i%len(forms)]
		over := func(ridge float64) float64 {
			return cond(p.spectrum(e, lambda, ridge, form)) / e.parts.RidgeBound(lambda, ridge, p.eta)
		}
		t.atMost("κ over its bound, any λ_p", over(lp), 1+1e-6)
		t.atMost("κ over its bound at λ_p = λ+η, 1+2η/λ", over(lambda+p.eta), 1+1e-6)
		best := e.parts.RidgeBound(lambda, lambda+p.eta, p.eta)
		t.atMost("the bound at λ+η over 1+2η/λ and over that at any λ_p, less 1",
			math.Max(math.Abs(best/(1+2*p.eta/lambda)-1), best/e.parts.RidgeBound(lambda, lp, p.eta)-1), 1e-12)
		var product mat.Dense
		product.Mul(shifted(outer(whole(p.z)), lp), inverse(e.ctx, e.precond(p.z, lambda, lp, form)))
		t.atMost("|M·M⁻¹ − I|", apart(&product, identity(p.z.N)), 1e-6)
	})
	e.atMost("κ over its bound for K = diag(1, 0), ZZᵀ = diag(0, 1), where it is met", e.tightRidge(), 1+1e-9)
}

// tightRidge returns κ over the bound for the pair that meets it at every λ_p in [λ−η, λ+η].
func (e *experiment) tightRidge() (out []float64) {
	p := &twin{k: mat.NewSymDense(2, []float64{1, 0, 0, 0}), z: points.NewDense32(2, 1, []float32{0, 1}), eta: 1}
	for _, c := range []struct{ lambda, lambdaP float64 }{{0.5, 0.5}, {0.5, 1.5}, {0.5, 1}, {2, 1}, {2, 3},
		{0.01, 1.01}} {
		out = append(out, cond(p.spectrum(e, c.lambda, c.lambdaP, precond.FormLInv))/e.parts.RidgeBound(c.lambda,
			c.lambdaP, 1))
	}
	return out
}

func figureLambdaP(e *experiment) *plots.Figure {
	g := e.g.Sub("figure")
	const lambda = 0.01
	k := kernel.Gaussian{Sigma: 1.5}
	x := cloud(g, 60, 4, 0.8)
	var series []plots.Series
	var at []plots.RefLine
	for _, s := range []int{40, 640} {
		p := twinOf(evaluated(k, x), condensed(rounded(mapped(e.parts.Fourier(k), x, s, g))))
		bound := plots.Series{Name: fmt.Sprintf("bound, s = %d", s)}
		kappa := plots.Series{Name: fmt.Sprintf("κ, s = %d", s)}
		for i := range 81 {
			lp := 1e-4 * math.Pow(10, 6*float64(i)/80)
			bound.Add(lp, e.parts.RidgeBound(lambda, lp, p.eta))
			kappa.Add(lp, cond(p.spectrum(e, lambda, lp, precond.FormEigen)))
		}
		series = append(series, bound, kappa)
		at = append(at, plots.RefLine{At: lambda + p.eta, Label: fmt.Sprintf("λ+η, s = %d", s)})
	}
	at = append(at, plots.RefLine{At: lambda, Label: "λ"})
	return plots.Sweep("The ridge of the preconditioner: λ = 0.01, Fourier features", "λ_p", "κ(M⁻¹A)", at, series...)
}

// twin is a pair of matrices of small order: K, and Z in float32 with ZZᵀ near it.
type twin struct {
	k   *mat.SymDense
	z   *points.Dense32
	eta float64 // ‖K−ZZᵀ‖₂
}

// newTwin draws a K with eigenvalues over decades and a Z of n or fewer columns.
func newTwin(g rng.Stream, n int) *twin {
	closeness := spread(g.Sub("closeness"), 1e-3, 1)
	r := root(g.Sub("K"), values(n, func(i int) float64 { return math.Pow(10, 1-5*float64(i)/float64(n)) }))
	var z mat.Dense
	noise := normals(g.Sub("noise"), n, n)
	noise.Scale(closeness/math.Sqrt(float64(n)), noise)
	z.Mul(r, noise)
	z.Add(&z, r)
	cut := mat.DenseCopyOf(z.Slice(0, n, 0, 1+g.Sub("columns").IntN(0, n)))
	return twinOf(outer(r), rounded(cut))
}

func twinOf(k *mat.SymDense, z *points.Dense32) *twin {
	return &twin{k: k, z: z, eta: norm(less(outer(whole(z)), k))}
}

// spectrum returns the eigenvalues of M⁻¹A, with M⁻¹ as it is applied.
func (p *twin) spectrum(e *experiment, lambda, lambdaP float64, form precond.Form) []float64 {
	return e.pencil(factor(shifted(p.k, lambda)), e.precond(p.z, lambda, lambdaP, form))
}

func checkNystrom(e *experiment) {
	for i, build := range e.parts.LowRank {
		name := "κ over 1+tr(K−K̂)/λ, " + []string{"Nyström", "RPCholesky", "method"}[min(i, 2)]
		e.try(fmt.Sprintf("method %d", i), func(i int, g rng.Stream, t *trial) {
			size := g.Sub("sizes")
			x := cloud(g, 4+size.IntN(0, 12), 3, 0.8)
			kern := manyKernels[i%len(manyKernels)]
			k, lambda := evaluated(kern, x), spread(g.Sub("lambda"), 1e-2, 1)
			src := e.stored(kern, x, lambda).Exact(0)
			// Over 1 + tr(K−FFᵀ)/λ; the rounding of F is allowed for as lowrank.Factor.CondBound does.
			over := func(j uint64, rank int) float64 {
				f := must(build(e.ctx, src, rank, g.Sub("draw", j), nil))
				rest := mat.Trace(k) - frobenius(whole(f.F))
				return cond((&twin{k: k, z: f.F}).spectrum(e, lambda, lambda, precond.FormEigen)) /
					(1 + (math.Max(rest, 0)+2*f.Rounding)/(lambda-f.Rounding))
			}
			t.atMost(name+", any rank", over(0, 1+size.IntN(1, x.N-1)), 1+1e-6)
			t.atMost(name+", rank n−1", over(1, x.N-1), 1+1e-6)
		})
	}
}
