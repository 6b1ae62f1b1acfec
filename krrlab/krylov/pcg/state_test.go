package pcg_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// exactAndRounded returns a positive definite matrix of order n, and the same matrix with every entry rounded to about
// four digits.
func exactAndRounded(n int) (exact, rough *mat.SymDense) {
	rnd := rand.New(rand.NewPCG(3, 4))
	exact, rough = mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			v := math.Exp(-float64((i-j)*(i-j)) / 50)
			if i == j {
				v += 0.01
			}
			exact.SetSym(i, j, v)
			rough.SetSym(i, j, v*(1+1e-4*rnd.NormFloat64()*0.1))
		}
	}
	return exact, rough
}

// TestResume checks that solves that are resumed from any checkpoint have the same bits, including restarts, as
// uninterrupted solves.
func TestResume(t *testing.T) {
	const n, cols = 80, 4
	exact, rough := exactAndRounded(n)
	b := mat.NewDense(n, cols, testkit.Normals(5, 6, n*cols))
	b.SetCol(2, make([]float64, n)) // a column of zeros
	m := diagonal(make([]float64, n))
	for i := range m {
		m[i] = 1 + 0.1*float64(i%7)
	}
	for name, solve := range solvers {
		opts := pcg.Options{Tol: 1e-5, Exact: dense{exact}, LambdaMin: 1e-3}
		var states [][]byte
		opts.Checkpoint = func(st *pcg.State) error {
			encoded, err := st.MarshalBinary()
			states = append(states, encoded)
			return err
		}
		want := testkit.Must(solve(t.Context(), dense{rough}, m, b, &opts))
		if len(want.History.Restarts) == 0 || len(states) < 10 {
			t.Fatalf("%s: %v with restarts %v, %d states: want a restart and at least 10 states", name, want,
				want.History.Restarts, len(states))
		}
		opts.Checkpoint = nil
		for k, state := range states {
			opts.Resume = state
			got := testkit.Must(solve(t.Context(), dense{rough}, m, b, &opts))
			if !mat.Equal(got.X, want.X) || got.Iterations != want.Iterations || got.Status != want.Status ||
				!reflect.DeepEqual(got.Columns, want.Columns) || !reflect.DeepEqual(got.History, want.History) ||
				!reflect.DeepEqual(got.TrueRelRes, want.TrueRelRes) || !reflect.DeepEqual(got.Gap, want.Gap) {
				t.Errorf("%s resumed from state %d: %v, uninterrupted %v", name, k, got, want)
			}
		}
		checkStateErrors(t, func(state []byte, maxIter int) error {
			opts := opts
			opts.Resume, opts.MaxIter = state, maxIter
			_, err := solve(t.Context(), dense{rough}, m, b, &opts)
			return err
		}, states[len(states)-1])
	}
}

// checkStateErrors checks that a state that is damaged or has too many iterations is an error.
func checkStateErrors(t *testing.T, resume func(state []byte, maxIter int) error, state []byte) {
	for _, damaged := range [][]byte{{}, state[:4], state[:100], state[:len(state)-9]} {
		testkit.Fails(t, resume(damaged, 0), "state to resume")
	}
	testkit.Fails(t, resume(state, 3), "of at most 3")
}

// TestResumeOtherSolve checks that a state of Solve is an error in SolveBlock, and in a solve of another size.
func TestResumeOtherSolve(t *testing.T) {
	exact, _ := exactAndRounded(20)
	b := mat.NewDense(20, 1, nil)
	b.Set(3, 0, 1)
	var state []byte
	errDiskFull := errors.New("disk full")
	opts := &pcg.Options{Tol: 1e-9, Checkpoint: func(st *pcg.State) error {
		if st.Iterations() == 2 {
			state, _ = st.MarshalBinary()
			return errDiskFull
		}
		return nil
	}}
	res, err := pcg.Solve(t.Context(), dense{exact}, nil, b, opts)
	if !errors.Is(err, errDiskFull) || res.Status != pcg.Failed || res.Iterations != 2 {
		t.Errorf("%v, %v", res, err)
	}
	if _, err := pcg.SolveBlock(t.Context(), dense{exact}, nil, b, &pcg.Options{Resume: state}); err == nil {
		t.Error("SolveBlock resumes from a state of Solve")
	}
	if _, err := pcg.Solve(t.Context(), dense{exact}, nil, mat.NewDense(20, 2, nil),
		&pcg.Options{Resume: state}); err == nil {
		t.Error("a solve for two columns resumes from a state of one column")
	}
}
