package lowrank_test

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
)

// roundedSource is a Source with columns that are rounded to multiples of 1/steps, or to float32. Its EntryError is a
// true bound or +Inf, which stands for no bound.
type roundedSource struct {
	*denseSource
	steps float64 // 0 stands for rounding to float32
	bound float64
}

func (k *roundedSource) EntryError() float64 { return k.bound }

func (k *roundedSource) Submatrix(ctx context.Context, rows, cols []int, dst blas64.General) error {
	err := k.denseSource.Submatrix(ctx, rows, cols, dst)
	for row := range rows {
		for col := range cols {
			v := &dst.Data[row*dst.Stride+col]
			if k.steps > 0 {
				*v = math.RoundToEven(*v*k.steps) / k.steps
			} else {
				*v = float64(float32(*v))
			}
		}
	}
	return err
}

// randomMatrix draws a random kernel matrix. Some points coincide, some groups are far apart, the coordinates have
// different scales, and the width of the kernel ranges from far below to far above the distances.
func randomMatrix(g rng.Stream) *denseSource {
	n, d := 2+g.Sub("n").IntN(0, 50), 1+g.Sub("d").IntN(0, 4)
	separation := []float64{0, 0, 10, 1e6}[g.Sub("far").IntN(0, 4)]
	steep := 4 * g.Sub("steep").Float64(0)
	distinct := 1 + g.Sub("distinct").IntN(0, 2*n)
	x := make([][]float64, n)
	for i := range x {
		x[i] = make([]float64, d)
		point := uint64(i % distinct)
		for j := range x[i] {
			x[i][j] = g.Sub("x", point).Normal(uint64(j))*math.Pow(10, -steep*float64(j)) + separation*float64(point%3)
		}
	}
	k := gaussianMatrixOf(x, math.Pow(10, 5*g.Sub("sigma").Float64(0)-1.5))
	if g.Sub("scaled").Float64(0) < 0.3 {
		k = rescaled(k)
	}
	return k
}

// TestCertificates compares the certified bounds of a Factor with the eigenvalues of K−K̂ and of M⁻¹(K+λI), for λ down
// to 1e-12 of the mean diagonal, on 300 random problems. A Source without a bound of the error of its columns must
// yield no certificate; a Source with one must yield a true certificate.
func TestCertificates(t *testing.T) {
	bounds, finite := 0, 0
	for problem := range uint64(300) {
		g := rng.New(17).Sub("problem", problem)
		k := randomMatrix(g)
		n := k.Dim()
		var src lowrank.Source = k
		switch g.Sub("source").IntN(0, 5) {
		case 0:
			src = &roundedSource{k, 0, math.Inf(1)}
		case 1:
			src = &roundedSource{k, 0, 0x1p-24}
		case 2:
			src = &roundedSource{k, 1 << 16, math.Inf(1)}
		}
		for name, method := range methods {
			rank := 1 + g.Sub("rank").IntN(0, n)
			f, err := method(ctx, src, rank, g.Sub("landmarks"),
				&lowrank.Options{Block: 1 + g.Sub("block").IntN(0, rank)})
			if err != nil {
				if src == lowrank.Source(k) {
					t.Errorf("problem %d, %s: %v", problem, name, err)
				}
				continue
			}
			if math.IsInf(src.EntryError(), 1) {
				if f.Certain() || !math.IsInf(f.CondBound(1, 1), 1) {
					t.Errorf("problem %d, %s: a bound of columns with an unknown error", problem, name)
				}
				continue
			}
			residual := residualOf(k, f)
			eigenvalues := testkit.Eigenvalues(t, residual)
			allowance := 1e-14 * float64(n) * f.Trace // rounding error of the reference
			if !f.Certain() || eigenvalues[0] < -f.Rounding-allowance || eigenvalues[n-1] > max(0,
				f.Residual)+2*f.Rounding+allowance ||
				math.Abs(f.Residual-mat.Trace(residual)) > f.Rounding+allowance {
				t.Errorf("problem %d, %s, rank %d: K−K̂ from %g to %g with trace %g; Residual %g, Rounding %g",
					problem, name, f.Rank(), eigenvalues[0], eigenvalues[n-1], mat.Trace(residual), f.Residual,
					f.Rounding)
			}
			for _, lambda := range []float64{1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-12} {
				lambda *= f.Trace / float64(n)
				bound := f.CondBound(lambda, lambda)
				bounds++
				if math.IsInf(bound, 1) || lambda < 100*allowance {
					continue
				}
				finite++
				if got := condition(t, k, f, lambda, lambda); got > bound*(1+1e-9+10*allowance/lambda) {
					t.Errorf("problem %d, %s, rank %d, λ = %g: κ = %.10g, bound %.10g", problem, name, f.Rank(),
						lambda, got, bound)
				}
			}
		}
	}
	t.Logf("%d of %d bounds finite", finite, bounds)
	if 4*finite < bounds {
		t.Errorf("%d of %d bounds finite", finite, bounds)
	}
}
