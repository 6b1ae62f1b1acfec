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

// design is a spectrum for which about 30 to 70 % of the draws of Z have κ ≤ 5. It is that of the polynomial kernel
// (xᵀz+½)² on 150 points of R^r whose coordinates have the standard deviations 1, ρ, ρ², …, which has (r+1)(r+2)/2
// nonzero eigenvalues. In these coordinates few hashes collide, so TensorSketch is either exact or far off. If the
// points are rotated into R⁴⁰, many coordinates collide and none dominates. In the second design the eigenvalues
// reach down to about λ.
type design struct {
	name    string
	r       int     // dimension of the points before they are rotated
	rho     float64 // ρ
	rotated bool    // the points are rotated into R⁴⁰
	lambda  float64
	s       int // number of features of a draw
}

// designs are the spectra of TestDecisions.
var designs = []design{
	{"not rotated", 3, 0.8, false, 1, 64},
	{"down to λ", 4, 0.6, false, 1, 128},
	{"rotated", 3, 0.8, true, 1, 64},
}

// points returns the points of the design.
func (c design) points() *points.Dense {
	const n, d = 150, 40
	y := scaledNormals(n, c.r, c.rho)
	if !c.rotated {
		return y
	}
	q := mat.NewDense(c.r, d, nil) // QQᵀ ≈ I
	rng.New(78).Normals(q.RawMatrix().Data, 0)
	var x mat.Dense
	x.Mul(mat.NewDense(n, c.r, y.Data), q)
	x.Scale(1/math.Sqrt(d), &x)
	return points.NewDense(n, d, x.RawMatrix().Data)
}

// tally counts the decisions of a test that contradict the dense reference.
type tally struct {
	accepts      int
	falseAccepts int // κ above the bound
	falseRejects int // κ ≤ 5, not accepted; these are allowed
	unmet        int // accepted although a condition does not hold
	missed       int // not accepted although both conditions hold
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
			if _, ok := references[d]; !ok {
				references[d] = newReference(t, dense, denseFeatures(t, z, x, c.s, c.s, rng.New(seed)), c.lambda, theta)
			}
			return references[d]
		}
		small := 0
		for seed := range seeds {
			if referenceOf(seed, Kappa5Constants.Theta).kappa <= 5 {
				small++
			}
		}
		share := float64(small) / float64(seeds)
		t.Logf("%s: κ ≤ 5 for %d of %d draws", c.name, small, seeds)
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
				r := searchSeed(t, p, o, seed).Rungs[0]
				theta := o.Constants.Theta
				if o.Test == Kappa {
					theta = Kappa5Constants.Theta
				}
				n.count(r, referenceOf(seed, theta), o)
			}
			t.Logf("%s, %s %s: %+v", c.name, o.Test, o.Constants.Name, n)
			if limit := (1 - confidence) * float64(seeds); float64(n.falseAccepts) > limit || float64(n.unmet) > limit {
				t.Errorf("%s, %s %s: %+v, want at most %.0f false accepts", c.name, o.Test, o.Constants.Name, n, limit)
			}
			if !c.rotated && o.Constants != PaperConstants && (n.accepts == 0 || n.accepts == int(seeds)) {
				t.Errorf("%s, %s %s: %d of %d accepted", c.name, o.Test, o.Constants.Name, n.accepts, seeds)
			}
			if float64(n.missed) > 0.1*float64(seeds) {
				t.Errorf("%s, %s %s: %+v, %d met the conditions and were not accepted", c.name, o.Test,
					o.Constants.Name, n, n.missed)
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
