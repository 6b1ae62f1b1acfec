package experiments

import (
	"context"
	"math"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
)

// Rates are what a machine does in a second, all threads together.
type Rates struct {
	Gemm32  float64 // flops of a product of matrices in float32
	Gemm64  float64 // the same in float64
	Read    float64 // bytes read from memory
	Threads int
}

// MeasureRates probes the machine for about two seconds.
func MeasureRates(ctx context.Context) Rates {
	const order = 768
	return Rates{
		Gemm32: accel.GemmRate32(ctx, order), Gemm64: accel.GemmRate64(ctx, order),
		Read: accel.ReadBandwidth(ctx, accel.Threads()), Threads: accel.Threads(),
	}
}

// ReferenceRates returns the rates of the two-core machine of docs/benchmarks.md when it is idle:
// what the hour of scale Laptop is reckoned with.
func ReferenceRates() Rates { return Rates{Gemm32: 185e9, Gemm64: 86e9, Read: 28e9, Threads: 2} }

// Size is the size of a problem.
type Size struct{ N, D, T, TestN int }

// sizeOf returns the size of a case by the registry, before its data are read.
func sizeOf(c Case) Size {
	s := Size{N: c.N, T: c.T}
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

// Cost is what a case is predicted to take: seconds by stage, and the most bytes at one time.
type Cost struct {
	Kernel, Features, Factor, Solve, Predict float64
	Bytes                                    int64
}

// Seconds returns the sum of the stages.
func (c Cost) Seconds() float64 { return c.Kernel + c.Features + c.Factor + c.Solve + c.Predict }

// How much longer a stage takes than its flops at the rate of a product of matrices, or its
// bytes at that of reading, as measured with OpenBLAS on two cores (docs/benchmarks.md).
const (
	tileSlow     = 1.4    // tiles of K
	kernelValue  = 0.9e-9 // seconds of a core for exp or cos
	featureSlow  = 1.4    // Z
	fftValue     = 4e-9   // seconds of a core for a value of one FFT of a TensorSketch, times log₂ s
	gramSlow     = 1.6    // ZᵀZ
	factorSlow   = 1.7    // Cholesky, inverse of a triangle
	productRead  = 1.1    // K·P where reading K is what it takes
	productFlops = 1.35   // K·P where the flops are
	applySlow    = 1.1    // M⁻¹R: reading Z twice and the flops, one after the other
	// fineStorage is the tolerance from which on K is taken to be kept in float64. What is kept
	// is settled by an error measured on the data (package gram).
	fineStorage = 1e-5
	// Iterations where none are expected, for plain and preconditioned CG.
	guessPlain, guessPreconditioned = 600, 100
	admmIterations                  = 250
)

// Cost predicts the cost of a case of the given size whose solve takes the given number of
// iterations; 0 takes a guess. With n points of d features, s random features, t
// right-hand sides and m test points, at the rates G32, G64 (flops) and B (bytes):
//
//	K         1.4·n²d/G + n²/2 values                        Z      1.4·2nsd/G32 + ns values
//	factor    1.6·ns²/G32 + 1.7·(2/3)s³/G64                  M⁻¹R   1.1·(8ns/B + (4nst + 2s²t)/G64)
//	K·P       max(1.1·bytes(K)/B, 1.35·2n²t/G)               test   1.4·2mnd/G32 + mn values + 2mnt/G32
//
// with G = G64 and 4n² bytes where K is kept in float64, as is assumed from τ = 1e-5 on, else
// G32 and 2n². A value, exp or cos, takes 0.9 ns of a core. Direct takes n³/3 flops at G32. Random features methods
// take Z, ZᵀZ (ZZᵀ where s > n) and passes over Z. Z of a polynomial kernel of degree q, a TensorSketch, takes
// 4(q+1)·log₂(s) ns of a core a value.
func (r Rates) Cost(c Case, size Size, iterations int) Cost {
	n, d, t, s := float64(size.N), float64(size.D), float64(size.T), float64(c.S)
	value := kernelValue / float64(max(1, r.Threads))
	g, entry := r.Gemm32, 4.0
	if c.Storage == "float64" || c.Storage == "" && c.Tol > 0 && c.Tol <= fineStorage {
		g, entry = r.Gemm64, 8
	}
	kBytes := n * n / 2 * entry
	kernel := tileSlow*n*n*d/g + n*n/2*value
	product := max(productRead*kBytes/r.Read, productFlops*2*n*n*t/g)
	features := r.featureSeconds(c, n, d)
	gram := gramSlow * n * s * s / r.Gemm32
	factor := factorSlow * s * s * s / 3 / r.Gemm64
	apply := applySlow * (8*n*s/r.Read + (4*n*s*t+2*s*s*t)/r.Gemm64)
	vectors, z, square := 64*n*t+8*n*d, 4*n*s, 8*s*s
	out := Cost{Bytes: int64(kBytes + vectors)}
	switch c.Method {
	case PCG, BlockPCG:
		out.Kernel, out.Features, out.Factor = kernel, features, gram+2*factor
		out.Solve = float64(guess(iterations, guessPreconditioned)) * (product + apply)
		out.Bytes = int64(kBytes + z + 3*square + vectors)
	case CG:
		out.Kernel, out.Solve = kernel, float64(guess(iterations, guessPlain))*product
	case Direct:
		out.Kernel, out.Factor = kernel, factorSlow*n*n*n/3/r.Gemm32
		out.Bytes = int64(8*n*n + vectors)
	case RandomFeatures:
		least := math.Min(n, s) // of the Gram matrix: ZᵀZ, or ZZᵀ where s > n
		out.Features, out.Solve = features, 6*n*s*t*2/r.Gemm64
		out.Factor = gramSlow*n*s*least/r.Gemm32 + factorSlow*least*least*least/3/r.Gemm64
		out.Bytes = int64(z + 16*least*least + vectors)
	case ADMM:
		block := math.Min(s, 2048)
		pass := 8*n*s/r.Read + 4*n*s*t/r.Gemm32
		out.Features, out.Factor = features, gramSlow*n*s*block/r.Gemm32
		rhos, trial := c.rhos()
		out.Solve = float64(guess(iterations, admmIterations)+trial*len(rhos)) * (pass + (2*s*block*t*2)/r.Gemm64)
		out.Bytes = int64(z + 8*s*block + 20*n*t*8 + 8*n*d)
	case PrecondForm:
		return r.formCost(c)
	}
	if !c.CountOnly {
		m := float64(size.TestN)
		switch c.Method {
		case RandomFeatures, ADMM:
			out.Predict = r.featureSeconds(c, m, d) + 2*m*s*t/r.Gemm32
		default:
			out.Predict = tileSlow*2*m*n*d/r.Gemm32 + m*n*value + 2*m*n*t/r.Gemm32
		}
	}
	return out
}

const polynomial = "polynomial"

// featureSeconds predicts the seconds of the random features of n points in R^d: a product of matrices
// and a cosine a value; for the polynomial kernel of degree q the q+1 FFTs of a TensorSketch.
func (r Rates) featureSeconds(c Case, n, d float64) float64 {
	s, threads := float64(c.S), float64(max(1, r.Threads))
	if c.Kernel.Name == polynomial {
		return n * s * math.Log2(math.Max(2, s)) * float64(c.Kernel.Degree+1) * fftValue / threads
	}
	return featureSlow*2*n*s*d/r.Gemm32 + n*s*kernelValue/threads
}

// formCost is Cost for PrecondForm: what package precond says of its forms, at the rate of a
// product in float64.
func (r Rates) formCost(c Case) Cost {
	n, s, t := float64(c.N), float64(c.S), float64(c.T)
	setup := map[string]float64{
		"L": s * s * s / 3, "Linv": 2 * s * s * s / 3, "U": s*s*s/3 + n*s*s, "eigen": 9 * s * s * s,
	}[c.Form]
	return Cost{
		Features: gramSlow * n * s * s / r.Gemm64, // ZᵀZ: the numbers of Z take no time beside it
		Factor:   factorSlow * setup / r.Gemm64,
		Solve:    formUses * applySlow * (16*n*s/r.Read + (4*n*s*t+4*s*s*t)/r.Gemm64),
		Bytes:    int64(12*n*s + 24*s*s + 24*n*t),
	}
}

func guess(iterations, def int) int {
	if iterations > 0 {
		return iterations
	}
	return def
}
