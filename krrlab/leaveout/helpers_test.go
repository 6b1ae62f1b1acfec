package leaveout

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// problem returns K of a Gaussian kernel of n points of dimension d, and targets n×t: a smooth function with
// noise, or classes coded by ±1.
func problem(n, d, t int, sigma float64, classes bool, seed uint64) (k, y *mat.Dense) {
	g := rand.New(rand.NewPCG(seed, 7))
	x := mat.NewDense(n, d, nil)
	x.Apply(func(_, _ int, _ float64) float64 { return g.NormFloat64() }, x)
	k, y = mat.NewDense(n, n, nil), mat.NewDense(n, t, nil)
	for i := range n {
		for j := range i + 1 {
			var s float64
			for c := range d {
				s += (x.At(i, c) - x.At(j, c)) * (x.At(i, c) - x.At(j, c))
			}
			v := math.Exp(-s / (2 * sigma * sigma))
			k.Set(i, j, v)
			k.Set(j, i, v)
		}
		row := y.RawRowView(i)
		for j := range row {
			row[j] = math.Sin(2*x.At(i, 0)+float64(j)) + x.At(i, d-1)*x.At(i, 0)/2 + 0.3*g.NormFloat64()
		}
		if classes {
			c := datasets.Label(row)
			for j := range row {
				row[j] = -1
			}
			if t == 1 {
				row[0] = float64(2*c - 1)
			} else {
				row[c] = 1
			}
		}
	}
	return k, y
}

// leaveOut returns y_i − f_{−i}(x_i) by a fit without point i, for each i.
func leaveOut(t *testing.T, k, y *mat.Dense, lambda float64) *mat.Dense {
	n, cols := y.Dims()
	e := mat.NewDense(n, cols, nil)
	for i := range n {
		var rest []int
		for j := range n {
			if j != i {
				rest = append(rest, j)
			}
		}
		a, b := mat.NewSymDense(n-1, nil), mat.NewDense(n-1, cols, nil)
		for p, r := range rest {
			for q := range p + 1 {
				a.SetSym(p, q, k.At(r, rest[q]))
			}
			a.SetSym(p, p, k.At(r, r)+lambda)
			b.SetRow(p, y.RawRowView(r))
		}
		var f mat.Cholesky
		if !f.Factorize(a) {
			t.Fatal("no reference")
		}
		var c mat.Dense
		testkit.OK(t, f.SolveTo(&c, b))
		for j := range cols {
			v := y.At(i, j)
			for p, r := range rest {
				v -= k.At(i, r) * c.At(p, j)
			}
			e.Set(i, j, v)
		}
	}
	return e
}

// score returns the error that residuals e stand for.
func score(y, e *mat.Dense, classes bool) float64 {
	n, t := y.Dims()
	var sum float64
	for i := range n {
		f := make([]float64, t)
		for j := range f {
			f[j] = y.At(i, j) - e.At(i, j)
			if !classes {
				sum += e.At(i, j) * e.At(i, j) / float64(t)
			}
		}
		if classes && datasets.Label(f) != datasets.Label(y.RawRowView(i)) {
			sum++
		}
	}
	return sum / float64(n)
}
