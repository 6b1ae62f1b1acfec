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

// predictNodes predicts the time and the memory of a solve on several machines (--nodes) for a problem whose points are
// not available, but whose size is known from --problem or from the registry of data sets. It prints and writes the
// prediction.
//
// It returns handled = false without an error if the caller must load the data: with --train, with a packed folder, if
// a known data set is available and the number of iterations is not set, and with an unknown name, which the caller
// reports.
func (a *app) predictNodes(ctx context.Context, c *stageCommand, o *plan.Options) (handled bool, err error) {
	o.Memory = c.Memory
	if c.Train != "" {
		return false, nil
	}
	if c.Data == "" && len(o.Problem) != 3 {
		return false, usagef("--nodes without data: want --data NAME, --train FILE, or --problem n,d,t")
	}
	h, pointsAreBytes := stage.Header{Dataset: c.Data, N: c.MaxRows}, false // N = 0 stands for all rows
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
		if h.N == 0 || h.N > info.N && !info.Endless { // there are fewer rows than --n asks for
			h.N = info.N
		}
		h.D, h.T = info.D, 1
		if info.Classes > 2 { // one right-hand side for each class, but a single one for two classes
			h.T = info.Classes
		}
		pointsAreBytes = info.Scale == "pixel" // pixels are stored as bytes
		if p := info.Paper; p != nil && candidate.Iterations == 0 {
			iterationSource, candidate.Iterations = "the paper's of this s", p.Iterations
			spec.S = cmp.Or(spec.S, p.Features)
			if spec.S != p.Features || spec.LambdaP > 0 { // s random features and the ridge λ_p of the preconditioner
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
	if err := setPrecond(&candidate, spec, h.N); err != nil {
		return false, errUsage{err}
	}
	s, err := o.Scale(ctx, h, pointsAreBytes, candidate)
	if err != nil {
		return false, errUsage{err}
	}
	s.IterationSource = iterationSource
	err = a.printAndWrite(&c.stageFiles, s)
	a.printWritten(stageLabelWidth, nil)
	return true, err
}

// setPrecond sets the preconditioner of a candidate for a problem of n points, which are not available: auto stands for
// the usual kind, and a low-rank preconditioner gets the default number of features unless spec has one. setPrecond
// returns an error if spec is invalid or if the preconditioner does not know its cost.
func setPrecond(candidate *cost.Candidate, spec krrlab.PrecondSpec, n int) error {
	if spec.Name == "auto" || spec.Name == "" {
		spec.Name = stage.DefaultKind(nil).Name
	}
	if spec.Name == cost.None || candidate.Solver == cost.CG {
		candidate.Precond = cost.None
		return nil
	}
	p, err := spec.Preconditioner(nil)
	if err != nil {
		return err
	}
	// The number of features may be an option, follow from the levels of a sketch, or be in the name.
	hasFeatures := spec.S > 0 || spec.Levels != nil || strings.Contains(spec.Name, " features=")
	if _, isLowRank := p.(stage.LowRank); isLowRank && !hasFeatures {
		spec.S = min(krrlab.DefaultFeatures(n), n)
		if p, err = spec.Preconditioner(nil); err != nil {
			return err
		}
	}
	if _, ok := p.(cost.Preconditioner); !ok {
		return fmt.Errorf("--nodes: the preconditioner %v does not say what it costs (cost.Preconditioner)", p)
	}
	candidate.Precond, candidate.Recipe, candidate.Preconditioner = stage.NameOf(p), spec.Text(nil), p
	return nil
}
