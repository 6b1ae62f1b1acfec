package krrlab

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// Lab is one problem and its stages. It holds the training data and the
// configuration, computes nothing by itself and is safe for concurrent use: every
// stage is a function of the two.
type Lab struct {
	cfg    Config // with defaults in place
	comm   comm.Comm
	asked  Config // as it was given
	train  *datasets.Dataset
	coding datasets.Coding
	y      *mat.Dense // n×t, coded targets
	// n²d up to which AutoResidual recomputes K in any case, and where it must.
	cheap, dear float64

	mu sync.Mutex
	k  *gram.Matrix // what K has formed
}

// New checks the data and the configuration and codes the targets: ±1 in one column
// for two classes, one column per class for more, the values themselves for
// regression. The points are taken as they are; scale them before (package
// datasets).
func New(train *datasets.Dataset, cfg Config) (*Lab, error) {
	if train == nil || train.X == nil {
		return nil, fmt.Errorf("krrlab: no training points: the data set is nil; check the error of what loaded it")
	}
	n := train.Len()
	if n < 2 {
		return nil, fmt.Errorf("krrlab: %d training point: want at least 2", n)
	}
	if train.Dim() < 1 {
		return nil, fmt.Errorf("krrlab: the training points have dimension 0: want at least 1 feature")
	}
	l := &Lab{train: train, asked: cfg, cheap: exactWork, dear: refineWork}
	if train.Task == datasets.Classification {
		l.coding.Labels = train.Labels
	}
	var err error
	if l.y, err = l.coding.Encode(train); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults(n, l.columns())
	if err := cfg.validate(n); err != nil {
		return nil, err
	}
	if b := cfg.Backend; b != nil {
		if err := b.check(); err != nil {
			return nil, err
		}
		if _, err := newJobConfig(l.asked); err != nil {
			return nil, err
		}
	}
	if cfg.Precond == RandomFeatures && cfg.Map == nil {
		var err error
		if cfg.Map, err = featuresFor(cfg.Kernel, cfg.Orthogonal); err != nil {
			return nil, err
		}
	}
	l.cfg, l.comm = cfg, comm.OrAlone(cfg.Comm)
	if err := cfg.Shared.bind(l); err != nil {
		return nil, err
	}
	return l, nil
}

// Config returns the configuration with its defaults in place.
func (l *Lab) Config() Config { return l.cfg }

// Dims returns the number n of training points, their dimension d and the number t
// of right-hand sides.
func (l *Lab) Dims() (n, d, t int) {
	_, t = l.y.Dims()
	return l.train.Len(), l.train.Dim(), t
}

// Targets returns the coded targets Y, n×t. It must not be changed.
func (l *Lab) Targets() *mat.Dense { return l.y }

// Features draws the map number rep (0 … Repeat-1) and returns Z, n×s, whose rows
// are φ(x_i)ᵀ, so that E[ZZᵀ] = K; on ranks, the rows of this one.
func (l *Lab) Features(ctx context.Context, rep int) (*points.Dense32, error) {
	lo, hi := l.featureRows()
	z, err := l.features(ctx, rep, lo, hi)
	return z, comm.Agree(ctx, l.comm, err)
}

// features returns rows lo … hi−1 of Z.
func (l *Lab) features(ctx context.Context, rep, lo, hi int) (*points.Dense32, error) {
	n, d, _ := l.Dims()
	need := 4 * int64(hi-lo) * int64(l.cfg.Features)
	if l.cfg.Memory > 0 && need > l.cfg.Memory {
		return nil, fmt.Errorf("krrlab: Z of n = %d by s = %d needs %s, the limit is %s: take fewer features",
			n, l.cfg.Features, Bytes(need), Bytes(l.cfg.Memory))
	}
	m, err := l.cfg.Map.Sample(d, l.cfg.Features, rng.New(l.cfg.Seed).Sub("features", uint64(rep)))
	if err != nil {
		return nil, err
	}
	return feature.Matrix(ctx, m, l.train.X.Slice(lo, hi), l.watch("features"))
}

// featureRows returns the rows of Z that are this rank's; all without ranks.
func (l *Lab) featureRows() (lo, hi int) {
	return comm.Rows(l.train.Len(), precond.RankRows, l.comm.Rank(), l.comm.Size())
}

// LowRank returns the factor F of K ≈ FFᵀ, n×r, that Nystrom or RPCholesky makes of
// columns of K, number rep (0 … Repeat-1). However a is stored, the columns are formed anew in float64,
// by differences where inner products would cancel beyond what a factorization of this rank rounds: what
// the factor says for certain is said of K itself. It panics if the configuration has neither.
func (l *Lab) LowRank(ctx context.Context, a *gram.Matrix, rep int) (*lowrank.Factor, error) {
	g := rng.New(l.cfg.Seed).Sub("landmarks", uint64(rep))
	o := &lowrank.Options{Progress: l.watch("features")}
	k := a.Exact(max(l.cfg.Lambda/1000, 0x1p-52*float64(l.cfg.Features)*a.Trace()))
	switch l.cfg.Precond {
	case Nystrom:
		return lowrank.Nystrom(ctx, k, l.cfg.Features, g, o)
	case RPCholesky:
		return lowrank.RPCholesky(ctx, k, l.cfg.Features, g, o)
	}
	panic(fmt.Sprintf("krrlab: no low-rank factor with the preconditioner %v", l.cfg.Precond))
}

// Precond returns (ZZᵀ+λ_pI)⁻¹ for features Z in the form of least predicted time; on
// ranks Z consists of the rows of this one.
func (l *Lab) Precond(ctx context.Context, z *points.Dense32) (*precond.Woodbury, error) {
	l.cfg.Monitor(Event{Stage: "factor"})
	return precond.New(ctx, z, l.cfg.LambdaP, l.precondOptions())
}

// ownRows returns the rows of F, n×r, that are this rank's; all without ranks.
func (l *Lab) ownRows(f *points.Dense32) *points.Dense32 {
	lo, hi := l.featureRows()
	return f.Slice(lo, hi).(*points.Dense32)
}

// precondOptions are the options of the preconditioner.
func (l *Lab) precondOptions() *precond.Options {
	return &precond.Options{Form: l.cfg.Form, RHS: l.columns(), StatDim: true, Fast: true, Comm: l.comm}
}

// Gram returns K+λI. Of the memory the configuration allows, held bytes are in use
// already. With E the error of K as stored, the answer C of the stored problem misses
// that of the true one by the residual EC, ‖Ec_j‖₂ ≤ ‖E‖₂‖y_j‖₂/λ, and products in float32
// miss by as much again. Where the true residual decides, ‖E‖₂ ≤ 20τλ is preferred: c_j
// lies mostly outside the leading directions, in which E is largest. (ADULT, λ = 0.01,
// τ = 1e-3, ‖E‖₂ ≈ 2.3e-4 in float32: the recurrence ended at 1.9e-4 with a true residual
// of 1.8e-3 in float32 and 1.9e-4 in float64.) What still misses τ is refined.
func (l *Lab) Gram(ctx context.Context, held int64) (*gram.Matrix, error) {
	return l.gram(ctx, held, nil)
}

// gram is Gram, with K stored and computed as it was before, if as is not nil.
func (l *Lab) gram(ctx context.Context, held int64, as *gram.Choice) (*gram.Matrix, error) {
	o := &gram.Options{Storage: l.cfg.Storage, As: as, Seed: l.cfg.Seed, Progress: l.watch("kernel"), Comm: l.comm}
	if l.exact() || l.refines() {
		o.Prefer = l.preferred()
	}
	if l.cfg.Memory > 0 {
		o.Memory = max(1, l.cfg.Memory-held)
	}
	return gram.New(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, o)
}

// preferred returns 20τλ: see Gram.
func (l *Lab) preferred() float64 { return 20 * l.cfg.Tol * l.cfg.Lambda }

// exactness returns τλ/20, what ‖E‖₂ of K recomputed may be at most: as ‖c_j‖₂ ≤ ‖y_j‖₂/λ up to the
// residual, it is then τ/20 of the true residual.
func (l *Lab) exactness() float64 { return l.cfg.Tol * l.cfg.Lambda / 20 }

// watch returns a progress function that reports a stage's share and the time left.
func (l *Lab) watch(stage string) func(done, total int) {
	start := time.Now()
	return func(done, total int) {
		e := Event{Stage: stage, Done: done, Total: total, Remaining: -1}
		if done > 0 {
			e.Remaining = time.Duration(float64(time.Since(start)) * float64(total-done) / float64(done))
		}
		l.cfg.Monitor(e)
	}
}

// pointBytes returns the memory that points take.
func pointBytes(x points.Points) int64 {
	n, d := x.Dims()
	switch x := x.(type) {
	case *points.CSR:
		return 12*int64(x.NNZ()) + 8*int64(n)
	case *points.Dense32:
		return 4 * int64(n) * int64(d)
	}
	return 8 * int64(n) * int64(d)
}
