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

// Model is the fitted function f(x) = mean + Σ_i c_i k(x_i, x), with all data that are needed to evaluate it.
type Model struct {
	Kernel kernel.Kernel
	Lambda float64       // ridge λ of the fit
	X      points.Points // training points after Scaling, n×d
	C      *mat.Dense    // coefficients, n×t
	// Labels contains the original labels of the classes; nil for a regression. With two labels, t = 1, and f(x) > 0
	// means Labels[1]. With more labels, t is the number of labels, and the largest f_j(x) determines the label.
	Labels []string
	// Threshold is subtracted from f for two classes, so Labels[1] is predicted if Σ_i c_i k(x_i, x) exceeds it.
	Threshold float64
	Targets   []string // names of the targets of a regression with several; nil for one
	// Mean is added to the columns of f: the mean that was subtracted from the targets of a regression. Nil means 0.
	Mean    []float64
	Scaling *datasets.Scaling // scaling of the training data, from raw features to those of X; nil means none
	Columns []string          // names of the features; nil if the data had none
	// Weighted reports that the rows were weighted in the fit. Then C is W^½Ĉ with (W^½KW^½+λI)Ĉ = W^½Y, and
	// ErrorBounds and the residual in Origin refer to Ĉ. DecisionBounds is valid in spite of that.
	Weighted    bool
	ErrorBounds *ErrorBounds // bounds of the error of C; nil if unknown
	// Groups are the group numbers of the points, for leave-one-out by groups; nil if each point is its own group.
	// Repeats describes how the groups were chosen; nil if the file has a version without this information.
	Groups  []int
	Repeats *datasets.Repeats
	// Answers are the answers of the rows, n×(number of targets) by rows, for a classification the indices into Labels.
	// They are nil in files of older versions, and if classes had weights. Weights are the weights of the rows; nil
	// means ones.
	Answers, Weights []float64
	// Calibration contains the scores for prediction intervals (package interval); nil if there are none.
	Calibration *Calibration
	Origin      Origin
}

// Calibration contains scores that measure the errors of predictions for answers that were not used in the fit. Each
// column is ascending. There is one column for each target of a regression, and a single one for classes.
type Calibration struct {
	Method string     `json:"method"` // interval.Split or interval.Jackknife
	Scores *mat.Dense `json:"-"`
	// Doubt explains why intervals from these scores have no guarantee, for instance because rows repeat. It is empty
	// if the guarantee of Method applies.
	Doubt string `json:"doubt,omitempty"`
	// Slope and Offset belong to the columns of decision values of classes: see interval.Probabilities.
	Slope  []float64 `json:"slope,omitempty"`
	Offset []float64 `json:"offset,omitempty"`
}

// ErrorBounds contains bounds of the error of the coefficients, where c_j* are the columns of the solution of (K+λI)C*
// = Y.
type ErrorBounds struct {
	ANorm []float64 `json:"anorm"` // upper bounds of ‖c_j−c_j*‖_A for every column, A = K+λI
	// Decision are bounds of |f_j*(z)−f_j(z)|/√k(z, z) that do not depend on z. They are at most ANorm, which is used
	// if they are not known.
	Decision []float64 `json:"decision,omitempty"`
	// Certain reports that the bounds are proved from the data. Otherwise they depend on the iteration, or on a sample
	// of rows of K.
	Certain bool `json:"certain"`
}

// Origin describes how a model was made. Only Status, Tol and TrueResidual, which describe the accuracy of C, are used
// in computations; the other fields are information.
type Origin struct {
	Dataset string   `json:"dataset"`          // name of the training data
	Target  string   `json:"target,omitempty"` // csv column of the target in the fit
	Drop    []string `json:"drop,omitempty"`   // csv columns that the fit ignored
	Groups  string   `json:"groups,omitempty"` // csv column of the groups in the fit
	// Categorical are the csv columns of words and dates that were converted to features, with the values in the fit.
	Categorical []datasets.ColumnCoding `json:"categorical,omitempty"`
	// Space says which columns are coordinates, and how they are projected; nil for other features.
	Space *datasets.Space `json:"space,omitempty"`
	// Rows is the number of rows that were read from the training file, if a part of them was held out.
	Rows    int     `json:"rows,omitempty"`
	Holdout float64 `json:"holdout,omitempty"` // fraction of the rows that was not used for training
	// Tuned reports that the kernel and λ were chosen by the error on the rows of the fit.
	Tuned        bool     `json:"tuned,omitempty"`
	Solver       string   `json:"solver"`           // name of the solver
	Method       string   `json:"method,omitempty"` // the solver, and its preconditioner if it has one
	Status       string   `json:"status"`           // how the solve ended
	Tol          float64  `json:"tol"`              // tolerance τ of the relative residual
	TrueResidual *float64 `json:"true_residual"`    // largest ‖y−Ac‖₂/‖y‖₂ of the columns; nil if not measured
	Seed         uint64   `json:"seed"`
	Version      string   `json:"krrlab_version"`
	Created      string   `json:"created"` // RFC 3339
}

// Task returns the kind of task that the model was fitted for.
func (m *Model) Task() datasets.Task {
	if m.Labels == nil {
		return datasets.Regression
	}
	return datasets.Classification
}

// Dims returns the number n of training points, their dimension d and the number t of columns of C, or zeros if m has
// no points or no coefficients.
func (m *Model) Dims() (n, d, t int) {
	if m.X != nil && m.C != nil {
		n, d = m.X.Dims()
		_, t = m.C.Dims()
	}
	return n, d, t
}

// Scaled returns d with the scaling of the model's points, or d itself if d already has this scaling. Scaled returns an
// error if d has another scaling or another number of features.
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

// String describes the model in one line.
func (m *Model) String() string {
	n, d, t := m.Dims()
	mean := ""
	if m.Mean != nil {
		mean = "mean + "
	}
	return fmt.Sprintf("%v, f(x) = %sΣ c_i k(x_i, x): n=%d, d=%d, t=%d, λ=%g, %v", m.Task(), mean, n, d, t, m.Lambda,
		m.Kernel)
}

// check returns an error if the fields of the model contradict each other, as after reading a damaged file.
func (m *Model) check() error {
	n, d, t := m.Dims()
	if n < 1 || d < 1 {
		return fmt.Errorf("model: %d points of dimension %d", n, d)
	}
	rows, _ := m.C.Dims()
	wantColumns := max(1, len(m.Targets))
	if len(m.Labels) > 2 {
		wantColumns = len(m.Labels)
	}
	switch {
	case rows != n:
		return fmt.Errorf("model: %d rows of coefficients for %d points", rows, n)
	case m.Groups != nil && (len(m.Groups) != n || m.Repeats == nil || m.Repeats.Grouped == 0):
		return fmt.Errorf("model: %d numbers of groups for %d points, chosen by %+v", len(m.Groups), n, m.Repeats)
	case m.Labels != nil && len(m.Labels) < 2:
		return fmt.Errorf("model: %d class label; a classifier has at least 2", len(m.Labels))
	case t != wantColumns:
		return fmt.Errorf("model: %d columns of coefficients, want %d for %d labels", t, wantColumns, len(m.Labels))
	case m.Mean != nil && (m.Labels != nil || len(m.Mean) != t || checkFinite("mean", m.Mean) != nil):
		return fmt.Errorf("model: means %v of the targets, want a finite one for each of %d columns of a regression",
			m.Mean, t)
	case m.Threshold != 0 && (len(m.Labels) != 2 || checkFinite("threshold", []float64{m.Threshold}) != nil):
		return fmt.Errorf("model: a threshold of %g for %d labels: want a finite one, of two labels", m.Threshold,
			len(m.Labels))
	case m.Columns != nil && len(m.Columns) != d:
		return fmt.Errorf("model: %d names for %d features", len(m.Columns), d)
	case m.Calibration != nil && !m.Calibration.isValid(t, m.Labels != nil):
		return fmt.Errorf("model: the scores of its calibration are not columns of ascending numbers, one for each "+
			"of %d targets or one of classes", t)
	case m.ErrorBounds != nil && !m.ErrorBounds.isValid(t):
		return fmt.Errorf("model: bounds %v of the error, want a number ≥ 0 for each of %d columns", *m.ErrorBounds, t)
	case m.Scaling != nil && m.Scaling.Dim() != d:
		return fmt.Errorf("model: scaling of %d features for points of dimension %d", m.Scaling.Dim(), d)
	}
	if p := kernel.AsPrecomputed(m.Kernel); p != nil {
		return p.CheckRows(m.X)
	}
	return kernel.Validate(m.Kernel)
}

// isValid reports whether the scores and slopes have the required shape and order, for t targets or classes.
func (c *Calibration) isValid(t int, isClassifier bool) bool {
	if c.Scores == nil || len(c.Slope) != len(c.Offset) || c.Slope != nil && (!isClassifier || len(c.Slope) != t) ||
		checkFinite("slope", append(c.Slope[:len(c.Slope):len(c.Slope)], c.Offset...)) != nil {
		return false
	}
	_, columns := c.Scores.Dims()
	for j := range columns {
		scores := mat.Col(nil, j, c.Scores)
		if math.IsNaN(scores[0]) || math.IsInf(scores[0], -1) || !slices.IsSorted(scores) ||
			!isClassifier && scores[0] < 0 {
			return false
		}
	}
	return columns == t && !isClassifier || columns == 1 && isClassifier
}

// Score is the result of comparing predictions with known answers. Fields that do not apply to the task are NaN.
type Score struct {
	N         int     // number of points
	Weighted  bool    // points count by their weights in the means and shares below
	ErrorRate float64 // classification: share of points with a wrong label
	RMSE      float64 // regression: √(Σ(ŷ−y)²/N), in the unit of y
	RelErr    float64 // regression: ‖ŷ−y‖₂/‖y‖₂, the paper's error rate
	R2        float64 // regression: 1 − Σ(ŷ−y)²/Σ(y−ȳ)²
	BestError float64 // ErrorRate or RMSE of the best possible predictor on these points, if known
	// TargetRMSEs are the RMSEs of the targets of a regression with several targets. The other fields then combine all
	// answers, whatever their units.
	TargetRMSEs []float64
	// Classes are the errors of a classification for each class; nil for a regression.
	Classes *Classes
}

// String describes the errors of the score in one line.
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
	if s.TargetRMSEs != nil { // the targets may have different units
		return fmt.Sprintf("RMSE of each target %s on %s", outward.PlainList(s.TargetRMSEs, 4), s.points())
	}
	r2 := fmt.Sprintf("R² %.4f", s.R2)
	if math.IsInf(s.R2, 0) {
		r2 = "R² undefined, since all answers are alike,"
	}
	return fmt.Sprintf("RMSE %s%s, ‖ŷ−y‖/‖y‖ %s, %s on %s", outward.Plain(s.RMSE, 4), best, outward.Plain(s.RelErr, 4),
		r2, s.points())
}

// points describes the points of the score.
func (s Score) points() string {
	text := plural.Count(s.N, "point")
	if s.Weighted {
		text += ", weighted"
	}
	return text
}

// Prediction contains the predictions of the model for m points.
type Prediction struct {
	Class    []int      // for a classification, the index into Labels for each point
	Labels   []string   // labels of the classes; nil for a regression
	Value    []float64  // for a regression, the value for each point, of the first target if there are several
	Targets  []string   // names of the targets of a regression with several; nil for one
	Decision *mat.Dense // values of f, m×t
}

// MarshalJSON writes, for classes, the labels, the label of each point and the decision values, one row for each point,
//
//	{"labels": ["no", "yes"], "label": ["yes", …], "decision": [[0.7], …]}
//
// and for a regression {"value": [1.5, …]}, or with several targets {"targets": ["u", "v"], "value": [[1.5, 2], …]}.
func (p *Prediction) MarshalJSON() ([]byte, error) {
	var rows [][]float64
	for i := range p.Decision.RawMatrix().Rows {
		rows = append(rows, p.Decision.RawRowView(i))
	}
	fields := map[string]any{"value": p.Value}
	switch {
	case p.Labels != nil:
		label := make([]string, len(p.Class))
		for i := range label {
			label[i] = p.Text(i)
		}
		fields = map[string]any{"labels": p.Labels, "label": label, "decision": rows}
	case p.Targets != nil:
		fields = map[string]any{"targets": p.Targets, "value": rows}
	}
	return json.Marshal(fields)
}

// Text returns the prediction for point i as a label or a number.
func (p *Prediction) Text(i int) string {
	if p.Labels != nil {
		return p.Labels[p.Class[i]]
	}
	return fmt.Sprint(p.Value[i])
}

// Subset returns the prediction for the points with the given indices.
func (p *Prediction) Subset(rows []int) *Prediction {
	_, t := p.Decision.Dims()
	subset := &Prediction{Labels: p.Labels, Targets: p.Targets, Decision: mat.NewDense(len(rows), t, nil)}
	for k, i := range rows {
		if subset.Decision.SetRow(k, p.Decision.RawRowView(i)); p.Labels != nil {
			subset.Class = append(subset.Class, p.Class[i])
		} else {
			subset.Value = append(subset.Value, p.Value[i])
		}
	}
	return subset
}

// ReadOptions returns the options for reading new rows for the model from a file or from a request to a server
// (datasets.Read). The rows must have the same feature columns, which are matched by name if both have names, and words
// and gaps are converted as in the fit. Options in o that the fit does not determine, such as Format, Keep and Memory,
// are kept. Drop and Target of o replace those of the fit if they are set. Answers are optional unless o has a Target.
func (m *Model) ReadOptions(o datasets.ReadOptions) datasets.ReadOptions {
	if o.Drop == nil && m.Origin.Space == nil { // with coordinates, all other columns are left out
		o.Drop = m.Origin.Drop
	}
	o.Task, o.ColumnCodings, o.Columns = m.Task().String(), m.Origin.Categorical, m.Columns
	o.Space = m.Origin.Space
	o.DimSource, o.KeepMissing = "the model", m.Scaling.FillsMissing()
	_, o.Dim, _ = m.Dims()
	if o.Target == "" { // the target of the fit applies only to a file with columns
		o.Target, o.TargetOptional = m.Origin.Target, true
		if m.Targets != nil {
			o.MoreTargets = m.Targets[1:]
		}
	}
	return o
}

// Predict returns the label or the value of each point of d; see Decision. The points may be raw, or scaled as the
// model's points; d.Scaling tells which. Predict returns an error for any other scaling, and if the features of d and
// of the model have different names.
func (m *Model) Predict(ctx context.Context, d *datasets.Dataset, o *Options) (*Prediction, error) {
	f, err := m.decision(ctx, d, o)
	if err != nil {
		return nil, err
	}
	return m.prediction(f), nil
}

// prediction returns the prediction for the decision values F.
func (m *Model) prediction(f *mat.Dense) *Prediction {
	p := &Prediction{Decision: f, Labels: m.Labels, Targets: m.Targets}
	if m.Labels != nil {
		p.Class = m.Coding().Decode(f)
	} else {
		p.Value = mat.Col(nil, 0, f)
	}
	return p
}

// Evaluate predicts the points of d and compares the result with d's answers. Labels are compared by Dataset.ClassIn. A
// label that the model does not know counts as an error. If no label is known, Evaluate returns an error.
func (m *Model) Evaluate(ctx context.Context, d *datasets.Dataset, o *Options) (*Score, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	if d.Task != m.Task() {
		return nil, fmt.Errorf("model: test data for %v do not fit a model for %v", d.Task, m.Task())
	}
	if _, err := d.CheckLabels(m.Labels); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	p, err := m.Predict(ctx, d, o)
	if err != nil {
		return nil, err
	}
	return p.Score(d), nil
}

// Score compares the prediction with the answers of d, which must have the same number of points.
func (p *Prediction) Score(d *datasets.Dataset) *Score {
	nan := math.NaN()
	s := &Score{N: d.Len(), Weighted: d.Weights != nil, ErrorRate: nan, RMSE: nan, RelErr: nan, R2: nan,
		BestError: d.BestError()}
	if p.Labels != nil {
		s.Classes = p.scoreClasses(d)
		var wrong, total float64
		for _, e := range s.Classes.Errors {
			wrong, total = wrong+e.Wrong, total+e.Total
		}
		s.ErrorRate = wrong / total
		return s
	}
	values, answers := [][]float64{p.Value}, d.TargetColumns()
	for j := 1; j < len(answers); j++ {
		values = append(values, mat.Col(nil, j, p.Decision))
	}
	var sse, syy, tss, total float64 // Σw(ŷ−y)², Σwy², Σw(y−ȳ)² over all targets, and Σw
	for i := range s.N {
		total += d.Weight(i)
	}
	for j, target := range answers {
		var mean, targetSSE float64
		for i, y := range target {
			mean += y * d.Weight(i) / total
		}
		for i, y := range target {
			e, w := values[j][i]-y, d.Weight(i)
			targetSSE += w * e * e
			syy += w * y * y
			tss += w * (y - mean) * (y - mean)
		}
		if sse += targetSSE; len(answers) > 1 {
			s.TargetRMSEs = append(s.TargetRMSEs, math.Sqrt(targetSSE/total))
		}
	}
	s.RMSE = math.Sqrt(sse / total / float64(len(answers)))
	s.RelErr = ratio(math.Sqrt(sse), math.Sqrt(syy))
	s.R2 = 1 - ratio(sse, tss)
	return s
}

// ratio returns a/b, with 0/0 = 0.
func ratio(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return a / b
}

// CheckDecision returns an error that names the first row of F with a decision value that is not finite, and nil if
// there is none.
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
