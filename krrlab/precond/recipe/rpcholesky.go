package recipe

import (
	"cmp"
	"context"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// RPCholesky is M = FFᵀ+λ_pI with FFᵀ ≈ K of rank S by randomly pivoted Cholesky. Zero values mean the defaults, which
// are those of Features and Nystrom.
type RPCholesky struct {
	S        int          `flag:"features" symbol:"s" check:">=1"` // rank, 1 ≤ s ≤ n
	LambdaP  float64      `flag:"lambda-p" symbol:"λ_p" check:"positive"`
	Form     precond.Form `flag:"form" default:"auto"`
	Spectral bool         `flag:"spectral"` // see Nystrom.Spectral
	// Residual γ ends the factor before rank S, after the first block of columns with which tr(K−FFᵀ) is at most γ
	// times the rank r, up to n·2⁻²⁰·max k(x, x) (lowrank.Options.StopResidual). The mean of the r largest eigenvalues
	// of K−FFᵀ is then at most γ + n·2⁻²⁰·max k(x, x)/r. Default: rank S.
	Residual float64 `flag:"residual" symbol:"γ" check:"positive"`
}

// String describes M in a few words.
func (r RPCholesky) String() string { return r.Approximation(nil).String() }

// WithDefaults implements stage.Defaulter: it sets S and LambdaP.
func (r RPCholesky) WithDefaults(defaults stage.Defaults) (stage.Preconditioner, error) {
	err := setDefaults(&r.S, &r.LambdaP, defaults)
	return r, err
}

// Approximation implements stage.LowRank.
func (r RPCholesky) Approximation(kernel.Kernel) *stage.Approximation {
	return &stage.Approximation{FeatureSource: pivotSource{stopResidual: r.Residual}, S: r.S, LambdaP: r.LambdaP,
		Form: r.Form, Spectral: r.Spectral}
}

// Make implements stage.Preconditioner.
func (r RPCholesky) Make(ctx context.Context, bench stage.Bench) (pcg.Preconditioner, error) {
	return newWoodbury(ctx, bench, r)
}

// Cost implements cost.Preconditioner; for the seconds see addPivotCost and Features.Cost.
func (r RPCholesky) Cost(m *cost.Model, _ gram.Storage) cost.PrecondCost {
	predicted := landmarkCost(m, r.S, r.LambdaP, r.Form)
	addPivotCost(m, r.S, &predicted)
	return predicted
}

// Iterations implements cost.IterationPredictor.
func (r RPCholesky) Iterations(model *cost.IterationModel) float64 {
	return model.PivotIterations(cmp.Or(r.S, model.Rank()))
}

// Propose implements cost.Proposer. It proposes the fastest of the ranks of cost.IterationModel.RankCandidates. Unless
// the caller requested a rank, the factor ends where its residual is λ.
func (RPCholesky) Propose(model *cost.IterationModel) []stage.Preconditioner {
	var proposals []stage.Preconditioner
	for _, rank := range model.RankCandidates() {
		proposal := RPCholesky{S: rank, LambdaP: model.PivotRidge(rank)}
		if model.S == 0 {
			proposal.Residual = model.Lambda
		}
		proposals = append(proposals, proposal)
	}
	return []stage.Preconditioner{model.Fastest(proposals...)}
}

func init() {
	stage.RegisterBuiltIn(stage.Kind{Name: "rpcholesky", Zero: RPCholesky{}, Title: "randomly pivoted Cholesky",
		Label: "RPCholesky", Order: 2, Variants: []string{"", "lambda-p=10", "spectral=true"},
		AdviceIfSlow: lowRankAdviceIfSlow, AdviceIfIndefinite: lowRankAdviceIfIndefinite})
}
