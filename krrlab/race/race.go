package race

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/rng"
)

// runner is a preconditioner that takes part. M = I always does, beside those given.
type runner struct {
	name string
	// build makes M, with a lower bound of λ_min(M⁻¹A) for bounds of the error (pcg.Options.LambdaMin), 0 if none is
	// known. Its error puts the runner out of the race, unless ctx has ended.
	build func(ctx context.Context) (m pcg.Preconditioner, lambdaMin float64, err error)
}

// terms of a race. Zero values, and a nil *terms, mean the defaults.
type terms struct {
	pcg       pcg.Options // of every runner: Tol and MaxIter
	lambdaMin float64     // a lower bound of λ_min(A), for M = I. 0: none is known
	stream    rng.Stream  // draws the signs of the columns for t > 1
	// share, if not nil, sets seconds to those of one rank, on all.
	share func(ctx context.Context, seconds []float64) error
	// step, if not nil, is called after every step with the standings, which are valid during the call only.
	step func(field []Standing)
}

// Phase is where a runner is in the race.
type Phase string

// The phases.
const (
	Running Phase = "running" // or overtaken, when the race is over
	Done    Phase = "done"    // it has reached τ
	Out     Phase = "out"     // it failed: see Standing.Why
)

// Standing is what is known of a runner.
type Standing struct {
	Name       string    `json:"name"`
	Phase      Phase     `json:"phase"`
	Iterations int       `json:"iterations"`          // done
	Residuals  []float64 `json:"residuals,omitempty"` // ‖r‖₂/‖y‖₂ by recurrence after 0, 1, …, Iterations
	// Bounds are upper bounds of ‖x−x_k‖_A/‖y‖₂ (pcg.History.Error) after k = 1, 2, … iterations, where λ_min is known.
	Bounds []float64 `json:"bounds,omitempty"`
	Build  float64   `json:"build_seconds"` // of building M
	Solve  float64   `json:"solve_seconds"` // of M⁻¹R for all right-hand sides
	Why    string    `json:"why,omitempty"` // of Out
}

// outcome is how a race went.
type outcome struct {
	winner  int        // in field; −1 if none came through, or the race was ended from outside before there was one
	field   []Standing // M = I first, then the runners given
	product float64    // seconds of a product with A for all right-hand sides
	steps   int        // products with A of the race, each of one column for every runner that took part
	columns int        // of them, in all
	seconds float64    // of the whole race, with what was built
}

// clock returns the seconds that a runner takes alone for that many iterations.
func (r *outcome) clock(s *Standing, iterations float64) float64 {
	return s.Build + iterations*(r.product+s.Solve)
}

// hold lets M = I and the runners race for AX = Y, A n×n and Y n×t. Memory: what they build, and 5n numbers
// for each. An error is returned if ctx ends, or if A or terms.share returns one: beside what is known so far.
func hold(ctx context.Context, a pcg.Operator, y *mat.Dense, runners []runner, o *terms) (*outcome, error) {
	start := time.Now()
	r := &race{a: a, y: y, res: &outcome{winner: -1}}
	if o != nil {
		r.o = *o
	}
	for _, one := range append([]runner{{name: "none"}}, runners...) {
		r.lanes = append(r.lanes, &lane{runner: one, mu: r.o.lambdaMin})
		r.res.field = append(r.res.field, Standing{Name: one.name, Phase: Running})
	}
	defer func() {
		for _, l := range r.lanes {
			if l.stop != nil {
				l.stop()
			}
		}
	}()
	r.combine()
	err := r.run(ctx)
	r.res.seconds = time.Since(start).Seconds()
	return r.res, err
}

// race is one under way.
type race struct {
	o     terms
	a     pcg.Operator
	y, b  *mat.Dense // b is what the runners solve for, n×1
	lanes []*lane
	panel [2][]float64
	res   *outcome
}

// lane is where one runner runs: a coroutine that asks for products with A.
type lane struct {
	runner
	m    pcg.Preconditioner
	mu   float64 // at most λ_min(M⁻¹A)
	next func() (*request, bool)
	stop func()
	ask  *request
	res  *pcg.Result // once it has ended
	err  error
}

// errOut is what a product returns to a runner that is out of the race.
var errOut = errors.New("race: over")

// combine sets b = y, or for t > 1 the sum of the columns with random signs.
func (r *race) combine() {
	n, t := r.y.Dims()
	r.b = mat.NewDense(n, 1, nil)
	for c := range t {
		sign := 1.0
		if t > 1 && r.o.stream.Uint64(uint64(c))&1 == 1 {
			sign = -1
		}
		for i := range n {
			r.b.Set(i, 0, r.b.At(i, 0)+sign*r.y.At(i, c))
		}
	}
}

// run runs the race.
func (r *race) run(ctx context.Context) error {
	if err := r.measure(ctx); err != nil {
		return err
	}
	for i := range r.lanes {
		if err := r.enter(ctx, i); err != nil {
			return err
		}
	}
	for {
		turn := r.turn()
		if len(turn) == 0 {
			return nil
		}
		if err := r.multiply(ctx, turn); err != nil {
			return err
		}
		for _, i := range turn {
			if err := r.advance(ctx, i); err != nil {
				return err
			}
		}
		if r.o.step != nil {
			r.o.step(r.res.field)
		}
	}
}

// turn returns the runners that take part in the next step, by their own clocks: the one whose next iteration ends
// first, and those that begin one before that. None is left once it would end no sooner than the best that has
// reached τ, the winner.
func (r *race) turn() (turn []int) {
	clock := func(i, ahead int) float64 {
		s := &r.res.field[i]
		return r.res.clock(s, float64(s.Iterations+ahead))
	}
	best, end := math.Inf(1), math.Inf(1)
	for i, s := range r.res.field {
		switch {
		case s.Phase == Done && clock(i, 0) < best:
			best, r.res.winner = clock(i, 0), i
		case s.Phase == Running:
			end = min(end, clock(i, 1))
		}
	}
	if end >= best {
		return nil
	}
	for i, s := range r.res.field {
		if s.Phase == Running && clock(i, 0) <= end && clock(i, 1) < best {
			turn = append(turn, i)
		}
	}
	return turn
}

// measure builds each M, and times it and products with A on Y, by the seconds of one rank.
func (r *race) measure(ctx context.Context) error {
	f, seconds := r.res.field, make([]float64, 1, 1+2*len(r.lanes))
	took := func(f func() error) (seconds float64, err error) {
		start := time.Now()
		err = f()
		return time.Since(start).Seconds(), err
	}
	n, t := r.y.Dims()
	to := mat.NewDense(n, t, nil)
	var err error
	if seconds[0], err = took(func() error { return r.a.MulTo(ctx, to, r.y) }); err != nil {
		return err
	}
	for i, l := range r.lanes {
		var build, solve float64
		if l.build != nil {
			if build, err = took(func() (err error) { l.m, l.mu, err = l.build(ctx); return err }); err == nil {
				solve, err = took(func() error { return l.m.SolveTo(ctx, to, r.y) })
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			f[i].Phase, f[i].Why = Out, err.Error()
		}
		seconds = append(seconds, build, solve)
	}
	if r.o.share != nil {
		if err := r.o.share(ctx, seconds); err != nil {
			return err
		}
	}
	r.res.product = seconds[0]
	for i := range f {
		f[i].Build, f[i].Solve = seconds[2*i+1], seconds[2*i+2]
	}
	return nil
}

// enter takes runner i to its first product.
func (r *race) enter(ctx context.Context, i int) error {
	l, s := r.lanes[i], &r.res.field[i]
	if s.Phase == Out {
		return nil
	}
	o := r.o.pcg
	o.LambdaMin = l.mu
	o.Monitor = func(it *pcg.Iteration) error {
		s.Iterations, s.Residuals = it.Index, append(s.Residuals, it.MaxRelRes)
		if it.Error != nil && !math.IsNaN(it.Error[0]) {
			s.Bounds = append(s.Bounds, it.Error[0])
		}
		if it.MaxRelRes <= o.Tol { // by recurrence, whatever K as stored is accurate to
			s.Phase = Done
		}
		return nil
	}
	s.Residuals = []float64{1}
	l.next, l.stop = iter.Pull(func(yield func(*request) bool) {
		l.res, l.err = pcg.Solve(ctx, asking{r.a, yield}, l.m, r.b, &o)
	})
	return r.advance(ctx, i)
}

// advance takes runner i to its next product, or its end.
func (r *race) advance(ctx context.Context, i int) error {
	l, s := r.lanes[i], &r.res.field[i]
	var more bool
	if l.ask, more = l.next(); more || s.Phase == Done {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.res == nil { // it is Y that is wrong
		return l.err
	}
	switch {
	case l.err != nil:
		s.Phase, s.Why = Out, l.err.Error()
	case l.res.Status == pcg.Converged: // Y is 0
		s.Phase = Done
	default:
		s.Phase, s.Why = Out, l.res.Status.String()
	}
	return nil
}
