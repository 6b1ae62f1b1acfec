package interval

import (
	"math"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// TestPlatt draws labels by a logistic law and checks that Platt finds its parameters, for any unit and origin of f.
// For separated values the parameters must be finite, and for constant values the probability must be the mean of
// Platt's targets.
func TestPlatt(t *testing.T) {
	const n = 20_000
	f, uniform := make([]float64, n), make([]float64, n)
	rng.New(1).Normals(f, 0)
	rng.New(2).Float64s(uniform, 0)
	for _, c := range []struct{ unit, origin float64 }{{1, 0}, {1e-12, 0}, {1e12, 0}, {1e-6, 1}, {1, -1e6}} {
		positive, values := make([]bool, n), make([]float64, n)
		for i, v := range f {
			positive[i], values[i] = uniform[i] < logistic(2*v-1), c.origin+c.unit*v
		}
		a, b := model.Platt(values, positive, nil)
		a, b = a*c.unit, b+a*c.origin
		// The standard errors of a and b are about 0.03, so five of them are allowed.
		if math.Abs(a-2) > 0.15 || math.Abs(b+1) > 0.15 {
			t.Errorf("%+v: a = %g, b = %g, want 2 and -1", c, a, b)
		}
	}
	if a, b := model.Platt([]float64{-2, -1, 1, 2}, []bool{false, false, true, true}, nil); !(a > 0) ||
		math.IsInf(a, 0) || math.IsNaN(b) {
		t.Errorf("separated values: a = %g, b = %g, want finite numbers", a, b)
	}
	falling := []bool{true, true, false, false, false, false}
	if a, b := model.Platt([]float64{-2, -2, 1, 1, 1, 1}, falling, nil); a != 0 ||
		math.Abs(logistic(b)-(4./6+2*0.75)/6) > 1e-12 {
		t.Errorf("smaller values of positive rows: a = %g, b = %g; want 0, and the mean of Platt's targets", a, b)
	}
	for _, v := range []float64{0, 1, 0.1, -0.7, 1e-9} {
		a, b := model.Platt([]float64{v, v, v, v, v, v}, []bool{false, false, false, false, true, true}, nil)
		// Platt's targets are (2+1)/(2+2) = 0.75 for the two positive rows and 1/(4+2) for the four others.
		if p := logistic(a*v + b); math.Abs(p-(4./6+2*0.75)/6) > 1e-6 {
			t.Errorf("the constant value %g: p = %g by a = %g, b = %g; want the mean of Platt's targets", v, p, a, b)
		}
	}
}

// TestProbabilities checks that the leave-one-out probability maps are those of decision values of fits without the
// point. Probabilities must add up to 1, rise with the decision value and be well calibrated, also if they are
// calibrated on other rows.
func TestProbabilities(t *testing.T) {
	for _, classes := range []int{2, 3} {
		draw := func(n int, seed uint64) *datasets.Dataset {
			x, uniform := points.NewDense(n, 2, nil), make([]float64, n)
			rng.New(seed).Normals(x.Data, 0)
			rng.New(seed).Sub("labels").Float64s(uniform, 0)
			d := &datasets.Dataset{X: x, Task: datasets.Classification, Class: make([]int, n)}
			for j := range classes {
				d.Labels = append(d.Labels, strconv.Itoa(j))
			}
			for i := range n {
				if d.Class[i] = min(int(2*math.Abs(x.Row(i)[0])), classes-1); uniform[i] < 0.3 {
					d.Class[i] = int(uniform[i]/0.3*float64(classes)) % classes
				}
			}
			return d
		}
		train, test := draw(60, 1), draw(2000, 2)
		k, lambda := kernel.Gaussian{Sigma: 1}, 1.0
		m := fit(t, train, k, lambda)
		calibration := CalibrateJackknife(newSystem(t, m))
		_, cols := m.C.Dims()
		leaveOneOut := mat.NewDense(60, cols, nil) // decision values of fits without the row
		for i := range 60 {
			refit := predict(t, fit(t, withoutGroupOf(train, i), k, lambda), train.Slice(i, i+1))
			leaveOneOut.SetRow(i, refit.Decision.RawRowView(0))
		}
		want := addProbabilityMaps(&model.Calibration{}, leaveOneOut, train.Class)
		for j := range calibration.Slope {
			if math.Abs(calibration.Slope[j]-want.Slope[j]) > 1e-5*math.Abs(want.Slope[j]) ||
				math.Abs(calibration.Offset[j]-want.Offset[j]) > 1e-5*(1+math.Abs(want.Offset[j])) {
				t.Errorf("%d classes, column %d: %g, %g, want %g, %g", classes, j, calibration.Slope[j],
					calibration.Offset[j], want.Slope[j], want.Offset[j])
			}
		}
		p := predict(t, m, test)
		for _, calibration := range []*model.Calibration{calibration, testkit.Must(CalibrateSplit(nil, p, test))} {
			probabilities := testkit.Must(Probabilities(calibration, p))
			for i := range 2000 {
				if sum := mat.Sum(probabilities.RowView(i)); math.Abs(sum-1) > 1e-12 ||
					mat.Min(probabilities.RowView(i)) <= 0 {
					t.Fatalf("row %d: %v", i, probabilities.RawRowView(i))
				}
				if high := p.Decision.At(i, 0) > 1; classes == 2 &&
					high != (probabilities.At(i, 1) > logistic(calibration.Slope[0]+calibration.Offset[0])) {
					t.Fatalf("row %d: f = %g, p = %g", i, p.Decision.At(i, 0), probabilities.At(i, 1))
				}
			}
			loss, calibrationError := Reliability(probabilities, p.Labels, test)
			// A guess has the log loss log(classes). As 30 % of the labels are random, it cannot become much smaller.
			if !(loss < 0.9*math.Log(float64(classes))) || !(calibrationError < 0.12) {
				t.Errorf("%d classes by %s: log loss %g, calibration error %g", classes, calibration.Method, loss,
					calibrationError)
			}
		}
	}
}

// TestUnknownLabelsInCalibration checks that rows with a label unknown to the model do not influence the probabilities
// of the known labels, and that no probability is 0.
func TestUnknownLabelsInCalibration(t *testing.T) {
	known := &datasets.Dataset{X: points.NewDense(4, 1, nil), Task: datasets.Classification, Labels: []string{"a", "b"},
		Class: []int{0, 0, 1, 1}}
	withUnknown := &datasets.Dataset{X: points.NewDense(6, 1, nil), Task: datasets.Classification,
		Labels: []string{"a", "b", "new"}, Class: []int{0, 0, 1, 1, 2, 2}}
	p := &model.Prediction{Labels: known.Labels, Decision: mat.NewDense(6, 1, []float64{-1, -0.5, -0.2, 1, 2, -2})}
	got := testkit.Must(CalibrateSplit(nil, p, withUnknown))
	want, err := CalibrateSplit(nil, &model.Prediction{Labels: p.Labels,
		Decision: p.Decision.Slice(0, 4, 0, 1).(*mat.Dense)}, known)
	if err != nil || got.Slope[0] != want.Slope[0] || got.Offset[0] != want.Offset[0] {
		t.Errorf("slope %v and offset %v with unknown labels, %v and %v without; error %v", got.Slope, got.Offset,
			want.Slope, want.Offset, err)
	}
	onlyUnknown, err := CalibrateSplit(nil, p, &datasets.Dataset{X: withUnknown.X, Task: datasets.Classification,
		Labels: withUnknown.Labels, Class: []int{2, 2, 2, 2, 2, 2}})
	if err != nil || onlyUnknown.Slope[0] != 0 || onlyUnknown.Offset[0] != 0 {
		t.Errorf("only unknown labels: slope %v and offset %v, want 0; error %v", onlyUnknown.Slope, onlyUnknown.Offset,
			err)
	}
	extreme, err := Probabilities(got, &model.Prediction{Labels: p.Labels,
		Decision: mat.NewDense(2, 1, []float64{1e6, -1e6})})
	if err != nil || !(mat.Min(extreme) > 0) {
		t.Errorf("probabilities of extreme decision values: %v, error %v; want positive ones", extreme, err)
	}
}

// TestReliability compares log loss and calibration error with values computed by hand.
func TestReliability(t *testing.T) {
	d := &datasets.Dataset{Task: datasets.Classification, Labels: []string{"a", "b", "new"}, Class: []int{0, 0, 1, 2}}
	loss, calibrationError := Reliability(mat.NewDense(4, 2, []float64{0.75, 0.25, 0.75, 0.25, 0.75, 0.25, 0.1, 0.9}),
		[]string{"a", "b"}, d)
	if want := -(2*math.Log(0.75) + math.Log(0.25) + math.Log(minProbability)) / 4; math.Abs(loss-want) > 1e-12 {
		t.Errorf("log loss %g, want %g", loss, want)
	}
	if want := (3*0.75-2)/4 + 0.9/4; math.Abs(calibrationError-want) > 1e-12 {
		t.Errorf("calibration error %g, want %g", calibrationError, want)
	}
}
