package plan

import (
	"math"

	"github.com/krrlab/lab/krrlab/direct"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
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

// add sets Total.
func (s *Seconds) add() {
	s.Total = s.Kernel + s.Features + s.Factor + s.Solve + s.Residual + s.Predict
}

// training returns the total without the predictions.
func (s *Seconds) training() float64 { return s.Total - s.Predict }

// How much longer a stage takes than its flops at the rate of a product of matrices, its values at that of
// their loop, or its entries at that of a tile, as measured on two cores.
const (
	featureSlow  = 1.4 // Z
	gramSlow     = 1.7 // ZᵀZ in float32
	updateSlow   = 1.4 // the factor of landmarks
	inverseSlow  = 2   // of the factor of ZᵀZ, beside the Cholesky factorization's
	vectorPasses = 80  // bytes of n×t blocks an iteration passes over, for each of their entries
	blockSlow    = 2   // block operations of many columns; those of t columns take 2+20/t times as long as in dgemm
	blockThin    = 20
	extraColumns = 1.1 // columns of K that RPCholesky forms for one it keeps
	rowsChecked  = 288 // rows of K in float64, where residuals are taken with K as stored
	sampledRows  = 160 // rows of K looked at to choose its storage
)

// model predicts seconds and bytes.
type model struct {
	*Task
	rates *Rates
	pilot *Pilot
	d     int

	failed map[*Candidate]string // whose pilot failed, and how
}

// cost fills in the seconds and bytes of a candidate of which method, rank, solver, storage and iterations are known:
// with n points, rank s, t right-hand sides, ε₃₂ and ε₆₄ seconds an entry of K as measured, G the rates of products
// of matrices, P of Cholesky factorizations, B of reading and W of touching memory,
//
//	K           n²/2·ε + bytes/W                     Z          1.4·2nds/G₃₂ + ns/cos + 4ns/W
//	landmarks   ns·ε₆₄ + 1.4·ns²/G₆₄ + 8ns/W         ZᵀZ, L⁻¹   1.7·ns²/G₃₂ + 3·(s³/3)/P₆₄
//	iteration   bytes·product(t) + ns·apply(t) + 80nt/B, with block operations 8·16nt²/G₆₄
//	residual    n²/2·ε₆₄ where K is recomputed for it, else 288 rows of it
//	direct      n²/2·ε₆₄ + bytes/W, n³/3/P, a solve and a residual for each round
//	test        n·n_test·ε + 2n·n_test·t/G₃₂
func (m *model) cost(c *Candidate) {
	n, t, s := float64(m.n), float64(m.t), float64(c.S)
	r, p := m.rates, m.pilot
	sec := &c.Seconds
	*sec = Seconds{}
	tests := float64(m.Tests)
	sec.Predict = n*tests*p.Entry + 2*n*tests*t/r.Gemm32
	if c.Solver == Direct {
		m.direct(c)
		sec.add()
		return
	}
	kBytes := float64(gram.RankBytes(m.n, c.Storage, 1))
	product := kBytes * at(r.Product, m.t)
	sec.Kernel = n*n/2*p.Entry + kBytes/r.Touch + sampledRows*n*p.Exact
	switch c.Storage {
	case gram.Recompute:
		sec.Kernel, product = sampledRows*n*p.Exact, n*n/2*p.Entry+2*n*n*t/r.Gemm64
	case gram.Float64:
		product = kBytes / 2 * max(at(r.Product, m.t), 2*at(r.Product, 1))
	}
	iteration := product + vectorPasses*n*t/r.Read
	if c.Solver == BlockPCG {
		iteration += (blockSlow + blockThin/t) * pcg.BlockFlops(m.n, m.t, c.Precond != None) / r.Gemm64
	}
	switch c.Precond {
	case None:
	case Features:
		sec.Features = featureSlow*2*n*s*float64(m.d)/r.Gemm32 + n*s/r.Cos + 4*n*s/r.Touch
	default:
		columns := s
		if c.Precond == RPCholesky {
			columns *= extraColumns
		}
		sec.Features = n*columns*p.Exact + updateSlow*n*s*s/r.Gemm64 + 12*n*s/r.Touch
	}
	if s > 0 {
		sec.Factor = gramSlow*n*s*s/r.Gemm32 + (1+inverseSlow)*s*s*s/3/r.Potrf64
		iteration += n * s * at(r.Apply, m.t) * (1 + s/n)
	}
	sec.Solve = float64(c.Iterations)*iteration + product
	if m.exactResidual() {
		sec.Residual = n * n / 2 * p.Exact
	} else {
		sec.Residual = rowsChecked * n * p.Exact
	}
	c.Bytes = Of(Problem{N: m.n, D: m.d, T: m.t, PointBytes: m.PointBytes, Storage: c.Storage, S: c.S, Landmarks: c.Precond == Nystrom || c.Precond == RPCholesky}, 1).Most
	sec.add()
}

// exactResidual reports whether the residual is taken with K recomputed.
func (m *model) exactResidual() bool { return float64(m.n)*float64(m.n)*float64(m.d) <= m.ExactWork }

func (m *model) direct(c *Candidate) {
	n, t := float64(m.n), float64(m.t)
	r, p, sec := m.rates, m.pilot, &c.Seconds
	precision, potrf, entry := direct.Float64, r.Potrf64, 8.0
	if c.Storage == gram.Float32 {
		precision, potrf, entry = direct.Float32Refined, r.Potrf32, 4
	}
	rounds := float64(c.Iterations + 1)
	sec.Kernel = n*n/2*p.Exact + entry*n*n/r.Touch
	sec.Factor = n * n * n / 3 / potrf
	sec.Solve = rounds * (entry*n*n/r.Read + 2*n*n*t/r.Gemm64)
	sec.Residual = rounds * n * n / 2 * p.Exact
	c.Bytes = m.PointBytes + direct.Need(precision, m.n, m.t)
}

// rounds predicts the rounds of refinement: a factor of K+λI in arithmetic of unit u leaves some share κu of the
// residual, κ ≤ 1+n·max k/λ.
func (m *model) rounds(storage gram.Storage) int {
	if storage != gram.Float32 {
		return 0
	}
	u, kappa := 0x1p-24, 1+float64(m.n)*m.pilot.largest()/m.Lambda
	left := min(math.Sqrt(kappa)*u*math.Sqrt(float64(m.n)), 0.5)
	return max(0, int(math.Ceil(math.Log(m.Tol)/math.Log(left)))-1)
}
