package recipe

import (
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
	// S is the number of features s, 1 ≤ s ≤ n; default: n/10, from 500 to 10,000, and at most n.
	S       int          `flag:"features" symbol:"s" check:">=1" not:"sketch"`
	LambdaP float64      `flag:"lambda-p" symbol:"λ_p" check:"positive"` // default: λ
	Form    precond.Form `flag:"form" default:"auto"`                    // of M⁻¹; default: the cheapest
	// Levels are those of Algorithm 2, whose last width is s; default: features alone.
	Levels feature.Levels `flag:"sketch"`
	// Map is the distribution of the features, built-in or user-defined; default: the paper's choice for the kernel.
	Map feature.Dist
}

func (f Features) String() string {
	switch {
	case f.Map != nil:
		return f.Map.String()
	case f.Levels != nil:
		return "random features in " + f.Levels.String()
	}
	return "random features"
}

// Suits returns why a kernel has no random features.
func (Features) Suits(k kernel.Kernel) error {
	_, err := feature.For(k)
	return err
}

// Settled implements stage.Settler.
func (f Features) Settled(d stage.Defaults) (stage.Preconditioner, error) {
	if last := len(f.Levels); f.Map == nil && last > 0 {
		chain, err := feature.ChainFor(d.Kernel, f.Levels)
		if err != nil {
			return f, err
		}
		f.S, f.Map = f.Levels[last-1].Width, chain
	}
	err := settle(&f.S, &f.LambdaP, d)
	if err == nil && f.Map == nil {
		f.Map, err = feature.For(d.Kernel)
	}
	return f, err
}

// Data returns the features as text has them: without the Map that a kernel and Levels give.
func (f Features) Data(k kernel.Kernel) (stage.Preconditioner, error) {
	if f.Map == nil {
		return f, nil
	}
	levels, err := feature.LevelsOf(f.Map, k)
	if f.Map, f.Levels = nil, levels; len(levels) > 0 { // the last says S
		f.S = 0
	}
	return f, err
}

// Approximation implements stage.LowRank.
func (f Features) Approximation(k kernel.Kernel) *stage.Approximation {
	return &stage.Approximation{Source: stage.RandomFeatures{Dist: f.Map}, S: f.S, LambdaP: f.LambdaP, Form: f.Form}
}

// Make implements stage.Preconditioner.
func (f Features) Make(ctx context.Context, b stage.Bench) (pcg.Preconditioner, error) {
	return inverse(ctx, b, f)
}

const (
	featureSlow  = 1.4 // how many times its flops at the rate of a product of matrices Z takes
	featuresSlow = 2.3 // times the iterations of as many pivots
)

// Cost implements cost.Preconditioner: Z takes ns(1.4·2d/G₃₂ + 1/E + 4/T) seconds, ZᵀZ and L⁻¹
// ns(4/E + 1.7s/G₃₂) + chol(s) + 3.4·(s³/3)/G₆₄.
func (f Features) Cost(m *cost.Model, _ gram.Storage) cost.Parts {
	if last := len(f.Levels); last > 0 {
		f.S = f.Levels[last-1].Width
	}
	p := lowRankCost(m, f.S, f.LambdaP, f.Form, false)
	own, s := m.OwnRows(), float64(f.S)
	p.Features = own*s*(featureSlow*2*float64(m.D)/m.Gemm32+1/m.Exp) + m.WriteSeconds(4*own*s)
	return p
}

// Iterations implements cost.IterationPredictor.
func (f Features) Iterations(o *cost.Outlook) float64 { return featuresSlow * o.PivotIterations() }

func init() {
	stage.BuiltIn(stage.Kind{Name: "features", Zero: Features{}, Label: "random features", Order: 1,
		Variants:   []string{"", "lambda-p=10"},
		Slow:       "more --features, a larger --lambda-p",
		Indefinite: "a larger --lambda-p"})
}
