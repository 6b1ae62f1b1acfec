package theory

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/adapt"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

var general = Claim{
	Name: "general", Place: "Theorem 7's first part, for any constants (θ, α, γ)", Kind: Bound,
	Statement: "P projects on the eigenvectors of ZZᵀ above θλ. If ‖(I−P)K(I−P)‖₂ ≤ αλ and ‖VᵀPx‖² = (1±γ)‖ZᵀPx‖², the spectrum of M⁻¹A lies between\n" +
		"min_t [1+(√((1−γ)t)−√α)₊²]/(1+θ+t) and max_t [1+(√((1+γ)t)+√α)²]/(1+t).",
	Measured: "the ends of the spectrum over these, with the least α and γ that hold measured on random pairs; and on pairs of order 2 and 3 that come to the bounds as their largest eigenvalue grows.",
	Fails:    "an inequality that loses a square root's cross term, or a P above another threshold.",
	run:      checkGeneral,
}

// conditions returns the least α and γ for which K and ZZᵀ meet the conditions at θ; ok is false
// if γ ≥ 1.
func conditions(k, zz *mat.SymDense, lambda, theta float64) (c adapt.Test, ok bool) {
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
	c = adapt.Test{Theta: theta}
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
	return c, c.Gamma < 1
}

func checkGeneral(e *experiment) {
	out := e.sample("trial", e.trials, 2, func(i int, g rng.Stream, out []float64) {
		for t := uint64(0); ; t++ { // until γ < 1
			g := g.Sub("try", t)
			p := newTwin(g, 8)
			lambda := spread(g.Sub("lambda"), 0, 1e-2, 1e2)
			c, ok := conditions(p.k, outer(whole(p.z)), lambda, uniform(g.Sub("theta"), 0, 0, 0.6))
			if !ok {
				continue
			}
			v := p.spectrum(e, lambda, lambda, forms[i%len(forms)])
			low, high := e.parts.TestBound(c)
			out[0], out[1] = low/v[0], v[len(v)-1]/high
			return
		}
	})
	e.atMost("the lower bound over the least eigenvalue", out[0], 1+1e-6)
	e.atMost("the largest eigenvalue over the upper bound", out[1], 1+1e-6)
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
		e.atMost(fmt.Sprintf("the largest eigenvalue over the upper bound, %s, pairs that come to it", c.Name), highs, 1+1e-6)
		e.atMost(fmt.Sprintf("the lower bound over the least eigenvalue, %s, pairs that come to it", c.Name), lows, 1+1e-6)
	}
}

// tightPair returns the ends of the spectrum for K = vvᵀ, v = (v₁, v₂), and ZZᵀ = diag(z₁, z₂) at
// λ = 1.
func (e *experiment) tightPair(z1, z2, v1, v2 float64) []float64 {
	z := mat.NewDense(2, 2, []float64{math.Sqrt(z1), 0, 0, math.Sqrt(z2)})
	p := &twin{k: outer(mat.NewDense(2, 1, []float64{v1, v2})), z: rounded(z)}
	return p.spectrum(e, 1, 1, precond.FormEigen)
}
