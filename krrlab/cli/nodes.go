package cli

import (
	"cmp"
	"context"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/stage"
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
	way := plan.Candidate{Solver: plan.PCG, Precond: c.PrecondSpec.Name, S: c.S, LambdaP: c.LambdaP, Storage: c.Storage,
		Neighbors: c.Neighbors, Iterations: o.Iterations}
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
			from, way.Iterations, way.S = "the paper's of this s", p.Iterations, cmp.Or(way.S, p.Features)
			if way.S != p.Features || c.LambdaP > 0 {
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
	if way.Precond == "auto" || way.Precond == "" {
		way.Precond = plan.Features
	}
	if way.Precond == plan.None || way.Solver == plan.CG {
		way.Precond, way.S = plan.None, 0
	} else if way.Precond != plan.Vecchia {
		way.S = min(cmp.Or(way.S, krrlab.DefaultFeatures(h.N)), h.N)
	} else if way.Neighbors == 0 {
		way.Neighbors = 30
	}
	s, err := o.Scale(ctx, h, bytes, c.Form, way)
	if err != nil {
		return false, errUsage{err}
	}
	s.From = from
	err = a.show(&c.stageFiles, s)
	a.printWrote(14, "", "")
	return true, err
}
