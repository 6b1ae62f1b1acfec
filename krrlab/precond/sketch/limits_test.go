package sketch

import (
	"fmt"
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestSampleLimits checks that the error for a size that no sketch can have names that size.
func TestSampleLimits(t *testing.T) {
	for _, test := range []struct {
		m, s int
		want string
	}{
		{0, 1, "length 0"}, {1, 0, "to 0 numbers"}, {-1, 1, "length -1"}, {math.MaxInt32 + 1, 1, "at most 2147483647"},
		{1, math.MaxInt32 + 1, "at most 2147483647"},
	} {
		for _, d := range []Dist{CountSketch{}, SRHT{}, Gaussian{}, Composition{{Dist: Gaussian{}}}} {
			testkit.Fails(t, testkit.ErrOf(d.Sample(test.m, test.s, rng.New(1))), test.want)
		}
	}
	if err := checkSample(Gaussian{}, math.MaxInt32, math.MaxInt32); err != nil {
		t.Errorf("the largest sizes are refused: %v", err)
	}
	for _, test := range []struct{ m, s int }{{1, 1}, {2, 2}, {3, 4}, {5, 8}, {8, 8}, {9, 16}, {33, 64}} {
		if _, err := (SRHT{}).Sample(test.m, test.s, rng.New(1)); err != nil {
			t.Errorf("all rows of the transform: %v", err)
		}
		testkit.Fails(t, testkit.ErrOf((SRHT{}).Sample(test.m, test.s+1, rng.New(1))),
			fmt.Sprintf("want s ≤ %d", test.s))
	}
}
