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

// TestTablesOutward checks that tables round the ends of intervals and the bounds outward. The lower end 1.23456 must
// not appear as 1.235, nor the upper end 2.34543 as 2.345.
func TestTablesOutward(t *testing.T) {
	e := estimate.Interval{Value: 2, Lo: 1.23456, Hi: 2.34543, Confidence: 0.95}
	row := pencil.Row{Spectrum: pencil.Spectrum{Kappa: e, Max: e, Min: e, KappaUpperBound: 2.34543}}
	rung := sketchsize.Rung{Kappa: estimate.Interval{Value: 2, Lo: 1, Hi: 3},
		Conditions: &sketchsize.Conditions{Norm: e, Low: e, High: e}}
	for _, s := range []stage.Stage{
		&loo.Result{Classification: true, Scores: []leaveout.Score{{Error: e}}},
		&statdim.Result{Estimates: statdim.Estimates{Estimate: e}},
		&lambdap.Result{Sweeps: []*lambdap.Sweep{{Points: []lambdap.Point{{Row: row}}}}},
		&multilevel.Result{Chain: []multilevel.LevelResult{{Measurement: multilevel.Measurement{Error: e, Kappa: &e}}}},
		&quality.Result{Row: row},
		&compare.Result{Rows: []pencil.Row{row}},
		&sketchsize.Result{Test: sketchsize.Theorem7, Rungs: []sketchsize.Rung{rung}},
		&sketchsize.Result{Rungs: []sketchsize.Rung{{Kappa: e}}},
	} {
		if text := s.Table().Text(); !strings.Contains(text, "1.234") || !strings.Contains(text, "2.346") ||
			strings.Contains(text, "1.235") || strings.Contains(text, "2.345") {
			t.Errorf("%T:\n%s", s, text)
		}
	}
}
