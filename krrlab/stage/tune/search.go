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
// rows and has half as many points. It was chosen by judgment, as were the other limits of the search below.
const maxLaterPoints = 12

// tieTolerance is the largest relative excess of the error at which a smoother point still ties with the best one. The
// excess must also be within one standard error. A larger tolerance prefers smoother kernels and larger λ.
const tieTolerance = 0.005

// level is a stage of the search with a fixed number of rows.
type level struct {
	evaluator         // computes the losses of points
	sample    *sample // nil on the last level of a large problem
	rows      int     // number of fitted rows
	maxPoints int     // number of points after which the level ends
	minPoints int     // number of points evaluated even if the expected improvement is small
	points    []*point
}

// point is an evaluated point of the search.
type point struct {
	family    *family
	location  gridPoint
	level     int
	loss      *loss   // nil: K+λI was not positive definite, or the solve did not converge
	objective float64 // loss.objective()
}

// scale returns the scale of the kernel, and lambda λ, as the search evaluates and reports them.
func (p *point) scale() float64  { return p.family.coordinate(0, p.location) }
func (p *point) lambda() float64 { return p.family.coordinate(1, p.location) }

// search is the state of a search.
type search struct {
	opt          Options
	data         *problem
	families     []*family          // kernels whose scale is searched
	order        []int              // random order of the rows; a sample has the first of them
	groups       *datasets.Grouping // grouping of all rows
	classFactors []float64          // factors of the weights of sampled rows by class (addRareClasses); nil: ones
	lastFailure  error              // error of the latest point without a loss
	levels       []level
	sampleLevels int                  // number of levels with a sample; they are the first ones
	models       [][]*gaussianProcess // fitted models by level and family; nil: to be fitted
	expectedGain float64              // expected improvement when the latest level ended
	distances    []*DistanceFit       // distances that were fitted
	distanceNote string               // Result.DistanceNote
	notify       func(stage.Event)    // receives progress; may be nil
	start        time.Time            // beginning of the search
	workDone     float64              // work of the evaluated points, in units of rows³
}

// searchPoints searches for the best kernel, scale and λ. full evaluates the last level of a problem that is too large
// for factorizations; if it is nil, the last subsample decides. If ctx ends, searchPoints returns the result found so
// far together with the error.
func searchPoints(ctx context.Context, data *problem, o Options, full *evaluator,
	notify func(stage.Event)) (*Result, error) {
	if size := mat.Norm(data.y, math.Inf(1)); size > 1e70 || size > 0 && size < 1e-70 {
		return nil, fmt.Errorf("tune: targets of size %.2g are out of range, as squared errors are squared: give "+
			"them in another unit", size)
	}
	s := &search{opt: o.withDefaults(), data: data, notify: notify, start: time.Now()}
	var err error
	if s.families, err = s.opt.families(); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, full); err != nil {
		return nil, err
	}
	for q := range s.levels {
		s.models = append(s.models, make([]*gaussianProcess, len(s.families)))
		if alternative := s.levels[q].alternative; alternative != nil && !s.canEvaluateBest(q) {
			e, err := alternative()
			if err != nil {
				return nil, err
			}
			s.levels[q].evaluator, s.levels[q].maxPoints = *e, maxLaterPoints/2
		}
		if err = s.explore(ctx, q, s.activeFamilies(q)); err == nil && q == s.sampleLevels-1 {
			err = s.searchDistances(ctx, q)
		}
		if err != nil {
			break
		}
		if sample := s.levels[q].sample; sample != nil {
			sample.freeMatrices()
		}
	}
	r := s.result()
	if r != nil && err == nil {
		r.OtherError, err = s.otherError(ctx, &r.Best)
	}
	if r == nil && err == nil {
		err = fmt.Errorf("tune: no fit at any point tried, want a larger λ; the last: %w",
			cmp.Or(s.lastFailure, errNoLoss))
	}
	return r, err
}

// prepare creates the levels and sets the grids of all families. There is a level of a quarter of the sample, or of up
// to 250 rows but at most half of a smaller sample, if that has at least 100 rows; a level of the whole sample; and a
// level of all rows, which full evaluates, if the sample has fewer.
func (s *search) prepare(ctx context.Context, full *evaluator) error {
	n := s.data.train.Len()
	sizes := []int{n} // numbers of rows of the levels with a sample
	if !s.opt.usesAllRows(n) {
		sizes = []int{s.opt.Rows}
	}
	if rows := max(sizes[0]/4, min(sizes[0]/2, 250)); rows >= 100 && !s.opt.Quick {
		sizes = []int{rows, sizes[0]}
	}
	if s.groups = s.data.train.Grouping(nil); n-points.CountRepeated(s.groups.FirstRow) < 2 {
		return fmt.Errorf("tune: all %d rows are in one group, and left out together: want at least 2 groups", n)
	}
	s.order = rng.New(s.data.seed).Sub("tune").Perm(n)
	if s.opt.requiresDistance() {
		if _, reason := s.distanceRows(); reason != "" {
			return fmt.Errorf("tune: no distance %s: %s", s.opt.Distance, reason)
		}
	}
	maxPoints, minPoints := s.opt.Points, 0
	for q, rows := range sizes {
		l := s.sampleLevel(rows)
		l.maxPoints, l.minPoints = maxPoints, minPoints
		s.levels = append(s.levels, l)
		// With a few hundred rows the first level is unreliable, and a point of all rows costs only milliseconds, so
		// that more points are evaluated the fewer rows there are.
		if maxPoints = maxLaterPoints; n <= 1000 {
			maxPoints, minPoints = 24000/n, 8000/n
		}
		if q == 0 {
			if err := s.setGrids(ctx, l.sample); err != nil {
				return err
			}
		}
	}
	if full != nil && n > sizes[len(sizes)-1] && !s.opt.Quick {
		if maxPoints = maxLaterPoints / 2; full.canEvaluate != nil {
			maxPoints = maxLaterPoints
		}
		s.levels = append(s.levels, level{evaluator: *full, rows: n, maxPoints: maxPoints})
	}
	s.sampleLevels = len(sizes)
	return nil
}

// sampleLevel returns a level whose losses are those of a sample of the first rows in random order, and with
// Options.Quick of further rows of rare classes. It does not set the numbers of points.
func (s *search) sampleLevel(rows int) level {
	rowIndex := s.order[:rows]
	if s.opt.Quick {
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
		f.grid[1], f.start[1] = lambdaAxis.grid(s.opt.Lambda, diagonal)
	}
	return nil
}

// explore evaluates points of the families on level q: the start points, then the point of largest expected improvement
// until that is too small or the level has maxPoints. On the last level it also evaluates the smoothest grid point that
// the model predicts to tie with the best.
func (s *search) explore(ctx context.Context, q int, families []*family) error {
	for _, f := range families {
		for _, x := range s.startPoints(q, f) {
			if err := s.evaluate(ctx, q, f, x); err != nil {
				return err
			}
		}
	}
	minGain := s.opt.Gain
	if q < len(s.levels)-1 {
		minGain *= 4 // the next level is a better approximation of the problem
	}
	for {
		f, x, gain := s.bestImprovement(q, families)
		s.expectedGain = gain
		count := len(s.levels[q].points)
		if f == nil || gain < minGain && count >= s.levels[q].minPoints || count >= s.levels[q].maxPoints {
			break
		}
		if err := s.evaluate(ctx, q, f, x); err != nil {
			return err
		}
	}
	if p, _ := s.bestPoint(q); p != nil && q == len(s.levels)-1 {
		return s.evaluate(ctx, q, p.family, s.smoothestTied(s.model(q, p.family), p.family))
	}
	return nil
}

// distinctRows returns the random order of the rows with only the first row of each group.
func (s *search) distinctRows() []int {
	return slices.DeleteFunc(slices.Clone(s.order), func(i int) bool { return s.groups.FirstRow[i] != i })
}

// otherError returns the error of a point for the alternative grouping of equal rows (Repeats.OtherRowKind), or
// stage.Unknown if there is no alternative or the level has no leave-one-out.
func (s *search) otherError(ctx context.Context, p *Point) (stage.Number, error) {
	sample := s.levels[p.Level].sample
	if sample == nil || sample.groups.OtherFirstRow == nil || sample.fittedRows > 0 {
		return stage.Unknown, nil
	}
	k, err := kernel.FromSpec(p.Spec())
	if err != nil {
		return stage.Unknown, err
	}
	sample.setShape(p.Distance())
	if err = sample.formKernel(ctx, k); err != nil {
		return stage.Unknown, err
	}
	l, err := sample.leaveOut(ctx, p.Lambda, sample.groups.OtherFirstRow)
	if err != nil {
		return stage.Unknown, err
	}
	v, _, _ := l.Error()
	return stage.Number(v), nil
}

// errNoLoss is the error of a fit whose Cholesky factorization fails. The point then has no loss.
var errNoLoss = errors.New("K+λI is not positive definite in float64")

// startPoints returns the points at which level q begins for a family: a coarse grid on the family's first level, and
// later the best point of the previous level. On a level of a Fourier series, which has many more rows, it adds the
// coarse values of the scale and of λ, and that level takes neither the model nor the region of the previous one.
func (s *search) startPoints(q int, f *family) (starts []gridPoint) {
	if q == f.firstLevel {
		return slices.Collect(gridProduct(f.start))
	}
	center := s.smoothestTied(s.model(q-1, f), f)
	starts = []gridPoint{center}
	if s.levels[q].canEvaluate != nil {
		for _, u := range f.start[0] {
			starts = append(starts, gridPoint{u, center[1]})
		}
		for _, v := range f.start[1] {
			starts = append(starts, gridPoint{center[0], v})
		}
	}
	return starts
}

// modelMinimum returns the grid point at which the mean of a process is smallest, and that mean.
func (s *search) modelMinimum(p *gaussianProcess, f *family) (x gridPoint, y float64) {
	y = math.Inf(1)
	for z := range gridProduct(f.grid) {
		if m := p.mean(z); m < y {
			x, y = z, m
		}
	}
	return x, y
}

// smoothestTied returns the grid point with the largest λ, and then the largest scale, among those that p predicts to
// be at most tieTolerance/2 above its minimum.
func (s *search) smoothestTied(p *gaussianProcess, f *family) gridPoint {
	x, lowest := s.modelMinimum(p, f)
	for z := range gridProduct(f.grid) {
		if z[1] >= x[1] && p.mean(z) <= lowest+tieTolerance/2 {
			x = z
		}
	}
	return x
}

// lastLevelExcess is the largest excess of the logarithm of a family's predicted error, over that of the best family,
// with which it is searched on the last level. A larger number searches more families there.
const lastLevelExcess = 0.02

// canEvaluateBest reports whether level q can evaluate a family that is among the best by the model of level q−1:
// within lastLevelExcess of the best one.
func (s *search) canEvaluateBest(q int) bool {
	best, evaluable := math.Inf(1), math.Inf(1) // smallest predicted log errors, of all families and of those it evaluates
	for _, f := range s.families {
		if p := s.model(q-1, f); p != nil {
			_, y := s.modelMinimum(p, f)
			if best = min(best, y); s.levels[q].canEvaluate(f) {
				evaluable = min(evaluable, y)
			}
		}
	}
	return evaluable <= best+lastLevelExcess
}

// activeFamilies returns the families to search on level q: those that the model of the previous level does not rule
// out, and the best one with one length scale.
func (s *search) activeFamilies(q int) []*family {
	if q == 0 {
		return s.families
	}
	type rankedFamily struct {
		*family
		logError float64 // smallest one that the model predicts
	}
	var ranked []rankedFamily
	canEvaluate := s.levels[len(s.levels)-1].canEvaluate
	for _, f := range s.families {
		if p := s.model(q-1, f); p != nil && (q < len(s.levels)-1 || canEvaluate == nil || canEvaluate(f)) {
			_, y := s.modelMinimum(p, f)
			ranked = append(ranked, rankedFamily{f, y})
		}
	}
	slices.SortStableFunc(ranked, func(a, b rankedFamily) int { return cmp.Compare(a.logError, b.logError) })
	maxExcess := 0.08 // the previous level has few rows and is unreliable
	if q == len(s.levels)-1 && q > 1 {
		maxExcess = lastLevelExcess
	}
	var active []*family
	// The rows to which a distance was fitted favor it, so the best isotropic family always stays.
	isotropic := slices.IndexFunc(ranked, func(r rankedFamily) bool { return r.shape == nil })
	for i, r := range ranked {
		// Many more rows may rank the few families of a last level of a Fourier series otherwise.
		if r.logError <= ranked[0].logError+maxExcess || i == isotropic || canEvaluate != nil && canEvaluate(r.family) {
			active = append(active, r.family)
		}
	}
	return active
}

// evaluate computes the loss of a point and adds the point to the search, unless it was evaluated before. A failed fit
// is no error: the point then has no loss.
func (s *search) evaluate(ctx context.Context, q int, f *family, x gridPoint) error {
	if s.isEvaluated(q, f, x) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	start, level, p := time.Now(), &s.levels[q], &point{family: f, location: x, level: q}
	loss, err := level.loss(ctx, f.shape, f.kernel(p.scale()), p.lambda())
	if err == nil {
		loss.seconds = time.Since(start).Seconds()
		p.loss, p.objective = loss, loss.objective()
	} else if s.lastFailure = err; ctx.Err() != nil {
		return err
	}
	level.points = append(level.points, p)
	s.models[q][f.index] = nil
	s.reportProgress(q)
	return nil
}

// model returns the process fitted to the points of a family on level q, or nil if none of them has a loss.
func (s *search) model(q int, f *family) *gaussianProcess {
	if p := s.models[q][f.index]; p != nil {
		return p
	}
	var x []gridPoint
	var y []float64
	for _, p := range s.levels[q].points {
		if p.family == f && p.loss != nil {
			x, y = append(x, p.location), append(y, p.objective)
		}
	}
	if len(x) == 0 {
		return nil
	}
	lowest := slices.Min(y)
	for i := range y {
		y[i] = min(y[i], lowest+maxLogExcess) // a stationary process does not describe the surface far from the best
	}
	var prior *gaussianProcess
	if q > f.firstLevel && s.levels[q].canEvaluate == nil {
		prior = s.model(q-1, f)
	}
	s.models[q][f.index] = fitProcess(x, y, prior)
	return s.models[q][f.index]
}

// maxLogExcess is the cutoff of log errors above the best one before the process is fitted. A larger value fits the
// process to poor points too, at the expense of its accuracy near the best.
const maxLogExcess = 0.7

// bestImprovement returns the point of level q with the largest expected improvement; a nil family if no point is left.
func (s *search) bestImprovement(q int, families []*family) (best *family, x gridPoint, gain float64) {
	_, lowest := s.bestPoint(q)
	for _, f := range families {
		p := s.model(q, f)
		if p == nil {
			continue
		}
		inRegion := s.searchRegion(q, f)
		for z := range gridProduct(f.grid) {
			if !inRegion(z) || s.isEvaluated(q, f, z) {
				continue
			}
			if g := p.improvement(z, lowest, gain); g > gain {
				best, x, gain = f, z, g
			}
		}
	}
	return best, x, gain
}

// searchRegion returns the condition for points to be searched on level q. On a family's first level all points are
// searched, or with length scales or a matrix those near the start point: within a factor of 2 of the scale and of 30
// of λ. On later levels it is within a factor of 4 and of 100 of the best point of the previous level, where its model
// predicts a log error at most 0.2 above the smallest.
func (s *search) searchRegion(q int, f *family) func(gridPoint) bool {
	if q == f.firstLevel || s.levels[q].canEvaluate != nil {
		return func(x gridPoint) bool {
			return f.shape == nil || math.Abs(x[0]-f.start[0][0]) < math.Log(2) &&
				math.Abs(x[1]-f.start[1][0]) < math.Log(30)
		}
	}
	previousModel := s.model(q-1, f)
	center, lowest := s.modelMinimum(previousModel, f)
	return func(x gridPoint) bool {
		return math.Abs(x[0]-center[0]) < math.Log(4) && math.Abs(x[1]-center[1]) < math.Log(100) &&
			previousModel.mean(x) < lowest+0.2
	}
}

// isEvaluated reports whether level q has evaluated the point x of the family.
func (s *search) isEvaluated(q int, f *family, x gridPoint) bool {
	return slices.ContainsFunc(s.levels[q].points, func(p *point) bool { return p.family == f && p.location == x })
}

// bestPoint returns the point of level q with the smallest modeled objective, and that objective; nil without points.
func (s *search) bestPoint(q int) (best *point, y float64) {
	y = math.Inf(1)
	for _, p := range s.levels[q].points {
		if p.loss != nil {
			if v := s.model(q, p.family).mean(p.location); v < y {
				best, y = p, v
			}
		}
	}
	return best, y
}

// reportProgress notifies the caller of the work done in units of rows³, the best point so far, and an upper bound of
// the remaining time.
func (s *search) reportProgress(q int) {
	work := func(q int) float64 { return math.Pow(float64(s.levels[q].rows), 3) }
	s.workDone += work(q)
	total := s.workDone + float64(max(0, s.levels[q].maxPoints-len(s.levels[q].points)))*work(q)
	for p := q + 1; p < len(s.levels); p++ {
		total += float64(s.levels[p].maxPoints) * work(p)
	}
	e := stage.Event{Stage: stage.Tune, Done: int(1e3 * s.workDone / total), Total: 1000}
	e.Remaining = time.Duration(float64(time.Since(s.start)) * (total - s.workDone) / s.workDone)
	if p, _ := s.bestPoint(q); p != nil {
		described := s.describe(p)
		e.Loss = math.Exp(p.objective)
		e.Detail = fmt.Sprintf("%s: best of %d %s", s.levels[q].name, len(s.levels[q].points),
			described.summary(s.data.judgment.metric))
	}
	if s.notify != nil {
		s.notify(e)
	}
}
