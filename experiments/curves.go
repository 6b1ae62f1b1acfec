package experiments

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/krrlab/lab/plots"
)

const curvesCaption = "The worst column's relative residual ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂, by recurrence, against the iteration; a jump up near the end is a restart from the residual recomputed. First seed, %s scale."

// convergence returns the figure of a role's residuals against the iteration, first seeds: a
// panel for each tolerance, a line for each row.
func (r *Report) convergence(role string) []Figure {
	var panels []*plots.Figure
	at := map[float64]*plots.Figure{}
	for _, row := range r.ranRows() {
		s := r.sampleOf(row, role)
		if s.first == nil || len(s.first.Result.History) == 0 {
			continue
		}
		tol := s.first.Case.Tol
		f := at[tol]
		if f == nil {
			f = plots.Convergence("τ = "+power(tol), tol)
			at[tol] = f
			panels = append(panels, f)
		}
		f.Series = append(f.Series, plots.Series{Name: row, Y: s.first.Result.History})
	}
	return r.curves(1, panels)
}

// comparison returns the figure of several roles' residuals: a panel for each row, a line for
// each role.
func (r *Report) comparison(roles ...string) []Figure {
	var panels []*plots.Figure
	for _, row := range r.ranRows() {
		var f *plots.Figure
		for _, role := range roles {
			s := r.sampleOf(row, role)
			if s.first == nil || len(s.first.Result.History) == 0 {
				continue
			}
			if f == nil {
				f = plots.Convergence(row, s.first.Case.Tol)
			}
			f.Series = append(f.Series, plots.Series{Name: role, Y: s.first.Result.History})
		}
		if f != nil {
			panels = append(panels, f)
		}
	}
	return r.curves(2, panels)
}

// curves is the figure of the panels; none if there are none.
func (r *Report) curves(columns int, panels []*plots.Figure) []Figure {
	if len(panels) == 0 {
		return nil
	}
	f := panels[0]
	if len(panels) > 1 {
		f = plots.Grid(r.Title, columns, panels...)
	}
	f.Caption = fmt.Sprintf(curvesCaption, r.Scale)
	return []Figure{{r.ID + "-convergence", f}}
}

// power writes a power of ten below 1 as 10⁻³, another number as it is.
func power(v float64) string {
	exponent, ok := strings.CutPrefix(strconv.FormatFloat(v, 'e', -1, 64), "1e-")
	if !ok {
		return fmt.Sprint(v)
	}
	digits := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	return "10⁻" + strings.Map(func(c rune) rune { return digits[c-'0'] }, strings.TrimLeft(exponent, "0"))
}
