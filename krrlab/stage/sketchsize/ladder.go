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

// Operator is A = K+λI for n points. *gram.Matrix is one.
type Operator interface {
	Dim() int
	MulTo(ctx context.Context, dst, src *mat.Dense) error  // (K+λI)·src, n×t
	KMulTo(ctx context.Context, dst, src *mat.Dense) error // K·src
}

// Problem is what a sketch is wanted for.
type Problem struct {
	K       Operator
	X       points.Points // n points
	Map     feature.Dist  // of the features; Search makes it nested, see feature.Doubling
	Lambda  float64
	LambdaP float64 // λ_p; 0 means λ
	RHS     int     // right-hand sides t of the solve to come; 0 means 1
	Tol     float64 // its tolerance τ; 0 means 1e-3
	// Error is e ≥ ‖K_stored−K‖₂ of the K that is multiplied by; all claims are about K itself,
	// and allow for it. Default 0.
	Error float64
	// Comm is the group of ranks that share K and the rows of the features; all have X, and
	// call Search together. Default: comm.Alone().
	Comm comm.Comm
}

// ladder holds the features of the rungs climbed so far, unscaled,
//
//	Ẑ = √c·Z,  c = s/First = 2^k,
//
// so that neither they nor ẐᵀẐ change when columns are added, and ZZᵀ+λ_pI =
// (ẐẐᵀ+cλ_pI)/c, where a power of two rounds nothing.
type ladder struct {
	x    points.Points // of this rank
	comm comm.Comm
	dist feature.Doubling
	g    rng.Stream
	z    *points.Dense32 // Ẑ, n×s; nil before the first rung
	gram precond.Gram    // ẐᵀẐ
	sec  Seconds         // of all rungs so far
}

// climb adds the features from the width there is to s, and their part of ẐᵀẐ.
func (l *ladder) climb(ctx context.Context, s int) error {
	clock := time.Now()
	n, d := l.x.Dims()
	from := 0
	z := points.NewDense32(n, s, nil)
	if l.z != nil {
		from = l.z.D
		for i := range n {
			copy(z.Row(i), l.z.Row(i))
		}
	}
	m, err := l.dist.Part(d, from, s, l.g)
	if err != nil {
		return err
	}
	if err := comm.Agree(ctx, l.comm, feature.MatrixTo(ctx, z, from, m, l.x, nil)); err != nil {
		return err
	}
	if scale := float32(math.Sqrt(float64(s-from) / float64(l.dist.First))); scale != 1 {
		for i := range n {
			row := z.Row(i)[from:]
			for j := range row {
				row[j] *= scale // Ẑ_new = √((s−from)/First)·φ
			}
		}
	}
	l.z = z
	l.sec.Features += stage.Lap(&clock)
	err = l.gram.Grow(ctx, l.comm, z)
	l.sec.Gram += stage.Lap(&clock)
	return err
}

// inverse returns ẐẐᵀ+ridge·I in a form.
func (l *ladder) inverse(ctx context.Context, ridge float64, form precond.Form) (*precond.Woodbury, error) {
	return precond.NewFromGram(ctx, l.z, &l.gram, ridge, &precond.Options{Form: form, Comm: l.comm})
}

// scale returns c.
func (l *ladder) scale() float64 { return float64(l.z.D) / float64(l.dist.First) }

// metric factors M = ZZᵀ+λ_pI.
func (l *ladder) metric(ctx context.Context, lambdaP float64) (*metric, error) {
	c := l.scale()
	w, err := l.inverse(ctx, c*lambdaP, precond.FormL)
	if err != nil {
		return nil, err
	}
	return &metric{w, c}, nil
}

// metric is M = (ẐẐᵀ+cλ_pI)/c.
type metric struct {
	w *precond.Woodbury // ẐẐᵀ+cλ_pI
	c float64
}

func (m *metric) Dim() int { return m.w.Dim() }

// SolveTo sets dst = M⁻¹r = c(ẐẐᵀ+cλ_pI)⁻¹r.
func (m *metric) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	err := m.w.SolveTo(ctx, dst, r)
	dst.Scale(m.c, dst)
	return err
}

// NormalTo sets dst to a draw of N(0, M).
func (m *metric) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	err := m.w.NormalTo(ctx, dst, g)
	dst.Scale(1/math.Sqrt(m.c), dst)
	return err
}
