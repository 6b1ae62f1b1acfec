package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
)

// Point is an evaluated point of the search: one kernel and one λ.
type Point struct {
	Kernel string `json:"kernel"`
	// Sigma is the length scale. It is 0 for a polynomial kernel, the geometric mean of Lengths if they are set, and
	// √d/‖L‖_F if Matrix has the entries of a matrix L, where d is the number of features.
	Sigma  float64 `json:"sigma"`
	Gamma  float64 `json:"gamma,omitempty"`  // γ of the polynomial kernel (γxᵀz+c)^q
	Coef0  float64 `json:"coef0,omitempty"`  // c of the polynomial kernel
	Degree int     `json:"degree,omitempty"` // degree q of the polynomial kernel
	// Params are the parameters of a registered kernel.
	Params kernel.Params `json:"params,omitempty"`
	Lambda float64       `json:"lambda"`
	// Lengths are the length scales of the features, and Matrix has the entries of the matrix L of the distance
	// ‖L(x−z)‖ by rows, in the form of krrlab fit --sigma and datasets.ChangeDistance. If both are nil, σ is the length
	// scale of all features.
	Lengths []float64 `json:"lengths,omitempty"`
	Matrix  []float64 `json:"matrix,omitempty"`
	// Error is the error by Result.Metric, such as the share of wrong labels, or √(Σ(y_i−f(x_i))²/n). It is null if
	// K+λI is not positive definite in float64, or if the solve did not converge.
	Error stage.Number `json:"error"`
	Lo    stage.Number `json:"lo"` // lower end of the 95 % interval of Error over samples of rows or groups of rows
	Hi    stage.Number `json:"hi"` // upper end of this interval
	// ModeledError is the error that the model of the search predicts at this point, from the errors of all points.
	ModeledError stage.Number `json:"model"`
	Level        int          `json:"level"` // index in Result.Levels
	Seconds      float64      `json:"seconds"`
}

// Distance returns Lengths or Matrix, in the form of datasets.ChangeDistance; nil if σ is the length scale of all
// features.
func (p *Point) Distance() []float64 { return slices.Concat(p.Lengths, p.Matrix) }

// Spec returns the specification of the kernel. If Lengths or Matrix is set, the kernel has σ = 1 and applies to points
// stretched by them.
func (p *Point) Spec() kernel.Spec {
	switch {
	case p.Params != "":
		return kernel.Spec{Name: p.Kernel, Params: p.Params}
	case p.Distance() != nil:
		return kernel.Spec{Name: p.Kernel, Sigma: 1}
	}
	return kernel.Spec{Name: p.Kernel, Sigma: p.Sigma, Gamma: p.Gamma, Coef0: p.Coef0, Degree: p.Degree}
}

// Level describes a part of the search with a fixed number of rows.
type Level struct {
	Name    string  `json:"name"`
	Rows    int     `json:"rows"`   // number of fitted rows
	Points  int     `json:"points"` // number of evaluated points
	Seconds float64 `json:"seconds"`
}

// ErrorMap is the error of the chosen kernel on a grid about the chosen point, by the model of the search.
type ErrorMap struct {
	Scale  []float64   `json:"scale"` // σ, or γ of a polynomial
	Lambda []float64   `json:"lambda"`
	Error  [][]float64 `json:"error"` // [i][j] at Lambda[i], Scale[j]
}

// Result is the result of a search. Its Header has the chosen kernel and λ.
type Result struct {
	stage.Header
	Criterion string `json:"criterion"`
	Quick     bool   `json:"quick,omitempty"` // whether a single subsample decided (Options.Quick)
	// Metric is the optimized metric. Errors are its losses: 1 − AUC, 1 − F1, or the metric itself for all others.
	Metric model.Metric `json:"metric"`
	// PositiveClass is the class whose F1 was optimized, if there are two classes; otherwise it is "".
	PositiveClass string `json:"metric_of,omitempty"`
	Best          Point  `json:"best"`
	// Baseline is the error of predicting the same for each row: the mean answer, the most frequent class, or for the
	// log loss the shares of the classes. It is null for other metrics of classes.
	Baseline stage.Number `json:"baseline"`
	Points   []Point      `json:"points"` // evaluated points, by levels and in the order of their evaluation
	Levels   []Level      `json:"levels"`
	// ExpectedGain is the relative reduction of the error expected from one more point when the search ended; null
	// without a model.
	ExpectedGain stage.Number   `json:"gain"`
	Distances    []*DistanceFit `json:"distances,omitempty"` // distances that were fitted, in this order
	ErrorMap     *ErrorMap      `json:"map,omitempty"`       // null if σ or λ was not searched
	Command      string         `json:"command,omitempty"`   // command that fits with the result
	// DistanceNote explains why no distance was searched although Options.Distance requests it; "" otherwise.
	DistanceNote string `json:"lacks,omitempty"`
	// MemoryNote states that the memory budget limited the rows of the search; "" otherwise.
	MemoryNote string  `json:"limited,omitempty"`
	Seconds    float64 `json:"seconds"`
	// Repeats states which rows are left out, or held out, together, and for which kind of rows the errors are.
	Repeats datasets.Repeats `json:"repeats"`
	// OtherError is the error of Best for rows of the kind Repeats.OtherRowKind. It is null if there is no such kind,
	// or the last level did not use leave-one-out.
	OtherError stage.Number `json:"other_error"`

	classWeights bool   // whether the fits had class weights, which do not count in the errors
	edge         string // report line if Best is at an end of its grid; else ""
}

// result returns the result of the points evaluated so far, or nil if none of them has a loss.
func (s *search) result() *Result {
	lastLevel := len(s.levels) - 1
	for lastLevel > 0 && s.levels[lastLevel].points == nil {
		lastLevel--
	}
	best := s.choosePoint(lastLevel)
	if best == nil && lastLevel > 0 && s.levels[lastLevel].canEvaluate != nil { // all fits by Fourier series failed
		best = s.choosePoint(lastLevel - 1)
	}
	if best == nil {
		return nil
	}
	r := &Result{Criterion: s.data.criterion(), Quick: s.options.Quick, Metric: s.data.judgment.metric,
		Baseline: s.baseline(), ExpectedGain: stage.Number(s.expectedGain), Best: s.describe(best),
		Distances: s.distances, DistanceNote: s.distanceNote, Seconds: time.Since(s.start).Seconds()}
	for _, level := range s.levels {
		reported := Level{Name: level.name, Rows: level.rows, Points: len(level.points)}
		for _, point := range level.points {
			described := s.describe(point)
			r.Points = append(r.Points, described)
			reported.Seconds += described.Seconds
		}
		r.Levels = append(r.Levels, reported)
	}
	if lastIndex := len(r.Levels) - 1; r.Best.Level < lastIndex && s.lastFailure != nil {
		r.Levels[lastIndex].Name += fmt.Sprintf(", without a fit: %v", s.lastFailure)
	}
	r.ErrorMap, r.Repeats, r.OtherError = s.errorMap(best), s.groups.Repeats, stage.Unknown
	if s.data.validation != nil {
		r.Repeats = s.data.validation.Grouping(nil).Repeats
	}
	if r.edge = best.edge(); r.edge != "" {
		r.edge += ": others, held by flags, may be better"
	}
	return r
}

// maxBaselineRows is the largest number of training rows for which the baseline is computed. A larger number is more
// accurate and takes more memory.
const maxBaselineRows = 20000

// baseline returns Result.Baseline for the validation rows if there are any, and otherwise for at most maxBaselineRows
// training rows.
func (s *search) baseline() stage.Number {
	judgment := s.data.judgment
	if judgment.hasClasses() && judgment.metric != model.ErrorRate && judgment.metric != model.LogLoss {
		return stage.Unknown
	}
	n, t := s.data.y.Dims()
	mean := make([]float64, t)
	for j := range mean {
		mean[j] = stat.Mean(mat.Col(nil, j, s.data.y), s.data.train.Weights)
	}
	y := s.data.validationY
	if y == nil {
		rows := s.order[:min(n, maxBaselineRows)]
		y = rowsOf(s.data.y, rows)
		if s.data.train.Weights != nil {
			for _, i := range rows {
				judgment.weights = append(judgment.weights, s.data.train.Weights[i])
			}
		}
	} else {
		judgment.weights = s.data.validation.Weights
	}
	residuals := mat.DenseCopyOf(y)
	residuals.Apply(func(_, j int, value float64) float64 { return value - mean[j] }, residuals)
	value, _, _ := judgment.loss(y, residuals).errorInterval()
	return stage.Number(value)
}

// edge names the ends of the grids at which a point lies, because the error may be smaller beyond them. It returns ""
// for a point inside the grids.
func (p *point) edge() string {
	var notes []string
	for axis, grid := range p.family.grid {
		name, value, extremes := "λ", p.lambda(), []string{"least", "largest"}
		if axis == 0 {
			name, value = "σ", p.family.reportedScale(p.scale())
			if kernel.ArgumentOf(p.family.base) == kernel.InnerProduct { // the scale is 1/γ
				name, extremes = "γ", []string{"largest", "least"}
			}
		}
		if i := slices.Index(grid, p.location[axis]); len(grid) > 1 && (i == 0 || i == len(grid)-1) {
			notes = append(notes, fmt.Sprintf("%s = %g is the %s that is searched", name, value, extremes[min(i, 1)]))
		}
	}
	return strings.Join(notes, "; ")
}

// errorMap returns the map about the best point, or nil if the scale or λ has fewer than two grid values. The map
// extends from a seventh to 7 times the scale, and from 10⁻⁴ to 10⁴ times λ.
func (s *search) errorMap(best *point) *ErrorMap {
	errorMap := &ErrorMap{}
	var logAxes [2][]float64
	for axis, maxDistance := range [2]float64{math.Log(7), math.Log(1e4)} {
		for _, logLambda := range best.family.grid[axis] {
			if math.Abs(logLambda-best.location[axis]) < maxDistance {
				logAxes[axis] = append(logAxes[axis], logLambda)
			}
		}
		if len(logAxes[axis]) < 2 {
			return nil
		}
	}
	for _, logScale := range logAxes[0] {
		errorMap.Scale = append(errorMap.Scale, best.family.reportedScale(roundToThreeDigits(math.Exp(logScale))))
	}
	for _, logLambda := range logAxes[1] {
		errorMap.Lambda = append(errorMap.Lambda, roundToThreeDigits(math.Exp(logLambda)))
		row := make([]float64, len(logAxes[0]))
		for j, logScale := range logAxes[0] {
			row[j] = math.Exp(s.model(best.level, best.family).mean([2]float64{logScale, logLambda}))
		}
		errorMap.Error = append(errorMap.Error, row)
	}
	if errorMap.Scale[0] > errorMap.Scale[1] { // γ decreases as the scale grows
		slices.Reverse(errorMap.Scale)
		for _, row := range errorMap.Error {
			slices.Reverse(row)
		}
	}
	return errorMap
}

// reportedScale returns the scale in the unit of reports: the length scale, or γ of a polynomial.
func (f *family) reportedScale(scale float64) float64 {
	k := f.kernel(scale)
	if polynomial, ok := k.(kernel.Polynomial); ok {
		return polynomial.Gamma
	}
	return k.(kernel.Scaled).Scale()
}

// choosePoint returns the smoothest of the points of a level that tie with the point of smallest modeled error, or nil
// if no point has a loss. Points without length scales or a matrix count as the smoothest; among them the order is that
// of defaultKernels, then larger λ come first, and then larger scales.
func (s *search) choosePoint(level int) *point {
	best, lowest := s.bestPoint(level)
	if best == nil {
		return nil
	}
	var tied []*point
	for _, p := range s.levels[level].points {
		if p.loss == nil {
			continue
		}
		excess, standardError := p.loss.relativeExcess(best.loss)
		modeled := s.model(level, p.family).mean(p.location)
		if p == best || excess <= min(standardError, tieTolerance) && modeled-lowest <= tieTolerance {
			tied = append(tied, p)
		}
	}
	return slices.MinFunc(tied, func(a, b *point) int {
		roughness := func(p *point) int { // rank of the kernel, 0 for the smoothest
			if i := slices.Index(defaultKernels, p.family.name); i >= 0 {
				return i
			}
			return len(defaultKernels) + p.family.index
		}
		return cmp.Or(cmp.Compare(len(a.family.shape), len(b.family.shape)), cmp.Compare(roughness(a), roughness(b)),
			cmp.Compare(b.location[1], a.location[1]), cmp.Compare(b.location[0], a.location[0]))
	})
}

// describe returns the reported form of a point.
func (s *search) describe(p *point) Point {
	scale := p.scale()
	if p.family.shape != nil {
		scale = 1 // the points are stretched
	}
	spec := p.family.spec(scale)
	described := Point{
		Kernel: spec.Name, Gamma: spec.Gamma, Coef0: spec.Coef0, Degree: spec.Degree, Params: spec.Params,
		Lambda: p.lambda(), Level: p.level,
	}
	stage.SetUnknown(&described)
	if spec.Gamma == 0 {
		described.Sigma = p.scale()
	}
	for _, value := range p.family.shape {
		if len(p.family.shape) > s.data.train.Dim() {
			described.Matrix = append(described.Matrix, outward.Rounded(value/described.Sigma, 7))
		} else {
			// Six digits are exact for the product of two numbers of three digits.
			described.Lengths = append(described.Lengths, outward.Rounded(described.Sigma*value, 6))
		}
	}
	if p.loss == nil {
		return described
	}
	value, lo, hi := p.loss.errorInterval()
	described.Error, described.Lo, described.Hi = stage.Number(value), stage.Number(lo), stage.Number(hi)
	described.Seconds = p.loss.seconds
	_, _, offset := p.loss.comparedLosses()
	described.ModeledError = stage.Number(math.Exp(s.model(p.level, p.family).mean(p.location)) - offset)
	return described
}
