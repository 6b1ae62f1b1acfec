package krrlab

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
)

// draw makes Z of an approximation. The columns of K that landmarks take are formed again in float64, however K is
// stored, by differences where inner products would cancel beyond what a factorization of this rank rounds: what the
// factor claims as certain refers to K itself.
func (l *Lab) draw(ctx context.Context, of *stage.Approximation) (*stage.Drawn, error) {
	if of.Features != nil {
		z, err := l.features(ctx, of)
		return &stage.Drawn{Z: z, Text: of.String()}, err
	}
	trace := mat.Trace(mat.NewDiagDense(l.train.Len(), kernel.Diag(l.cfg.Kernel, l.train.X)))
	k, err := gram.NewExact(l.cfg.Kernel, l.train.X, l.cfg.Lambda,
		max(l.cfg.Lambda/1000, 0x1p-52*float64(of.S)*trace), l.comm)
	if err != nil {
		return nil, err
	}
	var f *lowrank.Factor
	g := rng.New(l.cfg.Seed).Sub("landmarks", 0)
	o := &lowrank.Options{Progress: l.watch(ctx, stage.Features), Comm: l.comm}
	switch given := len(of.Landmarks); {
	case of.Method == "rpcholesky":
		f, err = lowrank.RPCholesky(ctx, k, of.S, g, o)
	case of.Method != "nystrom":
		err = fmt.Errorf("krrlab: no method %q of making Z: want features, nystrom or rpcholesky", of.Method)
	case given == 0:
		f, err = lowrank.Nystrom(ctx, k, of.S, g, o)
	case of.S > given:
		err = fmt.Errorf("krrlab: %d of %d landmarks: want at most as many as are given", of.S, given)
	default:
		f, err = lowrank.NystromAt(ctx, k, of.Landmarks[:of.S], o)
	}
	if err != nil {
		return nil, err
	}
	z := &stage.Drawn{Z: f.F, Low: f, Text: of.String()}
	if of.Spectral {
		var t []float64
		if t, z.More, err = precond.Spectral(ctx, l.comm, f.F); err == nil {
			err = f.Times(ctx, l.comm, t)
		}
	}
	return z, err
}

// features returns Z of random features, on ranks the rows of this one.
func (l *Lab) features(ctx context.Context, of *stage.Approximation) (*points.Dense32, error) {
	n, d, _ := l.Dims()
	lo, hi := comm.Rows(n, precond.RankRows, l.comm.Rank(), l.comm.Size())
	need := 4 * int64(hi-lo) * int64(of.S)
	if l.cfg.Memory > 0 && need > l.cfg.Memory {
		return nil, fmt.Errorf("krrlab: Z of n = %d by s = %d needs %s, the limit is %s: take fewer features", n, of.S,
			accel.Bytes(need), accel.Bytes(l.cfg.Memory))
	}
	m, err := of.Features.Sample(d, of.S, rng.New(l.cfg.Seed).Sub("features", 0))
	if err != nil {
		return nil, err
	}
	if from, to := m.Dims(); from != d || to != of.S {
		return nil, fmt.Errorf("krrlab: %v has a map of R^%d to R^%d: want R^%d to R^%d", of.Features, from, to, d, of.S)
	}
	return feature.Matrix(ctx, m, l.train.X.Slice(lo, hi), l.watch(ctx, stage.Features))
}
