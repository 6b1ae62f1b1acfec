package recipe

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// landmarks makes a factor F of K from some of its columns.
type landmarks func(ctx context.Context, k *gram.Matrix, s int, g rng.Stream, o *lowrank.Options) (*lowrank.Factor, error)

// draw makes F. Its columns of K are formed again in float64, however K is stored, by differences where inner products
// would cancel beyond what a factorization of this rank rounds: what the factor claims as certain refers to K itself.
func (make landmarks) draw(ctx context.Context, b stage.Bench, s int) (*stage.Drawn, error) {
	p := b.Problem()
	trace := mat.Trace(mat.NewDiagDense(p.N, kernel.Diag(p.Kernel, p.X)))
	k, err := gram.NewExact(p.Kernel, p.X, p.Lambda, max(p.Lambda/1000, 0x1p-52*float64(s)*trace), p.Comm)
	if err != nil {
		return nil, err
	}
	f, err := make(ctx, k, s, rng.New(p.Seed).Sub("landmarks", 0),
		&lowrank.Options{Progress: stage.Progress(ctx, b.Tell, stage.Features), Comm: p.Comm})
	if err != nil {
		return nil, err
	}
	return &stage.Drawn{Z: f.F, Factor: f}, nil
}

// pivots is the source of a factor by randomly pivoted Cholesky.
type pivots struct{}

func (pivots) String() string { return "randomly pivoted Cholesky" }

func (pivots) Draw(ctx context.Context, b stage.Bench, s int) (*stage.Drawn, error) {
	return landmarks(func(ctx context.Context, k *gram.Matrix, s int, g rng.Stream, o *lowrank.Options) (*lowrank.Factor,
		error) {
		return lowrank.RPCholesky(ctx, k, s, g, o)
	}).draw(ctx, b, s)
}

// What landmarks take, in units of the rates: how many times their flops, and exponentials for an entry.
const (
	pivotsSlow   = 4.5
	factorValues = 31.6
	extraColumns = 1.1 // columns of K that RPCholesky forms for one it keeps
)

// pivotCost adds to p what the factor of s random pivots takes: ns(1.1·ε_exact + 31.6/E + 4/T + 4.5s/G₆₄) seconds.
func pivotCost(m *cost.Model, s int, p *cost.Parts) {
	if s == 0 {
		return
	}
	order, own, rows := float64(s), m.OwnRows(), mostRows(m)
	p.Features = own*order*(extraColumns*m.ExactEntrySeconds+factorValues/m.Exp+pivotsSlow*order/m.Gemm64) +
		m.WriteSeconds(4*own*order)
	// what is lost of F in float32, a block of columns, and rows at proposals
	b := int64(pivotBlock(s))
	p.Bytes.Columns = (4*int64(s)+8*b+32)*rows + 8*b*(3*int64(s)+2*b) + 9*int64(m.N) +
		2048*min(int64(s), 512)*int64(accel.Threads())
	if m.Ranks < 2 {
		return
	}
	r := m.Group()
	block := float64(pivotBlock(s)) // proposals, rows of F at them, and sums of what is left
	blocks := math.Ceil(extraColumns * order / block)
	to := &p.Traffic.Features
	to.Add(cost.Group{P: r.P, OwnRows: block / r.P, Rows: block}.Gather(order/2+1), blocks)
	to.Add(r.Reduce(block), blocks)
	to.Add(r.Gather(1./precond.RankRows), blocks)
}

// pivotBlock returns how many pivots are proposed together.
func pivotBlock(s int) int { return min(max(10, s/10), 200, s) }
