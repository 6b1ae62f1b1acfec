package interval

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/model"
)

// Probabilities returns Platt's probabilities of the labels for each row of a prediction, m×len(p.Labels),
//
//	p_j = 1/(1+exp(−a_jf_j−b_j)),
//
// where f are the decision values, and a and b are the calibration's Slope and Offset. For two classes p is the
// probability of the second one. Each p_j is raised to at least 1e-15; then the p_j of a row are divided by their sum.
// Probabilities returns an error if the model is for regression, or the calibration has no Slope.
func Probabilities(c *model.Calibration, p *model.Prediction) (*mat.Dense, error) {
	rows, t := p.Decision.Dims()
	if p.Labels == nil || c == nil || len(c.Slope) != t {
		return nil, fmt.Errorf("interval: no probabilities: want a classifier, and a calibration made by this " +
			"version of krrlab")
	}
	out := mat.NewDense(rows, len(p.Labels), nil)
	for i := range rows {
		row, q := out.RawRowView(i), 0.0
		for j, f := range p.Decision.RawRowView(i) {
			q = c.Slope[j]*f + c.Offset[j]
			row[j] = math.Max(logistic(q), minProbability)
		}
		if t == 1 {
			row[0], row[1] = math.Max(logistic(-q), minProbability), row[0]
		}
		floats.Scale(1/floats.Sum(row), row)
	}
	return out, nil
}

// minProbability replaces smaller probabilities of a class, so that their logarithms are finite.
const minProbability = 1e-15

// logistic returns 1/(1+e^(−q)).
func logistic(q float64) float64 { return 1 / (1 + math.Exp(-q)) }

// Reliability compares probabilities of labels with the answers of d. It returns the mean of −log p of the correct
// labels, and the expected calibration error: the absolute difference between the mean probability of the most likely
// label and the share of rows for which it is correct, averaged over ten bins of that probability, weighted by their
// rows. A row of d whose label is not in labels counts as wrong, with p = 1e-15.
func Reliability(prob *mat.Dense, labels []string, d *datasets.Dataset) (logLoss, calibrationError float64) {
	rows, _ := prob.Dims()
	classIndex := d.ClassIn(labels)
	var bins [10]float64 // for each bin, the sum of p−1 of correct and of p of wrong rows, over rows; p is the largest
	for i := range rows {
		p := prob.RawRowView(i)
		predicted, truth := slices.Index(p, slices.Max(p)), classIndex[d.Class[i]]
		v, gap := minProbability, p[predicted]
		if truth >= 0 {
			v = math.Max(p[truth], minProbability)
		}
		if predicted == truth {
			gap--
		}
		logLoss -= math.Log(v) / float64(rows)
		bins[min(int(10*p[predicted]), 9)] += gap / float64(rows)
	}
	for _, gap := range bins {
		calibrationError += math.Abs(gap)
	}
	return logLoss, calibrationError
}

// addProbabilityMaps sets Slope and Offset of a calibration, which it returns. They are fitted to the decision values
// F, m×t; class has one entry per row. Rows of class −1, with a label that the model does not know, are ignored.
func addProbabilityMaps(c *model.Calibration, f *mat.Dense, class []int) *model.Calibration {
	_, t := f.Dims()
	for j := range t {
		var v []float64
		var inClass []bool
		for i, k := range class {
			if k >= 0 {
				// a single column of decision values is that of the second class
				v, inClass = append(v, f.At(i, j)), append(inClass, k == max(j, 2-t))
			}
		}
		a, b := model.Platt(v, inClass, nil)
		c.Slope, c.Offset = append(c.Slope, a), append(c.Offset, b)
	}
	return c
}
