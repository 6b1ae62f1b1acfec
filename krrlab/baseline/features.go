package baseline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
)

// FeatureForm says which system of the random features method is factored.
type FeatureForm int

const (
	AutoFeatureForm FeatureForm = iota // Dual if s > n and Z can be kept, Primal otherwise
	Primal                             // (ZᵀZ+λI)W = ZᵀY, s×s
	Dual                               // (ZZᵀ+λI)A = Y, n×n, and W = ZᵀA
)

func (f FeatureForm) String() string { return enum.Name([]string{"auto", "primal", "dual"}, f) }

// FeatureOptions of RandomFeatures. Zero values, and nil, mean the defaults.
type FeatureOptions struct {
	// Form of the system. Default AutoFeatureForm.
	Form FeatureForm
	// Exact forms ZᵀZ, or ZZᵀ, in float64 throughout. Default false: products in float32 by
	// panels of 512 rows, summed in float64, where the error of that is predicted to be
	// at most λ/10. Refinement makes up for it.
	Exact bool
	// Stream forms the features anew in each pass, even if Z could be kept.
	Stream bool
	// Tol asked of ‖Zᵀ(y_j−Zw_j)−λw_j‖₂/‖Zᵀy_j‖₂ for every column. Default 1e-10.
	Tol float64
	// MaxRefine is the most rounds of refinement. Default 30; negative means none.
	MaxRefine int
	// Memory is the number of bytes that may be taken, 0 for no limit; then Z is kept if it
	// takes at most half of what the machine has left.
	Memory int64
	// Progress, if not nil, is told how far each stage is: "features" and "gram" (points, or
	// features for Dual), "residual" (points).
	Progress func(stage string, done, total int)
}

// FeatureSeconds are the seconds that the random features method spent.
type FeatureSeconds struct {
	Features float64 // forming Z
	Gram     float64 // ZᵀZ or ZZᵀ
	Factor   float64 // its Cholesky factor
	Solve    float64 // triangular solves
	Residual float64 // ZᵀY, and residuals without the forming of Z
	Total    float64
}

// FeatureResult is the answer of RandomFeatures.
type FeatureResult struct {
	W           *mat.Dense  // s×t
	Map         feature.Map // φ
	N, S, T     int         // points, features, columns
	Lambda, Tol float64
	Form        FeatureForm // taken
	Fast        bool        // products in float32
	Kept        bool        // Z was kept
	Status      pcg.Status
	Objective   float64   // ‖ZW−Y‖_F²+λ‖W‖_F²; NaN if it was not measured
	Excess      float64   // ‖G‖_F²/λ, at least Objective less its minimum
	RelRes      []float64 // ‖g_j‖₂/‖Zᵀy_j‖₂, G = Zᵀ(Y−ZW)−λW; 0 for Zᵀy_j = 0
	Rounds      int       // of refinement
	History     []float64 // MaxRelRes after the first solve and each round
	Bytes       int64     // FeatureNeed
	Seconds     FeatureSeconds
}

// MaxRelRes returns the largest relative residual of the normal equations.
func (r *FeatureResult) MaxRelRes() float64 { return slices.Max(r.RelRes) }

// FeatureNeed returns the bytes that RandomFeatures takes for n points, s features and t
// columns: the matrix that is factored, 8s² (Primal) or 8n² (Dual), Z, 4ns, or a panel of
// it, a panel in float64, and the blocks of t columns; not the workspace of products that
// each thread of the process keeps (2.4 MB). It panics for AutoFeatureForm.
func FeatureNeed(form FeatureForm, n, s, t int, keep bool) int64 {
	nn, ss, order := int64(n), int64(s), int64(s)
	z := 4 * nn * ss
	if !keep {
		z = 4 * ss * min(nn, int64(panelRows(s)))
	}
	switch form {
	case Primal:
	case Dual:
		order, z = nn, z+4*nn*min(ss, precond.ColumnStrip)
	default:
		panic("baseline: the bytes of " + form.String())
	}
	panel := 8 * 1024 * order // of precond.Gram
	return 8*order*order + z + panel + 8*int64(t)*(4*ss+4*nn)
}

// RandomFeatures solves kernel ridge regression in the span of the features φ = m of the
// points,
//
//	min_W ‖ZW−Y‖_F² + λ‖W‖_F²,  Z n×s with rows φ(x_i)ᵀ, Y n×t,
//
// by the Cholesky factor of the normal equations (Rahimi and Recht 2007; the paper's
// "sketch-and-solve"); see the package doc for the two forms. f(x) = φ(x)ᵀW. A nil o means
// the defaults. y and o are not changed. λ is that of K+λI: as ZZᵀ → K, f tends to that of
// the exact method.
//
// The Gram matrix may be formed in float32 products, the answer does not depend on it: with
// LLᵀ ≈ ZᵀZ+λI each round of refinement,
//
//	G = Zᵀ(Y−ZW) − λW,  W ← W + (LLᵀ)⁻¹G,
//
// takes the gradient with the features themselves, in float64, and contracts the error by
// ‖E‖₂/λ. As half the negative gradient of the objective J, G also bounds what is left:
// J(W) − min J = tr Gᵀ(ZᵀZ+λI)⁻¹G ≤ ‖G‖_F²/λ.
//
// Work: ns² + s³/3 flops (Dual: n²s + n³/3), and for each pass over Z the features, unless
// Z is kept, and 4nst. Memory: FeatureNeed. The result has the same bits for any number of
// threads, and whether Z is kept or not.
//
// It returns an error if λ is not positive, the targets or the features are not finite, the
// memory allowed is too little (a *LimitError), the matrix is not positive definite in
// float64, or ctx ends; after the first solve the result so far comes with ctx's error.
// Missing the tolerance is a Status. It panics if shapes do not fit or an option is negative.
func RandomFeatures(ctx context.Context, m feature.Map, x points.Points, lambda float64, y *mat.Dense, o *FeatureOptions) (*FeatureResult, error) {
	p, err := newRidge(m, x, lambda, y, o)
	if err != nil {
		return nil, err
	}
	if err := p.factorize(ctx); err != nil {
		return nil, err
	}
	err = p.solve(ctx)
	p.res.Seconds.Total = time.Since(p.began).Seconds()
	if !p.solved {
		return nil, err
	}
	return p.res, err
}

// Predict returns f(x) = φ(x)ᵀW for all points, p×t: 2ps flops for each column beside the
// features, which are formed by panels. It returns an error if the points have features that
// are not finite, and ctx's. It panics if the points are not of φ's dimension.
func (r *FeatureResult) Predict(ctx context.Context, x points.Points) (*mat.Dense, error) {
	return predictFeatures(ctx, r.Map, r.W, x)
}

func predictFeatures(ctx context.Context, m feature.Map, w *mat.Dense, x points.Points) (*mat.Dense, error) {
	n, _ := x.Dims()
	if n == 0 {
		return nil, fmt.Errorf("baseline: no points to predict")
	}
	_, t := w.Dims()
	v, f := byCols(w), make([]float64, n*t)
	err := newRows(m, x, nil).each(ctx, "", func(i0 int, z *points.Dense32) error {
		return addProduct(ctx, z, v, f[i0:], n, t)
	})
	if err != nil {
		return nil, err
	}
	return fromCols(f, n, t), nil
}
