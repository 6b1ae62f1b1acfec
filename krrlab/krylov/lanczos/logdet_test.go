package lanczos

import (
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestQuadratureBounds checks that v₁ᵀln(A)v₁ lies between the Gauss–Radau and the Gauss rule after any number of
// steps, for any lower bound of the spectrum, and that both agree after n steps.
func TestQuadratureBounds(t *testing.T) {
	const n = 60
	for name, spectrum := range spectra(n) {
		if name == "indefinite" {
			continue
		}
		smallest := slices.Min(spectrum)
		start := make([]float64, n)
		rng.New(3).Normals(start, 0)
		var want, norm float64
		for i, coordinate := range start {
			want, norm = want+coordinate*coordinate*math.Log(spectrum[i]), norm+coordinate*coordinate
		}
		want /= norm
		for _, k := range []int{1, 2, 5, 20, n} {
			result := run(t, diagonal(spectrum), &Options{Steps: k, Tol: -1, Start: rng.New(3)})
			var high float64
			nodes, weights := Quadrature(result.Alpha, result.Beta)
			for i, weight := range weights {
				high += weight * math.Log(nodes[i])
			}
			for _, fraction := range []float64{1, 0.5, 1e-6} {
				low := result.logRules(fraction * smallest).radau
				if !(low <= want+1e-10 && want <= high+1e-10) || k == n && high-low > 1e-9 {
					t.Errorf("%s, %d steps, μ = %g·λ_min: %g not in [%g, %g]", name, k, fraction, want, low, high)
				}
			}
		}
	}
	if low := (&Result{Steps: 1, Alpha: []float64{1}, Beta: []float64{0.5}}).logRules(2).radau; !math.IsInf(low, -1) {
		t.Errorf("the Gauss–Radau rule with a number above the smallest eigenvalue is %g, want −Inf", low)
	}
}

// TestLogDet counts over seeds how often the interval of ln det misses, as TestCoverage does: with a known and an
// unknown smallest eigenvalue, few and many steps, and one or several starts.
func TestLogDet(t *testing.T) {
	seeds := suite.Scale(40, 40, 1000)
	const n = 100
	for name, spectrum := range spectra(n) {
		if name == "indefinite" {
			continue
		}
		var want float64
		for _, eigenvalue := range spectrum {
			want += math.Log(eigenvalue)
		}
		for _, test := range []struct {
			confidence, smallest float64
			steps, starts        int
		}{{0.95, 0, 40, 1}, {0.95, slices.Min(spectrum), 12, 1}, {0.8, slices.Min(spectrum) / 100, 20, 4},
			{0.95, slices.Min(spectrum), 30, 10}, {0.1, slices.Min(spectrum), 30, 1}} {
			misses, unbounded, widths, estimateMisses := 0, 0, 0.0, 0
			for seed := range seeds {
				var runs []*Result
				for i := range test.starts {
					runs = append(runs, run(t, diagonal(spectrum), &Options{Steps: test.steps, Tol: -1,
						Confidence: test.confidence,
						Definite:   true, Start: rng.New(uint64(seed)).Sub("start", uint64(i))}))
				}
				proved, student := LogDet(runs, test.smallest)
				if test.starts == 1 != math.IsInf(student.Hi, 1) || student.Value != proved.Value {
					t.Errorf("%s: %v, estimated %v", name, proved, student)
				}
				if !student.Contains(want) {
					estimateMisses++
				}
				switch width := proved.Hi - proved.Lo; {
				case !(width < math.Inf(1)):
					unbounded++
				case !proved.Contains(want):
					misses++
					fallthrough
				default:
					widths += width
					if !isOrdered(proved) {
						t.Errorf("%s: %v", name, proved)
					}
				}
			}
			t.Logf("%s, ln det %.4g, %+v: %d of %d missed, %d estimates, %d unbounded, mean width %.3g", name, want,
				test, misses,
				seeds, estimateMisses, unbounded, widths/float64(seeds-unbounded))
			if p := probabilityAtLeast(seeds, estimateMisses, 1-test.confidence); p < 1e-4 {
				t.Errorf("%s, %+v: %d of %d estimates missed", name, test, estimateMisses, seeds)
			}
			if p := probabilityAtLeast(seeds, misses, 1-test.confidence); p < 1e-4 {
				t.Errorf("%s, %+v: %d of %d missed", name, test, misses, seeds)
			}
			if test.confidence < 0.5 && misses == 0 || test.smallest > 0 && unbounded > 0 {
				t.Errorf("%s, %+v: no failure, or no lower end in %d of %d: the bound is loose", name, test, unbounded,
					seeds)
			}
		}
	}
}

// TestLogDetInaccurate checks that inaccurate products widen the interval, and that one step is exact for a multiple of
// I.
func TestLogDetInaccurate(t *testing.T) {
	spectrum := spectra(200)["cluster"]
	calls := 0
	noisyRun := run(t, inexactProducts{diagonal(spectrum), 1e-3, &calls}, &Options{Steps: 30, Tol: -1})
	exactRun := run(t, diagonal(spectrum), &Options{Steps: 30, Tol: -1})
	noisy, _ := LogDet([]*Result{noisyRun}, 0.1)
	exact, _ := LogDet([]*Result{exactRun}, 0.1)
	if widening := (noisy.Hi - noisy.Lo) - (exact.Hi - exact.Lo); widening < 200*noisyRun.Slack {
		t.Errorf("interval %v, with exact products %v, slack %g", noisy, exact, noisyRun.Slack)
	}
	var sum float64
	for _, eigenvalue := range spectrum {
		sum += math.Log(eigenvalue)
	}
	if !noisy.Contains(sum) {
		t.Errorf("interval %v without ln det = %g", noisy, sum)
	}
	// One step is exact for a multiple of I and for order 1.
	for _, multipleOfI := range [][]float64{{3, 3, 3, 3}, {0.25}} {
		want := float64(len(multipleOfI)) * math.Log(multipleOfI[0])
		interval, _ := LogDet([]*Result{testkit.Must(Run(t.Context(), diagonal(multipleOfI), nil))}, 0)
		if math.Abs(interval.Lo-want) > 1e-4 || math.Abs(interval.Hi-want) > 1e-4 {
			t.Errorf("%v: %v", multipleOfI, interval)
		}
	}
}

// TestLogDetOfFailedQuadrature checks that a run whose quadrature fails makes the result NaN or unbounded, and does not
// count as 0.
func TestLogDetOfFailedQuadrature(t *testing.T) {
	result := run(t, diagonal(spectra(20)["geometric"]), &Options{Steps: 5, Tol: -1, Start: rng.New(3)})
	broken := *result
	broken.Alpha = slices.Repeat([]float64{math.NaN()}, len(result.Alpha))
	if nodes, _ := Quadrature(broken.Alpha, broken.Beta); nodes != nil {
		t.Fatal(nodes)
	}
	if proved, student := LogDet([]*Result{result, &broken}, 0.5); !math.IsNaN(proved.Value+proved.Lo) ||
		!math.IsNaN(student.Hi) {
		t.Errorf("%v, %v", proved, student)
	}
	if gap, deviation := broken.LogDetSpread(0.5); !math.IsInf(gap, 1) || !math.IsInf(deviation, 1) {
		t.Errorf("gap %g, deviation %g", gap, deviation)
	}
	// Here only the last element of the Gauss–Radau matrix overflows.
	huge := *result
	huge.Beta = slices.Clone(result.Beta)
	huge.Beta[len(huge.Beta)-1] = 1e200
	if alpha := huge.RadauDiagonal(1e-12); alpha == nil || !math.IsInf(alpha[len(alpha)-1], 1) {
		t.Fatal(alpha)
	}
	proved, student := LogDet([]*Result{result, &huge}, 1e-12)
	if !math.IsInf(proved.Lo, -1) || !math.IsInf(student.Lo, -1) || math.IsInf(proved.Hi, 1) || math.IsNaN(proved.Hi) {
		t.Errorf("%v, %v", proved, student)
	}
}
