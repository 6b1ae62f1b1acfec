package plan

import (
	"cmp"
	"fmt"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/precond"
)

// Problem is a solve by preconditioned conjugate gradients.
type Problem struct {
	N, D, T    int          // points, their dimension, right-hand sides
	PointBytes int64        // of X; 0 means 8nd
	Storage    gram.Storage // of K; not gram.Auto
	// KernelBytes are those of K that a rank holds. 0: of all tiles as it is stored.
	KernelBytes int64
	// S is the number of features, or the rank of landmarks; 0 means no preconditioner.
	S         int
	Landmarks bool
	Neighbors int // of a sparse inverse
}

// Memory is what a rank holds, in bytes; of ranks that differ by a tile or a block of rows, the
// one with the most.
type Memory struct {
	Points   int64 // X
	Kernel   int64 // its tiles of K, with their tables
	Features int64 // its rows of Z, or the whole of F, and of a sparse inverse
	Columns  int64 // of K, for landmarks, on the way to F
	Factor   int64 // 8s²; as much again while it is formed
	Vectors  int64 // of the iteration
	// Forming is what is held when the factor is formed, Solving in the iteration, and Most
	// the larger of them.
	Forming int64
	Solving int64
	Most    int64
}

// Of returns what a rank of P = ranks holds. It panics unless n, d, t and ranks are positive,
// 0 ≤ s ≤ n and the storage is one.
func Of(p Problem, ranks int) Memory {
	if p.N < 1 || p.D < 1 || p.T < 1 || p.S < 0 || p.S > p.N || ranks < 1 || p.Storage == gram.Auto {
		panic(fmt.Sprintf("plan: %+v on %d ranks", p, ranks))
	}
	n, d, t, s := int64(p.N), int64(p.D), int64(p.T), int64(p.S)
	m := Memory{Points: p.PointBytes, Factor: 8 * s * s, Vectors: 80 * n * t}
	m.Points = cmp.Or(m.Points, 8*n*d)
	m.Kernel = cmp.Or(p.KernelBytes, gram.RankBytes(p.N, p.Storage, ranks))
	_, own := comm.Rows(p.N, precond.RankRows, 0, ranks)
	for r := range ranks {
		lo, hi := comm.Rows(p.N, precond.RankRows, r, ranks)
		own = max(own, hi-lo)
	}
	m.Features = 4 * int64(own) * s
	if p.Landmarks {
		m.Features = 4 * n * s
		m.Columns = 8 * n * min(max(10, s/10), 200, s)
	}
	m.Features += 16 * n * int64(p.Neighbors)
	m.Forming = m.Points + m.Features + 2*m.Factor
	m.Solving = m.Points + m.Kernel + m.Features + m.Factor + m.Vectors
	if p.Landmarks {
		m.Forming = max(m.Points+m.Kernel+m.Features+m.Columns, m.Forming+m.Kernel)
	}
	if k := int64(p.Neighbors); k > 0 { // the lists that they are chosen of
		m.Forming = max(m.Forming, m.Points+m.Kernel+m.Features+24*n*k)
	}
	m.Most = max(m.Forming, m.Solving)
	return m
}

// Reason names the largest part of what is held when most is, and what can be done about it.
func (m Memory) Reason() string {
	factor := m.Factor
	if m.Forming >= m.Solving {
		factor *= 2
	}
	var most int64
	var reason string
	for _, p := range []struct {
		bytes        int64
		name, advice string
	}{
		{factor, "the factor of ZᵀZ+λ_pI, 8s² and as much again while it is formed", "take fewer features"},
		{m.Points, "the points, all of them on each rank", "take one rank for each machine"},
		{m.Kernel, "K", "take more ranks, or a storage of fewer bytes"},
		{m.Features, "features", "take fewer features"},
		{m.Vectors, "vectors, 80nt", "take fewer right-hand sides at once"},
	} {
		if p.bytes > most {
			most = p.bytes
			reason = fmt.Sprintf("%s of them are %s: %s", accel.Bytes(p.bytes), p.name, p.advice)
		}
	}
	return reason
}
