package lowrank_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
)

var ctx = context.Background()

var _ lowrank.Source = (*gram.Matrix)(nil)

// denseSource is a Source that stores the whole matrix. One call of Submatrix can fail with errSource, or cancel a
// context.
type denseSource struct {
	*mat.SymDense
	failingCall int    // number of the call of Submatrix that fails, counted from 1; 0 for none
	calls       int    // calls of Submatrix so far
	cancel      func() // if not nil, the failing call calls it instead of returning errSource
}

var errSource = errors.New("no more columns")

// EntryError returns a bound for entries that are formed from differences of few coordinates.
func (k *denseSource) EntryError() float64 { return 0x1p-48 }

func (k *denseSource) Dim() int { return k.SymmetricDim() }

func (k *denseSource) Diag() []float64 {
	diagonal := make([]float64, k.Dim())
	for i := range diagonal {
		diagonal[i] = k.At(i, i)
	}
	return diagonal
}

func (k *denseSource) Submatrix(ctx context.Context, rows, cols []int, dst blas64.General) error {
	k.calls++
	if k.calls == k.failingCall {
		if k.cancel == nil {
			return errSource
		}
		k.cancel()
	}
	if len(rows) != dst.Rows || len(cols) != dst.Cols {
		panic("shape")
	}
	for _, indices := range [][]int{rows, cols} {
		if len(slices.Compact(slices.Sorted(slices.Values(indices)))) != len(indices) {
			panic("a row or a column twice")
		}
	}
	for row, i := range rows {
		for col, j := range cols {
			dst.Data[row*dst.Stride+col] = k.At(i, j)
		}
	}
	return ctx.Err()
}

// gaussianMatrix returns the Gaussian kernel matrix exp(−‖x−z‖²/2σ²) of n normal points of dimension d.
func gaussianMatrix(seed uint64, n, d int, sigma float64) *denseSource {
	return gaussianMatrixOf(slices.Collect(slices.Chunk(testkit.Normals(seed, 1, n*d), d)), sigma)
}

// gaussianMatrixOf returns the Gaussian kernel matrix of the points x.
func gaussianMatrixOf(x [][]float64, sigma float64) *denseSource {
	k := mat.NewSymDense(len(x), nil)
	for i := range x {
		for j := range i + 1 {
			var sqDistance float64
			for c, v := range x[i] {
				sqDistance += (v - x[j][c]) * (v - x[j][c])
			}
			k.SetSym(i, j, math.Exp(-sqDistance/(2*sigma*sigma)))
		}
	}
	return &denseSource{SymDense: k}
}

// rescaled returns DKD for a diagonal D with entries from 10⁻³ to 10³.
func rescaled(k *denseSource) *denseSource {
	product := mat.NewSymDense(k.Dim(), nil)
	d := func(i int) float64 { return math.Pow(10, 3*math.Sin(float64(i))) }
	for i := range k.Dim() {
		for j := range i + 1 {
			product.SetSym(i, j, d(i)*k.At(i, j)*d(j))
		}
	}
	return &denseSource{SymDense: product}
}

// method is Nystrom or RPCholesky.
type method func(ctx context.Context, src lowrank.Source, rank int, g rng.Stream, o *lowrank.Options) (*lowrank.Factor,
	error)

var methods = map[string]method{"Nyström": lowrank.Nystrom, "RPCholesky": lowrank.RPCholesky}

// inFloat64 returns F in float64.
func inFloat64(f *points.Dense32) *mat.Dense {
	w := mat.NewDense(f.N, f.D, nil)
	for i := range f.N {
		points.Widen(w.RawRowView(i), f.Row(i))
	}
	return w
}

// approximationOf returns K̂ = FFᵀ.
func approximationOf(f *lowrank.Factor) *mat.SymDense {
	product := mat.NewSymDense(f.F.N, nil)
	product.SymOuterK(1, inFloat64(f.F))
	return product
}

// residualOf returns K−K̂.
func residualOf(k mat.Symmetric, f *lowrank.Factor) *mat.SymDense {
	approximation := approximationOf(f)
	residual := mat.NewSymDense(f.F.N, nil)
	for i := range f.F.N {
		for j := range i + 1 {
			residual.SetSym(i, j, k.At(i, j)-approximation.At(i, j))
		}
	}
	return residual
}

// checkFactor checks the properties of every factor: the shapes, the landmarks, K̂ = K in the columns of the landmarks,
// the traces, and that K−K̂ is positive semidefinite up to F's rounding. A K that was rounded to float32 is itself
// positive semidefinite only up to its rounding. That rounding is allowed for, multiplied by 5 because the
// interpolation weights enlarge it by about the sum of their squares. The shift ν changes the columns of the
// landmarks by at most ν‖C(W+νD)⁻¹D‖ ≤ √(ν‖K‖)/2 if the diagonal is 1.
func checkFactor(t *testing.T, name string, k mat.Symmetric, f *lowrank.Factor) {
	t.Helper()
	n := k.SymmetricDim()
	if f.F.N != n || f.F.D != len(f.Landmarks) || f.Rank() != f.F.D || f.F.D < 1 || f.F.D > f.RequestedRank ||
		len(f.F.Data) != n*f.F.D {
		t.Fatalf("%s: F is %d×%d with %d landmarks, %d numbers", name, f.F.N, f.F.D, len(f.Landmarks), len(f.F.Data))
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(f.Landmarks)))
	testkit.Equal(t, len(distinct), len(f.Landmarks), name, f.Landmarks)
	residual := residualOf(k, f)
	const u = 0x1p-24
	roundedSource := true
	for i := range n {
		for j := range i {
			roundedSource = roundedSource && float64(float32(k.At(i, j))) == k.At(i, j)
		}
	}
	traceTolerance, smallestAllowed := 1e-12, -f.Rounding
	if roundedSource {
		traceTolerance += u
		smallestAllowed += 5 * min(0, testkit.Eigenvalues(t, k)[0])
	}
	if f.Shift > 1e-12*float64(f.RequestedRank*f.RequestedRank)+1e-13*float64(f.RequestedRank) {
		t.Errorf("%s: shift %.3g", name, f.Shift)
	}
	columnTolerance := 4*u + math.Sqrt(f.Shift*float64(n))/2
	for _, j := range f.Landmarks {
		for i := range n {
			if deviation := math.Abs(residual.At(i, j)); deviation > columnTolerance*math.Sqrt(k.At(i, i)*k.At(j, j)) {
				t.Fatalf("%s: K−K̂ is %.3g at (%d, %d), in the column of a landmark", name, deviation, i, j)
			}
		}
	}
	trace := mat.Trace(k)
	limit := traceTolerance * trace
	if math.Abs(f.Trace-trace) > limit || math.Abs(f.Residual-mat.Trace(residual)) > limit {
		t.Errorf("%s: traces %v and %v, want %v and %v", name, f.Trace, f.Residual, trace, mat.Trace(residual))
	}
	if f.Rounding < 0 || f.Rounding > 2.1*u*trace {
		t.Errorf("%s: rounding %.3g of trace %.3g", name, f.Rounding, trace)
	}
	if smallest := testkit.Eigenvalues(t, residual)[0]; smallest < smallestAllowed {
		t.Errorf("%s: least eigenvalue of K−K̂ is %.3g, rounding is %.3g", name, smallest, -smallestAllowed)
	}
}
