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

// Result is the leave-one-out error and GCV for each λ of a grid.
type Result struct {
	stage.Header
	Classification bool             `json:"classes"` // errors are shares of wrong labels, not mean squares
	Scores         []leaveout.Score `json:"scores"`  // one for each λ of the grid
	Best           int              `json:"best"`    // index in Scores of the smallest error

	// Repeats states which equal rows are left out together, and for which new rows the errors hold.
	Repeats datasets.Repeats `json:"repeats"`
	// NoIntervalReason explains why the result claims no interval, namely why equal rows could not be left out
	// together. It is "" if the result claims an interval.
	NoIntervalReason string `json:"unclaimed,omitempty"`
	// OtherScore is the score at the best λ for rows of the kind Repeats.OtherRowKind. It is nil if there is no such
	// kind, or without dense factors.
	OtherScore *leaveout.Score `json:"other,omitempty"`

	NotDenseReason string  `json:"why,omitempty"`            // why dense factors are not used although n is small
	Precond        string  `json:"preconditioner,omitempty"` // landmarks of the approximation ZZᵀ ≈ K, if random probes were used
	S              int     `json:"s,omitempty"`              // number of columns of Z, if random probes were used
	Modes          int     `json:"modes,omitempty"`          // modes of the Fourier series, if one was used
	KError         float64 `json:"kernel_error"`             // bound of ‖K̃−K‖₂ for the stored K̃, plus the rounding error of products with K̃
	Seconds        float64 `json:"seconds"`                  // total time, including that for K and Z
}

// errorUnit names the quantity of the displayed errors.
func (r *Result) errorUnit() string {
	if r.Classification {
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

// gcvName names the displayed GCV: its square root if the error is an RMSE.
func (r *Result) gcvName() string {
	if r.Classification {
		return "GCV"
	}
	return "√GCV"
}

// displayedScores returns the scores in their displayed form: for regression the square roots of mean squares and GCV.
func (r *Result) displayedScores() []leaveout.Score {
	if r.Classification {
		return r.Scores
	}
	scores := slices.Clone(r.Scores)
	for i := range scores {
		score, interval := &scores[i], &scores[i].Error
		interval.Value, interval.Lo, interval.Hi, score.GCV = math.Sqrt(interval.Value), math.Sqrt(interval.Lo),
			math.Sqrt(interval.Hi), math.Sqrt(score.GCV)
	}
	return scores
}

// edgeNote returns a note if the smallest error is at an end of the grid, because a λ beyond it may then be better.
// Otherwise it returns "".
func (r *Result) edgeNote() string {
	var hasSmaller, hasLarger bool // the grid has λ below, or above, the best one
	for _, score := range r.Scores {
		hasSmaller = hasSmaller || score.Lambda < r.Scores[r.Best].Lambda
		hasLarger = hasLarger || score.Lambda > r.Scores[r.Best].Lambda
	}
	switch {
	case hasSmaller == hasLarger:
		return ""
	case hasLarger:
		return "; it is the smallest λ of the grid; a smaller one may be better (--grid)"
	}
	return "; it is the largest λ of the grid; a larger one may be better (--grid)"
}

// String returns the result as a few lines of text.
func (r *Result) String() string {
	var lines stage.Lines
	lines.AddProblem(&r.Header)
	lines.Add("leave-one-out", "%s; by %s", r.errorUnit(), r.methodText())
	if text := r.Repeats.String(); r.NoIntervalReason != "" {
		lines.Add("repeats", "%s; they are not left out together, so that errors are too small and no interval is "+
			"claimed: %s", text, r.NoIntervalReason)
	} else if text != "" {
		lines.AddText("repeats", text)
	}
	lines.AddText(r.gcvName(), r.gcvNote())
	r.addScores(&lines)
	if confidence := r.Scores[r.Best].Error.Confidence; confidence < 1 && r.NoIntervalReason == "" {
		lines.Add("confidence",
			"%.4g %% at each λ; the interval includes the errors of the probes and the solves, and assumes that the "+
				"storage error of K is spread evenly over the rows", 100*confidence)
	}
	lines.Add("fit with", "%s", r.suggestion())
	lines.AddSeconds(r.Seconds)
	return lines.String()
}

// methodText describes how the scores were computed.
func (r *Result) methodText() string {
	method := "dense factors, exact up to rounding"
	if r.S > 0 {
		method = fmt.Sprintf("one subspace for all λ with %s, s = %d", r.Precond, r.S)
	}
	if r.Modes > 0 {
		method = fmt.Sprintf("a Fourier series of %d modes, ‖K̃−K‖₂ at most %.2g, exact up to that and rounding",
			r.Modes, r.KError)
	}
	if r.NotDenseReason != "" {
		method += ", as " + r.NotDenseReason
	}
	return method
}

// gcvNote states which rows GCV leaves out together. It is "" if each row is left out alone, by the error and by GCV.
func (r *Result) gcvNote() string {
	switch {
	case r.Repeats.Grouped == 0 || r.NoIntervalReason != "":
		return ""
	case r.Repeats.RowKind == datasets.RowKindNewGroup:
		return "leaves out each row alone, unlike the error, which leaves out groups"
	}
	return "takes the equal rows that are left out together as one row"
}

// addScores adds a line for each λ.
func (r *Result) addScores(lines *stage.Lines) {
	scores := r.displayedScores()
	intervals, width := make([]string, len(scores)), 0
	for i, score := range scores {
		intervals[i] = "in " + outward.Span(score.Error.Lo, score.Error.Hi, 5)
		width = max(width, len(intervals[i]))
	}
	for i, score := range scores {
		mark := ""
		if i == r.Best {
			mark = "  ← smallest"
		}
		likelihood := ""
		if score.Minus2LogLikelihood != 0 {
			likelihood = fmt.Sprintf("  −2 ln p(y) = %.8g", score.Minus2LogLikelihood)
		}
		lines.Add(fmt.Sprintf("λ = %.3g", score.Lambda), "%-10.5g %-*s  %s %-10.5g s_λ = %.5g%s%s", score.Error.Value,
			width, intervals[i], r.gcvName(), score.GCV, score.S, likelihood, mark)
	}
}

// suggestion returns the best λ as a flag, its error, and what else to try.
func (r *Result) suggestion() string {
	best := r.displayedScores()[r.Best]
	errorText := r.errorText(best.Error.Value)
	if r.Repeats.String() != "" {
		errorText += " on " + r.Repeats.RowKind.Description()
	}
	if r.OtherScore != nil {
		otherError := r.OtherScore.Error.Value
		if !r.Classification {
			otherError = math.Sqrt(otherError)
		}
		errorText += fmt.Sprintf(" (%s on %s)", r.errorText(otherError), r.Repeats.OtherRowKind.Description())
	}
	tuneNote := "; other σ and kernels: krrlab tune"
	if r.Kernel.Name == "precomputed" { // tune does not support it
		tuneNote = ""
	}
	return fmt.Sprintf("--lambda %.3g: %s by leave-one-out%s%s", best.Lambda, errorText, r.edgeNote(), tuneNote)
}

// errorText returns an error with its name, as a percentage for classes.
func (r *Result) errorText(value float64) string {
	if r.Classification {
		return fmt.Sprintf("error %.2f %%", 100*value)
	}
	return fmt.Sprintf("RMSE %.4g", value)
}

// Table returns a table with one row per λ.
func (r *Result) Table() *plots.Table {
	table := &plots.Table{Columns: plots.ParseColumns("λ", r.errorUnit(), "lower end", "upper end", "confidence",
		r.gcvName(), "s_λ", "method")}
	for _, score := range r.displayedScores() {
		table.Add(score.Lambda, score.Error, score.Error.Confidence, score.GCV, score.S, score.Error.Method)
	}
	return table
}

// Plot draws the error with its band and GCV against λ, and marks the smallest error.
func (r *Result) Plot() *plots.Figure {
	scores := r.displayedScores()
	best := scores[r.Best]
	figure := &plots.Figure{
		Title: fmt.Sprintf("Leave-one-out: %s, n = %d", r.Dataset, r.N),
		Caption: fmt.Sprintf("Leave-one-out error (%s) against λ, %s; smallest at λ = %.3g: %v.", r.errorUnit(),
			r.Kernel.Prose(), best.Lambda, best.Error),
		X:      plots.Axis{Label: "ridge λ", Log: true},
		Y:      plots.Axis{Label: r.errorUnit()},
		VLines: []plots.RefLine{{At: best.Lambda, Label: fmt.Sprintf("λ = %.3g", best.Lambda)}},
	}
	errorSeries, gcvSeries := plots.Series{Name: "leave-one-out"}, plots.Series{Name: r.gcvName()}
	for _, score := range scores {
		errorSeries.AddInterval(score.Lambda, score.Error)
		gcvSeries.Add(score.Lambda, score.GCV)
	}
	figure.Series = append(figure.Series, errorSeries)
	if !r.Classification { // the GCV of ±1 targets is not a share of labels
		figure.Series = append(figure.Series, gcvSeries)
	}
	return figure
}

// HTML returns the result as text, figure and table, for a notebook.
func (r *Result) HTML() string { return stage.HTML(r) }
