package krrlab

import (
	"math"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestErrorBoundsHold: on problems drawn at random, no bound of the error is below it, whatever the preconditioner and
// the storage, and however the residual is recomputed; and in float64 they are near, in the median, where μ is known.
// The long run has 100 problems.
func TestErrorBoundsHold(t *testing.T) {
	problems := 8
	if os.Getenv("KRRLAB_LONG") != "" {
		problems = 100
	}
	for name, p := range map[string]Preconditioner{"none": None{}, "features": Features{}, "nystrom": Nystrom{}, "rpcholesky": RPCholesky{}} {
		for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Fixed16} {
			var near, nearCertain []float64
			for i := range problems {
				g := rng.New(77).Sub("problem", uint64(i))
				x := points.NewDense(60+g.Sub("n").IntN(0, 90), 3, nil)
				g.Sub("x").Normals(x.Data, 0)
				cfg := Config{
					Kernel: kernel.Gaussian{Sigma: math.Pow(10, 1.2*g.Sub("sigma").Float64(0)-0.5)}, Lambda: math.Pow(10, -3*g.Sub("lambda").Float64(0)),
					Precond: p, Solver: []Solver{PCG, BlockPCG}[i%2], Storage: storage, Seed: uint64(i), Tol: []float64{1e-2, 1e-4}[i/2%2], MaxIter: 400,
					Exact: []ResidualPolicy{ExactResidual, StoredResidual}[i%3/2],
				}
				if a, ok := p.(approximation); ok {
					cfg.Precond = sized(a, 25, cfg.Lambda*[]float64{1, 10}[i%2])
				}
				l := newLab(t, classes(x, 2+i%3), cfg)
				sol, err := l.Solve(t.Context())
				if err != nil {
					t.Fatalf("%s, %v, problem %d: %v", name, storage, i, err)
				}
				if sol.Error == nil {
					if storage == gram.Float64 {
						t.Errorf("%s, problem %d: no bound: %v", name, i, sol.Status)
					}
					continue
				}
				if (sol.Error.Certain != nil) != (cfg.Exact == ExactResidual) {
					t.Errorf("%s, %v, problem %d: certain %v of a residual of %s", name, storage, i, sol.Error.Certain, sol.ResidualKind)
				}
				ref := newReference(t, cfg.Kernel, x, cfg.Lambda, l.y)
				for j, bound := range sol.Error.Bounds {
					var e mat.VecDense
					e.SubVec(ref.c.ColView(j), sol.Model.C.ColView(j))
					size := math.Sqrt(mat.Inner(ref.c.ColView(j), ref.a, ref.c.ColView(j)))
					is, slack := math.Sqrt(mat.Inner(&e, ref.a, &e)), 1e-9*size // of the reference
					if is > bound+slack || sol.Error.Certain != nil && is > sol.Error.Certain[j]+slack || sol.Error.Sizes[j] > size+slack {
						t.Errorf("%s, %v, problem %d, column %d: ‖e‖_A = %.4g, ‖c‖_A = %.4g, bounds %+v", name, storage, i, j, is, size, sol.Error)
					}
					near = append(near, bound/is)
					if sol.Error.Certain != nil {
						nearCertain = append(nearCertain, sol.Error.Certain[j]/is)
					}
				}
			}
			slices.Sort(near)
			slices.Sort(nearCertain)
			if len(near) == 0 {
				continue
			}
			m := near[len(near)/2]
			t.Logf("%s, %v: bounds %.3g times the error in the median, at most %.3g; certain ones %.3g", name, storage, m, near[len(near)-1], nearCertain[len(nearCertain)/2])
			if storage == gram.Float64 && name != "features" && m > 3 {
				t.Errorf("%s: bounds are %.3g times the error in the median", name, m)
			}
		}
	}
}
