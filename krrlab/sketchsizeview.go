package krrlab

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/adapt"
	"github.com/krrlab/lab/plots"
)

// Table returns a row for every rung.
func (s *SketchSize) Table() *plots.Table {
	t := &plots.Table{Title: s.name(), Columns: []plots.Column{
		{Name: "s"}, {Name: "κ"}, {Name: "κ low"}, {Name: "κ high"},
	}}
	theorem := s.Test == adapt.Theorem7
	if theorem {
		for _, name := range []string{"rank of P", "condition 1", "low", "high", "verdict 1", "least ratio", "low", "largest ratio", "high", "verdict 2"} {
			t.Columns = append(t.Columns, plots.Column{Name: name})
		}
	}
	for _, c := range []plots.Column{
		{Name: "verdict"}, {Name: "iterations"}, {Name: "predicted", Unit: "s"}, {Name: "features", Unit: "s"},
		{Name: "ZᵀZ", Unit: "s"}, {Name: "factor", Unit: "s"}, {Name: "test", Unit: "s"}, {Name: "rung", Unit: "s"},
	} {
		t.Columns = append(t.Columns, c)
	}
	num := plots.Number
	for _, r := range s.Rungs {
		row := []plots.Cell{num(float64(r.S)), num(r.Kappa.Value), num(r.Kappa.Lo), num(r.Kappa.Hi)}
		if theorem {
			row = append(row, conditionCells(r.Conditions)...)
		}
		row = append(row, plots.Text(string(r.Verdict)), num(float64(r.Iterations)), num(r.Predicted), num(r.Seconds.Features),
			num(r.Seconds.Gram), num(r.Seconds.Factor), num(r.Seconds.Test), num(r.Seconds.Rung))
		t.Rows = append(t.Rows, row)
	}
	return t
}

func conditionCells(c *adapt.Conditions) []plots.Cell {
	if c == nil {
		return make([]plots.Cell, 10)
	}
	num := plots.Number
	return []plots.Cell{
		num(float64(c.Rank)), num(c.Norm.Value), num(c.Norm.Lo), num(c.Norm.Hi), plots.Text(string(c.First)),
		num(c.Low.Value), num(c.Low.Lo), num(c.High.Value), num(c.High.Hi), plots.Text(string(c.Second)),
	}
}

// Plot draws the ladder. For kappa: κ's interval against s, and the target. For theorem7: what
// each condition asks about divided by its threshold, and κ divided by the bound that the
// conditions imply; a rung is accepted where both conditions are below 1.
func (s *SketchSize) Plot() *plots.Figure {
	chosen := -1
	k := plots.Series{Name: "κ(M⁻¹A)"}
	for i, r := range s.Rungs {
		put(&k, r.S, 1, r.Kappa.Value, r.Kappa.Lo, r.Kappa.Hi)
		if s.Status == adapt.Found && r.S == s.S {
			chosen = i
		}
	}
	var f *plots.Figure
	if s.Test == adapt.Theorem7 {
		k.Name = fmt.Sprintf("κ(M⁻¹A)/%.3g", s.Target)
		for i := range k.Y {
			k.Y[i] /= s.Target
		}
		k.Lo, k.Hi = nil, nil // its conditions decide, and their bars are to be seen
		f = plots.Ladder(s.name(), "relative to the threshold", 1, chosen, append(s.conditionSeries(), k)...)
		f.HLines[0].Label = "threshold"
	} else {
		f = plots.Ladder(s.name(), k.Name, s.Target, chosen, k)
	}
	f.X.Label = "features s"
	f.Caption = s.testText() + ". " + s.resultText() + "."
	return f
}

// conditionSeries returns what was measured of both conditions in units of their thresholds.
func (s *SketchSize) conditionSeries() []plots.Series {
	first, second := plots.Series{Name: "condition 1: ‖(I−P)K(I−P)‖/αλ"}, plots.Series{Name: "condition 2: |ratio−1|/γ"}
	for _, r := range s.Rungs {
		if c := r.Conditions; c != nil {
			put(&first, r.S, s.Constants.Alpha, c.Norm.Value, c.Norm.Lo, c.Norm.Hi)
			put(&second, r.S, s.Constants.Gamma, math.Max(1-c.Low.Value, c.High.Value-1), math.Max(1-c.Low.Hi, c.High.Lo-1), math.Max(1-c.Low.Lo, c.High.Hi-1))
		}
	}
	if len(first.X) == 0 {
		return nil
	}
	return []plots.Series{first, second}
}

// put appends a value with its ends, in a unit, to a series.
func put(s *plots.Series, at int, unit, v, lo, hi float64) {
	s.X = append(s.X, float64(at))
	s.Y, s.Lo, s.Hi = append(s.Y, v/unit), append(s.Lo, lo/unit), append(s.Hi, hi/unit)
}
