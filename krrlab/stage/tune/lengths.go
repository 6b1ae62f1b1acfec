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

// The search of length scales: how far it goes.
const (
	mostFeatures = 64   // that have a length each
	fittedRows   = 1000 // at most, and at most half of all
	leastFitted  = 100  // and
	rowsEach     = 5    // for each length
	judgingRows  = 3    // beyond these, for each of them at most
	descent      = 25   // evaluations
	joinPoints   = 6    // on the level where the kernel with lengths joins the search
	priorSpread  = 2    // standard deviation of log ℓ_j about log σ
)

// Lengths is what came of the search of one length scale for each feature.
type Lengths struct {
	Kernel string  `json:"kernel"`
	Sigma  float64 `json:"sigma"` // geometric mean
	Lambda float64 `json:"lambda"`
	Rows   int     `json:"rows"` // that were fitted
	// Judging rows took no part: Error is theirs, and Isotropic that of the best kernel with one length, fitted to the
	// same rows.
	Judging   int     `json:"judging"`
	Error     float64 `json:"error"`
	Isotropic float64 `json:"isotropic"`
	Gain      float64 `json:"gain"`      // by which part of Isotropic Error is less
	Deviation float64 `json:"deviation"` // standard error of Gain
	Accepted  bool    `json:"accepted"`  // the kernel with these lengths went on in the search

	Shape    []float64 `json:"shape"`    // the lengths over their geometric mean
	Relevant []string  `json:"relevant"` // the features, of largest standard deviation beside its length first
	Seconds  float64   `json:"seconds"`
}

// text says it in a line.
func (l *Lengths) text(m model.Metric) string {
	errors := fmt.Sprintf("%s, with one length %s", m.Text(l.Error),
		strings.TrimPrefix(m.Text(l.Isotropic), m.Name()+" "))
	verdict := map[bool]string{true: "taken", false: "not taken"}[l.Accepted]
	return fmt.Sprintf("one for each feature, %s: %s of %d rows that took no part; %s ± %s less", verdict,
		errors, l.Judging, outward.Percent(l.Gain, 2), outward.Percent(l.Deviation, 1))
}

// stretch searches a length scale for each feature, once level q is done, and lets the kernel with these join the
// search there if the error of rows that took no part is less by more than two standard errors of the difference.
func (s *search) stretch(ctx context.Context, q int) error {
	n, d := len(s.distinct()), s.data.train.Dim()
	most := min(fittedRows, n/2)
	m := rowsWithin(s.opt.memory, most, func(m int) int64 { // slopes has three matrices besides K and the table
		return sampleBytes(m+judging(n, m), m, d, 1, 3)
	})
	best, _ := s.best(q)
	if best == nil || kernel.ArgumentOf(best.f.base) == kernel.InnerProduct || !s.opt.ARD || s.opt.Sigma > 0 ||
		d < 2 || d > mostFeatures || most < max(leastFitted, rowsEach*d) {
		return nil
	}
	if m < max(leastFitted, rowsEach*d) {
		s.lacks = fmt.Sprintf("no length scales were searched: the memory (--memory) allows %d rows only", m)
		return nil
	}
	s.levels[q].one.free()
	if _, ok := best.f.base.(kernel.Differentiable); !ok {
		s.lacks = fmt.Sprintf("no length scales were searched: the kernel %s has no method Derivative "+
			"(kernel.Differentiable)", best.f.name)
		return nil
	}
	l, err := s.lengths(ctx, best, m)
	if err != nil || l == nil {
		return err
	}
	if s.stretched = l; !l.Accepted {
		return nil
	}
	f := *best.f
	f.index, f.shape, f.born = len(s.fams), l.Shape, q
	f.grid[0], f.first[0] = axis(0, l.Sigma, 1.0/16, 16, math.Pow(2, 0.25), 1)
	f.first[1] = []float64{f.grid[1][nearest(f.grid[1], math.Log(l.Lambda))]}
	s.fams = append(s.fams, &f)
	s.models[q] = append(s.models[q], nil)
	s.levels[q].most = s.count(q) + joinPoints
	return s.explore(ctx, q, []*family{&f})
}

// judging returns how many of n rows judge length scales that are fitted to m others.
func judging(n, m int) int { return min(judgingRows*m, n-m) }

// lengths finds length scales on m rows for the best kernel, from its σ and λ, judged by rows beyond these. It returns
// nil where K+λI is not positive definite in float64, and where nothing is left to gain.
func (s *search) lengths(ctx context.Context, best *point, m int) (*Lengths, error) {
	begun := time.Now()
	rows := s.distinct() // or the rows that judge would know those that are fitted
	judging := judging(len(rows), m)
	all, rest := s.plain(rows[:m]), s.plain(rows[m:m+judging])
	value := &relevance{y: all.scaled(all.y), k: best.f.kernel(1).(kernel.Differentiable), factors: all.factors,
		lambda: s.opt.Lambda == 0, pull: 1 / (float64(m) * priorSpread * priorSpread)}
	all.join(rest.x, rest.y, rest.judged.weights)
	x := dense(all.x)
	if s.tell != nil {
		s.tell(stage.Event{Stage: stage.Tune, Remaining: -1,
			Detail: fmt.Sprintf("length scales of %d features for %s on %d rows", x.D, best.f.name, m)})
	}
	one := append(slices.Repeat([]float64{math.Log(best.scale())}, x.D), math.Log(best.lambda()))
	value.x, value.origin = x.Slice(0, m).(*points.Dense), one
	theta, err := value.descend(ctx, one)
	if err != nil {
		return nil, ctx.Err()
	}
	var by [2]*loss
	for i, theta := range [][]float64{theta, one} {
		all.free()
		all.x = stretched(x, theta[:x.D])
		if by[i], err = all.loss(ctx, value.k, math.Exp(theta[x.D])); err != nil {
			return nil, ctx.Err()
		}
	}
	l := &Lengths{Kernel: best.f.name, Rows: m, Judging: judging}
	l.Error, _, _ = by[0].Error()
	l.Isotropic, _, _ = by[1].Error()
	l.Gain, l.Deviation = by[0].worse(by[1])
	l.Gain = -l.Gain
	l.Accepted = l.Gain > max(2*l.Deviation, tie)
	s.shape(l, x, theta)
	l.Seconds = time.Since(begun).Seconds()
	return l, nil
}

// shape sets what is reported about the lengths of θ.
func (s *search) shape(l *Lengths, x *points.Dense, theta []float64) {
	d := x.D
	mean := stat.Mean(theta[:d], nil)
	l.Sigma, l.Lambda = digits(math.Exp(mean)), digits(math.Exp(theta[d]))
	spread, order := make([]float64, d), make([]int, d)
	for j, v := range theta[:d] {
		l.Shape = append(l.Shape, digits(math.Exp(v-mean)))
		spread[j] = -stat.StdDev(mat.Col(nil, j, mat.NewDense(x.N, d, x.Data)), nil) / l.Shape[j]
	}
	floats.ArgsortStable(spread, order) // the largest first
	for _, j := range order {
		name := fmt.Sprintf("feature %d", j)
		if names := s.data.train.Columns; names != nil {
			name = names[j]
		}
		l.Relevant = append(l.Relevant, name)
	}
}

// dense returns the points as float64, less their mean.
func dense(x points.Points) *points.Dense {
	n, d := x.Dims()
	out := points.NewDense(n, d, nil)
	points.Panel64To(points.Shift(x, points.Mean(x)), out.Data, d)
	return out
}

// descend minimizes the objective from θ by L-BFGS, and returns where it ended.
func (r *relevance) descend(ctx context.Context, theta []float64) ([]float64, error) {
	at, grad, value := make([]float64, len(theta)), make([]float64, len(theta)), math.NaN()
	var failed error
	eval := func(x []float64) {
		if !math.IsNaN(value) && floats.Equal(x, at) {
			return
		}
		copy(at, x)
		if value, failed = r.value(ctx, x, grad); failed != nil { // not positive definite: the line search steps back
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
	got, _ := optimize.Minimize(p, theta, &optimize.Settings{
		FuncEvaluations: descent, GradientThreshold: 1e-4,
		Converger: &optimize.FunctionConverge{Absolute: 1e-3, Iterations: 3},
	}, &optimize.LBFGS{}) // whose error is that of ctx, or that no step is downhill any more
	if ctx.Err() != nil || got == nil {
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("tune: no length scales to begin at"))
	}
	return got.X, nil
}
