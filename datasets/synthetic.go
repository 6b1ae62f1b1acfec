package datasets

import (
	"fmt"
	"math"
	"strconv"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// centres is the number of bumps of a synthetic function.
const centres = 20

// bumps is g(x) = Σ_m w_m exp(−‖x−c_m‖²/(2·width²)).
type bumps struct {
	c, w  []float64
	d     int
	width float64
}

func newBumps(d int, s rng.Stream) bumps {
	b := bumps{c: make([]float64, centres*d), w: make([]float64, centres), d: d, width: math.Sqrt(float64(d)) / 2}
	for i := range b.c {
		b.c[i] = 2*s.Sub("centres").Float64(uint64(i)) - 1
	}
	s.Sub("weights").Normals(b.w, 0)
	return b
}

func (b bumps) at(x []float64) float64 {
	var g float64
	for m, w := range b.w {
		var r float64
		for j, v := range x {
			r += (v - b.c[m*b.d+j]) * (v - b.c[m*b.d+j])
		}
		g += w * math.Exp(-r/(2*b.width*b.width))
	}
	return g
}

func uniform(n, d int, s rng.Stream) *points.Dense {
	x := points.NewDense(n, d, nil)
	for i := range x.Data {
		x.Data[i] = 2*s.Float64(uint64(i)) - 1
	}
	return x
}

// SyntheticRegression returns n points uniform in [−1, 1]^d with y = g(x) + noise·ε.
func SyntheticRegression(n, d int, noise float64, seed uint64) *Dataset {
	s := rng.New(seed).Sub("synthetic-regression")
	g := newBumps(d, s)
	x := uniform(n, d, s.Sub("x"))
	y := make([]float64, n)
	for i := range y {
		y[i] = g.at(x.Row(i)) + noise*s.Sub("noise").Normal(uint64(i))
	}
	return &Dataset{Name: "synthetic-regression", X: x, Target: y, BestError: noise, Source: fmt.Sprintf("generated, seed %d", seed)}
}

// SyntheticClasses returns n points of k classes, the largest of k functions g_j, a share
// noise of the labels replaced by another one.
func SyntheticClasses(n, d, k int, noise float64, seed uint64) *Dataset {
	s := rng.New(seed).Sub("synthetic-classes")
	g := make([]bumps, k)
	labels := make([]string, k)
	for j := range g {
		g[j] = newBumps(d, s.Sub("class", uint64(j)))
		labels[j] = strconv.Itoa(j)
	}
	x := uniform(n, d, s.Sub("x"))
	class := make([]int, n)
	for i := range class {
		best := math.Inf(-1)
		for j := range g {
			if v := g[j].at(x.Row(i)); v > best {
				best, class[i] = v, j
			}
		}
		if s.Sub("flip").Float64(uint64(i)) < noise {
			class[i] = (class[i] + 1 + s.Sub("other").IntN(uint64(i), k-1)) % k
		}
	}
	return &Dataset{Name: "synthetic-classes", Task: Classification, X: x, Class: class, Labels: labels, BestError: noise, Source: fmt.Sprintf("generated, seed %d", seed)}
}
