package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
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
func (a *app) predictNodes(ctx context.Context, c *stageCommand, options *plan.Options) (handled bool, err error) {
	options.Memory = c.Memory
	switch {
	case c.Train != "":
		return false, nil
	case c.Data == "" && len(options.Problem) != 3:
		return false, usagef("--nodes without data: want --data NAME, --train FILE, or --problem n,d,t")
	case c.Solver == krrlab.Direct || c.Solver == krrlab.Fourier:
		return false, usagef("--nodes predicts solvers with iterations on K: leave --solver %v out", c.Solver)
	}
	// header describes the problem. N = 0 stands for all rows.
	header, pointsAreBytes := stage.Header{Dataset: c.Data, N: c.MaxRows}, false
	var paper *datasets.PaperSettings // nil if the number of iterations is set
	if c.Data == "" {
		header.N, header.D, header.T = options.Problem[0], options.Problem[1], options.Problem[2]
		header.Dataset = plural.Count(header.N, "point")
	} else {
		info, err := datasets.Lookup(c.Data)
		if err != nil { // a packed folder, or an unknown name that loading the data reports
			return false, nil
		}
		if _, missing := info.Find(a.dirs()); len(missing) == 0 && options.Iterations == 0 {
			return false, nil
		}
		if header.N == 0 || header.N > info.N && !info.Endless { // there are fewer rows than --n asks for
			header.N = info.N
		}
		header.D, header.T = info.D, 1
		if info.Classes > 2 { // one right-hand side for each class, but a single one for two classes
			header.T = info.Classes
		}
		pointsAreBytes = info.Scale == "pixel" // pixels are stored as bytes
		if options.Iterations == 0 {
			paper = info.Paper
		}
	}
	if paper == nil && options.Iterations == 0 {
		return false, usagef("--nodes without data: want --iterations, which cannot be predicted without points")
	}

	candidate, iterationSource, err := c.candidateFor(header.N, options.Iterations, paper)
	if err != nil {
		return false, errUsage{err}
	}
	scaling, err := options.Scale(ctx, header, pointsAreBytes, candidate)
	if err != nil {
		return false, errUsage{err}
	}
	scaling.IterationSource = iterationSource
	err = a.printAndWrite(&c.stageFiles, scaling)
	a.printWritten(stageLabelWidth, nil)
	return true, err
}

// candidateFor returns the method that the flags describe for n points, with the given number of iterations, or with
// that of the paper's settings if these are not nil. iterationSource says where the number comes from.
func (c *stageCommand) candidateFor(n, iterations int, paper *datasets.PaperSettings) (candidate cost.Candidate,
	iterationSource string, err error) {
	candidate = cost.Candidate{Solver: cost.PCG, Storage: c.Storage, Iterations: iterations}
	if c.Solver != krrlab.AutoSolver {
		candidate.Solver = c.Solver.String()
	}
	features := krrlab.DefaultFeatures(n)
	if paper != nil {
		candidate.Iterations, features = paper.Iterations, paper.Features
	}
	if err := setPrecond(&candidate, c.PrecondSpec.Name, n, min(features, n)); err != nil {
		return candidate, "", err
	}
	p, isFeatures := candidate.Preconditioner.(krrlab.Features)
	switch {
	case paper == nil:
		return candidate, "as given", nil
	case isFeatures && p.S == paper.Features && p.LambdaP == 0:
		return candidate, "the paper's of this s", nil
	}
	return candidate, "the paper's of another preconditioner", nil
}

// setPrecond sets the preconditioner of a candidate to the one that a text such as "nystrom lambda-p=0.1" describes;
// auto stands for the usual kind. A low-rank preconditioner of n points gets the number of features unless the text
// determines its rank. setPrecond returns an error if the text is invalid or if the preconditioner does not know its
// cost.
func setPrecond(candidate *cost.Candidate, text string, n, features int) error {
	name, options, _ := strings.Cut(text, " ")
	if name == "auto" {
		name = stage.DefaultKind(nil).Name
	}
	if name == cost.None || candidate.Solver == cost.CG {
		candidate.Precond = cost.None
		return nil
	}
	text = strings.TrimSpace(name + " " + options)
	p, err := stage.ParsePreconditioner(text)
	if err != nil {
		return err
	}
	if lowRank, ok := p.(stage.LowRank); ok && !fixesRank(lowRank, n) {
		text += fmt.Sprintf(" features=%d", features)
		if p, err = stage.ParsePreconditioner(text); err != nil {
			return err
		}
	}
	if _, ok := p.(cost.Preconditioner); !ok {
		return fmt.Errorf("--nodes: the preconditioner %v does not say what it costs (cost.Preconditioner)", p)
	}
	candidate.Precond, candidate.Recipe, candidate.Preconditioner = stage.NameOf(p), text, p
	return nil
}

// fixesRank reports whether the options of p determine its rank for n points, so that a default has no effect on it.
func fixesRank(p stage.LowRank, n int) bool {
	rank := func(defaultRank int) int { // the rank depends neither on the kernel nor on λ
		completed, err := p.WithDefaults(stage.Defaults{Kernel: kernel.Gaussian{Sigma: 1}, N: n, Lambda: 1,
			S:       defaultRank,
			LambdaP: 1})
		if err != nil {
			return 0
		}
		return completed.(stage.LowRank).Approximation(nil).S
	}
	return rank(1) == rank(2)
}
