package plan

import (
	"cmp"
	"fmt"
	"strings"

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
	Ranks    int
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
	m := Memory{Ranks: ranks, Points: p.PointBytes, Factor: 8 * s * s, Vectors: 80 * n * t}
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

// Ranks returns the least number of ranks on each of which the solve takes at most that many bytes,
// or an error that names the part that rules out every number up to most.
func Ranks(p Problem, bytes int64, most int) (int, error) {
	if last := Of(p, most); last.Most > bytes {
		return 0, fmt.Errorf("on %d ranks each would hold %s of the %s allowed: %s", most, accel.Bytes(last.Most),
			accel.Bytes(bytes), last.Reason())
	}
	lo, hi := 1, most // hi is enough
	for lo < hi {
		mid := (lo + hi) / 2
		if Of(p, mid).Most <= bytes {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo, nil
}

// parts lists what is held when most is, the factor first.
func (m Memory) parts() []part {
	factor := part{"the factor of ZᵀZ+λ_pI, 8s² and as much again while it is formed", "take fewer features", m.Factor}
	if m.Forming >= m.Solving {
		factor.bytes *= 2
	}
	return []part{
		factor,
		{"the points, all of them on each rank", "take one rank for each machine", m.Points},
		{"K", "take more ranks, or a storage of fewer bytes", m.Kernel},
		{"features", "take fewer features", m.Features},
		{"vectors, 80nt", "take fewer right-hand sides at once", m.Vectors},
	}
}

// part is one of the things that a rank holds.
type part struct {
	name, advice string
	bytes        int64
}

// Reason names the largest part and what can be done about it.
func (m Memory) Reason() string {
	list := m.parts()
	largest := list[0]
	for _, p := range list {
		if p.bytes > largest.bytes {
			largest = p
		}
	}
	return fmt.Sprintf("%s of them are %s: %s", accel.Bytes(largest.bytes), largest.name, largest.advice)
}

// String says it in one line.
func (m Memory) String() string {
	var parts []string
	for _, p := range []part{{"points", "", m.Points}, {"K", "", m.Kernel}, {"features", "", m.Features},
		{"factor", "", m.Factor}, {"vectors", "", m.Vectors}} {
		if p.bytes > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", p.name, accel.Bytes(p.bytes)))
		}
	}
	who := "one rank, "
	if m.Ranks > 1 {
		who = fmt.Sprintf("%d ranks, each ", m.Ranks)
	}
	return fmt.Sprintf("%sat most %s: %s", who, accel.Bytes(m.Most), strings.Join(parts, ", "))
}
