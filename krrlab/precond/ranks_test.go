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
	z := points.NewDense32(n, s, nil)
	for i := range z.Data {
		z.Data[i] = float32(math.Sqrt(2./s) * math.Cos(10*rng.New(3).Normal(uint64(i))))
	}
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
	z.Data[1199] = float32(math.Inf(1)) // of the second rank
	onRanks(2, z, func(c comm.Comm, own *points.Dense32) {
		if _, err := NewOnRanks(t.Context(), c, 600, own, 1, nil); err == nil || !strings.Contains(err.Error(), "rank 1") {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
		if _, err := NewOnRanks(t.Context(), c, 600, own, 1, &Options{Form: FormU}); err == nil {
			t.Error("form U on ranks")
		}
	})
}
