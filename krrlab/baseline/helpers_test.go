package baseline_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/baseline"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/points"
)

// newADMM makes a solver or ends the test.
func newADMM(t testing.TB, m feature.Map, x points.Points, lambda float64, y *mat.Dense, loss baseline.Loss,
	o *baseline.ADMMOptions) *baseline.ADMM {
	t.Helper()
	a := testkit.Must(baseline.NewADMM(context.Background(), m, x, lambda, y, loss, o))
	return a
}

// solved is what a solver ends with; an error ends the test.
func solved(t testing.TB, a *baseline.ADMM, o *baseline.ADMMSolve) *baseline.ADMMResult {
	t.Helper()
	r := testkit.Must(a.Solve(context.Background(), o))
	return r
}

func draw(seed uint64, n, d int) *points.Dense {
	rnd := rand.New(rand.NewPCG(seed, 5))
	x := points.NewDense(n, d, nil)
	for i := range x.Data {
		x.Data[i] = rnd.NormFloat64()
	}
	return x
}

func sparse(x *points.Dense) *points.CSR {
	s := &points.CSR{N: x.N, D: x.D, Ptr: []int{0}}
	for i := range x.N {
		for j, v := range x.Row(i) {
			s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
		}
		s.Ptr = append(s.Ptr, len(s.Val))
	}
	return s
}

func targets(seed uint64, n, t int) *mat.Dense {
	rnd := rand.New(rand.NewPCG(seed, 6))
	y := mat.NewDense(n, t, nil)
	for i := range n {
		for j := range t {
			y.Set(i, j, rnd.NormFloat64())
		}
	}
	return y
}
