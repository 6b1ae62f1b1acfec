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

// Nystrom is M = FFᵀ+λ_pI with the Nyström approximation FFᵀ of K from S landmarks, which are drawn uniformly or listed
// in Landmarks. Zero values mean the defaults, which are those of Features.
type Nystrom struct {
	S       int          `flag:"features" symbol:"s" check:">=1"` // rank, 1 ≤ s ≤ n
	LambdaP float64      `flag:"lambda-p" symbol:"λ_p" check:"positive"`
	Form    precond.Form `flag:"form" default:"auto"`
	// Spectral uses λ_p + σ_s² instead of λ_p, where σ_s² is the smallest eigenvalue of FᵀF, and subtracts σ_s² from
	// the nonzero eigenvalues of FFᵀ. M is then unchanged on the range of F, and larger on its complement
	// (precond.SpectralTransform).
	Spectral bool `flag:"spectral"`
	// Landmarks lists distinct row indices of the training points, counted from 0; the first S of them are used.
	// Default of S: all landmarks in the list. Default of Landmarks: drawn uniformly.
	Landmarks []int `flag:"landmarks" check:">=0"`
}

// String describes M in a few words.
func (n Nystrom) String() string { return n.Approximation(nil).String() }

// WithDefaults implements stage.Defaulter: it sets S and LambdaP.
func (n Nystrom) WithDefaults(defaults stage.Defaults) (stage.Preconditioner, error) {
	n.S = cmp.Or(n.S, len(n.Landmarks))
	err := setDefaults(&n.S, &n.LambdaP, defaults)
	return n, err
}

// Approximation implements stage.LowRank.
func (n Nystrom) Approximation(kernel.Kernel) *stage.Approximation {
	return &stage.Approximation{FeatureSource: landmarkSource{landmarks: n.Landmarks}, S: n.S, LambdaP: n.LambdaP,
		Form:     n.Form,
		Spectral: n.Spectral}
}

// landmarkSource computes Nyström factors from the first s of the listed landmarks, or from drawn ones if the list is
// empty.
type landmarkSource struct {
	landmarks []int
	extension
}

// String says how the landmarks are chosen.
func (l landmarkSource) String() string {
	if len(l.landmarks) > 0 {
		return "given landmarks"
	}
	return "Nyström landmarks"
}

// Draw computes F of rank s.
func (l landmarkSource) Draw(ctx context.Context, bench stage.Bench, s int) (*stage.FeatureMatrix, error) {
	return factorFromColumns(ctx, bench, s, func(k lowrank.Source, g rng.Stream,
		o *lowrank.Options) (*lowrank.Factor, error) {
		switch count := len(l.landmarks); {
		case count == 0:
			return lowrank.Nystrom(ctx, k, s, g, o)
		case s > count:
			return nil, fmt.Errorf("krrlab: %d of %d landmarks: want at most as many as are given", s, count)
		}
		return lowrank.NystromAt(ctx, k, l.landmarks[:s], o)
	})
}

// Make implements stage.Preconditioner.
func (n Nystrom) Make(ctx context.Context, bench stage.Bench) (pcg.Preconditioner, error) {
	return newWoodbury(ctx, bench, n)
}

// nystromSlowdown is the cost of F: n·s² operations, in units of one flop at the rate of a matrix product.
const nystromSlowdown = 1.3

// Cost implements cost.Preconditioner. F takes ns(ε_exact + 31.6/E + 4/T + 1.3s/G₆₄) + s²/2·ε_exact seconds, with the
// symbols of addPivotCost.
func (n Nystrom) Cost(m *cost.Model, _ gram.Storage) cost.PrecondCost {
	predicted := landmarkCost(m, n.S, n.LambdaP, n.Form)
	s, rows, order := float64(n.S), m.OwnRows(), int64(n.S)
	predicted.Features = rows*s*(m.ExactEntrySeconds+factorEntryExps/m.Exp+nystromSlowdown*s/m.Gemm64) +
		s*s/2*m.ExactEntrySeconds + m.WriteSeconds(4*rows*s)
	predicted.Bytes.Features += 8 * order * order                   // L
	predicted.Bytes.Columns = 2048 * order * int64(accel.Threads()) // strips of rows of C
	if m.Ranks > 1 {
		group := m.Group()
		for range m.Ranks {
			predicted.Traffic.Features.Add(group.Broadcast(8*s, 0), 1)
		}
		predicted.Traffic.Features.Bytes = int64(8 * s)
	}
	return predicted
}

// Iterations implements cost.IterationPredictor.
func (n Nystrom) Iterations(model *cost.IterationModel) float64 {
	return model.PivotIterations(cmp.Or(n.S, model.Rank()))
}

func init() {
	stage.RegisterBuiltIn(stage.Kind{Name: "nystrom", Zero: Nystrom{}, Title: "Nyström landmarks", Label: "Nyström",
		Variants:     []string{"", "lambda-p=10", "spectral=true"},
		AdviceIfSlow: lowRankAdviceIfSlow, AdviceIfIndefinite: lowRankAdviceIfIndefinite})
}
