package compare_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestEvidence checks that the intervals of ln det(K+λI) and −2 ln p(y) cover the values from a dense Cholesky
// factorization for enough seeds: for K in float64 and in 16 bits, for one and for several Lanczos processes, and for
// four kinds of M. An M whose determinant is unknown has no interval. The best estimate from several processes must
// cover them as often.
func TestEvidence(t *testing.T) {
	const n = 200
	seeds := suite.Scale(8, 8, 200)
	for _, test := range []struct {
		storage    gram.Storage
		probes     int
		confidence float64
	}{{gram.Float64, 1, 0.95}, {gram.Float64, 10, 0.95}, {gram.Float64, 4, 0.5}, {gram.Fixed16, 2, 0.8}} {
		// For each preconditioner: the number of intervals, the number that miss, and the sum of their widths.
		intervals, misses, widths := map[string]int{}, map[string]int{}, map[string]float64{}
		withoutBound := 0 // number of seeds without a lower bound of λ_min
		ratios := 0.0     // sum of the widths of estimates, relative to the proved intervals
		for seed := range seeds {
			lab := testkit.Must(krrlab.New(datasets.SyntheticRegression(n, 3, 0.1, uint64(seed%4)), krrlab.Config{
				Kernel: kernel.Gaussian{Sigma: 1.5}, Lambda: 0.05, Solver: krrlab.PCG, Storage: test.storage,
				Seed: uint64(seed)}))
			var chol mat.Cholesky
			if !chol.Factorize(exactMatrix(t, lab)) {
				t.Fatal("A is not definite")
			}
			var coefficients mat.VecDense
			y := lab.Targets().ColView(0)
			testkit.OK(t, chol.SolveVecTo(&coefficients, y))
			wantLogDet := chol.LogDet()
			wantLikelihood := mat.Dot(y, &coefficients) + wantLogDet + n*math.Log(2*math.Pi)
			count := func(name string, logDet, likelihood *estimate.Interval) {
				if intervals[name]++; !logDet.Contains(wantLogDet) || !likelihood.Contains(wantLikelihood) {
					misses[name]++
				}
				widths[name] += logDet.Hi - logDet.Lo
			}
			result := testkit.Must(lab.Compare(t.Context(), krrlab.CompareOptions{Probes: test.probes, Steps: 60,
				Confidence: test.confidence, MaxExactN: -1, Width: 0.5, With: stage.Entries{
					{Text: "features features=60"}, {Text: "nystrom features=40 lambda-p=0.2"},
					{Text: "rpcholesky features=40 spectral=true"}, {Text: "vecchia features=20 neighbors=10"}}},
				krrlab.Given{M: identity(n), Name: "given"}))
			for _, row := range result.Rows {
				logDet, likelihood := row.LogDetA, row.Likelihood
				if row.Name == "given" {
					if logDet != nil || likelihood != nil {
						t.Errorf("of an M of which only the inverse is known: %v, %v", logDet, likelihood)
					}
					continue
				}
				if logDet == nil && likelihood == nil && row.Min.Lo == 0 && row.Name == "features features=60" {
					withoutBound++
					continue
				}
				if logDet == nil || likelihood == nil || logDet.Confidence != test.confidence {
					t.Fatalf("%s: %v, %v, %s", row.Name, logDet, likelihood, row.FailureReason)
				}
				for _, interval := range []*estimate.Interval{logDet, likelihood} {
					if !(interval.Lo <= interval.Value && interval.Value <= interval.Hi) {
						t.Errorf("%s: value %g outside of [%g, %g]", row.Name, interval.Value, interval.Lo, interval.Hi)
					}
				}
				count(row.Name, logDet, likelihood)
			}

			var best *pencil.Row // row with the narrowest estimate of ln det A
			for i := range result.Rows {
				if interval := result.Rows[i].LogDetEstimate; interval != nil && (best == nil ||
					interval.RelativeWidth() < best.LogDetEstimate.RelativeWidth()) {
					best = &result.Rows[i]
				}
			}
			if (best == nil) != (test.probes == 1) { // Student's t needs at least two processes
				t.Fatalf("%d processes, an estimate by %v", test.probes, best)
			}
			if best != nil {
				logDet := best.LogDetEstimate
				count("estimate", logDet, best.LikelihoodEstimate)
				ratios += (logDet.Hi - logDet.Lo) / (best.LogDetA.Hi - best.LogDetA.Lo)
				testkit.Contains(t, result.String(), fmt.Sprintf("(Student's t, %d Lanczos processes), estimated by",
					test.probes))
			}
			if seed == 0 {
				testkit.Contains(t, result.String(), "ln det(K+λI)", "−2 ln p(y) = ", "proved by")
			}
		}
		t.Logf("%v, %d processes: %d estimates, on average %.3g times as wide as the proved intervals", test.storage,
			test.probes, intervals["estimate"], ratios/float64(max(1, intervals["estimate"])))
		if withoutBound > seeds/4 {
			t.Errorf("%d of %d seeds have no interval", withoutBound, seeds)
		}
		for name, runs := range intervals {
			t.Logf("%v, %d processes, %g: %s missed %d of %d, mean width %.3g", test.storage, test.probes,
				test.confidence, name, misses[name], runs, widths[name]/float64(runs))
			// The number of misses is stochastically at most Binomial(runs, 1−confidence). The test fails if so many
			// misses have a probability below 1e-4.
			missDistribution := distuv.Binomial{N: float64(runs), P: 1 - test.confidence}
			if missCount := misses[name]; missCount > 0 && 1-missDistribution.CDF(float64(missCount)-1) < 1e-4 {
				t.Errorf("%s missed %d of %d, at %g", name, missCount, runs, test.confidence)
			}
		}
	}
}

// exactMatrix returns K+λI in float64, whatever the storage of the lab.
func exactMatrix(t *testing.T, lab *krrlab.Lab) *mat.SymDense {
	t.Helper()
	n, _ := lab.Targets().Dims()
	k := mat.NewDense(n, n, nil)
	testkit.OK(t, testkit.Must(lab.K(t.Context())).Exact(1e-12).DenseTo(t.Context(), k))
	return testkit.AddRidge(mat.NewSymDense(n, k.RawMatrix().Data), lab.Config().Lambda)
}

// TestLikelihoodOfWeights checks −2 ln p(y) of rows with weights W against a dense factor of K+λW⁻¹, for the original
// y: the targets of the lab are W^½y.
func TestLikelihoodOfWeights(t *testing.T) {
	const n, lambda = 80, 0.05
	data := datasets.SyntheticRegression(n, 2, 0.3, 3)
	for i := range n {
		data.Weights = append(data.Weights, 0.1+float64(i%7))
	}
	gauss := kernel.Gaussian{Sigma: 1.5}
	lab := testkit.Must(krrlab.New(data, krrlab.Config{Kernel: gauss, Lambda: lambda, Storage: gram.Float64}))
	a, y := testkit.KernelMatrix(gauss, data.X), mat.NewVecDense(n, nil)
	for i, weight := range data.Weights {
		y.SetVec(i, lab.Targets().At(i, 0)/math.Sqrt(weight))
		a.SetSym(i, i, 1+lambda/weight)
	}
	var chol mat.Cholesky
	var coefficients mat.VecDense
	if !chol.Factorize(a) || chol.SolveVecTo(&coefficients, y) != nil {
		t.Fatal("K+λW⁻¹ is not definite")
	}
	want := mat.Dot(y, &coefficients) + chol.LogDet() + n*math.Log(2*math.Pi)
	result := testkit.Must(lab.Compare(t.Context(), krrlab.CompareOptions{Confidence: 0.999,
		With: stage.Entries{{Text: "rpcholesky features=40"}}}))
	// The interval must contain the value, and not be trivially wide.
	if likelihood := result.Rows[0].Likelihood; likelihood == nil || !likelihood.Contains(want) ||
		likelihood.RelativeWidth() > 6 {
		t.Errorf("−2 ln p(y) is %v, want %g", likelihood, want)
	}
}
