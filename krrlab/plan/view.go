package plan

import (
	"cmp"
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
	RunnerUp   *Candidate   `json:"runner_up"`        // the best of another solver or preconditioner; nil if there is none
	Rivals     []*Candidate `json:"rivals,omitempty"` // what a race is to decide between, the choice first; none where none pays
	Flips      []string     `json:"flips"`            // what would change the choice
	Advice     string       `json:"advice,omitempty"` // where another tool is better
	Candidates []*Candidate `json:"candidates"`       // in order of predicted training time, those refused last
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

// Report is a choice, and what it is predicted to take, for the report of a solve.
type Report struct {
	Choice  Candidate `json:"choice"`
	Seconds Seconds   `json:"predicted_seconds"`
	Bytes   int64     `json:"predicted_bytes"` // of the process, at their most
	Flags   string    `json:"flags"`           // of krrlab fit that ask for the choice by name
	// Race says between what a race decided, and what it cost; "" without one.
	Race string `json:"race,omitempty"`
	// Instead is the direct solver that a solve which goes wrong goes over to (Late), nil where it does not; Over says that it did, and why.
	Instead *Candidate `json:"instead,omitempty"`
	Over    string     `json:"over,omitempty"`
}

// What a solve does before it goes over to the direct solver, in parts of the seconds of that.
const (
	fewSpent = 0.25 // before the slope is believed that says more is left than the direct solver takes
	fewLeft  = 0.125
	// overTimes is how many times as long as iterations that came to nothing it may take.
	overTimes = 10
)

// Late reports whether the direct solver would be done sooner than iterations of which so many are done, and so many are
// left as the slope of their residuals forecasts, at least low: these take longer than the direct solver, after a quarter
// of its seconds, or more than an eighth of them, after as many as it takes; or twice as many are gone. So at most about
// three times what the direct solver alone would take is spent, beside forming K and M. By the seconds predicted for an iteration: no clock enters.
func (r *Report) Late(done int, low, left float64) bool {
	if r == nil || r.Instead == nil {
		return false
	}
	iterations := r.Instead.Seconds.training() / r.Choice.each() // that take as long as the direct solver
	spent := float64(done) / iterations
	return spent >= fewSpent && low >= iterations || spent >= 1 && left > fewLeft*iterations || spent >= 2
}

// Worth reports whether the direct solver is worth its seconds after so many iterations that did not reach τ: they are
// at most ten times those of the iterations.
func (r *Report) Worth(done int) bool {
	return r != nil && r.Instead != nil && r.Instead.Seconds.training() <= overTimes*float64(done)*r.Choice.each()
}

// each returns the seconds of an iteration.
func (c *Candidate) each() float64 { return c.Seconds.Solve / float64(c.Iterations+1) }

var _ stage.Stage = (*Plan)(nil)

// folder is that of the BLAS in the name of a machine.
var folder = regexp.MustCompile(`\([^()]*/`)

// String says the choice, the runner-up, what would change it, and what it took to
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
	if p.Advice != "" {
		b.Add("instead", "%s", p.Advice)
	}
	s := p.Report.Seconds
	b.Took(s.Total, "kernel", s.Kernel, "features", s.Features, "factor", s.Factor, "solve", s.Solve, "residual", s.Residual, "predict", s.Predict)
	for i, o := range p.Rivals {
		b.Add([]string{"race of", ""}[min(i, 1)], "%v", o)
	}
	b.Add("memory", "%s", accel.Bytes(p.Bytes))
	b.Add("by name", "%s", p.Flags)
	b.Add("plan", "%.2g s, of which %.2g s for K at %s and how to keep it; rates of %s", p.Took, p.Pilot.Seconds, plural.Count(p.Pilot.M, "point"), folder.ReplaceAllString(p.Rates.Machine, "("))
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
		{Name: "solver"}, {Name: "preconditioner"}, {Name: "s"}, {Name: "λ_p", Format: "%.3g"}, {Name: "K"}, {Name: "iterations"},
		{Name: "kernel", Unit: "s", Format: "%.3g"}, {Name: "features", Unit: "s", Format: "%.3g"}, {Name: "factor", Unit: "s", Format: "%.3g"},
		{Name: "solve", Unit: "s", Format: "%.3g"}, {Name: "residual", Unit: "s", Format: "%.3g"}, {Name: "predict", Unit: "s", Format: "%.3g"},
		{Name: "total", Unit: "s", Format: "%.3g"}, {Name: "memory"}, {Name: "refused"},
	}}
	for _, c := range p.Candidates {
		s := c.Seconds
		t.Add(c.Solver, c.Precond, c.S, c.LambdaP, c.Stored, c.Iterations, s.Kernel, s.Features, s.Factor, s.Solve, s.Residual, s.Predict, s.Total, accel.Bytes(c.Bytes), c.Refused)
	}
	return t
}

// Plot draws the predicted seconds against the rank, a line for each preconditioner, the least of its solvers and λ_p
// at each rank, with those that have no rank as levels, and the choice ringed.
func (p *Plan) Plot() *plots.Figure {
	f := plots.Sweep(fmt.Sprintf("%s, λ = %g: predicted seconds", p.Dataset, p.Lambda), "rank s", "seconds", nil)
	least := map[string]map[int]float64{}
	var lo, hi float64
	for _, c := range p.Candidates {
		if c.Refused != "" {
			continue
		}
		name := c.Precond
		if c.S == 0 {
			name = c.String()
		} else {
			lo, hi = min(cmp.Or(lo, float64(c.S)), float64(c.S)), max(hi, float64(c.S))
		}
		if least[name] == nil {
			least[name] = map[int]float64{}
		}
		if v, ok := least[name][c.S]; !ok || c.Seconds.Total < v {
			least[name][c.S] = c.Seconds.Total
		}
	}
	if hi == 0 {
		lo, hi = 1, float64(p.N)
	}
	f.Series = planSeries(least, lo, hi)
	if p.Choice.S > 0 {
		f.Marks = []plots.Mark{{X: float64(p.Choice.S), Y: p.Choice.Seconds.Total, Label: "choice"}}
	}
	f.Caption = "By the iterations that a rule expects; the least of the solvers at each rank."
	return f
}

// planSeries returns a series for each name, a level from lo to hi for what has no rank.
func planSeries(least map[string]map[int]float64, lo, hi float64) (list []plots.Series) {
	for _, name := range slices.Sorted(maps.Keys(least)) {
		c := plots.Series{Name: name}
		for _, s := range slices.Sorted(maps.Keys(least[name])) {
			if s == 0 {
				c.X, c.Y = []float64{lo, hi}, []float64{least[name][0], least[name][0]}
				break
			}
			c.X, c.Y = append(c.X, float64(s)), append(c.Y, least[name][s])
		}
		list = append(list, c)
	}
	return list
}

// HTML gives the lines, the picture and the numbers.
func (p *Plan) HTML() string { return stage.HTML(p) }
