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

// weigh returns the points with weights from 1e-4 to 1e4.
func weigh(x points.Points) *points.Weighted {
	n, _ := x.Dims()
	rnd := rand.New(rand.NewPCG(7, 9))
	w := make([]float64, n)
	for i := range w {
		w[i] = math.Pow(10, 8*rnd.Float64()-4)
	}
	return testkit.Must(points.Weigh(x, w))
}

// TestWeighted: of weighted points K is SKS, for all kernels, kinds of points, storages and tiles: products, columns,
// parts, blocks, diagonal and trace, and the error that is claimed.
func TestWeighted(t *testing.T) {
	const n, lambda = 137, 0.5
	precomputed := testkit.Must(kernel.NewPrecomputed(points.NewDense(n, n, full(kernels[0],
		draw(3, n, 4, 0.7)[0]).RawMatrix().Data)))
	for ki, k := range append(kernels[:len(kernels):len(kernels)], precomputed) {
		for xi, base := range draw(3, n, 4, 0.7) {
			if kernel.AsPrecomputed(k) != nil {
				base = kernel.Rows(n)
			}
			x := weigh(base)
			want := full(k, base)
			want.Apply(func(i, j int, v float64) float64 { return x.Factors[i] * v * x.Factors[j] }, want)
			for _, o := range []gram.Options{{Storage: gram.Float64}, {Storage: gram.Float32}, {Storage: gram.Recompute},
				{Storage: gram.Fixed16}, {Storage: gram.Float64, Tiles: gram.SparseTiles}, {}} {
				narrow := o.Storage == gram.Fixed16 || o.Tiles == gram.SparseTiles
				if narrow && ki > 0 || o.Storage == gram.Float32 && kernel.AsPrecomputed(k) != nil {
					continue
				}
				o.TileSize = 32
				l := lambda
				if narrow {
					l = 1e4
				}
				m, err := gram.New(ctx, k, x, l, &o)
				if err != nil {
					t.Errorf("%v, %v: %v", k, o.Storage, err)
					continue
				}
				name := fmt.Sprintf("kernel %d, points %d, %v, %v", ki, xi, m.Storage(), o.Tiles)
				got := mat.NewDense(n, n, nil)
				testkit.OK(t, m.DenseTo(ctx, got))
				var e mat.Dense
				e.Sub(got, want)
				if norm, most := power(&e), m.Choice().Error; !(norm <= most*(1+1e-9)+1e-12*mat.Norm(want, 2)) {
					t.Errorf("%s: ‖E‖₂ = %g, claimed %g", name, norm, most)
				}
				sameWeighted(t, name, m, got, k)
			}
		}
	}
}

// sameWeighted compares what m says of K with its columns, and K recomputed with K itself.
func sameWeighted(t *testing.T, name string, m *gram.Matrix, k *mat.Dense, of kernel.Kernel) {
	n, _ := k.Dims()
	exact := m.Exact(1e-9)
	v, y, want, off := normal(5, n, 2), mat.NewDense(n, 2, nil), new(mat.Dense), new(mat.Dense)
	want.Mul(k, v)
	tol := 1e-12
	if m.Storage() == gram.Float32 || m.Storage() == gram.Fixed16 || m.Storage() == gram.Recompute {
		tol = 1e-5
	}
	for a, e := range map[*gram.Matrix]float64{m: 0, exact: m.Choice().Error + exact.Choice().Error} {
		testkit.OK(t, a.KMulTo(ctx, y, v))
		if off.Sub(y, want); !(mat.Norm(off, 2) <= e*mat.Norm(v, 2)+tol*mat.Norm(want, 2)) {
			t.Errorf("%s: a product of %v is off by %g", name, a.Choice(), mat.Norm(off, 2))
		}
	}
	whole, part, block := mat.NewDense(n, n, nil), mat.NewDense(3, 2, nil), make([]float64, 9)
	testkit.OK(t, exact.DenseTo(ctx, whole))
	rows, cols := []int{40, 3, 99}, []int{7, 136}
	testkit.OK(t, exact.Part(ctx, rows, cols, part.RawMatrix()))
	exact.Block(block, 3, rows, new(gram.BlockWorkspace))
	near := func(what string, got, want float64, i, j int) {
		if !(math.Abs(got-want) <= 1e-12*math.Sqrt(whole.At(i, i)*whole.At(j, j))) {
			t.Errorf("%s: %s (%d, %d) is %g, want %g", name, what, i, j, got, want)
		}
	}
	for a, i := range rows {
		for b, j := range cols {
			near("part", part.At(a, b), whole.At(i, j), i, j)
		}
		for b := a; b < 3; b++ {
			near("block", block[a*3+b], whole.At(i, rows[b]), i, rows[b])
		}
	}
	var trace float64
	for i, d := range m.Diag() {
		near("diagonal", d, whole.At(i, i), i, i)
		trace += d
	}
	testkit.Near(t, m.Trace(), trace, 1e-9*math.Abs(trace), name, "trace")
	if e := exact.EntryError(); kernel.BuiltIn(of) && !(e > 0 && e < 1e-9) {
		t.Errorf("%s: entry error %g", name, e)
	}
}

// TestWeightedEstimate: the error predicted from a sample is that of all rows to a factor, above it, however unequal
// the weights: of float32 tiles of points far from zero, whose errors are alike along rows, and near, whose errors are
// independent.
func TestWeightedEstimate(t *testing.T) {
	const n = 1300
	for _, away := range []float64{0, 8} {
		for wi, weight := range []func(i int) float64{
			func(i int) float64 { return 3 },
			func(i int) float64 { return map[bool]float64{true: 40, false: 0.5}[i%80 == 3] },
			func(i int) float64 { return math.Exp(6 * math.Sin(float64(i*i))) },
			func(i int) float64 { return map[bool]float64{true: 1e5, false: 1}[i == 777] },
		} {
			x := points.NewDense(n, 3, normal(2, n, 3).RawMatrix().Data)
			w := make([]float64, n)
			for i := range w {
				w[i] = weight(i)
				x.Row(i)[0] += away
			}
			weighted := testkit.Must(points.Weigh(x, w))
			o := &gram.Options{Storage: gram.Float32, Accuracy: 1e9, Tiles: gram.DenseTiles}
			m := testkit.Must(gram.New(ctx, kernel.Gaussian{Sigma: 2}, weighted, 1, o))
			got, want := mat.NewDense(n, n, nil), mat.NewDense(n, n, nil)
			testkit.OK(t, m.DenseTo(ctx, got))
			testkit.OK(t, m.Exact(1e-9).DenseTo(ctx, want))
			got.Sub(got, want)
			norm := power(got)
			if e := m.Choice().Error; !(norm <= e && e <= 30*norm) {
				t.Errorf("%g away, weights %d: ‖E‖₂ = %.3g, predicted %.3g", away, wi, norm, e)
			}
		}
	}
}

// power returns ‖A‖₂ by power iteration.
func power(a *mat.Dense) (norm float64) {
	n, _ := a.Dims()
	v := normal(9, n, 1)
	for range 20 {
		v.Scale(1/mat.Norm(v, 2), v)
		var w mat.Dense
		w.Mul(a, v)
		norm = mat.Norm(&w, 2)
		v.Copy(&w)
	}
	return norm
}
