package plan

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/plots"
)

// Plan has the predicted costs of every candidate for solving a problem, and the choice.
type Plan struct {
	stage.Header
	Report
	// RunnerUp is the best candidate after the choice; nil if there is none.
	RunnerUp         *cost.Candidate `json:"runner_up"`
	ChangeConditions []string        `json:"flips"` // conditions under which the choice would be another one
	// Candidates are in the order of predicted training time: the choice first, refused ones last. A Fourier series
	// that was not chosen comes after the other candidates that are not refused.
	Candidates  []*cost.Candidate `json:"candidates"`
	Pilot       Pilot             `json:"pilot"`
	Rates       cost.Rates        `json:"rates"`
	PlanSeconds float64           `json:"seconds"` // seconds spent on planning
}

// StorageChoice returns how the plan would store K, if it was made for the given storage and the given preferred bound
// of ‖E‖₂, and nil otherwise. A solve uses it to avoid choosing again.
func (p *Plan) StorageChoice(storage gram.Storage, preferredError float64) *gram.Choice {
	if p == nil || p.Pilot.task == nil || p.Pilot.task.Fixed.Storage != storage ||
		p.Pilot.task.PreferredError != preferredError {
		return nil
	}
	return &p.Pilot.choice
}

var _ stage.Stage = (*Plan)(nil)

// folderPattern matches the folder of the BLAS library in the name of a machine, which the report omits.
var folderPattern = regexp.MustCompile(`\([^()]*/`)

// String reports the choice, the runner-up, the conditions that would change the choice, and the cost of planning.
func (p *Plan) String() string {
	var lines stage.Lines
	lines.AddProblem(&p.Header)
	addCandidate := func(name string, c *cost.Candidate) {
		iterations := plural.Count(c.Iterations, "iteration")
		if c.Solver == cost.Direct {
			iterations = plural.Count(c.Iterations, "round") + " of refinement"
		}
		lines.Add(name, "%v: %.3g s, %s, %s", c, c.Seconds.Total, iterations, accel.FormatBytes(c.Bytes))
	}
	if addCandidate("choice", &p.Choice); p.RunnerUp != nil {
		addCandidate("runner-up", p.RunnerUp)
	}
	lines.AddText("no series", p.NoSeries)
	for i, condition := range p.ChangeConditions {
		lines.Add([]string{"changes with", ""}[min(i, 1)], "%s", condition)
	}
	seconds := p.Report.Seconds
	lines.AddSeconds(seconds.Total, "kernel", seconds.Kernel, "features", seconds.Features, "factor", seconds.Factor,
		"solve", seconds.Solve, "residual", seconds.Residual, "predict", seconds.Predict)
	lines.AddText("memory", accel.FormatBytes(p.Bytes))
	lines.AddText("by name", p.Flags)
	lines.Add("plan", "%.2g s, of which %.2g s for K at %s; rates of %s%s", p.PlanSeconds, p.Pilot.Seconds,
		plural.Count(p.Pilot.SampleSize, "point"), folderPattern.ReplaceAllString(p.Rates.Machine, "("),
		spreadText(&p.Pilot.Entries))
	return lines.String()
}

// Table has one row for each candidate.
func (p *Plan) Table() *plots.Table {
	table := &plots.Table{Title: "Plan: " + p.Dataset, Columns: plots.ParseColumns("solver %v", "preconditioner %v",
		"s %v", "λ_p %v", "K %v", "iterations %v", "kernel (s) %.3g", "features (s) %.3g", "factor (s) %.3g",
		"solve (s) %.3g", "residual (s) %.3g", "predict (s) %.3g", "total (s) %.3g", "memory", "refused")}
	for _, candidate := range p.Candidates {
		seconds := candidate.Seconds
		table.Add(candidate.Solver, candidate.Precond, candidate.S, candidate.LambdaP, candidate.Storage,
			candidate.Iterations, seconds.Kernel, seconds.Features, seconds.Factor, seconds.Solve, seconds.Residual,
			seconds.Predict, seconds.Total, accel.FormatBytes(candidate.Bytes), candidate.RefusalReason)
	}
	return table
}

// Plot draws the predicted seconds of each candidate as a line over its iterations. The line starts at the seconds
// spent before the iterations and ends at the predicted number of iterations.
func (p *Plan) Plot() *plots.Figure {
	figure := &plots.Figure{Title: fmt.Sprintf("%s, λ = %g: predicted seconds", p.Dataset, p.Lambda),
		X: plots.Axis{Label: "iterations, as a rule expects them"}, Y: plots.Axis{Label: "seconds"}}
	for _, candidate := range p.Candidates {
		if seconds := candidate.Seconds; candidate.RefusalReason == "" {
			figure.Series = append(figure.Series, plots.Series{
				Name: strings.Replace(candidate.String(), candidate.Precond, stage.FigureLabel(candidate.Precond), 1),
				X:    []float64{0, float64(candidate.Iterations)},
				Y:    []float64{seconds.Total - seconds.Solve, seconds.Total}})
		}
	}
	return figure
}

// HTML returns the lines, the figure and the table.
func (p *Plan) HTML() string { return stage.HTML(p) }
