package pcg

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

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
