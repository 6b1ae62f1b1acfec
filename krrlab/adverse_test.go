package krrlab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// isJustifiedRefusal reports whether the problem of lab l with the points x justifies the error err. With 16-bit
// storage, kernel values outside [0, 1] and a λ below the storage error justify a refusal. A direct solve and the
// factorization of a preconditioner may fail if λ or λ_p is below the rounding error of the factors.
func isJustifiedRefusal(t *testing.T, l *Lab, x [][]float64, err error) bool {
	t.Helper()
	message, cfg, n := err.Error(), l.cfg, float64(len(x))
	switch {
	case cfg.Storage == gram.Fixed16 && strings.Contains(message, "fixed16 is for kernels"):
		return !kernel.Bounded01(cfg.Kernel)
	case cfg.Storage == gram.Fixed16 && strings.Contains(message, "more than λ/2"):
		// The lab refuses if its prediction of ‖E‖₂ exceeds λ/2. The prediction is at most 2‖E‖_F/√n + ‖E‖₂ ≤ 3‖E‖₂,
		// since all rows are sampled, plus the rounding error of kernel values in float64.
		return 3.1*fixed16Error(t, cfg.Kernel, x)+n*float64(len(x[0])+10)*0x1p-52 > cfg.Lambda/2
	case cfg.Solver == Direct && strings.Contains(message, "direct: K+λI"):
		roundoff := 0x1p-53
		if strings.Contains(message, "float32-refined") {
			roundoff = 0x1p-24
		}
		return cfg.Lambda < n*roundoff*slices.Max(kernel.Diag(cfg.Kernel, l.train.X))
	case strings.Contains(message, "too large for float32"):
		return cfg.Storage == gram.Float32 && slices.Max(kernel.Diag(cfg.Kernel, l.train.X)) > math.MaxFloat32
	case strings.Contains(message, "vecchia: K+λI among"):
		return cfg.Lambda < n*0x1p-52*slices.Max(kernel.Diag(cfg.Kernel, l.train.X))
	case strings.Contains(message, "precond: ZᵀZ+λ_pI"):
		z := wholeZ(t, l)
		return ridge(l) < float64(z.D)*0x1p-52*floats.Sum(points.SqNorms(z))
	}
	return false
}

// fixed16Error returns the 2-norm of the storage error E of K if its values are rounded to multiples of 1/65535.
func fixed16Error(t *testing.T, k kernel.Kernel, x [][]float64) float64 {
	t.Helper()
	e := mat.NewSymDense(len(x), nil)
	for i := range x {
		for j := range i {
			value := k.Eval(x[i], x[j])
			e.SetSym(i, j, math.RoundToEven(value*65535)/65535-value)
		}
	}
	eigenvalues := testkit.Eigenvalues(t, e)
	return max(-eigenvalues[0], eigenvalues[len(eigenvalues)-1])
}

// largeProblem returns a problem with the given points and configuration, and a smooth target with noise.
func largeProblem(name string, x [][]float64, cfg Config) *adverseProblem {
	y := make([]float64, len(x))
	for i := range y {
		y[i] = math.Sin(x[i][0]) + 0.3*rng.New(79).Normal(uint64(i))
	}
	problem := &adverseProblem{rows: x, cfg: cfg}
	problem.train = &datasets.Dataset{Name: "large", Task: datasets.Regression,
		X: points.NewDense(len(x), len(x[0]), slices.Concat(x...)), Target: y}
	problem.name = fmt.Sprintf("%s (n = %d, d = %d, %v, λ = %.2g, τ = %.2g, %v)", name, len(x), len(x[0]), cfg.Kernel,
		cfg.Lambda, cfg.Tol, cfg.Precond)
	return problem
}

// TestAdverseWideKernels uses kernels so wide that float32 and 16-bit storage round more than the landmarks omit. It
// checks that the landmarks are never refused as indefinite and that the certain bound of κ holds for the dense
// reference, in both storages.
func TestAdverseWideKernels(t *testing.T) {
	for i := range problems() / 75 {
		random := rng.New(82).Sub("wide", uint64(i))
		choices, uniform := random.Sub("choice"), random.Sub("float")
		n, d := 240+choices.IntN(0, 120), 1+choices.IntN(1, 4)
		rows, lambda := adversePoints("plain", n, d, random), logUniform(uniform, 1, -2.5, -1.5)
		for _, storage := range []gram.Storage{gram.Float32, gram.Fixed16} {
			problem := largeProblem(fmt.Sprintf("wide kernel, number %d, %v", i, storage), rows, Config{
				Kernel: kernel.Gaussian{Sigma: math.Sqrt(float64(d)) * logUniform(uniform, 0, 0.7, 1.6)},
				Lambda: lambda,
				Tol:    1e-3, Seed: uint64(i),
				Solver: PCG, Storage: storage, Precond: withSize(RPCholesky{}, n/10+choices.IntN(2, n/3), lambda),
			})
			lab := newLab(t, problem.train, problem.cfg)
			z, err := lab.Z(t.Context())
			if err != nil {
				t.Errorf("%s: %v", problem.name, err)
				continue
			}
			values, relError, ok := problem.pencil(lab, z)
			if bound := lab.z.value.Factor.CondBound(lambda, lambda); !ok ||
				values[n-1]/values[0]*(1-relError) > bound {
				t.Errorf("%s: κ = %.6g, certainly at most %.6g", problem.name, values[n-1]/values[0], bound)
			}
		}
	}
}

// changeTo replaces the points by points of another type or moved points, or the kernel by a user-defined one. For
// the kind "ranks" it changes the name only, because the caller then solves on several ranks.
func (p *adverseProblem) changeTo(kind string) {
	n, d := len(p.rows), len(p.rows[0])
	switch kind {
	case "sparse":
		for i, row := range p.rows {
			for j := range row {
				if (i*d+j)%3 > 0 {
					row[j] = 0
				}
			}
		}
		p.train.X = testkit.ToCSR(points.NewDense(n, d, slices.Concat(p.rows...)))
	case "float32":
		x := points.NewDense(n, d, slices.Concat(p.rows...))
		p.train.X, p.rows = testkit.RoundToFloat32(x), rows(x)
	case "moved": // The points move along a new coordinate, so that the other coordinates keep their digits.
		largest := 1.0
		for _, row := range p.rows {
			for _, value := range row {
				largest = max(largest, value, -value)
			}
		}
		for i := range p.rows {
			p.rows[i] = append(p.rows[i], 16*float64(d)*largest)
		}
		p.train.X = points.NewDense(n, d+1, slices.Concat(p.rows...))
	case "user-defined kernel":
		p.cfg.Kernel = kernel.Func{Name: "user-defined", F: p.cfg.Kernel.Eval}
		if features, ok := p.cfg.Precond.(Features); ok {
			p.cfg.Precond = Nystrom{S: features.S}
		}
	}
	p.name = kind + ", " + p.name
}

// TestAdversePoints solves adverse problems with sparse points, float32 points, points moved away from zero,
// user-defined kernels, and on ranks. Answers are judged as in TestAdverseProblems, and all ranks must have the same
// answer.
func TestAdversePoints(t *testing.T) {
	kinds := []string{"sparse", "float32", "moved", "user-defined kernel", "ranks"}
	outcomes := map[string]int{}
	for i := range problems() / 2 {
		kind := kinds[i%len(kinds)]
		problem := newAdverse(i)
		problem.changeTo(kind)
		size := 1
		if kind == "ranks" && problem.cfg.Solver != Direct && problem.cfg.Solver != AutoSolver {
			size = 3
		}
		sols := make([]*Solution, size)
		onRanks(size, func(ranks comm.Comm) {
			cfg := problem.cfg
			if size > 1 {
				cfg.Comm = ranks
			}
			lab := newLab(t, problem.train, cfg)
			if problem.large {
				lab.policy.ExactWork, lab.policy.RefineWork = 0, 0
			}
			if sol, err := lab.Solve(t.Context()); err == nil {
				sols[ranks.Rank()] = sol
			}
		})
		if sols[0] == nil {
			outcomes["refused"]++
			continue
		}
		outcomes[kind+" "+sols[0].Status.String()]++
		problem.judge(t, sols[0])
		for _, other := range sols[1:] {
			if other == nil || sameAnswer(other, sols[0]) != "" {
				t.Errorf("%s: the ranks differ", problem.name)
			}
		}
	}
	t.Logf("%v", outcomes)
	for _, kind := range kinds {
		if got := outcomes[kind+" converged"]; got < problems()/60 {
			t.Errorf("%s: %d problems converged, want at least %d", kind, got, problems()/60)
		}
	}
}

// TestAdverseVecchia solves adverse problems with the sparse inverse as preconditioner and makes the same checks as
// TestAdverseProblems. The points form far groups, contain duplicates, are one dense cluster among noise, are all
// equal, have very different scales, or have dimension 1 or 500.
func TestAdverseVecchia(t *testing.T) {
	outcomes := map[string]int{}
	for i := range problems() {
		problem := newAdverse(10000 + i)
		random := rng.New(78).Sub("vecchia", uint64(i))
		n, kind := len(problem.rows), []string{"", "blocks", "duplicates", "cluster", "equal", "scales"}[i%6]
		if kind != "" {
			d := pick(random, 0, 1, 2, 5, 500)
			problem.rows = adversePoints(kind, n, d, random)
			problem.train.X = points.NewDense(n, d, slices.Concat(problem.rows...))
		}
		problem.cfg.Precond = Vecchia{S: pick(random, 1, 0, 1+n/10), Neighbors: pick(random, 2, 0, -1, 5, n),
			Damping: pick(random, 3, 0, 0.1, 1)}
		if problem.cfg.Solver != BlockPCG {
			problem.cfg.Solver = PCG
		}
		problem.name = fmt.Sprintf("%s, %+v, %s", kind, problem.cfg.Precond, problem.name)
		problem.solve(t, outcomes)
	}
	checkConvergedShare(t, outcomes)
}
