package model

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Model is the fitted function f(x) = mean + Σ_i c_i k(x_i, x) with all it takes to use it.
type Model struct {
	Kernel kernel.Kernel
	Lambda float64       // ridge λ of the fit
	X      points.Points // training points after Scaling, n×d
	C      *mat.Dense    // coefficients, n×t
	// Labels holds the original labels of the classes; nil for regression.
	// With two labels t = 1 and f(x) > 0 stands for Labels[1]; otherwise t is the
	// number of labels and the largest f_j(x) wins.
	Labels []string
	// Threshold is subtracted from f of two classes, so that Σ_i c_i k(x_i, x) above it stands for Labels[1].
	Threshold float64
	Targets   []string // names of the targets of a regression with several; nil for one
	// added to f, of each column: what was taken off the targets of a regression; nil for zeros
	Mean    []float64
	Scaling *datasets.Scaling // from raw features to X's, that of the training data; nil means none
	Columns []string          // names of the features; nil where the data had none
	// Weighted says that the rows had weights at the fit: C is then W^½Ĉ with (W^½KW^½+λI)Ĉ = W^½Y, and Error and the
	// residual in Origin are Ĉ's. Bounds hold all the same.
	Weighted bool
	Error    *Error // how far C is from the solution at most; nil: not known
	// Groups are the numbers of the groups of points that leave-one-out leaves out together; nil: each is alone.
	// Repeats says how they were chosen; nil: the file is of a version that did not say.
	Groups  []int
	Repeats *datasets.Repeats
	// Calibration is what intervals for predictions are made of (package interval); nil: there is none.
	Calibration *Calibration
	Origin      Origin
}

// Calibration has scores, how badly answers were predicted by what was not fitted to them: each column ascending, one
// for each target, of classes a single one.
type Calibration struct {
	Method string     `json:"method"` // interval.Split or interval.Jackknife
	Scores *mat.Dense `json:"-"`
	// Doubt says why intervals of these scores have no guarantee, as where rows repeat; "" if they have Method's.
	Doubt string `json:"doubt,omitempty"`
	// Slope and Offset are those of each column of decision values of classes: see interval.Probabilities.
	Slope  []float64 `json:"slope,omitempty"`
	Offset []float64 `json:"offset,omitempty"`
}

// Error bounds the error of the coefficients, c_j* those of (K+λI)C* = Y.
type Error struct {
	ANorm []float64 `json:"anorm"` // ‖c_j−c_j*‖_A at most, of every column; A = K+λI
	// Decision are bounds of |f_j*(z)−f_j(z)|/√k(z, z), the same for every z: at most ANorm, which holds where they are
	// not known.
	Decision []float64 `json:"decision,omitempty"`
	// it is proved from the data on; else it rests on the iteration, or on rows of K
	Certain bool `json:"certain"`
}

// Origin says where a model comes from. It informs; of it only Status, Tol and TrueResidual are computed with, which
// say how accurate C is.
type Origin struct {
	Dataset string   `json:"dataset"`
	Target  string   `json:"target,omitempty"` // csv column of the target at the fit
	Drop    []string `json:"drop,omitempty"`   // csv columns that were left out at the fit
	Groups  string   `json:"groups,omitempty"` // csv column of the groups at the fit
	// Categorical are the csv columns of words and dates that features were made of, with what the fit found of them.
	Categorical []datasets.Category `json:"categorical,omitempty"`
	// of the training file that were read, where a part of them was held out
	Rows    int     `json:"rows,omitempty"`
	Holdout float64 `json:"holdout,omitempty"` // that part: what was not trained on
	// kernel and λ were chosen by the error on the rows of the fit
	Tuned        bool     `json:"tuned,omitempty"`
	Solver       string   `json:"solver"`
	Method       string   `json:"method,omitempty"` // the solver, and the preconditioner where it has one
	Status       string   `json:"status"`
	Tol          float64  `json:"tol"`
	TrueResidual *float64 `json:"true_residual"` // worst ‖y−Ac‖₂/‖y‖₂ of the columns; nil: not measured
	Seed         uint64   `json:"seed"`
	Version      string   `json:"krrlab_version"`
	Created      string   `json:"created"` // RFC 3339
}

// Task returns what the model predicts.
func (m *Model) Task() datasets.Task {
	if m.Labels == nil {
		return datasets.Regression
	}
	return datasets.Classification
}

// Dims returns the number n of training points, their dimension d and the number
// t of columns of C.
func (m *Model) Dims() (n, d, t int) {
	n, d = m.X.Dims()
	_, t = m.C.Dims()
	return n, d, t
}

// Scaled returns d scaled as the model's points are, d itself if it is. Any other scaling is an error.
func (m *Model) Scaled(d *datasets.Dataset) (*datasets.Dataset, error) {
	if _, dim, _ := m.Dims(); d.Dim() != dim {
		return nil, fmt.Errorf("model: points have %d features, the model was fitted on %d", d.Dim(), dim)
	}
	d, err := m.Scaling.Apply(d)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return d, nil
}

// Coding returns the coding that turns the columns of f back into labels.
func (m *Model) Coding() datasets.Coding { return datasets.Coding{Labels: m.Labels, Mean: m.Mean} }

func (m *Model) String() string {
	n, d, t := m.Dims()
	mean := ""
	if m.Mean != nil {
		mean = "mean + "
	}
	return fmt.Sprintf("%v, f(x) = %sΣ c_i k(x_i, x): n=%d, d=%d, t=%d, λ=%g, %v", m.Task(), mean, n, d, t, m.Lambda,
		m.Kernel)
}

func (m *Model) check() error {
	n, d, t := m.Dims()
	rows, _ := m.C.Dims()
	want := max(1, len(m.Targets))
	if len(m.Labels) > 2 {
		want = len(m.Labels)
	}
	switch {
	case n < 1 || d < 1:
		return fmt.Errorf("model: %d points of dimension %d", n, d)
	case rows != n:
		return fmt.Errorf("model: %d rows of coefficients for %d points", rows, n)
	case m.Groups != nil && (len(m.Groups) != n || m.Repeats == nil || m.Repeats.Grouped == 0):
		return fmt.Errorf("model: %d numbers of groups for %d points, chosen by %+v", len(m.Groups), n, m.Repeats)
	case m.Labels != nil && len(m.Labels) < 2:
		return fmt.Errorf("model: %d class label; a classifier has at least 2", len(m.Labels))
	case t != want:
		return fmt.Errorf("model: %d columns of coefficients, want %d for %d labels", t, want, len(m.Labels))
	case m.Mean != nil && (m.Labels != nil || len(m.Mean) != t || finite("mean", m.Mean) != nil):
		return fmt.Errorf("model: means %v of the targets, want a finite one for each of %d columns of a regression",
			m.Mean, t)
	case m.Threshold != 0 && (len(m.Labels) != 2 || finite("threshold", []float64{m.Threshold}) != nil):
		return fmt.Errorf("model: a threshold of %g for %d labels: want a finite one, of two labels", m.Threshold,
			len(m.Labels))
	case m.Columns != nil && len(m.Columns) != d:
		return fmt.Errorf("model: %d names for %d features", len(m.Columns), d)
	case m.Calibration != nil && !m.Calibration.fits(t, m.Labels != nil):
		return fmt.Errorf("model: the scores of its calibration are not columns of ascending numbers, one for each "+
			"of %d targets or one of classes", t)
	case m.Error != nil && !m.Error.fits(t):
		return fmt.Errorf("model: bounds %v of the error, want a number ≥ 0 for each of %d columns", *m.Error, t)
	case m.Scaling != nil && m.Scaling.Dim() != d:
		return fmt.Errorf("model: scaling of %d features for points of dimension %d", m.Scaling.Dim(), d)
	}
	if p := kernel.AsPrecomputed(m.Kernel); p != nil {
		return p.CheckRows(m.X)
	}
	return kernel.Validate(m.Kernel)
}

// fits reports whether the scores are columns as they should be, for t targets or classes.
func (c *Calibration) fits(t int, classes bool) bool {
	if c.Scores == nil || len(c.Slope) != len(c.Offset) || c.Slope != nil && (!classes || len(c.Slope) != t) ||
		finite("slope", append(c.Slope[:len(c.Slope):len(c.Slope)], c.Offset...)) != nil {
		return false
	}
	_, columns := c.Scores.Dims()
	for j := range columns {
		v := mat.Col(nil, j, c.Scores)
		if math.IsNaN(v[0]) || math.IsInf(v[0], -1) || !slices.IsSorted(v) || !classes && v[0] < 0 {
			return false
		}
	}
	return columns == t && !classes || columns == 1 && classes
}

// Score is the judgment of predictions against known answers. Fields that do not
// apply to the task are NaN.
type Score struct {
	N         int     // number of points
	Weighted  bool    // they count by their weights, in means and shares below
	ErrorRate float64 // classification: share of points with a wrong label
	RMSE      float64 // regression: √(Σ(ŷ−y)²/N), in the unit of y
	RelErr    float64 // regression: ‖ŷ−y‖₂/‖y‖₂, the paper's error rate
	R2        float64 // regression: 1 − Σ(ŷ−y)²/Σ(y−ȳ)²
	BestError float64 // ErrorRate or RMSE of the best possible predictor on these points, where it is known
	// Targets are the RMSEs of the targets of a regression with several; the others are then of all answers together,
	// whatever their units.
	Targets []float64
	// Classes are the errors of a classification, class by class; nil of a regression.
	Classes *Classes
}

func (s Score) String() string {
	var best string
	if !math.IsNaN(s.ErrorRate) {
		if !math.IsNaN(s.BestError) {
			best = fmt.Sprintf(" (best possible %.2f %%)", 100*s.BestError)
		}
		return fmt.Sprintf("error %.2f %%%s on %s", 100*s.ErrorRate, best, s.points())
	}
	if !math.IsNaN(s.BestError) {
		best = fmt.Sprintf(" (best possible %s)", outward.Plain(s.BestError, 4))
	}
	if s.Targets != nil { // of units that may differ
		return fmt.Sprintf("RMSE of each target %s on %s", outward.PlainList(s.Targets, 4), s.points())
	}
	r2 := fmt.Sprintf("R² %.4f", s.R2)
	if math.IsInf(s.R2, 0) {
		r2 = "R² undefined, since all answers are alike,"
	}
	return fmt.Sprintf("RMSE %s%s, ‖ŷ−y‖/‖y‖ %s, %s on %s", outward.Plain(s.RMSE, 4), best, outward.Plain(s.RelErr, 4),
		r2, s.points())
}

func (s Score) points() string {
	text := plural.Count(s.N, "point")
	if s.Weighted {
		text += ", weighted"
	}
	return text
}

// Prediction holds the answers of the model for points: Class, with indices into
// Labels, for classification and Value for regression, of several targets the first; Decision holds f itself, m×t.
type Prediction struct {
	Class    []int
	Labels   []string
	Value    []float64
	Targets  []string // names of several targets
	Decision *mat.Dense
}

// MarshalJSON writes for classes their labels, the label of each point and the decision values, a row for each point,
//
//	{"labels": ["no", "yes"], "label": ["yes", …], "decision": [[0.7], …]}
//
// and for a regression {"value": [1.5, …]}, or of several targets {"targets": ["u", "v"], "value": [[1.5, 2], …]}.
func (p *Prediction) MarshalJSON() ([]byte, error) {
	var rows [][]float64
	for i := range p.Decision.RawMatrix().Rows {
		rows = append(rows, p.Decision.RawRowView(i))
	}
	out := map[string]any{"value": p.Value}
	switch {
	case p.Labels != nil:
		label := make([]string, len(p.Class))
		for i := range label {
			label[i] = p.Text(i)
		}
		out = map[string]any{"labels": p.Labels, "label": label, "decision": rows}
	case p.Targets != nil:
		out = map[string]any{"targets": p.Targets, "value": rows}
	}
	return json.Marshal(out)
}

// Text returns the prediction for point i as a label or a number.
func (p *Prediction) Text(i int) string {
	if p.Labels != nil {
		return p.Labels[p.Class[i]]
	}
	return fmt.Sprint(p.Value[i])
}

// ReadOptions returns the options by which a file of new rows, or what a server receives (datasets.Read), is read for
// the model: with the same columns of features, found by their names where both have them, and words and gaps as at the
// fit. Of o count what the fit does not decide, such as Format, Keep and Memory; Drop and Target instead of those of
// the fit where they are set. Answers may be absent unless o has a Target.
func (m *Model) ReadOptions(o datasets.ReadOptions) datasets.ReadOptions {
	if o.Drop == nil {
		o.Drop = m.Origin.Drop
	}
	o.Task, o.Categorical, o.Columns = m.Task().String(), m.Origin.Categorical, m.Columns
	o.DimOf, o.KeepMissing = "the model", m.Scaling.Fills()
	_, o.Dim, _ = m.Dims()
	if o.Target == "" { // the fit's is that of a file with columns
		o.Target, o.TargetOptional = m.Origin.Target, true
		if m.Targets != nil {
			o.More = m.Targets[1:]
		}
	}
	return o
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
	return m.prediction(f), nil
}

// prediction returns what decision values F stand for.
func (m *Model) prediction(f *mat.Dense) *Prediction {
	p := &Prediction{Decision: f, Labels: m.Labels, Targets: m.Targets}
	if m.Labels != nil {
		p.Class = m.Coding().Decode(f)
	} else {
		p.Value = mat.Col(nil, 0, f)
	}
	return p
}

// Evaluate predicts the points of d and judges the result against d's answers.
// Labels are compared by Dataset.ClassIn; a label the model does not know counts as an
// error, and data that have no others are refused.
func (m *Model) Evaluate(ctx context.Context, d *datasets.Dataset, o *Options) (*Score, error) {
	if d.Task != m.Task() {
		return nil, fmt.Errorf("model: test data for %v do not fit a model for %v", d.Task, m.Task())
	}
	if _, err := d.KnownLabels(m.Labels); err != nil {
		return nil, fmt.Errorf("model: %w", err)
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
	s := &Score{N: d.Len(), Weighted: d.Weights != nil, ErrorRate: nan, RMSE: nan, RelErr: nan, R2: nan,
		BestError: d.BestError()}
	if p.Labels != nil {
		s.Classes = p.classes(d)
		var wrong, of float64
		for _, e := range s.Classes.Errors {
			wrong, of = wrong+e.Wrong, of+e.Of
		}
		s.ErrorRate = wrong / of
		return s
	}
	values, answers := [][]float64{p.Value}, append([][]float64{d.Target}, d.More...)
	for j := 1; j < len(answers); j++ {
		values = append(values, mat.Col(nil, j, p.Decision))
	}
	var sse, syy, tss, total float64
	for i := range s.N {
		total += d.Weight(i)
	}
	for j, target := range answers {
		var mean, own float64
		for i, y := range target {
			mean += y * d.Weight(i) / total
		}
		for i, y := range target {
			e, w := values[j][i]-y, d.Weight(i)
			own += w * e * e
			syy += w * y * y
			tss += w * (y - mean) * (y - mean)
		}
		if sse += own; len(answers) > 1 {
			s.Targets = append(s.Targets, math.Sqrt(own/total))
		}
	}
	s.RMSE = math.Sqrt(sse / total / float64(len(answers)))
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

// CheckDecision returns an error that names the first row of F whose decision values are not all
// finite; nil if there is none.
func CheckDecision(f *mat.Dense) error {
	rows, _ := f.Dims()
	for i := range rows {
		for _, v := range f.RawRowView(i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("model: the prediction of row %d (counted from 0) is %g: its features are so "+
					"large that kernel values overflow; correct the row, or fit with --scale standard", i, v)
			}
		}
	}
	return nil
}
