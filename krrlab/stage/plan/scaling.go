package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/plots"
)

// Machines are equal ones, of which each is a rank.
type Machines struct {
	cost.Rates
	cost.Entries         // 0: by the rates
	Nodes        int     `json:"nodes"`
	Cores        int     `json:"cores"`
	Memory       int64   `json:"memory"` // bytes of one; 0: not limited
	Price        float64 `json:"price"`  // of one for an hour
}

// Scaling is what a way to solve a problem is predicted to take on machines, and on fewer and more of them.
type Scaling struct {
	stage.Header
	Machines Machines       `json:"machines"`
	Choice   cost.Candidate `json:"choice"`
	From     string         `json:"iterations_from"`
	// On are the machines asked for; Strong 1, 2, 4, … 1,024 of them, Weak as many with as much of K for each: n ∝ √P.
	Requested Extent   `json:"on"`
	Strong    []Extent `json:"strong"`
	Weak      []Extent `json:"weak"`
}

// Extent is what some machines take.
type Extent struct {
	Nodes   int          `json:"nodes"`
	N       int          `json:"n"`
	Seconds cost.Seconds `json:"predicted_seconds"`
	Bytes   int64        `json:"predicted_bytes"` // of a rank, at their most
	Reason  string       `json:"reason"`          // what most of them are
	Sent    int64        `json:"sent"`            // bytes that a rank hands to the others
	Money   float64      `json:"money"`
	Storage gram.Storage `json:"storage"`
	Limits  []Limit      `json:"limits"`
}

// Limit is a stage and what is in its way: what would save the most of its seconds, if there were ten times as much.
type Limit struct {
	Stage    string  `json:"stage"`
	Seconds  float64 `json:"seconds"`
	Resource string  `json:"limit"`
}

// mostNodes is up to how many machines are shown.
const mostNodes = 1024

// Scale predicts what the candidate takes on the machines. Storage auto is what fits: float32, or recompute.
func (m Machines) Scale(h stage.Header, c cost.Model, way cost.Candidate) *Scaling {
	s := &Scaling{Header: h, Machines: m, Choice: way}
	c.Rates, c.Entries, c.Cores = m.Rates, m.Entries, m.Cores
	s.Requested = m.extent(c, way, m.Nodes)
	each := float64(c.PointBytes) / float64(c.N)
	for p := 1; p <= mostNodes; p *= 2 {
		s.Strong = append(s.Strong, m.extent(c, way, p))
		w := c
		w.N = max(int(float64(c.N)*math.Sqrt(float64(p)/float64(m.Nodes))), way.S, 1)
		w.PointBytes = int64(each * float64(w.N))
		s.Weak = append(s.Weak, m.extent(w, way, p))
	}
	s.Choice.Seconds, s.Choice.Bytes, s.Choice.Storage = s.Requested.Seconds, s.Requested.Bytes, s.Requested.Storage
	if m.Memory > 0 && s.Requested.Bytes > m.Memory {
		s.Choice.Refused = fmt.Sprintf("a rank holds %s, a machine has %s: %s", accel.Bytes(s.Requested.Bytes),
			accel.Bytes(m.Memory), s.Requested.Reason)
	}
	return s
}

// extent predicts what so many machines take. Storage auto is float32 where that fits, else recompute.
func (m *Machines) extent(c cost.Model, way cost.Candidate, nodes int) Extent {
	if c.Ranks = nodes; way.Storage == gram.Auto {
		if way.Storage = gram.Float32; m.Memory > 0 && c.Memory(&way).Peak > m.Memory {
			way.Storage = gram.Recompute
		}
	}
	c.Predict(&way)
	held, traffic := c.Memory(&way), c.Traffic(&way)
	e := Extent{Nodes: nodes, N: c.N, Seconds: way.Seconds, Bytes: held.Peak, Reason: held.Reason(),
		Sent: traffic.Bytes(&way), Storage: way.Storage,
		Money: m.Price * float64(nodes) * way.Seconds.Total / 3600}
	best := parts(&way.Seconds)
	for i, v := range best {
		e.Limits = append(e.Limits, Limit{Stage: stages[i], Seconds: v})
	}
	for _, by := range []string{"arithmetic", "memory bandwidth", "network", "latency"} {
		c, way := c, way
		switch by {
		case "arithmetic":
			c.Gemm32, c.Gemm64, c.Exp = 10*c.Gemm32, 10*c.Gemm64, 10*c.Exp
			c.EntrySeconds, c.ExactEntrySeconds = c.EntrySeconds/10, c.ExactEntrySeconds/10
		case "memory bandwidth":
			c.Read *= 10
		case "network":
			c.Bandwidth *= 10
		default:
			c.Latency /= 10
		}
		c.Predict(&way)
		for i, v := range parts(&way.Seconds) {
			if v < best[i] {
				best[i], e.Limits[i].Resource = v, by
			}
		}
	}
	return e
}

var stages = []string{"kernel", "features", "factor", "solve", "residual"}

// parts are the seconds of the stages.
func parts(s *cost.Seconds) []float64 {
	return []float64{s.Kernel, s.Features, s.Factor, s.Solve, s.Residual}
}

var _ stage.Stage = (*Scaling)(nil)

// String says what the machines take, what limits each stage, and how many of them are worth while.
func (s *Scaling) String() string {
	var b stage.Lines
	m, on := &s.Machines, &s.Requested
	b.Add("data", "%s: n = %d, d = %d, t = %d", s.Dataset, s.N, s.D, s.T)
	b.Add("way", "%v, K %v; %s, %s", &s.Choice, on.Storage, plural.Count(s.Choice.Iterations, "iteration"), s.From)
	memory := ""
	if m.Memory > 0 {
		memory = " and " + accel.Bytes(m.Memory)
	}
	b.Add("machines", "%d of %s%s, %.3g Gbit/s, %.3g µs; %.3g and %.3g Gflop/s, %.3g GB/s (%s)%s", m.Nodes,
		plural.Count(m.Cores, "core"), memory, 8e-9*m.Bandwidth, 1e6*m.Latency, m.Gemm32/1e9, m.Gemm64/1e9, m.Read/1e9,
		folder.ReplaceAllString(m.Machine, "("), spreadText(&m.Entries))
	v := on.Seconds
	b.Took(v.Total, "kernel", v.Kernel, "features", v.Features, "factor", v.Factor, "solve", v.Solve, "residual",
		v.Residual)
	b.Add("network", "%.3g s of them; %s handed over by a rank", v.Network, accel.Bytes(on.Sent))
	b.Add("memory", "%s a rank, %s", accel.Bytes(on.Bytes), on.Reason)
	if m.Price > 0 {
		b.Add("money", "%.2f", on.Money)
	}
	if s.Choice.Refused != "" {
		b.Add("does not fit", "%s", s.Choice.Refused)
	}
	name := "limits"
	for _, l := range on.Limits {
		if l.Resource != "" {
			b.Add(name, "%s, %.3g s: %s", l.Stage, l.Seconds, l.Resource)
			name = ""
		}
	}
	best := slices.MinFunc(s.Strong, func(a, b Extent) int { return cmp.Compare(a.Seconds.Total, b.Seconds.Total) })
	more := "more gain nothing"
	if best.Nodes == mostNodes {
		more = "more are not shown"
	}
	b.Add("most", "%s, %.3g s: %s", plural.Count(best.Nodes, "machine"), best.Seconds.Total, more)
	return b.String()
}

// HTML gives the lines, the picture and the numbers.
func (s *Scaling) HTML() string { return stage.HTML(s) }

// Table gives a row for each number of machines.
func (s *Scaling) Table() *plots.Table {
	t := &plots.Table{Title: "Scaling: " + s.Dataset}
	for _, name := range strings.Fields("scaling nodes n K") {
		t.Columns = append(t.Columns, plots.Column{Name: name, Format: "%v"})
	}
	for _, name := range append(slices.Clone(stages), "network", "total") {
		t.Columns = append(t.Columns, plots.Column{Name: name, Unit: "s", Format: "%.3g"})
	}
	for _, name := range strings.Fields("memory sent money limit") {
		t.Columns = append(t.Columns, plots.Column{Name: name})
	}
	for i, list := range [][]Extent{{s.Requested}, s.Strong, s.Weak} {
		for _, e := range list {
			v := e.Seconds
			most := slices.MaxFunc(e.Limits, func(a, b Limit) int { return cmp.Compare(a.Seconds, b.Seconds) })
			t.Add([]string{"asked", "strong", "weak"}[i], e.Nodes, e.N, e.Storage, v.Kernel, v.Features, v.Factor,
				v.Solve, v.Residual, v.Network, v.Total, accel.Bytes(e.Bytes), accel.Bytes(e.Sent), e.Money,
				most.Stage+": "+most.Resource)
		}
	}
	return t
}

// Plot draws the seconds of the stages against the number of machines, for the same points and for as much of K on
// each, and names at the end of each line what limits it there.
func (s *Scaling) Plot() *plots.Figure {
	f := &plots.Figure{Title: fmt.Sprintf("%s, %s: predicted seconds", s.Dataset, s.Choice.Precond), Columns: 2,
		Width: 10}
	for i, list := range [][]Extent{s.Strong, s.Weak} {
		p := plots.Figure{Title: []string{"strong scaling", "weak scaling"}[i],
			X: plots.Axis{Label: "machines", Log: true}, Y: plots.Axis{Label: "seconds", Log: true}}
		for k, name := range append(slices.Clone(stages), "total") {
			line := plots.Series{Name: name}
			for _, e := range list {
				if v := append(parts(&e.Seconds), e.Seconds.Total)[k]; v > 0 {
					line.Add(float64(e.Nodes), v)
				}
			}
			if len(line.X) == 0 {
				continue
			}
			p.Series = append(p.Series, line)
			if last := list[len(list)-1]; k < len(stages) && last.Limits[k].Resource != "" {
				p.Marks = append(p.Marks, plots.Mark{X: float64(last.Nodes), Y: last.Limits[k].Seconds,
					Label: last.Limits[k].Resource})
			}
		}
		f.Panels = append(f.Panels, p)
	}
	f.Caption = "Marks name what limits a stage on the most machines."
	return f
}
