package tune

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestInTargetUnits checks that inTargetUnits makes targets equal that differ by a factor, with a root mean square of 1
// over all targets, that it does not change the codes of classes, and that a target of zeros stays zero.
func TestInTargetUnits(t *testing.T) {
	original := mat.NewDense(2, 2, []float64{3, 0.3, 4, 0.4})
	y := defaultScoring(false).inTargetUnits(mat.DenseCopyOf(original), original)
	var sum float64 // of the squares of both columns
	for i := range 2 {
		testkit.Near(t, y.At(i, 0), y.At(i, 1), 1e-15, mat.Formatted(y))
		sum += y.At(i, 0)*y.At(i, 0) + y.At(i, 1)*y.At(i, 1)
	}
	testkit.Near(t, sum/2, 1, 1e-12)
	if y := defaultScoring(true).inTargetUnits(mat.DenseCopyOf(original), original); !mat.Equal(y, original) {
		t.Errorf("the codes of classes are changed to %v", mat.Formatted(y))
	}
	zeros := mat.NewDense(2, 2, []float64{1, 0, 1, 0})
	if y := defaultScoring(false).inTargetUnits(mat.DenseCopyOf(zeros), zeros); y.At(0, 1) != 0 {
		t.Errorf("a target of zeros becomes %v", mat.Formatted(y))
	}
}
