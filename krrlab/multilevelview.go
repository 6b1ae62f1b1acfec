package krrlab

import (
	"fmt"
	"slices"

	"github.com/krrlab/lab/plots"
)

// Plot draws four panels against the width s_k, for the levels of the chain and for features
// alone: κ(M_k⁻¹A) and ‖Z_kZ_kᵀ−K‖₂ with their intervals, the iterations of the solve, and the
// seconds of a fit without K. Panels that would be empty are left out.
func (m *MultiLevel) Plot() *plots.Figure {
	kappa := func(l *MeasuredLevel) (v, lo, hi float64, ok bool) {
		if l.Kappa == nil {
			return 0, 0, 0, false
		}
		return l.Kappa.Value, l.Kappa.Lo, l.Kappa.Hi, true
	}
	norm := func(l *MeasuredLevel) (v, lo, hi float64, ok bool) {
		return l.Error.Value, l.Error.Lo, l.Error.Hi, true
	}
	iterations := func(l *MeasuredLevel) (v, lo, hi float64, ok bool) {
		v = float64(l.Iterations)
		return v, v, v, l.Kappa != nil
	}
	seconds := func(l *MeasuredLevel) (v, lo, hi float64, ok bool) {
		v = l.Seconds.fit()
		return v, v, v, l.Kappa != nil
	}
	f := plots.Grid(fmt.Sprintf("%s, n = %d: %s, λ = %g", m.Dataset, m.N, m.Kernel.Short(), m.Lambda), 2)
	f.ShareX = true
	f.Caption = fmt.Sprintf("The levels of the chain %s, to be read from right to left, beside features alone of the same widths; "+
		"the two intervals of a level hold with probability %g.", formatLevels(m.Levels), m.Confidence)
	for _, p := range []struct {
		label  string
		banded bool
		value  func(l *MeasuredLevel) (v, lo, hi float64, ok bool)
	}{{"κ(M_k⁻¹A)", true, kappa}, {"iterations", false, iterations}, {"‖Z_{k}Z_{k}ᵀ−K‖₂", true, norm}, {"seconds of a fit, without K", false, seconds}} {
		if panel := m.panel(p.label, p.banded, p.value); len(panel.Series) > 0 {
			f.Panels = append(f.Panels, panel)
		}
	}
	return f
}

// panel draws one number against the width.
func (m *MultiLevel) panel(label string, banded bool, value func(l *MeasuredLevel) (v, lo, hi float64, ok bool)) plots.Figure {
	f := plots.Figure{Title: label, X: plots.Axis{Label: "width s_k", Log: true, Ticks: m.widths()}, Y: plots.Axis{Log: true}}
	for _, line := range []struct {
		name   string
		levels []MeasuredLevel
	}{{"levels of the chain", m.Chain}, {"features alone", m.alone()}} {
		s := plots.Series{Name: line.name}
		for i := range line.levels {
			l := &line.levels[i]
			v, lo, hi, ok := value(l)
			if !ok {
				continue
			}
			s.X, s.Y = append(s.X, float64(l.Width)), append(s.Y, v)
			if banded {
				s.Lo, s.Hi = append(s.Lo, lo), append(s.Hi, hi)
			}
		}
		if len(s.X) > 0 {
			f.Series = append(f.Series, s)
		}
	}
	return f
}

// alone returns features alone of all widths: the first level of the chain is one of them.
func (m *MultiLevel) alone() []MeasuredLevel {
	if len(m.Chain) > 0 && m.Chain[0].Level == 1 {
		return append([]MeasuredLevel{m.Chain[0]}, m.OneLevel...)
	}
	return m.OneLevel
}

// widths returns the widths of the levels, ascending.
func (m *MultiLevel) widths() []float64 {
	var w []float64
	for _, l := range m.Levels {
		w = append(w, float64(l.Width))
	}
	slices.Sort(w)
	return slices.Compact(w)
}
