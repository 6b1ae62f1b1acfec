package race

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/rng"
)

// Runner is a preconditioner that takes part. M = I always does, beside those given.
type Runner struct {
	Name string
	// Make makes M, with a lower bound of λ_min(M⁻¹A) for bounds of the error (pcg.Options.LambdaMin), 0 if none is
	// known. Its error puts the runner out of the race, unless ctx has ended.
	Make func(ctx context.Context) (m pcg.Preconditioner, lambdaMin float64, err error)
	// Build are the seconds that Make is expected to take, and Solve what M⁻¹R is, in products with A.
	Build, Solve float64
	// Iterations are those expected, of a pilot. Default: Times twice the root of those that M = I is predicted, or
	// half of those of the best that is built if that is more.
	Iterations float64
	Times      float64 // default: 1
}

// Options of Run. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// PCG are the options of every runner: what Tol, Aim, MaxIter, Exact and Refine are there. Monitor,
	// Checkpoint, Resume, InitX and LambdaMin are the race's own.
	PCG pcg.Options
	// LambdaMin is a lower bound of λ_min(A), for M = I. 0: none is known.
	LambdaMin float64
	// Finish goes on until one has reached τ.
	Finish bool
	// Stream draws the signs of the columns for t > 1.
	Stream rng.Stream
	// Share, if not nil, sets seconds to those of one rank, on all. They are what Decide rests on.
	Share func(ctx context.Context, seconds []float64) error
	// Monitor, if not nil, is called after every step. If it returns an error, the race ends, and Run
	// returns that error, or none if it is pcg.ErrStop. The standings are valid during the call only.
	Monitor func(field []Standing) error
}

// Result is how a race went.
type Result struct {
	Winner int        // in Field; −1 if none came through, or the race was ended from outside before there was one
	Field  []Standing // M = I first, then the runners given
	// M is the winner's preconditioner, nil for M = I, and State what its solve goes on from
	// (pcg.Options.Resume): nil for t > 1, and where it is done.
	M         pcg.Preconditioner
	LambdaMin float64 // the winner's
	State     []byte
	// Solved is the winner's solve if it has reached τ, of one right-hand side: for t > 1 the combination.
	Solved  *pcg.Result
	Product float64 // seconds of a product with A for all right-hand sides
	Steps   int     // products with A of the race, each of one column for every runner that took part
	Columns int     // of them, in all
	Seconds float64 // of the whole race, with what was built
}

// Run lets M = I and the runners race for AX = Y, A n×n and Y n×t. Memory: what they build, and 5n numbers
// for each that runs. An error is returned if ctx ends, if A or Options.Share returns one, or the
// Monitor: beside what is known so far. It panics if there are no right-hand sides or shapes do not fit.
func Run(ctx context.Context, a pcg.Operator, y *mat.Dense, runners []Runner, o *Options) (*Result, error) {
	start := time.Now()
	r := &race{a: a, y: y, res: &Result{Winner: -1}}
	if o != nil {
		r.o = *o
	}
	n, t := y.Dims()
	if n != a.Dim() || t < 1 {
		panic(fmt.Sprintf("race: A is %d×%d, Y %d×%d", a.Dim(), a.Dim(), n, t))
	}
	r.o.PCG.Tol = cmp.Or(r.o.PCG.Tol, 1e-3)
	for _, one := range append([]Runner{{Name: "none"}}, runners...) {
		r.lanes = append(r.lanes, &lane{Runner: one, mu: r.o.LambdaMin})
		r.res.Field = append(r.res.Field, Standing{Name: one.Name, Build: one.Build, Expected: one.Iterations, Times: cmp.Or(one.Times, 1)})
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
	if errors.Is(err, pcg.ErrStop) {
		err = nil
	}
	r.res.Seconds = time.Since(start).Seconds()
	return r.res, err
}

// race is one under way.
type race struct {
	o     Options
	a     pcg.Operator
	y, b  *mat.Dense // b is what the runners solve for, n×1
	lanes []*lane
	panel [2][]float64
	alone float64 // least seconds of a product of one column
	res   *Result
}

// lane is where one runner runs: a coroutine that asks for products with A.
type lane struct {
	Runner
	m     pcg.Preconditioner
	mu    float64 // at most λ_min(M⁻¹A)
	next  func() (*request, bool)
	stop  func()
	ask   *request
	state *pcg.State  // between two iterations, while it waits for the product of the second; else nil
	res   *pcg.Result // once it has ended
	err   error
}

// errOut is what a product returns to a runner that is out of the race.
var errOut = errors.New("race: over")

// one reports whether there is one right-hand side.
func (r *race) one() bool {
	_, t := r.y.Dims()
	return t == 1
}

// combine sets b = y, or for t > 1 the sum of the columns with random signs.
func (r *race) combine() {
	n, t := r.y.Dims()
	r.b = mat.NewDense(n, 1, nil)
	for c := range t {
		sign := 1.0
		if t > 1 && r.o.Stream.Uint64(uint64(c))&1 == 1 {
			sign = -1
		}
		for i := range n {
			r.b.Set(i, 0, r.b.At(i, 0)+sign*r.y.At(i, c))
		}
	}
}

// run runs the race.
func (r *race) run(ctx context.Context) error {
	if err := r.measureProduct(ctx); err != nil {
		return err
	}
	if err := r.enter(ctx, 0); err != nil {
		return err
	}
	for {
		for i := range r.res.Field {
			if r.res.Field[i].Phase == Done {
				return r.win(i)
			}
		}
		c, err := r.decide(ctx)
		if err != nil {
			return err
		}
		switch {
		case c.Build >= 0:
			if err := r.enter(ctx, c.Build); err != nil {
				return err
			}
			continue
		case c.Leader < 0:
			return nil // all are out
		case c.Over && !r.o.Finish:
			return r.win(c.Leader)
		}
		if err := r.multiply(ctx, c.Run); err != nil {
			return err
		}
		for _, i := range c.Run {
			if err := r.advance(ctx, i); err != nil {
				return err
			}
		}
		if r.o.Monitor != nil {
			if err := r.o.Monitor(r.res.Field); err != nil {
				return err
			}
		}
	}
}

// measureProduct measures AY; of one column the steps of the race show it.
func (r *race) measureProduct(ctx context.Context) error {
	r.alone = math.Inf(1)
	if r.one() {
		return nil
	}
	n, t := r.y.Dims()
	start := time.Now()
	err := r.a.MulTo(ctx, mat.NewDense(n, t, nil), r.y)
	r.res.Product = time.Since(start).Seconds()
	return err
}

// decide calls Decide with the seconds of one rank.
func (r *race) decide(ctx context.Context) (Choice, error) {
	f := r.res.Field
	x := []float64{r.res.Product}
	for i := range f {
		if f[i].Phase == Waiting {
			f[i].Solve = r.lanes[i].Solve * r.res.Product
		}
		x = append(x, f[i].Build, f[i].Solve, f[i].Spent)
	}
	if r.o.Share != nil {
		if err := r.o.Share(ctx, x); err != nil {
			return Choice{}, err
		}
	}
	r.res.Product = x[0]
	for i := range f {
		f[i].Build, f[i].Solve, f[i].Spent = x[3*i+1], x[3*i+2], x[3*i+3]
	}
	c := Decide(Terms{r.o.PCG.Tol, r.res.Product, r.one()}, f)
	for i := range f {
		if f[i].built() {
			f[i].Phase = Resting
		}
	}
	for _, i := range c.Run {
		f[i].Phase = Running
	}
	return c, nil
}

// enter builds the M of runner i and takes it to its first product.
func (r *race) enter(ctx context.Context, i int) error {
	l, s := r.lanes[i], &r.res.Field[i]
	start := time.Now()
	if l.Make != nil {
		var err error
		if l.m, l.mu, err = l.Make(ctx); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			s.Phase, s.Why = Out, err.Error()
			return nil
		}
		s.Build = time.Since(start).Seconds()
	}
	o := r.o.PCG
	o.InitX, o.Resume, o.LambdaMin = nil, nil, l.mu
	o.Checkpoint = func(st *pcg.State) error { l.state = st; return nil }
	o.Monitor = func(it *pcg.Iteration) error {
		s.Iterations, s.Residuals = it.Index, append(s.Residuals, it.MaxRelRes)
		if it.Error != nil && !math.IsNaN(it.Error[0]) {
			s.Bounds = append(s.Bounds, it.Error[0])
		}
		return nil
	}
	var m pcg.Preconditioner
	if l.m != nil {
		m = &timed{l.m, s, r.one(), math.Inf(1)}
		if err := r.measureSolve(ctx, l, s); err != nil {
			return err
		}
	}
	s.Phase, s.Residuals = Running, []float64{1}
	l.next, l.stop = iter.Pull(func(yield func(*request) bool) {
		l.res, l.err = pcg.Solve(ctx, asking{r.a, yield}, m, r.b, &o)
	})
	return r.advance(ctx, i)
}

// measureSolve measures M⁻¹Y; of one column the steps of the race show it.
func (r *race) measureSolve(ctx context.Context, l *lane, s *Standing) error {
	if r.one() {
		return nil
	}
	n, t := r.y.Dims()
	start := time.Now()
	err := l.m.SolveTo(ctx, mat.NewDense(n, t, nil), r.y)
	s.Solve = time.Since(start).Seconds()
	return err
}

// advance takes runner i to its next product, or its end.
func (r *race) advance(ctx context.Context, i int) error {
	l, s := r.lanes[i], &r.res.Field[i]
	var more bool
	l.state = nil // unless an iteration ends before the next product is asked for
	if l.ask, more = l.next(); more {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.res == nil { // it is Y that is wrong
		return l.err
	}
	s.Phase = Out
	switch {
	case l.err != nil:
		s.Why = l.err.Error()
	case l.res.Status == pcg.Converged:
		s.Phase, s.Left, s.Seconds = Done, 0, 0
	default:
		s.Why = l.res.Status.String()
	}
	return nil
}

// win ends the race with runner i.
func (r *race) win(i int) error {
	l := r.lanes[i]
	r.res.Winner, r.res.M, r.res.LambdaMin = i, l.m, l.mu
	for j := range r.res.Field {
		if s := &r.res.Field[j]; j != i && s.Phase == Running {
			s.Phase = Resting
		}
	}
	if r.res.Field[i].Phase == Done {
		r.res.Solved = l.res
		return nil
	}
	if !r.one() || l.state == nil {
		return nil
	}
	var err error
	r.res.State, err = l.state.MarshalBinary()
	return err
}
