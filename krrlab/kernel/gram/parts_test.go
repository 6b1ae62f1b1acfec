package gram

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestRankBytes compares RankBytes with the bytes of the rank that stores the most.
func TestRankBytes(t *testing.T) {
	for _, n := range []int{1, 2, 63, 64, 65, 500, 1000, 3585, 20000} {
		size := (*Options)(nil).withDefaults(n, 1).TileSize
		for storage, width := range map[Storage]int64{Float64: 8, Float32: 4, Fixed16: 2, Recompute: 0} {
			for _, ranks := range []int{1, 2, 3, 7, 64} {
				var largest int64
				for rank := range ranks {
					tiles := newTiling(n, size, cyclicDistribution{rank, ranks})
					largest = max(largest, tableBytes(tiles)+width*tiles.entryCount())
				}
				testkit.Equal(t, RankBytes(n, storage, ranks), largest, n, storage, ranks)
			}
		}
	}
	for _, c := range []struct {
		n       int
		storage Storage
		ranks   int
	}{{10, Auto, 1}, {0, Float32, 1}, {10, Float32, 0}} {
		testkit.Panics(t, map[string]func(){fmt.Sprint(c): func() { RankBytes(c.n, c.storage, c.ranks) }})
	}
}

// offsetPoints returns n points with shift added to every coordinate, as dense or sparse points.
func offsetPoints(n, d int, shift float64, sparse bool) points.Points {
	x := normalPoints(n, d)
	for i := range x.Data {
		x.Data[i] += shift
	}
	if sparse {
		return testkit.ToCSR(x)
	}
	return x
}

// TestPointSummary checks the summary of the points after their optional shift to the mean, and the proved bounds of
// the errors of entries and of K that follow from the summary.
func TestPointSummary(t *testing.T) {
	const n, d = 60, 3
	for _, shift := range []float64{0, 1e4} {
		for _, sparse := range []bool{false, true} {
			for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 2},
				kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}, largeOffDiagonal{}} {
				x := offsetPoints(n, d, shift, sparse)
				m, _, err := newMatrix(k, x, 1, nil)
				testkit.OK(t, err)
				shifted := shift > 0 && kernel.ShiftInvariant(k)
				dense, mean, row := offsetPoints(n, d, shift, false).(*points.Dense), make([]float64, d), make([]float64, d)
				for i := range n {
					for j, v := range dense.Row(i) {
						mean[j] += v / n
					}
				}
				var largest, largestAtOrigin float64
				for i := range n {
					x.RowTo(row, i)
					var normSq, normSqAtOrigin float64
					for j, v := range row {
						normSqAtOrigin += v * v
						if shifted {
							v -= mean[j]
						}
						normSq += v * v
					}
					largest, largestAtOrigin = max(largest, normSq), max(largestAtOrigin, normSqAtOrigin)
				}
				summary := m.placement.Summary
				if summary.Dim != d || summary.Sparse != (sparse && !shifted) || summary.Shifted != shifted ||
					math.Abs(summary.MaxSq-largest) > 1e-6*largest {
					t.Errorf("%v, %T moved by %g: %+v, want the largest ‖x‖² %v", k, x, shift, summary, largest)
				}
				testkit.Near(t, kernel.SummaryOf(m.placement.Original).MaxSq, largestAtOrigin, 1e-6*largestAtOrigin, k,
					x, shift)
				checkExactChoice(t, m, summary)
			}
		}
	}
}

// checkExactChoice compares EntryError and the error bound of Exact, for two accuracies, with kernel.EntryError.
func checkExactChoice(t *testing.T, m *Matrix, summary kernel.PointSummary) {
	t.Helper()
	for _, accuracy := range []float64{0, 1} {
		exact := m.Exact(accuracy)
		c, want := exact.Choice(), kernel.Float64
		if accuracy == 0 && kernel.ShiftInvariant(m.k) {
			want = kernel.Differences
		}
		bound := kernel.EntryError(m.k, want, summary)
		if c.Arithmetic != want || c.Centered != (want == kernel.Float64 && summary.Shifted) ||
			c.Error != bound*m.Trace() ||
			!c.Certain || c.Accuracy != accuracy || c.Bytes != exact.Bytes() || c.N != exact.Dim() {
			t.Errorf("%v: exact %+v, want %v and an error of %g", m.k, c, want, bound*m.Trace())
		}
		if !kernel.BuiltIn(m.k) {
			bound = math.Inf(1)
		}
		testkit.Equal(t, exact.EntryError(), bound, m.k)
	}
	if kernel.ShiftInvariant(m.k) { // inner products are used as soon as their own bound meets the accuracy
		innerProductError := kernel.EntryError(m.k, kernel.Float64, summary) * m.Trace()
		if above, below := m.Exact(1.001*innerProductError).Choice(), m.Exact(0.999*innerProductError).Choice(); above.Arithmetic != kernel.Float64 ||
			below.Arithmetic != kernel.Differences {
			t.Errorf("%v: %v at an error of %g, %v below", m.k, above.Arithmetic, innerProductError, below.Arithmetic)
		}
	}
	if got := m.EntryError(); !math.IsInf(got, 1) {
		t.Errorf("%v: EntryError of the stored matrix is %g, want +Inf", m.k, got)
	}
}

// TestChoiceTextOfNaNError checks that the text of a Choice does not call a NaN error within the requested accuracy.
func TestChoiceTextOfNaNError(t *testing.T) {
	for errorBound, want := range map[float64]string{1e-3: "within the 0.001 asked",
		math.NaN(): "‖E‖₂ ≲ NaN predicted, above", 0.002: "above"} {
		testkit.Contains(t, fmt.Sprint(Choice{Accuracy: 1e-3, Error: errorBound}), want)
	}
}

// TestNotFinite checks that the error for an infinite or NaN entry of a user-defined kernel names the two points, and
// that infinite norms or λ are refused.
func TestNotFinite(t *testing.T) {
	x := points.NewDense(50, 1, nil)
	for i := range x.Data {
		x.Data[i] = float64(i)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, storage := range []Storage{Float64, Float32} {
			k := kernel.Func{Name: "holed", F: func(a, b []float64) float64 {
				if max(a[0], b[0]) == 37 && min(a[0], b[0]) == 5 {
					return v
				}
				return kernel.Gaussian{Sigma: 1}.Eval(a, b)
			}}
			m, _, err := newMatrix(k, x, 1, &Options{Storage: storage, TileSize: 8})
			testkit.OK(t, err)
			m.choice.Storage, m.choice.Arithmetic = storage, kernel.Float64
			m.buildEngine()
			testkit.Fails(t, m.ops.formAll(t.Context(), nil), "of points 37 and 5 is")
		}
	}
	for coordinate, want := range map[float64]string{math.NaN(): "point 2 has", 1e200: "point 2 has"} {
		y := points.NewDense(4, 1, []float64{0, 1, coordinate, 2})
		testkit.Fails(t, testkit.ErrOf(NewExact(kernel.Gaussian{Sigma: 1}, y, 1, 0, comm.Alone())), want)
	}
	if _, err := NewExact(kernel.Func{Name: "one", F: func(_, _ []float64) float64 { return 1 }},
		points.NewDense(2, 1, []float64{1e200, 1}), 1, 0, nil); err != nil {
		t.Errorf("a user's kernel needs no norms: %v", err)
	}
	if _, err := NewExact(kernel.Gaussian{Sigma: 1}, x, math.Inf(1), 0, nil); err == nil {
		t.Error("λ = ∞ is accepted")
	}
}

// TestStorageAndTilesAsText writes storage and tiles to JSON by name and reads them back.
func TestStorageAndTilesAsText(t *testing.T) {
	type storageAndTiles struct {
		Storage Storage
		Tiles   Tiles
	}
	opts, got := storageAndTiles{Fixed16, SparseTiles}, storageAndTiles{}
	encoded := testkit.Must(json.Marshal(opts))
	if err := json.Unmarshal(encoded, &got); err != nil || got != opts ||
		string(encoded) != `{"Storage":"fixed16","Tiles":"sparse"}` {
		t.Errorf("%s is read as %v: %v", encoded, got, err)
	}
	testkit.Fails(t, json.Unmarshal([]byte(`{"Storage":"half"}`), &got), `storage "half"`)
	testkit.Fails(t, json.Unmarshal([]byte(`{"Tiles":"some"}`), &got), `tiles "some"`)
}

// TestCancellation cancels New, products, columns and neighbors at every place where they check the context. It also
// checks the share of formed tiles and the unit roundoffs of the matrices.
func TestCancellation(t *testing.T) {
	const n = 60
	x, k, order := scatteredPoints(n, 1, rng.New(5)), kernel.Gaussian{Sigma: 1}, make([]int32, n)
	v, columns := mat.NewDense(n, 2, nil), mat.NewDense(n, 2, nil)
	for i := range order {
		order[i] = int32(i)
	}
	for _, opts := range []Options{{Tiles: SparseTiles}, {Storage: Recompute, Tiles: SparseTiles}, {Storage: Fixed16}} {
		opts.TileSize = 32
		var m *Matrix
		testkit.CheckCancellation(t, func(ctx context.Context) (err error) {
			m, err = New(ctx, k, x, 0.1, &opts)
			return err
		})
		testkit.CheckCancellation(t, func(ctx context.Context) error { return m.MulTo(ctx, v, v) })
		testkit.CheckCancellation(t, func(ctx context.Context) error { return m.Columns(ctx, []int{3, 1}, columns) })
		testkit.CheckCancellation(t, func(ctx context.Context) error {
			return testkit.ErrOf(m.Neighbors(ctx, order,
				3))
		})
		dense, share := m.choice.Sparse == nil, m.choice.FormedShare()
		if dense != (share == 1) || m.ProductRounding() != 0x1p-22 || m.Exact(1).ProductRounding() != 0x1p-51 {
			t.Errorf("%v: share %.3g of the tiles formed, unit roundoffs %g and %g", m.choice, share,
				m.ProductRounding(), m.Exact(1).ProductRounding())
		}
	}
}
