package experiments

import (
	"cmp"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// problemSize is the size of a problem: numbers of training points (N), of dimensions (D), of right-hand sides (T) and
// of test points.
type problemSize struct{ N, D, T, TestN int }

// sizeOf returns the size of a case from the registry of data sets, without reading the data.
func sizeOf(c Case) problemSize {
	s := problemSize{N: c.N}
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

// caseCost is the predicted cost of a case: its seconds by stage and its peak memory in bytes.
type caseCost struct {
	cost.Seconds       // seconds by stage
	Bytes        int64 // peak memory
}

const (
	// float64Tol is the largest tolerance for which the prediction assumes that K is stored in float64. The actual
	// storage depends on the data (package gram).
	float64Tol = 1e-5

	// Default predictions of the number of iterations, by method: judgments, for cases without a published number.
	cgIterations       = 600 // conjugate gradients without a preconditioner
	pcgIterations      = 100 // preconditioned conjugate gradients
	featuresIterations = 6   // random features
	admmIterations     = 250 // ADMM

	// The time and memory of Auto are predicted in proportion to n². The factors are fitted to COVTYPE with all rows,
	// the data set that Auto is used for: 100 s with one column and 240 s with seven on two cores, and 11.8 GB.
	autoSeconds       = 6.5e-10 // seconds per entry of K, without right-hand sides
	autoColumnSeconds = 2e-10   // additional seconds per entry of K and right-hand side
	autoBytes         = 0.1     // bytes per entry of K
)

// costOf predicts the cost of a case of the given size, for a solve with the given number of iterations (0 for a
// guess). cost.Model predicts krrlab's solvers. A competing method forms Z and ZᵀZ like Algorithm 1, and then makes
// passes over Z: two in each of featuresIterations iterations for random features; for ADMM, which forms only blocks of
// ZᵀZ, one in each iteration and in each of the trials that choose ρ.
func costOf(rates *cost.Rates, c Case, size problemSize, iterations int) caseCost {
	n, t, s := float64(size.N), float64(size.T), float64(c.S)
	candidate := cost.Candidate{Solver: c.Solver.String(), Precond: cost.None, Storage: gram.Float32,
		Iterations: cmp.Or(iterations, cgIterations)}
	switch {
	case c.Method != "":
		candidate.Solver = krrlab.PCG.String()
		fallthrough
	case c.Solver == krrlab.PCG || c.Solver == krrlab.BlockPCG:
		candidate.Preconditioner, candidate.Iterations = krrlab.Features{S: min(c.S, size.N)},
			cmp.Or(iterations, pcgIterations)
	case c.Solver == krrlab.AutoSolver:
		return caseCost{cost.Seconds{Solve: n * n * (autoSeconds + autoColumnSeconds*t)}, int64(autoBytes * n * n)}
	case c.Solver == krrlab.Direct:
		candidate.Iterations = 0
	}
	if c.Storage == gram.Float64 || c.Storage == gram.Auto && c.Tol > 0 && c.Tol <= float64Tol &&
		c.Solver != krrlab.Direct {
		candidate.Storage = gram.Float64
	}
	cost.Model{Rates: *rates, N: max(size.N, 1), D: max(size.D, 1), T: max(size.T, 1),
		TestRows: size.TestN}.Predict(&candidate)
	predicted := caseCost{candidate.Seconds, candidate.Bytes}
	if passes := 2. * featuresIterations; c.Method != "" {
		widthRatio := max(1, s/n) // the model limits s to n
		predicted.Features, predicted.Factor = predicted.Features*widthRatio, predicted.Factor*widthRatio*widthRatio
		predicted.Kernel, predicted.Residual, predicted.Bytes = 0, 0, int64(4*n*s+8*s*s+64*n*t)
		if c.Method == ADMM {
			passes = float64(cmp.Or(iterations, admmIterations) + rhoTrialIterations*len(rhoGrid))
			predicted.Factor, predicted.Bytes = 0, int64(4*n*s+160*n*t)
		}
		predicted.Solve = passes * (8*n*s/rates.Read + 4*n*s*t/rates.Gemm32)
	}
	if c.CountOnly {
		predicted.Predict = 0
	}
	return predicted
}
