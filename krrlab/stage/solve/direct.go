package solve

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/direct"
	"github.com/krrlab/lab/krrlab/stage"
)

// direct solves by a dense Cholesky factorization: in the precision of the storage that is asked for or planned, else
// in that of Precision. If it was not asked for, and the residual in float32 does not come to τ, it solves in float64
// again where that fits the memory.
func (s *run) direct(ctx context.Context) (*mat.Dense, error) {
	o := &direct.Options{Tol: s.Tol, Memory: s.Memory, Progress: stage.Progress(ctx, s.tell, stage.Kernel)}
	if s.Storage == gram.Float32 || s.Storage == gram.Auto && s.DirectStorage() == gram.Float32 {
		o.Precision = direct.Float32Refined
	}
	res, err := direct.Solve(ctx, s.Kernel, s.Train.X, s.Lambda, s.Y, o)
	free := (s.Storage == gram.Auto || s.RetryFloat64) && o.Precision == direct.Float32Refined
	fits := o.Memory == 0 || direct.Need(direct.Float64, s.Train.Len(), s.columns()) <= o.Memory
	if free && fits && ctx.Err() == nil && (err != nil || !(res.MaxTrueRelRes() <= s.Tol)) {
		var before direct.Seconds
		if res != nil {
			before = res.Seconds
		}
		o.Precision = direct.Float64
		if res, err = direct.Solve(ctx, s.Kernel, s.Train.X, s.Lambda, s.Y, o); err == nil {
			res.Seconds.Add(before)
		}
	}
	if err != nil {
		return nil, err
	}
	s.sol.takeOnDirect(res)
	return res.X, nil
}
