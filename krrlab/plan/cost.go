package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/direct"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/vecchia"
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

// training returns the total without the predictions.
func (s *Seconds) training() float64 { return s.Total - s.Predict }

// What a stage takes in units of the Rates, as measured on two cores (docs/benchmarks.md): how many times its flops
// at the rate of a product of matrices, bytes that are read (…Bytes), or exponentials for a number of its loops
// (…Values).
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
	applyColumn   = 0.11
	sparseValues  = 1.7 // an entry of a sparse inverse in M⁻¹R
	sparseColumn  = 1.6
	featureSlow   = 1.4   // Z
	gramSlow      = 1.7   // ZᵀZ in float32,
	gramValues    = 4     // and an entry of Z
	nystromSlow   = 1.3   // the factor of landmarks,
	pivotsSlow    = 4.5   // of random pivots,
	factorValues  = 31.6  // and an entry of it
	inverseSlow   = 3.4   // the inverse of the factor of ZᵀZ
	scanValues    = 40    // an entry that is taken for a neighbor on the way, beside reading K
	amongSlow     = 2     // K and F among neighbors, k²(d+r)
	rowSlow       = 5.4   // Cholesky factors of these, k³
	rowFactor     = 60    // a row of H, kr
	rowFlops      = 2.5e6 // and each row of a sparse inverse
	gatherBytes   = 8     // an entry of F that a row looks up, of its neighbors and those they are chosen from
	wider         = 3     // times as many neighbors are found beside a factor as are taken
	vectorPasses  = 80    // bytes of n×t blocks an iteration passes over, for each of their entries
	blockSlow     = 2     // block operations of many columns; those of t columns take 2+20/t times as long as in dgemm
	blockThin     = 20
	extraColumns  = 1.1 // columns of K that RPCholesky forms for one it keeps
)

// Cost predicts, by counts and the rates of a machine alone, what each part of a way to solve a problem takes: n points
// in R^d, t right-hand sides, on P ranks. It holds no data and measures nothing.
type Cost struct {
	Rates
	Entries
	N, D, T    int
	Ranks      int          // P, that share the work at these rates each; 0 means 1
	Cores      int          // of a rank; 0: the threads of this process
	Tests      int          // points to predict
	PointBytes int64        // of X; 0 means 8nd
	Form       precond.Form // of M⁻¹
	Rounds     int          // of true residuals with K recomputed that iterations take; 0: of 288 rows of it
	Looked     bool         // K's error is known
	// K is how K is kept: of what is left out no entry is formed, read or held. nil: all are kept.
	K *gram.Choice
}

// Entries are the seconds that all threads take for an entry of K. 0: 1.4·2d/G₃₂ + 1/exp, 0.63·2d/G₃₂ + 1/exp of points
// in bytes, and 1.4·2d/G₆₄ + 1/exp.
type Entries struct {
	Stored float64 `json:"entry_seconds"`       // as it is stored
	Exact  float64 `json:"exact_entry_seconds"` // as landmarks and true residuals want it
	// Spread is how many times as long as the quickest timing of them, which counts, the slowest took; 0: not timed.
	Spread float64 `json:"entry_seconds_spread,omitempty"`
}

// mostSpread is up to which Spread timings agree.
const mostSpread = 1.5

// spreadText says that timings disagree; "" if they do not.
func (e *Entries) spreadText() string {
	if e.Spread <= mostSpread {
		return ""
	}
	return fmt.Sprintf("; the slowest of %d timings of K took %.3g times the quickest: the machine is busy, and the "+
		"prediction is of an idle one", timings, e.Spread)
}

// Of sets the seconds and bytes of a candidate of which method, rank, solver, storage and iterations are known. Of rank
// s, k neighbors, ε seconds an entry of K as it is stored and exact, G the rates of products of matrices, B that of
// reading, T that of the first writing and E that of exponentials
//
//	K           n²/2·ε + bytes/T                 Z          ns(1.4·2d/G₃₂ + 1/E + 4/T)
//	landmarks   ns(ε_exact + 31.6/E + 4/T + 4.5s/G₆₄)  ZᵀZ, L⁻¹   ns(4/E + 1.7s/G₃₂) + chol(s) + 3.4·(s³/3)/G₆₄
//	sparse inverse of s pivots  product + 40nk'(1+ln(n/k'))/E + n(2k²(d+s) + 5.4k³ + 60ks + 2.5·10⁶)/G₆₄, k' = k, 3k
//	                beside pivots, 8ns(k+k')/B, and 128n(ε_exact + 2s/G₆₄) for its rule
//	iteration   product(t) + apply(t) + sparse(t) + 80nt/B, with block operations (2+20/t)·BlockFlops/G₆₄
//	residual    n²/2·ε_exact for each round, or 288 rows of it
//	direct      n²/2·ε + bytes/T, chol(n), two readings of L and a residual for each round
//	test        n·n_test·(ε + 2t/G₃₂)
//
// and 1.5·10⁸/E for K where its error is not known. On P ranks K, Z, products with them, the landmarks' factor and G
// take 1/P of that; of more than 2,048 features the factor of ZᵀZ+λ_pI too, but for panels one after the other; K among
// landmarks and vectors are each rank's own. What collectives take is added to their stages.
func (m Cost) Of(c *Candidate) {
	m.Ranks = max(m.Ranks, 1)
	m.entry(c)
	n, sec := float64(m.N), &c.Seconds
	*sec = Seconds{Predict: n * float64(m.Tests) / float64(m.Ranks) * (m.Stored + 2*float64(m.T)/m.Gemm32)}
	c.Bytes = m.Memory(c).Most
	if c.Solver == Direct {
		m.direct(c)
	} else {
		if c.Precond != None {
			m.build(c)
		}
		product, iteration := m.iteration(c)
		if c.Storage != gram.Recompute {
			sec.Kernel = m.entries()*m.Stored + m.touch(float64(m.kernelBytes(c.Storage)))
		}
		if !m.Looked {
			sec.Kernel += lookValues / m.Exp
		}
		sec.Solve = float64(c.Iterations)*iteration + product
		if sec.Residual = float64(m.Rounds) * m.recomputed(m.Exact); m.Rounds == 0 {
			sec.Residual = bound.RowsChecked * n / float64(m.Ranks) * m.Exact
		}
	}
	if m.Ranks > 1 && c.Solver != Direct {
		v := m.Traffic(c)
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
func (m *Cost) entry(c *Candidate) {
	slow := tileSlow
	if m.PointBytes == int64(m.N)*int64(m.D) {
		slow = tileBytes
	}
	if m.Exact == 0 {
		m.Exact = tileSlow*2*float64(m.D)/m.Gemm64 + 1/m.Exp
	}
	if m.Stored == 0 {
		if m.Stored = m.Exact; c.Storage != gram.Float64 {
			m.Stored = slow*2*float64(m.D)/m.Gemm32 + 1/m.Exp
		}
	}
}

// recomputed returns the seconds of a product with K whose tiles are formed, in entry seconds per entry, and each
// multiplied twice in cache, as those of four bytes are.
func (m *Cost) recomputed(entry float64) float64 {
	return m.entries() * (entry + 4*m.columns(productValues, productColumn))
}

// columns returns the seconds of a loop that costs values exponentials, and each more for each column.
func (m *Cost) columns(values, each float64) float64 { return (values + each*float64(m.T)) / m.Exp }

// build sets the seconds of Z or the landmarks' factor, and of what M⁻¹ is made of.
func (m *Cost) build(c *Candidate) {
	n, s, k, own := float64(m.N), float64(c.S), float64(c.Neighbors), float64(m.N)/float64(m.Ranks)
	switch c.Precond {
	case Features:
		c.Seconds.Features = own*s*(featureSlow*2*float64(m.D)/m.Gemm32+1/m.Exp) + m.touch(4*own*s)
	case Nystrom:
		c.Seconds.Features = own*s*(m.Exact+factorValues/m.Exp+nystromSlow*s/m.Gemm64) + s*s/2*m.Exact + m.touch(4*own*s)
	default:
		c.Seconds.Features = own*s*(extraColumns*m.Exact+factorValues/m.Exp+pivotsSlow*s/m.Gemm64) +
			m.touch(4*own*s)
	}
	c.Seconds.Factor = own*s*(gramValues/m.Exp+gramSlow*s/m.Gemm32) +
		m.cholesky(s, m.Gemm64, m.sharers(c)) + inverseSlow*s*s*s/3/m.Gemm64/spread(s, m.sharers(c))
	if c.Precond != Vecchia {
		return
	}
	pass, _ := m.iteration(&Candidate{Solver: CG, Precond: None, Storage: c.Storage})
	count := k
	if s > 0 {
		count *= wider
	}
	// in random order n·count·(1+ln(n/count)) entries are among the count largest so far of their rows
	c.Seconds.Factor += pass + vecchia.RuleRows*n*(m.Exact+2*s/m.Gemm64) +
		n*count*(1+math.Log(max(1, n/max(1, count))))*scanValues/m.Exp +
		own*(amongSlow*k*k*(float64(m.D)+s)+rowSlow*k*k*k+rowFactor*k*s+rowFlops)/m.Gemm64 +
		own*(k+count)*s*gatherBytes/m.Read
}

// iteration returns the seconds of a product with a rank's part of K and of an iteration.
func (m *Cost) iteration(c *Candidate) (product, all float64) {
	n, t, s := float64(m.N), float64(m.T), float64(c.S)
	bytes, loops := float64(m.kernelBytes(c.Storage)), m.columns(productValues, productColumn)
	switch {
	case c.Storage == gram.Recompute:
		product = m.recomputed(m.Stored)
	case m.sparse(c.Storage):
		product = bytes * (loops + sparseProduct/m.Exp)
	case c.Storage == gram.Float64:
		product = bytes * (productBytes/m.Read + loops/2)
	default:
		product = bytes * (productBytes/m.Read + loops)
	}
	all = product + vectorPasses*n*t/m.Read
	if c.Solver == BlockPCG {
		all += (blockSlow + blockThin/t) * pcg.BlockFlops(m.N, m.T, c.Precond != None) / m.Gemm64
	}
	if s > 0 {
		all += s * max(applyBytes/m.Read, m.columns(applyValues, applyColumn)) *
			(n/float64(max(m.Ranks, 1)) + s/float64(m.sharers(c)))
	}
	if c.Precond == Vecchia {
		all += n * float64(c.Neighbors+1) * m.columns(sparseValues, sparseColumn)
	}
	return product, all
}

// sharers returns how many ranks share the factor of ZᵀZ+λ_pI.
func (m *Cost) sharers(c *Candidate) int {
	return precond.Sharers(m.Form, m.N, c.S, max(m.T, 1), max(m.Ranks, 1))
}

// entries returns how many entries of K a rank forms.
func (m *Cost) entries() float64 {
	share := 1.0
	if m.K != nil {
		share = m.K.Formed()
	}
	return share * float64(m.N) * float64(m.N) / 2 / float64(max(m.Ranks, 1))
}

// sparse reports whether tiles of a storage are.
func (m *Cost) sparse(s gram.Storage) bool {
	return m.K != nil && m.K.Sparse != nil && m.K.Storage == s
}

// kernelBytes returns the bytes of K that a rank holds, and reads in a product.
func (m *Cost) kernelBytes(s gram.Storage) int64 {
	if m.sparse(s) {
		return m.K.Bytes / int64(max(m.Ranks, 1))
	}
	return gram.RankBytes(m.N, s, max(m.Ranks, 1))
}

// blockShare is the share of the iterations that block PCG needs, 1 − ⅒·log₂t: 0.84 for t = 3, 0.67 for t = 10, the
// least gain measured (package pcg).
func blockShare(t int) float64 { return max(0.3, 1-0.1*math.Log2(float64(t))) }

// BlockPays predicts, at the rates of the Reference machine, whether t right-hand sides take less time together in
// block PCG than each by itself, with K in float32 and an M of rank s: by a tenth at least, as the share of the
// iterations was measured for few columns only.
func BlockPays(n, s, t int) bool {
	m := Cost{Rates: Reference(), N: n, T: t}
	_, alone := m.iteration(&Candidate{Solver: PCG, Storage: gram.Float32, S: s})
	_, block := m.iteration(&Candidate{Solver: BlockPCG, Storage: gram.Float32, S: s})
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
func (m *Cost) direct(c *Candidate) {
	n, sec := float64(m.N), &c.Seconds
	gemm, entry, bytes := m.Gemm64, m.Exact, 8.0
	if precision(c.Storage) == direct.Float32Refined {
		gemm, entry, bytes = m.Gemm32, m.Stored, 4
	}
	rounds := float64(c.Iterations + 1)
	sec.Kernel = n*n/2*entry + m.touch(n*n/2*bytes) // of the upper half nothing is touched
	sec.Factor = m.cholesky(n, gemm, 1)
	// L is read twice, as Z is
	sec.Solve = rounds * bytes * n * n / 2 * max(m.columns(applyValues, applyColumn)/4, 2/m.Read)
	sec.Residual = rounds * m.recomputed(m.Exact)
}

// cholesky returns the seconds of a Cholesky factorization of order n that ranks share: n³/3 flops at 1/1.12 of the
// rate of products, and beside them, which ranks wait for, 1.5 times as much at n = 1,024 on two threads, ∝ n², for
// factors of tiles, one after the other, and triangular solves with these (package accel), as measured for n = 1,024 to
// 5,000.
func (m *Cost) cholesky(n, gemm float64, ranks int) float64 {
	alone := 256 * float64(cmp.Or(m.Cores, accel.Threads()))
	return 1.12 / 3 / gemm * n * (n*n/spread(n, ranks) + 1000*(n+alone))
}

// spread returns how many ranks work on a factor of order n that so many share: each has a block column at least.
func spread(n float64, ranks int) float64 {
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
	Forming, Solving, Most int64
}

// Memory returns what a rank holds of a candidate of which method, rank, solver and storage are known.
func (m Cost) Memory(c *Candidate) Memory {
	n, s, k := int64(m.N), int64(c.S), int64(c.Neighbors)
	v := Memory{Points: cmp.Or(m.PointBytes, 8*n*int64(m.D))}
	if c.Solver == Direct {
		v.Kernel = direct.Need(precision(c.Storage), m.N, m.T)
		v.Most = v.Points + v.Kernel
		return v
	}
	v.Kernel, v.Vectors = m.kernelBytes(c.Storage), 80*n*int64(m.T)
	var forming int64
	v.Factor, forming = precond.FactorBytes(c.S, m.sharers(c))
	own := int64(slices.Max(comm.Counts(m.N, precond.RankRows, max(m.Ranks, 1), 1)))
	v.Features = 4 * s * own
	if c.Precond == Nystrom { // L, and rows of C
		v.Columns = 8*s*s + 2048*s*int64(accel.Threads())
	} else if c.Precond != Features && s > 0 {
		// what is lost of F in float32, a block of columns, and rows at proposals
		b := min(max(10, s/10), 200, s)
		v.Columns = (4*s+8*b+32)*own + 8*b*(3*s+2*b) + 9*n + 2048*min(s, 512)*int64(accel.Threads())
	}
	if c.Precond == Vecchia { // 4ns: F of other ranks; 24nk: the lists that neighbors are chosen of
		v.Columns = v.Kernel + max(v.Columns, 4*s*(n-own)+24*n*k)
		v.Features = 2*v.Features + 16*n*k
	}
	held := v.Points + v.Features
	v.Solving = held + v.Kernel + v.Factor + v.Vectors
	v.Forming = held + max(forming, v.Columns)
	v.Most = max(v.Forming, v.Solving)
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
