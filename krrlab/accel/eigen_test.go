package accel

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
)

// TestDsyev compares OpenBLAS's eigenvalues with gonum's, and checks the eigenvectors by their residuals and norms.
func TestDsyev(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 16))
	useBLAS(t, requireOpenBLAS(t))
	ours, ref := libraryLAPACK{}, gonum.Implementation{}
	for _, n := range append(orders[1:], eigenvectorsPerCall+8) { // the last order needs two calls for the eigenvectors
		for _, ul := range []blas.Uplo{blas.Lower, blas.Upper} {
			ld := n + random.IntN(4)
			symmetric := randomDefinite(random, n, ld)
			stored := slices.Clone(symmetric)
			for i := range n { // the other triangle must not be read
				for j := range n {
					if i != j && (ul == blas.Upper) != (j > i) {
						stored[i*ld+j] = 1e9
					}
				}
			}
			workspaceSize := []float64{0}
			ours.Dsyev(lapack.EVCompute, ul, n, nil, ld, nil, workspaceSize, -1)
			work := make([]float64, int(workspaceSize[0]))
			values, want := make([]float64, n), make([]float64, n)
			vectors := slices.Clone(stored)
			if !ours.Dsyev(lapack.EVCompute, ul, n, vectors, ld, values, work, len(work)) {
				t.Fatal("not ok")
			}
			if !ref.Dsyev(lapack.EVNone, ul, n, slices.Clone(stored), ld, want, work, len(work)) {
				t.Fatal("gonum's is not ok")
			}
			if err := near(values, want, 1e-12); err != nil {
				t.Fatalf("n = %d, %c: eigenvalues: %v", n, ul, err)
			}
			valuesAlone := make([]float64, n)
			if !ours.Dsyev(lapack.EVNone, ul, n, slices.Clone(stored), ld, valuesAlone, work, len(work)) {
				t.Fatal("not ok")
			}
			if err := near(valuesAlone, want, 1e-12); err != nil {
				t.Fatalf("n = %d, %c: eigenvalues alone: %v", n, ul, err)
			}
			for column := range n { // A·v = w·v and vᵀ·v = 1 for each column v
				norm := 0.0
				for i := range n {
					sum := 0.0
					for j := range n {
						sum += symmetric[i*ld+j] * vectors[j*ld+column]
					}
					if residual := math.Abs(sum - values[column]*vectors[i*ld+column]); residual > 1e-11 {
						t.Fatalf("n = %d, %c: eigenvector %d: residual %.3g", n, ul, column, residual)
					}
					norm += vectors[i*ld+column] * vectors[i*ld+column]
				}
				if math.Abs(norm-1) > 1e-11 {
					t.Fatalf("n = %d: eigenvector %d has squared norm %v", n, column, norm)
				}
			}
		}
	}
}

// TestEigen checks that [2 1; 1 2] has the eigenvalues 1 and 3, and that a canceled context is an error.
func TestEigen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := blas64.Symmetric{Uplo: blas.Lower, N: 2, Stride: 2, Data: []float64{2, 0, 1, 2}}
	if values, err := Eigen(ctx, lapack.EVNone, a); err != nil || math.Abs(values[0]-1)+math.Abs(values[1]-3) > 1e-15 {
		t.Errorf("eigenvalues %v, error %v", values, err)
	}
	cancel()
	if _, err := Eigen(ctx, lapack.EVNone, a); err == nil {
		t.Error("no error of a canceled context")
	}
}

// TestEigenRange checks eigenvalues and eigenvectors of very small and very large matrices of rank two.
func TestEigenRange(t *testing.T) {
	const n = 40
	for _, scale := range []float64{1e-300, 1e-200, 1e-125, 1, 1e200} {
		for _, job := range []lapack.EVJob{lapack.EVNone, lapack.EVCompute} {
			a := blas64.Symmetric{Uplo: blas.Upper, N: n, Stride: n, Data: make([]float64, n*n)}
			for i := range n { // eigenvalues (n−1)·scale, and scale/1e130 in a separate block
				for j := range n {
					a.Data[i*n+j] = scale
				}
			}
			for i := range n {
				a.Data[i*n+n-1], a.Data[(n-1)*n+i] = 0, 0
			}
			a.Data[n*n-1] = scale * 1e-130
			values, err := Eigen(t.Context(), job, a)
			if err != nil || math.Abs(values[n-1]/scale-(n-1)) > 1e-12 || math.Abs(values[0]/scale) > 1e-12 {
				t.Errorf("size %g, %c: %v, %v", scale, job, values, err)
				continue
			}
			if job == lapack.EVCompute && math.Abs(math.Abs(a.Data[n-1])-1/math.Sqrt(n-1)) > 1e-12 {
				t.Errorf("size %g: the eigenvector begins with %g", scale, a.Data[n-1])
			}
		}
	}
}

// TestDsyevNotFinite checks that a matrix with a NaN or infinite entry in the triangle that is read has no
// eigenvalues.
func TestDsyevNotFinite(t *testing.T) {
	onEachBLAS(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 40} {
			for _, jobz := range []lapack.EVJob{lapack.EVNone, lapack.EVCompute} {
				for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
					for _, position := range []int{0, (n - 1) * n, n*n - 1} {
						a, values, work := waveMatrix[float64](n, n), make([]float64, n), make([]float64, 3*n)
						a[position] = bad
						if (libraryLAPACK{}).Dsyev(jobz, blas.Lower, n, a, n, values, work, len(work)) ||
							values[0] == values[0] {
							t.Errorf("n = %d, %v at %d: eigenvalues %v", n, bad, position, values)
						}
					}
				}
			}
		}
	})
}

// countdownContext is a context that is canceled after the given number of calls of Err.
type countdownContext struct {
	context.Context
	calls int
}

// Err implements context.Context.
func (c *countdownContext) Err() error {
	if c.calls--; c.calls < 0 {
		return context.Canceled
	}
	return nil
}

// TestEigenCanceled checks that the reduction to tridiagonal form has the bits of gonum's, and that it ends between two
// panels if the context is canceled.
func TestEigenCanceled(t *testing.T) {
	useBLAS(t, nil)
	random := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 31, 33, 130, 200} {
		a, ld := randomDefinite(random, n, n+1), n+1
		workspaceSize := []float64{0}
		ref := libraryLAPACK{}
		ref.Dsyev(lapack.EVNone, blas.Lower, n, nil, ld, nil, workspaceSize, -1)
		lwork := int(workspaceSize[0]) - 2*n
		var reductions [2][]float64
		for k := range reductions {
			reduced, diagonal, subdiagonal := slices.Clone(a), make([]float64, n), make([]float64, n)
			tau, work := make([]float64, n), make([]float64, lwork)
			if k == 0 {
				ref.Dsytrd(blas.Lower, n, reduced, ld, diagonal, subdiagonal[:n-1], tau[:n-1], work, lwork)
			} else if symmetric := (blas64.Symmetric{Uplo: blas.Lower, N: n, Data: reduced,
				Stride: ld}); !ref.reduce(t.Context(), symmetric,
				tridiagonal{diagonal, subdiagonal[:n-1], tau[:n-1]}, work) {
				t.Fatal("the reduction was canceled")
			}
			reductions[k] = slices.Concat(reduced, diagonal, subdiagonal, tau)
		}
		if !slices.Equal(reductions[0], reductions[1]) {
			t.Errorf("n = %d: the reduction differs from gonum's", n)
		}
	}
	const n = 200
	a := randomDefinite(random, n, n)
	overwritten := slices.Clone(a)
	_, err := Eigen(&countdownContext{t.Context(), 4}, lapack.EVNone, blas64.Symmetric{Uplo: blas.Lower, N: n,
		Data: overwritten, Stride: n})
	if !errors.Is(err, context.Canceled) || slices.Equal(overwritten, a) || overwritten[(n-3)*n+n-4] == 0 {
		t.Errorf("canceled at the fifth check: error %v, matrix changed %v", err, !slices.Equal(overwritten, a))
	}
}

// TestOpenBLASEigenvectorsCanceled checks that Eigen with OpenBLAS returns the error of a context that is canceled
// before any of its checks: by ForEach, before each of six panels of 32 columns, before the only call for the
// eigenvectors, and twice more by ForEach.
func TestOpenBLASEigenvectorsCanceled(t *testing.T) {
	useBLAS(t, requireOpenBLAS(t))
	const n, checks = 200, 1 + 6 + 1 + 2
	for _, ul := range []blas.Uplo{blas.Lower, blas.Upper} {
		for calls := range checks + 1 {
			a := blas64.Symmetric{Uplo: ul, N: n, Data: randomDefinite(rand.New(rand.NewPCG(3, 4)), n, n), Stride: n}
			_, err := Eigen(&countdownContext{t.Context(), calls}, lapack.EVCompute, a)
			if isCanceled := calls < checks; errors.Is(err, context.Canceled) != isCanceled {
				t.Errorf("%c, canceled at check %d of %d: error %v", ul, calls, checks, err)
			}
		}
	}
}
