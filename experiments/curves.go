package experiments

import (
	"fmt"

	"github.com/krrlab/lab/plots"
)

// convergence returns the figure of the first seeds' residuals against the iteration, a panel
// for each tolerance, a line for each row.
func (r *Report) convergence(roles ...string) []Figure {
	var panels []*plots.Figure
	at := map[float64]*plots.Figure{}
	for _, row := range r.ranRows() {
		for _, role := range roles {
			s := r.sampleOf(row, role)
			if s.first == nil || len(s.first.Result.History) == 0 {
				continue
			}
			tol := s.first.Case.Tol
			f := at[tol]
			if f == nil {
				f = plots.Convergence(fmt.Sprintf("τ = %g", tol), tol)
				at[tol] = f
				panels = append(panels, f)
			}
			name := row
			if len(roles) > 1 {
				name += ", " + role
			}
			f.Series = append(f.Series, plots.Series{Name: name, Y: s.first.Result.History})
		}
	}
	if len(panels) == 0 {
		return nil
	}
	f := panels[0]
	if len(panels) > 1 {
		f = plots.Grid("", 1, panels...)
	}
	f.Title = r.Title
	f.Caption = fmt.Sprintf("The worst column's relative residual ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂, by recurrence, against the iteration; first seed, %s scale.", r.Scale)
	return []Figure{{r.ID + "-convergence", f}}
}
