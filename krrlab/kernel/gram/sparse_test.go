package gram

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// scatteredPoints draws points most of which are far apart, of one of seven kinds.
func scatteredPoints(n, kind int, g rng.Stream) points.Points {
	d := []int{1, 3, 3, 5, 2, 60, 4}[kind]
	x := points.NewDense(n, d, nil)
	g.Normals(x.Data, 0)
	uniform := make([]float64, n)
	g.Sub("u").Float64s(uniform, 0)
	for i := range n {
		row := x.Row(i)
		switch kind {
		case 0: // points on a line
			row[0] *= 30
		case 1: // distant groups
			row[0] += 40 * math.Floor(8*uniform[i])
		case 2: // ten copies of each point
			x.RowTo(row, i-i%10)
		case 3: // features of very different scales
			for c := range row {
				row[c] *= math.Pow(10, float64(c-2))
			}
		case 4: // one dense cluster among noise
			for c := range row {
				if row[c] *= 100; i%3 == 0 {
					row[c] /= 1e4
				}
			}
		case 5: // sparse points of 60 dimensions
			for c := range row {
				if c != i%7 && c != i%11 {
					row[c] = 0
				}
				row[c] *= 8
			}
			return testkit.ToCSR(x)
		case 6: // identical points
			x.RowTo(row, 0)
		}
	}
	return x
}

// evalMatrix returns K from Eval.
func evalMatrix(k kernel.Kernel, x points.Points) *mat.Dense {
	return mat.DenseCopyOf(testkit.KernelMatrix(k, x))
}

// maxRowSumOfDifference returns max_i Σ_j |A_ij−B_ij|, which is at least ‖A−B‖₂ for symmetric matrices.
func maxRowSumOfDifference(a, b *mat.Dense) float64 {
	var difference mat.Dense
	difference.Sub(a, b)
	return mat.Norm(&difference, math.Inf(1))
}

// quarticKernel is a user-defined decreasing radial kernel, 1/(1+r⁴).
type quarticKernel struct{}

func (quarticKernel) Eval(x, z []float64) float64 {
	var sq float64
	for c, v := range x {
		sq += (v - z[c]) * (v - z[c])
	}
	return 1 / (1 + sq*sq)
}

func (quarticKernel) Profile(dst, sq []float64) {
	for i, v := range sq {
		dst[i] = 1 / (1 + v*v)
	}
}
func (quarticKernel) Slope() float64 { return math.Inf(1) }
func (quarticKernel) String() string { return "1/(1+r⁴)" }
func (quarticKernel) Decreasing()    {}

// TestSparseTiles compares sparse tiles of every storage with K from Eval. The reported bound must be at least the norm
// of the omitted entries, and products, columns and the dense matrix must be right to the reported error.
func TestSparseTiles(t *testing.T) {
	draws := suite.Scale(4, 72, 72)
	ctx := context.Background()
	kernels := []kernel.Kernel{kernel.Gaussian{Sigma: 1}, kernel.Laplacian{Sigma: 0.5}, kernel.Matern32{Sigma: 0.5},
		kernel.Matern52{Sigma: 0.5}, quarticKernel{}}
	skipped := 0
	for draw := range draws * 7 {
		g := rng.New(uint64(draw)).Sub("narrow")
		k := kernels[(draw/7+draw)%len(kernels)]
		n := 120 + 13*(draw%5)
		x := scatteredPoints(n, draw%7, g)
		truth := evalMatrix(k, x)
		v := mat.NewDense(n, 2, nil)
		g.Sub("v").Normals(v.RawMatrix().Data, 0)
		var want mat.Dense
		want.Mul(truth, v)
		for _, storage := range []Storage{Float64, Float32, Fixed16, Recompute} {
			name := fmt.Sprintf("draw %d: %v of kind %d as %v", draw, k, draw%7, storage)
			m, err := New(ctx, k, x, 0.1, &Options{Storage: storage, Tiles: SparseTiles, TileSize: 16})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c := m.Choice()
			if c.Sparse.FormedShare < 0.5 {
				skipped++
			}
			dense, columns, got := mat.NewDense(n, n, nil), mat.NewDense(n, 3, nil), mat.NewDense(n, 2, nil)
			idx := []int{n - 1, 0, n / 2}
			for _, err := range []error{m.DenseTo(ctx, dense), m.Columns(ctx, idx, columns), m.KMulTo(ctx, got, v)} {
				testkit.OK(t, err)
			}
			// withoutDropped is K without the omitted entries; rounding is the largest error of the stored entries.
			withoutDropped, rounding := mat.DenseCopyOf(truth), 0.0
			for i := range n {
				for j := range n {
					switch v, stored := truth.At(i, j), dense.At(i, j); {
					case stored != 0:
						rounding = max(rounding, math.Abs(v-stored))
					case storage != Fixed16 || v > 1./65535: // 16 bits round smaller entries to 0
						withoutDropped.Set(i, j, 0)
					}
				}
			}
			if limit := 2*(c.Error-c.Sparse.DroppedNorm) + 1e-12; rounding > limit {
				t.Errorf("%s: an entry has an error of %.3g, bound %.3g", name, rounding, limit)
			}
			// The last term allows for float32 tiles, in which entries below 2⁻¹⁰⁰ are 0.
			if norm := maxRowSumOfDifference(withoutDropped, truth); norm > c.Sparse.DroppedNorm*(1+1e-12)+1e-25 {
				t.Errorf("%s: a row of the omitted entries sums to %.3g, bound %.3g", name, norm, c.Sparse.DroppedNorm)
			}
			rounding = max(rounding, 1e-5*map[Storage]float64{Fixed16: 1}[storage]) * float64(n)
			got.Sub(got, &want)
			limit := (c.Sparse.DroppedNorm + rounding + 4e-7*float64(n)) * mat.Norm(v, 2)
			if errorNorm := mat.Norm(got, 2); errorNorm > limit {
				t.Errorf("%s: a product has an error of %.3g, limit %.3g", name, errorNorm, limit)
			}
			for column, j := range idx {
				for i := range n {
					if d := math.Abs(columns.At(i, column) - dense.At(i, j)); d > 0 &&
						(storage != Recompute || d > c.Sparse.TileCutoff+2*rounding+1e-6) {
						t.Fatalf("%s: column %d has %v in row %d, K has %v", name, j, columns.At(i, column), i,
							dense.At(i, j))
					}
				}
			}
			exact := m.Exact(1e-6)
			testkit.OK(t, exact.KMulTo(ctx, got, v))
			got.Sub(got, &want)
			for column, bound := range exact.Rounding(v) {
				if errorNorm := mat.Norm(got.ColView(column),
					2); errorNorm > bound+0.1*4e-16*mat.Norm(v.ColView(column), 2) {
					t.Errorf("%s: an exact product has an error of %.3g, bound %.3g", name, errorNorm, bound)
				}
			}
			checkPrincipalSubmatrix(t, name, exact, truth)
			testkit.OK(t, exact.DenseTo(ctx, dense))
			dense.Sub(dense, truth)
			if errorNorm := mat.Norm(dense, 2); !(errorNorm <= float64(n)*exact.EntryError()+1e-12) {
				t.Errorf("%s: exact entries have errors of norm %.3g, bound %.3g each", name, errorNorm,
					exact.EntryError())
			}
		}
	}
	if skipped < draws {
		t.Errorf("tiles were omitted from %d matrices only", skipped)
	}
}

// checkPrincipalSubmatrix compares PrincipalSubmatrix of an exact matrix, for consecutive points of the tree order,
// with K from Eval.
func checkPrincipalSubmatrix(t *testing.T, name string, exact *Matrix, truth *mat.Dense) {
	t.Helper()
	const k, ld = blockRows + 9, blockRows + 10
	order, block := exact.TreeOrder(), make([]float64, k*ld)
	exact.PrincipalSubmatrix(block, ld, order[5:5+k], new(SubmatrixWorkspace))
	for a, i := range order[5 : 5+k] {
		for b, j := range order[5+a : 5+k] {
			if got, want := block[a*ld+a+b], truth.At(i, j); !(math.Abs(got-want) <= exact.EntryError()) {
				t.Errorf("%s: entry (%d, %d) of a block is %v, want %v", name, i, j, got, want)
			}
		}
	}
	slices.Sort(order)
	if order = slices.Compact(order); len(order) != exact.tiling.n {
		t.Errorf("%s: TreeOrder has %d different points", name, len(order))
	}
}

// risingKernel is a kernel that claims to decrease, but rises once between the distances that kernel.Check evaluates.
type risingKernel struct{ quarticKernel }

func (k risingKernel) Eval(x, z []float64) float64 {
	var sq float64
	for c, v := range x {
		sq += (v - z[c]) * (v - z[c])
	}
	g := []float64{sq}
	k.Profile(g, g)
	return g[0]
}

func (risingKernel) Profile(dst, sq []float64) {
	for i, v := range sq {
		dst[i] = math.Exp(-v) + 0.1*math.Exp(-math.Pow(v-1e4, 2))
	}
}

// TestFalseClaimOfDecreasing checks that the false claim of a user-defined kernel that it decreases makes the sparse
// tiles wrong, but not the matrix of Exact, which computes the true residuals.
func TestFalseClaimOfDecreasing(t *testing.T) {
	const n = 200
	x := points.NewDense(n, 1, nil)
	for i := range n {
		x.Data[i] = float64(i%2)*100 + float64(i)*1e-3
	}
	m := testkit.Must(New(t.Context(), risingKernel{}, x, 0.1,
		&Options{Storage: Float64, Tiles: SparseTiles, TileSize: 16}))
	v, got, want := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	rng.New(1).Normals(v.RawMatrix().Data, 0)
	want.Mul(evalMatrix(risingKernel{}, x), v)
	productError := func(m *Matrix) float64 {
		testkit.OK(t, m.KMulTo(t.Context(), got, v))
		var difference mat.Dense
		difference.Sub(got, want)
		return mat.Norm(&difference, 2)
	}
	exact := m.Exact(1e-6)
	if sparseError, exactError := productError(m), productError(exact); !m.Choice().Sparse.AssumesDecreasing ||
		sparseError < 1e-3 ||
		exactError > exact.Rounding(v)[0]+1e-12 {
		t.Errorf("products have errors of %g with sparse tiles, %g with the exact matrix, whose bound is %g",
			sparseError, exactError,
			exact.Rounding(v)[0])
	}
}

// TestSparseTilesOnRanks checks that sparse tiles on three ranks have the bits of one process, with the choice of an
// earlier matrix. The neighbors must be those of dense tiles as far as the entries are above the cutoff.
func TestSparseTilesOnRanks(t *testing.T) {
	ctx, n := context.Background(), 300
	x := scatteredPoints(n, 1, rng.New(9))
	k, v := kernel.Gaussian{Sigma: 0.7}, mat.NewDense(n, 1, nil)
	rng.New(3).Normals(v.RawMatrix().Data, 0)
	opts := Options{Storage: Float64, Tiles: SparseTiles, TileSize: 24, Accuracy: 0.01}
	oneProcess := testkit.Must(New(ctx, k, x, 0.1, &opts))
	want := mat.NewDense(n, 1, nil)
	testkit.OK(t, oneProcess.MulTo(ctx, want, v))
	position := make([]int32, n)
	for p, i := range rng.New(4).Perm(n) {
		position[i] = int32(p)
	}
	denseTiles := testkit.Must(New(ctx, k, x, 0.1, &Options{Storage: Float64, Tiles: DenseTiles}))
	sparseNeighbors, err1 := oneProcess.Neighbors(ctx, position, 3)
	denseNeighbors, err2 := denseTiles.Neighbors(ctx, position, 3)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	cutoff := oneProcess.Choice().Sparse.EntryCutoff
	for i := range denseNeighbors.Index {
		if denseNeighbors.Value[i] > float32(2*cutoff) && math.Abs(float64(denseNeighbors.Value[i]-sparseNeighbors.Value[i])) > 1e-3 {
			t.Fatalf("neighbor %d of point %d is %d at %v, of all tiles %d at %v", i%3, i/3, sparseNeighbors.Index[i],
				sparseNeighbors.Value[i], denseNeighbors.Index[i], denseNeighbors.Value[i])
		}
	}
	previous := oneProcess.Choice()
	onRanks(3, func(c comm.Comm) {
		rankOptions := opts
		rankOptions.Comm, rankOptions.SameAs = c, &previous
		m, err := New(ctx, k, x, 0.1, &rankOptions)
		if err != nil {
			t.Error(err)
			return
		}
		if current := m.Choice(); !current.SameStorage(previous) ||
			current.Sparse.DroppedNorm != previous.Sparse.DroppedNorm ||
			current.Sparse.StoredShare != previous.Sparse.StoredShare {
			t.Errorf("on ranks %+v, want %+v", *current.Sparse, *previous.Sparse)
		}
		got := mat.NewDense(n, 1, nil)
		if err := m.MulTo(ctx, got, v); err != nil || !mat.Equal(got, want) {
			t.Errorf("the product on ranks has other bits: %v", err)
		}
		if neighbors, err := m.Neighbors(ctx, position, 3); err != nil ||
			!reflect.DeepEqual(neighbors, sparseNeighbors) {
			t.Errorf("the neighbors on ranks are others: %v", err)
		}
	})
}

// TestSparseTilesChosen checks that sparse tiles are chosen automatically if and only if most entries of K are
// negligible, and are an error if requested for a kernel without a tail bound.
func TestSparseTilesChosen(t *testing.T) {
	ctx := context.Background()
	x := scatteredPoints(5000, 1, rng.New(5))
	for _, c := range []struct {
		k    kernel.Kernel
		want bool
	}{{kernel.Gaussian{Sigma: 1}, true}, {kernel.Laplacian{Sigma: 0.3}, true}, {kernel.Gaussian{Sigma: 300}, false},
		{kernel.Polynomial{Gamma: 1, Degree: 2}, false}} {
		m := testkit.Must(New(ctx, c.k, x, 0.1, nil))
		if s := m.Choice().Sparse; (s != nil) != c.want {
			t.Errorf("%v: %v", c.k, m.Choice())
		}
	}
	if _, err := New(ctx, kernel.Polynomial{Gamma: 1, Degree: 2}, x, 0.1, &Options{Tiles: SparseTiles}); err == nil {
		t.Error("sparse tiles of a polynomial kernel are accepted")
	}
}

// TestSparseTilesOfWeighted checks that the norm of the entries that sparse tiles omit from SKS is at most the bound,
// for the stored and the recomputed matrix.
func TestSparseTilesOfWeighted(t *testing.T) {
	const n, lambda = 700, 20.0
	base, k := scatteredPoints(n, 0, rng.New(3)), kernel.Gaussian{Sigma: 0.5}
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = math.Pow(10, 2*math.Sin(float64(i)))
	}
	x := testkit.Must(points.NewWeighted(base, weights))
	want := evalMatrix(k, base)
	want.Apply(func(i, j int, v float64) float64 { return x.Factors[i] * v * x.Factors[j] }, want)
	m := testkit.Must(New(t.Context(), k, x, lambda, &Options{Tiles: SparseTiles, Storage: Float64, TileSize: 64}))
	exact := m.Exact(1)
	for name, matrix := range map[string]*Matrix{"stored": m, "recomputed": exact} {
		sparsity, got, omitted := matrix.Choice().Sparse, mat.NewDense(n, n, nil), new(mat.Dense)
		if sparsity == nil || sparsity.StoredShare > 0.5 {
			t.Fatalf("%s: %+v", name, sparsity)
		}
		testkit.OK(t, matrix.DenseTo(t.Context(), got))
		omitted.Sub(want, got)
		// The next matrix is similar to the error, so it has the same eigenvalues.
		omitted.Apply(func(i, j int, v float64) float64 { return v / x.Factors[j] * x.Factors[i] }, omitted)
		if norm := mat.Norm(omitted, math.Inf(1)); !(norm <= sparsity.DroppedNorm*(1+1e-9)+1e-9) {
			t.Errorf("%s: the omitted entries have the norm %g, bound %g", name, norm, sparsity.DroppedNorm)
		}
		if sparsity.DroppedNorm > 0.25*m.Choice().Accuracy {
			t.Errorf("%s: the bound %g of the omitted entries exceeds a quarter of the accuracy %g", name,
				sparsity.DroppedNorm, m.Choice().Accuracy)
		}
	}
}
