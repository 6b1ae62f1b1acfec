package gram

import (
	"math"
	"math/big"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// onRanks runs body on size ranks, each of which is a goroutine.
func onRanks(size int, body func(rank comm.Comm)) {
	var wg sync.WaitGroup
	for _, rank := range comm.Local(size, 0) {
		wg.Go(func() { body(rank) })
	}
	wg.Wait()
}

// normalPoints returns n normal points of dimension d.
func normalPoints(n, d int) *points.Dense { return testkit.RandomPoints(1, n, d) }

// TestRanks compares K on 1, 2, 3, 5 and 7 ranks, and without ranks on 1, 2, 3 and 8 threads, with one process.
// Products, columns and the dense matrix must have the same bits, and each rank must store about its share of the
// tiles.
func TestRanks(t *testing.T) {
	const n, d, cols = 300, 5, 3
	b := mat.NewDense(n, cols, nil)
	rng.New(2).Sub("b").Normals(b.RawMatrix().Data, 0)
	idx := []int{299, 0, 17, 64, 150}
	defer accel.SetThreads(accel.Threads())
	bytePoints := points.NewBytes(n, d, 1.0/255, nil)
	for i := range bytePoints.Data {
		bytePoints.Data[i] = uint8(i * i)
	}
	bits := points.NewBytes(n, d, 1, nil)
	for i := range bits.Data {
		bits.Data[i] = uint8(i*i/7) & 1
	}
	for _, problem := range []struct {
		k kernel.Kernel
		x points.Points
	}{
		{kernel.Gaussian{Sigma: 2}, normalPoints(n, d)},
		{kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}, normalPoints(n, d)},
		{kernel.Gaussian{Sigma: 2}, bytePoints}, {kernel.Matern32{Sigma: 1}, bytePoints},
		{kernel.Gaussian{Sigma: 2}, bits},
	} {
		k, x := problem.k, problem.x
		for _, storage := range []Storage{Float64, Float32, Recompute, Fixed16} {
			if storage == Fixed16 && !kernel.Bounded01(k) {
				continue
			}
			opts := Options{Storage: storage, TileSize: 64}
			oneProcess := testkit.Must(New(t.Context(), k, x, 0.5, &opts))
			want, wantCols, wantAll := mat.NewDense(n, cols, nil), mat.NewDense(n, len(idx), nil),
				mat.NewDense(n, n, nil)
			testkit.OK(t, oneProcess.MulTo(t.Context(), want, b))
			_ = oneProcess.Columns(t.Context(), idx, wantCols)
			_ = oneProcess.DenseTo(t.Context(), wantAll)
			for _, threads := range []int{1, 2, 3, 8} {
				accel.SetThreads(threads)
				y := mat.NewDense(n, cols, nil)
				if err := oneProcess.MulTo(t.Context(), y, b); err != nil || !mat.Equal(y, want) {
					t.Errorf("%v %v: other bits on %d threads, %v", k, storage, threads, err)
				}
			}
			for i, size := range []int{1, 2, 3, 5, 7} {
				accel.SetThreads(1 + i%3)
				var tileBytes [7]int64
				onRanks(size, func(rank comm.Comm) {
					opts := opts
					opts.Comm = rank
					m, err := New(t.Context(), k, x, 0.5, &opts)
					if err != nil {
						t.Error(err)
						return
					}
					y, columns := mat.NewDense(n, cols, nil), mat.NewDense(n, len(idx), nil)
					denseK := mat.NewDense(n, n, nil)
					before, entryWords := rank.Traffic(), int64(1)
					if err := m.MulTo(t.Context(), y, b); err != nil {
						t.Error(err)
					}
					if storage == Float64 {
						entryWords = 2
					}
					traffic, bytes := rank.Traffic().Sub(before), 8*(entryWords*n*cols+2)
					if traffic.Bytes != bytes || traffic.Calls != 1 {
						t.Errorf("%+v for a product, want %d bytes in one call", traffic, bytes)
					}
					if err := m.Columns(t.Context(), idx, columns); err != nil {
						t.Error(err)
					}
					if err := m.DenseTo(t.Context(), denseK); err != nil {
						t.Error(err)
					}
					if !mat.Equal(y, want) || !mat.Equal(columns, wantCols) || !mat.Equal(denseK, wantAll) {
						t.Errorf("%v %v: rank %d of %d has other bits than one process", k, storage, rank.Rank(), size)
					}
					tileBytes[rank.Rank()] = m.ops.tileBytes()
				})
				if t.Failed() {
					return
				}
				var sum int64
				for rank := range size {
					if sum += tileBytes[rank]; tileBytes[rank] > oneProcess.ops.tileBytes()/int64(size)+8*64*64 {
						t.Errorf("%v: rank %d of %d holds %d of %d bytes", storage, rank, size, tileBytes[rank],
							oneProcess.ops.tileBytes())
					}
				}
				testkit.Equal(t, sum, oneProcess.ops.tileBytes(), storage, size)
			}
		}
	}
}

// TestExactSums compares products with float64 tiles with sums in big.Float. The error may be the rounding of the sums
// within a tile of width w, (w+1)u·Σ_j|K_ij||x_j|, the rounding of λx and of its sum with them, and 2⁻⁹⁹·r_i·Σ_j
// r_j|x_j| for each block, where r_i is √k_ii, but at least 2⁻³⁰ times the largest. In the first problem K is near the
// identity and x has entries of all sizes: a sum in one word of 62 bits, with an error of 2⁻⁵⁹ relative to the last
// sum, would fail. In the second problem the entries of K differ by a factor of 10⁴⁰: one bound for all rows would
// fail.
func TestExactSums(t *testing.T) {
	const n, width = 400, 16
	const u = 0x1p-53
	scaled := normalPoints(n, 3)
	for i := range n {
		for c := range 3 {
			scaled.Data[3*i+c] = math.Ldexp(scaled.Data[3*i+c], i%24)
		}
	}
	for _, problem := range []struct {
		k kernel.Kernel
		x *points.Dense
	}{{kernel.Gaussian{Sigma: 0.05}, normalPoints(n, 3)}, {kernel.Polynomial{Gamma: 1, Degree: 3}, scaled}} {
		m := testkit.Must(New(t.Context(), problem.k, problem.x, 0.5, &Options{Storage: Float64, TileSize: width}))
		src, y, k := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil), mat.NewDense(n, n, nil)
		testkit.OK(t, m.DenseTo(t.Context(), k))
		root := func(i int) float64 { return math.Sqrt(max(k.At(i, i), 0x1p-60*mat.Max(k))) }
		var norm float64 // Σ r_j|x_j|
		for i := range n {
			src.Set(i, 0, math.Ldexp(rng.New(2).Normal(uint64(i)), -i%60))
			norm += root(i) * math.Abs(src.At(i, 0))
		}
		testkit.OK(t, m.MulTo(t.Context(), y, src))
		for i := range n {
			want, size := new(big.Float).SetPrec(300), 0.5*math.Abs(src.At(i, 0))
			for j := range n {
				want.Add(want, new(big.Float).SetPrec(300).Mul(big.NewFloat(k.At(i, j)), big.NewFloat(src.At(j, 0))))
				size += math.Abs(k.At(i, j) * src.At(j, 0))
			}
			want.Add(want, new(big.Float).SetPrec(300).Mul(big.NewFloat(0.5), big.NewFloat(src.At(i, 0))))
			difference, _ := want.Sub(want, big.NewFloat(y.At(i, 0))).Float64()
			bound := (width+4)*u*size + (n/width+2)*0x1p-99*root(i)*norm*1.002
			if math.Abs(difference) > bound {
				t.Fatalf("%v: row %d has an error of %.3g, more than %.3g", problem.k, i, difference, bound)
			}
		}
	}
}

// largeOffDiagonal is not a valid kernel: its entries off the diagonal are larger than its diagonal.
type largeOffDiagonal struct{}

func (largeOffDiagonal) Eval(x, z []float64) float64 {
	if x[0] == z[0] {
		return 1
	}
	return 1e9
}
func (largeOffDiagonal) String() string { return "tilted" }

// TestRanksNotFinite checks that on two ranks a NaN in one vector makes the product with this vector NaN and no other,
// and that a kernel matrix that is not positive semidefinite is an error.
func TestRanksNotFinite(t *testing.T) {
	const n = 100
	x := normalPoints(n, 2)
	onRanks(2, func(rank comm.Comm) {
		m, err := New(t.Context(), kernel.Gaussian{Sigma: 1}, x, 1, &Options{Storage: Float64, Comm: rank})
		if err != nil {
			t.Error(err)
			return
		}
		b := mat.NewDense(n, 2, nil)
		b.Set(3, 0, math.NaN())
		b.Set(4, 1, 1)
		y := mat.NewDense(n, 2, nil)
		if err := m.MulTo(t.Context(), y, b); err != nil {
			t.Error(err)
		}
		if !math.IsNaN(y.At(9, 0)) || math.IsNaN(y.At(9, 1)) {
			t.Errorf("a product with NaN is %v, one with another vector %v", y.At(9, 0), y.At(9, 1))
		}
		m, err = New(t.Context(), largeOffDiagonal{}, x, 1, &Options{Storage: Float64, Comm: rank})
		if err != nil {
			t.Error(err)
			return
		}
		if err := m.MulTo(t.Context(), y, mat.NewDense(n, 2, nil)); err != nil {
			t.Error(err)
		}
		for i := range n {
			b.Set(i, 0, 1)
		}
		testkit.Fails(t, m.MulTo(t.Context(), y, b), "not positive semi-definite")
	})
}

// TestRanksMemory checks that a memory limit that is too small for K suffices for the share of each of two ranks, and
// that a smaller limit is an error.
func TestRanksMemory(t *testing.T) {
	const n = 1000
	x := normalPoints(n, 2)
	k := kernel.Gaussian{Sigma: 1}
	opts := Options{Storage: Float64, Memory: accel.Budget{Limit: 4 << 20}}
	if _, err := New(t.Context(), k, x, 1, &opts); err == nil {
		t.Fatalf("4n² bytes fit in %v", opts.Memory)
	}
	onRanks(2, func(rank comm.Comm) {
		opts := opts
		opts.Comm = rank
		if _, err := New(t.Context(), k, x, 1, &opts); err != nil {
			t.Error(err)
		}
		opts.Memory.Limit = 1 << 20
		testkit.Fails(t, testkit.ErrOf(New(t.Context(), k, x, 1, &opts)), "of 1.05 MB are free")
	})
}

// TestDifferentVectorsOnRanks checks that vectors that differ between the ranks are an error, because the product would
// be right for neither vector.
func TestDifferentVectorsOnRanks(t *testing.T) {
	x := normalPoints(300, 3)
	for _, size := range []int{2, 3} {
		onRanks(size, func(rank comm.Comm) { checkDifferentVectors(t, x, rank) })
	}
}

// checkDifferentVectors runs TestDifferentVectorsOnRanks on one rank.
func checkDifferentVectors(t *testing.T, x *points.Dense, rank comm.Comm) {
	t.Helper()
	m, err := New(t.Context(), kernel.Gaussian{Sigma: 1}, x, 0.1, &Options{Comm: rank})
	if err != nil {
		t.Error(err)
		return
	}
	v, y := mat.NewDense(300, 2, nil), mat.NewDense(300, 2, nil)
	v.Set(7, 1, 1)
	if err := m.MulTo(t.Context(), y, v); err != nil {
		t.Error(err)
	}
	if rank.Rank() == 1 {
		v.Set(7, 1, 1+0x1p-52)
	}
	testkit.Fails(t, m.MulTo(t.Context(), y, v), "different vectors")
}
