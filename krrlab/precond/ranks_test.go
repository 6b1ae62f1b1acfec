package precond

import (
	"math"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// onRanks runs body on p goroutine ranks, each with its rows of z.
func onRanks(p int, z *points.Dense32, body func(c comm.Comm, own *points.Dense32)) {
	var wg sync.WaitGroup
	for _, c := range comm.Local(p, comm.Options{}) {
		wg.Go(func() {
			lo, hi := comm.Rows(z.N, RankRows, c.Rank(), p)
			body(c, points.NewDense32(hi-lo, z.D, z.Data[lo*z.D:hi*z.D]))
		})
	}
	wg.Wait()
}

// TestRanks solves with M on 1, 2, 3, 4 and 7 ranks, some of them without rows: the same bits
// everywhere, and nearly those of one process.
func TestRanks(t *testing.T) {
	const n, s, cols = 1700, 530, 3
	z := wide(n, s)
	r := mat.NewDense(n, cols, nil)
	rng.New(4).Normals(r.RawMatrix().Data, 0)
	for _, o := range []Options{{Form: FormL}, {Form: FormLInv}, {Form: FormEigen}, {Fast: true}} {
		lone, err := New(t.Context(), z, 0.1, &o)
		if err != nil {
			t.Fatal(err)
		}
		want := mat.NewDense(n, cols, nil)
		if err := lone.SolveTo(t.Context(), want, r); err != nil {
			t.Fatal(err)
		}
		var first *mat.Dense
		var stat float64
		for _, p := range []int{1, 2, 3, 4, 7} {
			got, stats := make([]*mat.Dense, p), make([]float64, p)
			onRanks(p, z, func(c comm.Comm, own *points.Dense32) {
				w, err := NewOnRanks(t.Context(), c, n, own, 0.1, &o)
				if err != nil {
					t.Error(err)
					return
				}
				y := mat.DenseCopyOf(r)
				if err := w.SolveTo(t.Context(), y, y); err != nil {
					t.Error(err)
				}
				if tr := w.Traffic(); tr.Bytes != SolveBytes(s, cols, own.N) || tr.Calls != 2 {
					t.Errorf("%+v for a solve, want %d bytes in two calls", tr, SolveBytes(s, cols, own.N))
				}
				wide := mat.NewDense(n, cols+1, nil).Slice(0, n, 0, cols).(*mat.Dense)
				if err := w.SolveTo(t.Context(), wide, r); err != nil || !mat.Equal(wide, y) {
					t.Errorf("into a matrix with gaps: %v", err)
				}
				got[c.Rank()], stats[c.Rank()] = y, w.StatDim()
			})
			if t.Failed() {
				return
			}
			if first == nil {
				first, stat = got[0], stats[0]
			}
			for k, y := range got {
				if !mat.Equal(y, first) || stats[k] != stat {
					t.Errorf("form %v: rank %d of %d has other bits than one rank", o.Form, k, p)
				}
			}
		}
		var diff mat.Dense
		diff.Sub(first, want)
		if e := mat.Norm(&diff, 2) / mat.Norm(want, 2); e > 1e-10 {
			t.Errorf("form %v: ranks differ from one process by %.2g", o.Form, e)
		}
	}
}

// TestRanksRefuse asks for what ranks cannot do.
func TestRanksRefuse(t *testing.T) {
	z := points.NewDense32(600, 2, nil)
	for at, bad := range map[int]float64{1199: math.Inf(1), 1100: math.NaN()} { // of the second rank; the last, and one before others
		clear(z.Data)
		z.Data[at] = float32(bad)
		onRanks(2, z, func(c comm.Comm, own *points.Dense32) {
			if _, err := NewOnRanks(t.Context(), c, 600, own, 1, nil); err == nil || !strings.Contains(err.Error(), "rank 1") {
				t.Errorf("%v at rank %d: %v", bad, c.Rank(), err)
			}
		})
	}
	onRanks(2, z, func(c comm.Comm, own *points.Dense32) {
		if _, err := NewOnRanks(t.Context(), c, 600, own, 1, &Options{Form: FormU}); err == nil {
			t.Error("form U on ranks")
		}
	})
}

// wide returns n×s features of cosines.
func wide(n, s int) *points.Dense32 {
	z := points.NewDense32(n, s, nil)
	for i := range z.Data {
		z.Data[i] = float32(math.Sqrt(2/float64(s)) * math.Cos(10*rng.New(3).Normal(uint64(i))))
	}
	return z
}

// rowsOf returns the first columns of a rank's rows of Z.
func rowsOf(z *points.Dense32, s int) *points.Dense32 {
	out := points.NewDense32(z.N, s, nil)
	for i := range z.N {
		copy(out.Row(i), z.Row(i)[:s])
	}
	return out
}

// TestRanksProducts takes everything that a Woodbury does besides solving on 1, 2, 3 and 5 ranks:
// the same bits on all, and nearly those of one process.
func TestRanksProducts(t *testing.T) {
	const n, s, cols = 1300, 96, 2
	z := wide(n, s)
	lambdas := []float64{0.01, 1}
	src, short := mat.NewDense(n, cols, nil), mat.NewDense(s, cols, nil)
	rng.New(4).Normals(src.RawMatrix().Data, 0)
	rng.New(5).Normals(short.RawMatrix().Data, 0)
	// all returns every result; outer is ZZᵀ.
	all := func(w *Woodbury, outer *Outer) (list []*mat.Dense) {
		put := func(err error, m *mat.Dense) {
			if err != nil {
				t.Error(err)
			}
			list = append(list, m)
		}
		dst := func() *mat.Dense { return mat.NewDense(n, cols, nil) }
		y := dst()
		put(w.MulTo(t.Context(), y, src), y)
		y = dst()
		put(outer.KMulTo(t.Context(), y, src), y)
		y = mat.NewDense(n, cols+1, nil).Slice(0, n, 1, cols+1).(*mat.Dense)
		put(w.NormalTo(t.Context(), y, rng.New(6)), y)
		y = mat.NewDense(s, cols, nil)
		put(w.GatherTo(t.Context(), y, src), y)
		y = dst()
		put(w.ScatterTo(t.Context(), y, short), y)
		f, err := w.Family(lambdas)
		if err != nil {
			t.Error(err)
			return nil
		}
		y = dst()
		put(f.SolveTo(t.Context(), y, src), y)
		y = dst()
		put(f.NormalColumnsTo(t.Context(), y, rng.New(7)), y)
		v, err := w.WithLambda(3)
		if err != nil {
			t.Error(err)
			return nil
		}
		y = dst()
		put(v.SolveTo(t.Context(), y, src), y)
		return list
	}
	lone, err := New(t.Context(), z, 0.1, &Options{Form: FormEigen})
	if err != nil {
		t.Fatal(err)
	}
	want := all(lone, NewOuter(z))
	var first []*mat.Dense
	for _, p := range []int{1, 2, 3, 5} {
		got := make([][]*mat.Dense, p)
		onRanks(p, z, func(c comm.Comm, own *points.Dense32) {
			w, err := NewOnRanks(t.Context(), c, n, own, 0.1, &Options{Form: FormEigen})
			outer, err2 := NewOuterOnRanks(t.Context(), c, n, own)
			if err != nil || err2 != nil {
				t.Error(err, err2)
				return
			}
			got[c.Rank()] = all(w, outer)
		})
		if t.Failed() {
			return
		}
		if first == nil {
			first = got[0]
		}
		for r, list := range got {
			for k, m := range list {
				if !mat.Equal(m, first[k]) {
					t.Errorf("result %d of rank %d of %d has other bits than one rank's", k, r, p)
				}
			}
		}
	}
	for k, m := range first {
		// Eigenvectors have signs, and turn within an eigenvalue, of their own: V takes part in both
		// halves of all but 3 and 4, which are compared by what they make together.
		if k == 3 || k == 4 {
			continue
		}
		var diff mat.Dense
		diff.Sub(m, want[k])
		if e := mat.Norm(&diff, 2) / mat.Norm(want[k], 2); e > 1e-9 {
			t.Errorf("result %d: ranks differ from one process by %.2g", k, e)
		}
	}
	var gathered, outer mat.Dense // ‖VᵀZᵀsrc‖² = srcᵀZZᵀsrc
	gathered.Mul(first[3].T(), first[3])
	outer.Mul(src.T(), first[1])
	if !mat.EqualApprox(&gathered, &outer, 1e-9*mat.Norm(&outer, 2)) {
		t.Error("VᵀZᵀ of ranks is not an isometry of Zᵀ")
	}
	gathered.Mul(first[4].T(), src) // (ZVu)ᵀsrc = uᵀVᵀZᵀsrc
	outer.Mul(short.T(), first[3])
	if !mat.EqualApprox(&gathered, &outer, 1e-9*mat.Norm(&outer, 2)) {
		t.Error("ZV of ranks is not the transpose of VᵀZᵀ")
	}
}

// TestRanksGrow adds columns to ZᵀZ on ranks, and solves with it: the same bits for any number,
// and nearly those of one process.
func TestRanksGrow(t *testing.T) {
	const n = 1300
	z := wide(n, 96)
	var lone Gram
	r, want := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	rng.New(4).Normals(r.RawMatrix().Data, 0)
	for _, s := range []int{24, 48, 96} {
		if err := lone.Grow(t.Context(), rowsOf(z, s)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := NewFromGram(t.Context(), z, &lone, 0.1, &Options{Form: FormL})
	if err == nil {
		err = w.SolveTo(t.Context(), want, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	var first *mat.Dense
	for _, p := range []int{1, 2, 3, 5} {
		got := make([]*mat.Dense, p)
		onRanks(p, z, func(c comm.Comm, own *points.Dense32) {
			var g Gram
			for _, s := range []int{24, 48, 96} {
				if err := g.GrowOnRanks(t.Context(), c, n, rowsOf(own, s)); err != nil {
					t.Error(err)
					return
				}
			}
			w, err := NewFromGramOnRanks(t.Context(), c, n, own, &g, 0.1, &Options{Form: FormL})
			y := mat.NewDense(n, 1, nil)
			if err == nil {
				err = w.SolveTo(t.Context(), y, r)
			}
			if err != nil {
				t.Error(err)
			}
			got[c.Rank()] = y
		})
		if t.Failed() {
			return
		}
		if first == nil {
			first = got[0]
		}
		for k, y := range got {
			if !mat.Equal(y, first) {
				t.Errorf("rank %d of %d has other bits than one rank", k, p)
			}
		}
	}
	var diff mat.Dense
	diff.Sub(first, want)
	if e := mat.Norm(&diff, 2) / mat.Norm(want, 2); e > 1e-10 {
		t.Errorf("ranks differ from one process by %.2g", e)
	}
}
