package compare

import (
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
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
	KError  float64      `json:"kernel_error_bound"`
	KBytes  int64        `json:"kernel_bytes"`
	Product float64      `json:"product_seconds"` // of K with all t right-hand sides
	Rows    []pencil.Row `json:"rows"`            // M = I first
	Seconds struct {
		Kernel float64 `json:"kernel"` // of forming K
		Total  float64 `json:"total"`
	} `json:"seconds"`
}

var _ stage.Stage = (*Result)(nil)

// clock returns the seconds that k iterations with all right-hand sides take alone, with making M, without K.
func (r *Result) clock(row *pencil.Row, k int) float64 {
	return row.Build + float64(k)*(r.Product+row.Solve)
}

// typical returns of every preconditioner the draw with the median number of iterations among those that did not
// fail; one that failed in all draws by its first.
func (r *Result) typical() (some []*pencil.Row) {
	for i := range r.Rows {
		first := &r.Rows[i]
		if slices.ContainsFunc(some, func(s *pencil.Row) bool { return s.Name == first.Name }) {
			continue
		}
		var of []*pencil.Row
		for j := range r.Rows {
			if row := &r.Rows[j]; row.Name == first.Name && row.Why == "" && row.Iterations != nil {
				of = append(of, row)
			}
		}
		slices.SortStableFunc(of, func(a, b *pencil.Row) int { return *a.Iterations - *b.Iterations })
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
		b.Add(row.Name, "%s", row.Text(r.To, r.seconds(row)))
	}
	pencil.Evidence(&b, rows...)
	b.Took(r.Seconds.Total, "kernel", r.Seconds.Kernel)
	return b.String()
}

// seconds returns those of all iterations alone.
func (r *Result) seconds(row *pencil.Row) float64 {
	if row.Iterations == nil {
		return 0
	}
	return r.clock(row, *row.Iterations)
}

// Table gives a row for each preconditioner and draw.
func (r *Result) Table() *plots.Table {
	var rows []*pencil.Row
	for i := range r.Rows {
		rows = append(rows, &r.Rows[i])
	}
	return pencil.Table("compare: "+r.Dataset, rows, r.To, r.seconds)
}

// HTML gives the lines, the picture and the numbers.
func (r *Result) HTML() string { return stage.HTML(r) }
