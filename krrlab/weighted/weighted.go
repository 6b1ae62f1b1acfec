// Package weighted turns kernel ridge regression with sample weights into the plain one: the minimizer of
//
//	Σ_i w_i (y_i − f(x_i))² + λ‖f‖²
//
// is f = Σ_i c_i k(x_i, ·) with c = W^½ĉ and (W^½KW^½ + λI)ĉ = W^½y, W = diag(w): the plain problem of the points
// (x_i, √w_i) with the kernel √w√v·k(x, z) and the targets √w_i·y_i. A row of weight 2 counts as two equal rows.
package weighted

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// Kernel is √w√v·k(x, z) of points (x, √w) and (z, √v) with a kernel k. It is evaluated pair by pair.
type Kernel struct{ Of kernel.Kernel }

// Eval implements kernel.Kernel.
func (k Kernel) Eval(x, z []float64) float64 {
	d := len(x) - 1
	return x[d] * z[d] * k.Of.Eval(x[:d], z[:d])
}

// Base returns k.
func (k Kernel) Base() kernel.Kernel { return k.Of }

// Size returns w·s of the point (x, √w), s the Size of x that k has (kernel.Precomputed).
func (k Kernel) Size(x []float64) float64 {
	d := len(x) - 1
	return x[d] * x[d] * kernel.Given(k.Of).Size(x[:d])
}

// String names the kernel.
func (k Kernel) String() string { return "weighted " + k.Of.String() }

// Validate returns an error if k does not validate.
func (k Kernel) Validate() error { return kernel.Validate(k.Of) }

// Problem is the plain problem of a weighted one: the points (x, √w) with their answers, and the kernel. It returns
// an error if a weight is not positive and finite, or the points are sparse.
func Problem(train *datasets.Dataset, k kernel.Kernel) (*datasets.Dataset, kernel.Kernel, error) {
	n, d := train.X.Dims()
	if _, sparse := train.X.(*points.CSR); sparse {
		return nil, nil, fmt.Errorf("weights do not go with sparse points: make them dense, as by --scale standard")
	}
	if len(train.Weights) != n {
		return nil, nil, fmt.Errorf("%d weights for %d points", len(train.Weights), n)
	}
	x := points.NewDense(n, d+1, nil)
	for i, s := range roots(train.Weights) {
		if w := train.Weights[i]; !(s > 0) || s > 1e75 {
			return nil, nil, fmt.Errorf("the weight of row %d (counted from 0) is %g: want a positive number up to "+
				"1e150; leave rows of weight 0 out", i, w)
		}
		train.X.RowTo(x.Row(i)[:d], i)
		x.Row(i)[d] = s
	}
	out := *train
	out.X, out.Scaling, out.Columns = x, nil, nil
	return &out, Kernel{k}, nil
}

// roots returns the square roots of weights.
func roots(w []float64) []float64 {
	s := make([]float64, len(w))
	for i, v := range w {
		s[i] = math.Sqrt(v)
	}
	return s
}

// Rows multiplies row i of y by √w_i, in place: targets of the weighted problem to those of the plain one, and its
// coefficients ĉ to c.
func Rows(y *mat.Dense, w []float64) {
	for i, s := range roots(w) {
		floats.Scale(s, y.RawRowView(i))
	}
}
