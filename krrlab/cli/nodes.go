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

// predictNodes predicts the time and the memory of a solve on several machines, for a problem of which only the size is
// known, and prints the prediction. It returns handled = false if the caller can predict from the data: with --train,
// with a packed folder, or if a known data set is available and the number of iterations is not set.
func (a *app) predictNodes(ctx context.Context, c *stageCommand, o *plan.Options) (handled bool, err error) {
	o.Memory = c.Memory
	if c.Train != "" {
		return false, nil
	}
	if c.Data == "" && len(o.Problem) != 3 {
		return false, usagef("--nodes without data: want --data NAME, --train FILE, or --problem n,d,t")
	}
	h, pointsAreBytes := stage.Header{Dataset: c.Data, N: c.MaxRows}, false
	if c.Data == "" {
		h.N, h.D, h.T = o.Problem[0], o.Problem[1], o.Problem[2]
		h.Dataset = plural.Count(h.N, "point")
	}
	spec := c.PrecondSpec
	candidate := cost.Candidate{Solver: cost.PCG, Storage: c.Storage, Iterations: o.Iterations}
	iterationSource := "as given"
	if c.Data != "" {
		info, err := datasets.Lookup(c.Data)
		if err != nil { // a packed folder, or an unknown name that loading the data reports
			return false, nil
		}
		if _, missing := info.Find(a.dirs()); len(missing) == 0 && o.Iterations == 0 {
			return false, nil
		}
		if h.D = info.D; h.N == 0 || h.N > info.N && !info.Endless {
			h.N = info.N
		}
		if h.T = 1; info.Classes > 2 { // a right-hand side for each class, and one for two
			h.T = info.Classes
		}
		pointsAreBytes = info.Scale == "pixel" // which are stored in a byte
		if p := info.Paper; p != nil && candidate.Iterations == 0 {
			iterationSource, candidate.Iterations = "the paper's of this s", p.Iterations
			spec.S = cmp.Or(spec.S, p.Features)
			if spec.S != p.Features || spec.LambdaP > 0 {
				iterationSource = "the paper's of another s and λ_p"
			}
		}
	}
	switch {
	case candidate.Iterations == 0:
		return false, usagef("--nodes without data: want --iterations, which cannot be predicted without points")
	case c.Solver == krrlab.Direct || c.Solver == krrlab.Fourier:
		return false, usagef("--nodes predicts solvers with iterations on K: leave --solver %v out", c.Solver)
	}
	if c.Solver != krrlab.AutoSolver {
		candidate.Solver = c.Solver.String()
	}
	if err := setNodesPrecond(&candidate, spec, h.N); err != nil {
		return false, errUsage{err}
	}
	s, err := o.Scale(ctx, h, pointsAreBytes, candidate)
	if err != nil {
		return false, errUsage{err}
	}
	s.From = iterationSource
	err = a.printAndWrite(&c.stageFiles, s)
	a.printWritten(14, "", "")
	return true, err
}

// setNodesPrecond sets the preconditioner of a candidate for a problem of which only the number n of points is known.
func setNodesPrecond(candidate *cost.Candidate, spec krrlab.PrecondSpec, n int) error {
	if spec.Name == "auto" || spec.Name == "" {
		spec.Name = stage.DefaultKind(nil).Name
	}
	if spec.Name == cost.None || candidate.Solver == cost.CG {
		candidate.Precond = cost.None
		return nil
	}
	p, err := spec.Preconditioner(nil)
	if _, isLowRank := p.(stage.LowRank); isLowRank && err == nil && spec.S == 0 && spec.Levels == nil &&
		!strings.Contains(spec.Name, " features=") {
		spec.S = min(krrlab.DefaultFeatures(n), n) // no number of features is given
		p, err = spec.Preconditioner(nil)
	}
	if err != nil {
		return err
	}
	if _, ok := p.(cost.Preconditioner); !ok {
		return fmt.Errorf("--nodes: the preconditioner %v does not say what it costs (cost.Preconditioner)", p)
	}
	candidate.Precond, candidate.Recipe, candidate.Preconditioner = stage.NameOf(p), spec.Text(nil), p
	return nil
}
