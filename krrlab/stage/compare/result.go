package compare

import (
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Result is the comparison of several preconditioners.
type Result struct {
	stage.Header
	To      float64 `json:"to"`                // relative residual at which the iterations ended
	Against string  `json:"against,omitempty"` // quantity of the x axis, "rank" or "bytes"; "" for other figures
	Storage string  `json:"storage"`           // storage of K
	// KError is the predicted bound of ‖K_stored−K‖₂. Residuals and bounds of errors are those of the stored K; the
	// intervals of κ are those of K.
	KError  float64      `json:"kernel_error_bound"`
	KBytes  int64        `json:"kernel_bytes"`    // memory of K on a rank
	Product float64      `json:"product_seconds"` // time of a product of K with all t right-hand sides
	Rows    []pencil.Row `json:"rows"`            // one row for each draw of each preconditioner; the first row has M = I
	Seconds struct {
		Kernel float64 `json:"kernel"` // time to form K
		Total  float64 `json:"total"`  // time of the stage
	} `json:"seconds"`
}

var _ stage.Stage = (*Result)(nil)

// soloSeconds returns the seconds of a solve with this preconditioner alone: the time to make M, and the time
// of the given number of iterations with all right-hand sides. It does not include the time to form K.
func (r *Result) soloSeconds(row *pencil.Row, iterations int) float64 {
	return row.Build + float64(iterations)*(r.Product+row.Solve)
}

// medianDraws returns, for every preconditioner, the draw with the median number of iterations among those that did not
// fail, or the first draw if all draws failed.
func (r *Result) medianDraws() (medians []*pencil.Row) {
	for i := range r.Rows {
		median := &r.Rows[i]
		if slices.ContainsFunc(medians, func(row *pencil.Row) bool { return row.Name == median.Name }) {
			continue
		}
		var draws []*pencil.Row
		for j := range r.Rows {
			if row := &r.Rows[j]; row.Name == median.Name && row.FailureReason == "" && row.Iterations != nil {
				draws = append(draws, row)
			}
		}
		slices.SortStableFunc(draws, func(a, b *pencil.Row) int { return *a.Iterations - *b.Iterations })
		if len(draws) > 0 {
			median = draws[len(draws)/2]
		}
		medians = append(medians, median)
	}
	return medians
}

// String returns a line for the median draw of each preconditioner.
func (r *Result) String() string {
	lines := stage.Lines{Width: 14}
	rows := r.medianDraws()
	for _, row := range rows {
		lines.Width = max(lines.Width, len([]rune(row.Name))+1)
	}
	lines.AddProblem(&r.Header)
	lines.Add("K", "%s, %s%s; a product with t = %d takes %.3g s", r.Storage, accel.FormatBytes(r.KBytes),
		stage.StorageErrorText(stage.Number(r.KError)), r.T, r.Product)
	for _, row := range rows {
		lines.AddText(row.Name, row.Text(r.To, r.totalSeconds(row)))
	}
	pencil.AddLogDetLines(&lines, rows...)
	lines.AddSeconds(r.Seconds.Total, "kernel", r.Seconds.Kernel)
	return lines.String()
}

// totalSeconds returns soloSeconds of all iterations, or 0 if they were not counted.
func (r *Result) totalSeconds(row *pencil.Row) float64 {
	if row.Iterations == nil {
		return 0
	}
	return r.soloSeconds(row, *row.Iterations)
}

// Table returns a table with one row per draw of each preconditioner.
func (r *Result) Table() *plots.Table {
	var rows []*pencil.Row
	for i := range r.Rows {
		rows = append(rows, &r.Rows[i])
	}
	return pencil.Table("compare: "+r.Dataset, rows, r.To, r.totalSeconds)
}

// HTML returns the result as text, figure and table.
func (r *Result) HTML() string { return stage.HTML(r) }
