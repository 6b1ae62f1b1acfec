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
		row, decisions := out.RawRowView(i), p.Decision.RawRowView(i)
		for j, f := range decisions {
			row[j] = math.Max(logistic(c.Slope[j]*f+c.Offset[j]), minProbability)
		}
		if t == 1 { // the first class has the complement, computed without cancellation
			row[0], row[1] = math.Max(logistic(-(c.Slope[0]*decisions[0]+c.Offset[0])), minProbability), row[0]
		}
		floats.Scale(1/floats.Sum(row), row)
	}
	return out, nil
}

// minProbability replaces smaller probabilities of a class, so that their logarithms are finite.
const minProbability = 1e-15

// logistic returns 1/(1+e^(−q)).
func logistic(q float64) float64 { return 1 / (1 + math.Exp(-q)) }

// Reliability compares the probabilities prob of labels, d.Len()×len(labels), with the classes of d. It returns the
// mean of −log p of the correct labels, and the expected calibration error: the absolute difference between the mean
// probability of the most likely label and the share of rows for which it is correct, averaged over ten bins of that
// probability, weighted by their rows. A row of d whose label is not in labels counts as wrong, with p = 1e-15.
func Reliability(prob *mat.Dense, labels []string, d *datasets.Dataset) (logLoss, calibrationError float64) {
	rows, _ := prob.Dims()
	classIndex := d.ClassIn(labels)
	// bins[k] is Σ(p−c)/rows over the rows in bin k, where p is the largest probability of a row, and c is 1 if that
	// label is correct and 0 otherwise.
	var bins [10]float64
	for i := range rows {
		p := prob.RawRowView(i)
		predicted, truth := slices.Index(p, slices.Max(p)), classIndex[d.Class[i]]
		pTruth, gap := minProbability, p[predicted]
		if truth >= 0 {
			pTruth = math.Max(p[truth], minProbability)
		}
		if predicted == truth {
			gap--
		}
		logLoss -= math.Log(pTruth) / float64(rows)
		bins[min(int(10*p[predicted]), 9)] += gap / float64(rows)
	}
	for _, gap := range bins {
		calibrationError += math.Abs(gap)
	}
	return logLoss, calibrationError
}

// addProbabilityMaps appends to c a Slope and an Offset for each column of the decision values f, m×t, and returns c.
// They are fitted to f and the class of each of the m rows. Rows of class −1, with a label that the model does not
// know, are ignored.
func addProbabilityMaps(c *model.Calibration, f *mat.Dense, class []int) *model.Calibration {
	_, t := f.Dims()
	for j := range t {
		var decisions []float64
		var inClass []bool
		for i, k := range class {
			if k >= 0 {
				// a single column of decision values is that of the second class
				decisions, inClass = append(decisions, f.At(i, j)), append(inClass, k == max(j, 2-t))
			}
		}
		a, b := model.Platt(decisions, inClass, nil)
		c.Slope, c.Offset = append(c.Slope, a), append(c.Offset, b)
	}
	return c
}
