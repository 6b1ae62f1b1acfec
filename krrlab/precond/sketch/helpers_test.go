package sketch_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

// dists are the distributions, each alone, and two compositions.
var dists = []sketch.Dist{
	sketch.CountSketch{}, sketch.SRHT{}, sketch.Gaussian{},
	sketch.Composition{{Dist: sketch.SRHT{}, Width: 14}, {Dist: sketch.Gaussian{}}},
	sketch.Composition{{Dist: sketch.CountSketch{}, Width: 30}, {Dist: sketch.SRHT{}, Width: 25},
		{Dist: sketch.Gaussian{}}},
}

// sampleOperator draws a sketch, and panics if that fails.
func sampleOperator(t testing.TB, d sketch.Dist, m, s int, g rng.Stream) sketch.Operator {
	t.Helper()
	return testkit.Must(d.Sample(m, s, g))
}

// sylvester returns the Hadamard matrix H of order n by the recursion of section 4 of the paper.
func sylvester(n int) [][]float64 {
	if n == 1 {
		return [][]float64{{1}}
	}
	half := sylvester(n / 2)
	h := make([][]float64, n)
	for i := range h {
		h[i] = make([]float64, n)
		for j := range h[i] {
			h[i][j] = half[i%(n/2)][j%(n/2)]
			if i >= n/2 && j >= n/2 {
				h[i][j] = -h[i][j]
			}
		}
	}
	return h
}

// matrixOf returns the s×m matrix S from the draw that the operator reports, without its products.
func matrixOf(t testing.TB, op sketch.Operator) [][]float64 {
	t.Helper()
	m, s := op.Dims()
	a := make([][]float64, s)
	for i := range a {
		a[i] = make([]float64, m)
	}
	switch op := op.(type) {
	case *sketch.CountSketchOperator:
		for j := range m {
			h, g := op.Hash(j)
			a[h][j] = g
		}
	case *sketch.SRHTOperator:
		_, order := op.Row(0)
		h := sylvester(order)
		for i := range a {
			row, _ := op.Row(i)
			for j := range m {
				a[i][j] = h[row][j] * op.Sign(j) / math.Sqrt(float64(s)) // s^(−1/2)·P·H·D
			}
		}
	case *sketch.GaussianOperator:
		for i := range a {
			for j := range m {
				a[i][j] = op.At(i, j)
			}
		}
	case *sketch.CompositionOperator:
		a = matrixOf(t, op.Levels[0])
		for _, level := range op.Levels[1:] {
			a = product(matrixOf(t, level), a)
		}
	default:
		t.Fatalf("no matrix of %T", op)
	}
	return a
}

// product returns the product ab.
func product(a, b [][]float64) [][]float64 {
	c := make([][]float64, len(a))
	for i := range a {
		c[i] = make([]float64, len(b[0]))
		for k, v := range a[i] {
			for j, w := range b[k] {
				c[i][j] += v * w
			}
		}
	}
	return c
}

// normalVectors returns n rows of m standard normal numbers.
func normalVectors(n, m int, seed uint64) []float64 {
	x := make([]float64, n*m)
	rng.New(seed).Sub("vectors").Normals(x, 0)
	return x
}

// meanOf returns the mean of v and the standard error of the mean.
func meanOf(v []float64) (mean, stdErr float64) {
	mean, sd := stat.MeanStdDev(v, nil)
	return mean, stat.StdErr(sd, float64(len(v)))
}
