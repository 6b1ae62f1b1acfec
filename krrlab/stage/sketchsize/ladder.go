package sketchsize

import (
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Problem is the problem to choose the number of features for.
type Problem struct {
	K       stage.Operator // the stored K+λI, which also multiplies by K
	X       points.Points  // n points
	Map     feature.Dist   // distribution of the features; Search makes it nested, see feature.Doubling
	Lambda  float64
	LambdaP float64 // ridge λ_p of M = ZZᵀ+λ_pI; 0 means λ
	RHS     int     // number t of right-hand sides of the intended solve; 0 means 1
	Tol     float64 // tolerance τ of the intended solve; 0 means 1e-3
	// Error is an upper bound of ‖K_stored−K‖₂. All claims are about K itself, and allow for this error.
	Error float64
	// Comm is the group of ranks that share K and the rows of the features. All ranks have X, and call Search together.
	// Default: comm.Alone().
	Comm comm.Comm
}

// ladder holds the features of the rungs so far, in the unscaled form
//
//	Ẑ = √c·Z,  c = s/First = 2^k.
//
// Neither Ẑ nor ẐᵀẐ changes when columns are added, and ZZᵀ+λ_pI = (ẐẐᵀ+cλ_pI)/c without rounding, because c is a power
// of two.
type ladder struct {
	x    points.Points // points of this rank
	comm comm.Comm
	// features is the distribution of the features. The features of a rung are the first ones of the next rung.
	features feature.Doubling
	stream   rng.Stream      // random numbers of the features
	zHat     *points.Dense32 // Ẑ, n×s; nil before the first rung
	gram     precond.Gram    // ẐᵀẐ
	seconds  Seconds         // total seconds of all rungs so far
}

// growTo adds features until their number is width, and updates ẐᵀẐ.
func (l *ladder) growTo(ctx context.Context, width int) error {
	clock := time.Now()
	n, dim := l.x.Dims()
	oldWidth := 0
	z := points.NewDense32(n, width, nil)
	if l.zHat != nil {
		oldWidth = l.zHat.D
		for i := range n {
			copy(z.Row(i), l.zHat.Row(i))
		}
	}
	addedMap, err := l.features.Part(dim, oldWidth, width, l.stream)
	if err != nil {
		return err
	}
	if err := comm.Agree(ctx, l.comm, feature.MatrixTo(ctx, z, oldWidth, addedMap, l.x, nil)); err != nil {
		return err
	}
	if scale := float32(math.Sqrt(float64(width-oldWidth) / float64(l.features.First))); scale != 1 {
		for i := range n {
			row := z.Row(i)[oldWidth:]
			for j := range row {
				row[j] *= scale // The map scales s' added features by 1/√s'; the ladder needs 1/√First.
			}
		}
	}
	l.zHat = z
	l.seconds.Features += stage.Lap(&clock)
	err = l.gram.Grow(ctx, l.comm, z)
	l.seconds.Gram += stage.Lap(&clock)
	return err
}

// woodbury returns ẐẐᵀ+ridge·I in the given form.
func (l *ladder) woodbury(ctx context.Context, ridge float64, form precond.Form) (*precond.Woodbury, error) {
	return precond.NewFromGram(ctx, l.zHat, &l.gram, ridge, &precond.Options{Form: form, Comm: l.comm})
}

// scale returns the factor c.
func (l *ladder) scale() float64 { return float64(l.zHat.D) / float64(l.features.First) }

// newMetric factors M = ZZᵀ+λ_pI.
func (l *ladder) newMetric(ctx context.Context, lambdaP float64) (*metric, error) {
	scale := l.scale()
	scaledInverse, err := l.woodbury(ctx, scale*lambdaP, precond.FormL)
	if err != nil {
		return nil, err
	}
	return &metric{scaledInverse, scale}, nil
}

// metric is M = (ẐẐᵀ+cλ_pI)/c.
type metric struct {
	scaledInverse *precond.Woodbury // ẐẐᵀ+cλ_pI in Woodbury form
	scale         float64           // c
}

// Dim returns n.
func (m *metric) Dim() int { return m.scaledInverse.Dim() }

// SolveTo sets dst = M⁻¹r = c(ẐẐᵀ+cλ_pI)⁻¹r.
func (m *metric) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	err := m.scaledInverse.SolveTo(ctx, dst, r)
	dst.Scale(m.scale, dst)
	return err
}

// NormalTo sets dst to a sample of N(0, M).
func (m *metric) NormalTo(ctx context.Context, dst *mat.Dense, stream rng.Stream) error {
	err := m.scaledInverse.NormalTo(ctx, dst, stream)
	dst.Scale(1/math.Sqrt(m.scale), dst)
	return err
}
