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
// where f are the decision values, and a and b are the Slope and Offset of calibration. For two classes p is the
// probability of the second one. Each p_j is raised to at least 1e-15; then the p_j of a row are divided by their sum.
// Probabilities returns an error if the model is for regression, or the calibration has no Slope.
func Probabilities(calibration *model.Calibration, p *model.Prediction) (*mat.Dense, error) {
	rows, t := p.Decision.Dims()
	if p.Labels == nil || calibration == nil || len(calibration.Slope) != t {
		return nil, fmt.Errorf("interval: no probabilities: want a classifier, and a calibration made by this " +
			"version of krrlab")
	}
	probabilities := mat.NewDense(rows, len(p.Labels), nil)
	for i := range rows {
		row, decisions := probabilities.RawRowView(i), p.Decision.RawRowView(i)
		for j, f := range decisions {
			row[j] = math.Max(logistic(calibration.Slope[j]*f+calibration.Offset[j]), minProbability)
		}
		if t == 1 { // the first class has the complement, computed without cancellation
			row[0], row[1] = math.Max(logistic(-(calibration.Slope[0]*decisions[0]+calibration.Offset[0])),
				minProbability), row[0]
		}
		floats.Scale(1/floats.Sum(row), row)
	}
	return probabilities, nil
}

// minProbability replaces smaller probabilities of a class, so that their logarithms are finite. A larger value limits
// the log loss of a wrong label more.
const minProbability = 1e-15

// logistic returns 1/(1+e^(−q)).
func logistic(q float64) float64 { return 1 / (1 + math.Exp(-q)) }

// Reliability compares the probabilities of labels, d.Len()×len(labels), with the classes of d. It returns the mean of
// −log p of the correct labels, and the expected calibration error: the absolute difference between the mean
// probability of the most likely label and the share of rows for which it is correct, averaged over ten bins of that
// probability, weighted by their rows. A row of d whose label is not in labels counts as wrong, with p = 1e-15.
func Reliability(probabilities *mat.Dense, labels []string, d *datasets.Dataset) (logLoss, calibrationError float64) {
	rows, _ := probabilities.Dims()
	classIndex := d.ClassIn(labels)
	// bins[k] is Σ(p−c)/rows over the rows in bin k, where p is the largest probability of a row, and c is 1 if that
	// label is correct and 0 otherwise.
	var bins [10]float64
	for i := range rows {
		p := probabilities.RawRowView(i)
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

// addProbabilityMaps appends to calibration a Slope and an Offset for each column of the decision values f, m×t, and
// returns calibration. They are fitted to f and the class of each of the m rows. Rows of class −1, with a label that
// the model does not know, are ignored.
func addProbabilityMaps(calibration *model.Calibration, f *mat.Dense, class []int) *model.Calibration {
	_, t := f.Dims()
	for j := range t {
		var decisions []float64
		var inClass []bool
		for i, k := range class {
			if k >= 0 {
				// A single column of decision values belongs to the second class.
				decisions, inClass = append(decisions, f.At(i, j)), append(inClass, k == max(j, 2-t))
			}
		}
		a, b := model.Platt(decisions, inClass, nil)
		calibration.Slope, calibration.Offset = append(calibration.Slope, a), append(calibration.Offset, b)
	}
	return calibration
}
