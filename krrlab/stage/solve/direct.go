package solve

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/direct"
	"github.com/krrlab/lab/krrlab/stage"
)

// direct solves by a dense Cholesky factorization, in the precision of the configured or planned storage, or else in
// that of DirectStorage. If the user did not configure float32, and it fails or its residual does not reach τ, direct
// solves again in float64, provided that this fits into memory.
func (s *run) direct(ctx context.Context) (*mat.Dense, error) {
	o := &direct.Options{Tol: s.Tol, Memory: s.Memory, Progress: stage.Progress(ctx, s.notify, stage.Kernel)}
	if s.Storage == gram.Float32 || s.Storage == gram.Auto && s.DirectStorage() == gram.Float32 {
		o.Precision = direct.Float32Refined
	}
	res, err := direct.Solve(ctx, s.Kernel, s.Train.X, s.Lambda, s.Y, o)
	mayRetry := (s.Storage == gram.Auto || s.RetryFloat64) && o.Precision == direct.Float32Refined
	fits := o.Memory.Fits(direct.MemoryNeeded(direct.Float64, s.Train.Len(), s.columns()))
	if mayRetry && fits && ctx.Err() == nil && (err != nil || !(res.MaxTrueRelRes() <= s.Tol)) {
		var float32Seconds direct.Seconds
		if res != nil {
			float32Seconds = res.Seconds
		}
		o.Precision = direct.Float64
		if res, err = direct.Solve(ctx, s.Kernel, s.Train.X, s.Lambda, s.Y, o); err == nil {
			res.Seconds.Add(float32Seconds)
		}
	}
	if err != nil {
		return nil, err
	}
	s.sol.addDirect(res)
	return res.X, nil
}
