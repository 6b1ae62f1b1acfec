package sketchsize

import (
	"fmt"
	"math"
	"strings"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Result is the record of a search for the number of features (section 5 of the paper): s is doubled until a test of Z
// accepts. Each s that is tried is a rung.
type Result struct {
	stage.Header
	LambdaP  float64 `json:"lambda_p"` // ridge λ_p of M = ZZᵀ+λ_pI
	Features string  `json:"features"` // distribution of the features
	Storage  string  `json:"storage"`  // storage of K
	// KBound is the predicted bound of ‖K_stored−K‖₂. All claims allow for it, but the confidence does not include the
	// probability that the bound holds.
	KBound stage.Number `json:"kernel_error_bound"`

	Test       TestName           `json:"test"`
	Target     float64            `json:"target"`             // largest acceptable κ: the requested one, or the bound of Constants
	Constants  ConditionConstants `json:"constants"`          // constants of Theorem7; zero for Kappa
	Confidence float64            `json:"confidence"`         // probability that no rung is accepted wrongly
	Coverage   string             `json:"coverage,omitempty"` // what Theorem 7 proves for this kernel and these features

	Status Status `json:"status"`
	// S is the accepted number of features, or else the one with the least predicted time; 0 if none was tried.
	S       int     `json:"s"`
	Max     int     `json:"max"`   // largest possible S
	Limit   string  `json:"limit"` // limit of Max: "n", "asked" (by the options) or "memory"
	Rungs   []Rung  `json:"rungs"`
	Seconds float64 `json:"seconds"`
}

// String returns the result as lines of text, one for each rung.
func (r *Result) String() string {
	var lines stage.Lines
	lines.AddProblem(&r.Header)
	lines.Add("Z", "%s, λ_p = %g", r.Kernel.Shorten(r.Features), r.LambdaP)
	lines.Add("K", "%s%s", r.Storage, stage.StorageErrorText(r.KBound))
	lines.AddText("test", r.testText())
	lines.AddText("note", r.Coverage)
	for _, rung := range r.Rungs {
		lines.Add(fmt.Sprintf("s = %d", rung.S), "%s", r.rungText(rung))
	}
	lines.AddText("result", r.resultText())
	lines.AddSeconds(r.Seconds)
	return lines.String()
}

// testText states the test and its confidence.
func (r *Result) testText() string {
	if r.Test == Theorem7 {
		constants := r.Constants
		return fmt.Sprintf("Theorem 7, %s: θ = %g, α = %g, γ = %g, which imply κ(M⁻¹A) ≤ %.3g; confidence %g",
			constants.Name, constants.Theta, constants.Alpha, constants.Gamma, r.Target, r.Confidence)
	}
	return fmt.Sprintf("κ(M⁻¹A) ≤ %g; confidence %g", r.Target, r.Confidence)
}

// rungText describes a rung on one line.
func (r *Result) rungText(rung Rung) string {
	text := fmt.Sprintf("%-7s κ %-18s", rung.Verdict, outward.Span(rung.Kappa.Lo, rung.Kappa.Hi, 4))
	if conditions := rung.Conditions; conditions != nil {
		text += fmt.Sprintf(" ‖(I−P)K(I−P)‖/λ %-18s WᵀKW/WᵀZZᵀW %s, rank %d,",
			outward.Span(conditions.Norm.Lo, conditions.Norm.Hi, 4),
			outward.Span(conditions.Low.Lo, conditions.High.Hi, 3), conditions.Rank)
	}
	return text + fmt.Sprintf(" %15s, %6.2f s predicted, %6.2f s taken", plural.Count(rung.Iterations, "iteration"),
		rung.PredictedSeconds, rung.Seconds.Rung)
}

// resultText states how the search ended and the number of features that it names.
func (r *Result) resultText() string {
	if r.S == 0 {
		return fmt.Sprintf("%s: no rung", r.Status)
	}
	reason := map[string]string{"n": "its double is not below n", "asked": "the largest asked for",
		"memory": "its double does not fit the memory"}[r.Limit]
	switch r.Status {
	case Found:
		return fmt.Sprintf("%s: s = %d", r.Status, r.S)
	case None:
		return fmt.Sprintf("%s: no s up to %d (%s) is accepted; s = %d has the least predicted time", r.Status, r.Max,
			reason, r.S)
	}
	return fmt.Sprintf("%s: among %s, s = %d has the least predicted time", r.Status,
		plural.Count(len(r.Rungs), "rung"), r.S)
}

// HTML returns the result as text, figure and table, for a notebook.
func (r *Result) HTML() string { return stage.HTML(r) }

// problemTitle returns a title that names the problem.
func (r *Result) problemTitle() string {
	return strings.TrimSpace(fmt.Sprintf("%s, n = %d, λ = %g: %s", r.Dataset, r.N, r.Lambda, r.Kernel.Prose()))
}

// Table returns a table with one row per rung.
func (r *Result) Table() *plots.Table {
	table := &plots.Table{Title: r.problemTitle(), Columns: plots.ParseColumns("s", "κ", "κ low", "κ high")}
	theorem := r.Test == Theorem7
	if theorem {
		table.Columns = append(table.Columns, plots.ParseColumns("rank of P", "condition 1", "low", "high", "verdict 1",
			"least ratio",
			"low", "largest ratio", "high", "verdict 2")...)
	}
	table.Columns = append(table.Columns, plots.ParseColumns("verdict", "iterations", "predicted (s)", "features (s)",
		"ZᵀZ (s)",
		"factor (s)", "test (s)", "rung (s)")...)
	for _, rung := range r.Rungs {
		row := []any{rung.S, rung.Kappa}
		if conditions := rung.Conditions; theorem && conditions != nil {
			row = append(row, conditions.Rank, conditions.Norm, conditions.Verdict1,
				conditions.Low.Value, plots.AtLeast(conditions.Low.Lo), conditions.High.Value,
				plots.AtMost(conditions.High.Hi), conditions.Verdict2)
		} else if theorem {
			row = append(row, make([]any, 10)...) // empty cells of the conditions
		}
		seconds := rung.Seconds
		table.Add(append(row, rung.Verdict, rung.Iterations, rung.PredictedSeconds, seconds.Features, seconds.Gram,
			seconds.Factor, seconds.Test, seconds.Rung)...)
	}
	return table
}

// Plot draws the ladder. For kappa it shows κ's interval against s, and the target. For theorem7 it shows the quantity
// of each condition divided by its threshold, and κ divided by the bound that the conditions imply; a rung is accepted
// if both conditions are below 1.
func (r *Result) Plot() *plots.Figure {
	chosen := -1
	kappa := plots.Series{Name: "κ(M⁻¹A)"}
	for i, rung := range r.Rungs {
		kappa.AddInterval(float64(rung.S), rung.Kappa)
		if r.Status == Found && rung.S == r.S {
			chosen = i
		}
	}
	var figure *plots.Figure
	if r.Test == Theorem7 {
		kappa.Name = fmt.Sprintf("κ(M⁻¹A)/%.3g", r.Target)
		for i := range kappa.Y {
			kappa.Y[i] /= r.Target
		}
		kappa.Lo, kappa.Hi = nil, nil // the conditions decide, and error bars of κ would hide theirs
		figure = plots.Ladder(r.problemTitle(), "relative to the threshold", 1, chosen,
			append(r.conditionSeries(), kappa)...)
		figure.HLines[0].Label = "threshold"
	} else {
		figure = plots.Ladder(r.problemTitle(), kappa.Name, r.Target, chosen, kappa)
	}
	figure.X.Label = "features s"
	figure.Caption = r.testText() + ". " + r.resultText() + "."
	return figure
}

// conditionSeries returns the measured quantities of both conditions in units of their thresholds.
func (r *Result) conditionSeries() []plots.Series {
	condition1 := plots.Series{Name: "condition 1: ‖(I−P)K(I−P)‖/αλ"}
	condition2 := plots.Series{Name: "condition 2: |ratio−1|/γ"}
	for _, rung := range r.Rungs {
		if conditions := rung.Conditions; conditions != nil {
			width, alpha, gamma := float64(rung.S), r.Constants.Alpha, r.Constants.Gamma
			condition1.AddBand(width, conditions.Norm.Value/alpha, conditions.Norm.Lo/alpha, conditions.Norm.Hi/alpha)
			// The maximum of |ratio−1| is attained at the smallest or the largest ratio.
			condition2.AddBand(width, math.Max(1-conditions.Low.Value, conditions.High.Value-1)/gamma,
				math.Max(1-conditions.Low.Hi, conditions.High.Lo-1)/gamma,
				math.Max(1-conditions.Low.Lo, conditions.High.Hi-1)/gamma)
		}
	}
	if len(condition1.X) == 0 {
		return nil
	}
	return []plots.Series{condition1, condition2}
}
