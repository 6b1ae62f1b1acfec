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
	s       int // number of features of each draw of Z
}

// designs are the designs of TestDecisions. In the second one, the eigenvalues of K reach down to about λ.
var designs = []design{
	{name: "not rotated", r: 3, rho: 0.8, lambda: 1, s: 64},
	{name: "eigenvalues down to λ", r: 4, rho: 0.6, lambda: 1, s: 128},
	{name: "rotated", r: 3, rho: 0.8, rotated: true, lambda: 1, s: 64},
}

// newPoints returns the points of the design.
func (d design) newPoints() *points.Dense {
	const n, dim = 150, 40
	y := scaledNormals(n, d.r, d.rho)
	if !d.rotated {
		return y
	}
	var x mat.Dense
	x.Mul(mat.NewDense(n, d.r, y.Data), testkit.RandomMatrix(78, d.r, dim))
	x.Scale(1/math.Sqrt(dim), &x) // the factor Q = RandomMatrix/√d has QQᵀ ≈ I
	return points.NewDense(n, dim, x.RawMatrix().Data)
}

// tally counts the decisions of a test, and those that contradict the dense reference.
type tally struct {
	accepts      int
	falseAccepts int // accepted although κ is above the bound of the test
	falseRejects int // not accepted although κ ≤ 5; these are allowed
	unmet        int // accepted although a condition of the test is not met
	missed       int // not accepted although all conditions of the test hold
}

// TestDecisions counts over seeds how often the tests of Theorem 7 and of κ contradict dense linear algebra. False
// accepts must be at most as frequent as the confidence of 95 % allows. The long suite uses 200 seeds.
func TestDecisions(t *testing.T) {
	seeds := uint64(suite.Scale(24, 24, 200))
	const confidence = 0.95
	for _, design := range designs {
		k := kernel.Polynomial{Gamma: 1, Coef0: 0.5, Degree: 2}
		x := design.newPoints()
		p, dense := newTestProblem(t, k, x, design.lambda), testkit.KernelMatrix(k, x)
		dist := feature.TensorSketch{Kernel: k}
		type draw struct {
			seed  uint64
			theta float64
		}
		references := make(map[draw]reference)
		referenceOf := func(seed uint64, theta float64) reference {
			key := draw{seed, theta}
			if _, computed := references[key]; !computed {
				references[key] = newReference(t, dense, denseFeatures(t, dist, x, design.s, design.s, rng.New(seed)),
					design.lambda, theta)
			}
			return references[key]
		}
		within5 := 0 // number of draws with κ ≤ 5
		for seed := range seeds {
			if referenceOf(seed, Kappa5Constants.Theta).kappa <= 5 {
				within5++
			}
		}
		share := float64(within5) / float64(seeds)
		t.Logf("%s: κ ≤ 5 for %d of %d draws", design.name, within5, seeds)
		if share < 0.3 || share > 0.7 {
			t.Errorf("%s: κ ≤ 5 for %.0f %% of the draws, want 30 to 70", design.name, 100*share)
		}
		for _, options := range []Options{
			{Test: Theorem7, Constants: PaperConstants}, {Test: Theorem7, Constants: Kappa5Constants},
			{Test: Theorem7, Constants: Kappa10Constants},
			{Test: Kappa, Target: 5},
		} {
			options.First, options.Max, options.Confidence = design.s, design.s, confidence
			var counts tally
			for seed := range seeds {
				theta := options.Constants.Theta
				if options.Test == Kappa {
					theta = Kappa5Constants.Theta
				}
				counts.count(searchSeed(t, p, options, seed).Rungs[0], referenceOf(seed, theta), options)
			}
			t.Logf("%s, %s %s: %+v", design.name, options.Test, options.Constants.Name, counts)
			if limit := (1 - confidence) * float64(seeds); float64(counts.falseAccepts) > limit ||
				float64(counts.unmet) > limit {
				t.Errorf("%s, %s %s: %+v, want at most %.0f false accepts", design.name, options.Test,
					options.Constants.Name, counts, limit)
			}
			if !design.rotated && options.Constants != PaperConstants && (counts.accepts == 0 ||
				counts.accepts == int(seeds)) {
				t.Errorf("%s, %s %s: %d of %d accepted", design.name, options.Test, options.Constants.Name,
					counts.accepts, seeds)
			}
			if float64(counts.missed) > 0.1*float64(seeds) {
				t.Errorf("%s, %s %s: %+v, want at most a tenth of the draws missed", design.name, options.Test,
					options.Constants.Name, counts)
			}
		}
	}
}

// count adds the decision about rung r, for which the dense reference is ref.
func (t *tally) count(rung Rung, ref reference, options Options) {
	bound, holds := options.Target, ref.kappa <= options.Target
	if constants := options.Constants; options.Test == Theorem7 {
		bound = constants.Bound()
		holds = ref.norm <= constants.Alpha && ref.low >= 1-constants.Gamma && ref.high <= 1+constants.Gamma
	}
	if rung.Verdict == Accept {
		t.accepts++
		if ref.kappa > bound*(1+1e-6) {
			t.falseAccepts++
		}
		if !holds {
			t.unmet++
		}
		return
	}
	if ref.kappa <= 5 {
		t.falseRejects++
	}
	if holds {
		t.missed++
	}
}
