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

// Probabilities returns the probabilities of the labels of each row of a prediction, m×len(p.Labels), after Platt:
//
//	p_j = 1/(1+exp(−a_jf_j−b_j)),
//
// at least 1e-15, a and b the calibration's Slope and Offset, of two classes that of the second, of more divided by
// their sum. It returns an error if the model is for regression or the calibration has none.
func Probabilities(c *model.Calibration, p *model.Prediction) (*mat.Dense, error) {
	rows, t := p.Decision.Dims()
	if p.Labels == nil || c == nil || len(c.Slope) != t {
		return nil, fmt.Errorf("interval: no probabilities: want a classifier, and a calibration made by this " +
			"version of krrlab")
	}
	out := mat.NewDense(rows, len(p.Labels), nil)
	for i := range rows {
		to, q := out.RawRowView(i), 0.0
		for j, f := range p.Decision.RawRowView(i) {
			q = c.Slope[j]*f + c.Offset[j]
			to[j] = math.Max(logistic(q), least)
		}
		if t == 1 {
			to[0], to[1] = math.Max(logistic(-q), least), to[0]
		}
		floats.Scale(1/floats.Sum(to), to)
	}
	return out, nil
}

// least stands for smaller probabilities of one class.
const least = 1e-15

func logistic(q float64) float64 { return 1 / (1 + math.Exp(-q)) }

// Reliability judges probabilities of labels by the answers of d: by the mean of −log p of the right labels, and by how
// far the probability of the likeliest label is from the share of rows where it is right: the mean over ten bins of
// that probability, weighted by their rows (the expected calibration error).
func Reliability(prob *mat.Dense, labels []string, d *datasets.Dataset) (logLoss, off float64) {
	rows, _ := prob.Dims()
	at := d.ClassIn(labels)
	var bins [10]float64 // of probability less rightness
	for i := range rows {
		p := prob.RawRowView(i)
		top, right := slices.Index(p, slices.Max(p)), at[d.Class[i]]
		v, gap := least, p[top]
		if right >= 0 {
			v = math.Max(p[right], least)
		}
		if top == right {
			gap--
		}
		logLoss -= math.Log(v) / float64(rows)
		bins[min(int(10*p[top]), 9)] += gap / float64(rows)
	}
	for _, gap := range bins {
		off += math.Abs(gap)
	}
	return logLoss, off
}

// probable gives a calibration the maps to probabilities that fit the decision values F of rows of the given classes,
// −1 for rows of a label that the model does not know, which are left out.
func probable(c *model.Calibration, f *mat.Dense, class []int) *model.Calibration {
	_, t := f.Dims()
	for j := range t {
		var v []float64
		var in []bool
		for i, k := range class {
			if k >= 0 {
				v, in = append(v, f.At(i, j)), append(in, k == max(j, 2-t)) // of two classes the second
			}
		}
		a, b := model.Platt(v, in, nil)
		c.Slope, c.Offset = append(c.Slope, a), append(c.Offset, b)
	}
	return c
}
