package experiments

import (
	"cmp"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// extent is the size of a problem.
type extent struct{ N, D, T, TestN int }

// sizeOf returns the size of a case by the registry, before its data are read.
func sizeOf(c Case) extent {
	s := extent{N: c.N}
	info, err := datasets.Lookup(c.Data)
	if err != nil {
		return s
	}
	s.D, s.TestN = info.D, info.TestN
	if s.N == 0 || s.N > info.N && !info.Endless {
		s.N = info.N
	}
	if c.TestN > 0 {
		s.TestN = min(s.TestN, c.TestN)
	}
	if s.T = 1; info.Classes > 2 {
		s.T = info.Classes
	}
	return s
}

// caseCost is what a case is predicted to take: seconds by stage, and the most bytes at one time.
type caseCost struct {
	cost.Seconds
	Bytes int64
}

const (
	// fineStorage is the tolerance from which on K is taken to be kept in float64: what is kept is settled on the data
	// (package gram).
	fineStorage = 1e-5
	// Iterations where none are expected, for plain and preconditioned CG, random features and ADMM.
	guessPlain, guessPreconditioned, rivalIterations, admmIterations = 600, 100, 6, 250
	// Auto by n², as measured on COVTYPE, the data that it is here for, whole: 100 s with one column and 240 s with
	// seven on two cores, and 11.8 GB.
	autoSeconds, autoColumn, autoBytes = 6.5e-10, 2e-10, 0.1
)

// costOf predicts the cost of a case of the given size whose solve takes the given number of iterations; 0 takes a
// guess. cost.Model has the solvers; rivals take the Z and ZᵀZ of Algorithm 1, and passes over Z: two an iteration of
// random features, one of ADMM, which has blocks of ZᵀZ.
func costOf(r *cost.Rates, c Case, size extent, iterations int) caseCost {
	n, t, s := float64(size.N), float64(size.T), float64(c.S)
	way := cost.Candidate{Solver: c.Solver.String(), Precond: cost.None, Storage: gram.Float32,
		Iterations: cmp.Or(iterations, guessPlain)}
	switch {
	case c.Method != "":
		way.Solver = krrlab.PCG.String()
		fallthrough
	case c.Solver == krrlab.PCG || c.Solver == krrlab.BlockPCG:
		way.M, way.Iterations = krrlab.Features{S: min(c.S, size.N)}, cmp.Or(iterations, guessPreconditioned)
	case c.Solver == krrlab.AutoSolver:
		return caseCost{cost.Seconds{Solve: n * n * (autoSeconds + autoColumn*t)}, int64(autoBytes * n * n)}
	case c.Solver == krrlab.Direct:
		way.Iterations = 0
	}
	if c.Storage == gram.Float64 || c.Storage == gram.Auto && c.Tol > 0 && c.Tol <= fineStorage &&
		c.Solver != krrlab.Direct {
		way.Storage = gram.Float64
	}
	cost.Model{Rates: *r, N: max(size.N, 1), D: max(size.D, 1), T: max(size.T, 1), Tests: size.TestN}.Predict(&way)
	out := caseCost{way.Seconds, way.Bytes}
	if passes := 2. * rivalIterations; c.Method != "" {
		more := max(1, s/n) // columns of Z, of which the plan has n at most
		out.Features, out.Factor = out.Features*more, out.Factor*more*more
		out.Kernel, out.Residual, out.Bytes = 0, 0, int64(4*n*s+8*s*s+64*n*t)
		if c.Method == ADMM {
			passes = float64(cmp.Or(iterations, admmIterations) + rhoTrial*len(rhoGrid))
			out.Factor, out.Bytes = 0, int64(4*n*s+160*n*t)
		}
		out.Solve = passes * (8*n*s/r.Read + 4*n*s*t/r.Gemm32)
	}
	if c.CountOnly {
		out.Predict = 0
	}
	return out
}
