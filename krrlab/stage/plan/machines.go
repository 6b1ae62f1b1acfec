package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// socket is how many bytes a second of memory a machine of more cores than this one is taken to read, at most.
const socket = 100e9

// timed is how many random points entries of K are timed with.
const timed = 8192

// machines returns those that the options ask for. Rates that are not given are of
// this machine, times the cores.
func (o Options) machines(ctx context.Context) (m Machines, err error) {
	m = Machines{Nodes: o.Nodes, Cores: cmp.Or(o.Cores, accel.Threads()), Memory: o.Memory, Price: o.Price}
	m.Network = cost.Network{Bandwidth: o.Bandwidth / 8 * 1e9, Latency: o.Latency.Seconds()}
	at := map[string]*float64{"read": &m.Read, "gemm32": &m.Gemm32, "gemm64": &m.Gemm64, "exp": &m.Exp,
		"entry": &m.EntrySeconds}
	for _, word := range strings.FieldsFunc(o.Rates, func(r rune) bool { return r == ',' }) {
		name, text, _ := strings.Cut(word, "=")
		v, err := strconv.ParseFloat(text, 64)
		if at[name] == nil || err != nil || !(v > 0 && v < 1e12) {
			return m, fmt.Errorf("--rates %s: want name=number, in 10⁹ a second, of gemm32, gemm64, read, exp, entry",
				word)
		}
		*at[name] = 1e9 * v
	}
	if m.EntrySeconds > 0 {
		m.EntrySeconds = 1 / m.EntrySeconds
	}
	if m.Machine = "as given"; min(m.Read, m.Gemm32, m.Gemm64, m.Exp) > 0 {
		return m, nil
	}
	r, err := cost.ReadRates(ctx)
	by := float64(m.Cores) / float64(accel.Threads())
	m.Machine, m.Read = r.Machine, cmp.Or(m.Read, min(by*r.Read, max(r.Read, socket)))
	m.Gemm32, m.Gemm64, m.Exp = cmp.Or(m.Gemm32, by*r.Gemm32), cmp.Or(m.Gemm64, by*r.Gemm64), cmp.Or(m.Exp, by*r.Exp)
	m.Touch = by * r.Touch
	return m, err
}

// Scale predicts what the machines of the options take for a problem of which the size is known, and points in bytes or
// not. Where rates are of this machine, entries of K are timed, of random points.
func (o Options) Scale(ctx context.Context, h stage.Header, bytes bool, way cost.Candidate) (*Scaling, error) {
	if err := o.countable(h, way); err != nil {
		return nil, err
	}
	m, err := o.machines(ctx)
	if err != nil {
		return nil, err
	}
	c, all := cost.Model{N: h.N, D: h.D, T: h.T}, points.NewDense(timed, h.D, nil)
	rng.New(1).Float64s(all.Data, 0)
	var x points.Points = all
	if bytes {
		for i, v := range all.Data {
			all.Data[i] = math.Floor(256*v) / 255
		}
		x, _ = points.AsBytes(all, 1./255)
		c.PointBytes = int64(h.N) * int64(h.D)
	}
	if m.Machine == cost.ThisMachine() {
		of := &stage.Problem{Header: stage.Header{N: timed, D: h.D, T: 1, Lambda: 1, Tol: 1e-3}, X: x,
			Kernel: kernel.Gaussian{Sigma: math.Sqrt(float64(h.D))}}
		p, err := newPilot(ctx, &Task{Problem: of})
		if err != nil {
			return nil, err
		}
		m.entries(p.Entries)
	}
	return m.Scale(h, c, way), nil
}

// countable refuses a problem if a machine's bytes, of all the points on one machine or of the most points of weak
// scaling, might not fit an int64.
func (o Options) countable(h stage.Header, way cost.Candidate) error {
	if p, ok := way.M.(cost.Preconditioner); ok {
		parts := p.Cost(&cost.Model{Rates: cost.Reference(), N: min(h.N, 1000), D: h.D, T: h.T}, gram.Recompute)
		way.S, way.Neighbors = parts.S, parts.Neighbors
	}
	n, s := float64(h.N), float64(way.S)
	rows := n * max(1, math.Sqrt(mostNodes/float64(o.Nodes)))
	bytes := 8 * (n*n/2 + rows*(float64(h.D)+10*float64(h.T)+2*s+3*float64(way.Neighbors)) + 2*s*s)
	if bytes < 1<<62 {
		return nil
	}
	return fmt.Errorf("n = %d, d = %d, t = %d, s = %d: up to %.0e bytes, more than a plan counts (2⁶²): take fewer points",
		h.N, h.D, h.T, way.S, bytes)
}

// entries takes seconds of entries of K measured here for those of the machines.
func (m *Machines) entries(e cost.Entries) {
	by := float64(accel.Threads()) / float64(m.Cores)
	m.ExactEntrySeconds, m.EntrySeconds, m.TimingSpread = by*e.ExactEntrySeconds, cmp.Or(m.EntrySeconds,
		by*e.EntrySeconds), e.TimingSpread
}

// scale returns the best of the candidates of a plan on the machines.
func (o Options) scale(ctx context.Context, p *Plan, of *stage.Problem) (*Scaling, error) {
	m, err := o.machines(ctx)
	if err != nil {
		return nil, err
	}
	m.entries(p.Pilot.Entries)
	var best *Scaling
	for _, way := range p.Candidates {
		if way.Solver == cost.Direct {
			continue
		}
		c := cost.Model{N: of.N, D: of.D, T: of.T, Tests: o.Tests, PointBytes: points.MemoryBytes(of.X), K: &p.Pilot.choice}
		as := *way
		if as.Iterations = cmp.Or(o.Iterations, way.Iterations); c.K.Sparse == nil &&
			p.Pilot.task.Fixed.Storage == gram.Auto {
			as.Storage = gram.Auto
		}
		s := m.Scale(p.Header, c, as)
		if s.From = "by the rule"; o.Iterations > 0 {
			s.From = "as given"
		}
		if best == nil || s.better(best) {
			best = s
		}
	}
	if best == nil {
		return nil, errors.New("plan: a direct solver is for one machine: leave --solver out with --nodes")
	}
	return best, nil
}

// better reports whether s is the way to take rather than o.
func (s *Scaling) better(o *Scaling) bool {
	if (s.Choice.Refused == "") != (o.Choice.Refused == "") {
		return s.Choice.Refused == ""
	}
	return s.Choice.Seconds.Training() < o.Choice.Seconds.Training()
}
