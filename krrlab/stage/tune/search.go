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

// laterPoints are the most points of a level after the first; the last one of a large problem has half of them.
const laterPoints = 12

// tie is by which part of its error a smoother point may be worse than the best, within one standard error.
const tie = 0.005

// level is one size of the problem.
type level struct {
	whole
	one  *sample // nil of all rows of a large problem
	rows int     // that are fitted
	most int     // points
	few  int     // points that are tried whatever is expected of them
}

// point is a point of the search.
type point struct {
	f     *family
	at    at
	level int
	loss  *loss   // nil: K+λI was not positive definite, or the solve did not converge
	y     float64 // objective
}

func (p *point) scale() float64  { return p.f.number(0, p.at) }
func (p *point) lambda() float64 { return p.f.number(1, p.at) }

// search is a search at work.
type search struct {
	opt       Options
	data      *problem
	fams      []*family
	order     []int              // of the rows, at random: a sample is the first
	groups    *datasets.Grouping // of all rows
	failed    error              // of the last point that has no loss
	levels    []level
	samples   int // of the levels, which come first
	points    []*point
	models    [][]*process // by level and family; nil where it was not tried
	gain      float64      // that was expected when the last level ended
	stretched *Lengths     // nil: no lengths were searched
	lacks     string       // see Result.Lacks
	tell      func(stage.Event)
	start     time.Time
	done      float64 // work, in units of rows³
}

// run searches. all is the last level of a problem that is too large for factorizations, nil for
// none: then the last subsample decides. The result is of what was found until then if ctx ends, beside its error.
func run(ctx context.Context, data *problem, o Options, all *whole, tell func(stage.Event)) (*Result, error) {
	if most := mat.Norm(data.y, math.Inf(1)); most > 1e70 || most > 0 && most < 1e-70 {
		return nil, fmt.Errorf("tune: targets of size %.2g are out of range, as squared errors are squared: give "+
			"them in another unit", most)
	}
	s := &search{opt: o.settled(), data: data, tell: tell, start: time.Now()}
	var err error
	if s.fams, err = s.opt.families(); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, all); err != nil {
		return nil, err
	}
	for q := range s.levels {
		s.models = append(s.models, make([]*process, len(s.fams)))
		if err = s.explore(ctx, q, s.active(q)); err == nil && q == s.samples-1 {
			err = s.stretch(ctx, q)
		}
		if err != nil {
			break
		}
		if one := s.levels[q].one; one != nil {
			one.free()
		}
	}
	r := s.result()
	if r != nil && err == nil {
		r.Other, err = s.other(ctx, &r.Best)
	}
	if r == nil && err == nil {
		err = fmt.Errorf("tune: no fit at any point tried, want a larger λ; the last: %w", cmp.Or(s.failed, errNoLoss))
	}
	return r, err
}

// prepare makes the levels, and places the grids.
func (s *search) prepare(ctx context.Context, all *whole) error {
	n := s.data.train.Len()
	sizes := []int{n}
	if !s.opt.takesAll(n) {
		sizes = []int{s.opt.Rows}
	}
	if m := max(sizes[0]/4, min(sizes[0]/2, 250)); m >= 100 {
		sizes = []int{m, sizes[0]}
	}
	if s.groups = s.data.train.Grouping(nil); n-points.Repeated(s.groups.First) < 2 {
		return fmt.Errorf("tune: all %d rows are in one group, and left out together: want at least 2 groups", n)
	}
	s.order = rng.New(s.data.seed).Sub("tune").Perm(n)
	most, few := s.opt.Points, 0
	for q, m := range sizes {
		one := s.sample(s.order[:m])
		loss := func(ctx context.Context, shape []float64, k kernel.Kernel, lambda float64) (*loss, error) {
			one.stretch(shape)
			return one.loss(ctx, k, lambda)
		}
		s.levels = append(s.levels,
			level{whole{fmt.Sprintf("%s, %d rows", s.data.criterion(), m), loss}, one, m, most, few})
		if most = laterPoints; n <= 1000 { // a few hundred rows mislead, and points of all rows cost milliseconds
			most, few = 24000/n, 8000/n
		}
		if q == 0 {
			for _, f := range s.fams {
				scale, err := one.typical(ctx, f)
				if err != nil {
					return err
				}
				f.place(&s.opt, scale, 1)
				d, err := one.scale(ctx, f.kernel(math.Exp(f.first[0][0])))
				if err != nil {
					return err
				}
				f.place(&s.opt, scale, d)
			}
		}
	}
	if all != nil && n > sizes[len(sizes)-1] {
		s.levels = append(s.levels, level{*all, nil, n, laterPoints / 2, 0})
	}
	s.samples = len(sizes)
	return nil
}

// explore tries points of some families where the model expects to gain most.
func (s *search) explore(ctx context.Context, q int, active []*family) error {
	for _, f := range active {
		for _, x := range s.begin(q, f) {
			if err := s.try(ctx, q, f, x); err != nil {
				return err
			}
		}
	}
	enough := s.opt.Gain
	if q < len(s.levels)-1 {
		enough *= 4 // the next level is nearer to the problem
	}
	for {
		f, x, gain := s.next(q, active)
		s.gain = gain
		if f == nil || gain < enough && s.count(q) >= s.levels[q].few || s.count(q) >= s.levels[q].most {
			break
		}
		if err := s.try(ctx, q, f, x); err != nil {
			return err
		}
	}
	if p, _ := s.best(q); p != nil && q == len(s.levels)-1 {
		return s.try(ctx, q, p.f, s.smoothest(s.model(q, p.f), p.f))
	}
	return nil
}

// distinct returns the order with one row of each group.
func (s *search) distinct() []int {
	return slices.DeleteFunc(slices.Clone(s.order), func(i int) bool { return s.groups.First[i] != i })
}

// other returns the error of a point by the other question of the groups, stage.Unknown if the level has none.
func (s *search) other(ctx context.Context, p *Point) (stage.Number, error) {
	one := s.levels[p.Level].one
	if one == nil || one.groups.Others == nil || one.fitted > 0 {
		return stage.Unknown, nil
	}
	k, err := kernel.FromSpec(p.Spec())
	if err != nil {
		return stage.Unknown, err
	}
	one.stretch(p.Lengths)
	if err = one.form(ctx, k); err != nil {
		return stage.Unknown, err
	}
	l, err := one.leaveOut(ctx, p.Lambda, one.groups.Others)
	if err != nil {
		return stage.Unknown, err
	}
	v, _, _ := l.Error()
	return stage.Number(v), nil
}

var errNoLoss = errors.New("K+λI is not positive definite in float64")

// begin returns where a level begins: a coarse grid, or where the level before ended.
func (s *search) begin(q int, f *family) (all []at) {
	if q > f.born {
		return []at{s.smoothest(s.model(q-1, f), f)}
	}
	for _, u := range f.first[0] {
		for _, v := range f.first[1] {
			all = append(all, at{u, v})
		}
	}
	return all
}

// lowest returns where on the grid a process is lowest.
func (s *search) lowest(p *process, f *family) (x at, y float64) {
	y = math.Inf(1)
	for z := range f.places() {
		if m := p.mean(z); m < y {
			x, y = z, m
		}
	}
	return x, y
}

// smoothest returns the point of largest λ, and σ, of those on the grid that are as good as tied by a process.
func (s *search) smoothest(p *process, f *family) at {
	x, least := s.lowest(p, f)
	for z := range f.places() {
		if z[1] >= x[1] && p.mean(z) <= least+tie/2 {
			x = z
		}
	}
	return x
}

// active returns the families that a level looks at: those that the level before does not rule out, and the best
// without length scales.
func (s *search) active(q int) []*family {
	if q == 0 {
		return s.fams
	}
	type rank struct {
		f *family
		y float64
	}
	var all []rank
	for _, f := range s.fams {
		if p := s.model(q-1, f); p != nil {
			_, y := s.lowest(p, f)
			all = append(all, rank{f, y})
		}
	}
	slices.SortStableFunc(all, func(a, b rank) int { return cmp.Compare(a.y, b.y) })
	within := 0.08 // a level before of few rows misleads
	if q == len(s.levels)-1 && q > 1 {
		within = 0.02
	}
	var active []*family
	// rows that length scales were fitted to favor these
	plain := slices.IndexFunc(all, func(r rank) bool { return r.f.shape == nil })
	for i, r := range all {
		if r.y <= all[0].y+within || i == plain {
			active = append(active, r.f)
		}
	}
	return active
}

// try evaluates a point that was not tried.
func (s *search) try(ctx context.Context, q int, f *family, x at) error {
	if s.tried(q, f, x) {
		return nil
	}
	p := &point{f: f, at: x, level: q}
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	loss, err := s.levels[q].loss(ctx, f.shape, f.kernel(p.scale()), p.lambda())
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		loss, s.failed = nil, err
	default:
		loss.seconds = time.Since(start).Seconds()
	}
	if p.loss = loss; loss != nil {
		p.y = loss.objective()
	}
	s.points = append(s.points, p)
	s.models[q][f.index] = nil
	s.report(q)
	return nil
}

// model returns the process of a level and a family, fitted to its points; nil without any.
func (s *search) model(q int, f *family) *process {
	if p := s.models[q][f.index]; p != nil {
		return p
	}
	var x []at
	var y []float64
	for _, p := range s.points {
		if p.level == q && p.f == f && p.loss != nil {
			x, y = append(x, p.at), append(y, p.y)
		}
	}
	if len(x) == 0 {
		return nil
	}
	least := slices.Min(y)
	for i := range y {
		y[i] = min(y[i], least+cap) // far from the best, the surface is another one
	}
	var prior *process
	if q > f.born {
		prior = s.model(q-1, f)
	}
	s.models[q][f.index] = fit(x, y, prior)
	return s.models[q][f.index]
}

// cap is what logarithms of errors above the best are cut to.
const cap = 0.7

// next returns the point of largest expected improvement.
func (s *search) next(q int, active []*family) (best *family, x at, gain float64) {
	_, least := s.best(q)
	for _, f := range active {
		p := s.model(q, f)
		if p == nil {
			continue
		}
		near := s.near(q, f)
		for z := range f.places() {
			if !near(z) || s.tried(q, f, z) {
				continue
			}
			if g := p.improvement(z, least, gain); g > gain {
				best, x, gain = f, z, g
			}
		}
	}
	return best, x, gain
}

// near returns which points a level looks at: after the first level those that are promising by the one before, and
// with lengths those about where they were found.
func (s *search) near(q int, f *family) func(at) bool {
	if q == f.born {
		return func(x at) bool {
			return f.shape == nil || math.Abs(x[0]-f.first[0][0]) < math.Log(2) &&
				math.Abs(x[1]-f.first[1][0]) < math.Log(30)
		}
	}
	before := s.model(q-1, f)
	c, least := s.lowest(before, f)
	return func(x at) bool {
		return math.Abs(x[0]-c[0]) < math.Log(4) && math.Abs(x[1]-c[1]) < math.Log(100) && before.mean(x) < least+0.2
	}
}

func (s *search) tried(q int, f *family, x at) bool {
	return slices.ContainsFunc(s.points, func(p *point) bool { return p.level == q && p.f == f && p.at == x })
}

func (s *search) count(q int) (n int) {
	for _, p := range s.points {
		if p.level == q {
			n++
		}
	}
	return n
}

// best returns the point of a level that is least; nil if there is none.
func (s *search) best(q int) (best *point, y float64) {
	y = math.Inf(1)
	for _, p := range s.points {
		if p.level == q && p.loss != nil {
			if v := s.model(q, p.f).mean(p.at); v < y {
				best, y = p, v
			}
		}
	}
	return best, y
}

// report tells the progress: the work in units of rows³, the best so far and the time left, at most.
func (s *search) report(q int) {
	work := func(q int) float64 { return math.Pow(float64(s.levels[q].rows), 3) }
	s.done += work(q)
	total := s.done + float64(max(0, s.levels[q].most-s.count(q)))*work(q)
	for p := q + 1; p < len(s.levels); p++ {
		total += float64(s.levels[p].most) * work(p)
	}
	e := stage.Event{Stage: stage.Tune, Done: int(1e3 * s.done / total), Total: 1000}
	e.Remaining = time.Duration(float64(time.Since(s.start)) * (total - s.done) / s.done)
	if p, _ := s.best(q); p != nil {
		one := s.describe(p)
		e.Loss = math.Exp(p.y)
		e.Detail = fmt.Sprintf("%s: best of %d %s", s.levels[q].name, s.count(q), one.text(s.data.judged.metric))
	}
	if s.tell != nil {
		s.tell(e)
	}
}
