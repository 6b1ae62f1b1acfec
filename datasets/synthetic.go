package datasets

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// bumpCount is the number of bumps of a synthetic function.
const bumpCount = 20

// bumps is the function g(x) = Σ_m w_m exp(−‖x−c_m‖²/(2h²)), with bumpCount centres c_m
// uniform in [−1, 1]^d, standard normal weights and h = √d/2. It lies in the space of the
// Gaussian kernel with σ = h and is smooth at that scale.
type bumps struct {
	c    *points.Dense
	w    []float64
	half float64 // 1/(2h²)
}

func newBumps(d int, s rng.Stream) bumps {
	b := bumps{c: uniform(bumpCount, d, s.Sub("centres")), w: make([]float64, bumpCount), half: 2 / float64(d)}
	s.Sub("weights").Normals(b.w, 0)
	return b
}

func (b bumps) at(x []float64) float64 {
	var g float64
	for m, w := range b.w {
		var r float64
		for j, c := range b.c.Row(m) {
			r += (x[j] - c) * (x[j] - c)
		}
		g += w * math.Exp(-r*b.half)
	}
	return g
}

// uniform returns n points uniform in [−1, 1]^d; the first of them do not depend on n.
func uniform(n, d int, s rng.Stream) *points.Dense {
	x := points.NewDense(n, d, nil)
	for i := range x.Data {
		x.Data[i] = 2*s.Float64(uint64(i)) - 1
	}
	return x
}

// SyntheticRegression returns n points x_i uniform in [−1, 1]^d with the targets
//
//	y_i = g(x_i) + noise·ε_i,  ε_i standard normal,
//
// g a sum of 20 Gaussian bumps drawn from the seed. No method can have a smaller expected
// RMSE than noise; BestError is that of g itself on the points at hand. The first points do
// not depend on n.
func SyntheticRegression(n, d int, noise float64, seed uint64) *Dataset {
	s := rng.New(seed).Sub("synthetic regression")
	g, eps := newBumps(d, s), s.Sub("noise")
	x := uniform(n, d, s.Sub("points"))
	out := &Dataset{
		Name: "synthetic-regression", X: x, Target: make([]float64, n), oracle: make([]float64, n),
		Source: fmt.Sprintf("generated: %d bumps in [-1, 1]^%d, noise %g, seed %d", bumpCount, d, noise, seed),
	}
	for i := range out.Target {
		e := noise * eps.Normal(uint64(i))
		out.Target[i], out.oracle[i] = g.at(x.Row(i))+e, e*e
	}
	return out
}

// SyntheticClasses returns n points x_i uniform in [−1, 1]^d of k ≥ 2 classes: argmax_j g_j(x_i),
// each g_j a sum of 20 Gaussian bumps drawn from the seed, but for a share noise < 1 − 1/k of
// the points, chosen at random, whose label is one of the others. No method can have a
// smaller expected error rate than noise; BestError is that of argmax_j g_j on the points at
// hand. The first points do not depend on n.
func SyntheticClasses(n, d, k int, noise float64, seed uint64) *Dataset {
	s := rng.New(seed).Sub("synthetic classes")
	out := &Dataset{
		Name: "synthetic-classes", Task: Classification, X: uniform(n, d, s.Sub("points")), Class: make([]int, n),
		oracle: make([]float64, n),
		Source: fmt.Sprintf("generated: %d classes in [-1, 1]^%d, %g of the labels wrong, seed %d", k, d, noise, seed),
	}
	g := make([]bumps, k)
	for j := range g {
		g[j] = newBumps(d, s.Sub("class", uint64(j)))
		out.Labels = append(out.Labels, strconv.Itoa(j))
	}
	row := make([]float64, d)
	flip, other := s.Sub("flip"), s.Sub("other")
	for i := range out.Class {
		out.X.RowTo(row, i)
		best := math.Inf(-1)
		for j := range g {
			if v := g[j].at(row); v > best {
				best, out.Class[i] = v, j
			}
		}
		if flip.Float64(uint64(i)) < noise {
			out.Class[i] = (out.Class[i] + 1 + other.IntN(uint64(i), k-1)) % k
			out.oracle[i] = 1
		}
	}
	return out
}

// BestError returns the error of the best possible predictor on these very points, if it is
// known (built-in data), and NaN otherwise: the RMSE for regression, the error rate for
// classification.
func (d *Dataset) BestError() float64 {
	if len(d.oracle) == 0 {
		return math.NaN()
	}
	mean := floats.Sum(d.oracle) / float64(len(d.oracle))
	if d.Task == Regression {
		return math.Sqrt(mean)
	}
	return mean
}
