package recipe

import (
	"cmp"
	"context"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Features is M = ZZᵀ+λ_pI with random features Z, the paper's preconditioner. Zero values mean the defaults.
type Features struct {
	// S is the number of features s, 1 ≤ s ≤ n. Default: n/10, but at least 500 and at most 10,000 and n.
	S       int          `flag:"features" symbol:"s" check:">=1" not:"sketch"`
	LambdaP float64      `flag:"lambda-p" symbol:"λ_p" check:"positive"` // default: λ
	Form    precond.Form `flag:"form" default:"auto"`                    // form of M⁻¹; default: the cheapest
	// Levels are the sketching levels of Algorithm 2; the width of the last one is s. Default: no sketching.
	Levels feature.Levels `flag:"sketch"`
	// Map is the distribution of the features, built-in or user-defined; default: the paper's choice for the kernel.
	Map feature.Dist
}

// String describes M in a few words.
func (f Features) String() string {
	switch {
	case f.Map != nil:
		return f.Map.String()
	case f.Levels != nil:
		return "random features in " + f.Levels.String()
	}
	return "random features"
}

// CheckKernel returns an error if the kernel has no random features.
func (Features) CheckKernel(k kernel.Kernel) error {
	_, err := feature.For(k)
	return err
}

// WithDefaults implements stage.Defaulter: it sets S, LambdaP and Map.
func (f Features) WithDefaults(defaults stage.Defaults) (stage.Preconditioner, error) {
	if levels := len(f.Levels); f.Map == nil && levels > 0 {
		chain, err := feature.ChainFor(defaults.Kernel, f.Levels)
		if err != nil {
			return f, err
		}
		f.S, f.Map = f.Levels[levels-1].Width, chain
	}
	err := setDefaults(&f.S, &f.LambdaP, defaults)
	if err == nil && f.Map == nil {
		f.Map, err = feature.For(defaults.Kernel)
	}
	return f, err
}

// Data returns the options that are written as text. A Map that ChainFor or For of package feature returns for the
// kernel is replaced by its Levels, from which it can be computed again. Data returns an error for any other Map.
func (f Features) Data(k kernel.Kernel) (stage.Preconditioner, error) {
	if f.Map == nil {
		return f, nil
	}
	levels, err := feature.LevelsOf(f.Map, k)
	if f.Map, f.Levels = nil, levels; len(levels) > 0 { // the last level determines S
		f.S = 0
	}
	return f, err
}

// Approximation implements stage.LowRank.
func (f Features) Approximation(k kernel.Kernel) *stage.Approximation {
	return &stage.Approximation{FeatureSource: stage.RandomFeatures{Dist: f.Map}, S: f.S, LambdaP: f.LambdaP,
		Form: f.Form}
}

// Make implements stage.Preconditioner.
func (f Features) Make(ctx context.Context, bench stage.Bench) (pcg.Preconditioner, error) {
	return newWoodbury(ctx, bench, f)
}

// Larger values of these constants, which were fitted to measurements, predict more seconds and more iterations.
const (
	featureSlowdown        = 1.4 // seconds of the phases WX, in units of 2nsd flops of a matrix product
	featureIterationFactor = 2.3 // iterations, in units of the iterations with as many pivots of RPCholesky
)

// Cost implements cost.Preconditioner. It predicts ns(1.4·2d/G₃₂ + 1/E + 4/T) seconds for Z, and ns(4/E + 1.7s/G₃₂) +
// chol(s) + 3.4·(s³/3)/G₆₄ for ZᵀZ and L⁻¹. G₃₂ and G₆₄ are the rates of products in float32 and float64, E that of
// exponentials, and T that of the first write to memory (cost.Model); chol(s) is the time of a Cholesky factorization.
func (f Features) Cost(m *cost.Model, _ gram.Storage) cost.PrecondCost {
	if levels := len(f.Levels); levels > 0 {
		f.S = f.Levels[levels-1].Width
	}
	predicted := lowRankCost(m, f.S, f.LambdaP, f.Form)
	rows, s := m.OwnRows(), float64(f.S)
	predicted.Features = rows*s*(featureSlowdown*2*float64(m.D)/m.Gemm32+1/m.Exp) + m.WriteSeconds(4*rows*s)
	return predicted
}

// Iterations implements cost.IterationPredictor.
func (f Features) Iterations(model *cost.IterationModel) float64 {
	return featureIterationFactor * model.PivotIterations(cmp.Or(f.S, model.Rank()))
}

func init() {
	stage.RegisterBuiltIn(stage.Kind{Name: "features", Zero: Features{}, Label: "random features", Order: 1,
		Variants:     []string{"", "lambda-p=10"},
		AdviceIfSlow: lowRankAdviceIfSlow, AdviceIfIndefinite: lowRankAdviceIfIndefinite})
}
