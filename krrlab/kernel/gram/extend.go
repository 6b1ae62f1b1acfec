package gram

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Extend returns K+λI for the points x, the first of which must be those of m, with the storage, the tile size and the
// arithmetic of m. It forms only the entries of the new points; the result shares the tiles of the old points with m.
// The entries equal those of New with the choice of m, up to the rounding of inner products. The storage error is
// predicted again. Weights in x may differ from those of m.
//
// Extend returns an error that says why if the tiles of m cannot be used, an *accel.MemoryError if the result does not
// fit o.Memory, and the other errors of New. It ignores the storage and the tiles of o, and panics if x has fewer
// points than m.
func (m *Matrix) Extend(ctx context.Context, x points.Points, o *Options) (*Matrix, error) {
	n, _ := x.Dims()
	if n < m.tiling.n {
		panic(fmt.Sprintf("gram: %d points extended to %d", m.tiling.n, n))
	}
	opt := *cmp.Or(o, &Options{})
	opt.Choice, opt.SameAs, opt.TileSize, opt.Comm = nil, &m.choice, m.tiling.size, m.comm
	switch size := (&Options{}).withDefaults(n, m.lambda).TileSize; {
	case m.comm.Size() > 1:
		return nil, errors.New("gram: the tiles are distributed over ranks")
	case m.choice.Sparse != nil:
		return nil, errors.New("gram: sparse tiles belong to a tree of all points")
	case m.choice.Certain && m.choice.Centered:
		return nil, errors.New("gram: the error is proved for the mean of fewer points")
	case size > 2*m.tiling.size:
		return nil, fmt.Errorf("gram: tiles of %d points are small for %d", m.tiling.size, n)
	}
	extended, opt, err := newMatrix(m.k, x, m.lambda, &opt)
	if err != nil {
		return nil, err
	}
	extended.tileShift = m.tileShift
	if extended.choice, err = extended.choose(ctx, &opt); err != nil {
		return nil, err
	}
	if !extended.choice.SameStorage(m.choice) || extended.choice.ExactProducts != m.choice.ExactProducts {
		return nil, errors.New("gram: the new points take other distances than the tiles have")
	}
	extended.buildEngine()
	extended.ops.reuse(m.ops)
	if err := extended.ops.formAll(ctx, opt.Progress); err != nil {
		return nil, err
	}
	extended.choice.Bytes = extended.Bytes()
	return extended, nil
}
