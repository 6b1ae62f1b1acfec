package krrlab

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/precond"
)

// Ranks says who shared the work of a solve and what a rank, the first, handed to the
// others: as its counters have it, and as the formulas do. Times, peak memory and the
// bytes of K in a report are the first rank's as well.
type Ranks struct {
	Count   int    `json:"count"`
	OnNode  int    `json:"on_node,omitempty"` // of them on the first one's machine
	Library string `json:"library,omitempty"`

	Products       int     `json:"products"`        // with K as stored
	ProductBytes   int64   `json:"product_bytes"`   // of all products, counted
	ProductFormula int64   `json:"product_formula"` // Σ 8(nk+2), or 8(2nk+2) with float64 tiles; k columns a product
	Solves         int     `json:"solves"`          // with M
	SolveBytes     int64   `json:"solve_bytes"`     // counted
	SolveFormula   int64   `json:"solve_formula"`   // Σ 8(s+m)k, m of Z's n rows at the first rank
	Bytes          int64   `json:"bytes"`           // all stages
	Seconds        float64 `json:"seconds"`         // in collectives, waiting for others included
}

// String says it in one line.
func (r *Ranks) String() string {
	s := fmt.Sprintf("%d", r.Count)
	if r.OnNode > 0 {
		s += fmt.Sprintf(" (%d on this machine)", r.OnNode)
	}
	if r.Products > 0 {
		p := int64(r.Products)
		s += fmt.Sprintf("; each sends %s per product (predicted %s)", Bytes(r.ProductBytes/p), Bytes(r.ProductFormula/p))
	}
	if r.Solves > 0 {
		p := int64(r.Solves)
		s += fmt.Sprintf(", %s per solve with M (predicted %s)", Bytes(r.SolveBytes/p), Bytes(r.SolveFormula/p))
	}
	return s + fmt.Sprintf("; %.1f s in collectives", r.Seconds)
}

// countTraffic returns a function that adds what has been sent since to sol.Ranks.
func (s *solve) countTraffic() func(*pcg.Result) {
	if s.cfg.Comm == nil {
		return func(*pcg.Result) {}
	}
	if s.sol.Ranks == nil {
		s.sol.Ranks = &Ranks{Count: s.comm.Size()}
	}
	a := s.a
	w, _ := s.m.(*precond.Woodbury)
	solved := func() int64 {
		if w == nil {
			return 0
		}
		return w.Traffic().Bytes
	}
	products, solves := a.Traffic().Bytes, solved()
	return func(res *pcg.Result) {
		r, mul, pre := s.sol.Ranks, res.Stats.MulTo, res.Stats.SolveTo
		r.Products += mul.Calls
		r.ProductBytes += a.Traffic().Bytes - products
		r.ProductFormula += a.ProductBytes(mul.Columns) + int64(mul.Calls-1)*a.ProductBytes(0)
		r.Solves += pre.Calls
		r.SolveBytes += solved() - solves
		if w != nil {
			lo, hi := s.featureRows()
			r.SolveFormula += precond.SolveBytes(w.Features(), pre.Columns, hi-lo)
		}
	}
}

// checkMemory returns an error where what the solve holds beside K is more than it may, and
// names the part that is in the way.
func (l *Lab) checkMemory(ctx context.Context) error {
	ranks := l.comm.Size()
	n, d, t := l.Dims()
	p := plan.Problem{N: n, D: d, T: t, PointBytes: pointBytes(l.train.X), Storage: gram.Recompute}
	if r := l.approximation(); r != nil {
		p.S, _ = r.size()
		_, random := r.(Features)
		p.Landmarks = !random
	}
	var err error
	if m := plan.Of(p, ranks); l.cfg.Memory > 0 && m.Most > l.cfg.Memory {
		who := "the solve"
		if ranks > 1 {
			who = fmt.Sprintf("each of %d ranks", ranks)
		}
		err = fmt.Errorf("krrlab: %s would hold %s beside K, the limit is %s: %s", who, Bytes(m.Most), Bytes(l.cfg.Memory), m.Reason())
	}
	return comm.Agree(ctx, l.comm, err)
}

// countWaiting sets what ranks have sent in all.
func (l *Lab) countWaiting(sol *Solution) {
	if sol.Ranks == nil {
		return
	}
	t := l.comm.Traffic()
	sol.Ranks.Bytes, sol.Ranks.Seconds = t.Bytes, t.Seconds
}
