package solve

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/direct"
	"github.com/krrlab/lab/krrlab/stage"
)

// direct solves by a dense Cholesky factorization and returns C, n×t. Its precision is that of the configured or
// planned storage, or else that of DirectStorage. If a solve in float32 fails or its residual does not reach τ, direct
// solves again in float64, unless the user configured float32 or float64 does not fit into memory.
func (r *run) direct(ctx context.Context) (*mat.Dense, error) {
	options := &direct.Options{Tol: r.Tol, Memory: r.Memory, Progress: stage.Progress(ctx, r.notify, stage.Kernel)}
	if r.Storage == gram.Float32 || r.Storage == gram.Auto && r.DirectStorage() == gram.Float32 {
		options.Precision = direct.Float32Refined
	}
	result, err := direct.Solve(ctx, r.Kernel, r.Train.X, r.Lambda, r.Y, options)
	mayRetry := (r.Storage == gram.Auto || r.RetryFloat64) && options.Precision == direct.Float32Refined
	fits := options.Memory.Fits(direct.MemoryNeeded(direct.Float64, r.Train.Len(), r.columns()))
	if mayRetry && fits && ctx.Err() == nil && (err != nil || !(result.MaxTrueRelRes() <= r.Tol)) {
		var float32Seconds direct.Seconds
		if result != nil {
			float32Seconds = result.Seconds
		}
		options.Precision = direct.Float64
		if result, err = direct.Solve(ctx, r.Kernel, r.Train.X, r.Lambda, r.Y, options); err == nil {
			result.Seconds.Add(float32Seconds)
		}
	}
	if err != nil {
		return nil, err
	}
	r.sol.addDirect(result)
	return result.X, nil
}
