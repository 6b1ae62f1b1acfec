package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/race"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/solve"
	"github.com/krrlab/lab/krrlab/stage"
)

// RaceOptions are the options of Race. Zero values mean the defaults.
type RaceOptions struct {
	// Runners are the preconditioners that race against none, after which they stand in race.Report.Racers. Default:
	// features (if the kernel has them), nystrom and rpcholesky, of the default rank, and vecchia without F.
	Runners []RaceRunner
	// Finish goes on until one has reached τ.
	Finish bool
}

// RaceRunner is a preconditioner that takes part in a race.
type RaceRunner struct {
	PrecondSpec
	Iterations float64 // expected, of a pilot; default: see race.Runner
	Build      float64 // seconds that building it is expected to take; default: by its flops
}

// Runners returns the preconditioners of these names, all that the kernel has if there are none, as spec has
// their numbers.
func Runners(k kernel.Kernel, spec PrecondSpec, names ...string) (all []RaceRunner) {
	if len(names) == 0 {
		names = []string{"features", "nystrom", "rpcholesky", "vecchia"}
		if noFeatures(k) {
			names = names[1:]
		}
	}
	for _, name := range names {
		one := spec
		if one.Name = name; name == "vecchia" {
			one.S, one.LambdaP = 0, 0
		}
		all = append(all, RaceRunner{PrecondSpec: one})
	}
	return all
}

// Race lets preconditioners race against each other and against none for the lab's problem, side by side in
// the same products with K: see package race. What is built is dear, so that a preconditioner is built only
// where what it is predicted to save pays for it. K and the M that is kept (race.Report) are held for the stages that follow
// (Free), and for one right-hand side a Solve with it goes on from where it stands.
//
// If ctx or the Monitor ends it, it returns what is known beside the error. On ranks all decide by the clock of the first.
func (l *Lab) Race(ctx context.Context, o RaceOptions) (*race.Report, error) {
	return run(ctx, l, stage.Race, o, func(ctx context.Context) (*race.Report, error) { return l.race(ctx, o) })
}

func (l *Lab) race(ctx context.Context, o RaceOptions) (*race.Report, error) {
	start := time.Now()
	r := &race.Report{Header: l.header(), Winner: -1, Kept: -1, Racers: make([]race.Racer, 1)}
	field, err := l.racers(&o)
	if err != nil {
		return nil, err
	}
	var most int64
	for _, p := range field {
		most = max(most, l.building(p))
		spec, _ := SpecOf(p, l.cfg.Kernel)
		r.Racers = append(r.Racers, race.Racer{S: spec.S, LambdaP: spec.LambdaP})
	}
	k, err := l.matrix(ctx, most, nil)
	if err != nil {
		return nil, err
	}
	a := k.it
	r.Storage, r.KError, r.KTime = a.Storage().String(), a.Choice().Error, k.seconds
	opt := &race.Options{
		PCG:       pcg.Options{Tol: l.cfg.Tol, MaxIter: l.cfg.MaxIter},
		LambdaMin: bound.LambdaMin(nil, l.leastKnown(), 0, 2*r.KError), Finish: o.Finish,
		Stream:  rng.New(l.cfg.Seed).Sub("race"),
		Share:   func(ctx context.Context, x []float64) error { return comm.ShareNumbers(ctx, l.comm, x, 0) },
		Monitor: l.watchRace(ctx),
	}
	task := l.system()
	var finer *gram.Matrix
	if task.Exact(a) {
		finer = a.Exact(task.Exactness())
	}
	task.Aim(&opt.PCG, a, finer)
	e := &entrants{lab: l, a: a, entry: k.seconds, built: map[pcg.Preconditioner]func(){}}
	if e.rates, err = plan.ReadRates(ctx, plan.RatesFile(), l.cfg.Memory, l.train.Len()); err != nil {
		return nil, err
	}
	var runners []race.Runner
	for i, p := range field {
		runners = append(runners, e.runner(p, o.Runners[i]))
	}
	res, err := race.Run(ctx, a, l.y, runners, opt)
	r.Take(res)
	e.crown(res)
	r.Seconds = time.Since(start).Seconds()
	return r, err
}

// racers returns the preconditioners of the runners, with their defaults, and completes these.
func (l *Lab) racers(o *RaceOptions) (field []Preconditioner, err error) {
	if len(o.Runners) == 0 {
		o.Runners = Runners(l.cfg.Kernel, PrecondSpec{})
	}
	for _, one := range o.Runners {
		p, err := one.Preconditioner(l.cfg.Kernel)
		if err != nil {
			return nil, err
		}
		if p == nil {
			p = Features{}
		}
		switch z := p.(type) {
		case approximation:
			p, err = z.settled(l.cfg.Kernel, l.train.Len(), l.cfg.Lambda)
		case Vecchia:
			err = z.check(l.train.Len())
		default:
			err = fmt.Errorf("runner %q: want features, nystrom, rpcholesky or vecchia; none takes part in every race", one.Name)
		}
		if err != nil {
			return nil, err
		}
		field = append(field, p)
	}
	return field, nil
}

// building returns the bytes that are held at most while M is built: Z, what F of landmarks is off to float32, and
// matrices of order s; or G, F, and the lists that neighbors are chosen of.
func (l *Lab) building(p Preconditioner) int64 {
	n := int64(l.train.Len())
	if v, ok := p.(Vecchia); ok {
		return v.bytes(int(n)) + 8*n*int64(v.S) + 24*n*int64(v.most(l.train.Len()))
	}
	r := p.(approximation).recipe()
	each := int64(4)
	if r.name != plan.Features {
		each = 8
	}
	return (each*n + 24*int64(r.s)) * int64(r.s)
}

// entrants are the preconditioners that a race builds.
type entrants struct {
	lab   *Lab
	a     *gram.Matrix
	entry float64 // seconds of forming K
	rates plan.Rates
	held  int64                         // bytes of those built
	built map[pcg.Preconditioner]func() // what makes one of them the lab's M
}

// runner returns a preconditioner as one that races. Building it takes what package plan predicts at the rates of this
// machine, with entries of K as forming K took them where each is a call of Eval; M⁻¹R reads Z or G twice where a product
// reads K. Features took three to four times as many iterations as landmarks on MNIST, IJCNN1 and California
// (docs/stages/race.md).
func (e *entrants) runner(p Preconditioner, o RaceRunner) race.Runner {
	n, d := e.lab.train.X.Dims()
	c := e.lab.candidate(p)
	r := race.Runner{
		Name: c.Precond, Build: o.Build, Iterations: o.Iterations, Times: 1,
		Solve: 8 * float64(n) * float64(c.S+2*c.Neighbors) / float64(max(e.a.Bytes(), 1)),
	}
	if c.Precond == plan.Features {
		r.Times = 3
	}
	if r.Build == 0 {
		cost := plan.Cost{Rates: e.rates, N: n, D: d, T: 1}
		if entry := 2 * e.entry / (float64(n) * float64(n)); kernel.Costly(e.lab.cfg.Kernel) {
			cost.Entries = plan.Entries{Stored: entry, Columns: entry}
		}
		cost.Of(c)
		r.Build = c.Seconds.Features + c.Seconds.Factor
	}
	r.Make = func(ctx context.Context) (pcg.Preconditioner, float64, error) { return e.make(ctx, p) }
	return r
}

// candidate returns a preconditioner as one that package plan knows the cost of.
func (l *Lab) candidate(p Preconditioner) *plan.Candidate {
	c := &plan.Candidate{Solver: plan.PCG, Storage: gram.Float32}
	switch z := p.(type) {
	case approximation:
		r := z.recipe()
		c.Precond, c.S, c.LambdaP = r.name, r.s, r.lambdaP
	case Vecchia:
		c.Precond, c.S, c.Neighbors = plan.Vecchia, z.S, cmp.Or(z.Neighbors, plan.UsualNeighbors)
	}
	return c
}

// make builds M, and a lower bound of the spectrum of M⁻¹A for landmarks.
func (e *entrants) make(ctx context.Context, p Preconditioner) (pcg.Preconditioner, float64, error) {
	l := e.lab
	var err error
	need := l.vectors() + e.held + e.a.Bytes() + l.building(p)
	if l.cfg.Memory > 0 && need > l.cfg.Memory {
		err = fmt.Errorf("with K and the preconditioners built it would need %s, the limit is %s", accel.Bytes(need), accel.Bytes(l.cfg.Memory))
	}
	if err = comm.Agree(ctx, l.comm, err); err != nil {
		return nil, 0, err
	}
	m, err := p.Make(ctx, l, 0)
	if err = comm.Agree(ctx, l.comm, err); err != nil {
		return nil, 0, err
	}
	if held, ok := m.(interface{ Bytes() int64 }); ok {
		e.held += held.Bytes()
	}
	z, g, w, v := l.z, l.g, l.m, l.v
	e.built[m] = func() { l.z, l.g, l.m, l.v = z, g, w, v }
	mu := 0.0
	if z, ok := p.(approximation); ok && l.z.low != nil {
		mu = bound.LambdaMin(l.z.low, l.cfg.Lambda, z.recipe().lambdaP, 2*e.a.Choice().Error)
	}
	return m, mu, nil
}

// crown makes the winner's M the one that is held, and keeps where it stands.
func (e *entrants) crown(res *race.Result) {
	l := e.lab
	l.mu.Lock()
	defer l.mu.Unlock()
	l.freeFactor()
	if hold := e.built[res.M]; hold != nil {
		hold()
	}
	if l.begun = nil; res.Winner >= 0 && res.State != nil {
		l.begun = &solve.Begun{A: e.a, M: res.M, LambdaMin: res.LambdaMin, Tol: l.cfg.Tol, Iterations: res.Field[res.Winner].Iterations, State: res.State}
	}
}

// watchRace returns a monitor that reports each step of each that runs, and where it ends by what is known. On
// ranks all return an error if the Monitor of one does.
func (l *Lab) watchRace(ctx context.Context) func([]race.Standing) error {
	return func(field []race.Standing) error {
		var err error
		late := true // all that run
		for i := range field {
			if f := &field[i]; f.Phase == race.Running || f.Phase == race.Done {
				e := stage.Event{Stage: stage.Race, Detail: f.Name, Iteration: f.Iterations, Residual: f.Residuals[f.Iterations], Remaining: -1}
				if f.Seconds < 1e6 {
					e.Remaining = time.Duration(f.Seconds * float64(time.Second))
				}
				low, left, _ := race.Forecast(f.Residuals, l.cfg.Tol)
				late = late && f.Phase == race.Running && l.plan.Late(f.Iterations, low, left)
				err = cmp.Or(err, l.cfg.Monitor(e))
			}
		}
		if late && err == nil {
			err = solve.ErrLate
		}
		return stage.AgreeToStop(ctx, l.comm, err)
	}
}
