package leaveout

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// randomProblem returns the Gaussian kernel matrix K of n random points of dimension d, and targets y with t columns.
// The targets are a smooth function with noise, or classes coded by ±1.
func randomProblem(n, d, t int, sigma float64, classes bool, seed uint64) (k, y *mat.Dense) {
	random := rand.New(rand.NewPCG(seed, 7))
	x := points.NewDense(n, d, nil)
	for i := range x.Data {
		x.Data[i] = random.NormFloat64()
	}
	y = mat.NewDense(n, t, nil)
	for i := range n {
		row := y.RawRowView(i)
		for j := range row {
			row[j] = math.Sin(2*x.Row(i)[0]+float64(j)) + x.Row(i)[d-1]*x.Row(i)[0]/2 + 0.3*random.NormFloat64()
		}
		if classes {
			encodeClass(row, datasets.PredictedClass(row))
		}
	}
	return mat.DenseCopyOf(testkit.KernelMatrix(kernel.Gaussian{Sigma: sigma}, x)), y
}

// encodeClass sets a row of targets to the code of a class: ±1 in a single column, or 1 in the column of the class and
// −1 in the others.
func encodeClass(row []float64, class int) {
	for j := range row {
		row[j] = -1
	}
	if len(row) == 1 {
		row[0] = float64(2*class - 1)
		return
	}
	row[class] = 1
}

// score returns the weighted mean square, or the weighted share of wrong labels, for leave-one-out residuals e.
func score(y, e *mat.Dense, o *Problem) float64 {
	n, t := y.Dims()
	prediction, sum, total := make([]float64, t), 0.0, 0.0
	for i := range n {
		weight := 1.0
		if o.Weights != nil {
			weight = o.Weights[i]
		}
		total += weight
		floats.SubTo(prediction, y.RawRowView(i), e.RawRowView(i))
		switch {
		case !o.Classification:
			sum += weight * floats.Dot(e.RawRowView(i), e.RawRowView(i)) / float64(t)
		case datasets.PredictedClass(prediction) != datasets.PredictedClass(y.RawRowView(i)):
			sum += weight
		}
	}
	return sum / total
}
