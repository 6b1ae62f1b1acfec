package recipe

import (
	"cmp"
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Nystrom is M = FFᵀ+λ_pI with the Nyström approximation FFᵀ of K from S landmarks, drawn uniformly or given. Zero
// values mean the defaults, those of Features.
type Nystrom struct {
	S       int          `flag:"features" symbol:"s" check:">=1"` // rank, 1 ≤ s ≤ n
	LambdaP float64      `flag:"lambda-p" symbol:"λ_p" check:"positive"`
	Form    precond.Form `flag:"form" default:"auto"`
	// Spectral takes λ_p + σ_s² for λ_p, σ_s² being the least eigenvalue of FᵀF, and as much from the eigenvalues of
	// FFᵀ, which leaves M as it is in the range of F (precond.Spectral).
	Spectral bool `flag:"spectral"`
	// Landmarks are rows of the training points, from 0, all different: the first S of them, by default all.
	Landmarks []int `flag:"landmarks" check:">=0"`
}

func (p Nystrom) String() string { return p.Approximation(nil).String() }

// Settled implements stage.Settler.
func (p Nystrom) Settled(d stage.Defaults) (stage.Preconditioner, error) {
	p.S = cmp.Or(p.S, len(p.Landmarks))
	err := settle(&p.S, &p.LambdaP, d)
	return p, err
}

// Approximation implements stage.LowRank.
func (p Nystrom) Approximation(kernel.Kernel) *stage.Approximation {
	return &stage.Approximation{Source: columns{p.Landmarks}, S: p.S, LambdaP: p.LambdaP, Form: p.Form,
		Spectral: p.Spectral}
}

// columns is the source of a Nyström factor: of these landmarks, the first s of them; nil: drawn.
type columns struct{ at []int }

func (c columns) String() string {
	if len(c.at) > 0 {
		return "given landmarks"
	}
	return "Nyström landmarks"
}

func (c columns) Draw(ctx context.Context, b stage.Bench, s int) (*stage.Drawn, error) {
	if len(c.at) > 0 && s > len(c.at) {
		return nil, fmt.Errorf("krrlab: %d of %d landmarks: want at most as many as are given", s, len(c.at))
	}
	return landmarks(func(ctx context.Context, k *gram.Matrix, s int, g rng.Stream, o *lowrank.Options) (*lowrank.Factor,
		error) {
		if len(c.at) > 0 {
			return lowrank.NystromAt(ctx, k, c.at[:s], o)
		}
		return lowrank.Nystrom(ctx, k, s, g, o)
	}).draw(ctx, b, s)
}

// Make implements stage.Preconditioner.
func (p Nystrom) Make(ctx context.Context, b stage.Bench) (pcg.Preconditioner, error) {
	return inverse(ctx, b, p)
}

// nystromSlow is how many times its flops at the rate of a product of matrices the factor takes.
const nystromSlow = 1.3

// Cost implements cost.Preconditioner.
func (p Nystrom) Cost(m *cost.Model, _ gram.Storage) cost.Parts {
	parts := lowRankCost(m, p.S, p.LambdaP, p.Form, true)
	s, own, order := float64(p.S), m.OwnRows(), int64(p.S)
	parts.Features = own*s*(m.ExactEntrySeconds+factorValues/m.Exp+nystromSlow*s/m.Gemm64) + s*s/2*m.ExactEntrySeconds +
		m.WriteSeconds(4*own*s)
	parts.Bytes.Columns = 8*order*order + 2048*order*int64(accel.Threads()) // L, and rows of C
	if m.Ranks > 1 {
		r := m.Group()
		for range m.Ranks {
			parts.Traffic.Features.Add(r.Broadcast(8*s, 0), 1)
		}
		parts.Traffic.Features.Bytes = int64(8 * s)
	}
	return parts
}

// Iterations implements cost.IterationPredictor.
func (Nystrom) Iterations(o *cost.Outlook) float64 { return o.PivotIterations() }

func init() {
	stage.BuiltIn(stage.Kind{Name: "nystrom", Zero: Nystrom{}, Title: "Nyström landmarks", Label: "Nyström",
		Variants:   []string{"", "lambda-p=10", "spectral=true"},
		Slow:       "more --features, a larger --lambda-p",
		Indefinite: "a larger --lambda-p"})
}
