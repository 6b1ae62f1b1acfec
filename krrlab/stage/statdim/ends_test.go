package statdim

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestMajorization compares majorant and minorant, the extreme vectors with lo ≤ x ≤ hi and a given sum, with vectors
// computed by hand. It also checks the bounds of eigenvalueBoxes.
func TestMajorization(t *testing.T) {
	lo, hi := []float64{1, 0, 0}, []float64{3, 2, 1}
	for _, test := range []struct {
		sum                        float64
		wantMajorant, wantMinorant []float64
	}{
		{4, []float64{3, 1, 0}, []float64{1.5, 1.5, 1}}, {1, []float64{1, 0, 0}, []float64{1, 0, 0}},
		{6, []float64{3, 2, 1}, []float64{3, 2, 1}},
		{1.5, []float64{1.5, 0, 0}, []float64{1, 0.25, 0.25}}, {5.5, []float64{3, 2, 0.5}, []float64{2.5, 2, 1}},
	} {
		gotMajorant, gotMinorant := majorant(test.sum, lo, hi), minorant(test.sum, lo, hi)
		if !floats.EqualApprox(gotMajorant, test.wantMajorant, 1e-12) ||
			!floats.EqualApprox(gotMinorant, test.wantMinorant, 1e-12) {
			t.Errorf("sum %g: %v and %v, want %v and %v", test.sum, gotMajorant, gotMinorant, test.wantMajorant,
				test.wantMinorant)
		}
	}
	lo, hi = eigenvalueBoxes(4, 12, []float64{1, 5, -0.5}, eigenvalueDistance{Below: 2, Above: 1})
	// The descending σ² are 5, 1, 0 and 0, and the i-th largest eigenvalue is at most 12/i.
	for i, want := range [][2]float64{{3, 6}, {0, 2}, {0, 1}, {0, 1}} {
		const extra = (12.0 - 10) / 4 // the four upper ends add up to 10 < tr K = 12, so all of them are raised
		if lo[i] != want[0] || hi[i] != want[1]+extra {
			t.Errorf("box %d is [%g, %g], want [%g, %g]", i, lo[i], hi[i], want[0], want[1]+extra)
		}
	}
	// The trace limits the ends to 3 and 1.5. Lower ends of this size add up to 4.5, which exceeds the trace of 3.
	lo, hi = eigenvalueBoxes(2, 3, []float64{4, 2}, eigenvalueDistance{Below: 0, Above: 9})
	if math.Abs(lo[0]-2) > 1e-15 || math.Abs(lo[1]-1) > 1e-15 || hi[0] != 3 || hi[1] != 1.5 {
		t.Errorf("boxes from %v to %v, want from 2, 1 to 3, 1.5", lo, hi)
	}
}

// TestInterval checks value ± (sampling+truncation+storage), cut to the bounds by the trace. For n = 10, tr K = 10 and
// λ = 1 these are 10/11 and 5.
func TestInterval(t *testing.T) {
	identity := testkit.AddRidge(mat.NewSymDense(10, nil), 1)
	for _, test := range []struct {
		storageError                           float64 // bound of ‖K_stored−K‖₂
		value                                  float64 // estimate before cutting
		sampling, truncation                   float64 // half-widths
		wantValue, wantLo, wantHi, wantStorage float64
	}{
		{0, 3, 0.5, 0.25, 3, 2.25, 3.75, 0},
		{0.01, 3, 0.5, 0.25, 3, 2.19, 3.81, 0.06},          // 2s < n−s for the value s
		{0.01, 4, 0, 0, 4, 3.94, 4.06, 0.06},               // n−s < 2s
		{0, 4.5, 1, 0, 4.5, 3.5, 5, 0},                     // the upper end is cut
		{0, 7, 1, 0, 5, 4, 5, 0},                           // the value is cut too
		{0, 0.5, 1, 0, 10.0 / 11, 10.0 / 11, 21.0 / 11, 0}, // the value and the lower end are cut
	} {
		p := &problem{K: dense{identity}, Lambda: 1, Error: test.storageError}
		estimates := &Estimates{Sampling: test.sampling, Truncation: test.truncation}
		interval := p.interval(estimates, test.value, &Options{Confidence: 0.9}, "m")
		testkit.Near(t, interval.Value, test.wantValue, 1e-12, test, "value")
		testkit.Near(t, interval.Lo, test.wantLo, 1e-12, test, "lower end")
		testkit.Near(t, interval.Hi, test.wantHi, 1e-12, test, "upper end")
		testkit.Near(t, estimates.Storage, test.wantStorage, 1e-12, test, "allowance for the storage error")
		if interval.Confidence != 0.9 || interval.Method != "m" {
			t.Errorf("%+v, want a confidence of 0.9 by method m", interval)
		}
	}
	for storageError, wantBound := range map[float64]float64{0: 2, 0.5: 1.5, 1: 1, 1.5: 1, 9: 1} {
		testkit.Equal(t, (&problem{Error: storageError, Lambda: 2}).eigenvalueBound(), wantBound, storageError)
	}
}

// TestMissedWidthNote checks that the report says why a requested width was not reached.
func TestMissedWidthNote(t *testing.T) {
	result := Result{Estimates: Estimates{Truncation: 1}}
	testkit.Contains(t, result.missedWidthNote(), "(asked 0 %)", "truncation and storage limit it")
}
