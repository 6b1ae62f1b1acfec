package gram

import (
	"context"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// narrow draws points of which most are far apart, one kind after the other.
func narrow(n, kind int, g rng.Stream) points.Points {
	d := []int{1, 3, 3, 5, 2, 60, 4}[kind]
	x := points.NewDense(n, d, nil)
	g.Normals(x.Data, 0)
	u := make([]float64, n)
	g.Sub("u").Float64s(u, 0)
	for i := range n {
		row := x.Row(i)
		switch kind {
		case 0: // on a line
			row[0] *= 30
		case 1: // far groups
			row[0] += 40 * math.Floor(8*u[i])
		case 2: // duplicates, ten of each
			x.RowTo(row, i-i%10)
		case 3: // features of very different scale
			for c := range row {
				row[c] *= math.Pow(10, float64(c-2))
			}
		case 4: // one dense cluster among noise
			for c := range row {
				if row[c] *= 100; i%3 == 0 {
					row[c] /= 1e4
				}
			}
		case 5: // of 60 dimensions, zeros but for a few
			for c := range row {
				if c != i%7 && c != i%11 {
					row[c] = 0
				}
				row[c] *= 8
			}
			return testkit.Sparse(x)
		case 6: // all the same
			x.RowTo(row, 0)
		}
	}
	return x
}

// exactK returns K by its definition.
func exactK(k kernel.Kernel, x points.Points) *mat.Dense {
	n, d := x.Dims()
	a, b, out := make([]float64, d), make([]float64, d), mat.NewDense(n, n, nil)
	for i := range n {
		x.RowTo(a, i)
		for j := range n {
			x.RowTo(b, j)
			out.Set(i, j, k.Eval(a, b))
		}
	}
	return out
}

// largestRow returns max_i Σ_j |A_ij−B_ij| ≥ ‖A−B‖₂ of symmetric matrices.
func largestRow(a, b *mat.Dense) float64 {
	var e mat.Dense
	e.Sub(a, b)
	return mat.Norm(&e, math.Inf(1))
}

// flat is a Radial of the user's that decreases: 1/(1+(r²)²).
type flat struct{}

func (flat) Eval(x, z []float64) float64 {
	var sq float64
	for c, v := range x {
		sq += (v - z[c]) * (v - z[c])
	}
	return 1 / (1 + sq*sq)
}

func (flat) Profile(dst, sq []float64) {
	for i, v := range sq {
		dst[i] = 1 / (1 + v*v)
	}
}
func (flat) Slope() float64 { return math.Inf(1) }
func (flat) String() string { return "flat" }
func (flat) Decreasing()    {}

// TestSparse holds sparse tiles of every storage against K by its definition: the bound of what is left out is at least
// its norm, and products, columns and the whole matrix are those of K to the error reported.
func TestSparse(t *testing.T) {
	draws := 4
	if os.Getenv("KRRLAB_LONG") != "" {
		draws = 72
	}
	ctx := context.Background()
	kernels := []kernel.Kernel{kernel.Gaussian{Sigma: 1}, kernel.Laplacian{Sigma: 0.5}, kernel.Matern32{Sigma: 0.5},
		kernel.Matern52{Sigma: 0.5}, flat{}}
	left := 0
	for draw := range draws * 7 {
		g := rng.New(uint64(draw)).Sub("narrow")
		k := kernels[(draw/7+draw)%len(kernels)]
		n := 120 + 13*(draw%5)
		x := narrow(n, draw%7, g)
		truth := exactK(k, x)
		v := mat.NewDense(n, 2, nil)
		g.Sub("v").Normals(v.RawMatrix().Data, 0)
		var want mat.Dense
		want.Mul(truth, v)
		for _, s := range []Storage{Float64, Float32, Fixed16, Recompute} {
			name := fmt.Sprintf("draw %d: %v of kind %d as %v", draw, k, draw%7, s)
			m, err := New(ctx, k, x, 0.1, &Options{Storage: s, Tiles: SparseTiles, TileSize: 16})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c := m.Choice()
			if c.Sparse.Formed < 0.5 {
				left++
			}
			dense, columns, got := mat.NewDense(n, n, nil), mat.NewDense(n, 3, nil), mat.NewDense(n, 2, nil)
			idx := []int{n - 1, 0, n / 2}
			for _, err := range []error{m.DenseTo(ctx, dense), m.Columns(ctx, idx, columns), m.KMulTo(ctx, got, v)} {
				testkit.OK(t, err)
			}
			// K without what is left out, and how far entries that are there are off
			kept, rounding := mat.DenseCopyOf(truth), 0.0
			for i := range n {
				for j := range n {
					switch v, w := truth.At(i, j), dense.At(i, j); {
					case w != 0:
						rounding = max(rounding, math.Abs(v-w))
					case s != Fixed16 || v > 1./65535: // which rounds the others to 0
						kept.Set(i, j, 0)
					}
				}
			}
			if most := 2*(c.Error-c.Sparse.Dropped) + 1e-12; rounding > most {
				t.Errorf("%s: an entry has an error of %.3g, bound %.3g", name, rounding, most)
			}
			// what is below 2⁻¹⁰⁰ is 0 in float32
			if norm := largestRow(kept, truth); norm > c.Sparse.Dropped*(1+1e-12)+1e-25 {
				t.Errorf("%s: a row of what is left out sums to %.3g, said %.3g", name, norm, c.Sparse.Dropped)
			}
			rounding = max(rounding, 1e-5*map[Storage]float64{Fixed16: 1}[s]) * float64(n)
			got.Sub(got, &want)
			if off := mat.Norm(got, 2); off > (c.Sparse.Dropped+rounding+4e-7*float64(n))*mat.Norm(v, 2) {
				t.Errorf("%s: product off by %.3g", name, off)
			}
			for q, j := range idx {
				for i := range n {
					if d := math.Abs(columns.At(i, q) - dense.At(i, j)); d > 0 &&
						(s != Recompute || d > c.Sparse.Far+2*rounding+1e-6) {
						t.Fatalf("%s: column %d has %v in row %d, K has %v", name, j, columns.At(i, q), i,
							dense.At(i, j))
					}
				}
			}
			exact := m.Exact(1e-6)
			testkit.OK(t, exact.KMulTo(ctx, got, v))
			got.Sub(got, &want)
			for q, bound := range exact.Rounding(v) {
				if off := mat.Norm(got.ColView(q), 2); off > bound+0.1*4e-16*mat.Norm(v.ColView(q), 2) {
					t.Errorf("%s: exact product off by %.3g, said %.3g", name, off, bound)
				}
			}
			checkBlock(t, name, exact, truth)
			testkit.OK(t, exact.DenseTo(ctx, dense))
			dense.Sub(dense, truth)
			if off := mat.Norm(dense, 2); !(off <= float64(n)*exact.EntryError()+1e-12) {
				t.Errorf("%s: exact entries off by %.3g, said %.3g each", name, off, exact.EntryError())
			}
		}
	}
	if left < draws {
		t.Errorf("tiles were left out of %d matrices only", left)
	}
}

// checkBlock holds a block of an exact matrix, of points that lie together, against K by its definition.
func checkBlock(t *testing.T, name string, exact *Matrix, truth *mat.Dense) {
	t.Helper()
	const k, ld = blockRows + 9, blockRows + 10
	lie, block := exact.TreeOrder(), make([]float64, k*ld)
	exact.Block(block, ld, lie[5:5+k], new(BlockWorkspace))
	for a, i := range lie[5 : 5+k] {
		for b, j := range lie[5+a : 5+k] {
			if got, want := block[a*ld+a+b], truth.At(i, j); !(math.Abs(got-want) <= exact.EntryError()) {
				t.Errorf("%s: entry (%d, %d) of a block is %v, want %v", name, i, j, got, want)
			}
		}
	}
	slices.Sort(lie)
	if lie = slices.Compact(lie); len(lie) != exact.tiling.n {
		t.Errorf("%s: %d different points lie together", name, len(lie))
	}
}

// bumped says that it decreases and rises once, between the places that Check looks at.
type bumped struct{ flat }

func (k bumped) Eval(x, z []float64) float64 {
	var sq float64
	for c, v := range x {
		sq += (v - z[c]) * (v - z[c])
	}
	g := []float64{sq}
	k.Profile(g, g)
	return g[0]
}

func (bumped) Profile(dst, sq []float64) {
	for i, v := range sq {
		dst[i] = math.Exp(-v) + 0.1*math.Exp(-math.Pow(v-1e4, 2))
	}
}

// TestSparseTold: where a kernel lies about decreasing, its sparse tiles are wrong, and Exact, which residuals are
// taken with, is not.
func TestSparseTold(t *testing.T) {
	const n = 200
	x := points.NewDense(n, 1, nil)
	for i := range n {
		x.Data[i] = float64(i%2)*100 + float64(i)*1e-3
	}
	m := testkit.Must(New(t.Context(), bumped{}, x, 0.1, &Options{Storage: Float64, Tiles: SparseTiles, TileSize: 16}))
	v, got, want := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	rng.New(1).Normals(v.RawMatrix().Data, 0)
	want.Mul(exactK(bumped{}, x), v)
	off := func(m *Matrix) float64 {
		testkit.OK(t, m.KMulTo(t.Context(), got, v))
		var e mat.Dense
		e.Sub(got, want)
		return mat.Norm(&e, 2)
	}
	exact := m.Exact(1e-6)
	if a, b := off(m), off(exact); !m.Choice().Sparse.Told || a < 1e-3 || b > exact.Rounding(v)[0]+1e-12 {
		t.Errorf("sparse tiles off by %g, exact ones by %g, said %g", a, b, exact.Rounding(v)[0])
	}
}

// TestSparseRanks has the same bits for ranks and threads, the same neighbors as all tiles, and the same matrix by an
// earlier choice.
func TestSparseRanks(t *testing.T) {
	ctx, n := context.Background(), 300
	x := narrow(n, 1, rng.New(9))
	k, v := kernel.Gaussian{Sigma: 0.7}, mat.NewDense(n, 1, nil)
	rng.New(3).Normals(v.RawMatrix().Data, 0)
	o := Options{Storage: Float64, Tiles: SparseTiles, TileSize: 24, Accuracy: 0.01}
	one := testkit.Must(New(ctx, k, x, 0.1, &o))
	want := mat.NewDense(n, 1, nil)
	testkit.OK(t, one.MulTo(ctx, want, v))
	before := make([]int32, n)
	for at, i := range rng.New(4).Perm(n) {
		before[i] = int32(at)
	}
	full := testkit.Must(New(ctx, k, x, 0.1, &Options{Storage: Float64, Tiles: DenseTiles}))
	some, err1 := one.Neighbors(ctx, before, 3)
	all, err2 := full.Neighbors(ctx, before, 3)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	least := one.Choice().Sparse.Least
	for i := range all.Index {
		if all.Value[i] > float32(2*least) && math.Abs(float64(all.Value[i]-some.Value[i])) > 1e-3 {
			t.Fatalf("neighbor %d of point %d is %d at %v, of all tiles %d at %v", i%3, i/3, some.Index[i],
				some.Value[i], all.Index[i], all.Value[i])
		}
	}
	was := one.Choice()
	onRanks(3, func(c comm.Comm) {
		on := o
		on.Comm, on.SameAs = c, &was
		m, err := New(ctx, k, x, 0.1, &on)
		if err != nil {
			t.Error(err)
			return
		}
		if now := m.Choice(); !now.Same(was) || now.Sparse.Dropped != was.Sparse.Dropped ||
			now.Sparse.Kept != was.Sparse.Kept {
			t.Errorf("on ranks %+v, want %+v", *now.Sparse, *was.Sparse)
		}
		got := mat.NewDense(n, 1, nil)
		if err := m.MulTo(ctx, got, v); err != nil || !mat.Equal(got, want) {
			t.Errorf("the product on ranks has other bits: %v", err)
		}
		if near, err := m.Neighbors(ctx, before, 3); err != nil || !reflect.DeepEqual(near, some) {
			t.Errorf("the neighbors on ranks are others: %v", err)
		}
	})
}

// TestSparseChosen takes sparse tiles by itself where most of K is nothing, and says why it cannot where it is asked
// to.
func TestSparseChosen(t *testing.T) {
	ctx := context.Background()
	x := narrow(5000, 1, rng.New(5))
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
		t.Error("sparse tiles of a polynomial are taken")
	}
}

// TestSparseWeighted: what sparse tiles leave out of SKS is below the bound, for K as stored and as recomputed.
func TestSparseWeighted(t *testing.T) {
	const n, lambda = 700, 20.0
	base, k := narrow(n, 0, rng.New(3)), kernel.Gaussian{Sigma: 0.5}
	w := make([]float64, n)
	for i := range w {
		w[i] = math.Pow(10, 2*math.Sin(float64(i)))
	}
	x := testkit.Must(points.Weigh(base, w))
	want := exactK(k, base)
	want.Apply(func(i, j int, v float64) float64 { return x.Factors[i] * v * x.Factors[j] }, want)
	m := testkit.Must(New(t.Context(), k, x, lambda, &Options{Tiles: SparseTiles, Storage: Float64, TileSize: 64}))
	exact := m.Exact(1)
	for name, a := range map[string]*Matrix{"stored": m, "recomputed": exact} {
		s, got, e := a.Choice().Sparse, mat.NewDense(n, n, nil), new(mat.Dense)
		if s == nil || s.Kept > 0.5 {
			t.Fatalf("%s: %+v", name, s)
		}
		testkit.OK(t, a.DenseTo(t.Context(), got))
		e.Sub(want, got)
		e.Apply(func(i, j int, v float64) float64 { return v / x.Factors[j] * x.Factors[i] }, e) // similar to it
		if most := mat.Norm(e, math.Inf(1)); !(most <= s.Dropped*(1+1e-9)+1e-9) {
			t.Errorf("%s: %g is left out, bound %g", name, most, s.Dropped)
		}
		if s.Dropped > 0.25*m.Choice().Accuracy {
			t.Errorf("%s: %g may be left out of the accuracy %g", name, s.Dropped, m.Choice().Accuracy)
		}
	}
}
