package multilevel

import (
	"fmt"
	"slices"

	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Result describes the quality of each level of Algorithm 2 (section 4 of Avron, Clarkson and Woodruff),
//
//	Z_1 = φ₁(X),  Z_{k+1} = Z_k·S_{k+1}ᵀ,  M_k = Z_kZ_kᵀ + λ_pI,
//
// where φ₁ are random features and S_{k+1} is a sketch, and of features alone of the same widths.
type Result struct {
	stage.Header
	LambdaP float64 `json:"lambda_p"` // ridge λ_p of every M_k

	Levels        feature.Levels `json:"levels"`             // the requested chain
	Features      string         `json:"features"`           // distribution of φ₁
	Confidence    float64        `json:"confidence"`         // probability that both intervals of a level hold
	KError        stage.Number   `json:"kernel_error_bound"` // predicted ‖K̃−K‖₂, included in the intervals
	Chain         []LevelResult  `json:"chain"`              // the levels, without those that were not reached
	FeaturesAlone []LevelResult  `json:"one_level"`          // features alone, at the widths of later levels
	Seconds       float64        `json:"seconds"`            // total time, without that of K
}

// String returns the result as a table of text, with a line for each level.
func (m *Result) String() string {
	var b stage.Lines
	b.AddProblem(&m.Header)
	b.Add("chain", "%s of %s, λ_p = %g, τ = %g", m.Levels.String(), m.Features, m.LambdaP, m.Tol)
	b.Add("", "%-11s %5s  %-23s  %-23s %5s  %s", "map", "s_k", "‖Z_kZ_kᵀ−K‖₂", "κ(M_k⁻¹A)", "steps",
		"seconds: form+factor+solve")
	row := func(name string, l *LevelResult) {
		e := stage.PlainIntervalText(l.Error)
		if l.SkipReason != "" {
			b.Add(name, "%-11s %5d  %-23s  no preconditioner: %s", l.Sketch, l.Width, e, l.SkipReason)
			return
		}
		k := stage.PlainIntervalText(*l.Kappa)
		note := ""
		if !l.Converged {
			note = ", " + l.Status.String()
		}
		if l.Indefinite {
			note += "; the stored K+λI is indefinite, so its error exceeds λ: use float64 storage or a larger λ"
		}
		s := l.Seconds
		b.Add(name, "%-11s %5d  %-23s  %-23s %5d  %.1f = %.1f + %.1f + %.1f%s", l.Sketch, l.Width, e, k, l.Iterations,
			l.Seconds.fitTotal(), s.Form, s.Factor, s.Solve, note)
	}
	for i := range m.Chain {
		row(fmt.Sprintf("level %d", m.Chain[i].Index), &m.Chain[i])
	}
	for i := range m.FeaturesAlone {
		row("one level", &m.FeaturesAlone[i])
	}
	if m.KError.Known() {
		b.Add("allowed", "‖K̃−K‖₂ ≤ %.2g, which is predicted and not part of the confidence", m.KError)
	}
	b.Add("confidence", "%g that both intervals of a level hold; %.1f seconds in all, without K", m.Confidence,
		m.Seconds)
	return b.String()
}

// Table returns a table with one row per level, and one per width for features alone.
func (m *Result) Table() *plots.Table {
	t := &plots.Table{
		Title: fmt.Sprintf("Algorithm 2 on %s, n = %d, %s, λ = %g", m.Dataset, m.N, m.Kernel.Prose(), m.Lambda),
		Caption: fmt.Sprintf("λ_p = %g, τ = %g; the two intervals of a level hold with probability %g; form is "+
			"the time of Z_k with all levels before it.", m.LambdaP, m.Tol, m.Confidence),
		Columns: plots.ParseColumns("level", "map", "s_k", "‖Z_kZ_kᵀ−K‖₂", "at least", "at most", "κ(M_k⁻¹A)",
			"at least",
			"at most", "iterations", "form (s) %.2f", "factor (s) %.2f", "solve (s) %.2f", "in all (s) %.2f"),
	}
	add := func(name string, l *LevelResult) {
		if s := l.Seconds; l.Kappa == nil {
			t.Add(name, l.Sketch, l.Width, l.Error, nil, nil, nil, nil, s.Form)
		} else {
			t.Add(name, l.Sketch, l.Width, l.Error, *l.Kappa, l.Iterations, s.Form, s.Factor, s.Solve, s.fitTotal())
		}
	}
	for i := range m.Chain {
		add(fmt.Sprint(m.Chain[i].Index), &m.Chain[i])
	}
	for i := range m.FeaturesAlone {
		add("one", &m.FeaturesAlone[i])
	}
	return t
}

// Plot draws four panels against the width s_k, for the levels of the chain and for features alone: κ(M_k⁻¹A) and
// ‖Z_kZ_kᵀ−K‖₂ with their intervals, the iterations of the solve, and the seconds of a fit without K. Panels without
// data are omitted.
func (m *Result) Plot() *plots.Figure {
	f := plots.Grid(fmt.Sprintf("%s, n = %d: %s, λ = %g", m.Dataset, m.N, m.Kernel.Prose(), m.Lambda), 2)
	f.ShareX = true
	f.Caption = fmt.Sprintf("The levels of the chain %s, to be read from right to left, beside features alone of "+
		"the same widths; "+
		"the two intervals of a level hold with probability %g.", m.Levels.String(), m.Confidence)
	for _, panel := range []plots.Figure{
		m.panel("κ(M_k⁻¹A)", func(s *plots.Series, x float64, l *LevelResult) {
			if l.Kappa != nil {
				s.AddInterval(x, l.Kappa)
			}
		}),
		m.panel("iterations", func(s *plots.Series, x float64, l *LevelResult) {
			if l.Kappa != nil {
				s.Add(x, float64(l.Iterations))
			}
		}),
		m.panel("‖Z_{k}Z_{k}ᵀ−K‖₂", func(s *plots.Series, x float64, l *LevelResult) { s.AddInterval(x, l.Error) }),
		m.panel("seconds of a fit, without K", func(s *plots.Series, x float64, l *LevelResult) {
			if l.Kappa != nil {
				s.Add(x, l.Seconds.fitTotal())
			}
		}),
	} {
		if len(panel.Series) > 0 {
			f.Panels = append(f.Panels, panel)
		}
	}
	return f
}

// panel draws a quantity against the width. addTo adds the quantity of a level at the width x to a series, or nothing
// if the level does not have it.
func (m *Result) panel(label string, addTo func(s *plots.Series, x float64, l *LevelResult)) plots.Figure {
	f := plots.Figure{Title: label, X: plots.Axis{Label: "width s_k", Log: true, Ticks: m.widths()},
		Y: plots.Axis{Log: true}}
	for _, line := range []struct {
		name   string
		levels []LevelResult
	}{{"levels of the chain", m.Chain}, {"features alone", m.allFeatureLevels()}} {
		s := plots.Series{Name: line.name}
		for i := range line.levels {
			addTo(&s, float64(line.levels[i].Width), &line.levels[i])
		}
		if len(s.X) > 0 {
			f.Series = append(f.Series, s)
		}
	}
	return f
}

// allFeatureLevels returns the results of features alone of all widths, which include the first level of the chain.
func (m *Result) allFeatureLevels() []LevelResult {
	if len(m.Chain) > 0 && m.Chain[0].Index == 1 {
		return append([]LevelResult{m.Chain[0]}, m.FeaturesAlone...)
	}
	return m.FeaturesAlone
}

// widths returns the widths of the levels in ascending order.
func (m *Result) widths() []float64 {
	var w []float64
	for _, l := range m.Levels {
		w = append(w, float64(l.Width))
	}
	slices.Sort(w)
	return slices.Compact(w)
}

// HTML returns the result as text, figure and table.
func (m *Result) HTML() string { return stage.HTML(m) }
