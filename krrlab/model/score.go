package model

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
)

// Score is the judgement of predictions against known answers. Fields that do not
// apply to the task are NaN.
type Score struct {
	N         int     // number of points
	ErrorRate float64 // classification: share of points with a wrong label
	RMSE      float64 // regression: √(Σ(ŷ−y)²/N), in the unit of y
	RelErr    float64 // regression: ‖ŷ−y‖₂/‖y‖₂, the paper's error rate
	R2        float64 // regression: 1 − Σ(ŷ−y)²/Σ(y−ȳ)²
	BestError float64 // ErrorRate or RMSE of the best possible predictor on these points, where it is known
}

// String gives the score in one line.
func (s Score) String() string {
	var best string
	if !math.IsNaN(s.ErrorRate) {
		if !math.IsNaN(s.BestError) {
			best = fmt.Sprintf(" (best possible %.2f %%)", 100*s.BestError)
		}
		return fmt.Sprintf("error %.2f %%%s on %d points", 100*s.ErrorRate, best, s.N)
	}
	if !math.IsNaN(s.BestError) {
		best = fmt.Sprintf(" (best possible %.4g)", s.BestError)
	}
	return fmt.Sprintf("RMSE %.4g%s, ‖ŷ−y‖/‖y‖ %.3e, R² %.4f on %d points", s.RMSE, best, s.RelErr, s.R2, s.N)
}

// Prediction holds what the model says of points: Class, with indices into
// Labels, for classification and Value for regression; Decision holds f itself, m×t.
type Prediction struct {
	Class    []int
	Labels   []string
	Value    []float64
	Decision *mat.Dense
}

// Text returns the prediction for point i as a label or a number.
func (p *Prediction) Text(i int) string {
	if p.Labels != nil {
		return p.Labels[p.Class[i]]
	}
	return fmt.Sprint(p.Value[i])
}

// Predict returns the label or the value of each point of d; see Decision. The points may be raw or scaled
// as the model's were: d.Scaling says which, and any other scaling is an error. So it is
// if d's features and the model's have names, and these are not the same.
func (m *Model) Predict(ctx context.Context, d *datasets.Dataset, o *Options) (*Prediction, error) {
	if err := d.CheckColumns(m.Columns, "the model"); err != nil {
		return nil, err
	}
	f, err := m.decision(ctx, d, o)
	if err != nil {
		return nil, err
	}
	p := &Prediction{Decision: f, Labels: m.Labels}
	if m.Labels != nil {
		p.Class = m.Coding().Decode(f)
	} else {
		p.Value = mat.Col(nil, 0, f)
	}
	return p, nil
}

// Evaluate predicts the points of d and judges the result against d's answers.
// Labels are compared by their text; a label the model does not know counts as an
// error.
func (m *Model) Evaluate(ctx context.Context, d *datasets.Dataset, o *Options) (*Score, error) {
	if d.Task != m.Task() {
		return nil, fmt.Errorf("model: test data for %v do not fit a model for %v", d.Task, m.Task())
	}
	p, err := m.Predict(ctx, d, o)
	if err != nil {
		return nil, err
	}
	return p.Score(d), nil
}

// Score judges the prediction against the answers of d, which must have as many
// points.
func (p *Prediction) Score(d *datasets.Dataset) *Score {
	nan := math.NaN()
	s := &Score{N: d.Len(), ErrorRate: nan, RMSE: nan, RelErr: nan, R2: nan, BestError: d.BestError()}
	if p.Labels != nil {
		wrong := 0
		for i, c := range p.Class {
			if p.Labels[c] != d.Labels[d.Class[i]] {
				wrong++
			}
		}
		s.ErrorRate = float64(wrong) / float64(s.N)
		return s
	}
	var mean, sse, syy, tss, largest float64
	for i, y := range d.Target {
		mean += y / float64(s.N)
		largest = max(largest, math.Abs(y), math.Abs(p.Value[i]))
	}
	u := 1.0 // a power of two, by which numbers are multiplied whose squares overflow
	if largest > 1e140 {
		_, e := math.Frexp(largest)
		u = math.Ldexp(1, -e)
	}
	for i, y := range d.Target {
		e := u*p.Value[i] - u*y
		sse += e * e
		syy += u * y * (u * y)
		tss += (u*y - u*mean) * (u*y - u*mean)
	}
	s.RMSE = math.Sqrt(sse/float64(s.N)) / u
	s.RelErr = ratio(math.Sqrt(sse), math.Sqrt(syy))
	s.R2 = 1 - ratio(sse, tss)
	return s
}

// ratio is a/b, with 0/0 = 0.
func ratio(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return a / b
}
