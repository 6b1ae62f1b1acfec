package theory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
	"github.com/krrlab/lab/plots"
)

// presets are the constants that are checked: the constants printed in the paper, and constants that guarantee κ ≤ 5
// and κ ≤ 10.
var presets = []sketchsize.ConditionConstants{sketchsize.PaperConstants, sketchsize.Kappa5Constants,
	sketchsize.Kappa10Constants}

// perturbedFeatures is a distribution of linear feature maps for the kernel xᵀz with a controlled error. The maps are
// φ(x) = (I + ε·N/√d)ᵀx with standard normal N and ε uniform in [0, maxPerturbation]. Features beyond the first d are
// 0.
type perturbedFeatures struct{ maxPerturbation float64 }

// String implements feature.Dist.
func (f perturbedFeatures) String() string {
	return fmt.Sprintf("linear features off by up to %g", f.maxPerturbation)
}

// Sample implements feature.Dist. It returns an error if s < d.
func (f perturbedFeatures) Sample(d, s int, g rng.Stream) (feature.Map, error) {
	if s < d {
		return nil, fmt.Errorf("%v: %d features of points of dimension %d", f, s, d)
	}
	m := perturbedMap{s: s, a: gaussianMatrix(g, d, d)}
	m.a.Scale(f.maxPerturbation*g.Sub("epsilon").Float64(0)/math.Sqrt(float64(d)), m.a)
	m.a.Add(m.a, identity(d))
	return m, nil
}

// perturbedMap is the feature map φ(x) = Aᵀx, with zeros up to s features.
type perturbedMap struct {
	s int
	a *mat.Dense // the d×d matrix A
}

// Dims implements feature.Map.
func (m perturbedMap) Dims() (d, s int) {
	d, _ = m.a.Dims()
	return d, m.s
}

// MapTo implements feature.Map.
func (m perturbedMap) MapTo(z []float64, ld int, x points.Points, _ *feature.Workspace) {
	n, d := x.Dims()
	row := make([]float64, d)
	for i := range n {
		x.RowTo(row, i)
		out := z[i*ld : i*ld+m.s]
		clear(out)
		for c, v := range row {
			floats.AddScaled(out[:d], v, m.a.RawRowView(c))
		}
	}
}

// outcome is the verdict of the test on one rung of the ladder, with exact values from dense linear algebra.
type outcome struct {
	verdict sketchsize.Verdict
	worst   float64 // larger one of α and γ, each divided by its limit; the conditions hold if it is at most 1
	kappa   float64 // κ(M⁻¹A)
}

// testProblem is a problem that the test of Theorem 7 is run on.
type testProblem struct {
	name   string
	k      kernel.Polynomial
	x      *points.Dense
	dist   feature.Dist
	lambda float64
	s      int // number of features of the first rung; the next rungs have 2s and 4s
}

// testProblems returns the two problems for a preset. In the first, the kernel is xᵀz, the eigenvalues of K lie on both
// sides of λ, and the features are perturbed so that some of the draws meet the conditions. The second is TensorSketch
// for a polynomial kernel.
func (e *experiment) testProblems(c sketchsize.ConditionConstants) []testProblem {
	const n, d = 70, 10
	maxPerturbation := map[string]float64{sketchsize.PaperConstants.Name: 0.08, sketchsize.Kappa5Constants.Name: 0.22,
		sketchsize.Kappa10Constants.Name: 0.45}[c.Name]
	g := e.random.Sub("design")
	leftSingular := orthogonal(g.Sub("left"), n).Slice(0, n, 0, d)
	x := mat.DenseCopyOf(leftSingular)
	// Some μ_i/λ are much larger than 1, and none is between θ and α, where no features meet the conditions.
	x.Apply(func(_, j int, v float64) float64 { return v * math.Sqrt(math.Pow(10, 2-0.3*float64(j))) }, x)
	x.Mul(x, orthogonal(g.Sub("right"), d))
	planePoints := randomPoints(g.Sub("few"), n, 2, 0.8)
	paddedPoints := points.NewDense(n, 30, nil) // hash collisions are rare: 28 coordinates are 0
	for i := range n {
		copy(paddedPoints.Row(i), planePoints.Row(i))
	}
	return []testProblem{
		{"designed", homogeneous(1), rowsOf(x), perturbedFeatures{maxPerturbation}, 1, d},
		{"TensorSketch", kernel.Polynomial{Gamma: 1, Coef0: 0.5, Degree: 2}, paddedPoints,
			e.parts.TensorSketch(kernel.Polynomial{Gamma: 1, Coef0: 0.5, Degree: 2}), 1, 17},
	}
}

// searchDelta is the probability with which the test may accept a rung wrongly, for a whole ladder.
const searchDelta = 0.05

// runLadder runs the test once on a ladder of at most three rungs, which are numbers of features, and returns the
// outcomes of the rungs that it reached. The confidence is for the whole ladder.
func (p testProblem) runLadder(e *experiment, op *gram.Matrix, k *mat.SymDense, c sketchsize.ConditionConstants,
	g rng.Stream) (out []outcome) {
	search := sketchsize.Problem{K: op, X: p.x, Map: p.dist, Lambda: p.lambda, Error: op.Choice().Error}
	result := must(e.parts.Search(e.ctx, search, &sketchsize.Options{Test: sketchsize.Theorem7, Constants: c,
		First: p.s,
		Max:   4 * p.s, Confidence: 1 - searchDelta}, g))
	for _, rung := range result.Rungs {
		m := must(feature.Doubling{Dist: p.dist, First: p.s}.Sample(p.x.D, rung.S, g.Sub("features", 0)))
		worst, kappa := p.conditionRatio(e, k, c, m)
		out = append(out, outcome{rung.Verdict, worst, kappa})
	}
	return out
}

// conditionRatio returns the larger one of α and γ divided by its limit, and κ, for a draw of the features.
func (p testProblem) conditionRatio(e *experiment, k *mat.SymDense, c sketchsize.ConditionConstants,
	m feature.Map) (worst, kappa float64) {
	z := must(feature.Matrix(e.ctx, m, p.x, nil))
	met := conditions(k, timesTranspose(toFloat64(z)), p.lambda, c.Theta)
	spectrum := (&matrixPair{k: k, z: z}).spectrum(e, p.lambda, p.lambda, precond.FormEigen)
	return math.Max(met.Alpha/c.Alpha, met.Gamma/c.Gamma), conditionNumber(spectrum)
}

// checkTheorem7 compares the verdicts of the test of Theorem 7 with the exact conditions, and κ with its bound.
func checkTheorem7(e *experiment) {
	for _, c := range presets {
		low, high := e.parts.SpectrumBounds(c)
		for _, p := range e.testProblems(c) {
			op := e.storedMatrix(p.k, p.x, p.lambda)
			k := kernelMatrix(p.k, p.x)
			var rungCount, metCount, missedCount atomic.Int64
			name := p.name + ", " + c.Name
			e.runTrials(name, func(_ int, g rng.Stream, t *trial) {
				falseAccept, falseReject := 0.0, 0.0
				ladder := p.runLadder(e, op, k, c, g)
				rungCount.Add(int64(len(ladder)))
				for _, rung := range ladder {
					accepted := rung.verdict == sketchsize.Accept
					if rung.worst <= 1 {
						metCount.Add(1)
						if !accepted {
							missedCount.Add(1)
						}
					}
					if accepted {
						t.checkProbability("share of κ above the bound where accepted, "+name, rung.kappa*low/high,
							1+1e-6, searchDelta)
					}
					// Z is rounded to float32 both in the test and in the exact values.
					if accepted && !(rung.worst <= 1+1e-6) {
						falseAccept = 1
					}
					if rung.verdict == sketchsize.Reject && rung.worst < 1-1e-6 {
						falseReject = 1
					}
				}
				t.checkProbability("share of ladders with a false accept, "+name, falseAccept, 0.5, searchDelta)
				t.checkAtMost("false rejects, "+name, falseReject, 0.5)
			})
			total, metTotal := float64(rungCount.Load()), float64(metCount.Load())
			missedShare := float64(missedCount.Load()) / math.Max(metTotal, 1)
			e.addMeasure(Measure{Name: "share of rungs that meet the conditions and were not accepted, " + name,
				Value: missedShare, Limit: 0.5, Ratio: missedShare / 0.5})
			e.requireBetween("share of rungs that meet the conditions (wanted: neither none nor all), "+name,
				metTotal/total, 1, 0, 1)
			meanRungs := total / float64(e.trials)
			e.requireBetween("mean rungs climbed (wanted: more than one), "+name, meanRungs, 3, 1, math.Inf(1))
		}
	}
}

// figureTheorem7 draws κ of draws that meet the conditions, and its bounds.
func figureTheorem7(e *experiment) *plots.Figure {
	var series []plots.Series
	var lines []plots.RefLine
	for _, c := range presets {
		a := e.testProblems(c)[0]
		k := kernelMatrix(a.k, a.x)
		s := pointSeries(fmt.Sprintf("κ where the conditions hold, θ = %g, α = %g, γ = %g", c.Theta, c.Alpha, c.Gamma))
		low, high := e.parts.SpectrumBounds(c)
		draws := make([]outcome, max(minTrials, e.trials/4))
		e.forEachTrial("figure "+c.Name, len(draws), func(i int, g rng.Stream) {
			draws[i].worst, draws[i].kappa = a.conditionRatio(e, k, c, must(a.dist.Sample(a.x.D, a.s, g)))
		})
		slices.SortFunc(draws, func(a, b outcome) int { return cmp.Compare(a.worst, b.worst) })
		for _, draw := range draws {
			if draw.worst <= 1 {
				s.Add(draw.worst, draw.kappa)
			}
		}
		series = append(series, s)
		label := fmt.Sprintf("bound for θ = %g: %.3g", c.Theta, high/low)
		lines = append(lines, plots.RefLine{At: high / low, Label: label})
	}
	f := plots.Sweep("Theorem 7: what its conditions guarantee, and what they find", "the nearer condition over its "+
		"limit", "κ(M⁻¹A)", nil, series...)
	f.X.Log = false
	f.HLines = lines
	return f
}
