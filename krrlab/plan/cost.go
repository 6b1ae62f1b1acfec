package plan

import (
	"math"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/direct"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// Seconds are those of the stages of a solve.
type Seconds struct {
	Kernel   float64 `json:"kernel"`   // K formed
	Features float64 `json:"features"` // Z, or the landmarks' factor
	Factor   float64 `json:"factor"`   // ZᵀZ and its Cholesky factor, or that of K+λI
	Solve    float64 `json:"solve"`    // iterations, or triangular solves
	Residual float64 `json:"residual"` // true residuals with K recomputed
	Predict  float64 `json:"predict"`  // of the test points
	Total    float64 `json:"total"`
}

// Sum returns the sum of the stages.
func (s *Seconds) Sum() float64 {
	return s.Kernel + s.Features + s.Factor + s.Solve + s.Residual + s.Predict
}

// training returns the total without the predictions.
func (s *Seconds) training() float64 { return s.Total - s.Predict }

// How much longer a stage takes than its flops at the rate of a product of matrices, its values at that of
// their loop, or its entries at that of a tile, as measured on two cores.
const (
	tileSlow     = 1.4 // tiles of K that were not timed
	featureSlow  = 1.4 // Z
	gramSlow     = 1.7 // ZᵀZ in float32
	nystromSlow  = 1.3 // the factor of landmarks, of as many as Rates.Nystrom was not measured with
	pivotsSlow   = 2.2 // that of random pivots
	inverseSlow  = 2   // of the factor of ZᵀZ, beside the Cholesky factorization's
	vectorPasses = 80  // bytes of n×t blocks an iteration passes over, for each of their entries
	blockSlow    = 2   // block operations of many columns; those of t columns take 2+20/t times as long as in dgemm
	blockThin    = 20
	// UsualNeighbors is how many neighbors of a point are reckoned with where a rule is to find how many there are.
	UsualNeighbors = 30

	extraColumns = 1.1 // columns of K that RPCholesky forms for one it keeps
)

// Cost predicts what ways to solve a problem of n points in R^d with t right-hand sides take at the rates of a machine.
type Cost struct {
	Rates
	N, D, T    int
	Ranks      int     // that share the work, at these rates each; 0 means 1. What they exchange is not predicted
	Tests      int     // points to predict
	PointBytes int64   // of X; 0 means 8nd
	ExactWork  float64 // n²d up to which residuals are taken with K recomputed
	Entries            // 0: 1.4·2d/G₃₂ + 1/exp in float32, and 1.4·2d/G₆₄ + 1/exp
	Look       float64 // seconds of deciding how to keep K; 0 where that is known
	Rounds     int     // of refinement by residuals with K recomputed, of what iterations come to
	// K is how K is kept, where that is known: of what is left out no entry is formed, read or held. nil: all are kept.
	K *gram.Choice
}

// Of sets the seconds and bytes of a candidate of which method, rank, solver, storage and iterations are known:
// with n points, rank s, t right-hand sides, ε seconds an entry of K as it is stored, for columns, exact, test and dense (Entries), G the rates of
// products of matrices, B of reading and W of touching memory,
//
//	K           look + n²/2·ε + bytes/W              Z          1.4·2nds/G₃₂ + ns/cos + 4ns/W
//	landmarks   ns·(ε_col + ε_own) + 1.3·ns²/G₆₄     ZᵀZ, L⁻¹   ns·ε_gram + 1.7·ns²/G₃₂ + chol(s) + 2·(s³/3)/P₆₄
//	sparse inverse, k neighbors, r pivots  product + scan·n·k'(1+ln(n/k')) + n(k²(d+r)/2 + k³/3 + 4kr)/rows
//	                and 128n(ε_col + r/rows) for its rule; k' = k, 3k beside pivots
//	iteration   bytes·product(t) + ns·apply(t) + n(k+1)·sparse(t) + 80nt/B, with block operations (2+20/t)·BlockFlops/G₆₄; K and twice Z at B at most
//	residual    n²/2·(ε_exact + 4·product(t)) for each round where K is recomputed for it, else 288 rows of it
//	direct      n²/2·ε_dense + bytes/2W, chol(n), bytes/2·apply(t)/4 and a residual for each round
//	test        n·n_test·ε_test + 2n·n_test·t/G₃₂
//
// On P ranks K, Z, products with them and columns of K take 1/P of that; the landmarks' factor, L⁻¹ and vectors are each rank's own.
func (m Cost) Of(c *Candidate) {
	m.Ranks = max(m.Ranks, 1)
	if m.Stored == 0 {
		narrow, wide := tileSlow*2*float64(m.D)/m.Gemm32+1/m.Exp, tileSlow*2*float64(m.D)/m.Gemm64+1/m.Exp
		m.Entries = Entries{narrow, wide, wide, narrow, [2]float64{narrow, wide}}
		if c.Storage == gram.Float64 {
			m.Stored = wide
		}
	}
	n, t, sec := float64(m.N), float64(m.T), &c.Seconds
	*sec = Seconds{}
	tests, ranks := float64(m.Tests)/float64(m.Ranks), float64(m.Ranks)
	sec.Predict = n*tests*m.Test + 2*n*tests*t/m.Gemm32
	if c.Solver == Direct {
		m.direct(c)
		sec.Total = sec.Sum()
		return
	}
	if c.Precond != None {
		m.build(c)
	}
	kBytes, product, iteration := m.iteration(c)
	if sec.Kernel = m.Look; c.Storage != gram.Recompute {
		sec.Kernel += m.entries()*m.Stored + kBytes/m.Touch
	}
	sec.Solve = float64(c.Iterations)*iteration + product
	if sec.Residual = bound.RowsChecked * n / ranks * m.Exact; n*n*float64(m.D) <= m.ExactWork {
		sec.Residual = float64(m.Rounds+1) * m.recomputed(m.Exact)
	}
	c.Bytes = m.bytes(c, false)
	sec.Total = sec.Sum()
}

// bytes returns what a rank holds at its most.
func (m *Cost) bytes(c *Candidate, raced bool) int64 {
	landmarks := c.Precond == Nystrom || c.Precond == RPCholesky
	return Of(Problem{N: m.N, D: m.D, T: m.T, PointBytes: m.PointBytes, Storage: c.Storage, KernelBytes: m.kernelBytes(c.Storage), S: c.S, Neighbors: c.Neighbors,
		Landmarks: landmarks || c.Precond == Vecchia && c.S > 0, Raced: raced || c.Precond == Vecchia}, max(1, m.Ranks)).Most
}

// recomputed returns the seconds of a product with K whose tiles are formed, in so many seconds an entry, and each
// multiplied twice in cache, as those of four bytes are.
func (m *Cost) recomputed(entry float64) float64 {
	return m.entries() * (entry + 4*at(m.Product, m.T))
}

// build sets the seconds of Z or the landmarks' factor, and of what M⁻¹ is made of.
func (m *Cost) build(c *Candidate) {
	n, s, own := float64(m.N), float64(c.S), float64(m.N)/float64(m.Ranks)
	if c.Precond == Features {
		c.Seconds.Features = featureSlow*2*own*s*float64(m.D)/m.Gemm32 + own*s/m.Cos + 4*own*s/m.Touch
	} else {
		columns, slow, entry := s, nystromSlow, m.Nystrom
		if c.Precond != Nystrom {
			columns, slow, entry = extraColumns*s, pivotsSlow, m.RPCholesky
		}
		c.Seconds.Features = own*columns*m.Columns + n*s*entry + slow*n*s*s/m.Gemm64
	}
	if k := float64(c.Neighbors); c.Precond == Vecchia { // H is as large as F; all rows of G are made on each rank
		count := k
		if s > 0 {
			count *= wider
		}
		_, pass, _ := m.iteration(&Candidate{Solver: CG, Precond: None, Storage: c.Storage})
		c.Seconds.Factor = pass + near(n, count)*m.Scan + n*(k*k*(float64(m.D)+s)/2+k*k*k/3+4*k*s)/m.Rows
		if c.Damping == 0 {
			c.Seconds.Factor += vecchia.RuleRows * n * (m.Columns + s/m.Rows)
		}
	}
	c.Seconds.Factor += own*s*m.Gram + gramSlow*own*s*s/m.Gemm32 + cholesky(s, m.Gemm64, m.Potrf64) + inverseSlow*s*s*s/3/m.Potrf64
}

// wider is how many times as many neighbors are found beside a factor as are taken.
const wider = 3

// near returns how many entries of K, in random order, are among the count largest so far of their rows: n·count·(1+ln(n/count)).
func near(n, count float64) float64 { return n * count * (1 + math.Log(max(1, n/max(1, count)))) }

// iteration returns a rank's bytes of K, and the seconds of a product with it and of an iteration.
func (m *Cost) iteration(c *Candidate) (kBytes, product, all float64) {
	n, t, s := float64(m.N), float64(m.T), float64(c.S)
	ranks := max(m.Ranks, 1)
	kBytes = float64(m.kernelBytes(c.Storage))
	product = kBytes * max(at(m.Product, m.T), 1/m.Read)
	switch c.Storage {
	case gram.Recompute:
		product = m.recomputed(m.Stored)
	case gram.Float64:
		product = max(kBytes/2*at(m.Product, m.T), kBytes/m.Read)
	}
	all = product + vectorPasses*n*t/m.Read
	if c.Solver == BlockPCG {
		all += (blockSlow + blockThin/t) * pcg.BlockFlops(m.N, m.T, c.Precond != None) / m.Gemm64
	}
	if s > 0 {
		all += s * max(at(m.Apply, m.T), 8/m.Read) * (n/float64(ranks) + s)
	}
	if c.Precond == Vecchia {
		all += n * float64(c.Neighbors+1) * at(m.Sparse, m.T)
	}
	return kBytes, product, all
}

// entries returns how many entries of K a rank forms.
func (m *Cost) entries() float64 {
	share := 1.0
	if m.K != nil {
		share = m.K.Formed()
	}
	return share * float64(m.N) * float64(m.N) / 2 / float64(max(m.Ranks, 1))
}

// kernelBytes returns the bytes of K that a rank holds, and reads in a product.
func (m *Cost) kernelBytes(s gram.Storage) int64 {
	if m.K != nil && m.K.Sparse != nil && m.K.Storage == s {
		return m.K.Bytes / int64(max(m.Ranks, 1))
	}
	return gram.RankBytes(m.N, s, max(m.Ranks, 1))
}

// blockShare is the share of the iterations that block PCG needs, 1 − ⅒·log₂t: 0.84 for t = 3, 0.67 for t = 10, the least gain measured
// (package pcg).
func blockShare(t int) float64 { return max(0.3, 1-0.1*math.Log2(float64(t))) }

// BlockPays predicts, at the rates of the Reference machine, whether t right-hand sides take less time together in block PCG
// than each by itself, with K in float32 and an M of rank s: by a tenth at least, as the share of the iterations was measured for few
// columns only.
func BlockPays(n, s, t int) bool {
	m := Cost{Rates: Reference(), N: n, T: t}
	_, _, alone := m.iteration(&Candidate{Solver: PCG, Storage: gram.Float32, S: s})
	_, _, block := m.iteration(&Candidate{Solver: BlockPCG, Storage: gram.Float32, S: s})
	return t > 1 && block*blockShare(t) < 0.9*alone
}

func (m *Cost) direct(c *Candidate) {
	n, sec := float64(m.N), &c.Seconds
	precision, potrf, gemm, dense, entry := direct.Float64, m.Potrf64, m.Gemm64, m.Dense[1], 8.0
	if c.Storage == gram.Float32 {
		precision, potrf, gemm, dense, entry = direct.Float32Refined, m.Potrf32, m.Gemm32, m.Dense[0], 4
	}
	rounds := float64(c.Iterations + 1)
	sec.Kernel = n * n / 2 * (dense + entry/m.Touch) // of the upper half nothing is touched
	sec.Factor = cholesky(n, gemm, potrf)
	sec.Solve = rounds * entry * n * n / 2 * max(at(m.Apply, m.T)/4, 2/m.Read) // L is read twice, as Z is
	sec.Residual = rounds * m.recomputed(m.Exact)
	c.Bytes = m.PointBytes + direct.Need(precision, m.N, m.T)
}

// cholesky returns the seconds of a Cholesky factorization of order n. Of tiles of order b on p threads (package accel) products take
// n³/3 flops at 1/1.12 of the rate of gemm, as measured for n = 2,048 to 7,291; what the order that was measured took beside them are factors of tiles, one after
// the other, and triangular solves with these: pnb²/3 and bn²/2 flops of p threads.
func cholesky(n, gemm, potrf float64) float64 {
	const tile, slow = 384, 1.12
	p := float64(accel.Threads())
	products := func(n float64) float64 { return slow * n * n * n / 3 / gemm }
	panels := func(n float64) float64 { return n * (n + 2./3*p*tile) }
	rest := products(potrfOrder) * max(0, gemm/potrf/slow-1)
	return products(n) + rest*panels(n)/panels(potrfOrder)
}

// rounds predicts the rounds of refinement where a solve leaves a share of the residual.
func (m *model) rounds(left float64) int {
	return max(0, int(math.Ceil(math.Log(m.Tol)/math.Log(min(left, 0.5))))-1)
}

// left is what a solve leaves of a residual: iterations with float32 tiles what products with them are off (package gram),
//
//	4u·(rms(K)·√n·‖c‖₂ + ‖Kc‖₂)/‖y‖₂,  u = 2⁻²⁴,
//
// with ‖c‖₂ as the pilot estimates it and ‖Kc‖₂ ≤ ‖y‖₂, and a factor of K+λI in float32 direct.Left at most, and 4u·max k(x,x)·√n·‖c‖₂/‖y‖₂:
// of eleven data sets, n = 3,000 and two λ each, 0.01 to 0.97 of that.
func (m *model) left(c *Candidate) float64 {
	switch {
	case c.Storage == gram.Float64:
		return 0
	case c.Solver == Direct:
		return min(direct.Left(m.n, m.pilot.largest, m.Lambda), 4*0x1p-24*m.pilot.largest*math.Sqrt(float64(m.n))*m.pilot.c)
	}
	return 4 * 0x1p-24 * (m.pilot.rms*math.Sqrt(float64(m.n))*m.pilot.c + 1)
}
