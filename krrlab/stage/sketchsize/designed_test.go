package sketchsize

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// design describes points and a sketch for which about 30 to 70 % of the draws of Z have κ ≤ 5. The kernel is the
// polynomial (xᵀz+½)² on 150 points of R^r whose coordinates have the standard deviations 1, ρ, ρ², …; K has
// (r+1)(r+2)/2 nonzero eigenvalues. In these coordinates few hashes collide, so TensorSketch is either exact or far
// off. If the points are rotated into R⁴⁰, many coordinates collide and none dominates.
type design struct {
	name    string
	r       int     // dimension of the points before they are rotated
	rho     float64 // ρ
	rotated bool    // the points are rotated into R⁴⁰
	lambda  float64
	s       int // number of features of a draw
}

// designs are those of TestDecisions. In the second one, the eigenvalues of K reach down to about λ.
var designs = []design{
	{name: "not rotated", r: 3, rho: 0.8, lambda: 1, s: 64},
	{name: "eigenvalues down to λ", r: 4, rho: 0.6, lambda: 1, s: 128},
	{name: "rotated", r: 3, rho: 0.8, rotated: true, lambda: 1, s: 64},
}

// points returns the points of the design.
func (c design) points() *points.Dense {
	const n, d = 150, 40
	y := scaledNormals(n, c.r, c.rho)
	if !c.rotated {
		return y
	}
	var x mat.Dense
	x.Mul(mat.NewDense(n, c.r, y.Data), testkit.RandomMatrix(78, c.r, d))
	x.Scale(1/math.Sqrt(d), &x) // the factor Q = RandomMatrix/√d has QQᵀ ≈ I
	return points.NewDense(n, d, x.RawMatrix().Data)
}

// tally counts the decisions of a test, and those that contradict the dense reference.
type tally struct {
	accepts      int
	falseAccepts int // accepted although κ is above the bound of the test
	falseRejects int // not accepted although κ ≤ 5; these are allowed
	unmet        int // accepted although a condition of the test does not hold
	missed       int // not accepted although all conditions of the test hold
}

// TestDecisions counts over seeds how often the tests of Theorem 7 and of κ contradict dense linear algebra. False
// accepts must be at most as frequent as the confidence of 95 % allows. The long suite uses 200 seeds.
func TestDecisions(t *testing.T) {
	seeds := uint64(suite.Scale(24, 24, 200))
	const confidence = 0.95
	for _, c := range designs {
		k := kernel.Polynomial{Gamma: 1, Coef0: 0.5, Degree: 2}
		x := c.points()
		p, dense := newTestProblem(t, k, x, c.lambda), testkit.KernelMatrix(k, x)
		z := feature.TensorSketch{Kernel: k}
		type draw struct {
			seed  uint64
			theta float64
		}
		references := make(map[draw]reference)
		referenceOf := func(seed uint64, theta float64) reference {
			d := draw{seed, theta}
			if _, computed := references[d]; !computed {
				references[d] = newReference(t, dense, denseFeatures(t, z, x, c.s, c.s, rng.New(seed)), c.lambda, theta)
			}
			return references[d]
		}
		within5 := 0 // number of draws with κ ≤ 5
		for seed := range seeds {
			if referenceOf(seed, Kappa5Constants.Theta).kappa <= 5 {
				within5++
			}
		}
		share := float64(within5) / float64(seeds)
		t.Logf("%s: κ ≤ 5 for %d of %d draws", c.name, within5, seeds)
		if share < 0.3 || share > 0.7 {
			t.Errorf("%s: κ ≤ 5 for %.0f %% of the draws, want 30 to 70", c.name, 100*share)
		}
		for _, o := range []Options{
			{Test: Theorem7, Constants: PaperConstants}, {Test: Theorem7, Constants: Kappa5Constants},
			{Test: Theorem7, Constants: Kappa10Constants},
			{Test: Kappa, Target: 5},
		} {
			o.First, o.Max, o.Confidence = c.s, c.s, confidence
			var n tally
			for seed := range seeds {
				theta := o.Constants.Theta
				if o.Test == Kappa {
					theta = Kappa5Constants.Theta
				}
				n.count(searchSeed(t, p, o, seed).Rungs[0], referenceOf(seed, theta), o)
			}
			t.Logf("%s, %s %s: %+v", c.name, o.Test, o.Constants.Name, n)
			if limit := (1 - confidence) * float64(seeds); float64(n.falseAccepts) > limit || float64(n.unmet) > limit {
				t.Errorf("%s, %s %s: %+v, want at most %.0f false accepts", c.name, o.Test, o.Constants.Name, n, limit)
			}
			if !c.rotated && o.Constants != PaperConstants && (n.accepts == 0 || n.accepts == int(seeds)) {
				t.Errorf("%s, %s %s: %d of %d accepted", c.name, o.Test, o.Constants.Name, n.accepts, seeds)
			}
			if float64(n.missed) > 0.1*float64(seeds) {
				t.Errorf("%s, %s %s: %+v, want at most a tenth of the draws missed", c.name, o.Test, o.Constants.Name,
					n)
			}
		}
	}
}

// count adds the decision about rung r, for which the dense reference is ref.
func (n *tally) count(r Rung, ref reference, o Options) {
	bound, holds := o.Target, ref.kappa <= o.Target
	if c := o.Constants; o.Test == Theorem7 {
		bound = c.Bound()
		holds = ref.norm <= c.Alpha && ref.low >= 1-c.Gamma && ref.high <= 1+c.Gamma
	}
	if r.Verdict == Accept {
		n.accepts++
		if ref.kappa > bound*(1+1e-6) {
			n.falseAccepts++
		}
		if !holds {
			n.unmet++
		}
		return
	}
	if ref.kappa <= 5 {
		n.falseRejects++
	}
	if holds {
		n.missed++
	}
}
