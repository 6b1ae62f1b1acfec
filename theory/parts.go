package theory

import (
	"context"
	"math"
	"reflect"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/adapt"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/sketch"
	"github.com/krrlab/lab/krrlab/tune"
)

// Parts are the pieces of the project that the claims are checked on. A nil field means the
// project's own; another is for trying what a check makes of a piece that is broken, or of a new
// one.
type Parts struct {
	Fourier      func(k kernel.Kernel) feature.Dist
	TensorSketch func(k kernel.Polynomial) feature.Dist
	SRHT         sketch.Dist
	CountSketch  sketch.Dist
	Gaussian     sketch.Dist
	// Precond returns M⁻¹ for M = ZZᵀ+λ_pI, where the system is K+λI.
	Precond func(ctx context.Context, z *points.Dense32, lambda, lambdaP float64, form precond.Form) (Preconditioner, error)
	// Kernel returns K, n×n, as it is stored.
	Kernel func(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, storage gram.Storage) (*mat.Dense, error)
	Solve  func(ctx context.Context, a pcg.Operator, m pcg.Preconditioner, b *mat.Dense, o *pcg.Options) (*pcg.Result, error)
	// LowRank are the factors K̂ = FFᵀ of some columns of K.
	LowRank []lowRank
	// RidgeBound is the bound of κ for λ, λ_p and η, TestBound are the ends of the spectrum of M⁻¹A
	// that (θ, α, γ) guarantee, and Iterations is the count for κ and ε.
	RidgeBound func(lambda, lambdaP, eta float64) float64
	TestBound  func(c adapt.Test) (low, high float64)
	Iterations func(kappa, eps float64) int
	// PredictionBound bounds |f(x)−f̃(x)|, given k(x, x), ‖r‖₂ and λ.
	PredictionBound func(diag, residual, lambda float64) float64
	// LeaveOneOut returns the residuals of the points left out, given c and diag A⁻¹.
	LeaveOneOut func(c, diag []float64) []float64
	Search      func(ctx context.Context, p adapt.Problem, o *adapt.Options, g rng.Stream) (*adapt.Result, error)
}

// lowRank makes a factor K̂ = FFᵀ of rank columns of K. lowrank.Nystrom is one.
type lowRank = func(ctx context.Context, src lowrank.Source, rank int, g rng.Stream, o *lowrank.Options) (*lowrank.Factor, error)

// Preconditioner is M⁻¹ and s_{λ_p}(ZZᵀ). *precond.Woodbury is one.
type Preconditioner interface {
	pcg.Preconditioner
	StatDim() float64
}

// settled returns p with the project's own for what is nil.
func (p Parts) settled() Parts {
	builtin := reflect.ValueOf(builtinParts())
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			v.Field(i).Set(builtin.Field(i))
		}
	}
	return p
}

func builtinParts() Parts {
	return Parts{
		Fourier:      func(k kernel.Kernel) feature.Dist { return feature.Fourier{Kernel: k} },
		TensorSketch: func(k kernel.Polynomial) feature.Dist { return feature.TensorSketch{Kernel: k} },
		SRHT:         sketch.SRHT{},
		CountSketch:  sketch.CountSketch{},
		Gaussian:     sketch.Gaussian{},
		Precond: func(ctx context.Context, z *points.Dense32, _, lambdaP float64, form precond.Form) (Preconditioner, error) {
			return precond.New(ctx, z, lambdaP, &precond.Options{Form: form})
		},
		Kernel:     storedKernel,
		Solve:      pcg.Solve,
		RidgeBound: tune.Bound,
		LowRank:    []lowRank{lowrank.Nystrom, lowrank.RPCholesky},
		TestBound: func(c adapt.Test) (low, high float64) {
			low, _ = c.Lower()
			high, _ = c.Upper()
			return low, high
		},
		Iterations:      pcg.IterationBound,
		PredictionBound: PredictionBound,
		LeaveOneOut:     LeaveOneOut,
		Search:          adapt.Search,
	}
}

// storedKernel is K as package gram stores it.
func storedKernel(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, storage gram.Storage) (*mat.Dense, error) {
	a, err := gram.New(ctx, k, x, lambda, &gram.Options{Storage: storage, Accuracy: math.MaxFloat64})
	if err != nil {
		return nil, err
	}
	out := mat.NewDense(a.Dim(), a.Dim(), nil)
	return out, a.DenseTo(ctx, out)
}
