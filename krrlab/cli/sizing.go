package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/vecchia"
	"github.com/krrlab/lab/plots"
)

// mostRanks is up to how many ranks are thought of.
const mostRanks = 1 << 16

// sizingFlags are the flags of krrlab ranks.
type sizingFlags struct {
	n, d, t, features        int
	nnz                      int64
	storage, precond, memory string
	counts                   []int
	markdown                 string
}

func (a *app) sizingCommand() *cobra.Command {
	f := &sizingFlags{}
	cmd := &cobra.Command{
		Use:   "ranks --n N --d D",
		Short: "Predict the memory of a solve on ranks, by part, and how many ranks it needs",
		Long: `Ranks predicts the memory of each rank of a solve: its share of K and of the features, and
what every rank holds in full, the points, the s×s factor and the vectors. With --memory it
finds the least number of ranks whose memory is enough. If no number is enough, it names the
part that exceeds the memory of a rank (docs/ranks.md).`,
		Example: `  krrlab ranks --n 60000 --d 784 --t 10 --features 6000 --memory 8GB
  krrlab ranks --n 1000000 --d 784 --t 10 --features 10000 --storage fixed16 --counts 16,32,64`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.sizing(cmd.Flags(), f) },
	}
	p := cmd.Flags()
	p.IntVar(&f.n, "n", 0, "training points")
	p.IntVar(&f.d, "d", 0, "dimension d of the points")
	p.Int64Var(&f.nnz, "nnz", 0, "nonzero entries of sparse points (default: the points are dense)")
	p.IntVar(&f.t, "t", 1, "right-hand sides: classes, or 1")
	p.IntVar(&f.features, "features", 0, "random features s, or the rank of nystrom and rpcholesky (default: n/10, at least 500, at most 10,000)")
	p.StringVar(&f.precond, "precond", "features", "preconditioner: "+strings.Join(krrlab.PrecondNames, ", "))
	p.StringVar(&f.storage, "storage", "float32", "storage of K: float64, float32, fixed16 or recompute")
	p.StringVar(&f.memory, "memory", "", "memory of a rank, such as 64GB: find the least number of ranks")
	p.IntSliceVar(&f.counts, "counts", []int{1, 2, 4, 8, 16, 32, 64}, "numbers of ranks for the table")
	p.StringVar(&f.markdown, "markdown", "", "write the table as Markdown to this file")
	p.SortFlags = false
	return cmd
}

func (f *sizingFlags) problem(set *pflag.FlagSet) (p plan.Problem, err error) {
	for _, v := range []struct {
		name        string
		value, from int
	}{{"n", f.n, 2}, {"d", f.d, 1}, {"t", f.t, 1}} {
		if v.value < v.from || v.value > 1<<40 {
			return p, usagef("--%s %d: want %d to 2^40", v.name, v.value, v.from)
		}
	}
	for _, c := range f.counts {
		if c < 1 || c > mostRanks {
			return p, usagef("--counts %d: want 1 to %d", c, mostRanks)
		}
	}
	p = plan.Problem{N: f.n, D: f.d, T: f.t, S: f.features}
	if set.Changed("nnz") {
		if f.nnz < 1 || f.nnz > int64(f.n)*int64(f.d) {
			return p, usagef("--nnz %d: want 1 to n·d", f.nnz)
		}
		p.PointBytes = 12*f.nnz + 8*int64(f.n)
	}
	if err := checkPrecond(f.precond); err != nil {
		return p, err
	}
	p.Landmarks = f.precond != "features"
	switch {
	case f.precond == "none":
		p.S, p.Landmarks = 0, false
	case f.precond == "vecchia" && (f.features < 0 || f.features > f.n):
		return p, usagef("--features %d: want 0 to n", f.features)
	case f.precond == "vecchia":
		p.Landmarks, p.Neighbors = f.features > 0, min(vecchia.MostNeighbors, f.n-1)
	case !set.Changed("features"):
		p.S = krrlab.DefaultFeatures(f.n)
	case f.features < 1 || f.features > f.n:
		return p, usagef("--features %d: want 1 to n", f.features)
	}
	if p.Storage, err = gram.ParseStorage(f.storage); err != nil {
		return p, errUsage{err}
	}
	if p.Storage == gram.Auto {
		return p, usagef("--storage auto is decided from the data: name a storage")
	}
	return p, nil
}

func (a *app) sizing(set *pflag.FlagSet, f *sizingFlags) error {
	p, err := f.problem(set)
	if err != nil {
		return err
	}
	bytes, err := memoryLimit(f.memory)
	if err != nil {
		return err
	}
	t := sizingTable(p, f.counts)
	a.printf("%s", t.Text())
	if f.markdown != "" {
		if err := atomicfile.Put(f.markdown, t.Markdown()); err != nil {
			return err
		}
		a.printWrote(f.markdown)
	}
	if f.memory == "" {
		return nil
	}
	ranks, err := plan.Ranks(p, bytes, mostRanks)
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
		t.Add(m.Ranks, accel.Bytes(m.Points), accel.Bytes(m.Kernel), accel.Bytes(m.Features), accel.Bytes(m.Factor), accel.Bytes(m.Vectors),
			accel.Bytes(m.Forming), accel.Bytes(m.Solving))
	}
	return t
}
