package krrlab

import (
	"fmt"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// as makes the problem one of points of another type, moved, or with a user-defined kernel; "ranks" leaves it to the
// solve.
func (h *adverse) as(kind string) {
	n, d := len(h.rows), len(h.rows[0])
	switch kind {
	case "sparse":
		for i, row := range h.rows {
			for j := range row {
				if (i*d+j)%3 > 0 {
					row[j] = 0
				}
			}
		}
		h.train.X = testkit.Sparse(points.NewDense(n, d, slices.Concat(h.rows...)))
	case "float32":
		x := points.NewDense(n, d, slices.Concat(h.rows...))
		h.train.X, h.rows = testkit.Single(x), rows(x)
	case "moved": // along a separate coordinate, so that the others keep their digits
		top := 1.0
		for _, row := range h.rows {
			for _, v := range row {
				top = max(top, v, -v)
			}
		}
		for i := range h.rows {
			h.rows[i] = append(h.rows[i], 16*float64(d)*top)
		}
		h.train.X = points.NewDense(n, d+1, slices.Concat(h.rows...))
	case "own kernel":
		k := h.cfg.Kernel
		h.cfg.Kernel = kernel.Func{Name: "own", F: k.Eval}
		if f, ok := h.cfg.Precond.(Features); ok {
			h.cfg.Precond = Nystrom{S: f.S}
		}
	}
	h.name = kind + ", " + h.name
}

// TestAdversePoints is TestAdverseProblems with sparse and float32 points, points moved away from zero,
// user-defined kernels, and on ranks.
func TestAdversePoints(t *testing.T) {
	count := map[string]int{}
	for i := range problems() / 2 {
		kind := []string{"sparse", "float32", "moved", "own kernel", "ranks"}[i%5]
		h := newAdverse(i)
		h.as(kind)
		size := 1
		if kind == "ranks" && h.cfg.Solver != Direct && h.cfg.Solver != AutoSolver {
			size = 3
		}
		sols := make([]*Solution, size)
		onRanks(size, func(c comm.Comm) {
			cfg := h.cfg
			if size > 1 {
				cfg.Comm = c
			}
			lab := newLab(t, h.train, cfg)
			if h.large {
				lab.policy.ExactWork, lab.policy.RefineWork = 0, 0
			}
			if sol, err := lab.Solve(t.Context()); err == nil {
				sols[c.Rank()] = sol
			}
		})
		if sols[0] == nil {
			count["refused"]++
			continue
		}
		count[kind+" "+sols[0].Status.String()]++
		h.judge(t, sols[0])
		for _, s := range sols[1:] {
			if s == nil || sameAnswer(s, sols[0]) != "" {
				t.Errorf("%s: the ranks differ", h.name)
			}
		}
	}
	t.Logf("%v", count)
	for _, kind := range []string{"sparse", "float32", "moved", "own kernel", "ranks"} {
		if count[kind+" converged"] < problems()/60 {
			t.Errorf("%s: %d converged", kind, count[kind+" converged"])
		}
	}
}

// TestAdverseVecchia is TestAdverseProblems with the sparse inverse: far groups, duplicates, one dense cluster among
// noise, equal points, dimensions 1 and 500, coordinates of very different scale, with tiny and huge λ.
func TestAdverseVecchia(t *testing.T) {
	count := map[string]int{}
	for i := range problems() {
		h := newAdverse(10000 + i)
		g := rng.New(78).Sub("vecchia", uint64(i))
		n, kind := len(h.rows), []string{"", "blocks", "duplicates", "cluster", "equal", "scales"}[i%6]
		if kind != "" {
			d := pick(g, 0, 1, 2, 5, 500)
			h.rows = adversePoints(kind, n, d, g)
			h.train.X = points.NewDense(n, d, slices.Concat(h.rows...))
		}
		h.cfg.Precond = Vecchia{S: pick(g, 1, 0, 1+n/10), Neighbors: pick(g, 2, 0, -1, 5, n),
			Damping: pick(g, 3, 0, 0.1, 1)}
		if h.cfg.Solver != BlockPCG {
			h.cfg.Solver = PCG
		}
		h.name = fmt.Sprintf("%s, %+v, %s", kind, h.cfg.Precond, h.name)
		h.solve(t, count)
	}
	enough(t, count)
}
