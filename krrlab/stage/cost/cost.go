package cost

import (
	"cmp"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/direct"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// Seconds are the predicted seconds of the stages of a solve.
type Seconds struct {
	Kernel   float64 `json:"kernel"`   // forming K
	Features float64 `json:"features"` // forming Z, or the factor F of the landmarks
	Factor   float64 `json:"factor"`   // forming ZᵀZ and its Cholesky factor, the factor of K+λI, or a sparse inverse
	Solve    float64 `json:"solve"`    // iterations, or triangular solves
	Residual float64 `json:"residual"` // true residuals with a recomputed K
	Predict  float64 `json:"predict"`  // predicting the test points
	Total    float64 `json:"total"`    // sum of these
	Network  float64 `json:"network"`  // part of Total that ranks spend in collective operations
}

// Sum returns the sum over the stages.
func (s *Seconds) Sum() float64 {
	return s.Kernel + s.Features + s.Factor + s.Solve + s.Residual + s.Predict
}

// Training returns the total without the prediction of test points.
func (s *Seconds) Training() float64 { return s.Total - s.Predict }

// Costs of the inner loops in units of the Rates, measured on two cores (docs/benchmarks.md). A constant whose name
// ends in Factor multiplies the flops at the rate of matrix products. One that ends in Bytes is a number of bytes read
// from memory in the same time, and one that ends in Values is a number of exponentials computed in the same time. A
// larger number predicts a slower loop. Package recipe has the constants of the preconditioners.
const (
	tileFactor          = 1.4    // computing a tile of K whose entries were not timed
	byteTileFactor      = 0.63   // the same for points stored in bytes
	touchValues         = 1.1    // writing a byte for the first time, if Rates.Touch is unknown
	errorPilotValues    = 1.5e8  // estimating the error of K on a sample
	productBytes        = 1      // a byte of K in a product, as a share of a byte read
	productValues       = 0.008  // a byte of K in a product, for any number of columns
	productColumnValues = 0.0145 // a byte of K in a product, for each column
	sparseProductValues = 0.25   // a byte of K in a product, in addition if the tiles are sparse
	applyBytes          = 8.7    // an entry of Z in a product M⁻¹R if memory bandwidth limits the loop
	applyValues         = 0.82   // an entry of Z in M⁻¹R, for any number of columns of R
	applyColumnValues   = 0.11   // an entry of Z in M⁻¹R, for each column
	vectorPasses        = 80     // bytes read by the vector operations of an iteration, per entry of an n×t matrix

	// Block operations take blockFactor + blockFewColumns/t times their flops at the rate of dgemm: 2 times for many
	// columns, and more for few.
	blockFactor     = 2
	blockFewColumns = 20
)

// Model predicts the costs of each part of a method for solving a problem with n points in R^d and t right-hand sides
// on P ranks, from operation counts and the rates of a machine. It holds no data and measures nothing.
type Model struct {
	Rates
	Entries
	N, D, T        int     // n, d and t
	Ranks          int     // number P of ranks, each with these rates; 0 means 1
	Cores          int     // cores of a rank; 0: the threads of this process
	TestRows       int     // number of points to predict
	PointBytes     int64   // bytes of X; 0 means 8nd
	Trace          float64 // tr K; 0: unknown, so that no correction of M⁻¹R is predicted
	MeanRowSum     float64 // mean over the rows of Σ_{j≠i}|k(x_i, x_j)|; 0: unknown
	ResidualRounds int     // number of true residuals with a recomputed K; 0: one on a sample of 288 rows of K
	ErrorKnown     bool    // the storage error ‖K̃−K‖₂ is known already, so that estimating it takes no time
	// K describes the storage of K. Entries that it drops are not formed, read or stored. nil: no entries are dropped.
	K *gram.Choice
}

// Entries are the seconds that all threads together take for an entry of K. A value of 0 is replaced by a prediction
// from the rates G₃₂ = Gemm32, G₆₄ = Gemm64 and E = Exp: 1.4·2d/G₃₂ + 1/E for an entry as stored, 0.63·2d/G₃₂ + 1/E if
// the points are stored in bytes, and 1.4·2d/G₆₄ + 1/E for an exact entry.
type Entries struct {
	EntrySeconds      float64 `json:"entry_seconds"`       // an entry in the arithmetic of the stored kernel matrix
	ExactEntrySeconds float64 `json:"exact_entry_seconds"` // an entry in float64, for landmarks and true residuals
	// TimingSpread is the ratio of the slowest timing to the quickest, which is used as the result; 0: not timed.
	TimingSpread float64 `json:"entry_seconds_spread,omitempty"`
}

// Preconditioner is a stage.Preconditioner that can predict its costs. A plan considers no other preconditioners.
type Preconditioner interface {
	stage.Preconditioner
	// Cost predicts the costs of M, in addition to those of K, if K has the given storage.
	Cost(m *Model, storage gram.Storage) PrecondCost
}

// PrecondCost are the predicted costs of a preconditioner, in addition to those of K.
type PrecondCost struct {
	S         int     // rank s
	LambdaP   float64 // ridge λ_p of M; 0: M has none
	Neighbors int     // neighbors per point of a sparse inverse; a guess if a rule chooses them later

	Features float64 // seconds for forming Z, or the factor of the landmarks
	Factor   float64 // seconds for forming the matrices of M⁻¹
	Apply    float64 // seconds of one product M⁻¹R with R n×t

	Bytes   Memory   // memory of M: Features, Columns, Factor, and as Forming the bytes while the factor is formed
	Traffic Exchange // data exchanged between ranks for M, not for products with K
}

// precondCost returns the costs of the preconditioner of a candidate. They are zero for M = I and for a preconditioner
// that cannot predict them.
func (m *Model) precondCost(c *Candidate) (predicted PrecondCost) {
	if p, ok := c.Preconditioner.(Preconditioner); ok {
		predicted = p.Cost(m, c.Storage)
	}
	return predicted
}

// Predict sets the seconds and bytes of a candidate whose solver, preconditioner, storage and iterations are set. It
// also sets S, LambdaP and Neighbors, from those that the preconditioner predicts. With ε seconds per stored entry of K
// and ε_exact per exact entry, and with the rates G of matrix products, B of reading memory, T of writing memory for
// the first time and E of exponentials, the seconds are
//
//	K           n²/2·ε + bytes/T
//	iteration   product(t) + M⁻¹ + 80nt/B, with block operations (2+20/t)·BlockFlops/G₆₄
//	residual    n²/2·ε_exact for each round, or 288 rows of it
//	direct      n²/2·ε + bytes/T, chol(n), two readings of L and a residual for each round
//	test        n·n_test·(ε + 2t/G₃₂)
//
// and 1.5·10⁸/E for K if its storage error is not known. The kind of the preconditioner predicts the costs of M
// (package recipe). On P ranks, forming K and multiplying by it take 1/P of these seconds, and each rank works on whole
// vectors. The seconds of collectives are added to the stages that they belong to.
func (m Model) Predict(c *Candidate) {
	m.Ranks = max(m.Ranks, 1)
	m.setEntrySeconds(c)
	n, sec, precondCost := float64(m.N), &c.Seconds, m.precondCost(c)
	c.S, c.LambdaP, c.Neighbors = precondCost.S, precondCost.LambdaP, precondCost.Neighbors
	*sec = Seconds{Predict: n * float64(m.TestRows) / float64(m.Ranks) * (m.EntrySeconds + 2*float64(m.T)/m.Gemm32)}
	c.Bytes = m.Memory(c).Peak
	if c.Solver == Direct {
		m.predictDirect(c)
		sec.Total = sec.Sum()
		return
	}
	if c.Solver == Fourier {
		m.predictFourier(c)
		return
	}
	sec.Features, sec.Factor = precondCost.Features, precondCost.Factor
	product := m.ProductSeconds(c.Storage)
	if c.Storage != gram.Recompute {
		sec.Kernel = m.formedEntries()*m.EntrySeconds + m.WriteSeconds(float64(m.KernelBytes(c.Storage)))
	}
	if !m.ErrorKnown {
		sec.Kernel += errorPilotValues / m.Exp
	}
	vectors := m.vectorSeconds(c.Solver, c.Preconditioner != nil)
	sec.Solve = float64(c.Iterations)*(product+vectors+precondCost.Apply) + product
	sec.Residual = m.residualSeconds()
	if c.Storage == gram.Float64 && !m.isSparse(c.Storage) && m.ResidualRounds > 0 {
		// The stored K gives true residuals, see gram.Matrix.Certified.
		sec.Residual = float64(m.ResidualRounds) * product
	}
	if m.Ranks > 1 {
		exchange := m.Traffic(c)
		for _, part := range []struct {
			seconds *float64
			traffic Traffic
		}{{&sec.Features, exchange.Features}, {&sec.Factor, exchange.Factor}, {&sec.Solve, exchange.Solve(c)},
			{&sec.Residual, exchange.Residual}} {
			seconds := m.collectiveSeconds(part.traffic)
			*part.seconds += seconds
			sec.Network += seconds
		}
	}
	sec.Total = sec.Sum()
}

// setEntrySeconds sets the seconds per entry of K that are not known.
func (m *Model) setEntrySeconds(c *Candidate) {
	tileFlopFactor := tileFactor
	if m.PointBytes == int64(m.N)*int64(m.D) {
		tileFlopFactor = byteTileFactor
	}
	if m.ExactEntrySeconds == 0 {
		m.ExactEntrySeconds = tileFactor*2*float64(m.D)/m.Gemm64 + 1/m.Exp
	}
	if m.EntrySeconds == 0 {
		if m.EntrySeconds = m.ExactEntrySeconds; c.Storage != gram.Float64 {
			m.EntrySeconds = tileFlopFactor*2*float64(m.D)/m.Gemm32 + 1/m.Exp
		}
	}
}

// residualSeconds returns the seconds of the residuals with K recomputed in float64, or, if there are none, of forming
// the rows of K that check an answer.
func (m *Model) residualSeconds() float64 {
	if m.ResidualRounds == 0 {
		return bound.MaxResidualRows * m.OwnRows() * m.ExactEntrySeconds
	}
	return float64(m.ResidualRounds) * m.recomputedSeconds(m.ExactEntrySeconds)
}

// recomputedSeconds returns the seconds of a product with K whose entries are formed during the product, in
// entrySeconds each. Each tile is multiplied twice while it is in cache, at the cost of a stored tile of four-byte
// entries.
func (m *Model) recomputedSeconds(entrySeconds float64) float64 {
	return m.formedEntries() * (entrySeconds + 4*m.LoopSeconds(productValues, productColumnValues))
}

// LoopSeconds returns the seconds of an inner loop over t columns that takes as long as values + columnValues·t
// exponentials.
func (m *Model) LoopSeconds(values, columnValues float64) float64 {
	return (values + columnValues*float64(m.T)) / m.Exp
}

// OwnRows returns the mean number of rows that a rank owns, n/P.
func (m *Model) OwnRows() float64 { return float64(m.N) / float64(max(m.Ranks, 1)) }

// ProductSeconds returns the seconds in which a rank multiplies its part of K, in the given storage, by an n×t matrix.
// An entry in float64 takes as long as one in float32, so that a byte takes half as long.
func (m *Model) ProductSeconds(storage gram.Storage) float64 {
	bytes, loopSeconds := float64(m.KernelBytes(storage)), m.LoopSeconds(productValues, productColumnValues)
	switch {
	case storage == gram.Recompute:
		return m.recomputedSeconds(m.EntrySeconds)
	case m.isSparse(storage):
		return bytes * (loopSeconds + sparseProductValues/m.Exp)
	case storage == gram.Float64:
		return bytes * (productBytes/m.Read + loopSeconds/2)
	}
	return bytes * (productBytes/m.Read + loopSeconds)
}

// vectorSeconds returns the seconds of an iteration apart from the products with K and M⁻¹.
func (m *Model) vectorSeconds(solver string, preconditioned bool) float64 {
	t := float64(m.T)
	passes := vectorPasses * float64(m.N) * t / m.Read
	if solver != BlockPCG {
		return passes
	}
	return passes + (blockFactor+blockFewColumns/t)*pcg.BlockFlops(m.N, m.T, preconditioned)/m.Gemm64
}

// ApplyLowRankSeconds returns the seconds of (ZZᵀ+λ_pI)⁻¹R with Z n×s and R n×t, if the factor of order s is
// distributed over factorRanks ranks.
func (m *Model) ApplyLowRankSeconds(s, factorRanks int) float64 {
	return float64(s) * max(applyBytes/m.Read, m.LoopSeconds(applyValues, applyColumnValues)) *
		(m.OwnRows() + float64(s)/float64(factorRanks))
}

// formedEntries returns the number of entries of K that a rank forms.
func (m *Model) formedEntries() float64 {
	share := 1.0
	if m.K != nil {
		share = m.K.FormedShare()
	}
	return share * float64(m.N) * float64(m.N) / 2 / float64(max(m.Ranks, 1))
}

// isSparse reports whether the tiles of K are sparse in the given storage.
func (m *Model) isSparse(storage gram.Storage) bool {
	return m.K != nil && m.K.Sparse != nil && m.K.Storage == storage
}

// KernelBytes returns the bytes of K that a rank stores, and reads in each product.
func (m *Model) KernelBytes(storage gram.Storage) int64 {
	if m.isSparse(storage) {
		return m.K.Bytes / int64(max(m.Ranks, 1))
	}
	return gram.RankBytes(m.N, storage, max(m.Ranks, 1))
}

// blockIterationRatio returns the iterations of block PCG relative to those of PCG, 1 − ⅒·log₂t: 0.84 for t = 3, 0.67
// for t = 10. This is the smallest gain that was measured (package pcg).
func blockIterationRatio(t int) float64 { return max(0.3, 1-0.1*math.Log2(float64(t))) }

// BlockIsFaster reports whether solving t right-hand sides together by block PCG is predicted to be faster than solving
// each separately, at the rates of the Reference machine, with K in float32 and M = ZZᵀ+λ_pI of rank s. The gain must
// be at least a tenth, since the iterations of block PCG were measured for few columns only.
func BlockIsFaster(n, s, t int) bool {
	model := Model{Rates: Reference(), N: n, T: t}
	sharedSeconds := model.ProductSeconds(gram.Float32) + model.ApplyLowRankSeconds(s, 1)
	pcgSeconds, blockSeconds := sharedSeconds+model.vectorSeconds(PCG, true),
		sharedSeconds+model.vectorSeconds(BlockPCG, true)
	return t > 1 && blockSeconds*blockIterationRatio(t) < 0.9*pcgSeconds
}

// factorPrecision returns the precision of a direct solver's factor for a storage.
func factorPrecision(storage gram.Storage) direct.Precision {
	if storage == gram.Float32 {
		return direct.Float32Refined
	}
	return direct.Float64
}

// predictDirect sets the seconds of a solve by a Cholesky factorization.
func (m *Model) predictDirect(c *Candidate) {
	n, sec := float64(m.N), &c.Seconds
	gemmRate, entrySeconds, entryBytes := m.Gemm64, m.ExactEntrySeconds, 8.0
	if factorPrecision(c.Storage) == direct.Float32Refined {
		gemmRate, entrySeconds, entryBytes = m.Gemm32, m.EntrySeconds, 4
	}
	rounds := float64(c.Iterations + 1)
	// The upper triangle of K+λI is neither formed nor written.
	sec.Kernel = n*n/2*entrySeconds + m.WriteSeconds(n*n/2*entryBytes)
	sec.Factor = m.CholeskySeconds(n, gemmRate, 1)
	// Each solve reads the factor L twice. A byte of L takes as long as a byte of Z, whose entries have four bytes.
	sec.Solve = rounds * entryBytes * n * n / 2 * max(m.LoopSeconds(applyValues, applyColumnValues)/4, 2/m.Read)
	sec.Residual = rounds * m.recomputedSeconds(m.ExactEntrySeconds)
}

// CholeskySeconds returns the seconds of a Cholesky factorization of order n that is distributed over ranks. gemmRate
// is the rate of matrix products in flops per second.
//
// The n³/3 flops run at 1/1.12 of the rate of matrix products. In addition, the factors of the diagonal tiles and
// the triangular solves with them (package accel) run one after the other while other ranks wait. They take 1.5 times
// as long as the flops at n = 1,024 on two threads, and grow like n². Both numbers were measured for n = 1,024 to
// 5,000.
func (m *Model) CholeskySeconds(n, gemmRate float64, ranks int) float64 {
	serialOrder := 256 * float64(cmp.Or(m.Cores, accel.Threads()))
	return 1.12 / 3 / gemmRate * n * (n*n/FactorRanks(n, ranks) + 1000*(n+serialOrder))
}

// FactorRanks returns how many of the given ranks take part in a factorization of order n. Each of these ranks has at
// least one block column of accel.TileOrder columns.
func FactorRanks(n float64, ranks int) float64 {
	return max(1, min(float64(ranks), n/accel.TileOrder))
}

// Memory is the memory of one rank in bytes. If ranks differ by a tile or a block of rows, it is that of the largest.
type Memory struct {
	Points   int64 // the points X
	Kernel   int64 // tiles of K of this rank with their tables; for the direct solver, all its memory
	Features int64 // rows of Z or F, or of a sparse inverse, of this rank
	Columns  int64 // temporary memory for choosing landmarks or forming a sparse inverse
	Factor   int64 // Cholesky factor of order s, 8s² or 1/P of it; needed twice while it is formed
	Vectors  int64 // vectors of the iteration
	// Forming is the memory while the factor is formed, Solving the memory during the iteration, and Peak the larger of
	// the two.
	Forming, Solving, Peak int64
}

// VectorBytes returns the memory of the targets and of the vectors of an iteration: ten n×t matrices in float64.
func VectorBytes(n, t int) int64 { return 10 * 8 * int64(n) * int64(t) }

// Memory returns the memory of one rank for a candidate whose solver, preconditioner and storage are set.
func (m Model) Memory(c *Candidate) Memory {
	memory := m.precondCost(c).Bytes
	if memory.Points = m.PointBytes; memory.Points == 0 {
		memory.Points = 8 * int64(m.N) * int64(m.D)
	}
	if c.Solver == Direct || c.Solver == Fourier {
		if memory.Kernel = direct.MemoryNeeded(factorPrecision(c.Storage), m.N, m.T); c.Series != nil {
			memory.Kernel = SeriesBytes(c.Work.Bytes, m.N, m.D, m.T)
		}
		memory.Peak = memory.Points + memory.Kernel
		return memory
	}
	memory.Kernel, memory.Vectors = m.KernelBytes(c.Storage), VectorBytes(m.N, m.T)
	fixedBytes := memory.Points + memory.Features
	memory.Solving = fixedBytes + memory.Kernel + memory.Factor + memory.Vectors
	memory.Forming = fixedBytes + max(memory.Forming, memory.Columns)
	memory.Peak = max(memory.Forming, memory.Solving)
	return memory
}

// LargestPart returns a phrase that names the largest part of the peak memory, its size, and a way to reduce it.
func (m Memory) LargestPart() string {
	factorBytes := m.Factor
	if m.Forming >= m.Solving {
		factorBytes *= 2
	}
	var largest int64
	var reason string
	for _, part := range []struct {
		bytes int64
		text  string
	}{
		{factorBytes,
			"the factor of ZᵀZ+λ_pI, 8s² or 1/P of it, and as much again while it is formed: take fewer features"},
		{m.Points, "the points, all of them on each rank: take one rank for each machine"},
		{m.Kernel, "K: take more ranks, or a storage of fewer bytes"},
		{m.Features, "features: take fewer features"},
		{m.Columns, "what landmarks take on the way to their factor: take fewer, or more ranks"},
		{m.Vectors, "vectors, 80nt: take fewer right-hand sides at once"},
	} {
		if part.bytes > largest {
			largest, reason = part.bytes, fmt.Sprintf("%s of them are %s", accel.FormatBytes(part.bytes), part.text)
		}
	}
	return reason
}
