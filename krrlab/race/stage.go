package race

import (
	"context"
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/schema"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// Stage is the definition of the stage.
var Stage = stage.Definition{
	Name: stage.Race, Options: Options{}, Result: (*Result)(nil), Flags: "features lambda-p tol max-iter",
	Short: "Race preconditioners against each other and against none",
	Long: `Race runs conjugate gradients with several preconditioners side by side, and always also without
one: each product with K serves all of them. All are built, and each has the clock that it would have
alone. The race ends when one has reached τ before any other could by these clocks.`,
	Example: `  krrlab race --data mnist --n 10000 --plot race.svg
  krrlab race --data covtype --n 20000 --sigma 0.1 --runners nystrom,rpcholesky --features 2000`,
}

// local is the name of the sparse inverse without F.
const local = "vecchia"

// Options of the stage.
type Options struct {
	// Runners race against none, of the rank and the λ_p of the configured preconditioner. Default: all.
	Runners []string `flag:"runners" check:"one of features nystrom rpcholesky vecchia" help:"preconditioners beside none, separated by commas: features, nystrom, rpcholesky, vecchia (default: all that the kernel has, vecchia with r = 0)"`
}

// Run lets the preconditioners race. If ctx ends it returns what is known beside its error. On ranks all go by the
// clock of the first.
func (o Options) Run(ctx context.Context, b stage.Bench) (stage.Stage, error) {
	start, p := time.Now(), b.Problem()
	if err := schema.Settle(&o); err != nil {
		return nil, err
	}
	if p.Z == nil {
		return nil,
			fmt.Errorf("race: the preconditioner %s has no rank that all could have: take features, nystrom or "+
				"rpcholesky", p.Precond)
	}
	if len(o.Runners) == 0 {
		if o.Runners = []string{"features", "nystrom", "rpcholesky", local}; !hasFeatures(p) {
			o.Runners = o.Runners[1:]
		}
	}
	r := &Result{Header: p.Header, Winner: -1, Racers: make([]Racer, 1+len(o.Runners))}
	var most int64
	for _, name := range o.Runners {
		most = max(most, held(p, name))
	}
	k, err := b.K(ctx, most)
	if err != nil {
		return nil, err
	}
	r.Storage, r.KError, r.KTime = k.Storage().String(), k.Error, k.Seconds
	e := &entrants{b: b, p: p, k: k}
	r.Racers[0].Name = "none"
	makers := []maker{nil}
	for i, name := range o.Runners {
		s := &r.Racers[i+1]
		if s.Name = name; name != local {
			s.S, s.LambdaP = p.Z.S, p.Z.LambdaP
		}
		makers = append(makers, func(ctx context.Context) (pcg.Preconditioner, error) {
			m, err := e.build(ctx, name)
			return m, comm.Agree(ctx, p.Comm, err)
		})
	}
	for i := range r.Racers {
		r.Racers[i].Phase = Running
	}
	run := &race{Result: r, a: k, tell: func(s *Racer) {
		b.Tell(ctx, stage.Event{Stage: stage.Race, Detail: s.Name, Iteration: s.Iterations, Residual: s.residual,
			Remaining: -1})
	}}
	err = run.hold(ctx, p.Y, makers, p.MaxIter, rng.New(r.Seed).Sub("race"),
		func(ctx context.Context, x []float64) error { return comm.ShareNumbers(ctx, p.Comm, x, 0) })
	r.predict()
	r.Seconds = time.Since(start).Seconds()
	return r, err
}

func hasFeatures(p *stage.Problem) bool {
	_, err := feature.For(p.Kernel)
	return err == nil
}

// held returns the bytes of a preconditioner; of a sparse inverse at most, with the lists that neighbors are chosen of.
func held(p *stage.Problem, name string) int64 {
	if name == local {
		return (16 + 24) * int64(p.N) * int64(min(vecchia.MostNeighbors+1, p.N))
	}
	return p.Bytes(p.Z.S)
}

// entrants are the preconditioners that a race builds.
type entrants struct {
	b    stage.Bench
	p    *stage.Problem
	k    *stage.Gram
	held int64 // bytes of those built
}

// build makes an M.
func (e *entrants) build(ctx context.Context, name string) (m pcg.Preconditioner, err error) {
	p, bytes := e.p, held(e.p, name)
	if left := p.Left(e.k); left > 0 && e.held+bytes > left {
		err = fmt.Errorf("with K and the preconditioners built it would need %s more than the limit",
			accel.Bytes(e.held+bytes-left))
	}
	if err = comm.Agree(ctx, p.Comm, err); err != nil {
		return nil, err
	}
	e.held += bytes
	if name == local {
		return vecchia.New(ctx, e.k.Matrix, nil, &vecchia.Options{Seed: rng.New(p.Seed).Sub("vecchia", 0),
			Comm: p.Comm})
	}
	a := *p.Z
	a.Method = name
	z, err := e.b.Z(ctx, a)
	if err != nil {
		return nil, err
	}
	return precond.New(ctx, z.Z, a.LambdaP, &precond.Options{RHS: p.T, Fast: true, Comm: p.Comm})
}
