package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Stage defines the stage plan, which predicts the costs of every method to fit a model. It takes a K that is not
// positive semi-definite, because it solves nothing.
var Stage = stage.Definition{
	Name: stage.Plan, Options: Options{}, Result: (*Plan)(nil), Indefinite: true,
	NoBackend: "its ranks take pcg or block-pcg with the default preconditioner, or what the Config names",
	Flags:     "test holdout precond tol max-iter solver residual stop",
	Short:     "Predict seconds and memory of every way to fit, and choose one",
	Long: `Plan takes the flags of krrlab fit for data, kernel and solver. It prints the solver,
preconditioner, rank and λ_p that fit would choose, the predicted seconds of each stage, the
runner-up, and what would change the choice. Seconds are predicted from the rates of this machine,
which are kept in the user's cache folder, and measured again if the machine has become much
faster, as after other programs end. Iterations are those that a rule expects; fit observes them,
and goes over to the direct solver where that would be done sooner.
What a flag sets holds for all candidates. Nothing is solved.

With --nodes it predicts what machines would take, and what limits each stage on 1 to 1,024 of them.`,
	Example: `  krrlab plan --data mnist --n 20000
  krrlab plan --train train.csv --target price --sigma 2 --json plan.json --plot plan.svg
  krrlab plan --data mnist-1m --nodes 8 --cores 32 --memory 256GB --bandwidth 50 --price 2.5
  krrlab plan --problem 10000000,20,1 --nodes 1024 --precond 'features features=20000' --iterations 100`,
}

// Options are the options of the stage. Nodes > 0 requests the prediction of a run on several machines; the fields
// after Nodes describe these machines and that run.
type Options struct {
	TestRows int // number of points to predict after the fit; default: none

	Nodes      int           `flag:"nodes" check:"[1,65536]"` // number of machines, each of which runs one rank
	Memory     int64         // memory of one machine in bytes; 0: no limit
	Cores      int           `flag:"cores" with:"nodes" check:">=1"`                       // cores of one machine; 0: as many as this one has
	Bandwidth  float64       `flag:"bandwidth" with:"nodes" default:"10" check:"positive"` // bandwidth of a link, in Gbit/s
	Latency    time.Duration `flag:"latency" with:"nodes" default:"50us" check:"positive"` // latency of a message
	Price      float64       `flag:"price" with:"nodes" check:"positive"`                  // price of one machine for an hour
	Rates      string        `flag:"rates" with:"nodes"`                                   // rates as name=number, see Help
	Iterations int           `flag:"iterations" with:"nodes" check:">=1"`                  // expected number of iterations; 0: by the rule of thumb
	// Problem is n, d and t of a problem whose data need not be available. It is for the command only.
	Problem []int `flag:"problem" with:"nodes" not:"data|train" check:">=1"`
}

// Help returns the help texts of flags that other commands define with a different text.
func (Options) Help() map[string]string {
	return map[string]string{
		"nodes": "predict seconds, memory, bytes and money on so many machines, a rank on each (--memory is of one); " +
			"data that are not here are taken by their size",
		"rates": "rates of a machine in 10⁹ a second instead, such as gemm32=640,gemm64=320,read=90,exp=20,entry=0.6",
		"cores": "cores of a machine (default: of this one); its rates are those measured here times these cores, " +
			"but at most 100 GB/s of memory are read",
		"bandwidth":  "Gbit/s of a machine's link, in each direction",
		"latency":    "latency of a message",
		"price":      "price of a machine for an hour, in any currency",
		"iterations": "expected iterations (default: by the rule if the data are here, else the paper's)",
		"problem":    "n,d,t: so many points of this dimension, and right-hand sides, instead of data",
		"json":       "write the plan as JSON to this file",
		"plot": "draw predicted seconds against iterations, or machines, to this file (.svg, .png, .pdf, or .html " +
			"with values on hover and zoom)",
	}
}

// Prepare makes the command set TestRows to the number of test rows.
func (o *Options) Prepare(c *stage.Command) error {
	c.OnTestRows = func(d *datasets.Dataset) { o.TestRows = d.Len() }
	return nil
}

// Bench is a stage.Bench that can also describe its problem as a Task for planning.
type Bench interface {
	stage.Bench
	PlanTask() *Task
}

// Run makes a Plan, or a Scaling if Nodes is set. With several MPI ranks, all ranks measure the rates together, the
// first rank plans, and every rank returns its plan.
func (o Options) Run(ctx context.Context, bench stage.Bench) (stage.Stage, error) {
	if o.Nodes != 0 { // With Nodes = 0 the options of the machines have no effect, and are not checked.
		if err := schema.Complete(&o); err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
	}
	start, problem := time.Now(), bench.Problem()
	bench.Notify(ctx, stage.Event{Stage: stage.Plan})
	plan, err := o.planOnFirstRank(ctx, bench)
	if err = comm.Agree(ctx, problem.Comm, err); err != nil { // All ranks return the same error.
		return nil, err
	}
	if problem.Comm.Size() > 1 { // The first rank sends its plan to the others.
		text, err := json.Marshal(plan)
		if err == nil {
			text, err = comm.BroadcastBytes(ctx, problem.Comm, text, 0)
		}
		if plan = new(Plan); err == nil {
			err = json.Unmarshal(text, plan)
		}
		if err != nil {
			return nil, err
		}
	}
	plan.Header, plan.PlanSeconds = problem.Header, time.Since(start).Seconds()
	if o.Nodes > 0 {
		return o.bestScaling(ctx, plan, problem)
	}
	return plan, nil
}

// planOnFirstRank measures the rates on all ranks together. On the first rank it then returns the plan, and on the
// others nil. It returns an error if b is not a Bench.
func (o Options) planOnFirstRank(ctx context.Context, bench stage.Bench) (*Plan, error) {
	problem, readRates := bench.Problem(), cost.ReadRates
	if problem.Comm.Size() > 1 { // Cached rates do not apply: a rank is slower while the other ranks are busy.
		readRates = func(ctx context.Context) (cost.Rates, error) { return cost.Measure(ctx), ctx.Err() }
	}
	rates, err := readRates(ctx)
	if problem.Comm.Size() > 1 {
		network, networkErr := cost.MeasureNetwork(ctx, problem.Comm)
		rates.Network, err = network, cmp.Or(err, networkErr)
	}
	if err != nil || problem.Comm.Rank() > 0 {
		return nil, err
	}
	planBench, ok := bench.(Bench)
	if !ok {
		return nil, fmt.Errorf("plan: %T has no method PlanTask; use krrlab.Lab.Plan", bench)
	}
	task := planBench.PlanTask()
	task.TestRows = o.TestRows
	return choose(ctx, task, rates)
}
