package compare

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Stage is the definition of the stage.
var Stage = stage.Definition{
	Name: stage.Compare, Aliases: []string{"race"}, Options: Options{}, Result: (*Result)(nil),
	Flags: "features lambda-p max-iter",
	Short: "Compare preconditioners side by side: iterations, κ, seconds and bytes",
	Long: `Compare runs conjugate gradients with several preconditioners M side by side, and without one: each product
with K serves all of them. Of each it tells the iterations to 10⁻², 10⁻³, …, the interval of
κ(M⁻¹(K+λI)), tr and log det of M⁻¹(K+λI), and the seconds and bytes of M. --with names one, with its
options; --features and --lambda-p are for those that do not say.`,
	Example: `  krrlab compare --data mnist --n 5000 --plot compare.svg --csv table.csv
  krrlab compare --data ijcnn1 --n 10000 --seeds 5 --with "nystrom features=500" \
      --with "nystrom features=500 lambda-p=10" --with "vecchia features=250 neighbors=30"`,
}

// Options of the stage. Zero values mean the defaults.
type Options struct {
	// With are the preconditioners beside M = I.
	With       stage.Entries `flag:"with" help:"a preconditioner and its options, such as 'nystrom features=500 lambda-p=0.1', after name=NAME if it is to be called so; once for each (default: each kind, as far as the kernel has it)"`
	Seeds      int           `flag:"seeds" default:"1" check:">=1" help:"draws of each"`
	To         float64       `flag:"to" default:"1e-6" check:"(0,1)" help:"relative residual to iterate to"`
	Against    string        `flag:"against" check:"one of rank bytes" help:"draw the iterations against the rank, or the bytes of K and M, of preconditioners that differ in these"`
	Confidence float64       `flag:"confidence" default:"0.95" check:"(0,1)" help:"of each interval of κ"`
	Width      float64       `flag:"width" default:"0.2" check:"positive" help:"relative width of κ's interval at which to stop"`
	Steps      int           `flag:"steps" default:"100" check:">=-1" zero:"-1" help:"maximum number of Lanczos steps; 0 for no κ"`
	Probes     int           `flag:"probes" default:"10" check:">=1" help:"Lanczos processes of the preconditioners that tell ln det(K+λI) best, for it and the likelihood; 1 gives no estimate"`
	ExactBelow int           `flag:"exact-below" default:"500" check:">=-1" zero:"-1" help:"largest n for which all eigenvalues of each are computed; -1 for never"`
}

// Run compares. If ctx ends it returns the preconditioners that are judged by then beside its error.
func (o Options) Run(ctx context.Context, b stage.Bench) (stage.Stage, error) {
	start, p := time.Now(), b.Problem()
	if err := schema.Settle(&o); err != nil {
		return nil, err
	}
	if len(o.With) == 0 {
		for _, k := range stage.Kinds() {
			if k.Variants != nil && k.Suits(p.Kernel) == nil {
				o.With = append(o.With, stage.Entry{Text: k.Name})
			}
		}
	}
	for i, e := range o.With {
		var err error
		if o.With[i], err = b.Entry(e); err != nil {
			return nil, err
		}
	}
	k, err := b.K(ctx, 0)
	if err != nil {
		return nil, err
	}
	r := &Result{Header: p.Header, To: o.To, Against: o.Against, Storage: k.Storage().String(), KError: k.Error,
		KBytes: k.Bytes()}
	r.Seconds.Kernel = k.Seconds
	c := &comparison{o: &o, b: b, p: p, k: k, res: r, rhs: combined(p)}
	err = c.all(ctx)
	r.Seconds.Total = time.Since(start).Seconds()
	return r, err
}

// comparison is the stage under way.
type comparison struct {
	o   *Options
	b   stage.Bench
	p   *stage.Problem
	k   *stage.Gram
	rhs *mat.Dense // n×1
	res *Result

	least float64 // a lower bound of λ_min(A), 0 if none is known

	group []int // the rows that are made and not judged
	made  []*stage.Made
	held  int64 // their bytes
	left  int64 // bytes that they may take, on any rank
}

// combined returns the targets, of t > 1 the sum of the columns with random signs.
func combined(p *stage.Problem) *mat.Dense {
	signs, g := mat.NewVecDense(p.T, nil), rng.New(p.Seed).Sub("compare")
	for c := range p.T {
		signs.SetVec(c, 1)
		if p.T > 1 && g.Uint64(uint64(c))&1 == 1 {
			signs.SetVec(c, -1)
		}
	}
	b := mat.NewDense(p.N, 1, nil)
	b.Mul(p.Y, signs)
	return b
}

// all judges M = I and every preconditioner, in groups that the memory has room for.
func (c *comparison) all(ctx context.Context) error {
	left := c.p.FreeBytes(c.k)
	if left == 0 {
		left = math.MaxInt64
	}
	var err error
	if c.left, err = comm.Least(ctx, c.p.Comm, left); err != nil {
		return err
	}
	if c.res.Product, err = pencil.Seconds(ctx, c.k.MulTo, c.p.Y); err != nil {
		return err
	}
	c.least = bound.LambdaMin(nil, c.p.Lambda, 0, 2*c.k.Error)
	none := &stage.Made{LambdaMin: c.least}
	c.take(pencil.NewRow("none"), none, c.need(none))
	times := map[string]int{"none": 1}
	for _, e := range c.o.With {
		name := e.String()
		if times[name]++; times[name] > 1 {
			name += fmt.Sprintf(" (%d)", times[name])
		}
		for seed := range c.o.Seeds {
			row := pencil.NewRow(name)
			row.Draw = seed
			if err := c.enter(ctx, e, row); err != nil {
				return err
			}
		}
	}
	return c.judge(ctx)
}

// need returns what a preconditioner takes, with the vectors of conjugate gradients and of a Lanczos process.
func (c *comparison) need(m *stage.Made) int64 {
	return m.Bytes + 8*int64(c.p.N)*int64(5+2*max(0, c.o.Steps))
}

// take takes a preconditioner into the group, as the last of the rows.
func (c *comparison) take(row pencil.Row, m *stage.Made, need int64) {
	row.Why = pencil.NotReached // until it is judged
	c.group, c.made, c.held = append(c.group, len(c.res.Rows)), append(c.made, m), c.held+need
	c.res.Rows = append(c.res.Rows, row)
}

// enter makes a preconditioner and takes it into the group, which is judged first where the memory is full.
func (c *comparison) enter(ctx context.Context, e stage.Entry, row pencil.Row) error {
	m, err := pencil.Make(ctx, c.b, e, &row)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var need int64
	if err == nil { // ranks hold different rows: the most of them
		beside, e := comm.Least(ctx, c.p.Comm, math.MaxInt64/2-c.need(m))
		if e != nil {
			return e
		}
		if need = math.MaxInt64/2 - beside; need > c.left {
			err = fmt.Errorf("it takes %s with vectors, and beside K there are %s", accel.Bytes(need),
				accel.Bytes(c.left))
		}
	}
	if err != nil {
		row.Why, row.Solve = err.Error(), 0
		c.res.Rows = append(c.res.Rows, row)
		return nil
	}
	if c.held+need > c.left {
		if err := c.judge(ctx); err != nil {
			return err
		}
	}
	c.take(row, m, need)
	return nil
}

// judge judges the group, side by side, and lets go of it.
func (c *comparison) judge(ctx context.Context) error {
	s := &pencil.Set{A: c.k, StorageError: c.k.Error / c.p.Lambda, LambdaMinA: c.least, RecursiveResiduals: true,
		MixedTargets: c.p.T > 1,
		Probes:       c.o.Probes,
		Tell:         func(e stage.Event) { c.b.Tell(ctx, e) }}
	var ms []pcg.Preconditioner
	for i, m := range c.made {
		s.Rows, s.LambdaMin, ms = append(s.Rows, &c.res.Rows[c.group[i]]), append(s.LambdaMin, m.LambdaMin), append(ms, m.M)
	}
	s.M = pencil.NewPreconditioners(c.p.N, c.p.Comm, ms...)
	err := s.Solve(ctx, c.rhs, pcg.Options{Tol: c.o.To, Aim: 1, MaxIter: c.p.MaxIter,
		Monitor: func(it *pcg.Iteration) error {
			for j, r := range it.RelRes {
				if s.Rows[j].Draw == 0 && (it.Index == 1 || r > c.o.To) {
					c.b.Tell(ctx, stage.Event{Stage: stage.Compare, Detail: s.Rows[j].Name, Iteration: it.Index,
						Residual: r, Remaining: -1})
				}
			}
			if it.Active == 0 { // by recurrence: residuals recomputed are not asked for
				return pcg.ErrStop
			}
			return nil
		}})
	if err == nil && c.o.Steps > 0 {
		err = s.Lanczos(ctx, lanczos.Options{Steps: c.o.Steps, Tol: c.o.Width, Confidence: c.o.Confidence,
			Start: rng.New(c.p.Seed).Sub("compare", 1)}, c.o.To)
	}
	if err == nil && c.p.N <= c.o.ExactBelow {
		err = s.Exact(ctx, c.b)
	}
	c.group, c.made, c.held = nil, nil, 0
	return err
}
