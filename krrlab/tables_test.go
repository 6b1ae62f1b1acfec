package krrlab_test

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/model/leaveout"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/compare"
	"github.com/krrlab/lab/krrlab/stage/lambdap"
	"github.com/krrlab/lab/krrlab/stage/loo"
	"github.com/krrlab/lab/krrlab/stage/multilevel"
	"github.com/krrlab/lab/krrlab/stage/quality"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
	"github.com/krrlab/lab/krrlab/stage/statdim"
)

// TestTablesRoundOutward checks that tables round the ends of intervals and the bounds outward. The lower end 1.23456
// must not appear as 1.235, nor the upper end 2.34543 as 2.345.
func TestTablesRoundOutward(t *testing.T) {
	interval := estimate.Interval{Value: 2, Lo: 1.23456, Hi: 2.34543, Confidence: 0.95}
	row := pencil.Row{Spectrum: pencil.Spectrum{Kappa: interval, Max: interval, Min: interval,
		KappaUpperBound: 2.34543}}
	rung := sketchsize.Rung{Kappa: estimate.Interval{Value: 2, Lo: 1, Hi: 3},
		Conditions: &sketchsize.Conditions{Norm: interval, Low: interval, High: interval}}
	for _, result := range []stage.Stage{
		&loo.Result{Classification: true, Scores: []leaveout.Score{{Error: interval}}},
		&statdim.Result{Estimates: statdim.Estimates{Estimate: interval}},
		&lambdap.Result{Sweeps: []*lambdap.Sweep{{Points: []lambdap.Point{{Row: row}}}}},
		&multilevel.Result{Chain: []multilevel.LevelResult{{Measurement: multilevel.Measurement{Error: interval,
			Kappa: &interval}}}},
		&quality.Result{Row: row},
		&compare.Result{Rows: []pencil.Row{row}},
		&sketchsize.Result{Test: sketchsize.Theorem7, Rungs: []sketchsize.Rung{rung}},
		&sketchsize.Result{Rungs: []sketchsize.Rung{{Kappa: interval}}},
	} {
		if text := result.Table().Text(); !strings.Contains(text, "1.234") || !strings.Contains(text, "2.346") ||
			strings.Contains(text, "1.235") || strings.Contains(text, "2.345") {
			t.Errorf("%T:\n%s", result, text)
		}
	}
}
