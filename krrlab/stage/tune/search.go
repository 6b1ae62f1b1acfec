package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage"
)

// maxLaterPoints limits the number of points on each level after the first. The last level of a large problem fits all
// rows and has half as many points. This limit and the other limits of the search below were chosen by judgment.
const maxLaterPoints = 12

// tieTolerance is the largest relative excess of the error at which a smoother point still ties with the best one. The
// excess must also be within one standard error. A larger tolerance prefers smoother kernels and larger λ.
const tieTolerance = 0.005

// level is a part of the search with a fixed number of rows. Later levels have more rows.
type level struct {
	evaluator         // computes the losses of points
	sample    *sample // nil on the last level of a large problem
	rows      int     // number of fitted rows
	maxPoints int     // number of points after which the level ends
	minPoints int     // number of points evaluated even if the expected improvement is small
	points    []*point
}

// point is an evaluated point of the search: a kernel with its scale, and λ.
type point struct {
	family    *family
	location  gridPoint
	level     int     // index in search.levels
	loss      *loss   // nil: K+λI was not positive definite, or the solve did not converge
	objective float64 // loss.objective()
}

// scale returns the scale of the kernel as the search evaluates and reports it.
func (p *point) scale() float64 { return p.family.coordinate(0, p.location) }

// lambda returns λ as the search evaluates and reports it.
func (p *point) lambda() float64 { return p.family.coordinate(1, p.location) }

// search is the state of a search.
type search struct {
	options      Options
	data         *problem
	families     []*family          // kernels whose scale is searched
	order        []int              // random order of the rows; a sample has the first rows in this order
	groups       *datasets.Grouping // grouping of all rows
	classFactors []float64          // factor of the weights of sampled rows of each class (addRareClasses); nil: ones
	lastFailure  error              // error of the latest point without a loss
	levels       []level
	sampleLevels int                  // number of levels with a sample, which come first
	models       [][]*gaussianProcess // fitted models by level and family; nil: to be fitted
	expectedGain float64              // expected improvement when the latest level ended
	distances    []*DistanceFit       // distances that were fitted
	distanceNote string               // Result.DistanceNote
	notify       func(stage.Event)    // receives progress; may be nil
	start        time.Time            // beginning of the search
	workDone     float64              // work of the evaluated points, in units of rows³
}

// searchPoints searches for the best kernel, scale and λ. full evaluates the points of the last level, on all rows, of
// a problem that is too large for factorizations; if full is nil, the last subsample decides. If ctx ends, searchPoints
// returns the result found so far together with the error.
func searchPoints(ctx context.Context, data *problem, options Options, full *evaluator,
	notify func(stage.Event)) (*Result, error) {
	if size := mat.Norm(data.y, math.Inf(1)); size > 1e70 || size > 0 && size < 1e-70 {
		return nil, fmt.Errorf("tune: targets of size %.2g are out of range, as squared errors are squared: give "+
			"them in another unit", size)
	}
	s := &search{options: options.withDefaults(), data: data, notify: notify, start: time.Now()}
	var err error
	if s.families, err = s.options.families(); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, full); err != nil {
		return nil, err
	}
	for levelIndex := range s.levels {
		s.models = append(s.models, make([]*gaussianProcess, len(s.families)))
		if alternative := s.levels[levelIndex].alternative; alternative != nil && !s.canEvaluateBest(levelIndex) {
			alternativeEvaluator, err := alternative()
			if err != nil {
				return nil, err
			}
			s.levels[levelIndex].evaluator, s.levels[levelIndex].maxPoints = *alternativeEvaluator, maxLaterPoints/2
		}
		err = s.explore(ctx, levelIndex, s.activeFamilies(levelIndex))
		if err == nil && levelIndex == s.sampleLevels-1 {
			err = s.searchDistances(ctx, levelIndex)
		}
		if err != nil {
			break
		}
		if sample := s.levels[levelIndex].sample; sample != nil {
			sample.freeMatrices()
		}
	}
	result := s.result()
	if result != nil && err == nil {
		result.OtherError, err = s.otherError(ctx, &result.Best)
	}
	if result == nil && err == nil {
		err = fmt.Errorf("tune: no fit at any point tried, want a larger λ; the last: %w",
			cmp.Or(s.lastFailure, errNoLoss))
	}
	return result, err
}

// prepare creates the levels and sets the grids of all families. With r rows in the sample, the levels are
//   - max(r/4, min(r/2, 250)) rows, if these are at least 100 and the search is not quick,
//   - the r rows of the sample, and
//   - all rows, evaluated by full, if the sample does not have all rows and the search is not quick.
func (s *search) prepare(ctx context.Context, full *evaluator) error {
	n := s.data.train.Len()
	sizes := []int{n} // numbers of rows of the levels with a sample
	if !s.options.usesAllRows(n) {
		sizes = []int{s.options.Rows}
	}
	if rows := max(sizes[0]/4, min(sizes[0]/2, 250)); rows >= 100 && !s.options.Quick {
		sizes = []int{rows, sizes[0]}
	}
	if s.groups = s.data.train.Grouping(nil); n-points.CountRepeated(s.groups.FirstRow) < 2 {
		return fmt.Errorf("tune: all %d rows are in one group, and left out together: want at least 2 groups", n)
	}
	s.order = rng.New(s.data.seed).Sub("tune").Perm(n)
	if s.options.requiresDistance() {
		if _, reason := s.distanceRows(); reason != "" {
			return fmt.Errorf("tune: no distance %s: %s", s.options.Distance, reason)
		}
	}
	maxPoints, minPoints := s.options.Points, 0
	for levelIndex, rows := range sizes {
		level := s.sampleLevel(rows)
		level.maxPoints, level.minPoints = maxPoints, minPoints
		s.levels = append(s.levels, level)
		// With a few hundred rows the first level is unreliable, and a point of all rows costs only milliseconds.
		// Therefore, the fewer rows there are, the more points are evaluated.
		if maxPoints = maxLaterPoints; n <= 1000 {
			maxPoints, minPoints = 24000/n, 8000/n
		}
		if levelIndex == 0 {
			if err := s.setGrids(ctx, level.sample); err != nil {
				return err
			}
		}
	}
	if full != nil && n > sizes[len(sizes)-1] && !s.options.Quick {
		if maxPoints = maxLaterPoints / 2; full.canEvaluate != nil {
			maxPoints = maxLaterPoints
		}
		s.levels = append(s.levels, level{evaluator: *full, rows: n, maxPoints: maxPoints})
	}
	s.sampleLevels = len(sizes)
	return nil
}

// sampleLevel returns a level whose losses are those of a sample of the given number of rows, drawn at random. With
// Options.Quick the sample has further rows of rare classes. sampleLevel does not set maxPoints and minPoints.
func (s *search) sampleLevel(rows int) level {
	rowIndex := s.order[:rows]
	if s.options.Quick {
		rowIndex = s.addRareClasses(rows)
		rows = len(rowIndex)
	}
	sample := s.newSample(rowIndex)
	loss := func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*loss, error) {
		sample.setShape(shape)
		return sample.loss(ctx, k, lambda)
	}
	name := fmt.Sprintf("%s, %d rows", s.data.criterion(), rows)
	return level{evaluator: evaluator{name: name, loss: loss}, sample: sample, rows: rows}
}

// setGrids sets the grids of all families by the distances of the sample and the diagonals of its kernel matrices.
func (s *search) setGrids(ctx context.Context, sample *sample) error {
	for _, f := range s.families {
		scale, err := sample.typicalScale(ctx, f)
		if err != nil {
			return err
		}
		f.grid[0], f.start[0] = scaleAxis.grid(f.fixed[0], scale)
		diagonal, err := sample.meanDiagonal(ctx, f.kernel(math.Exp(f.start[0][0])))
		if err != nil {
			return err
		}
		f.grid[1], f.start[1] = lambdaAxis.grid(s.options.Lambda, diagonal)
	}
	return nil
}

// explore evaluates points of the families on a level: the start points, and then one point after another with the
// largest expected improvement, until this improvement is too small or the level has maxPoints points. On the last
// level it also evaluates the smoothest grid point that the model predicts to tie with the best.
func (s *search) explore(ctx context.Context, levelIndex int, families []*family) error {
	for _, f := range families {
		for _, x := range s.startPoints(levelIndex, f) {
			if err := s.evaluate(ctx, levelIndex, f, x); err != nil {
				return err
			}
		}
	}
	minGain := s.options.Gain
	if levelIndex < len(s.levels)-1 {
		minGain *= 4 // the next level is a better approximation of the problem
	}
	for {
		f, x, gain := s.bestImprovement(levelIndex, families)
		s.expectedGain = gain
		level := &s.levels[levelIndex]
		count := len(level.points)
		if f == nil || gain < minGain && count >= level.minPoints || count >= level.maxPoints {
			break
		}
		if err := s.evaluate(ctx, levelIndex, f, x); err != nil {
			return err
		}
	}
	if p, _ := s.bestPoint(levelIndex); p != nil && levelIndex == len(s.levels)-1 {
		return s.evaluate(ctx, levelIndex, p.family, s.smoothestTied(s.model(levelIndex, p.family), p.family))
	}
	return nil
}

// distinctRows returns the random order of the rows with only the first row of each group.
func (s *search) distinctRows() []int {
	return slices.DeleteFunc(slices.Clone(s.order), func(i int) bool { return s.groups.FirstRow[i] != i })
}

// otherError returns the error of the best point for the alternative grouping of equal rows (Repeats.OtherRowKind), or
// stage.Unknown if there is no alternative or the level of the point has no leave-one-out.
func (s *search) otherError(ctx context.Context, best *Point) (stage.Number, error) {
	sample := s.levels[best.Level].sample
	if sample == nil || sample.groups.OtherFirstRow == nil || sample.fittedRows > 0 {
		return stage.Unknown, nil
	}
	k, err := kernel.FromSpec(best.Spec())
	if err != nil {
		return stage.Unknown, err
	}
	sample.setShape(best.Distance())
	if err = sample.formKernel(ctx, k); err != nil {
		return stage.Unknown, err
	}
	loss, err := sample.leaveOneOutLoss(ctx, best.Lambda, sample.groups.OtherFirstRow)
	if err != nil {
		return stage.Unknown, err
	}
	value, _, _ := loss.errorInterval()
	return stage.Number(value), nil
}

// errNoLoss is the error of a fit whose Cholesky factorization fails. The point then has no loss.
var errNoLoss = errors.New("K+λI is not positive definite in float64")

// startPoints returns the points at which a level begins for a family: a coarse grid on the family's first level, and
// later the best point of the previous level. On a level of a Fourier series it adds points with the coarse values of
// the scale and of λ: such a level has many more rows, and therefore does not use the model and the search region of
// the previous level.
func (s *search) startPoints(levelIndex int, f *family) (starts []gridPoint) {
	if levelIndex == f.firstLevel {
		return slices.Collect(gridProduct(f.start))
	}
	center := s.smoothestTied(s.model(levelIndex-1, f), f)
	starts = []gridPoint{center}
	if s.levels[levelIndex].canEvaluate != nil {
		for _, logScale := range f.start[0] {
			starts = append(starts, gridPoint{logScale, center[1]})
		}
		for _, logLambda := range f.start[1] {
			starts = append(starts, gridPoint{center[0], logLambda})
		}
	}
	return starts
}

// modelMinimum returns the grid point at which the mean of a process is smallest, and the mean at this point.
func (s *search) modelMinimum(process *gaussianProcess, f *family) (minimizer gridPoint, minimum float64) {
	minimum = math.Inf(1)
	for x := range gridProduct(f.grid) {
		if mean := process.mean(x); mean < minimum {
			minimizer, minimum = x, mean
		}
	}
	return minimizer, minimum
}

// smoothestTied returns the grid point with the largest λ, and then the largest scale, among the points that the
// process predicts to be at most tieTolerance/2 above its minimum.
func (s *search) smoothestTied(process *gaussianProcess, f *family) gridPoint {
	smoothest, lowest := s.modelMinimum(process, f)
	for x := range gridProduct(f.grid) {
		if x[1] >= smoothest[1] && process.mean(x) <= lowest+tieTolerance/2 {
			smoothest = x
		}
	}
	return smoothest
}

// lastLevelExcess is the largest excess of the logarithm of a family's predicted error over that of the best family
// with which the family is still searched on the last level. A larger number searches more families there.
const lastLevelExcess = 0.02

// canEvaluateBest reports whether the level can evaluate a family that the model of the previous level predicts to be
// within lastLevelExcess of the best family.
func (s *search) canEvaluateBest(levelIndex int) bool {
	best, bestEvaluable := math.Inf(1), math.Inf(1) // smallest predicted log errors of all and of evaluable families
	for _, f := range s.families {
		if process := s.model(levelIndex-1, f); process != nil {
			_, minimum := s.modelMinimum(process, f)
			if best = min(best, minimum); s.levels[levelIndex].canEvaluate(f) {
				bestEvaluable = min(bestEvaluable, minimum)
			}
		}
	}
	return bestEvaluable <= best+lastLevelExcess
}

// activeFamilies returns the families to search on a level: those whose error, as predicted by the model of the
// previous level, is close to the best, and the best family with one length scale.
func (s *search) activeFamilies(levelIndex int) []*family {
	if levelIndex == 0 {
		return s.families
	}
	type rankedFamily struct {
		*family
		logError float64 // smallest log error that the model predicts
	}
	var ranked []rankedFamily
	canEvaluate, isLast := s.levels[len(s.levels)-1].canEvaluate, levelIndex == len(s.levels)-1
	for _, f := range s.families {
		process := s.model(levelIndex-1, f)
		if process != nil && (!isLast || canEvaluate == nil || canEvaluate(f)) {
			_, minimum := s.modelMinimum(process, f)
			ranked = append(ranked, rankedFamily{f, minimum})
		}
	}
	slices.SortStableFunc(ranked, func(a, b rankedFamily) int { return cmp.Compare(a.logError, b.logError) })
	maxExcess := 0.08 // the previous level has few rows and is unreliable
	if isLast && levelIndex > 1 {
		maxExcess = lastLevelExcess
	}
	var active []*family
	// The rows to which a distance was fitted favor it, so the best isotropic family always stays.
	isotropic := slices.IndexFunc(ranked, func(r rankedFamily) bool { return r.shape == nil })
	for i, r := range ranked {
		// A last level of a Fourier series has many more rows, which may rank its few families differently.
		if r.logError <= ranked[0].logError+maxExcess || i == isotropic || canEvaluate != nil && canEvaluate(r.family) {
			active = append(active, r.family)
		}
	}
	return active
}

// evaluate computes the loss of a point and adds the point to the search, unless it was evaluated before. If the fit
// fails, the point has no loss, and evaluate returns nil; it returns an error only if ctx ends.
func (s *search) evaluate(ctx context.Context, levelIndex int, f *family, x gridPoint) error {
	if s.isEvaluated(levelIndex, f, x) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	start, level, p := time.Now(), &s.levels[levelIndex], &point{family: f, location: x, level: levelIndex}
	loss, err := level.loss(ctx, f.shape, f.kernel(p.scale()), p.lambda())
	if err == nil {
		loss.seconds = time.Since(start).Seconds()
		p.loss, p.objective = loss, loss.objective()
	} else if s.lastFailure = err; ctx.Err() != nil {
		return err
	}
	level.points = append(level.points, p)
	s.models[levelIndex][f.index] = nil
	s.reportProgress(levelIndex)
	return nil
}

// model returns the Gaussian process fitted to the points of a family on a level, or nil if none of them has a loss.
func (s *search) model(levelIndex int, f *family) *gaussianProcess {
	if p := s.models[levelIndex][f.index]; p != nil {
		return p
	}
	var x []gridPoint
	var y []float64
	for _, p := range s.levels[levelIndex].points {
		if p.family == f && p.loss != nil {
			x, y = append(x, p.location), append(y, p.objective)
		}
	}
	if len(x) == 0 {
		return nil
	}
	lowest := slices.Min(y)
	for i := range y {
		y[i] = min(y[i], lowest+maxLogExcess)
	}
	var prior *gaussianProcess
	if levelIndex > f.firstLevel && s.levels[levelIndex].canEvaluate == nil {
		prior = s.model(levelIndex-1, f)
	}
	s.models[levelIndex][f.index] = fitProcess(x, y, prior)
	return s.models[levelIndex][f.index]
}

// maxLogExcess is the largest excess of a log error over the smallest one; larger ones are cut to it before the process
// is fitted, because a stationary process does not describe the error far from the best point. A larger value fits the
// process to poor points too, at the expense of the accuracy near the best.
const maxLogExcess = 0.7

// bestImprovement returns the family and the grid point with the largest expected improvement on a level, and this
// improvement. The family is nil if no point is left.
func (s *search) bestImprovement(levelIndex int, families []*family) (best *family, location gridPoint, gain float64) {
	_, lowest := s.bestPoint(levelIndex)
	for _, f := range families {
		process := s.model(levelIndex, f)
		if process == nil {
			continue
		}
		inRegion := s.searchRegion(levelIndex, f)
		for x := range gridProduct(f.grid) {
			if !inRegion(x) || s.isEvaluated(levelIndex, f, x) {
				continue
			}
			if improvement := process.improvement(x, lowest, gain); improvement > gain {
				best, location, gain = f, x, improvement
			}
		}
	}
	return best, location, gain
}

// searchRegion returns a function that reports whether a grid point is searched on a level. On the first level of a
// family, all points are searched; with length scales or a matrix, only points within a factor of 2 of the start scale
// and of 30 of the start λ. On later levels, the points within a factor of 4 of the scale and of 100 of λ of the best
// point of the previous level are searched, if the model of that level predicts a log error at most 0.2 above the
// smallest.
func (s *search) searchRegion(levelIndex int, f *family) func(gridPoint) bool {
	if levelIndex == f.firstLevel || s.levels[levelIndex].canEvaluate != nil {
		return func(x gridPoint) bool {
			return f.shape == nil || math.Abs(x[0]-f.start[0][0]) < math.Log(2) &&
				math.Abs(x[1]-f.start[1][0]) < math.Log(30)
		}
	}
	previousModel := s.model(levelIndex-1, f)
	center, lowest := s.modelMinimum(previousModel, f)
	return func(x gridPoint) bool {
		return math.Abs(x[0]-center[0]) < math.Log(4) && math.Abs(x[1]-center[1]) < math.Log(100) &&
			previousModel.mean(x) < lowest+0.2
	}
}

// isEvaluated reports whether the level has evaluated the point x of the family.
func (s *search) isEvaluated(levelIndex int, f *family, x gridPoint) bool {
	return slices.ContainsFunc(s.levels[levelIndex].points, func(p *point) bool {
		return p.family == f && p.location == x
	})
}

// bestPoint returns the point of a level with the smallest objective according to the model, and this objective. The
// point is nil if no point has a loss.
func (s *search) bestPoint(levelIndex int) (best *point, minimum float64) {
	minimum = math.Inf(1)
	for _, p := range s.levels[levelIndex].points {
		if p.loss != nil {
			if modeled := s.model(levelIndex, p.family).mean(p.location); modeled < minimum {
				best, minimum = p, modeled
			}
		}
	}
	return best, minimum
}

// reportProgress sends an event with the share of the work that is done, the best point so far, and an upper bound of
// the remaining time. The work of a point is the cube of its number of rows.
func (s *search) reportProgress(levelIndex int) {
	work := func(levelIndex int) float64 { return math.Pow(float64(s.levels[levelIndex].rows), 3) }
	s.workDone += work(levelIndex)
	level := &s.levels[levelIndex]
	total := s.workDone + float64(max(0, level.maxPoints-len(level.points)))*work(levelIndex)
	for index := levelIndex + 1; index < len(s.levels); index++ {
		total += float64(s.levels[index].maxPoints) * work(index)
	}
	event := stage.Event{Stage: stage.Tune, Done: int(1e3 * s.workDone / total), Total: 1000}
	event.Remaining = time.Duration(float64(time.Since(s.start)) * (total - s.workDone) / s.workDone)
	if p, _ := s.bestPoint(levelIndex); p != nil {
		described := s.describe(p)
		event.Loss = math.Exp(p.objective)
		event.Detail = fmt.Sprintf("%s: best of %d %s", s.levels[levelIndex].name, len(s.levels[levelIndex].points),
			described.summary(s.data.judgment.metric))
	}
	if s.notify != nil {
		s.notify(event)
	}
}
