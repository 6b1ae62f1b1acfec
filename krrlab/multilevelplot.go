package krrlab

import (
	"fmt"

	"github.com/krrlab/lab/plots"
)

// Plot draws κ(M_k⁻¹A) with its interval against the width s_k, for the chain and for features
// alone, each point with the iterations and the seconds of its fit. Where no level has a
// preconditioner it draws ‖Z_kZ_kᵀ−K‖₂.
func (m *MultiLevel) Plot() *plots.Figure {
	f := &plots.Figure{
		Title:   fmt.Sprintf("%s, n = %d: %s, λ = %g", m.Dataset, m.N, kernelName(m.Kernel), m.Lambda),
		Caption: fmt.Sprintf("Each level of the chain %s, read from right to left, and features alone of the same widths; intervals of confidence %g.", FormatLevels(m.Levels), m.Confidence),
		X:       plots.Axis{Label: "width s_k", Log: true},
		Y:       plots.Axis{Label: "κ(M_k⁻¹A)", Log: true},
	}
	value := func(l *MeasuredLevel) (v, lo, hi float64, ok bool) {
		if l.Kappa == nil {
			return 0, 0, 0, false
		}
		return l.Kappa.Value, l.Kappa.Lo, l.Kappa.Hi, true
	}
	if !m.anyKappa() {
		f.Y.Label = "‖Z_kZ_kᵀ−K‖₂"
		value = func(l *MeasuredLevel) (v, lo, hi float64, ok bool) {
			return l.Error.Value, l.Error.Lo, l.Error.Hi, true
		}
	}
	series := func(name string, levels []MeasuredLevel) {
		s := plots.Series{Name: name, Style: plots.Points}
		for i := range levels {
			l := &levels[i]
			if v, lo, hi, ok := value(l); ok {
				s.X, s.Y, s.Lo, s.Hi = append(s.X, float64(l.Width)), append(s.Y, v), append(s.Lo, lo), append(s.Hi, hi)
				if l.Kappa != nil {
					f.Marks = append(f.Marks, plots.Mark{X: float64(l.Width), Y: v, Label: fmt.Sprintf("%d it., %.1f s", l.Iterations, l.Seconds.Fit())})
				}
			}
		}
		if len(s.X) > 0 {
			f.Series = append(f.Series, s)
		}
	}
	series("levels of the chain", m.Chain)
	series("features alone", m.OneLevel)
	return f
}

func (m *MultiLevel) anyKappa() bool {
	for _, levels := range [][]MeasuredLevel{m.Chain, m.OneLevel} {
		for i := range levels {
			if levels[i].Kappa != nil {
				return true
			}
		}
	}
	return false
}
