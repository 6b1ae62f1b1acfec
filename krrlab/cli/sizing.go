package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/schema"
	"github.com/krrlab/lab/krrlab/vecchia"
	"github.com/krrlab/lab/plots"
)

// mostRanks is up to how many ranks are thought of.
const mostRanks = 1 << 16

// sizingFlags are the flags of krrlab ranks.
type sizingFlags struct {
	N        int          `flag:"n" check:"[2,1099511627776]" help:"training points"`
	D        int          `flag:"d" check:"[1,1099511627776]" help:"dimension d of the points"`
	NNZ      int64        `flag:"nnz" check:">=1"`
	T        int          `flag:"t" default:"1" check:">=1" help:"right-hand sides: classes, or 1"`
	S        int          `flag:"features" check:">=0"`
	Precond  string       `flag:"precond" default:"features" check:"one of features none nystrom rpcholesky vecchia"`
	Storage  gram.Storage `flag:"storage" default:"float32" help:"storage of K: float64, float32, fixed16 or recompute"`
	Memory   int64        `flag:"memory" unit:"bytes"`
	Counts   []int        `flag:"counts" default:"1,2,4,8,16,32,64" check:"[1,65536]"`
	Markdown string       `flag:"markdown" help:"write the table as Markdown to this file"`
}

func (sizingFlags) Help() map[string]string {
	return map[string]string{
		"features": "random features s, or the rank of nystrom and rpcholesky (default: n/10, at least 500, at most " +
			"10,000)",
		"precond": "preconditioner: " + precondNames,
		"nnz":     "nonzero entries of sparse points (default: the points are dense)",
		"memory":  "memory of a rank, such as 64GB: find the least number of ranks",
		"counts":  "numbers of ranks for the table",
	}
}

func (a *app) sizingCommand() *cobra.Command {
	f := &sizingFlags{}
	return withOptions(&cobra.Command{
		Use:   "ranks --n N --d D",
		Short: "Predict the memory of a solve on ranks, by part, and how many ranks it needs",
		Long: `Ranks predicts the memory of each rank of a solve: its share of K and of the features, and
what every rank holds in full, the points, the s×s factor and the vectors. With --memory it
finds the least number of ranks whose memory is enough. If no number is enough, it names the
part that exceeds the memory of a rank (docs/ranks.md).`,
		Example: `  krrlab ranks --n 60000 --d 784 --t 10 --features 6000 --memory 8GB
  krrlab ranks --n 1000000 --d 784 --t 10 --features 10000 --storage fixed16 --counts 16,32,64`,
		Args: noArgs,
	}, schema.Of(f), func(context.Context, []string) error { return a.sizing(f) })
}

func (f *sizingFlags) problem() (p plan.Problem, err error) {
	switch {
	case f.N == 0 || f.D == 0:
		return p, usagef("want the size of the problem: --n N --d D")
	case f.NNZ > int64(f.N)*int64(f.D):
		return p, usagef("--nnz %d: want 1 to n·d", f.NNZ)
	case f.S > f.N:
		return p, usagef("--features %d: want 1 to n", f.S)
	case f.Storage == gram.Auto:
		return p, usagef("--storage auto is decided from the data: name a storage")
	}
	p = plan.Problem{N: f.N, D: f.D, T: f.T, S: f.S, Storage: f.Storage, Landmarks: f.Precond != "features"}
	if f.NNZ > 0 {
		p.PointBytes = 12*f.NNZ + 8*int64(f.N)
	}
	switch {
	case f.Precond == "none":
		p.S, p.Landmarks = 0, false
	case f.Precond == "vecchia":
		p.Landmarks, p.Neighbors = f.S > 0, min(vecchia.MostNeighbors, f.N-1)
	case f.S == 0:
		p.S = krrlab.DefaultFeatures(f.N)
	}
	return p, nil
}

func (a *app) sizing(f *sizingFlags) error {
	p, err := f.problem()
	if err != nil {
		return err
	}
	t := sizingTable(p, f.Counts)
	a.printf("%s", t.Text())
	if f.Markdown != "" {
		if err := atomicfile.Put(f.Markdown, t.Markdown()); err != nil {
			return err
		}
		a.printf("%-14s %s\n", "wrote", f.Markdown)
	}
	if f.Memory == 0 {
		return nil
	}
	ranks, err := plan.Ranks(p, f.Memory, mostRanks)
	if err != nil {
		return err
	}
	a.printf("%-14s %v\n", "enough", plan.Of(p, ranks))
	return nil
}

// sizingTable has a row for each number of ranks.
func sizingTable(p plan.Problem, counts []int) *plots.Table {
	t := &plots.Table{
		Title: fmt.Sprintf("What a rank holds: n = %d, d = %d, t = %d, s = %d, K as %v", p.N, p.D, p.T, p.S, p.Storage),
		Columns: []plots.Column{
			{Name: "ranks"}, {Name: "points"}, {Name: "K"}, {Name: "features"}, {Name: "factor"}, {Name: "vectors"},
			{Name: "when the factor is formed"}, {Name: "in the iteration"},
		},
	}
	for _, c := range counts {
		m := plan.Of(p, c)
		t.Add(m.Ranks, accel.Bytes(m.Points), accel.Bytes(m.Kernel), accel.Bytes(m.Features), accel.Bytes(m.Factor),
			accel.Bytes(m.Vectors),
			accel.Bytes(m.Forming), accel.Bytes(m.Solving))
	}
	return t
}
