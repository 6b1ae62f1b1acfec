package theory

import (
	"fmt"
	"math"
	"strings"

	"github.com/krrlab/lab/plots"
)

// Verdict is what a check found.
type Verdict string

const (
	Pass Verdict = "pass" // no measure contradicts the claim
	Fail Verdict = "fail" // one does, or nothing could be measured
)

// Measure is one quantity of a check, beside what the claim says of it.
type Measure struct {
	Name string `json:"name"`
	// Value is what was measured (the worst error, the largest ratio, the share of failures,
	// the mean), Limit what the claim has in its place: a tolerance, 1, δ, or an expectation.
	Value    float64 `json:"value"`
	Limit    float64 `json:"limit"`
	Trials   int     `json:"trials"`
	Failures int     `json:"failures"`
	// Ratio is above 1 if the measure contradicts the claim; see the package doc.
	Ratio float64 `json:"ratio"`
	// Tightness is what is expected over its bound where the bound alone could hardly
	// fail; 0 where it is not known.
	Tightness float64 `json:"tightness,omitempty"`
}

// Result is what the check of one claim found.
type Result struct {
	Claim    string  `json:"claim"`
	Kind     Kind    `json:"kind"`
	Trials   int     `json:"trials"`   // in all measures
	Failures int     `json:"failures"` // of them; a Probability may have some
	Margin   float64 `json:"margin"`   // 1 − the largest Ratio; negative if the claim fails
	Verdict  Verdict `json:"verdict"`

	Place    string    `json:"place"`
	Measures []Measure `json:"measures"`
	Seconds  float64   `json:"seconds"`
	Error    string    `json:"error,omitempty"` // why nothing could be measured
}

// worstRatio stands for a ratio that is infinite or not a number.
const worstRatio = 1e9

// finish settles margin and verdict.
func (r *Result) finish() {
	worst := 0.0
	for i := range r.Measures {
		m := &r.Measures[i]
		for _, v := range []*float64{&m.Value, &m.Ratio, &m.Limit} {
			if math.IsNaN(*v) || math.Abs(*v) > worstRatio {
				*v = worstRatio
			}
		}
		worst = max(worst, m.Ratio)
		r.Trials += m.Trials
		r.Failures += m.Failures
	}
	r.Margin = 1 - worst
	r.Verdict = Fail
	if r.Margin >= 0 && r.Trials > 0 {
		r.Verdict = Pass
	}
}

// worst returns the measure of the largest ratio; it panics if there is none.
func (r *Result) worst() Measure {
	worst := r.Measures[0]
	for _, m := range r.Measures {
		if m.Ratio > worst.Ratio {
			worst = m
		}
	}
	return worst
}

// Line says what was found in one line.
func (r *Result) Line() string {
	return fmt.Sprintf("%-13s %-11s %9d trials %6d failures  margin %9.3g  %s  %6.1f s", r.Claim, r.Kind, r.Trials, r.Failures, r.Margin, r.Verdict, r.Seconds)
}

// String is Line, and one line more for each measure.
func (r *Result) String() string {
	var b strings.Builder
	b.WriteString(r.Line() + "\n")
	if r.Error != "" {
		fmt.Fprintf(&b, "    %s\n", r.Error)
	}
	for _, m := range r.Measures {
		fmt.Fprintf(&b, "    %s: %.4g, claimed %.4g, ratio %.3g", m.Name, m.Value, m.Limit, m.Ratio)
		if m.Tightness > 0 {
			fmt.Fprintf(&b, ", tightness %.3g", m.Tightness)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Report is what a run of checks found.
type Report struct {
	Claims []Result `json:"claims"`
	Trials int      `json:"trials"`
	Seed   uint64   `json:"seed"`
}

// Failed returns the names of the claims that failed.
func (r *Report) Failed() (names []string) {
	for _, c := range r.Claims {
		if c.Verdict != Pass {
			names = append(names, c.Claim)
		}
	}
	return names
}

// Table returns a row for each claim.
func (r *Report) Table() *plots.Table {
	t := &plots.Table{Title: fmt.Sprintf("The theory, %d trials, seed %d", r.Trials, r.Seed)}
	for _, c := range []plots.Column{{Name: "claim"}, {Name: "kind"}, {Name: "trials"}, {Name: "failures"}, {Name: "margin", Format: "%.3f"},
		{Name: "verdict"}, {Name: "time", Unit: "s", Format: "%.1f"}, {Name: "nearest to failing"}} {
		t.Columns = append(t.Columns, c)
	}
	for _, c := range r.Claims {
		what := c.Error
		if len(c.Measures) > 0 {
			what = c.worst().Name
		}
		t.Add(c.Claim, string(c.Kind), c.Trials, c.Failures, c.Margin, string(c.Verdict), c.Seconds, what)
	}
	return t
}

// String returns the table as text.
func (r *Report) String() string { return r.Table().Text() }
