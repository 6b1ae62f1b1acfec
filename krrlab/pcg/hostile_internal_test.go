package pcg

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/hostile"
)

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

// resumed goes on from a state, which must be refused, or come to a right end: what is called
// converged has the residual that it says.
func (k *kept) resumed(t *testing.T, name string, state []byte) (err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: panic: %v", name, p)
		}
	}()
	o := k.o
	o.Resume = state
	res, err := k.solve(t.Context(), k.a, nil, k.b, &o)
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		return err
	}
	var r mat.Dense
	r.Mul(k.o.Exact.(small).SymDense, res.X)
	r.Sub(k.b, &r)
	for c, col := range res.Columns {
		y := mat.Norm(k.b.ColView(c), 2)
		if rel := mat.Norm(r.ColView(c), 2) / y; col.Status == Converged && y > 0 && !(rel <= 1.01*k.o.Tol) {
			t.Errorf("%s: column %d converged with %g", name, c, rel)
		}
		if col.Status == Active {
			t.Errorf("%s: column %d has not ended", name, c)
		}
	}
	if res.Iterations > o.MaxIter || len(res.History.RelRes) != res.Iterations+1 {
		t.Errorf("%s: %d iterations, a history of %d", name, res.Iterations, len(res.History.RelRes))
	}
	_ = res.String()
	return nil
}

// TestHostileStates changes each thing in a state, as one may who can sign it anew.
func TestHostileStates(t *testing.T) {
	for i, k := range keptStates(t) {
		v, blocks, err := readHead(k.state)
		if err != nil {
			t.Fatal(err)
		}
		tried, refused := 0, 0
		encode := func(blocks []byte) []byte {
			var head bytes.Buffer
			if err := gob.NewEncoder(&head).Encode(v); err != nil {
				t.Fatal(err)
			}
			state := append(binary.LittleEndian.AppendUint64(nil, uint64(head.Len())), head.Bytes()...)
			return append(state, blocks...)
		}
		hostile.Each(v, func(name string) {
			tried++
			if k.resumed(t, name, encode(blocks)) != nil {
				refused++
			}
		})
		for at := 0; at+8 <= len(blocks); at += 8 * 7 {
			for _, x := range []float64{math.NaN(), math.Inf(1), 0, 1e200} {
				changed := bytes.Clone(blocks)
				binary.LittleEndian.PutUint64(changed[at:], math.Float64bits(x))
				k.resumed(t, "a number of the blocks", encode(changed))
			}
		}
		if k.resumed(t, "longer", encode(append(bytes.Clone(blocks), 0))) == nil {
			t.Error("bytes after the end")
		}
		t.Logf("state %d: %d changes, %d refused", i, tried, refused)
	}
}

// TestBlockStateShapes: each part of a block solve's state alone is refused where it does not fit the
// others.
func TestBlockStateShapes(t *testing.T) {
	all := keptStates(t)
	state := all[len(all)-1].state
	const room = 1000
	for what, change := range map[string]func(v *saved){
		"nothing":             func(*saved) {},
		"C too short":         func(v *saved) { v.C = v.C[1:] },
		"S too long":          func(v *saved) { v.S = append(v.S, 0) },
		"C not finite":        func(v *saved) { v.C[0] = math.Inf(1) },
		"S not finite":        func(v *saved) { v.S[0] = math.NaN() },
		"fewer iterations":    func(v *saved) { v.Iterations = len(v.Width) - 1 },
		"one Π more":          func(v *saved) { v.LanczosPi = append(v.LanczosPi, nil) },
		"one S more":          func(v *saved) { v.LanczosS = append(v.LanczosS, nil) },
		"less than no room":   func(v *saved) { v.Room = -1 },
		"more room":           func(v *saved) { v.Room++ },
		"less room":           func(v *saved) { v.Room-- },
		"no direction":        func(v *saved) { v.Width[0] = 0 },
		"too many directions": func(v *saved) { v.Width[0] = v.T + 1 },
		"Π too short":         func(v *saved) { v.LanczosPi[0] = v.LanczosPi[0][1:] },
		"S of a step":         func(v *saved) { v.LanczosS[1] = append(v.LanczosS[1], 0) },
		"Π not finite":        func(v *saved) { v.LanczosPi[0][0] = math.NaN() },
	} {
		v, _, err := readHead(state)
		if err != nil {
			t.Fatal(err)
		}
		used, before := 0, 0
		for _, m := range v.Width {
			used, before = used+m*(m+before), m
		}
		v.Room = room - used
		change(v)
		if err := v.checkBlock(room); (err == nil) != (what == "nothing") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestStateBefore: a column is restarted from a true residual above the tolerance, or so near below it that
// rounding hides which, and its X is kept then.
func TestStateBefore(t *testing.T) {
	for _, c := range []struct {
		before float64
		kept   bool
		want   bool
	}{
		{0, false, true}, {1, true, true}, {1e-9, true, true}, {givenUp, true, true},
		{-0.5, true, false}, {1, false, false}, {math.Inf(1), true, false}, {math.NaN(), true, false},
	} {
		v := saved{Before: []float64{c.before}, Kept: c.kept, Restarts: 1}
		if v.beforeFits(0) != c.want {
			t.Errorf("%+v: %v", c, !c.want)
		}
	}
}

// FuzzState: no bytes make a resumed solve panic or lie.
func FuzzState(f *testing.F) {
	all := keptStates(f)
	for _, k := range all {
		f.Add(k.state)
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		for _, k := range all {
			k.resumed(t, "fuzz", state)
		}
	})
}
