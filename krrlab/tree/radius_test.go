package tree

import (
	"context"
	"math"
	"math/big"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// exact returns Σ|x_c−z_c|^power without rounding, power 1 or 2.
func exact(x, z []float64, power int) *big.Float {
	sum := new(big.Float).SetPrec(500)
	for c, v := range x {
		w := new(big.Float).SetPrec(500).Sub(big.NewFloat(v), big.NewFloat(z[c]))
		if w.Abs(w); power == 2 {
			w.Mul(w, w)
		}
		sum.Add(sum, w)
	}
	return sum
}

// TestRounding searches for points on which floating point gives the bounds of the tree away. They lie at equal
// distances on a line along the diagonal, shifted by a few units in the last place, so that the triangle inequalities
// behind the radii and the gaps are equalities and rounding alone decides. For each pair of nodes no two points may be
// nearer than gap, and each inner node must hold its points in its ball. Without the allowance in the radius of an inner
// node the second fails; with a radius that is a little too small, the first does as well, and a tile of the kernel
// matrix would be skipped that is not negligible.
func TestRounding(t *testing.T) {
	const n = 16
	for seed := range uint64(40) {
		d := 1 + int(seed%3)
		x, noise := points.NewDense(n, d, nil), make([]float64, n*d+2)
		rng.New(seed).Normals(noise, 0)
		for i := range n {
			for c := range d {
				x.Row(i)[c] = (noise[n*d] + float64(i)*noise[n*d+1]) * (1 + 0x1p-52*math.Round(noise[i*d+c]))
			}
		}
		tr := testkit.Must(New(context.Background(), x, 1))
		inside := func(k int) []int { return tr.Order[tr.nodes[k].from:tr.nodes[k].to] }
		for a, v := range tr.nodes {
			_, _, center := tr.box(a)
			for _, i := range inside(a) {
				radius := new(big.Float).SetPrec(200).SetFloat64(v.radius)
				if v.left > 0 && exact(x.Row(i), center, 2).Cmp(radius.Mul(radius, radius)) > 0 {
					t.Errorf("seed %d: node %d of radius %g does not hold point %d", seed, a, v.radius, i)
				}
			}
			if first, last := x.Row(inside(a)[0]), x.Row(tr.Order[v.to-1]); v.radius > distance(first, last)*(1+1e-12) {
				t.Errorf("seed %d: node %d has radius %g", seed, a, v.radius)
			}
			for b := range a + 1 {
				for _, i := range inside(a) {
					for _, j := range inside(b) {
						for by, power := range map[Metric]int{Squares: 2, Absolutes: 1} {
							distance := exact(x.Row(i), x.Row(j), power)
							if gap := tr.gap(a, tr, b, by); distance.Cmp(big.NewFloat(gap)) < 0 {
								t.Fatalf("seed %d: nodes %d and %d are %g apart, points %d and %d %g", seed, a, b, gap, i, j,
									distance)
							}
						}
					}
				}
			}
		}
	}
}
