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
		a, b := platt(v, in)
		c.Slope, c.Offset = append(c.Slope, a), append(c.Offset, b)
	}
	return c
}

// platt returns the a and b that minimize the cross-entropy −Σ t_i log p_i + (1−t_i) log(1−p_i), p = 1/(1+exp(−af−b)),
// by Newton's method with steps that are halved until they help. With t_i = (N₊+1)/(N₊+2) for the N₊ rows that are in
// the class, and 1/(N₋+2) for the others, they are finite. The unit of f does not matter, nor does its origin: f less
// its mean is fitted.
func platt(f []float64, in []bool) (a, b float64) {
	var yes, no float64
	for _, v := range in {
		if v {
			yes++
		} else {
			no++
		}
	}
	target := func(i int) float64 {
		if in[i] {
			return (yes + 1) / (yes + 2)
		}
		return 1 / (no + 2)
	}
	mean := floats.Sum(f) / max(yes+no, 1)
	entropy := func(a, b float64) (sum float64) {
		for i, v := range f {
			q := a*(v-mean) + b
			sum += math.Max(q, 0) + math.Log1p(math.Exp(-math.Abs(q))) - target(i)*q
		}
		return sum
	}
	b = math.Log((yes + 1) / (no + 1))
	now := entropy(a, b)
	for gain, k := math.Inf(1), 0; gain > 1e-12*now && k < 100; k++ {
		var ga, gb, aa, ab, bb float64 // gradient and Hessian
		for i, v := range f {
			v -= mean
			p := logistic(a*v + b)
			r, w := target(i)-p, p*(1-p)
			ga, gb = ga+r*v, gb+r
			aa, ab, bb = aa+w*v*v, ab+w*v, bb+w
		}
		bb = bb*(1+1e-12) + 1e-150
		aa = aa*(1+1e-12) + 1e-28*mean*mean*bb + 1e-150 // f may be all the same, but for rounding
		det := aa*bb - ab*ab
		da, db := (bb*ga-ab*gb)/det, (aa*gb-ab*ga)/det
		step := 1.0
		next := entropy(a+da, b+db)
		for ; !(next <= now) && step > 1e-10; next = entropy(a+step*da, b+step*db) {
			step /= 2
		}
		if gain = now - next; gain > 0 {
			a, b, now = a+step*da, b+step*db, next
		}
	}
	return a, b - a*mean
}
