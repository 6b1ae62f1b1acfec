package multilevel

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

// TestCoverage counts how often the intervals of ‖ZZᵀ−K‖₂ and κ(M⁻¹A) both contain the values from dense eigenvalues:
// at least in 90 % of the seeds for a confidence of 0.95. Z is narrower than n, wider than n, or from a chain.
func TestCoverage(t *testing.T) {
	const n, lambda, lambdaP = 120, 0.05, 0.1
	seeds := suite.Scale(20, 40, 200)
	p, k := newTestProblem(t, n, lambda, lambdaP)
	for _, test := range []struct {
		name     string
		width    int
		sketches sketch.Composition
	}{{"fewer features than points", 50, nil}, {"more features than points", 300, nil}, {"chain", 300, twoSketches}} {
		covered, narrow := 0, 0 // number of pairs of intervals that contain both values, and that are both narrow
		for seed := range uint64(seeds) {
			featureMap := drawFeatures(t, test.width, test.sketches, seed)
			measurement := testkit.Must(measure(t.Context(), p, featureMap, rng.New(seed).Sub("measure"),
				completeOptions(Options{})))
			norm, kappa := DenseReference(t, OuterProduct(featureMap, p.X), k, lambda, lambdaP)
			const slack = 1e-4 // relative; Z is rounded to float32
			contains := func(lo, hi, v float64) bool { return lo <= v*(1+slack) && v*(1-slack) <= hi }
			if contains(measurement.Error.Lo, measurement.Error.Hi, norm) &&
				contains(measurement.Kappa.Lo, measurement.Kappa.Hi, kappa) {
				covered++
			}
			if measurement.Kappa.Hi <= 1.5*measurement.Kappa.Lo && measurement.Error.Hi <= 1.3*measurement.Error.Lo {
				narrow++
			}
			if measurement.Error.Confidence != 0.975 || measurement.Kappa.Confidence != 0.95 ||
				!measurement.Converged || measurement.TrueResidual > 1e-3 || measurement.SkipReason != "" {
				t.Fatalf("%s, seed %d: %+v", test.name, seed, measurement)
			}
		}
		t.Logf("%s: %d of %d pairs of intervals cover, %d are narrow", test.name, covered, seeds, narrow)
		if 10*covered < 9*seeds || 10*narrow < 9*seeds {
			t.Errorf("%s: %d of %d pairs of intervals cover, %d are narrow; want 90 %%", test.name, covered, seeds,
				narrow)
		}
	}
}

// TestFewLanczosSteps checks that the error ‖ZZᵀ−K‖₂ gives κ a valid upper bound if the Lanczos process is too short to
// bound λ_min.
func TestFewLanczosSteps(t *testing.T) {
	const n, lambda = 120, 0.01
	p, k := newTestProblem(t, n, lambda, lambda)
	featureMap := drawFeatures(t, 20, nil, 3)
	measurement := testkit.Must(measure(t.Context(), p, featureMap, rng.New(1),
		completeOptions(Options{steps: 4, width: 1e-3})))
	_, kappa := DenseReference(t, OuterProduct(featureMap, p.X), k, lambda, lambda)
	if math.IsInf(measurement.Kappa.Hi, 1) || measurement.Kappa.Hi < kappa || measurement.Kappa.Lo > kappa {
		t.Errorf("κ in [%g, %g] after 4 steps, want finite bounds of %g", measurement.Kappa.Lo, measurement.Kappa.Hi,
			kappa)
	}
}

// TestSkippedLevel checks that only the error is measured for a level whose preconditioner takes too many operations or
// too much memory.
func TestSkippedLevel(t *testing.T) {
	const n = 300
	p, _ := newTestProblem(t, n, 0.1, 0.1)
	featureMap := drawFeatures(t, 90, nil, 1)
	unlimited := testkit.Must(measure(t.Context(), p, featureMap, rng.New(1), completeOptions(Options{})))
	for unit, options := range map[string]Options{"flops": {Work: 1e5},
		"GB": {memory: accel.Budget{Limit: 4*n*90 + 1000}}} {
		limited := testkit.Must(measure(t.Context(), p, featureMap, rng.New(1), completeOptions(options)))
		if !strings.Contains(limited.SkipReason, unit) || limited.Iterations != 0 || limited.Form != "" {
			t.Errorf("a limit in %s: %+v", unit, limited)
		}
		if limited.Error.Lo != unlimited.Error.Lo || limited.Error.Hi != unlimited.Error.Hi {
			t.Errorf("a limit in %s: error %v, without a limit %v", unit, limited.Error, unlimited.Error)
		}
	}
}

// TestProgressAndCancellation checks that each part of a measurement reports progress and ends if its context is
// canceled.
func TestProgressAndCancellation(t *testing.T) {
	p, _ := newTestProblem(t, 200, 0.1, 0.1)
	featureMap := drawFeatures(t, 50, nil, 1)
	for _, part := range []string{"start", "features", "error", "factor", "kappa", "solve"} {
		ctx, cancel := context.WithCancel(t.Context())
		seen := part == "start"
		if seen {
			cancel()
		}
		_, err := measure(ctx, p, featureMap, rng.New(1),
			completeOptions(Options{progress: func(_, step string, done, total int) {
				if step == part {
					seen = true
					cancel()
				}
			}}))
		if !seen || !errors.Is(err, context.Canceled) {
			t.Errorf("canceled in %s: seen %v, error %v", part, seen, err)
		}
		cancel()
	}
}
