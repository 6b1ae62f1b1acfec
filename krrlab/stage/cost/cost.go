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

// Seconds are those of the stages of a solve.
type Seconds struct {
	Kernel   float64 `json:"kernel"`   // K formed
	Features float64 `json:"features"` // Z, or the landmarks' factor
	Factor   float64 `json:"factor"`   // ZᵀZ and its Cholesky factor, or that of K+λI, or a sparse inverse
	Solve    float64 `json:"solve"`    // iterations, or triangular solves
	Residual float64 `json:"residual"` // true residuals with K recomputed
	Predict  float64 `json:"predict"`  // of the test points
	Total    float64 `json:"total"`
	Network  float64 `json:"network"` // of all these, in collectives
}

// Sum returns the sum of the stages.
func (s *Seconds) Sum() float64 {
	return s.Kernel + s.Features + s.Factor + s.Solve + s.Residual + s.Predict
}

// Training returns the total without the predictions.
func (s *Seconds) Training() float64 { return s.Total - s.Predict }

// What a stage takes in units of the Rates, as measured on two cores (docs/benchmarks.md): how many times its flops
// at the rate of a product of matrices, bytes that are read (…Bytes), or exponentials for a number of its loops
// (…Values). Those of a preconditioner are with its kind, in package recipe.
const (
	tileSlow      = 1.4    // tiles of K that were not timed,
	tileBytes     = 0.63   // of points in bytes
	touchValues   = 1.1    // a byte that is written for the first time, where Rates.Touch is not known
	lookValues    = 1.5e8  // the error of K, looked at on a sample
	productBytes  = 1      // a byte of K that is read in a product,
	productValues = 0.008  // and
	productColumn = 0.0145 // for each column
	sparseProduct = 0.25   // where tiles are sparse
	applyBytes    = 8.7    // an entry of Z in M⁻¹R,
	applyValues   = 0.82   // at least, and more
	applyColumn   = 0.11   // for each column
	vectorPasses  = 80     // bytes of n×t blocks an iteration passes over, for each of their entries
	blockSlow     = 2      // block operations of many columns; those of t columns take 2+20/t times as long as in dgemm
	blockThin     = 20
)

// Model predicts, by counts and the rates of a machine alone, what each part of a way to solve a problem takes: n points
// in R^d, t right-hand sides, on P ranks. It holds no data and measures nothing.
type Model struct {
	Rates
	Entries
	N, D, T        int
	Ranks          int     // P, that share the work at these rates each; 0 means 1
	Cores          int     // of a rank; 0: the threads of this process
	Tests          int     // points to predict
	PointBytes     int64   // of X; 0 means 8nd
	MeanRowSum     float64 // mean sum of |k(x_i, x_j)|, j ≠ i, of a row of K; 0: not known
	ResidualRounds int     // of true residuals with K recomputed that iterations take; 0: of 288 rows of it
	ErrorKnown     bool    // K's error is known
	// K is how K is kept: of what is left out no entry is formed, read or held. nil: all are kept.
	K *gram.Choice
}

// Entries are the seconds that all threads take for an entry of K. 0: 1.4·2d/G₃₂ + 1/exp, 0.63·2d/G₃₂ + 1/exp of points
// in bytes, and 1.4·2d/G₆₄ + 1/exp.
type Entries struct {
	EntrySeconds      float64 `json:"entry_seconds"`       // as it is stored
	ExactEntrySeconds float64 `json:"exact_entry_seconds"` // as landmarks and true residuals want it
	// Spread is how many times as long as the quickest timing of them, which counts, the slowest took; 0: not timed.
	TimingSpread float64 `json:"entry_seconds_spread,omitempty"`
}

// Preconditioner is a stage.Preconditioner that says what it costs: without this method no plan can tell.
type Preconditioner interface {
	stage.Preconditioner
	// Cost predicts what M takes beside K, which is stored as k.
	Cost(m *Model, k gram.Storage) Parts
}

// Parts are what a preconditioner is predicted to take beside K.
type Parts struct {
	S         int     // rank
	LambdaP   float64 // 0: it has none
	Neighbors int     // of a sparse inverse, a guess where its rule finds them

	Features float64 // seconds of Z, or of the landmarks' factor
	Factor   float64 // seconds of what M⁻¹ is made of
	Apply    float64 // seconds of M⁻¹R, R n×t

	Bytes   Memory   // its Features, Columns and Factor, and as Forming those of the factor while it is formed
	Traffic Exchange // of ranks: all but products with K
}

// parts returns what M of a candidate takes: nothing where M = I, or is of a kind that does not tell.
func (m *Model) parts(c *Candidate) (p Parts) {
	if of, ok := c.M.(Preconditioner); ok {
		p = of.Cost(m, c.Storage)
	}
	return p
}

// Of sets the seconds and bytes of a candidate of which solver, preconditioner, storage and iterations are known. With ε
// seconds an entry of K as it is stored and exact, G the rates of products of matrices, B that of reading, T that of the
// first writing and E that of exponentials
//
//	K           n²/2·ε + bytes/T
//	iteration   product(t) + M⁻¹ + 80nt/B, with block operations (2+20/t)·BlockFlops/G₆₄
//	residual    n²/2·ε_exact for each round, or 288 rows of it
//	direct      n²/2·ε + bytes/T, chol(n), two readings of L and a residual for each round
//	test        n·n_test·(ε + 2t/G₃₂)
//
// and 1.5·10⁸/E for K where its error is not known. What M takes its kind says (package recipe). On P ranks K and
// products with it take 1/P of that; vectors are each rank's own. What collectives take is added to their stages.
func (m Model) Predict(c *Candidate) {
	m.Ranks = max(m.Ranks, 1)
	m.entry(c)
	n, sec, made := float64(m.N), &c.Seconds, m.parts(c)
	c.S, c.LambdaP, c.Neighbors = made.S, made.LambdaP, made.Neighbors
	*sec = Seconds{Predict: n * float64(m.Tests) / float64(m.Ranks) * (m.EntrySeconds + 2*float64(m.T)/m.Gemm32)}
	c.Bytes = m.memory(c, &made).Peak
	if c.Solver == Direct {
		m.direct(c)
		sec.Total = sec.Sum()
		return
	}
	sec.Features, sec.Factor = made.Features, made.Factor
	product := m.ProductSeconds(c.Storage)
	if c.Storage != gram.Recompute {
		sec.Kernel = m.entries()*m.EntrySeconds + m.WriteSeconds(float64(m.KernelBytes(c.Storage)))
	}
	if !m.ErrorKnown {
		sec.Kernel += lookValues / m.Exp
	}
	sec.Solve = float64(c.Iterations)*(product+m.beside(c.Solver, c.M != nil)+made.Apply) + product
	if sec.Residual = float64(m.ResidualRounds) * m.recomputed(m.ExactEntrySeconds); m.ResidualRounds == 0 {
		sec.Residual = bound.RowsChecked * n / float64(m.Ranks) * m.ExactEntrySeconds
	}
	if m.Ranks > 1 {
		v := m.traffic(c, &made)
		for _, part := range []struct {
			to *float64
			of Traffic
		}{{&sec.Features, v.Features}, {&sec.Factor, v.Factor}, {&sec.Solve, v.Solve(c)}, {&sec.Residual, v.Residual}} {
			took := m.collective(part.of)
			*part.to += took
			sec.Network += took
		}
	}
	sec.Total = sec.Sum()
}

// entry sets the seconds of entries of K that are not known.
func (m *Model) entry(c *Candidate) {
	slow := tileSlow
	if m.PointBytes == int64(m.N)*int64(m.D) {
		slow = tileBytes
	}
	if m.ExactEntrySeconds == 0 {
		m.ExactEntrySeconds = tileSlow*2*float64(m.D)/m.Gemm64 + 1/m.Exp
	}
	if m.EntrySeconds == 0 {
		if m.EntrySeconds = m.ExactEntrySeconds; c.Storage != gram.Float64 {
			m.EntrySeconds = slow*2*float64(m.D)/m.Gemm32 + 1/m.Exp
		}
	}
}

// recomputed returns the seconds of a product with K whose tiles are formed, in entry seconds per entry, and each
// multiplied twice in cache, as those of four bytes are.
func (m *Model) recomputed(entry float64) float64 {
	return m.entries() * (entry + 4*m.LoopSeconds(productValues, productColumn))
}

// LoopSeconds returns the seconds of a loop that costs values exponentials, and each more for each column of R.
func (m *Model) LoopSeconds(values, each float64) float64 {
	return (values + each*float64(m.T)) / m.Exp
}

// OwnRows returns how many of n rows are a rank's own, on average.
func (m *Model) OwnRows() float64 { return float64(m.N) / float64(max(m.Ranks, 1)) }

// ProductSeconds returns the seconds of a product of R, n×t, with a rank's part of K.
func (m *Model) ProductSeconds(k gram.Storage) float64 {
	bytes, loops := float64(m.KernelBytes(k)), m.LoopSeconds(productValues, productColumn)
	switch {
	case k == gram.Recompute:
		return m.recomputed(m.EntrySeconds)
	case m.sparse(k):
		return bytes * (loops + sparseProduct/m.Exp)
	case k == gram.Float64:
		return bytes * (productBytes/m.Read + loops/2)
	}
	return bytes * (productBytes/m.Read + loops)
}

// beside returns the seconds of an iteration beside the product with K and M⁻¹.
func (m *Model) beside(solver string, preconditioned bool) float64 {
	t := float64(m.T)
	passes := vectorPasses * float64(m.N) * t / m.Read
	if solver != BlockPCG {
		return passes
	}
	return passes + (blockSlow+blockThin/t)*pcg.BlockFlops(m.N, m.T, preconditioned)/m.Gemm64
}

// ApplyLowRankSeconds returns the seconds of (ZZᵀ+λ_pI)⁻¹R, Z n×s, where so many ranks share its factor of order s.
func (m *Model) ApplyLowRankSeconds(s, sharers int) float64 {
	return float64(s) * max(applyBytes/m.Read, m.LoopSeconds(applyValues, applyColumn)) *
		(m.OwnRows() + float64(s)/float64(sharers))
}

// entries returns how many entries of K a rank forms.
func (m *Model) entries() float64 {
	share := 1.0
	if m.K != nil {
		share = m.K.Formed()
	}
	return share * float64(m.N) * float64(m.N) / 2 / float64(max(m.Ranks, 1))
}

// sparse reports whether tiles of a storage are.
func (m *Model) sparse(s gram.Storage) bool {
	return m.K != nil && m.K.Sparse != nil && m.K.Storage == s
}

// KernelBytes returns the bytes of K that a rank holds, and reads in a product.
func (m *Model) KernelBytes(s gram.Storage) int64 {
	if m.sparse(s) {
		return m.K.Bytes / int64(max(m.Ranks, 1))
	}
	return gram.RankBytes(m.N, s, max(m.Ranks, 1))
}

// blockShare is the share of the iterations that block PCG needs, 1 − ⅒·log₂t: 0.84 for t = 3, 0.67 for t = 10, the
// least gain measured (package pcg).
func blockShare(t int) float64 { return max(0.3, 1-0.1*math.Log2(float64(t))) }

// BlockPays predicts, at the rates of the Reference machine, whether t right-hand sides take less time together in
// block PCG than each by itself, with K in float32 and an M = ZZᵀ+λ_pI of rank s: by a tenth at least, as the share of
// the iterations was measured for few columns only.
func BlockPays(n, s, t int) bool {
	m := Model{Rates: Reference(), N: n, T: t}
	both := m.ProductSeconds(gram.Float32) + m.ApplyLowRankSeconds(s, 1)
	alone, block := both+m.beside(PCG, true), both+m.beside(BlockPCG, true)
	return t > 1 && block*blockShare(t) < 0.9*alone
}

// precision returns that of a direct solver's factor.
func precision(s gram.Storage) direct.Precision {
	if s == gram.Float32 {
		return direct.Float32Refined
	}
	return direct.Float64
}

// direct sets the seconds of a Cholesky factorization.
func (m *Model) direct(c *Candidate) {
	n, sec := float64(m.N), &c.Seconds
	gemm, entry, bytes := m.Gemm64, m.ExactEntrySeconds, 8.0
	if precision(c.Storage) == direct.Float32Refined {
		gemm, entry, bytes = m.Gemm32, m.EntrySeconds, 4
	}
	rounds := float64(c.Iterations + 1)
	sec.Kernel = n*n/2*entry + m.WriteSeconds(n*n/2*bytes) // of the upper half nothing is touched
	sec.Factor = m.CholeskySeconds(n, gemm, 1)
	// L is read twice, as Z is
	sec.Solve = rounds * bytes * n * n / 2 * max(m.LoopSeconds(applyValues, applyColumn)/4, 2/m.Read)
	sec.Residual = rounds * m.recomputed(m.ExactEntrySeconds)
}

// CholeskySeconds returns the seconds of a Cholesky factorization of order n that ranks share: n³/3 flops at 1/1.12 of the
// rate of products, and beside them, which ranks wait for, 1.5 times as much at n = 1,024 on two threads, ∝ n², for
// factors of tiles, one after the other, and triangular solves with these (package accel), as measured for n = 1,024 to
// 5,000.
func (m *Model) CholeskySeconds(n, gemm float64, ranks int) float64 {
	alone := 256 * float64(cmp.Or(m.Cores, accel.Threads()))
	return 1.12 / 3 / gemm * n * (n*n/FactorRanks(n, ranks) + 1000*(n+alone))
}

// Spread returns how many ranks work on a factor of order n that so many share: each has a block column at least.
func FactorRanks(n float64, ranks int) float64 {
	return max(1, min(float64(ranks), n/accel.TileOrder))
}

// Memory is what a rank holds, in bytes; of ranks that differ by a tile or a block of rows, the one with the most.
type Memory struct {
	Points   int64 // X
	Kernel   int64 // its tiles of K, with their tables; of the direct solver all that it takes
	Features int64 // its rows of Z or F, and of a sparse inverse
	Columns  int64 // what landmarks, and a sparse inverse, take beside on the way
	Factor   int64 // 8s², or 1/P of it; as much again while it is formed
	Vectors  int64 // of the iteration
	// Forming is what is held when the factor is formed, Solving in the iteration, and Most the larger of them.
	Forming, Solving, Peak int64
}

// Memory returns what a rank holds of a candidate of which solver, preconditioner and storage are known.
func (m Model) Memory(c *Candidate) Memory {
	made := m.parts(c)
	return m.memory(c, &made)
}

func (m *Model) memory(c *Candidate, made *Parts) Memory {
	v := made.Bytes
	if v.Points = m.PointBytes; v.Points == 0 {
		v.Points = 8 * int64(m.N) * int64(m.D)
	}
	if c.Solver == Direct {
		v.Kernel = direct.Need(precision(c.Storage), m.N, m.T)
		v.Peak = v.Points + v.Kernel
		return v
	}
	v.Kernel, v.Vectors = m.KernelBytes(c.Storage), 80*int64(m.N)*int64(m.T)
	held := v.Points + v.Features
	v.Solving = held + v.Kernel + v.Factor + v.Vectors
	v.Forming = held + max(v.Forming, v.Columns)
	v.Peak = max(v.Forming, v.Solving)
	return v
}

// Reason names the largest part of what is held when most is, and what can be done about it.
func (v Memory) Reason() string {
	factor := v.Factor
	if v.Forming >= v.Solving {
		factor *= 2
	}
	var most int64
	var reason string
	for _, p := range []struct {
		bytes int64
		text  string
	}{
		{factor, "the factor of ZᵀZ+λ_pI, 8s² or 1/P of it, and as much again while it is formed: take fewer features"},
		{v.Points, "the points, all of them on each rank: take one rank for each machine"},
		{v.Kernel, "K: take more ranks, or a storage of fewer bytes"},
		{v.Features, "features: take fewer features"},
		{v.Columns, "what landmarks take on the way to their factor: take fewer, or more ranks"},
		{v.Vectors, "vectors, 80nt: take fewer right-hand sides at once"},
	} {
		if p.bytes > most {
			most, reason = p.bytes, fmt.Sprintf("%s of them are %s", accel.Bytes(p.bytes), p.text)
		}
	}
	return reason
}
