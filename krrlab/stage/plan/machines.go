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

// maxReadRate bounds the memory bandwidth, in bytes per second, that is assumed for a machine with more cores than this
// one: the measured rate is scaled with the cores only up to this value.
const maxReadRate = 100e9

// randomPoints is the number of random points that are used to time entries of K when the data are not available.
const randomPoints = 8192

// machines returns the machines that the options describe. Rates that the options do not set are those of this machine,
// scaled by the ratio of the cores. It returns an error for malformed Options.Rates. In Rates, "entry" is a number
// of entries of K per second; its inverse becomes EntrySeconds.
func (o Options) machines(ctx context.Context) (m Machines, err error) {
	m = Machines{Nodes: o.Nodes, Cores: cmp.Or(o.Cores, accel.Threads()), Memory: o.Memory, Price: o.Price}
	m.Network = cost.Network{Bandwidth: o.Bandwidth / 8 * 1e9, Latency: o.Latency.Seconds()} // Gbit/s to bytes/s
	rateByName := map[string]*float64{"read": &m.Read, "gemm32": &m.Gemm32, "gemm64": &m.Gemm64, "exp": &m.Exp,
		"entry": &m.EntrySeconds}
	for _, word := range strings.FieldsFunc(o.Rates, func(c rune) bool { return c == ',' }) {
		name, text, _ := strings.Cut(word, "=")
		value, err := strconv.ParseFloat(text, 64)
		if rateByName[name] == nil || err != nil || !(value > 0 && value < 1e12) {
			return m, fmt.Errorf("--rates %s: want name=number, in 10⁹ a second, of gemm32, gemm64, read, exp, entry",
				word)
		}
		*rateByName[name] = 1e9 * value
	}
	if m.EntrySeconds > 0 {
		m.EntrySeconds = 1 / m.EntrySeconds
	}
	if m.Machine = "as given"; min(m.Read, m.Gemm32, m.Gemm64, m.Exp) > 0 {
		return m, nil
	}
	rates, err := cost.ReadRates(ctx)
	speedup := float64(m.Cores) / float64(accel.Threads())
	m.Machine = rates.Machine
	m.Read = cmp.Or(m.Read, min(speedup*rates.Read, max(rates.Read, maxReadRate)))
	m.Gemm32 = cmp.Or(m.Gemm32, speedup*rates.Gemm32)
	m.Gemm64 = cmp.Or(m.Gemm64, speedup*rates.Gemm64)
	m.Exp = cmp.Or(m.Exp, speedup*rates.Exp)
	m.Touch = speedup * rates.Touch
	return m, err
}

// Scale predicts the seconds, bytes and traffic of a candidate on the machines that the options describe, for a problem
// with the given header whose data need not be available. pointsInBytes states whether the points are stored as one
// byte per feature. If the rates are those of this machine, entries of K are timed on random points. It returns an
// error if the options are invalid or the predicted bytes overflow.
func (o Options) Scale(ctx context.Context, h stage.Header, pointsInBytes bool,
	candidate cost.Candidate) (*Scaling, error) {
	if err := o.checkByteCounts(h, candidate); err != nil {
		return nil, err
	}
	m, err := o.machines(ctx)
	if err != nil {
		return nil, err
	}
	model, sample := cost.Model{N: h.N, D: h.D, T: h.T}, points.NewDense(randomPoints, h.D, nil)
	rng.New(1).Float64s(sample.Data, 0)
	var x points.Points = sample
	if pointsInBytes {
		for i, v := range sample.Data {
			sample.Data[i] = math.Floor(256*v) / 255 // a multiple of 1/255, as AsBytes requires
		}
		x, _ = points.AsBytes(sample, 1./255)
		model.PointBytes = int64(h.N) * int64(h.D)
	}
	if m.Machine == cost.ThisMachine() {
		sampleProblem := &stage.Problem{Header: stage.Header{N: randomPoints, D: h.D, T: 1, Lambda: 1, Tol: 1e-3}, X: x,
			Kernel: kernel.Gaussian{Sigma: math.Sqrt(float64(h.D))}}
		pilot, err := newPilot(ctx, &Task{Problem: sampleProblem})
		if err != nil {
			return nil, err
		}
		m.setEntrySeconds(pilot.Entries)
	}
	return m.Scale(h, model, candidate), nil
}

// checkByteCounts returns an error if a predicted number of bytes, either of all points on one machine or of the
// largest problem in weak scaling (Scaling), might overflow an int64. It adds three parts: K, at most 8n²/2 bytes per
// machine in either case; the numbers stored for each point (coordinates, some 10t entries of vectors, features and
// neighbors); and two s×s matrices.
func (o Options) checkByteCounts(h stage.Header, candidate cost.Candidate) error {
	if p, ok := candidate.Preconditioner.(cost.Preconditioner); ok {
		precondCost := p.Cost(&cost.Model{Rates: cost.Reference(), N: min(h.N, 1000), D: h.D, T: h.T}, gram.Recompute)
		candidate.S, candidate.Neighbors = precondCost.S, precondCost.Neighbors
	}
	n, s := float64(h.N), float64(candidate.S)
	maxPoints := n * max(1, math.Sqrt(maxNodes/float64(o.Nodes))) // points of the largest problem in weak scaling
	bytes := 8 * (n*n/2 + maxPoints*(float64(h.D)+10*float64(h.T)+2*s+3*float64(candidate.Neighbors)) + 2*s*s)
	if bytes < 1<<62 {
		return nil
	}
	return fmt.Errorf("n = %d, d = %d, t = %d, s = %d: up to %.0e bytes, more than a plan counts (2⁶²): take fewer "+
		"points", h.N, h.D, h.T, candidate.S, bytes)
}

// setEntrySeconds sets the seconds per entry of K on the machines from those measured on this one. It keeps
// EntrySeconds if the options set this field.
func (m *Machines) setEntrySeconds(e cost.Entries) {
	slowdown := float64(accel.Threads()) / float64(m.Cores)
	m.ExactEntrySeconds = slowdown * e.ExactEntrySeconds
	m.EntrySeconds = cmp.Or(m.EntrySeconds, slowdown*e.EntrySeconds)
	m.TimingSpread = e.TimingSpread
}

// bestScaling predicts every iterative candidate of a plan on the machines and returns the best one. It returns an
// error if the plan has only direct solvers.
func (o Options) bestScaling(ctx context.Context, p *Plan, problem *stage.Problem) (*Scaling, error) {
	m, err := o.machines(ctx)
	if err != nil {
		return nil, err
	}
	m.setEntrySeconds(p.Pilot.Entries)
	var best *Scaling
	for _, c := range p.Candidates {
		if c.Solver == cost.Direct || c.Solver == cost.Fourier {
			continue
		}
		candidate := *c
		candidate.Iterations = cmp.Or(o.Iterations, c.Iterations)
		model := cost.Model{N: problem.N, D: problem.D, T: problem.T, TestRows: o.TestRows,
			PointBytes: points.MemoryBytes(problem.X), K: &p.Pilot.choice, Trace: p.Pilot.trace}
		if model.K.Sparse == nil && p.Pilot.task.Fixed.Storage == gram.Auto {
			candidate.Storage = gram.Auto // Scale chooses it again for the memory of the machines.
		}
		scaling := m.Scale(p.Header, model, candidate)
		if scaling.IterationSource = "by the rule"; o.Iterations > 0 {
			scaling.IterationSource = "as given"
		}
		if best == nil || scaling.betterThan(best) {
			best = scaling
		}
	}
	if best == nil {
		return nil, errors.New("plan: a direct solver is for one machine: leave --solver out with --nodes")
	}
	return best, nil
}

// betterThan reports whether s is preferable to rival: a candidate that fits into memory precedes one that does not,
// and then the one with less training time is better.
func (s *Scaling) betterThan(rival *Scaling) bool {
	if (s.Choice.RefusalReason == "") != (rival.Choice.RefusalReason == "") {
		return s.Choice.RefusalReason == ""
	}
	return s.Choice.Seconds.Training() < rival.Choice.Seconds.Training()
}
