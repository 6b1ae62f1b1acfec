package gram

import (
	"math"
	"math/big"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestRounding compares products of a recomputed K with products in big.Float. The error must be at most Rounding,
// Rounding must follow its documented formula, and it must not be needlessly large. The cases include a zero K and a
// zero column.
func TestRounding(t *testing.T) {
	const n, lambda = 150, 0.5
	for _, problem := range []struct {
		k     kernel.Kernel
		x     *points.Dense
		limit float64 // upper limit of Rounding, relative to √(tr K)·Σ √k_ii|c_i|
	}{
		{kernel.Gaussian{Sigma: 1}, normalPoints(n, 3), 1e-12},
		{kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 3}, normalPoints(n, 3), 1e-12},
		{kernel.Polynomial{Gamma: 1, Degree: 2}, points.NewDense(n, 3, nil), 0},
	} {
		m := testkit.Must(New(t.Context(), problem.k, problem.x, lambda, nil))
		if m.Certified() != nil {
			t.Errorf("%v: a matrix stored as %v is certified", problem.k, m.Storage())
		}
		m = m.Exact(1e-9)
		c, y := mat.NewDense(n, 2, nil), mat.NewDense(n, 2, nil)
		for i := range n {
			c.Set(i, 0, math.Ldexp(rng.New(2).Normal(uint64(i)), -i%20))
		}
		testkit.OK(t, m.MulTo(t.Context(), y, c))
		var errorSq, size, norm float64 // ‖fl(Ac)−Ac‖₂², Σ √k_ii|c_i|, ‖c‖₂²
		for i := range n {
			want := new(big.Float).SetPrec(200).SetFloat64(lambda)
			want.Mul(want, big.NewFloat(c.At(i, 0)))
			for j := range n {
				k := new(big.Float).SetPrec(200).SetFloat64(problem.k.Eval(problem.x.Row(i), problem.x.Row(j)))
				want.Add(want, k.Mul(k, big.NewFloat(c.At(j, 0))))
			}
			deviation, _ := want.Sub(want, big.NewFloat(y.At(i, 0))).Float64()
			errorSq += deviation * deviation
			size += math.Sqrt(problem.k.Eval(problem.x.Row(i), problem.x.Row(i))) * math.Abs(c.At(i, 0))
			norm += c.At(i, 0) * c.At(i, 0)
		}
		bound := m.Rounding(c)
		if limit := problem.limit*math.Sqrt(m.Trace())*size +
			0x1p-50*lambda*math.Sqrt(norm); !(math.Sqrt(errorSq) <= bound[0] &&
			bound[0] <= limit) {
			t.Errorf("%v: error %.3g, bound %.3g, want a bound of at most %.3g", problem.k, math.Sqrt(errorSq),
				bound[0],
				limit)
		}
		// The documented formula, for 150 points in tiles of 128.
		root := 0.0
		if size > 0 {
			root = size / math.Sqrt(m.Trace())
		}
		if want := (m.Choice().Error+(128+2+8)*0x1p-53*m.Trace())*root +
			4*0x1p-53*lambda*math.Sqrt(norm); math.Abs(bound[0]-want) > 1e-12*want {
			t.Errorf("%v: bound %g, want %g", problem.k, bound[0], want)
		}
		c.Scale(0x1p-40, c)
		testkit.Equal(t, m.Rounding(c)[0], 0x1p-40*bound[0], problem.k, bound[0])
		testkit.Equal(t, bound[1], 0, problem.k)
	}
}

// TestRanksStridedColumns checks that Columns on several ranks writes into a part of a wider matrix and leaves the
// other columns unchanged.
func TestRanksStridedColumns(t *testing.T) {
	const n = 130
	idx := []int{129, 0, 64}
	x := normalPoints(n, 3)
	for _, size := range []int{2, 3} {
		onRanks(size, func(rank comm.Comm) { checkStridedColumns(t, x, idx, rank) })
	}
}

// checkStridedColumns runs TestRanksStridedColumns on one rank.
func checkStridedColumns(t *testing.T, x *points.Dense, idx []int, rank comm.Comm) {
	n := x.N
	m, err := New(t.Context(), kernel.Gaussian{Sigma: 1}, x, 0.1, &Options{Storage: Float64, TileSize: 32, Comm: rank})
	if err != nil {
		t.Error(err)
		return
	}
	want, bordered := mat.NewDense(n, len(idx), nil), mat.NewDense(n, len(idx)+2, nil)
	for i := range bordered.RawMatrix().Data {
		bordered.RawMatrix().Data[i] = -1
	}
	if err := m.Columns(t.Context(), idx, want); err != nil {
		t.Error(err)
	}
	if err := m.Columns(t.Context(), idx, bordered.Slice(0, n, 1, 1+len(idx)).(*mat.Dense)); err != nil {
		t.Error(err)
	}
	if !mat.Equal(bordered.Slice(0, n, 1, 1+len(idx)), want) {
		t.Errorf("rank %d: columns in a wider matrix differ", rank.Rank())
	}
	for _, j := range []int{0, len(idx) + 1} {
		testkit.Equal(t, blas64.Asum(bordered.ColView(j).(*mat.VecDense).RawVector()), float64(n), rank.Rank(), j)
	}
}

// TestCertified compares products of Certified with products in big.Float: the error must be at most Rounding. The
// points are near and far from the origin, and the matrix is formed at once or extended. Certified must use the
// stored tiles.
func TestCertified(t *testing.T) {
	const n, first, lambda = 150, 100, 0.5
	for shift, k := range map[float64]kernel.Kernel{0: kernel.Gaussian{Sigma: 1}, 1e4: kernel.Gaussian{Sigma: 1},
		1: kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 3}, 2: kernel.Laplacian{Sigma: 2}} {
		x := normalPoints(n, 3)
		for i := range x.Data {
			x.Data[i] += shift
		}
		complete := testkit.Must(New(t.Context(), k, x, lambda, &Options{Storage: Float64}))
		leading := testkit.Must(New(t.Context(), k, x.Slice(0, first), lambda, &Options{Storage: Float64, TileSize: complete.choice.Tile}))
		for name, m := range map[string]*Matrix{"whole": complete,
			"extended": testkit.Must(leading.Extend(t.Context(), x, nil))} {
			certified := m.Certified()
			if choice := certified.Choice(); !choice.Certain || choice.Error > 1e-3 || m.choice.Certain ||
				certified.ops != m.ops {
				t.Fatalf("%v, %s: %+v", k, name, choice)
			}
			vector, y := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
			for i := range n {
				vector.Set(i, 0, rng.New(2).Normal(uint64(i)))
			}
			testkit.OK(t, certified.MulTo(t.Context(), y, vector))
			var errorSq float64
			for i := range n {
				want := new(big.Float).SetPrec(200).Mul(big.NewFloat(lambda), big.NewFloat(vector.At(i, 0)))
				for j := range n {
					entry := new(big.Float).SetPrec(200).SetFloat64(k.Eval(x.Row(i), x.Row(j)))
					want.Add(want, entry.Mul(entry, big.NewFloat(vector.At(j, 0))))
				}
				deviation, _ := want.Sub(want, big.NewFloat(y.At(i, 0))).Float64()
				errorSq += deviation * deviation
			}
			if bound := certified.Rounding(vector)[0]; !(math.Sqrt(errorSq) <= bound) || bound > 1e-2 {
				t.Errorf("%v, %s: error %g, bound %g", k, name, math.Sqrt(errorSq), bound)
			}
		}
	}
}
