package baseline_test

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/points"
)

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
