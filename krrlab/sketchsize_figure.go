package krrlab

import (
	"fmt"

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
	f := &plots.Figure{
		Title: s.name(), Caption: s.testText() + ". " + s.resultText() + ".",
		X: s.axis(),
		Y: plots.Axis{Label: "κ(M⁻¹A)", Log: true},
	}
	unit := 1.0
	if s.Test == adapt.Theorem7 {
		unit = s.Target
		first, second := plots.Series{Name: "condition 1: ‖(I−P)K(I−P)‖/αλ"}, plots.Series{Name: "condition 2: |ratio−1|/γ"}
		for _, r := range s.Rungs {
			if c := r.Conditions; c != nil {
				a, g := s.Constants.Alpha, s.Constants.Gamma
				put(&first, r.S, c.Norm.Value/a, c.Norm.Lo/a, c.Norm.Hi/a)
				v, lo, hi := relative2(c, g)
				put(&second, r.S, v, lo, hi)
			}
		}
		for _, series := range []plots.Series{first, second} {
			if len(series.X) > 0 {
				f.Series = append(f.Series, series)
			}
		}
		f.Y.Label = "relative to the threshold"
		f.HLines = []plots.RefLine{{At: 1, Label: "threshold"}}
	} else {
		f.HLines = []plots.RefLine{{At: s.Target, Label: fmt.Sprintf("target %g", s.Target)}}
	}
	k := plots.Series{Name: "κ(M⁻¹A)"}
	if unit != 1 {
		k.Name = fmt.Sprintf("κ(M⁻¹A)/%.3g", unit)
	}
	for _, r := range s.Rungs {
		put(&k, r.S, r.Kappa.Value/unit, r.Kappa.Lo/unit, r.Kappa.Hi/unit)
		if s.Status == adapt.Found && r.S == s.S {
			f.Marks = []plots.Mark{{X: float64(r.S), Y: r.Kappa.Value / unit, Label: fmt.Sprintf("s = %d", r.S)}}
		}
	}
	if s.Test == adapt.Theorem7 { // its conditions decide, and their bands are to be seen
		k.Lo, k.Hi = nil, nil
	}
	f.Series = append(f.Series, k)
	return f
}

// axis returns the axis of s, with ends at 1, 2 or 5 times a power of ten.
func (s *SketchSize) axis() plots.Axis {
	a := plots.Axis{Label: "features s", Log: true}
	if len(s.Rungs) == 0 {
		return a
	}
	least, most := float64(s.Rungs[0].S), float64(s.Rungs[len(s.Rungs)-1].S)
	steps := [...]float64{2, 2, 2.5} // ½, 1, 2, 5, 10, …
	for i, v := 0, 0.5; a.Max <= most; i, v = i+1, v*steps[i%3] {
		if v <= least && v < most {
			a.Min = v
		}
		a.Max = v
	}
	return a
}

// put appends a value with its ends to a series.
func put(s *plots.Series, at int, v, lo, hi float64) {
	s.X = append(s.X, float64(at))
	s.Y, s.Lo, s.Hi = append(s.Y, v), append(s.Lo, lo), append(s.Hi, hi)
}
