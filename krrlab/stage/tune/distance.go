package tune

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
)

// Values of Options.Distance.
const (
	autoDistance    = "auto"
	sigmaDistance   = "sigma"
	lengthsDistance = "lengths"
	fullDistance    = "full"
)

// Limits of the search for a distance, and its prior, chosen by judgment.
const (
	maxFeatures     = 64   // maximum number of features
	maxFittedRows   = 1000 // maximum number of rows to fit to; it is also at most half of the rows
	minFittedRows   = 100  // minimum number of rows to fit to
	rowsPerFeature  = 5    // minimum number of rows to fit to per feature
	maxJudgingRatio = 3    // maximum number of judging rows per fitted row
	maxEvaluations  = 25   // maximum number of evaluations of the objective for one distance
	maxJoinPoints   = 6    // maximum number of points of the new family on the level where it joins
	maxDirections   = 6    // maximum number of reported directions
	lengthSD        = 2    // prior standard deviation of log ℓ_j about log σ; a larger one allows more varied lengths
	matrixSD        = 1    // prior standard deviation of the entries of a matrix, times √d
)

// DistanceFit is the result of the search for a distance of points: one length scale per feature, or a matrix L and the
// distance ‖L(x−z)‖.
type DistanceFit struct {
	Kind       string  `json:"kind"` // lengths or full
	Kernel     string  `json:"kernel"`
	Sigma      float64 `json:"sigma"` // geometric mean of the length scales, or √d/‖L‖_F
	Lambda     float64 `json:"lambda"`
	FittedRows int     `json:"rows"` // number of rows that the distance was fitted to

	JudgingRows   int     `json:"judging"`   // number of judging rows, which were not used for the fit
	Error         float64 `json:"error"`     // error of the judging rows
	PreviousError float64 `json:"simpler"`   // error of the same kernel with the distance that the fit began with
	Gain          float64 `json:"gain"`      // relative reduction of the error, from PreviousError to Error
	GainError     float64 `json:"deviation"` // standard error of Gain
	Accepted      bool    `json:"accepted"`  // the kernel with this distance joined the search

	Shape []float64 `json:"shape"` // length scales over Sigma, or L by rows times Sigma
	// RelevantFeatures are the features, those first whose change by a standard deviation changes distances most.
	RelevantFeatures []string    `json:"relevant"`
	Directions       []Direction `json:"directions,omitempty"` // directions of a matrix, the shortest length scale first
	Seconds          float64     `json:"seconds"`
}

// Direction is a right singular vector of L·diag(s), where s_j is the standard deviation of feature j.
type Direction struct {
	Length   float64   `json:"length"`   // length scale along the direction: 1 over the singular value
	Features []float64 `json:"features"` // coordinates of the direction in standard deviations; the largest is positive
	Text     string    `json:"text"`     // largest coordinates of the direction, such as "0.71 a − 0.7 b"
}

// summary returns the result as one line.
func (f *DistanceFit) summary(m model.Metric) string {
	errors := fmt.Sprintf("%s, without %s", m.Text(f.Error), strings.TrimPrefix(m.Text(f.PreviousError), m.Name()+" "))
	verdict := map[bool]string{true: "taken", false: "not taken"}[f.Accepted]
	kind := map[string]string{lengthsDistance: "one for each feature", fullDistance: "a matrix"}[f.Kind]
	return fmt.Sprintf("%s, %s: %s of %d rows that took no part; %s ± %s less", kind, verdict, errors, f.JudgingRows,
		outward.Percent(f.Gain, 2), outward.Percent(f.GainError, 1))
}

// distanceObstacle explains why no distance can be searched for the kernel of a family; it is "" if one can.
func (f *family) distanceObstacle() string {
	if kernel.ArgumentOf(f.base) == kernel.InnerProduct {
		return fmt.Sprintf("the kernel %s is a function of inner products", f.name)
	}
	if _, ok := f.base.(kernel.Differentiable); !ok {
		return fmt.Sprintf("the kernel %s has no method Derivative (kernel.Differentiable)", f.name)
	}
	return ""
}

// distanceRows returns the number of rows that a distance is fitted to. reason explains why no distance can be searched
// for these data; it is "" if one can.
func (s *search) distanceRows() (fittedRows int, reason string) {
	rows, d := len(s.distinctRows()), s.data.train.Dim()
	rowLimit, minRows := min(maxFittedRows, rows/2), max(minFittedRows, rowsPerFeature*d)
	// In addition to K and one table, matrixGradient has three matrices: A, G and H.
	fittedRows = maxRows(s.opt.memory, rowLimit, func(fittedRows int) int64 {
		return sampleBytes(fittedRows+judgingCount(rows, fittedRows), fittedRows, d, 1, 3)
	})
	switch {
	case d < 2 || d > maxFeatures:
		reason = fmt.Sprintf("there are %d features, want 2 to %d", d, maxFeatures)
	case rowLimit < minRows:
		reason = fmt.Sprintf("there are %d different rows, want %d for %d features", rows, 2*minRows, d)
	case fittedRows < minRows:
		reason = fmt.Sprintf("the memory (--memory) allows %d rows only", fittedRows)
	}
	return fittedRows, reason
}

// searchDistances searches, after a level (the part of the search on one sample of rows), for a length scale per
// feature and then for a matrix. If a distance reduces the error of rows not used for its fit by more than two standard
// errors of the difference, the best kernel with this distance joins the search on this level.
func (s *search) searchDistances(ctx context.Context, level int) error {
	best, _ := s.bestPoint(level)
	if s.opt.Distance == sigmaDistance || s.opt.Sigma > 0 || best == nil {
		return nil
	}
	fittedRows, reason := s.distanceRows()
	if reason == "" {
		reason = best.family.distanceObstacle()
	}
	if reason != "" {
		s.distanceNote = "not searched: " + reason
		return nil
	}
	s.levels[level].sample.freeMatrices()
	fit := s.newDistanceSearch(best, fittedRows)
	for _, kind := range []string{lengthsDistance, fullDistance} {
		if kind == fullDistance && s.opt.Distance == lengthsDistance {
			break
		}
		if s.notify != nil {
			s.notify(stage.Event{Stage: stage.Tune, Remaining: -1, Detail: fmt.Sprintf("distance %s of %d features "+
				"for %s on %d rows", kind, fit.x.D, best.family.name, fittedRows)})
		}
		result, err := fit.run(ctx, kind)
		if err != nil {
			return err
		}
		if result == nil {
			continue
		}
		s.distances = append(s.distances, result)
		result.describe(fit.x, s.data.train.Columns)
		if result.Accepted {
			if err := s.addFamily(ctx, level, best.family, result); err != nil {
				return err
			}
		}
	}
	return nil
}

// addFamily adds the family of a kernel with a distance to the search, and explores it on the level with at most
// maxJoinPoints points. The grid of the scale is centered on the fitted σ, and the search begins at the fitted σ and λ.
func (s *search) addFamily(ctx context.Context, level int, base *family, result *DistanceFit) error {
	f := *base
	f.index, f.shape, f.firstLevel = len(s.families), result.Shape, level
	sigmaAxis := scaleAxis
	sigmaAxis.start = []float64{1}
	f.grid[0], f.start[0] = sigmaAxis.grid(0, result.Sigma)
	f.start[1] = []float64{f.grid[1][nearestIndex(f.grid[1], math.Log(result.Lambda))]}
	s.families = append(s.families, &f)
	s.models[level] = append(s.models[level], nil)
	s.levels[level].maxPoints = len(s.levels[level].points) + maxJoinPoints
	return s.explore(ctx, level, []*family{&f})
}

// judgingCount returns the number of judging rows among n rows, of which m are fitted.
func judgingCount(n, m int) int { return min(maxJudgingRatio*m, n-m) }

// distanceSearch fits distances to the first m rows of a sample and judges them by the others, the judging rows.
type distanceSearch struct {
	distanceObjective               // objective, without points and prior
	sample            *sample       // all rows
	x                 *points.Dense // points of all rows, centered
	name              string        // name of the kernel
	m, judged         int           // number m of fitted rows, and number of judging rows
	lengths           []float64     // length scales of the distance accepted last
	lambda            float64       // λ of that distance
}

// newDistanceSearch returns the fit to m rows for the kernel of a point, starting from its σ and λ.
func (s *search) newDistanceSearch(p *point, m int) *distanceSearch {
	rows := s.distinctRows() // judging rows must not be copies of fitted ones
	f := &distanceSearch{name: p.family.name, m: m, judged: judgingCount(len(rows), m), lambda: p.lambda()}
	f.sample = s.trainingSample(rows[:m])
	f.distanceObjective = distanceObjective{y: points.ScaleRows(f.sample.sqrtWeights, f.sample.y),
		k:           p.family.kernel(1).(kernel.Differentiable),
		sqrtWeights: f.sample.sqrtWeights, freeLambda: s.opt.Lambda == 0}
	judging := s.trainingSample(rows[m : m+f.judged])
	f.sample.appendJudging(judging.x, judging.y, judging.judgment)
	f.x = centeredDense(f.sample.x)
	f.lengths = slices.Repeat([]float64{p.scale()}, f.x.D)
	return f
}

// run fits a distance of the given kind and judges it. It returns nil if K+λI is not positive definite in float64, or
// if no error is left to reduce.
//
// The fit is of points divided by the length scales accepted last, so that the shape begins at zero logarithms, or at
// the identity matrix. The prior has the mean there. The entries of a matrix have the standard deviation matrixSD/√d: a
// random matrix of such entries has singular values up to 2·matrixSD.
func (f *distanceSearch) run(ctx context.Context, kind string) (*DistanceFit, error) {
	start, x := time.Now(), stretch(f.x, f.lengths)
	objective, theta := f.objectiveOf(kind, x)
	lambdaIndex := len(theta) - 1
	fitted, err := objective.minimize(ctx, theta)
	if err != nil {
		return nil, ctx.Err()
	}

	var losses [2]*loss // of the judging rows, with the fitted distance and with the previous one
	for i, theta := range [][]float64{fitted, theta} {
		f.sample.freeMatrices()
		f.sample.x = stretch(x, objective.shape(theta))
		if losses[i], err = f.sample.loss(ctx, objective.k, math.Exp(theta[lambdaIndex])); err != nil {
			return nil, ctx.Err()
		}
	}
	result := &DistanceFit{Kind: kind, Kernel: f.name, FittedRows: f.m, JudgingRows: f.judged,
		Shape: objective.shape(fitted), Lambda: roundToThreeDigits(math.Exp(fitted[lambdaIndex]))}
	result.Error, _, _ = losses[0].Error()
	result.PreviousError, _, _ = losses[1].Error()
	result.Gain, result.GainError = losses[0].relativeExcess(losses[1])
	result.Gain = -result.Gain
	result.Accepted = result.Gain > max(2*result.GainError, tieTolerance)

	for j := range result.Shape { // combine with the length scales that the points were divided by
		if objective.matrix {
			result.Shape[j] /= f.lengths[j%f.x.D]
		} else {
			result.Shape[j] *= f.lengths[j]
		}
	}
	if result.Accepted && !objective.matrix {
		f.lengths, f.lambda = slices.Clone(result.Shape), math.Exp(fitted[lambdaIndex])
	}
	result.separateSigma(objective.matrix, f.x.D)
	result.Seconds = time.Since(start).Seconds()
	return result, nil
}

// objectiveOf returns the objective of a distance of the given kind for the points x, which are divided by the length
// scales accepted last, and the parameters with which the fit begins: those of the shape, then ln λ.
func (f *distanceSearch) objectiveOf(kind string, x *points.Dense) (o distanceObjective, theta []float64) {
	d := x.D
	o = f.distanceObjective
	o.x, o.matrix = x.Slice(0, f.m).(*points.Dense), kind == fullDistance
	o.priorPrecision = 1 / (float64(f.m) * lengthSD * lengthSD)
	theta = make([]float64, d+1)
	if o.matrix {
		theta = make([]float64, d*d+1)
		for j := range d {
			theta[j*d+j] = 1
		}
		o.priorPrecision = float64(d) / (float64(f.m) * matrixSD * matrixSD)
	}
	theta[len(theta)-1], o.priorMean = math.Log(f.lambda), theta
	return o, theta
}

// separateSigma moves the size of the shape, for d features, from Shape to Sigma, and rounds both.
func (f *DistanceFit) separateSigma(isMatrix bool, d int) {
	digits := 3
	if isMatrix {
		f.Sigma = roundToThreeDigits(math.Sqrt(float64(d)) / floats.Norm(f.Shape, 2))
		floats.Scale(f.Sigma, f.Shape)
		digits = 6
	} else {
		mean := stat.GeometricMean(f.Shape, nil)
		floats.Scale(1/mean, f.Shape)
		f.Sigma = roundToThreeDigits(mean)
	}
	for j, v := range f.Shape {
		f.Shape[j] = outward.Rounded(v, digits)
	}
}

// centeredDense returns the points as float64, less their mean.
func centeredDense(x points.Points) *points.Dense {
	n, d := x.Dims()
	out := points.NewDense(n, d, nil)
	points.RowsTo(points.Shift(x, points.Mean(x)), out.Data, d)
	return out
}

// describe sets the relevant features and the directions of the distance, for the points x whose features have the
// given names, or numbers if names is nil. Both follow from L·diag(s), where s_j is the standard deviation of feature
// j: the norm of column j is the change of distances per standard deviation.
func (f *DistanceFit) describe(x *points.Dense, names []string) {
	d := x.D
	l, sizes := mat.NewDense(d, d, nil), make([]float64, d) // L·diag(s), and the norms of its columns
	for k := range d {
		sd := stat.StdDev(mat.Col(nil, k, mat.NewDense(x.N, d, x.Data)), nil)
		for j := range d {
			switch {
			case f.Kind == fullDistance:
				l.Set(j, k, f.Shape[j*d+k]*sd/f.Sigma)
			case j == k:
				l.Set(j, k, sd/(f.Shape[j]*f.Sigma))
			}
		}
		sizes[k] = mat.Norm(l.ColView(k), 2)
	}
	name := func(j int) string {
		if names == nil {
			return fmt.Sprintf("feature %d", j)
		}
		return names[j]
	}
	for _, j := range decreasing(sizes) {
		f.RelevantFeatures = append(f.RelevantFeatures, name(j))
	}

	var svd mat.SVD
	if f.Kind != fullDistance || !svd.Factorize(l, mat.SVDFull) {
		return
	}
	var v mat.Dense
	svd.VTo(&v)
	for i, size := range svd.Values(nil)[:min(d, maxDirections)] {
		direction := Direction{Length: 1 / max(size, math.SmallestNonzeroFloat64), Features: mat.Col(nil, i, &v)}
		order := decreasing(direction.Features)
		if direction.Features[order[0]] < 0 {
			floats.Scale(-1, direction.Features)
		}
		for rank, j := range order[:min(4, d)] { // up to four coordinates, without small ones
			c := direction.Features[j]
			if rank > 0 && math.Abs(c) < 0.2 {
				break
			}
			sign := map[bool]string{true: " − ", false: " + "}[c < 0]
			direction.Text += sign + outward.Plain(math.Abs(c), 2) + " " + name(j)
		}
		direction.Text = strings.TrimPrefix(direction.Text, " + ")
		f.Directions = append(f.Directions, direction)
	}
}

// decreasing returns the indices of v in the order of decreasing absolute values.
func decreasing(v []float64) []int {
	size, order := make([]float64, len(v)), make([]int, len(v))
	for j, c := range v {
		size[j] = -math.Abs(c)
	}
	floats.ArgsortStable(size, order)
	return order
}

// minimize minimizes the objective from θ by L-BFGS with at most maxEvaluations evaluations, and returns the final θ.
// It returns an error if the objective has no value at the start, or if ctx ended.
func (r *distanceObjective) minimize(ctx context.Context, theta []float64) ([]float64, error) {
	evaluatedAt, grad, value := make([]float64, len(theta)), make([]float64, len(theta)), math.NaN()
	var failed error
	eval := func(x []float64) {
		if !math.IsNaN(value) && floats.Equal(x, evaluatedAt) { // Func and Grad are called at the same point
			return
		}
		copy(evaluatedAt, x)
		// If K+λI is not positive definite, the value is infinite and the line search steps back.
		if value, failed = r.value(ctx, x, grad); failed != nil {
			value = math.Inf(1)
			clear(grad)
		}
	}
	p := optimize.Problem{
		Func:   func(x []float64) float64 { eval(x); return value },
		Grad:   func(g, x []float64) { eval(x); copy(g, grad) },
		Status: func() (optimize.Status, error) { return optimize.NotTerminated, ctx.Err() },
	}
	if eval(theta); failed != nil {
		return nil, failed
	}
	// Minimize returns an error if ctx ended, or if no step decreases the objective any more; the latter is fine.
	result, _ := optimize.Minimize(p, theta, &optimize.Settings{
		FuncEvaluations: maxEvaluations, GradientThreshold: 1e-4,
		Converger: &optimize.FunctionConverge{Absolute: 1e-3, Iterations: 3},
	}, &optimize.LBFGS{})
	if ctx.Err() != nil || result == nil {
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("tune: no distance to begin at"))
	}
	return result.X, nil
}
