package gram_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// withRandomWeights gives the points weights from 1e-4 to 1e4.
func withRandomWeights(x points.Points) *points.Weighted {
	n, _ := x.Dims()
	g := rand.New(rand.NewPCG(7, 9))
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = math.Pow(10, 8*g.Float64()-4)
	}
	return testkit.Must(points.NewWeighted(x, weights))
}

// TestWeighted checks that the matrix of weighted points is SKS, S = diag(√w_i), for all kernels, kinds of points,
// storages and tiles. It compares products, parts, blocks, the diagonal and the trace with S·K·S from Eval, and ‖E‖₂
// with the reported error.
func TestWeighted(t *testing.T) {
	const n, lambda = 137, 0.5
	precomputed := testkit.Must(kernel.NewPrecomputed(points.NewDense(n, n, evalMatrix(kernels[0],
		pointsInFormats(3, n, 4, 0.7)[0]).RawMatrix().Data)))
	for kernelIndex, k := range append(kernels[:len(kernels):len(kernels)], precomputed) {
		for format, base := range pointsInFormats(3, n, 4, 0.7) {
			if kernel.AsPrecomputed(k) != nil {
				base = kernel.PrecomputedPoints(n)
			}
			x := withRandomWeights(base)
			want := evalMatrix(k, base)
			want.Apply(func(i, j int, v float64) float64 { return x.Factors[i] * v * x.Factors[j] }, want)
			for _, opts := range []gram.Options{{Storage: gram.Float64}, {Storage: gram.Float32}, {Storage: gram.Recompute},
				{Storage: gram.Fixed16}, {Storage: gram.Float64, Tiles: gram.SparseTiles}, {}} {
				inexact := opts.Storage == gram.Fixed16 || opts.Tiles == gram.SparseTiles
				if inexact && kernelIndex > 0 || opts.Storage == gram.Float32 && kernel.AsPrecomputed(k) != nil {
					continue
				}
				opts.TileSize = 32
				ridge := lambda
				if inexact {
					ridge = 1e4
				}
				m, err := gram.New(ctx, k, x, ridge, &opts)
				if err != nil {
					t.Errorf("%v, %v: %v", k, opts.Storage, err)
					continue
				}
				name := fmt.Sprintf("kernel %d, points %d, %v, %v", kernelIndex, format, m.Storage(), opts.Tiles)
				got := mat.NewDense(n, n, nil)
				testkit.OK(t, m.DenseTo(ctx, got))
				var difference mat.Dense
				difference.Sub(got, want)
				norm, claimed := spectralNorm(&difference), m.Choice().Error
				if !(norm <= claimed*(1+1e-9)+1e-12*mat.Norm(want, 2)) {
					t.Errorf("%s: ‖E‖₂ = %g, claimed %g", name, norm, claimed)
				}
				checkWeighted(t, name, m, got, k)
			}
		}
	}
}

// checkWeighted compares products, submatrices, diagonal and trace of m and of its exact matrix with the weighted
// kernel matrix k of the given kernel.
func checkWeighted(t *testing.T, name string, m *gram.Matrix, k *mat.Dense, kernelOfM kernel.Kernel) {
	n, _ := k.Dims()
	exact := m.Exact(1e-9)
	v, y, want, difference := gaussianMatrix(5, n, 2), mat.NewDense(n, 2, nil), new(mat.Dense), new(mat.Dense)
	want.Mul(k, v)
	tol := 1e-12
	if m.Storage() == gram.Float32 || m.Storage() == gram.Fixed16 || m.Storage() == gram.Recompute {
		tol = 1e-5
	}
	for matrix, allowed := range map[*gram.Matrix]float64{m: 0, exact: m.Choice().Error + exact.Choice().Error} {
		testkit.OK(t, matrix.KMulTo(ctx, y, v))
		if difference.Sub(y, want); !(mat.Norm(difference, 2) <= allowed*mat.Norm(v, 2)+tol*mat.Norm(want, 2)) {
			t.Errorf("%s: a product of %v is off by %g", name, matrix.Choice(), mat.Norm(difference, 2))
		}
	}
	exactK, part, block := mat.NewDense(n, n, nil), mat.NewDense(3, 2, nil), make([]float64, 9)
	testkit.OK(t, exact.DenseTo(ctx, exactK))
	rows, cols := []int{40, 3, 99}, []int{7, 136}
	testkit.OK(t, exact.Submatrix(ctx, rows, cols, part.RawMatrix()))
	exact.PrincipalSubmatrix(block, 3, rows, new(gram.SubmatrixWorkspace))
	checkNear := func(entryName string, got, want float64, i, j int) {
		if !(math.Abs(got-want) <= 1e-12*math.Sqrt(exactK.At(i, i)*exactK.At(j, j))) {
			t.Errorf("%s: %s (%d, %d) is %g, want %g", name, entryName, i, j, got, want)
		}
	}
	for a, i := range rows {
		for b, j := range cols {
			checkNear("part", part.At(a, b), exactK.At(i, j), i, j)
		}
		for b := a; b < 3; b++ {
			checkNear("block", block[a*3+b], exactK.At(i, rows[b]), i, rows[b])
		}
	}
	var trace float64
	for i, d := range m.Diag() {
		checkNear("diagonal", d, exactK.At(i, i), i, i)
		trace += d
	}
	testkit.Near(t, m.Trace(), trace, 1e-9*math.Abs(trace), name, "trace")
	if entryError := exact.EntryError(); kernel.BuiltIn(kernelOfM) && !(entryError > 0 && entryError < 1e-9) {
		t.Errorf("%s: entry error %g", name, entryError)
	}
}

// TestWeightedEstimate checks that the error predicted from a sample of the rows is at least the true ‖E‖₂ and at
// most 30 times it, however unequal the weights are. It uses float32 tiles of points far from zero, where the errors
// within a row are alike, and of points near zero, where they are independent.
func TestWeightedEstimate(t *testing.T) {
	const n = 1300
	for _, shift := range []float64{0, 8} {
		for weightsIndex, weight := range []func(i int) float64{
			func(i int) float64 { return 3 },
			func(i int) float64 { return ifElse(i%80 == 3, 40, 0.5) },
			func(i int) float64 { return math.Exp(6 * math.Sin(float64(i*i))) },
			func(i int) float64 { return ifElse(i == 777, 1e5, 1) },
		} {
			x := points.NewDense(n, 3, gaussianMatrix(2, n, 3).RawMatrix().Data)
			weights := make([]float64, n)
			for i := range weights {
				weights[i] = weight(i)
				x.Row(i)[0] += shift
			}
			weighted := testkit.Must(points.NewWeighted(x, weights))
			opts := &gram.Options{Storage: gram.Float32, Accuracy: 1e9, Tiles: gram.DenseTiles}
			m := testkit.Must(gram.New(ctx, kernel.Gaussian{Sigma: 2}, weighted, 1, opts))
			got, want := mat.NewDense(n, n, nil), mat.NewDense(n, n, nil)
			testkit.OK(t, m.DenseTo(ctx, got))
			testkit.OK(t, m.Exact(1e-9).DenseTo(ctx, want))
			got.Sub(got, want)
			norm := spectralNorm(got)
			if predicted := m.Choice().Error; !(norm <= predicted && predicted <= 30*norm) {
				t.Errorf("points shifted by %g, weights %d: ‖E‖₂ = %.3g, predicted %.3g", shift, weightsIndex, norm,
					predicted)
			}
		}
	}
}

// ifElse returns a if the condition holds and b otherwise.
func ifElse(condition bool, a, b float64) float64 {
	if condition {
		return a
	}
	return b
}

// spectralNorm returns ‖A‖₂ by power iteration.
func spectralNorm(a *mat.Dense) (norm float64) {
	n, _ := a.Dims()
	v := gaussianMatrix(9, n, 1)
	for range 20 {
		v.Scale(1/mat.Norm(v, 2), v)
		var w mat.Dense
		w.Mul(a, v)
		norm = mat.Norm(&w, 2)
		v.Copy(&w)
	}
	return norm
}
