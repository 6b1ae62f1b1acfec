package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Result is how preconditioners compare.
type Result struct {
	stage.Header
	To      float64 `json:"to"`                // the relative residual that was iterated to
	Against string  `json:"against,omitempty"` // Options.Against
	Storage string  `json:"storage"`           // of K
	// predicted bound of ‖K_stored−K‖₂: residuals and bounds of errors are of K as stored, intervals of κ of K
	KError  float64 `json:"kernel_error_bound"`
	KBytes  int64   `json:"kernel_bytes"`
	Product float64 `json:"product_seconds"` // of K with all t right-hand sides
	Rows    []Row   `json:"rows"`            // M = I first
	Seconds struct {
		Kernel float64 `json:"kernel"` // of forming K
		Total  float64 `json:"total"`
	} `json:"seconds"`
}

var _ stage.Stage = (*Result)(nil)

// clock returns the seconds that k iterations with all right-hand sides take alone, with making M, without K.
func (r *Result) clock(row *Row, k int) float64 { return row.Build + float64(k)*(r.Product+row.Solve) }

// levels returns how many of Levels were iterated to.
func (r *Result) levels() (n int) {
	for n < len(Levels) && Levels[n] >= r.To*(1-1e-12) {
		n++
	}
	return n
}

// typical returns of every preconditioner the draw with the median number of iterations among those that did not
// fail; one that failed in all draws by its first.
func (r *Result) typical() (some []*Row) {
	for i := range r.Rows {
		first := &r.Rows[i]
		if slices.ContainsFunc(some, func(s *Row) bool { return s.Name == first.Name }) {
			continue
		}
		var of []*Row
		for j := range r.Rows {
			if row := &r.Rows[j]; row.Name == first.Name && row.Why == "" {
				of = append(of, row)
			}
		}
		slices.SortStableFunc(of, func(a, b *Row) int { return a.Iterations - b.Iterations })
		if len(of) > 0 {
			first = of[len(of)/2]
		}
		some = append(some, first)
	}
	return some
}

// String gives a line for each preconditioner, that of its median draw.
func (r *Result) String() string {
	b := stage.Lines{Width: 14}
	rows := r.typical()
	for _, row := range rows {
		b.Width = max(b.Width, len([]rune(row.Name))+1)
	}
	b.Problem(&r.Header)
	b.Add("K", "%s, %s%s; a product with t = %d takes %.3g s", r.Storage, accel.Bytes(r.KBytes),
		stage.KernelBound(stage.Number(r.KError)), r.T, r.Product)
	for _, row := range rows {
		b.Add(row.Name, "%s", r.line(row))
	}
	b.Took(r.Seconds.Total, "kernel", r.Seconds.Kernel)
	return b.String()
}

// line says in a few words how a preconditioner did.
func (r *Result) line(row *Row) string {
	if row.Why != "" {
		return "left out: " + row.Why
	}
	text := fmt.Sprintf("%d iterations to %.0e", row.Iterations, r.To)
	if row.Status != pcg.Converged {
		text = fmt.Sprintf("%v after %d iterations", row.Status, row.Iterations)
		if n := len(row.Reached); n > 0 {
			text += fmt.Sprintf(" (%d to %.0e)", row.Reached[n-1], Levels[n-1])
		}
	}
	text += fmt.Sprintf(", %.3g s", r.clock(row, row.Iterations))
	if row.Build > 0 {
		text += fmt.Sprintf(", M %.3g s", row.Build)
	}
	if row.Bytes > 0 {
		text += " and " + accel.Bytes(row.Bytes)
	}
	text += "; κ " + stage.Bounds(row.Kappa)
	if math.IsInf(row.Kappa.Hi, 1) && row.Steps > 0 {
		text += fmt.Sprintf(" within %d steps (--steps)", row.Steps)
	}
	return text
}

// Table gives a row for each preconditioner and draw.
func (r *Result) Table() *plots.Table {
	t := &plots.Table{Title: "compare: " + r.Dataset, Columns: []plots.Column{
		{Name: "preconditioner"}, {Name: "draw"}, {Name: "s"}, {Name: "λ_p", Format: "%.4g"},
	}}
	for _, v := range Levels[:r.levels()] {
		t.Columns = append(t.Columns, plots.Column{Name: fmt.Sprintf("to %.0e", v)})
	}
	t.Columns = append(t.Columns, []plots.Column{
		{Name: "κ, at least", Format: "%.4g"}, {Name: "κ, at most", Format: "%.4g"}, {Name: "tr/n", Format: "%.4g"},
		{Name: "ln det", Format: "%.5g"}, {Name: "Kaporin", Format: "%.4g"}, {Name: "M", Unit: "s", Format: "%.3g"},
		{Name: "M⁻¹R", Unit: "s", Format: "%.3g"}, {Name: "in all", Unit: "s", Format: "%.3g"}, {Name: "bytes"},
		{Name: "note"},
	}...)
	known := func(v float64) any {
		if math.IsInf(v, 0) || math.IsNaN(v) || v == 0 {
			return nil
		}
		return v
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		cells := []any{row.Name, row.Draw, row.S, known(row.LambdaP)}
		for l := range r.levels() {
			var k any
			if l < len(row.Reached) {
				k = row.Reached[l]
			}
			cells = append(cells, k)
		}
		var total any
		if row.Why == "" {
			total = r.clock(row, row.Iterations)
		}
		t.Add(append(cells, known(row.Kappa.Lo), known(row.Kappa.Hi), known(float64(row.Trace)),
			known(float64(row.LogDet)), known(float64(row.Kaporin)), known(row.Build), known(row.Solve), total,
			row.Bytes, row.Why)...)
	}
	return t
}

// HTML gives the lines, the picture and the numbers.
func (r *Result) HTML() string { return stage.HTML(r) }
