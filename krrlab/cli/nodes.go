package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// nodes predicts what machines take for a problem of which no more than its size is known, and prints it. It reports
// whether that is all that was asked: it is not of data that are here, unless the iterations are given.
func (a *app) nodes(ctx context.Context, c *stageCommand, o *plan.Options) (done bool, err error) {
	o.Memory = c.Memory
	if c.Train != "" {
		return false, nil
	}
	if c.Data == "" && len(o.Problem) != 3 {
		return false, usagef("--nodes without data: want --data NAME, --train FILE, or --problem n,d,t")
	}
	h, bytes := stage.Header{Dataset: c.Data, N: c.MaxRows}, false
	if c.Data == "" {
		h.N, h.D, h.T = o.Problem[0], o.Problem[1], o.Problem[2]
		h.Dataset = plural.Count(h.N, "point")
	}
	spec := c.PrecondSpec
	way := cost.Candidate{Solver: cost.PCG, Storage: c.Storage, Iterations: o.Iterations}
	from := "as given"
	if c.Data != "" {
		info, err := datasets.Lookup(c.Data)
		if err != nil { // a folder, or a name that whoever reads it refuses
			return false, nil
		}
		if _, missing := info.Find(a.dirs()); len(missing) == 0 && o.Iterations == 0 {
			return false, nil
		}
		if h.D = info.D; h.N == 0 || h.N > info.N && !info.Endless {
			h.N = info.N
		}
		if h.T = 1; info.Classes > 2 {
			h.T = info.Classes
		}
		bytes = info.Scale == "pixel"
		if p := info.Paper; p != nil && way.Iterations == 0 {
			from, way.Iterations, spec.S = "the paper's of this s", p.Iterations, cmp.Or(spec.S, p.Features)
			if spec.S != p.Features || spec.LambdaP > 0 {
				from = "the paper's of another s and λ_p"
			}
		}
	}
	switch {
	case way.Iterations == 0:
		return false, usagef("--nodes without data: want --iterations, which no rule expects without points")
	case c.Solver == krrlab.Direct:
		return false, usagef("--solver direct is for one machine: leave it out with --nodes")
	}
	if c.Solver != krrlab.AutoSolver {
		way.Solver = c.Solver.String()
	}
	if err := nodesPrecond(&way, spec, h.N); err != nil {
		return false, errUsage{err}
	}
	s, err := o.Scale(ctx, h, bytes, way)
	if err != nil {
		return false, errUsage{err}
	}
	s.From = from
	err = a.show(&c.stageFiles, s)
	a.printWrote(14, "", "")
	return true, err
}

// nodesPrecond sets the preconditioner of a way to solve a problem of n points, of which nothing else is known.
func nodesPrecond(way *cost.Candidate, spec krrlab.PrecondSpec, n int) error {
	if spec.Name == "auto" || spec.Name == "" {
		spec.Name = stage.DefaultKind(nil).Name
	}
	if spec.Name == cost.None || way.Solver == cost.CG {
		way.Precond = cost.None
		return nil
	}
	p, err := spec.Preconditioner(nil)
	if _, low := p.(stage.LowRank); low && err == nil && spec.S == 0 && !strings.Contains(spec.Name, " features=") &&
		spec.Levels == nil {
		spec.S = min(krrlab.DefaultFeatures(n), n)
		p, err = spec.Preconditioner(nil)
	}
	if err != nil {
		return err
	}
	if _, ok := p.(cost.Preconditioner); !ok {
		return fmt.Errorf("--nodes: the preconditioner %v does not say what it costs (cost.Preconditioner)", p)
	}
	way.Precond, way.Recipe, way.M = stage.NameOf(p), spec.Text(nil), p
	return nil
}
