package precond

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// onRanks runs body on the given number of ranks, which are goroutines. Each rank gets the rows of z that comm.RowRange
// assigns to it.
func onRanks(ranks int, z *points.Dense32, body func(c comm.Comm, rankRows *points.Dense32)) {
	comm.RunLocal(ranks, func(c comm.Comm) {
		lo, hi := comm.RowRange(z.N, RankRows, c.Rank(), ranks)
		body(c, points.NewDense32(hi-lo, z.D, z.Data[lo*z.D:hi*z.D]))
	})
}

// TestRanks checks that M⁻¹R and the statistical dimension have the same bits without ranks on 1, 2 and 8 threads,
// and on 1, 2, 3 and 5 ranks, some of them without rows, with up to three threads.
func TestRanks(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	run := func(t *testing.T) {
		for name, test := range map[string]struct {
			n, s    int
			lambdaP float64
			options Options
		}{
			"L": {1700, 520, 0.1, Options{Form: FormL}}, "Linv": {1700, 520, 0.1, Options{Form: FormLInv}},
			"eigen": {1700, 90, 0.1, Options{Form: FormEigen}},
			"U":     {1200, 520, 0.1, Options{Form: FormU}}, "fast": {1700, 520, 0.1, Options{Fast: true}},
			"auto": {1030, 520, 0.1, Options{}}, "corrected": {1030, 96, 1e-9, Options{}},
		} {
			t.Run(name, func(t *testing.T) { checkSameOnRanks(t, test.n, test.s, 3, test.lambdaP, test.options) })
		}
	}
	testkit.EachBLAS(t, run)
}

// checkSameOnRanks compares M⁻¹R and the statistical dimension with one process, for several numbers of threads and
// ranks, and the traffic of a solve with its formula.
func checkSameOnRanks(t *testing.T, n, s, cols int, lambdaP float64, opts Options) {
	z := randomFeatures(n, s)
	r, want := testkit.RandomMatrix(4, n, cols), mat.NewDense(n, cols, nil)
	var statDim float64
	for i, threads := range []int{1, 2, 8} {
		accel.SetThreads(threads)
		w := testkit.Must(New(t.Context(), z, lambdaP, &opts))
		y := mat.NewDense(n, cols, nil)
		testkit.OK(t, w.SolveTo(t.Context(), y, r))
		if i == 0 {
			want, statDim = y, w.StatDim()
		}
		if !mat.Equal(y, want) || w.StatDim() != statDim {
			t.Errorf("other bits on %d threads", threads)
		}
	}
	for i, ranks := range []int{1, 2, 3, 5} {
		accel.SetThreads(1 + i%3)
		onRanks(ranks, z, func(c comm.Comm, rankRows *points.Dense32) {
			opts := opts
			opts.Comm = c
			w, err := New(t.Context(), rankRows, lambdaP, &opts)
			if err != nil {
				t.Error(err)
				return
			}
			y, before := mat.DenseCopyOf(r), c.Traffic()
			if err := w.SolveTo(t.Context(), y, y); err != nil {
				t.Error(err)
			}
			bytes := int64(8 * (s + rankRows.N) * cols)
			if w.Corrects() {
				bytes *= 2
			}
			if traffic := c.Traffic().Sub(before); traffic.Bytes != bytes && ranks > 1 {
				t.Errorf("%+v for a solve, want %d bytes", traffic, bytes)
			}
			strided := mat.NewDense(n, cols+1, nil).Slice(0, n, 0, cols).(*mat.Dense)
			if err := w.SolveTo(t.Context(), strided, r); err != nil || !mat.Equal(strided, y) {
				t.Errorf("a solve into columns of a wider matrix has other bits, or fails: %v", err)
			}
			if !mat.Equal(y, want) || w.StatDim() != statDim {
				t.Errorf("form %v: rank %d of %d has other bits than one process", w.Form(), c.Rank(), ranks)
			}
		})
	}
}

// TestRanksNotFinite checks that features of one rank that are not finite are an error on all ranks, which names that
// rank.
func TestRanksNotFinite(t *testing.T) {
	z := points.NewDense32(600, 2, nil)
	// Both entries are on rank 1: the last one, and one that finite entries follow.
	for position, bad := range map[int]float64{1199: math.Inf(1), 1100: math.NaN()} {
		clear(z.Data)
		z.Data[position] = float32(bad)
		onRanks(2, z, func(c comm.Comm, rankRows *points.Dense32) {
			testkit.Fails(t, testkit.ErrOf(New(t.Context(), rankRows, 1, &Options{Comm: c})), "rank 1")
		})
	}
}

// TestRanksProducts checks that all methods of Woodbury besides solves, and OuterProduct, have the same bits without
// ranks and on 1, 2, 3 and 5 ranks.
func TestRanksProducts(t *testing.T) {
	const n, s, cols = 1300, 96, 2
	z := randomFeatures(n, s)
	lambdas := []float64{0.01, 1}
	src, short := testkit.RandomMatrix(4, n, cols), testkit.RandomMatrix(5, s, cols)
	// results returns the result of every method of w and of outer, which is ZZᵀ.
	results := func(w *Woodbury, outer *OuterProduct) (list []*mat.Dense) {
		addResult := func(err error, m *mat.Dense) {
			if err != nil {
				t.Error(err)
			}
			list = append(list, m)
		}
		dst := func() *mat.Dense { return mat.NewDense(n, cols, nil) }
		y := dst()
		addResult(w.MulTo(t.Context(), y, src), y)
		y = dst()
		addResult(outer.KMulTo(t.Context(), y, src), y)
		y = mat.NewDense(n, cols+1, nil).Slice(0, n, 1, cols+1).(*mat.Dense)
		addResult(w.NormalTo(t.Context(), y, rng.New(6)), y)
		y = mat.NewDense(s, cols, nil)
		addResult(w.ZVTransMulTo(t.Context(), y, src), y)
		y = dst()
		addResult(w.ZVMulTo(t.Context(), y, short), y)
		family, err := w.WithLambdas(lambdas)
		if err != nil {
			t.Error(err)
			return nil
		}
		y = dst()
		addResult(family.SolveTo(t.Context(), y, src), y)
		y = dst()
		addResult(family.NormalColumnsTo(t.Context(), y, rng.New(7)), y)
		other, err := w.WithLambda(3)
		if err != nil {
			t.Error(err)
			return nil
		}
		y = dst()
		addResult(other.SolveTo(t.Context(), y, src), y)
		return list
	}
	resultsOn := func(c comm.Comm, rankRows *points.Dense32) []*mat.Dense {
		w, err := New(t.Context(), rankRows, 0.1, &Options{Form: FormEigen, Comm: c})
		outer, err2 := NewOuterProduct(t.Context(), c, rankRows)
		if err != nil || err2 != nil {
			t.Error(err, err2)
			return nil
		}
		return results(w, outer)
	}
	want := resultsOn(nil, z)
	for _, ranks := range []int{1, 2, 3, 5} {
		onRanks(ranks, z, func(c comm.Comm, rankRows *points.Dense32) {
			for k, m := range resultsOn(c, rankRows) {
				if !mat.Equal(m, want[k]) {
					t.Errorf("result %d of rank %d of %d has other bits than one process's", k, c.Rank(), ranks)
				}
			}
		})
	}
	var gathered, outer mat.Dense // ‖VᵀZᵀsrc‖² = srcᵀZZᵀsrc
	gathered.Mul(want[3].T(), want[3])
	outer.Mul(src.T(), want[1])
	if !mat.EqualApprox(&gathered, &outer, 1e-9*mat.Norm(&outer, 2)) {
		t.Error("VᵀZᵀ is not an isometry of Zᵀ")
	}
	gathered.Mul(want[4].T(), src) // (ZVu)ᵀsrc = uᵀVᵀZᵀsrc
	outer.Mul(short.T(), want[3])
	if !mat.EqualApprox(&gathered, &outer, 1e-9*mat.Norm(&outer, 2)) {
		t.Error("ZV is not the transpose of VᵀZᵀ")
	}
}
