package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/plots"
)

// Machines describes a number of equal machines, each of which runs one rank.
type Machines struct {
	cost.Rates
	cost.Entries         // zero values are computed from the rates
	Nodes        int     `json:"nodes"`  // number of machines
	Cores        int     `json:"cores"`  // number of cores of one machine
	Memory       int64   `json:"memory"` // memory of one machine in bytes; 0: no limit
	Price        float64 `json:"price"`  // price of one machine for an hour, in any currency; 0: unknown
}

// Scaling predicts the costs of one candidate on a requested number of machines, and on fewer and more of them.
type Scaling struct {
	stage.Header
	Machines        Machines       `json:"machines"`
	Choice          cost.Candidate `json:"choice"`
	IterationSource string         `json:"iterations_from"` // source of Choice.Iterations, as reported
	// Requested is the prediction for the requested number of machines. Strong has the predictions for 1, 2, 4, … 1,024
	// machines and the same problem; Weak those for a problem that grows with the number P of machines, n ∝ √P, so that
	// each machine stores an equal amount of K.
	Requested ScalingPoint   `json:"on"`
	Strong    []ScalingPoint `json:"strong"`
	Weak      []ScalingPoint `json:"weak"`
}

// ScalingPoint is the predicted cost on one number of machines.
type ScalingPoint struct {
	Nodes       int          `json:"nodes"`
	N           int          `json:"n"` // number of points
	Seconds     cost.Seconds `json:"predicted_seconds"`
	Bytes       int64        `json:"predicted_bytes"` // peak memory of a rank
	LargestPart string       `json:"reason"`          // the largest part of Bytes
	SentBytes   int64        `json:"sent"`            // bytes that a rank passes to collectives
	TotalPrice  float64      `json:"money"`           // price of all machines, in the currency of Machines.Price
	Storage     gram.Storage `json:"storage"`         // storage of K
	Limits      []Limit      `json:"limits"`          // limit of each stage, in the order of stageNames
}

// Limit names the resource that limits one stage of a solve: a tenfold amount of this resource would save the most
// seconds.
type Limit struct {
	Stage    string  `json:"stage"`
	Seconds  float64 `json:"seconds"` // predicted seconds of the stage
	Resource string  `json:"limit"`   // "" if none of the resources saves time
}

// maxNodes is the largest number of machines for which Scale makes predictions.
const maxNodes = 1024

// Scale predicts the costs of a candidate on the machines, and on 1 to 1,024 of them, for the problem that h and model
// describe. Storage auto means float32 if that fits into memory and recompute otherwise. Choice.RefusalReason of the
// result is set if the candidate does not fit.
func (m Machines) Scale(h stage.Header, model cost.Model, candidate cost.Candidate) *Scaling {
	s := &Scaling{Header: h, Machines: m, Choice: candidate}
	model.Rates, model.Entries, model.Cores = m.Rates, m.Entries, m.Cores
	s.Requested = m.scalingPoint(model, candidate, m.Nodes)
	bytesPerPoint := float64(model.PointBytes) / float64(model.N)
	for p := 1; p <= maxNodes; p *= 2 {
		s.Strong = append(s.Strong, m.scalingPoint(model, candidate, p))
		weakModel := model
		weakModel.N = max(int(float64(model.N)*math.Sqrt(float64(p)/float64(m.Nodes))), candidate.S, 1)
		weakModel.PointBytes = int64(bytesPerPoint * float64(weakModel.N))
		weakModel.Trace = model.Trace * float64(weakModel.N) / float64(model.N)
		s.Weak = append(s.Weak, m.scalingPoint(weakModel, candidate, p))
	}
	s.Choice.Seconds, s.Choice.Bytes, s.Choice.Storage = s.Requested.Seconds, s.Requested.Bytes, s.Requested.Storage
	if err := (accel.Budget{Limit: m.Memory}).Check(s.Requested.Bytes, "a rank",
		"take more machines, or more memory for each"); err != nil {
		s.Choice.RefusalReason = err.Error()
	}
	return s
}

// scalingPoint predicts the costs on the given number of machines, and finds the limits by making each resource ten
// times as large in turn. Storage auto means float32 if that fits into memory and recompute otherwise.
func (m *Machines) scalingPoint(model cost.Model, candidate cost.Candidate, nodes int) ScalingPoint {
	if model.Ranks = nodes; candidate.Storage == gram.Auto {
		if candidate.Storage = gram.Float32; !(accel.Budget{Limit: m.Memory}).Fits(model.Memory(&candidate).Peak) {
			candidate.Storage = gram.Recompute
		}
	}
	model.Predict(&candidate)
	memory, traffic := model.Memory(&candidate), model.Traffic(&candidate)
	point := ScalingPoint{Nodes: nodes, N: model.N, Seconds: candidate.Seconds, Bytes: memory.Peak,
		LargestPart: memory.LargestPart(), SentBytes: traffic.Bytes(&candidate), Storage: candidate.Storage,
		TotalPrice: m.Price * float64(nodes) * candidate.Seconds.Total / 3600}

	stageMinima := stageSeconds(&candidate.Seconds) // fewest seconds of each stage, over the enlarged resources
	for i, seconds := range stageMinima {
		point.Limits = append(point.Limits, Limit{Stage: stageNames[i], Seconds: seconds})
	}
	for _, resource := range []string{"arithmetic", "memory bandwidth", "network", "latency"} {
		enlarged, candidate := model, candidate
		switch resource {
		case "arithmetic":
			enlarged.Gemm32, enlarged.Gemm64, enlarged.Exp = 10*model.Gemm32, 10*model.Gemm64, 10*model.Exp
			enlarged.EntrySeconds, enlarged.ExactEntrySeconds = model.EntrySeconds/10, model.ExactEntrySeconds/10
		case "memory bandwidth":
			enlarged.Read *= 10
		case "network":
			enlarged.Bandwidth *= 10
		case "latency":
			enlarged.Latency /= 10
		}
		enlarged.Predict(&candidate)
		for i, seconds := range stageSeconds(&candidate.Seconds) {
			if seconds < stageMinima[i] {
				stageMinima[i], point.Limits[i].Resource = seconds, resource
			}
		}
	}
	return point
}

// stageNames are the stages of a solve that several machines share.
var stageNames = []string{"kernel", "features", "factor", "solve", "residual"}

// stageSeconds returns the seconds of the stages in the order of stageNames.
func stageSeconds(seconds *cost.Seconds) []float64 {
	return []float64{seconds.Kernel, seconds.Features, seconds.Factor, seconds.Solve, seconds.Residual}
}

var _ stage.Stage = (*Scaling)(nil)

// String reports the predicted costs, the resource that limits each stage, and the number of machines beyond which the
// solve gets no faster.
func (s *Scaling) String() string {
	var lines stage.Lines
	m, requested := &s.Machines, &s.Requested
	lines.Add("data", "%s: n = %d, d = %d, t = %d", s.Dataset, s.N, s.D, s.T)
	lines.Add("way", "%v, K %v; %s, %s", &s.Choice, requested.Storage, plural.Count(s.Choice.Iterations, "iteration"),
		s.IterationSource)
	memory := ""
	if m.Memory > 0 {
		memory = " and " + accel.FormatBytes(m.Memory)
	}
	lines.Add("machines", "%d of %s%s, %.3g Gbit/s, %.3g µs; %.3g and %.3g Gflop/s, %.3g GB/s (%s)%s", m.Nodes,
		plural.Count(m.Cores, "core"), memory, 8e-9*m.Bandwidth, 1e6*m.Latency, m.Gemm32/1e9, m.Gemm64/1e9, m.Read/1e9,
		folderPattern.ReplaceAllString(m.Machine, "("), spreadText(&m.Entries))
	seconds := requested.Seconds
	lines.AddSeconds(seconds.Total, "kernel", seconds.Kernel, "features", seconds.Features, "factor", seconds.Factor,
		"solve", seconds.Solve, "residual", seconds.Residual)
	lines.Add("network", "%.3g s of them; %s handed over by a rank", seconds.Network,
		accel.FormatBytes(requested.SentBytes))
	lines.Add("memory", "%s a rank, %s", accel.FormatBytes(requested.Bytes), requested.LargestPart)
	if m.Price > 0 {
		lines.Add("money", "%.2f", requested.TotalPrice)
	}
	lines.AddText("does not fit", s.Choice.RefusalReason)
	name := "limits"
	for _, limit := range requested.Limits {
		if limit.Resource != "" {
			lines.Add(name, "%s, %.3g s: %s", limit.Stage, limit.Seconds, limit.Resource)
			name = ""
		}
	}
	best := slices.MinFunc(s.Strong, func(a, b ScalingPoint) int {
		return cmp.Compare(a.Seconds.Total, b.Seconds.Total)
	})
	note := "more gain nothing"
	if best.Nodes == maxNodes {
		note = "more are not shown"
	}
	lines.Add("most", "%s, %.3g s: %s", plural.Count(best.Nodes, "machine"), best.Seconds.Total, note)
	return lines.String()
}

// HTML returns the lines, the figure and the table.
func (s *Scaling) HTML() string { return stage.HTML(s) }

// Table has one row for each number of machines.
func (s *Scaling) Table() *plots.Table {
	table := &plots.Table{Title: "Scaling: " + s.Dataset, Columns: plots.ParseColumns("scaling %v", "nodes %v", "n %v",
		"K %v",
		"kernel (s) %.3g", "features (s) %.3g", "factor (s) %.3g", "solve (s) %.3g", "residual (s) %.3g",
		"network (s) %.3g", "total (s) %.3g", "memory", "sent", "money", "limit")}
	for i, points := range [][]ScalingPoint{{s.Requested}, s.Strong, s.Weak} {
		for _, point := range points {
			seconds := point.Seconds
			slowest := slices.MaxFunc(point.Limits, func(a, b Limit) int { return cmp.Compare(a.Seconds, b.Seconds) })
			table.Add([]string{"asked", "strong", "weak"}[i], point.Nodes, point.N, point.Storage, seconds.Kernel,
				seconds.Features, seconds.Factor, seconds.Solve, seconds.Residual, seconds.Network, seconds.Total,
				accel.FormatBytes(point.Bytes), accel.FormatBytes(point.SentBytes), point.TotalPrice,
				slowest.Stage+": "+slowest.Resource)
		}
	}
	return table
}

// Plot draws the seconds of the stages against the number of machines, for strong and for weak scaling. At the end of
// each line it names the resource that limits the stage there.
func (s *Scaling) Plot() *plots.Figure {
	figure := &plots.Figure{Title: fmt.Sprintf("%s, %s: predicted seconds", s.Dataset, s.Choice.Precond), Columns: 2,
		Width: 10}
	for i, points := range [][]ScalingPoint{s.Strong, s.Weak} {
		panel := plots.Figure{Title: []string{"strong scaling", "weak scaling"}[i],
			X: plots.Axis{Label: "machines", Log: true}, Y: plots.Axis{Label: "seconds", Log: true}}
		for stageIndex, name := range append(slices.Clone(stageNames), "total") {
			line := plots.Series{Name: name}
			for _, point := range points {
				if seconds := append(stageSeconds(&point.Seconds), point.Seconds.Total)[stageIndex]; seconds > 0 {
					line.Add(float64(point.Nodes), seconds)
				}
			}
			if len(line.X) == 0 {
				continue
			}
			panel.Series = append(panel.Series, line)
			if largest := points[len(points)-1]; stageIndex < len(stageNames) &&
				largest.Limits[stageIndex].Resource != "" {
				panel.Marks = append(panel.Marks, plots.Mark{X: float64(largest.Nodes),
					Y: largest.Limits[stageIndex].Seconds, Label: largest.Limits[stageIndex].Resource})
			}
		}
		figure.Panels = append(figure.Panels, panel)
	}
	figure.Caption = "Marks name what limits a stage on the most machines."
	return figure
}
