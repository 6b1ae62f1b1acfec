package leaveout

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestUnitsOfTargets checks that scores are those of the targets in another unit, multiplied by a power of the unit, to
// the bit, for units that are powers of two.
func TestUnitsOfTargets(t *testing.T) {
	const n = 60
	lambdas := []float64{1e-3, 1}
	for _, p := range testProblems(t, n) {
		classes, y, k := p.classes, p.y, mat.NewDense(n, n, nil)
		testkit.OK(t, p.k.DenseTo(t.Context(), k))
		woodbury, sketchExcess := rpCholeskyPrecond(t, p.k, 30, 1)
		methods := map[string]func(y *mat.Dense) ([]Score, error){
			"dense": func(y *mat.Dense) ([]Score, error) {
				return Dense(t.Context(), k, y, lambdas, &Problem{Classification: classes, ComputeResiduals: true})
			},
			"path": func(y *mat.Dense) ([]Score, error) {
				return Path(t.Context(), p.k, woodbury, y, lambdas,
					&Problem{Classification: classes, ComputeResiduals: true, SketchExcess: sketchExcess,
						Stream: rng.New(1)})
			},
		}
		for name, run := range methods {
			want := testkit.Must(run(y))
			for _, unit := range []float64{0x1p-300, 0x1p300} {
				var scaled mat.Dense
				scaled.Scale(unit, y)
				got := testkit.Must(run(&scaled))
				for j, wantScore := range want {
					score, errorFactor := got[j], unit*unit
					if classes {
						errorFactor = 1
					}
					if score.Error.Value != errorFactor*wantScore.Error.Value ||
						score.Error.Lo != errorFactor*wantScore.Error.Lo ||
						score.Error.Hi != errorFactor*wantScore.Error.Hi || score.GCV != unit*unit*wantScore.GCV ||
						score.Residuals.At(3, 0) != unit*wantScore.Residuals.At(3, 0) {
						t.Errorf("%s, classes %v, targets times %g, λ = %g: %v, GCV %g, want %v, GCV %g, times that squared",
							name, classes, unit, wantScore.Lambda, score.Error, score.GCV, wantScore.Error,
							wantScore.GCV)
					}
				}
			}
		}
	}
}
