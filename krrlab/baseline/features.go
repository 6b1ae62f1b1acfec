package baseline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
)

// FeatureOptions of RandomFeatures. Zero values, and nil, mean the defaults.
type FeatureOptions struct {
	// Memory is the number of bytes that may be taken, 0 for no limit. Z is kept if it fits, without a limit if it
	// takes at most half of what the machine has left.
	Memory int64
	// Progress, if not nil, is called with the progress of each stage: "features", "gram" and "residual" (points).
	Progress func(stage string, done, total int)
}

const (
	featureTol  = 1e-10 // asked of ‖Zᵀ(y_j−Zw_j)−λw_j‖₂/‖Zᵀy_j‖₂ for every column
	mostRefined = 30    // rounds of refinement
)

// FeatureSeconds are the seconds that the random features method spent.
type FeatureSeconds struct {
	Features float64 // forming Z
	Gram     float64 // ZᵀZ
	Factor   float64 // its Cholesky factor
	Solve    float64 // triangular solves
	Residual float64 // ZᵀY, and residuals without the forming of Z
	Total    float64
}

// FeatureResult is the answer of RandomFeatures.
type FeatureResult struct {
	W         *mat.Dense  // s×t
	Map       feature.Map // φ
	Fast      bool        // products in float32
	Kept      bool        // Z was kept
	Status    pcg.Status
	Objective float64   // ‖ZW−Y‖_F²+λ‖W‖_F²
	Excess    float64   // ‖G‖_F²/λ, at least Objective less its minimum
	RelRes    []float64 // ‖g_j‖₂/‖Zᵀy_j‖₂, G = Zᵀ(Y−ZW)−λW; 0 for Zᵀy_j = 0
	Rounds    int       // of refinement
	History   []float64 // MaxRelRes after the first solve and each round
	Bytes     int64     // FeatureNeed
	Seconds   FeatureSeconds
}

// MaxRelRes returns the largest relative residual of the normal equations.
func (r *FeatureResult) MaxRelRes() float64 { return slices.Max(r.RelRes) }

// FeatureNeed returns the bytes that RandomFeatures takes for n points, s features and t
// columns: ZᵀZ, 8s², Z, 4ns, or a panel of it, a panel in float64, and the blocks of t columns; not the workspace of
// products that each thread of the process keeps (2.4 MB).
func FeatureNeed(n, s, t int, keep bool) int64 {
	nn, ss := int64(n), int64(s)
	z := 4 * nn * ss
	if !keep {
		z = 4 * ss * min(nn, int64(panelRows(s)))
	}
	panel := 8 * 1024 * ss // of precond.Gram
	return 8*ss*ss + z + panel + 8*int64(t)*(4*ss+4*nn)
}

// RandomFeatures solves kernel ridge regression in the span of the features φ = m of the
// points,
//
//	min_W ‖ZW−Y‖_F² + λ‖W‖_F²,  Z n×s with rows φ(x_i)ᵀ, Y n×t,
//
// by the Cholesky factor of the normal equations, (ZᵀZ+λI)W = ZᵀY (Rahimi and Recht 2007; the paper's
// "sketch-and-solve"). f(x) = φ(x)ᵀW. A nil o means the defaults. y and o are not changed. λ is that of K+λI: as
// ZZᵀ → K, f tends to that of the exact method.
//
// ZᵀZ is formed in float32 products, by panels of 512 rows, summed in float64, where the error of that is predicted to
// be at most λ/10; the answer does not depend on it: with LLᵀ ≈ ZᵀZ+λI each round of refinement,
//
//	G = Zᵀ(Y−ZW) − λW,  W ← W + (LLᵀ)⁻¹G,
//
// takes the gradient with the features themselves, in float64, and contracts the error by
// ‖E‖₂/λ. As half the negative gradient of the objective J, G also bounds what is left:
// J(W) − min J = tr Gᵀ(ZᵀZ+λI)⁻¹G ≤ ‖G‖_F²/λ.
//
// Work: ns² + s³/3 flops, and for each pass over Z the features, unless Z is kept, and 4nst. Memory: FeatureNeed. The
// result has the same bits for any number of threads, and whether Z is kept or not.
//
// It returns an error if the features are not finite, the memory allowed is too little, the matrix is not positive
// definite in float64, or ctx ends. Missing 10⁻¹⁰ of the gradient is a Status. It panics if shapes do not fit.
func RandomFeatures(ctx context.Context, m feature.Map, x points.Points, lambda float64, y *mat.Dense,
	o *FeatureOptions) (*FeatureResult, error) {
	p, err := newRidge(m, x, lambda, y, o)
	if err == nil {
		err = p.factorize(ctx)
	}
	if err == nil {
		err = p.solve(ctx)
	}
	if err != nil {
		return nil, err
	}
	p.res.Seconds.Total = time.Since(p.began).Seconds()
	return p.res, nil
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
