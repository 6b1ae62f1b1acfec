package lowrank

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Extend returns the factor of src, a K whose first f.N rows and columns are those of f. The landmarks S and the first
// rows of F are those of f, and the new rows of F are the same as if F had been computed for src with these landmarks
// (fl rounds to float32):
//
//	F(new, :) = fl(K(new, S)·T⁻ᵀ),  TTᵀ = K(S, S)+νD.
//
// The certified bounds hold for all rows: the error of an entry is the larger one of those of f and of src. The cost is
// mr² flops for m new rows, and the formation of r of their columns. The result has the same bits for any number of
// threads. It is for one process: options.Comm must have one rank.
//
// Extend returns an error if T is not known, since landmarks were dropped or F was multiplied (MulRight), or if the
// entries of src are so much less accurate than those of f that the certificate would be lost. It also returns the
// errors of Nystrom, and panics if src has fewer rows than f.
func (f *Factor) Extend(ctx context.Context, src Source, options *Options) (*Factor, error) {
	r := f.Rank()
	opt := options.withDefaults(r)
	if src.Dim() < f.N || opt.Comm != nil && opt.Comm.Size() > 1 {
		panic(fmt.Sprintf("lowrank: a factor of %d rows extended to %d, by ranks %v", f.N, src.Dim(), opt.Comm))
	}
	if f.lower == nil {
		return nil, errors.New("lowrank: the Cholesky factor of F is not known")
	}
	b, err := newBuilder(src, r, &opt)
	if err != nil {
		return nil, err
	}
	b.entryError, b.minRelativeError = max(b.entryError, f.EntryError), f.relativeError
	if b.shift() > maxErrorGrowth*f.Shift {
		return nil, errors.New("lowrank: the rounding errors of K have grown")
	}
	b.roundingSq[0], b.lower, b.formedColumns = f.roundingSq, f.lower, f.Columns
	ny := &nystrom{builder: b, landmarks: f.Landmarks, exponent: b.scaleExponent(), l: slices.Clone(f.lower)}
	floats.Scale(math.Ldexp(1, -ny.exponent), ny.l)
	for i, diagonal := range f.residualDiag {
		copy(b.f.Row(i), f.F.Row(i))
		b.residualDiag[i] = diagonal
	}
	if err := ny.computeF(ctx, f.N, opt.Progress); err != nil {
		return nil, err
	}
	extended, err := b.finish(ctx, f.Method, f.Landmarks, f.Shift)
	if err == nil {
		extended.RequestedRank = f.RequestedRank
	}
	return extended, err
}
