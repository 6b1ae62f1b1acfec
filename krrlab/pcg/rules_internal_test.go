package pcg

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/rng"
)

// TestUpper: of pivots 2, 0, 1 and rank 1, with direction 0 dropped, [T_1 T_2; 0 I] has the columns of 2 and 1, and
// nothing is written beyond the rows kept.
func TestUpper(t *testing.T) {
	f := newFactor(3)
	f.k, f.rank = 3, 1
	copy(f.piv, []int{2, 0, 1})
	copy(f.t, []float64{7, 8, 9, -1, -1, -1, -1, -1, -1})
	for kept, want := range map[int][]float64{2: {7, 9, 0, 1, 5}, 1: {7, 9, 5, 5, 5}} {
		dst := slices.Repeat([]float64{5}, 5)
		if f.upper(dst, []int{2, 1}, kept); !slices.Equal(dst, want) {
			t.Errorf("%d rows: %v, want %v", kept, dst, want)
		}
	}
	// The curvature that shows a matrix indefinite is that of the matrix, not of it scaled.
	for _, c := range []struct {
		g    []float64
		k    int
		want float64
	}{
		{[]float64{1, 0, 0, -1e-30}, 2, -1e-30},
		{[]float64{4, 16, 16, 16}, 2, -48},                     // 16 − 16²/4
		{[]float64{4, 4, 4, 4, 4, 3.96, 4, 3.96, 4}, 3, -0.04}, // off the diagonal: 3.96 − 4
	} {
		f := newFactor(3)
		if st := f.factorise(c.g, c.k, 1e-8, 1); st != Indefinite || math.Abs(f.bad-c.want) > 1e-9*math.Abs(c.want) {
			t.Errorf("%v: %v with curvature %g, want %g", c.g, st, f.bad, c.want)
		}
	}
}

// TestBlockStep: X + PHC, Q − WH, and the squares of the columns of QC, X and PHC, for active columns 0 and 2 of three.
func TestBlockStep(t *testing.T) {
	const n, k, cols = rowBlock + 3, 2, 3
	draw := func(r, c int, seed uint64) *mat.Dense {
		m := mat.NewDense(r, c, nil)
		rng.New(seed).Normals(m.RawMatrix().Data, 0)
		return m
	}
	x, q, p, w := draw(n, cols, 1), draw(n, k, 2), draw(n, k, 3), draw(n, k, 4)
	h, c := draw(k, k, 5), draw(k, 2, 6)
	s := &block{
		solver: &solver{n: n, t: cols, cols: []int{0, 2}, x: mat.DenseCopyOf(x), r: mat.DenseCopyOf(q), p: p, w: w,
			rr: make([]float64, cols), xx: make([]float64, cols), dx: make([]float64, cols), pAp: make([]float64, cols)},
		k: k, h: h.RawMatrix().Data, c: c.RawMatrix().Data, d: make([]float64, 9), row: make([]float64, 2*cols),
	}
	s.moved = make([]float64, 3*cols)
	s.step()
	var hc, move, turn, r mat.Dense
	hc.Mul(h, c)
	move.Mul(p, &hc)
	turn.Mul(w, h)
	q.Sub(q, &turn)
	r.Mul(q, c)
	for j, col := range s.cols {
		for i := range n {
			x.Set(i, col, x.At(i, col)+move.At(i, j))
		}
		for what, v := range map[string][2]float64{
			"r": {s.rr[j], mat.Dot(r.ColView(j), r.ColView(j))}, "x": {s.xx[j], mat.Dot(x.ColView(col), x.ColView(col))}, "dx": {s.dx[j], mat.Dot(move.ColView(j), move.ColView(j))},
		} {
			if math.Abs(v[0]-v[1]) > 1e-12*v[1] {
				t.Errorf("‖%s‖² of column %d is %g, want %g", what, col, v[0], v[1])
			}
		}
	}
	if !mat.EqualApprox(s.x, x, 1e-13) || !mat.EqualApprox(s.r, q, 1e-13) {
		t.Error("X or Q")
	}
}

// TestTargets: what a column aims at, the bound of a residual's rounding, and the defaults.
func TestTargets(t *testing.T) {
	s := &solver{opt: Options{Refine: 0.1}}
	for _, c := range []struct{ goal, rel, want float64 }{{1e-3, 0.5, 0.05}, {1e-3, 0.11, 0.011}, {1e-3, 0.09, 1e-3}, {1e-3, 2, 0.2}} {
		if got := s.aim(c.goal, c.rel); math.Abs(got-c.want) > 1e-16 {
			t.Errorf("%+v: %g", c, got)
		}
	}
	if got, want := residualRounding(1e-16, 1000, 21), 1e-16+50*0x1p-53*1000; math.Abs(got-want) > 1e-15*want {
		t.Errorf("rounding %g, want %g", got, want)
	}
	a := small{mat.NewSymDense(2, []float64{2, 0, 0, 4})}
	d, err := newSolver(a, nil, mat.NewDense(2, 1, nil), nil)
	if err != nil || d.opt.Tol != 1e-3 || d.opt.Aim != 1 || d.opt.MaxIter != 1000 || d.opt.Refine != 0 {
		t.Errorf("%+v, %v", d.opt, err)
	}
	for what, f := range map[string]func(){
		"κ < 1": func() { IterationBound(0.99, 0.5) }, "ε = 0": func() { IterationBound(2, 0) }, "ε > 1": func() { IterationBound(2, 1.01) }, "ε < 0": func() { IterationBound(2, -1) },
		"column by column": func() { _, _ = SolveBlock(t.Context(), a, columnwise{}, mat.NewDense(2, 1, nil), nil) },
	} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.HasPrefix(v, "pcg: ") {
					t.Errorf("%s: panic %q", what, v)
				}
			}()
			f()
		}()
	}
	if got := IterationBound(1, 1); got != 1 { // ⌈ln 2/2⌉
		t.Errorf("%d iterations at the ends", got)
	}
}

type columnwise struct{}

func (columnwise) Dim() int                                                            { return 2 }
func (columnwise) SolveTo(context.Context, *mat.Dense, *mat.Dense) error               { return nil }
func (columnwise) SolveColumnsTo(context.Context, *mat.Dense, *mat.Dense, []int) error { return nil }

// TestTakenBackHasNoR: the residual of an answer whose restart was taken back is not what R holds.
func TestTakenBackHasNoR(t *testing.T) {
	a, b := small{mat.NewSymDense(2, []float64{2, 0, 0, 4})}, mat.NewDense(2, 1, []float64{2, 4})
	for before, has := range map[float64]bool{0: true, 0.5: true, givenUp: false} {
		s, err := newSolver(a, nil, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.scale[0], s.ynorm[0], s.before[0], s.res.TrueRelRes[0], s.res.Columns[0].Status = 1, 1, before, 0, Converged
		if res, err := s.finish(t.Context(), nil); err != nil || (res.R != nil) != has {
			t.Errorf("before %g: R %v, %v", before, res.R != nil, err)
		}
	}
}

// TestCheckpointCalls: a state is shown while columns go on and the context does, and one of all iterations is not
// gone on from.
func TestCheckpointCalls(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		cols []int
		want int
	}{{t.Context(), []int{0}, 1}, {t.Context(), nil, 0}, {ended, []int{0}, 0}, {ended, nil, 0}} {
		calls := 0
		s := &solver{cols: c.cols, opt: Options{Checkpoint: func(*State) error { calls++; return nil }}}
		if err := s.checkpoint(c.ctx, nil); err != nil || calls != c.want {
			t.Errorf("%d columns, context %v: %d calls, %v", len(c.cols), c.ctx.Err(), calls, err)
		}
	}
	for _, k := range keptStates(t) {
		v, _, err := readHead(k.state)
		if err != nil {
			t.Fatal(err)
		}
		for most, fits := range map[int]bool{v.Iterations: false, v.Iterations + 1: true} {
			o := k.o
			o.Resume, o.MaxIter = bytes.Clone(k.state), most
			if _, err := k.solve(t.Context(), k.a, nil, k.b, &o); (err == nil) != fits {
				t.Errorf("%d iterations of at most %d: %v", v.Iterations, most, err)
			}
		}
	}
}

// TestOneSolve: columns that are nearly dependent, but not so nearly that a direction is set aside, take one solve
// with M to orthonormalise.
func TestOneSolve(t *testing.T) {
	a := small{mat.NewSymDense(2, []float64{2, 0, 0, 4})}
	for _, apart := range []float64{1, 0.1, 0.01} {
		uses := 0
		b := mat.NewDense(2, 2, []float64{1, 1, 0, apart})
		if _, err := SolveBlock(t.Context(), a, counting{&uses}, b, &Options{MaxIter: 1, Tol: 1e-12}); err != nil || uses != 1 {
			t.Errorf("%g apart: %d solves, %v", apart, uses, err)
		}
	}
}

// small is a positive definite matrix as an operator.
type small struct{ *mat.SymDense }

func (a small) Dim() int { return a.SymmetricDim() }

func (a small) MulTo(_ context.Context, dst, x *mat.Dense) error {
	dst.Mul(a.SymDense, x)
	return nil
}

// kept is a solve, Solve or SolveBlock, and one of its states.
type kept struct {
	solve func(context.Context, Operator, Preconditioner, *mat.Dense, *Options) (*Result, error)
	a     small
	b     *mat.Dense
	o     Options
	state []byte
}

// keptStates returns a state after some iterations and one after a restart, of both kinds of solve.
func keptStates(t testing.TB) (all []kept) {
	const n, cols = 14, 3
	rnd := rand.New(rand.NewPCG(1, 2))
	exact, rough, b := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil), mat.NewDense(n, cols, nil)
	for i := range n {
		for j := range i + 1 {
			v := math.Exp(-float64((i-j)*(i-j)) / 3)
			if i == j {
				v += 0.01
			}
			exact.SetSym(i, j, v)
			rough.SetSym(i, j, v*(1+1e-5*rnd.NormFloat64()))
		}
		for j := range cols {
			b.Set(i, j, rnd.NormFloat64())
		}
	}
	b.SetCol(1, make([]float64, n)) // ends at once
	for _, solve := range []func(context.Context, Operator, Preconditioner, *mat.Dense, *Options) (*Result, error){Solve, SolveBlock} {
		k := kept{solve: solve, a: small{rough}, b: b, o: Options{Tol: 1e-7, MaxIter: 60, Exact: small{exact}}}
		o := k.o
		restarted := false
		o.Checkpoint = func(st *State) error {
			if again := st.s.restarts > 0; st.Iterations() != 4 && (!again || restarted) {
				return nil
			} else if again {
				restarted = true
			}
			var w bytes.Buffer
			_, err := st.WriteTo(&w)
			k.state = w.Bytes()
			all = append(all, k)
			return err
		}
		if _, err := solve(t.Context(), k.a, nil, b, &o); err != nil || !restarted {
			t.Fatalf("restarted: %v, %v", restarted, err)
		}
	}
	return all
}
