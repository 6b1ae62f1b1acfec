package experiments

import (
	"cmp"
	"math"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/plan"
)

// ReferenceRates returns plan.Reference(): what the hour of scale Laptop is reckoned with.
func ReferenceRates() plan.Rates { return plan.Reference() }

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
	plan.Seconds
	Bytes int64
}

// How much longer a stage takes than its flops at the rate of a product of matrices, or its bytes at that of reading, as
// measured with OpenBLAS on two cores (docs/benchmarks.md), where package plan, which has the others, does not predict it.
const (
	tileSlow    = 1.4  // tiles of K, and values of Z
	gramSlow    = 1.6  // ZᵀZ
	factorSlow  = 1.7  // Cholesky, inverse of a triangle
	fftValue    = 4.4  // a value of one FFT of a TensorSketch, in cosines, times log₂ s
	fineStorage = 1e-5 // the tolerance from which on K is taken to be kept in float64: what is kept is settled on the data (package gram)
	// Iterations where none are expected, for plain and preconditioned CG.
	guessPlain, guessPreconditioned = 600, 100
	admmIterations                  = 250
	// Auto by n², as measured on COVTYPE, the data that it is here for, whole: 100 s with one column and 240 s with
	// seven on two cores, and 11.8 GB.
	autoSeconds, autoColumn, autoBytes = 6.5e-10, 2e-10, 0.1
)

// costOf predicts the cost of a case of the given size whose solve takes the given number of
// iterations; 0 takes a guess. What package plan chooses among is predicted by plan.Cost. With n points of d features, s random features and t
// right-hand sides random features methods take Z, ZᵀZ (ZZᵀ where s > n) and passes over Z; Z of a polynomial kernel of degree q, a TensorSketch,
// 4.4(q+1)·log₂(s) cosines a value.
func costOf(r *plan.Rates, c Case, size extent, iterations int) (out caseCost) {
	n, d, t, s := float64(size.N), float64(size.D), float64(size.T), float64(c.S)
	vectors, z := 64*n*t+8*n*d, 4*n*s
	switch c.Method {
	case Auto:
		out.Solve, out.Bytes = n*n*(autoSeconds+autoColumn*t), int64(autoBytes*n*n)
	case PCG, BlockPCG, CG, Direct:
		out = solved(r, c, size, iterations)
	case RandomFeatures:
		least := math.Min(n, s) // of the Gram matrix: ZᵀZ, or ZZᵀ where s > n
		out.Features, out.Solve = featureSeconds(r, c, n, d), 6*n*s*t*2/r.Gemm64
		out.Factor = gramSlow*n*s*least/r.Gemm32 + factorSlow*least*least*least/3/r.Gemm64
		out.Bytes = int64(z + 16*least*least + vectors)
	case ADMM:
		block := math.Min(s, 2048)
		pass := 8*n*s/r.Read + 4*n*s*t/r.Gemm32
		out.Features, out.Factor = featureSeconds(r, c, n, d), gramSlow*n*s*block/r.Gemm32
		rhos, trial := c.rhos()
		out.Solve = float64(cmp.Or(iterations, admmIterations)+trial*len(rhos)) * (pass + (2*s*block*t*2)/r.Gemm64)
		out.Bytes = int64(z + 8*s*block + 20*n*t*8 + 8*n*d)
	}
	switch m := float64(size.TestN); {
	case c.CountOnly:
		out.Predict = 0
	case c.Method == RandomFeatures || c.Method == ADMM:
		out.Predict = featureSeconds(r, c, m, d) + 2*m*s*t/r.Gemm32
	}
	return out
}

// solved is the cost of a case that package plan predicts.
func solved(r *plan.Rates, c Case, size extent, iterations int) caseCost {
	way := plan.Candidate{Solver: string(c.Method), Precond: plan.None, Storage: gram.Float32, Iterations: cmp.Or(iterations, guessPlain)}
	switch {
	case c.Method == Direct:
		way.Iterations = 0
	case c.Storage == "float64" || c.Storage == "" && c.Tol > 0 && c.Tol <= fineStorage:
		way.Storage = gram.Float64
	}
	if c.Method == PCG || c.Method == BlockPCG {
		way.Precond, way.S, way.Iterations = plan.Features, min(c.S, size.N), cmp.Or(iterations, guessPreconditioned)
	}
	plan.Cost{Rates: *r, N: max(size.N, 1), D: max(size.D, 1), T: max(size.T, 1), Tests: size.TestN}.Of(&way)
	if way.Precond == plan.Features && c.Kernel.Name == polynomial {
		way.Seconds.Features = featureSeconds(r, c, float64(size.N), float64(size.D))
	}
	return caseCost{way.Seconds, way.Bytes}
}

const polynomial = "polynomial"

// featureSeconds predicts the seconds of the random features of n points in R^d: a product of matrices
// and a cosine a value; for the polynomial kernel of degree q the q+1 FFTs of a TensorSketch.
func featureSeconds(r *plan.Rates, c Case, n, d float64) float64 {
	s := float64(c.S)
	if c.Kernel.Name == polynomial {
		return n * s * math.Log2(math.Max(2, s)) * float64(c.Kernel.Degree+1) * fftValue / r.Cos
	}
	return tileSlow*2*n*s*d/r.Gemm32 + n*s/r.Cos
}
