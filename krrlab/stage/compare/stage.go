package compare

import (
	"context"
	"fmt"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Stage defines the stage compare.
var Stage = stage.Definition{
	Name: stage.Compare, Aliases: []string{"race"}, Options: Options{}, Result: (*Result)(nil),
	Flags: "features lambda-p process-timeout max-iter",
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
	// With are the preconditioners to judge in addition to M = I.
	With       stage.Entries `flag:"with" options:"own" help:"a preconditioner and its options, such as 'nystrom features=500 lambda-p=0.1', after name=NAME if it is to be called so; once for each (default: each kind, as far as the kernel has it)"`
	Seeds      int           `flag:"seeds" default:"1" check:">=1" help:"draws of each"`
	To         float64       `flag:"to" default:"1e-6" check:"(0,1)" help:"relative residual to iterate to"`
	Against    string        `flag:"against" check:"one of rank bytes" help:"draw the iterations against the rank, or the bytes of K and M, of preconditioners that differ in these"`
	Confidence float64       `flag:"confidence" default:"0.95" check:"(0,1)" help:"of each interval of κ"`
	Width      float64       `flag:"width" default:"0.2" check:"positive" help:"relative width of κ's interval at which to stop"`
	Steps      int           `flag:"steps" default:"100" check:">=-1" zero:"-1" help:"maximum number of Lanczos steps; 0 for no κ"`
	Probes     int           `flag:"probes" default:"10" check:">=1" help:"Lanczos processes of the preconditioners that tell ln det(K+λI) best, for it and the likelihood; 1 gives no estimate"`
	MaxExactN  int           `flag:"exact-below" default:"500" check:">=-1" zero:"-1" help:"largest n for which all eigenvalues of each are computed; -1 for never"`
}

// Run compares the preconditioners. If ctx ends, Run returns the completed rows together with ctx's error.
func (o Options) Run(ctx context.Context, bench stage.Bench) (stage.Stage, error) {
	start, problem := time.Now(), bench.Problem()
	if err := schema.Complete(&o); err != nil {
		return nil, err
	}
	if len(o.With) == 0 {
		for _, k := range stage.Kinds() {
			if k.Variants != nil && k.CheckKernel(problem.Kernel) == nil {
				o.With = append(o.With, stage.Entry{Text: k.Name})
			}
		}
	}
	for i, entry := range o.With {
		var err error
		if o.With[i], err = bench.Entry(entry); err != nil {
			return nil, err
		}
	}
	k, err := bench.K(ctx, 0)
	if err != nil {
		return nil, err
	}
	r := &Result{Header: problem.Header, To: o.To, Against: o.Against, Storage: k.Storage().String(), KError: k.Error,
		KBytes: k.Bytes()}
	r.Seconds.Kernel = k.Seconds
	state := &comparison{options: &o, bench: bench, problem: problem, k: k, result: r, rhs: CombinedTargets(problem.Y,
		problem.Seed)}
	err = state.judgeAll(ctx)
	r.Seconds.Total = time.Since(start).Seconds()
	return r, err
}

// comparison is the state of the stage.
type comparison struct {
	options *Options
	bench   stage.Bench
	problem *stage.Problem
	k       *stage.Gram // K+λI
	rhs     *mat.Dense  // right-hand side b, n×1
	result  *Result

	lambdaMin float64 // lower bound of λ_min(A); 0 if none is known

	// The group consists of the preconditioners that are built and not yet judged.
	group           []int                        // their indices in result.Rows
	preconditioners []*stage.BuiltPreconditioner // the preconditioners in the same order
	groupBytes      int64                        // memory of the group
	memory          accel.Budget                 // memory budget of a group, the same on all ranks
}

// CombinedTargets returns the right-hand side of the comparison, n×1: the single target, or for t > 1 the sum of the
// targets with random signs. y is n×t.
func CombinedTargets(y *mat.Dense, seed uint64) *mat.Dense {
	n, t := y.Dims()
	signs, stream := mat.NewVecDense(t, nil), rng.New(seed).Sub("compare")
	for column := range t {
		signs.SetVec(column, 1)
		if t > 1 && stream.Uint64(uint64(column))&1 == 1 {
			signs.SetVec(column, -1)
		}
	}
	combined := mat.NewDense(n, 1, nil)
	combined.Mul(y, signs)
	return combined
}

// judgeAll judges M = I and every preconditioner, in groups that fit into the memory. A preconditioner whose name
// occurs again gets a number, as in "nystrom (2)".
func (c *comparison) judgeAll(ctx context.Context) error {
	var err error
	if c.memory, err = c.problem.MemoryWith(ctx, c.k); err != nil {
		return err
	}
	if c.result.Product, err = pencil.ApplySeconds(ctx, c.k.MulTo, c.problem.Y); err != nil {
		return err
	}

	c.lambdaMin = bound.LambdaMin(nil, c.problem.Lambda, 0, 2*c.k.Error)
	identity := &stage.BuiltPreconditioner{LambdaMin: c.lambdaMin}
	c.addToGroup(pencil.NewRow("none"), identity, c.requiredBytes(identity))
	nameCounts := map[string]int{"none": 1}
	for _, entry := range c.options.With {
		name := entry.String()
		if nameCounts[name]++; nameCounts[name] > 1 {
			name += fmt.Sprintf(" (%d)", nameCounts[name])
		}
		for seed := range c.options.Seeds {
			row := pencil.NewRow(name)
			row.Draw = seed
			if err := c.addDraw(ctx, entry, row); err != nil {
				return err
			}
		}
	}
	return c.judgeGroup(ctx)
}

// requiredBytes returns the memory of a preconditioner with 5 vectors of conjugate gradients, and 2 for each step of a
// Lanczos process.
func (c *comparison) requiredBytes(built *stage.BuiltPreconditioner) int64 {
	return built.Bytes + 8*int64(c.problem.N)*int64(5+2*max(0, c.options.Steps))
}

// addToGroup adds a preconditioner to the group, and its row to the result.
func (c *comparison) addToGroup(row pencil.Row, built *stage.BuiltPreconditioner, required int64) {
	row.FailureReason = pencil.NotReached // until judgeGroup has judged the preconditioner
	c.group = append(c.group, len(c.result.Rows))
	c.preconditioners = append(c.preconditioners, built)
	c.groupBytes += required
	c.result.Rows = append(c.result.Rows, row)
}

// addDraw builds a preconditioner and adds it to the group. If the memory is full, it first judges the present group.
// If the preconditioner cannot be built or does not fit into memory, its row gets the reason. addDraw returns an error
// only if ctx ended, the ranks cannot communicate, or the group could not be judged.
func (c *comparison) addDraw(ctx context.Context, entry stage.Entry, row pencil.Row) error {
	built, err := pencil.MakePreconditioner(ctx, c.bench, entry, &row)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var required int64
	if err == nil {
		// Ranks may need different amounts of memory; the largest one counts.
		minusLargest, reduceErr := comm.AllReduceMin(ctx, c.problem.Comm, -c.requiredBytes(built))
		if reduceErr != nil {
			return reduceErr
		}
		required = -minusLargest
		err = c.memory.Check(required, "it with its vectors", "")
	}
	if err != nil {
		row.FailureReason, row.Solve = err.Error(), 0
		c.result.Rows = append(c.result.Rows, row)
		return nil
	}
	if !c.memory.Fits(c.groupBytes + required) {
		if err := c.judgeGroup(ctx); err != nil {
			return err
		}
	}
	c.addToGroup(row, built, required)
	return nil
}

// judgeGroup judges the preconditioners of the group together, and removes them from it. Progress is reported for the
// first draw of each.
func (c *comparison) judgeGroup(ctx context.Context) error {
	_, weights := points.SplitWeights(c.problem.X)
	set := &pencil.Set{A: c.k, StorageError: c.k.Error / c.problem.Lambda, LambdaMinA: c.lambdaMin,
		RecursiveResiduals: true,
		MixedTargets:       c.problem.T > 1, Weights: weights, Probes: c.options.Probes, Notify: c.bench.Notify}
	var preconditioners []pcg.Preconditioner
	for i, built := range c.preconditioners {
		set.Rows, set.LambdaMin = append(set.Rows, &c.result.Rows[c.group[i]]), append(set.LambdaMin, built.LambdaMin)
		preconditioners = append(preconditioners, built.M)
	}
	set.M = pencil.NewPreconditioners(c.problem.N, c.problem.Comm, preconditioners...)
	err := set.Solve(ctx, c.rhs, pcg.Options{Tol: c.options.To, TolFraction: 1, MaxIter: c.problem.MaxIter,
		Monitor: func(iteration *pcg.Iteration) error {
			for j, residual := range iteration.RelRes {
				if set.Rows[j].Draw == 0 && (iteration.Index == 1 || residual > c.options.To) {
					c.bench.Notify(ctx, stage.Event{Stage: stage.Compare, Detail: set.Rows[j].Name,
						Iteration: iteration.Index, Residual: residual, Remaining: -1})
				}
			}
			// All columns have converged by the recursive residual, and true residuals are not needed.
			if iteration.ActiveColumns == 0 {
				return pcg.ErrStop
			}
			return nil
		}})
	if err == nil && c.options.Steps > 0 {
		err = set.Lanczos(ctx, lanczos.Options{Steps: c.options.Steps, Tol: c.options.Width,
			Confidence: c.options.Confidence, Start: rng.New(c.problem.Seed).Sub("compare", 1)}, c.options.To)
	}
	if err == nil && c.problem.N <= c.options.MaxExactN {
		err = set.Exact(ctx, c.bench)
	}
	c.group, c.preconditioners, c.groupBytes = nil, nil, 0
	return err
}
