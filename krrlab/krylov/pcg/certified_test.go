package pcg_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// boundedRounding is an operator with a bound of its rounding.
type boundedRounding struct {
	pcg.Operator
	rounding func(x *mat.Dense) []float64
}

func (b boundedRounding) Rounding(x *mat.Dense) []float64 { return b.rounding(x) }

// TestResumeWithinRounding checks a solve that restarts a column because its residual exceeds the tolerance only with
// the rounding error bound. Resumed from every state, the solve must end with the same bits.
func TestResumeWithinRounding(t *testing.T) {
	const n, tol = 60, 1e-5
	exact, rough := exactAndRounded(n)
	b := mat.NewDense(n, 1, nil)
	for i := range n {
		b.Set(i, 0, math.Sin(float64(i*i))*0.9)
	}
	norm := mat.Norm(b, 2)
	wasBelowTol := false // some residual was below the tolerance
	opts := pcg.Options{Tol: tol, Exact: boundedRounding{dense{exact}, func(x *mat.Dense) []float64 {
		var r mat.Dense
		r.Mul(exact, x)
		r.Sub(b, &r)
		wasBelowTol = wasBelowTol || mat.Norm(&r, 2) <= tol*norm
		return []float64{0.7 * tol * norm}
	}}}
	var states [][]byte
	opts.Checkpoint = func(st *pcg.State) error {
		encoded, err := st.MarshalBinary()
		states = append(states, encoded)
		return err
	}
	want, err := pcg.Solve(t.Context(), dense{rough}, nil, b, &opts)
	if err != nil || want.Status != pcg.Converged || len(want.History.Restarts) == 0 || !wasBelowTol {
		t.Fatalf("%v, %v, restarts at %v, below the tolerance: %v", err, want.Status, want.History.Restarts,
			wasBelowTol)
	}
	opts.Checkpoint = nil
	for k, state := range states {
		opts.Resume = state
		res, err := pcg.Solve(t.Context(), dense{rough}, nil, b, &opts)
		if err != nil {
			t.Fatalf("state %d of %d: %v", k, len(states), err)
		}
		if !mat.Equal(res.X, want.X) || !reflect.DeepEqual(res.TrueRelRes, want.TrueRelRes) ||
			res.Status != want.Status {
			t.Errorf("state %d: %v, another answer", k, res.Status)
		}
	}
}

// TestConvergedIsProved checks a solve with two answers, one with a smaller residual and one with a smaller rounding
// error bound. If it returns an answer as converged, it must be the one whose convergence is proved.
func TestConvergedIsProved(t *testing.T) {
	const tol = 1e-3
	b := mat.NewDense(2, 1, []float64{0.75, 0.75})
	norm := mat.Norm(b, 2)
	residualCount := 0
	exact := boundedRounding{
		funcOperator{2, func(_ context.Context, dst, _ *mat.Dense) error {
			residualCount++
			dst.Scale(1-tol*[...]float64{0.9, 0.95, 0.95, 0.95}[residualCount-1], b)
			return nil
		}},
		func(x *mat.Dense) []float64 {
			if mat.Norm(x, 2) <= norm { // the first answer
				return []float64{0.2 * tol * norm}
			}
			return []float64{0.01 * tol * norm}
		},
	}
	res, err := pcg.Solve(t.Context(), diagonal{1, 1}, nil, b, &pcg.Options{Tol: tol, Exact: exact})
	if err != nil || residualCount != 2 {
		t.Fatalf("%v after %d residuals", err, residualCount)
	}
	if sum := res.TrueRelRes[0] + res.Rounding[0]; res.Status == pcg.Converged && sum > tol {
		t.Errorf("converged with %g ± %g", res.TrueRelRes[0], res.Rounding[0])
	}
}

// TestTrueResidual compares relative residuals, and their rounding error bounds, with values computed by hand.
func TestTrueResidual(t *testing.T) {
	y, c, r := mat.NewDense(2, 4, []float64{10, 0, 0, 1, 0, 0, 1, 1}),
		mat.NewDense(2, 4, []float64{7, 0, 0, math.NaN(), -4, 0, 0, 1}), mat.NewDense(2, 4, nil)
	y.Set(0, 2, 0)
	identity := dense{mat.NewSymDense(2, []float64{1, 0, 0, 1})}
	rel, rounding, err := pcg.TrueResidual(t.Context(), r, identity, y, c)
	if err != nil || rounding != nil || rel[0] != 0.5 || rel[1] != 0 || rel[2] != 1 || !math.IsNaN(rel[3]) ||
		r.At(0, 0) != 3 || r.At(1, 0) != 4 {
		t.Errorf("%v, %v, %v", rel, rounding, err)
	}
	y.Set(1, 2, 0)
	c.Set(0, 2, 5)
	rel, rounding, err = pcg.TrueResidual(t.Context(), r, boundedRounding{identity,
		func(*mat.Dense) []float64 { return []float64{1e-3, 1, 1, 0} }}, y, c)
	if err != nil || !math.IsInf(rel[2], 1) || rounding[0] != 1e-4+12*0x1p-53*0.5 || rounding[1] != 0 ||
		rounding[2] != 0 {
		t.Errorf("%v, %v, %v", rel, rounding, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := pcg.TrueResidual(ctx, r, identity, y, c); err == nil {
		t.Error("no error of a product that fails")
	}
}

// TestExactNotFinite checks that a column whose recursive residual has converged ends as a Breakdown if its true
// residual is not finite. It also checks that a solve that starts at the solution takes no step and no solve with M.
func TestExactNotFinite(t *testing.T) {
	a, nan, b := diagonal{2, 4}, diagonal{2, math.NaN()}, mat.NewDense(2, 1, []float64{2, 4})
	for name, solve := range solvers {
		res, err := solve(t.Context(), a, nil, b, &pcg.Options{Exact: nan, Tol: 1e-9})
		if err != nil || res.Columns[0].Status != pcg.Breakdown || res.Status != pcg.Breakdown ||
			!math.IsNaN(res.Columns[0].Value) {
			t.Errorf("%s: %v, %+v, %v", name, res, res.Columns, err)
		}
		unused := funcOperator{2, func(context.Context, *mat.Dense, *mat.Dense) error { return errors.New("called") }}
		res, err = solve(t.Context(), a, unused, b, &pcg.Options{InitX: mat.NewDense(2, 1, []float64{1, 1}), Tol: 1e-9})
		if err != nil || res.Status != pcg.Converged || res.Iterations != 0 {
			t.Errorf("%s of the answer: %v, %v", name, res, err)
		}
	}
}
