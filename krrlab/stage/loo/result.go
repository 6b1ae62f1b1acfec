package loo

import (
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/model/leaveout"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Result is the error of leave-one-out and GCV for each λ of a grid.
type Result struct {
	stage.Header
	Classes bool             `json:"classes"` // errors are shares of wrong labels, else mean squares
	Scores  []leaveout.Score `json:"scores"`
	Best    int              `json:"best"` // index of the least error

	// Repeats says which rows are left out together, and which question the errors answer. If that could not be done,
	// Unclaimed says why, and no interval is claimed. Other is the score at the best λ by the question Repeats.Other;
	// nil if there is none, or without dense factors.
	Repeats   datasets.Repeats `json:"repeats"`
	Unclaimed string           `json:"unclaimed,omitempty"`
	Other     *leaveout.Score  `json:"other,omitempty"`

	Why     string  `json:"why,omitempty"`            // why not by dense factors, where n is small enough
	Precond string  `json:"preconditioner,omitempty"` // what made Z, where probes were taken
	S       int     `json:"s,omitempty"`
	KError  float64 `json:"kernel_error"` // e ≥ ‖K_stored−K‖₂ and of the products with it, predicted
	Seconds float64 `json:"seconds"`      // in all, K and Z included
}

// unit says what an error is that is shown.
func (r *Result) unit() string {
	if r.Classes {
		return "share of wrong labels"
	}
	if r.T > 1 {
		return "RMSE of all targets together"
	}
	if r.Weighted {
		return "weighted RMSE"
	}
	return "RMSE"
}

// gcv names what is shown of GCV: its root beside an RMSE.
func (r *Result) gcv() string {
	if r.Classes {
		return "GCV"
	}
	return "√GCV"
}

// shown returns the scores as they are shown: of regression the roots of the mean squares and of GCV.
func (r *Result) shown() []leaveout.Score {
	if r.Classes {
		return r.Scores
	}
	all := slices.Clone(r.Scores)
	for i := range all {
		e := &all[i].Error
		e.Value, e.Lo, e.Hi, all[i].GCV = math.Sqrt(e.Value), math.Sqrt(e.Lo), math.Sqrt(e.Hi), math.Sqrt(all[i].GCV)
	}
	return all
}

// end says that the least error is at an end of the grid, beyond which it may be less; "" where it is not.
func (r *Result) end() string {
	var less, more bool // than the best is on the grid
	for _, s := range r.Scores {
		less, more = less || s.Lambda < r.Scores[r.Best].Lambda, more || s.Lambda > r.Scores[r.Best].Lambda
	}
	switch {
	case less == more:
		return ""
	case more:
		return "; it is the least λ of the grid: a lesser one may be better (--grid)"
	}
	return "; it is the largest λ of the grid: a larger one may be better (--grid)"
}

func (r *Result) String() string {
	var b stage.Lines
	b.Problem(&r.Header)
	how := "dense factors, exact up to rounding"
	if r.S > 0 {
		how = fmt.Sprintf("one subspace for all λ with %s, s = %d", r.Precond, r.S)
	}
	if r.Why != "" {
		how += ", as " + r.Why
	}
	b.Add("leave-one-out", "%s; by %s", r.unit(), how)
	if text := r.Repeats.String(); r.Unclaimed != "" {
		b.Add("repeats", "%s; they are not left out together, so that errors are too small and no interval is "+
			"claimed: %s", text, r.Unclaimed)
	} else if text != "" {
		b.Add("repeats", "%s", text)
	}
	shown := r.shown()
	ends, wide := make([]string, len(shown)), 0
	for i, s := range shown {
		ends[i] = "in " + outward.Span(s.Error.Lo, s.Error.Hi, 5)
		wide = max(wide, len(ends[i]))
	}
	for i, s := range shown {
		mark := ""
		if i == r.Best {
			mark = "  ← least"
		}
		b.Add(fmt.Sprintf("λ = %.3g", s.Lambda), "%-10.5g %-*s  %s %-10.5g s_λ = %.5g%s", s.Error.Value, wide, ends[i],
			r.gcv(), s.GCV, s.S, mark)
	}
	if c := r.Scores[r.Best].Error.Confidence; c < 1 && r.Unclaimed == "" {
		b.Add("confidence",
			"%.4g %% at each λ; the probes and the solves are covered, K as stored as if its error were spread evenly",
			100*c)
	}
	least := shown[r.Best]
	what := r.errorText(least.Error.Value)
	if r.Repeats.String() != "" {
		what += " on " + datasets.OfQuestion(r.Repeats.Question)
	}
	if r.Other != nil {
		v := r.Other.Error.Value
		if !r.Classes {
			v = math.Sqrt(v)
		}
		what += fmt.Sprintf(" (%s on %s)", r.errorText(v), datasets.OfQuestion(r.Repeats.Other))
	}
	other := "; other σ and kernels: krrlab tune"
	if r.Weighted || r.Kernel.Name == "precomputed" { // which tune does not take
		other = ""
	}
	b.Add("fit with", "--lambda %.3g: %s by leave-one-out%s%s", least.Lambda, what, r.end(), other)
	b.Took(r.Seconds)
	return b.String()
}

func (r *Result) errorText(v float64) string {
	if r.Classes {
		return fmt.Sprintf("error %.2f %%", 100*v)
	}
	return fmt.Sprintf("RMSE %.4g", v)
}

// Table gives a row for each λ.
func (r *Result) Table() *plots.Table {
	t := &plots.Table{Columns: plots.Heads("λ", r.unit(), "lower end", "upper end", "confidence", r.gcv(), "s_λ",
		"method")}
	for _, s := range r.shown() {
		t.Add(s.Lambda, s.Error, s.Error.Confidence, s.GCV, s.S, s.Error.Method)
	}
	return t
}

// Plot draws the error against λ with its band and GCV, the least marked.
func (r *Result) Plot() *plots.Figure {
	shown := r.shown()
	best := shown[r.Best]
	f := &plots.Figure{
		Title: fmt.Sprintf("Leave-one-out: %s, n = %d", r.Dataset, r.N),
		Caption: fmt.Sprintf("Leave-one-out error (%s) against λ, %s; least at λ = %.3g: %v.", r.unit(),
			r.Kernel.Prose(), best.Lambda, best.Error),
		X:      plots.Axis{Label: "ridge λ", Log: true},
		Y:      plots.Axis{Label: r.unit()},
		VLines: []plots.RefLine{{At: best.Lambda, Label: fmt.Sprintf("λ = %.3g", best.Lambda)}},
	}
	c, g := plots.Series{Name: "leave-one-out"}, plots.Series{Name: r.gcv()}
	for _, s := range shown {
		c.AddBand(s.Lambda, s.Error.Value, s.Error.Lo, s.Error.Hi)
		g.Add(s.Lambda, s.GCV)
	}
	f.Series = append(f.Series, c)
	if !r.Classes { // of ±1 it is no share of labels
		f.Series = append(f.Series, g)
	}
	return f
}

// HTML gives the lines, the picture and the table, for a notebook.
func (r *Result) HTML() string { return stage.HTML(r) }
