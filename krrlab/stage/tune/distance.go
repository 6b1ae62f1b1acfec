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

// Limits of the search for a distance, and the prior of its parameters. They were chosen by judgment.
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
	Kind       string  `json:"kind"`   // "lengths", or "full" for a matrix
	Kernel     string  `json:"kernel"` // name of the kernel
	Sigma      float64 `json:"sigma"`  // geometric mean of the length scales, or √d/‖L‖_F
	Lambda     float64 `json:"lambda"`
	FittedRows int     `json:"rows"` // number of rows that the distance was fitted to

	JudgingRows   int     `json:"judging"`   // number of judging rows, which were not used for the fit
	Error         float64 `json:"error"`     // error of the judging rows
	PreviousError float64 `json:"simpler"`   // error of the same kernel with the distance that the fit began with
	Gain          float64 `json:"gain"`      // relative reduction of the error, from PreviousError to Error
	GainError     float64 `json:"deviation"` // standard error of Gain
	Accepted      bool    `json:"accepted"`  // whether the kernel with this distance joined the search

	Shape []float64 `json:"shape"` // length scales over Sigma, or entries of L by rows times Sigma
	// RelevantFeatures are the names of the features. A feature comes earlier if changing it by its standard deviation
	// changes distances more.
	RelevantFeatures []string `json:"relevant"`
	// Directions are the directions of a matrix, the one with the shortest length scale first.
	Directions []Direction `json:"directions,omitempty"`
	Seconds    float64     `json:"seconds"`
}

// Direction is a right singular vector of L·diag(s), where s_j is the standard deviation of feature j.
type Direction struct {
	Length   float64   `json:"length"`   // length scale along the direction: 1 over the singular value
	Features []float64 `json:"features"` // coordinates of the direction in standard deviations; the largest is positive
	Text     string    `json:"text"`     // largest coordinates of the direction, such as "0.71 a − 0.7 b"
}

// summary returns the result as one line, with errors in the metric.
func (f *DistanceFit) summary(metric model.Metric) string {
	errors := fmt.Sprintf("%s, without %s", metric.Text(f.Error),
		strings.TrimPrefix(metric.Text(f.PreviousError), metric.Name()+" "))
	verdict := map[bool]string{true: "taken", false: "not taken"}[f.Accepted]
	kind := map[string]string{lengthsDistance: "one for each feature", fullDistance: "a matrix"}[f.Kind]
	return fmt.Sprintf("%s, %s: %s of %d rows that took no part; %s ± %s less", kind, verdict, errors, f.JudgingRows,
		outward.Percent(f.Gain, 2), outward.Percent(f.GainError, 1))
}

// distanceObstacle explains why no distance can be searched for the kernel of a family. It returns "" if one can.
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
// for these data, or is "" if one can.
func (s *search) distanceRows() (fittedRows int, reason string) {
	rows, d := len(s.distinctRows()), s.data.train.Dim()
	rowLimit, minRows := min(maxFittedRows, rows/2), max(minFittedRows, rowsPerFeature*d)
	// In addition to K and one table, matrixGradient needs three matrices: A, G and H.
	fittedRows = maxRows(s.options.memory, rowLimit, func(fittedRows int) int64 {
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
// feature and then for a matrix. If a distance reduces the error of rows that were not used to fit the distance by more
// than two standard errors of the difference, the best kernel with this distance joins the search on this level.
func (s *search) searchDistances(ctx context.Context, level int) error {
	best, _ := s.bestPoint(level)
	if s.options.Distance == sigmaDistance || s.options.Sigma > 0 || best == nil {
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
	fitter := s.newDistanceSearch(best, fittedRows)
	for _, kind := range []string{lengthsDistance, fullDistance} {
		if kind == fullDistance && s.options.Distance == lengthsDistance {
			break
		}
		if s.notify != nil {
			s.notify(stage.Event{Stage: stage.Tune, Remaining: -1, Detail: fmt.Sprintf("distance %s of %d features "+
				"for %s on %d rows", kind, fitter.x.D, best.family.name, fittedRows)})
		}
		result, err := fitter.run(ctx, kind)
		if err != nil {
			return err
		}
		if result == nil {
			continue
		}
		s.distances = append(s.distances, result)
		result.describe(fitter.x, s.data.train.Columns)
		if result.Accepted {
			if err := s.addFamily(ctx, level, best.family, result); err != nil {
				return err
			}
		}
	}
	return nil
}

// addFamily adds the family of a kernel with a distance to the search, and explores it on the level with at most
// maxJoinPoints further points. The grid of the scale is centered on the fitted σ, and the search begins at the fitted
// σ and λ.
func (s *search) addFamily(ctx context.Context, level int, base *family, result *DistanceFit) error {
	joined := *base
	joined.index, joined.shape, joined.firstLevel = len(s.families), result.Shape, level
	sigmaAxis := scaleAxis
	sigmaAxis.start = []float64{1}
	joined.grid[0], joined.start[0] = sigmaAxis.grid(0, result.Sigma)
	joined.start[1] = []float64{joined.grid[1][nearestIndex(joined.grid[1], math.Log(result.Lambda))]}
	s.families = append(s.families, &joined)
	s.models[level] = append(s.models[level], nil)
	s.levels[level].maxPoints = len(s.levels[level].points) + maxJoinPoints
	return s.explore(ctx, level, []*family{&joined})
}

// judgingCount returns the number of judging rows if m of n rows are fitted.
func judgingCount(n, m int) int { return min(maxJudgingRatio*m, n-m) }

// distanceSearch fits distances to the first rows of a sample and judges the distances by the error on the other rows,
// the judging rows.
type distanceSearch struct {
	distanceObjective               // objective, whose points and prior objectiveOf sets
	sample            *sample       // fitted and judging rows
	x                 *points.Dense // points of all rows, centered
	kernelName        string        // name of the kernel
	fittedRows        int           // number of fitted rows
	judgingRows       int           // number of judging rows
	lengths           []float64     // length scales of the distance accepted last
	lambda            float64       // λ of the distance accepted last
}

// newDistanceSearch returns a search that fits distances to m rows for the kernel of the point p. It starts from σ and
// λ of this point.
func (s *search) newDistanceSearch(p *point, m int) *distanceSearch {
	rows := s.distinctRows() // judging rows must not be copies of fitted ones
	search := &distanceSearch{kernelName: p.family.name, fittedRows: m, judgingRows: judgingCount(len(rows), m),
		lambda: p.lambda()}
	search.sample = s.trainingSample(rows[:m])
	search.distanceObjective = distanceObjective{y: points.ScaleRows(search.sample.sqrtWeights, search.sample.y),
		k:           p.family.kernel(1).(kernel.Differentiable),
		sqrtWeights: search.sample.sqrtWeights, freeLambda: s.options.Lambda == 0}
	judging := s.trainingSample(rows[m : m+search.judgingRows])
	search.sample.appendJudging(judging.x, judging.y, judging.judgment)
	search.x = centeredDense(search.sample.x)
	search.lengths = slices.Repeat([]float64{p.scale()}, search.x.D)
	return search
}

// run fits a distance of the given kind and judges it. It returns nil if K+λI is not positive definite in float64, or
// if no error is left to reduce. It returns an error if ctx ends.
//
// The points are first divided by the length scales accepted last. The shape therefore begins at zero logarithms, or at
// the identity matrix, which is also the mean of the prior. The prior standard deviation of the entries of a matrix is
// matrixSD/√d: a random d×d matrix of such entries has singular values up to 2·matrixSD.
func (s *distanceSearch) run(ctx context.Context, kind string) (*DistanceFit, error) {
	start, stretched := time.Now(), stretch(s.x, s.lengths)
	objective, theta := s.objectiveOf(kind, stretched)
	lambdaIndex := len(theta) - 1
	fitted, err := objective.minimize(ctx, theta)
	if err != nil {
		return nil, ctx.Err()
	}

	var losses [2]*loss // losses of the judging rows with the fitted distance and with the previous one
	for i, parameters := range [][]float64{fitted, theta} {
		s.sample.freeMatrices()
		s.sample.x = stretch(stretched, objective.shape(parameters))
		if losses[i], err = s.sample.loss(ctx, objective.k, math.Exp(parameters[lambdaIndex])); err != nil {
			return nil, ctx.Err()
		}
	}
	result := &DistanceFit{Kind: kind, Kernel: s.kernelName, FittedRows: s.fittedRows, JudgingRows: s.judgingRows,
		Shape: objective.shape(fitted), Lambda: roundToThreeDigits(math.Exp(fitted[lambdaIndex]))}
	result.Error, _, _ = losses[0].errorInterval()
	result.PreviousError, _, _ = losses[1].errorInterval()
	result.Gain, result.GainError = losses[0].relativeExcess(losses[1])
	result.Gain = -result.Gain
	result.Accepted = result.Gain > max(2*result.GainError, tieTolerance)

	for j := range result.Shape { // combine the shape with the length scales that the points were divided by
		if objective.isMatrix {
			result.Shape[j] /= s.lengths[j%s.x.D]
		} else {
			result.Shape[j] *= s.lengths[j]
		}
	}
	if result.Accepted && !objective.isMatrix {
		s.lengths, s.lambda = slices.Clone(result.Shape), math.Exp(fitted[lambdaIndex])
	}
	result.separateSigma(objective.isMatrix, s.x.D)
	result.Seconds = time.Since(start).Seconds()
	return result, nil
}

// objectiveOf returns the objective of a distance of the given kind for the points x, which are divided by the length
// scales accepted last, and the parameters with which the fit begins: those of the shape, then ln λ.
func (s *distanceSearch) objectiveOf(kind string, x *points.Dense) (objective distanceObjective, theta []float64) {
	d := x.D
	objective = s.distanceObjective
	objective.x, objective.isMatrix = x.Slice(0, s.fittedRows).(*points.Dense), kind == fullDistance
	objective.priorPrecision = 1 / (float64(s.fittedRows) * lengthSD * lengthSD)
	theta = make([]float64, d+1)
	if objective.isMatrix {
		theta = make([]float64, d*d+1)
		for j := range d {
			theta[j*d+j] = 1
		}
		objective.priorPrecision = float64(d) / (float64(s.fittedRows) * matrixSD * matrixSD)
	}
	theta[len(theta)-1], objective.priorMean = math.Log(s.lambda), theta
	return objective, theta
}

// separateSigma sets Sigma to the geometric mean of the length scales, or to √d/‖L‖_F for a matrix L of d features, and
// scales Shape accordingly. It rounds both.
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

// centeredDense returns the points minus their mean, as dense points in float64.
func centeredDense(x points.Points) *points.Dense {
	n, d := x.Dims()
	centered := points.NewDense(n, d, nil)
	points.RowsTo(points.Shift(x, points.Mean(x)), centered.Data, d)
	return centered
}

// describe sets the relevant features and the directions of the distance, for the points x whose features have the
// given names, or numbers if names is nil. Both follow from L·diag(s), where s_j is the standard deviation of feature
// j and L = diag(1/ℓ_j) for length scales. The norm of column j of this matrix is the change of the distance if feature
// j changes by its standard deviation. The directions are the right singular vectors.
func (f *DistanceFit) describe(x *points.Dense, names []string) {
	d := x.D
	scaled, sizes := mat.NewDense(d, d, nil), make([]float64, d) // L·diag(s), and the norms of its columns
	for k := range d {
		deviation := stat.StdDev(mat.Col(nil, k, mat.NewDense(x.N, d, x.Data)), nil)
		for j := range d {
			switch {
			case f.Kind == fullDistance:
				scaled.Set(j, k, f.Shape[j*d+k]*deviation/f.Sigma)
			case j == k:
				scaled.Set(j, k, deviation/(f.Shape[j]*f.Sigma))
			}
		}
		sizes[k] = mat.Norm(scaled.ColView(k), 2)
	}
	name := func(j int) string {
		if names == nil {
			return fmt.Sprintf("feature %d", j)
		}
		return names[j]
	}
	for _, j := range orderByMagnitude(sizes) {
		f.RelevantFeatures = append(f.RelevantFeatures, name(j))
	}

	var svd mat.SVD
	if f.Kind != fullDistance || !svd.Factorize(scaled, mat.SVDFull) {
		return
	}
	var rightVectors mat.Dense
	svd.VTo(&rightVectors)
	for i, singularValue := range svd.Values(nil)[:min(d, maxDirections)] {
		direction := Direction{Length: 1 / max(singularValue, math.SmallestNonzeroFloat64),
			Features: mat.Col(nil, i, &rightVectors)}
		order := orderByMagnitude(direction.Features)
		if direction.Features[order[0]] < 0 {
			floats.Scale(-1, direction.Features)
		}
		for rank, j := range order[:min(4, d)] { // up to four coordinates, without small ones
			coordinate := direction.Features[j]
			if rank > 0 && math.Abs(coordinate) < 0.2 {
				break
			}
			sign := map[bool]string{true: " − ", false: " + "}[coordinate < 0]
			direction.Text += sign + outward.Plain(math.Abs(coordinate), 2) + " " + name(j)
		}
		direction.Text = strings.TrimPrefix(direction.Text, " + ")
		f.Directions = append(f.Directions, direction)
	}
}

// orderByMagnitude returns the indices of values in the order of decreasing absolute values.
func orderByMagnitude(values []float64) []int {
	negated, order := make([]float64, len(values)), make([]int, len(values))
	for j, value := range values {
		negated[j] = -math.Abs(value)
	}
	floats.ArgsortStable(negated, order)
	return order
}

// minimize minimizes the objective from the given θ by L-BFGS with at most maxEvaluations evaluations, and returns the
// final θ. It returns an error if the objective has no value at the start, or if ctx ended.
func (o *distanceObjective) minimize(ctx context.Context, theta []float64) ([]float64, error) {
	evaluatedAt, gradient, value := make([]float64, len(theta)), make([]float64, len(theta)), math.NaN()
	var evalErr error
	evaluate := func(x []float64) {
		if !math.IsNaN(value) && floats.Equal(x, evaluatedAt) { // Func and Grad are called at the same point
			return
		}
		copy(evaluatedAt, x)
		// If K+λI is not positive definite, the value is infinite and the line search steps back.
		if value, evalErr = o.value(ctx, x, gradient); evalErr != nil {
			value = math.Inf(1)
			clear(gradient)
		}
	}
	problem := optimize.Problem{
		Func:   func(x []float64) float64 { evaluate(x); return value },
		Grad:   func(g, x []float64) { evaluate(x); copy(g, gradient) },
		Status: func() (optimize.Status, error) { return optimize.NotTerminated, ctx.Err() },
	}
	if evaluate(theta); evalErr != nil {
		return nil, evalErr
	}
	// Minimize returns an error if ctx ended, or if no step decreases the objective any more. In the second case the
	// result is used.
	result, _ := optimize.Minimize(problem, theta, &optimize.Settings{
		FuncEvaluations: maxEvaluations, GradientThreshold: 1e-4,
		Converger: &optimize.FunctionConverge{Absolute: 1e-3, Iterations: 3},
	}, &optimize.LBFGS{})
	if ctx.Err() != nil || result == nil {
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("tune: no distance to begin at"))
	}
	return result.X, nil
}
