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

// Limits of the search for length scales.
const (
	maxLengths      = 64   // maximum number of features; data with more get no length scales
	maxFittedRows   = 1000 // maximum number of rows to fit to; it is also at most half of the rows
	minFittedRows   = 100  // minimum number of rows to fit to; with fewer there are no length scales
	rowsPerLength   = 5    // minimum number of rows to fit to per length scale
	maxJudgingRatio = 3    // maximum number of judging rows per fitted row
	maxEvaluations  = 25   // maximum number of evaluations of the objective
	maxJoinPoints   = 6    // maximum number of points of the new family on the level where it joins
	priorSD         = 2    // prior standard deviation of log ℓ_j about log σ; a larger one allows more varied lengths
)

// Lengths is the result of the search for one length scale per feature.
type Lengths struct {
	Kernel string  `json:"kernel"`
	Sigma  float64 `json:"sigma"` // geometric mean of the length scales
	Lambda float64 `json:"lambda"`
	Rows   int     `json:"rows"` // number of rows that the length scales were fitted to

	Judging   int     `json:"judging"`   // number of judging rows, which were not used for the fit
	Error     float64 `json:"error"`     // error of the judging rows
	Isotropic float64 `json:"isotropic"` // error of the same kernel with one length scale
	Gain      float64 `json:"gain"`      // relative reduction of the error, from Isotropic to Error
	Deviation float64 `json:"deviation"` // standard error of Gain
	Accepted  bool    `json:"accepted"`  // the kernel with these length scales joined the search

	Shape    []float64 `json:"shape"`    // length scales over their geometric mean
	Relevant []string  `json:"relevant"` // features, by decreasing ratio of standard deviation to length scale
	Seconds  float64   `json:"seconds"`
}

// summary returns the result as one line.
func (l *Lengths) summary(m model.Metric) string {
	errors := fmt.Sprintf("%s, with one length %s", m.Text(l.Error),
		strings.TrimPrefix(m.Text(l.Isotropic), m.Name()+" "))
	verdict := map[bool]string{true: "taken", false: "not taken"}[l.Accepted]
	return fmt.Sprintf("one for each feature, %s: %s of %d rows that took no part; %s ± %s less", verdict,
		errors, l.Judging, outward.Percent(l.Gain, 2), outward.Percent(l.Deviation, 1))
}

// searchLengths searches for a length scale per feature after a level. If the length scales reduce the error of rows
// not used for the fit by more than two standard errors of the difference, the best kernel with these length scales
// joins the search on this level.
func (s *search) searchLengths(ctx context.Context, level int) error {
	rows, d := len(s.distinctRows()), s.data.train.Dim()
	rowLimit := min(maxFittedRows, rows/2)
	// matrixGradient has three matrices in addition to K and the table.
	fittedRows := maxRows(s.opt.memoryBudget, rowLimit, func(fittedRows int) int64 {
		return sampleBytes(fittedRows+judgingCount(rows, fittedRows), fittedRows, d, 1, 3)
	})
	best, _ := s.bestPoint(level)
	if best == nil || kernel.ArgumentOf(best.family.base) == kernel.InnerProduct || !s.opt.ARD || s.opt.Sigma > 0 ||
		d < 2 || d > maxLengths || rowLimit < max(minFittedRows, rowsPerLength*d) {
		return nil
	}
	if fittedRows < max(minFittedRows, rowsPerLength*d) {
		s.lengthsNote = fmt.Sprintf("no length scales were searched: the memory (--memory) allows %d rows only",
			fittedRows)
		return nil
	}
	s.levels[level].sample.freeMatrices()
	if _, ok := best.family.base.(kernel.Differentiable); !ok {
		s.lengthsNote = fmt.Sprintf("no length scales were searched: the kernel %s has no method Derivative "+
			"(kernel.Differentiable)", best.family.name)
		return nil
	}
	found, err := s.fitLengths(ctx, best, fittedRows)
	if err != nil || found == nil {
		return err
	}
	if s.foundLengths = found; !found.Accepted {
		return nil
	}
	f := *best.family
	f.index, f.shape, f.firstLevel = len(s.families), found.Shape, level
	sigmaAxis := scaleAxis
	sigmaAxis.start = []float64{1}
	f.grid[0], f.start[0] = sigmaAxis.grid(0, found.Sigma)
	f.start[1] = []float64{f.grid[1][nearestIndex(f.grid[1], math.Log(found.Lambda))]}
	s.families = append(s.families, &f)
	s.models[level] = append(s.models[level], nil)
	s.levels[level].maxPoints = s.pointCount(level) + maxJoinPoints
	return s.explore(ctx, level, []*family{&f})
}

// judgingCount returns the number of judging rows among n rows, of which m are fitted.
func judgingCount(n, m int) int { return min(maxJudgingRatio*m, n-m) }

// fitLengths fits length scales to m rows for the best kernel, starting from its σ and λ, and judges them by other
// rows. It returns nil if K+λI is not positive definite in float64, or if no error is left to reduce.
func (s *search) fitLengths(ctx context.Context, best *point, m int) (*Lengths, error) {
	start := time.Now()
	rows := s.distinctRows() // judging rows must not be copies of fitted ones
	judgingRows := judgingCount(len(rows), m)
	sample, judgingSample := s.trainingSample(rows[:m]), s.trainingSample(rows[m:m+judgingRows])
	objective := &relevance{y: sample.weighted(sample.y), k: best.family.kernel(1).(kernel.Differentiable),
		sqrtWeights: sample.sqrtWeights, freeLambda: s.opt.Lambda == 0,
		priorPrecision: 1 / (float64(m) * priorSD * priorSD)}
	sample.appendJudging(judgingSample.x, judgingSample.y, judgingSample.judgment.weights)
	x := centeredDense(sample.x)
	if s.notify != nil {
		s.notify(stage.Event{Stage: stage.Tune, Remaining: -1,
			Detail: fmt.Sprintf("length scales of %d features for %s on %d rows", x.D, best.family.name, m)})
	}
	isotropic := append(slices.Repeat([]float64{math.Log(best.scale())}, x.D), math.Log(best.lambda()))
	objective.x, objective.priorMean = x.Slice(0, m).(*points.Dense), isotropic
	theta, err := objective.minimize(ctx, isotropic)
	if err != nil {
		return nil, ctx.Err()
	}
	var losses [2]*loss
	for i, theta := range [][]float64{theta, isotropic} {
		sample.freeMatrices()
		sample.x = divideByLengths(x, theta[:x.D])
		if losses[i], err = sample.loss(ctx, objective.k, math.Exp(theta[x.D])); err != nil {
			return nil, ctx.Err()
		}
	}
	result := &Lengths{Kernel: best.family.name, Rows: m, Judging: judgingRows}
	result.Error, _, _ = losses[0].Error()
	result.Isotropic, _, _ = losses[1].Error()
	result.Gain, result.Deviation = losses[0].relativeExcess(losses[1])
	result.Gain = -result.Gain
	result.Accepted = result.Gain > max(2*result.Deviation, tieTolerance)
	s.describeLengths(result, x, theta)
	result.Seconds = time.Since(start).Seconds()
	return result, nil
}

// describeLengths sets the reported values of the length scales e^θ_j.
func (s *search) describeLengths(result *Lengths, x *points.Dense, theta []float64) {
	d := x.D
	mean := stat.Mean(theta[:d], nil)
	result.Sigma, result.Lambda = round3(math.Exp(mean)), round3(math.Exp(theta[d]))
	relevance, order := make([]float64, d), make([]int, d)
	for j, v := range theta[:d] {
		result.Shape = append(result.Shape, round3(math.Exp(v-mean)))
		relevance[j] = -stat.StdDev(mat.Col(nil, j, mat.NewDense(x.N, d, x.Data)), nil) / result.Shape[j]
	}
	floats.ArgsortStable(relevance, order) // negative values: the most relevant first
	for _, j := range order {
		name := fmt.Sprintf("feature %d", j)
		if names := s.data.train.Columns; names != nil {
			name = names[j]
		}
		result.Relevant = append(result.Relevant, name)
	}
}

// centeredDense returns the points as float64, less their mean.
func centeredDense(x points.Points) *points.Dense {
	n, d := x.Dims()
	out := points.NewDense(n, d, nil)
	points.Panel64To(points.Shift(x, points.Mean(x)), out.Data, d)
	return out
}

// minimize minimizes the objective from θ by L-BFGS, and returns the final θ.
func (r *relevance) minimize(ctx context.Context, theta []float64) ([]float64, error) {
	evaluatedAt, grad, value := make([]float64, len(theta)), make([]float64, len(theta)), math.NaN()
	var failed error
	eval := func(x []float64) {
		if !math.IsNaN(value) && floats.Equal(x, evaluatedAt) {
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
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("tune: no length scales to begin at"))
	}
	return result.X, nil
}
