package krrlab

import (
	"cmp"
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// Vecchia is M = FFᵀ+V: F, of rank S, by randomly pivoted Cholesky, and V⁻¹ = GᵀG a sparse approximate inverse of what
// F leaves, ω(K−FFᵀ)+λI, on the neighbors of each point (package vecchia). It is for narrow kernels, of whose K no
// features or landmarks capture much.
type Vecchia struct {
	S int // rank r of F, 0 ≤ r ≤ n; default: 0, no F
	// entries k in a row of G beside the diagonal, negative: none; default: by a rule, 15 to 120 (vecchia.Options)
	Neighbors int
	Damping   float64 // ω in (0, 1]; default: by a rule
}

// String returns what M consists of.
func (p Vecchia) String() string {
	s := "sparse inverse on neighbors"
	if p.Neighbors != 0 {
		s = fmt.Sprintf("sparse inverse on %d neighbors", max(p.Neighbors, 0))
	}
	if p.S > 0 {
		s += fmt.Sprintf(" beside %d pivots", p.S)
	}
	if p.Damping > 0 {
		s += fmt.Sprintf(", ω = %g", p.Damping)
	}
	return s
}

// most returns the most neighbors that one of n points may be given.
func (p Vecchia) most(n int) int { return max(0, min(cmp.Or(p.Neighbors, vecchia.MostNeighbors), n-1)) }

// bytes returns what M takes for n points at most.
func (p Vecchia) bytes(n int) int64 {
	return 16*int64(n)*int64(p.most(n)+1) + 8*int64(n)*int64(p.S)
}

func (p Vecchia) settled(_ kernel.Kernel, n int, _ float64) (Preconditioner, error) {
	if p.S < 0 || p.S > n {
		return p, fmt.Errorf("krrlab: Vecchia: %d pivots: want 0 to n = %d", p.S, n)
	}
	if !(p.Damping >= 0 && p.Damping <= 1) {
		return p, fmt.Errorf("krrlab: Vecchia: ω = %g: want 0 < ω ≤ 1, or 0 for the rule's", p.Damping)
	}
	return p, nil
}

// Make implements Preconditioner. It forms K first. The last M is held for the stages that follow (Lab.Free).
func (p Vecchia) Make(ctx context.Context, l *Lab) (pcg.Preconditioner, error) {
	n := l.train.Len()
	if _, err := p.settled(nil, n, 0); err != nil {
		return nil, err
	}
	k, err := l.matrix(ctx, p.bytes(n), nil, false)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m, err := l.v.take([]any{p, l.cfg.Seed}, func() (*vecchia.Inverse, error) {
		l.m.free()
		var f *points.Dense32
		if p.S > 0 {
			z, err := l.lockedFactor(ctx, RPCholesky{S: p.S}.parts())
			if err != nil {
				return nil, err
			}
			f = z.a.Z
		}
		return vecchia.New(ctx, k.a, f, &vecchia.Options{
			Neighbors: p.Neighbors, Damping: p.Damping, Seed: rng.New(l.cfg.Seed).Sub("vecchia", 0), Comm: l.comm,
		})
	})
	if err != nil {
		return nil, err
	}
	return m.a, nil
}
