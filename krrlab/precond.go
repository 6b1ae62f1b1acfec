package krrlab

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// Features is M = ZZᵀ+λ_pI with random features Z, the paper's preconditioner. Zero values mean the
// defaults.
type Features struct {
	S          int          // number of features, 1 ≤ s ≤ n; default: DefaultFeatures(n)
	LambdaP    float64      // λ_p > 0; default: λ
	Map        feature.Dist // their distribution, built-in or user-defined; default: the paper's choice for the kernel
	Orthogonal bool         // orthogonal random features, where Map is nil
	Form       precond.Form // of M⁻¹; default: the cheapest
}

// Nystrom is M = FFᵀ+λ_pI with the Nyström approximation FFᵀ of K from S landmarks. Zero values mean
// the defaults, those of Features.
type Nystrom struct {
	S       int // rank, 1 ≤ s ≤ n
	LambdaP float64
	Form    precond.Form
}

// RPCholesky is M = FFᵀ+λ_pI with FFᵀ ≈ K by randomly pivoted Cholesky of rank S. Zero values mean
// the defaults, those of Features.
type RPCholesky Nystrom

// None is M = I.
type None struct{}

// Given is a matrix M that was made before, n×n.
type Given struct {
	M    pcg.Preconditioner
	Name string // for reports; default: "given"
}

// String names the features' distribution.
func (f Features) String() string {
	if f.Map == nil {
		return "random features"
	}
	return f.Map.String()
}

// Make implements Preconditioner.
func (f Features) Make(ctx context.Context, l *Lab, rep int) (pcg.Preconditioner, error) {
	return l.woodbury(ctx, f, rep)
}

func (f Features) name() string              { return "features" }
func (f Features) size() (int, precond.Form) { return f.S, f.Form }
func (f Features) lambdaP() float64          { return f.LambdaP }
func (f Features) with(s int, lambdaP float64) approximation {
	f.S, f.LambdaP = s, lambdaP
	return f
}

func (f Features) drawn() any {
	f.LambdaP, f.Form = 0, precond.AutoForm
	return f
}

func (f Features) settled(k kernel.Kernel, n int, lambda float64) (approximation, error) {
	var err error
	if f.S, f.LambdaP, err = settledSize(f.S, f.LambdaP, n, lambda); err != nil {
		return nil, err
	}
	if f.Map == nil {
		f.Map, err = featuresFor(k, f.Orthogonal)
	}
	return f, err
}

func (f Features) draw(ctx context.Context, l *Lab, rep int) (*factor, error) {
	lo, hi := l.featureRows()
	z, err := l.features(ctx, f, rep, lo, hi)
	return &factor{z: z}, err
}

// String returns "Nyström landmarks".
func (p Nystrom) String() string { return "Nyström landmarks" }

// Make implements Preconditioner.
func (p Nystrom) Make(ctx context.Context, l *Lab, rep int) (pcg.Preconditioner, error) {
	return l.woodbury(ctx, p, rep)
}

func (p Nystrom) name() string              { return "nystrom" }
func (p Nystrom) size() (int, precond.Form) { return p.S, p.Form }
func (p Nystrom) lambdaP() float64          { return p.LambdaP }
func (p Nystrom) with(s int, lambdaP float64) approximation {
	p.S, p.LambdaP = s, lambdaP
	return p
}

func (p Nystrom) drawn() any { return Nystrom{S: p.S} }

func (p Nystrom) settled(_ kernel.Kernel, n int, lambda float64) (approximation, error) {
	var err error
	p.S, p.LambdaP, err = settledSize(p.S, p.LambdaP, n, lambda)
	return p, err
}

func (p Nystrom) draw(ctx context.Context, l *Lab, rep int) (*factor, error) {
	return l.landmarks(ctx, lowrank.Nystrom, p.S, rep)
}

// String returns "randomly pivoted Cholesky".
func (p RPCholesky) String() string { return "randomly pivoted Cholesky" }

// Make implements Preconditioner.
func (p RPCholesky) Make(ctx context.Context, l *Lab, rep int) (pcg.Preconditioner, error) {
	return l.woodbury(ctx, p, rep)
}

func (p RPCholesky) name() string              { return "rpcholesky" }
func (p RPCholesky) size() (int, precond.Form) { return p.S, p.Form }
func (p RPCholesky) lambdaP() float64          { return p.LambdaP }
func (p RPCholesky) with(s int, lambdaP float64) approximation {
	p.S, p.LambdaP = s, lambdaP
	return p
}

func (p RPCholesky) drawn() any { return RPCholesky{S: p.S} }

func (p RPCholesky) settled(_ kernel.Kernel, n int, lambda float64) (approximation, error) {
	var err error
	p.S, p.LambdaP, err = settledSize(p.S, p.LambdaP, n, lambda)
	return p, err
}

func (p RPCholesky) draw(ctx context.Context, l *Lab, rep int) (*factor, error) {
	return l.landmarks(ctx, lowrank.RPCholesky, p.S, rep)
}

// String returns "none".
func (None) String() string { return "none" }

// Make returns nil, which is M = I.
func (None) Make(context.Context, *Lab, int) (pcg.Preconditioner, error) { return nil, nil }

// String returns the name.
func (g Given) String() string {
	if g.Name == "" {
		return "given"
	}
	return g.Name
}

// Make returns M.
func (g Given) Make(context.Context, *Lab, int) (pcg.Preconditioner, error) { return g.M, nil }

// settledSize sets the defaults of s and λ_p and checks them.
func settledSize(s int, lambdaP float64, n int, lambda float64) (int, float64, error) {
	if s == 0 {
		s = DefaultFeatures(n)
	}
	if lambdaP == 0 {
		lambdaP = lambda
	}
	if s < 1 || s > n {
		return 0, 0, fmt.Errorf("s = %d features for n = %d points: want 1 ≤ s ≤ n", s, n)
	}
	return s, lambdaP, checkPositive("λ_p", lambdaP)
}

func checkPositive(what string, v float64) error {
	if !(v > 0) || math.IsInf(v, 0) {
		return fmt.Errorf("%s = %g: want a positive number", what, v)
	}
	return nil
}

// precondName names the configured preconditioner as JSON and flags do, a user-defined one by its String.
func (l *Lab) precondName() string {
	if p := l.approximation(); p != nil {
		return p.name()
	}
	return l.cfg.Precond.String()
}

// plain reports whether M = I.
func (l *Lab) plain() bool { return l.cfg.Precond == Preconditioner(None{}) }

// features returns rows lo … hi−1 of Z number rep.
func (l *Lab) features(ctx context.Context, f Features, rep, lo, hi int) (*points.Dense32, error) {
	n, d, _ := l.Dims()
	need := 4 * int64(hi-lo) * int64(f.S)
	if l.cfg.Memory > 0 && need > l.cfg.Memory {
		return nil, fmt.Errorf("krrlab: Z of n = %d by s = %d needs %s, the limit is %s: take fewer features", n, f.S, Bytes(need), Bytes(l.cfg.Memory))
	}
	m, err := f.Map.Sample(d, f.S, rng.New(l.cfg.Seed).Sub("features", uint64(rep)))
	if err != nil {
		return nil, err
	}
	return feature.Matrix(ctx, m, l.train.X.Slice(lo, hi), l.watch("features"))
}

// landmarks returns the factor F of K ≈ FFᵀ, n×r, that a method of package lowrank makes of columns
// of K. However K is stored, the columns are formed anew in float64, by differences where inner
// products would cancel beyond what a factorization of this rank rounds: what the factor says for
// certain is said of K itself.
func (l *Lab) landmarks(ctx context.Context, method func(context.Context, lowrank.Source, int, rng.Stream, *lowrank.Options) (*lowrank.Factor, error), s, rep int) (*factor, error) {
	trace := mat.Trace(mat.NewDiagDense(l.train.Len(), kernel.Diag(l.cfg.Kernel, l.train.X)))
	k, err := gram.NewExact(l.cfg.Kernel, l.train.X, l.cfg.Lambda, max(l.cfg.Lambda/1000, 0x1p-52*float64(s)*trace), l.comm)
	if err != nil {
		return nil, err
	}
	f, err := method(ctx, k, s, rng.New(l.cfg.Seed).Sub("landmarks", uint64(rep)), &lowrank.Options{Progress: l.watch("features")})
	if err != nil {
		return nil, err
	}
	lo, hi := l.featureRows()
	return &factor{f.F.Slice(lo, hi).(*points.Dense32), f}, nil
}
