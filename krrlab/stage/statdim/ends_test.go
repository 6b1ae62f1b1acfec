package statdim

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestMajorization compares majorant and minorant, the extreme vectors in given boxes with a given sum, with values
// computed by hand. It also checks the boxes of the eigenvalues.
func TestMajorization(t *testing.T) {
	lo, hi := []float64{1, 0, 0}, []float64{3, 2, 1}
	for _, c := range []struct {
		sum                float64
		majorant, minorant []float64
	}{
		{4, []float64{3, 1, 0}, []float64{1.5, 1.5, 1}}, {1, []float64{1, 0, 0}, []float64{1, 0, 0}},
		{6, []float64{3, 2, 1}, []float64{3, 2, 1}},
		{1.5, []float64{1.5, 0, 0}, []float64{1, 0.25, 0.25}}, {5.5, []float64{3, 2, 0.5}, []float64{2.5, 2, 1}},
	} {
		largest, smallest := majorant(c.sum, lo, hi), minorant(c.sum, lo, hi)
		if !floats.EqualApprox(largest, c.majorant, 1e-12) || !floats.EqualApprox(smallest, c.minorant, 1e-12) {
			t.Errorf("sum %g: %v and %v, want %v and %v", c.sum, largest, smallest, c.majorant, c.minorant)
		}
	}
	lo, hi = eigenvalueBoxes(4, 12, []float64{1, 5, -0.5}, distance{Below: 2, Above: 1})
	// The descending σ² are 5, 1, 0 and 0, and the i-th largest eigenvalue is at most 12/i.
	for i, want := range [][2]float64{{3, 6}, {0, 2}, {0, 1}, {0, 1}} {
		const extra = (12.0 - 10) / 4 // the upper ends add up to 10 < tr K = 12, so all of them are raised
		if lo[i] != want[0] || hi[i] != want[1]+extra {
			t.Errorf("box %d is [%g, %g], want [%g, %g]", i, lo[i], hi[i], want[0], want[1]+extra)
		}
	}
	// The trace limits the ends to 3 and 1.5. Lower ends of this size add up to 4.5, which exceeds the trace of 3.
	lo, hi = eigenvalueBoxes(2, 3, []float64{4, 2}, distance{Below: 0, Above: 9})
	if math.Abs(lo[0]-2) > 1e-15 || math.Abs(lo[1]-1) > 1e-15 || hi[0] != 3 || hi[1] != 1.5 {
		t.Errorf("boxes from %v to %v, want from 2, 1 to 3, 1.5", lo, hi)
	}
}

// TestInterval checks value ± (sampling+truncation+storage), cut to the bounds by the trace. For n = 10, tr K = 10 and
// λ = 1 these are 10/11 and 5.
func TestInterval(t *testing.T) {
	identity := testkit.AddRidge(mat.NewSymDense(10, nil), 1)
	for _, c := range []struct {
		storageError                           float64 // of K
		value                                  float64
		sampling, truncation                   float64 // half-widths
		want, wantLo, wantHi, wantStorageWidth float64
	}{
		{0, 3, 0.5, 0.25, 3, 2.25, 3.75, 0},
		{0.01, 3, 0.5, 0.25, 3, 2.19, 3.81, 0.06},          // 2s < n−s
		{0.01, 4, 0, 0, 4, 3.94, 4.06, 0.06},               // n−s < 2s
		{0, 4.5, 1, 0, 4.5, 3.5, 5, 0},                     // the upper end is cut
		{0, 7, 1, 0, 5, 4, 5, 0},                           // the value is cut too
		{0, 0.5, 1, 0, 10.0 / 11, 10.0 / 11, 21.0 / 11, 0}, // the value and the lower end are cut
	} {
		p := &problem{K: dense{identity}, Lambda: 1, Error: c.storageError}
		r := &Estimates{Sampling: c.sampling, Truncation: c.truncation}
		got := p.interval(r, c.value, &Options{Confidence: 0.9}, "m")
		testkit.Near(t, got.Value, c.want, 1e-12, c, "value")
		testkit.Near(t, got.Lo, c.wantLo, 1e-12, c, "lower end")
		testkit.Near(t, got.Hi, c.wantHi, 1e-12, c, "upper end")
		testkit.Near(t, r.Storage, c.wantStorageWidth, 1e-12, c, "allowance for the storage error")
		if got.Confidence != 0.9 || got.Method != "m" {
			t.Errorf("%+v, want a confidence of 0.9 by method m", got)
		}
	}
	for e, want := range map[float64]float64{0: 2, 0.5: 1.5, 1: 1, 1.5: 1, 9: 1} {
		testkit.Equal(t, (&problem{Error: e, Lambda: 2}).eigenvalueBound(), want, e)
	}
}

// TestMissedWidthNote checks that the report says why a requested width was not reached.
func TestMissedWidthNote(t *testing.T) {
	s := Result{Estimates: Estimates{Truncation: 1}}
	testkit.Contains(t, s.missedWidthNote(), "(asked 0 %)", "truncation and storage limit it")
}
