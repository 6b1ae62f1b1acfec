package points

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Weighted is a set of points with positive weights w_i, for kernel ridge regression with sample weights. The minimizer
// of
//
//	Σ_i w_i (y_i − f(x_i))² + λ‖f‖²
//
// is f = Σ_i c_i k(x_i, ·) with c = Sĉ and (SKS + λI)ĉ = Sy, where K is the kernel matrix and S = diag(√w_i). A row of
// weight 2 has the same effect as two equal rows. A weighted point therefore represents √w_i·φ(x_i), where φ is the
// feature map of the kernel: the kernel of two weighted points is √w_i√w_j·k(x_i, x_j), and their features are
// √w_i·z_i. The coordinates of a point are those of x_i.
type Weighted struct {
	Points
	Factors []float64 // √w_i
}

// NewWeighted returns the points with the given weights. It returns an error if there are not n weights, or one of them
// is not between 1e-150 and 1e150.
func NewWeighted(x Points, weights []float64) (*Weighted, error) {
	n, _ := x.Dims()
	if len(weights) != n {
		return nil, fmt.Errorf("%d weights for %d points", len(weights), n)
	}
	factors := make([]float64, n)
	for i, w := range weights {
		if !(w >= 1e-150 && w <= 1e150) {
			return nil, fmt.Errorf("the weight of row %d (counted from 0) is %g: want a positive number from 1e-150 "+
				"to 1e150; leave rows of weight 0 out", i, w)
		}
		factors[i] = math.Sqrt(w)
	}
	return &Weighted{x, factors}, nil
}

// SplitFactors returns the points without their weights, and √w_i, which is nil for points without weights.
func SplitFactors(x Points) (base Points, factors []float64) {
	if w, ok := x.(*Weighted); ok {
		return w.Points, w.Factors
	}
	return x, nil
}

// SplitWeights returns the points without their weights, and w_i, which is nil for points without weights.
func SplitWeights(x Points) (base Points, weights []float64) {
	base, factors := SplitFactors(x)
	if factors == nil {
		return base, nil
	}
	weights = make([]float64, len(factors))
	for i, root := range factors {
		weights[i] = root * root
	}
	return base, weights
}

// ScaleRows returns diag(factors)·V, or V itself if factors is nil.
func ScaleRows(factors []float64, v *mat.Dense) *mat.Dense {
	if factors == nil {
		return v
	}
	var scaled mat.Dense
	scaled.Apply(func(i, _ int, x float64) float64 { return factors[i] * x }, v)
	return &scaled
}

// Slice implements Points.
func (x *Weighted) Slice(i, j int) Points { return &Weighted{x.Points.Slice(i, j), x.Factors[i:j]} }
