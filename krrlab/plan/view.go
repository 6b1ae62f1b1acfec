package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Plan is what every way to solve a problem is predicted to take, and the one that is chosen.
type Plan struct {
	stage.Header
	Report
	// the best of another solver or preconditioner; nil if there is none
	RunnerUp   *Candidate   `json:"runner_up"`
	Flips      []string     `json:"flips"`      // what would change the choice
	Candidates []*Candidate `json:"candidates"` // in order of predicted training time, those refused last
	Pilot      Pilot        `json:"pilot"`
	Rates      Rates        `json:"rates"`
	Took       float64      `json:"seconds"` // to plan
}

// Chosen returns how the plan found that K is to be kept, if it did, for the storage and the error asked for; else nil.
func (p *Plan) Chosen(asked gram.Storage, prefer float64) *gram.Choice {
	if p == nil || p.Pilot.task == nil || p.Pilot.task.Storage != asked || p.Pilot.task.Prefer != prefer {
		return nil
	}
	return p.Pilot.choice
}

var _ stage.Stage = (*Plan)(nil)

// folder is that of the BLAS in the name of a machine.
var folder = regexp.MustCompile(`\([^()]*/`)

// String says the choice, the runner-up, what would change it, and what it took to plan.
func (p *Plan) String() string {
	var b stage.Lines
	b.Problem(&p.Header)
	b.Add("choice", "%v: %s", &p.Choice, candidateText(&p.Choice))
	if p.RunnerUp != nil {
		b.Add("runner-up", "%v: %s", p.RunnerUp, candidateText(p.RunnerUp))
	}
	for i, f := range p.Flips {
		b.Add([]string{"changes with", ""}[min(i, 1)], "%s", f)
	}
	s := p.Report.Seconds
	b.Took(s.Total, "kernel", s.Kernel, "features", s.Features, "factor", s.Factor, "solve", s.Solve,
		"residual", s.Residual, "predict", s.Predict)
	b.Add("memory", "%s", accel.Bytes(p.Bytes))
	b.Add("by name", "%s", p.Flags)
	b.Add("plan", "%.2g s, of which %.2g s for K at %s and how to keep it; rates of %s",
		p.Took, p.Pilot.Seconds, plural.Count(p.Pilot.M, "point"), folder.ReplaceAllString(p.Rates.Machine, "("))
	return b.String()
}

// candidateText says what a candidate is predicted to take.
func candidateText(c *Candidate) string {
	its := plural.Count(c.Iterations, "iteration")
	if c.Solver == Direct {
		its = plural.Count(c.Iterations, "round") + " of refinement"
	}
	return fmt.Sprintf("%.3g s, %s, %s", c.Seconds.Total, its, accel.Bytes(c.Bytes))
}

// Table gives a row for each candidate.
func (p *Plan) Table() *plots.Table {
	t := &plots.Table{Title: "Plan: " + p.Dataset, Columns: []plots.Column{
		{Name: "solver"}, {Name: "preconditioner"}, {Name: "s"}, {Name: "λ_p", Format: "%.3g"}, {Name: "K"},
		{Name: "iterations"},
	}}
	for _, name := range []string{"kernel", "features", "factor", "solve", "residual", "predict", "total"} {
		t.Columns = append(t.Columns, plots.Column{Name: name, Unit: "s", Format: "%.3g"})
	}
	t.Columns = append(t.Columns, plots.Column{Name: "memory"}, plots.Column{Name: "refused"})
	for _, c := range p.Candidates {
		s := c.Seconds
		t.Add(c.Solver, c.Precond, c.S, c.LambdaP, c.Storage, c.Iterations, s.Kernel, s.Features, s.Factor, s.Solve,
			s.Residual,
			s.Predict, s.Total, accel.Bytes(c.Bytes), c.Refused)
	}
	return t
}

// Plot draws the predicted seconds of each candidate against its rank, those of none at rank 0, and the choice ringed.
func (p *Plan) Plot() *plots.Figure {
	f := plots.Sweep(fmt.Sprintf("%s, λ = %g: predicted seconds", p.Dataset, p.Lambda), "rank s", "seconds", nil)
	series := map[string]*plots.Series{}
	for _, c := range p.Candidates {
		name := c.Precond
		if c.S == 0 {
			name = c.String()
		}
		if series[name] == nil {
			series[name] = &plots.Series{Name: name}
		}
		if c.Refused == "" {
			series[name].Add(float64(max(c.S, 1)), c.Seconds.Total)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(series)) {
		f.Series = append(f.Series, *series[name])
	}
	f.Marks = []plots.Mark{{X: float64(max(p.Choice.S, 1)), Y: p.Choice.Seconds.Total, Label: "choice"}}
	f.Caption = "By the iterations that a rule expects; what has no rank is at 1."
	return f
}

// HTML gives the lines, the picture and the numbers.
func (p *Plan) HTML() string { return stage.HTML(p) }
