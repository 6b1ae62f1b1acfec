package cli

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
	"github.com/krrlab/lab/plots"
)

// predictions is the output of krrlab predict.
type predictions struct {
	*model.Prediction
	keptColumns           [][]string          // columns copied from the input file; the first cell of each is its name
	writesDecision        bool                // whether to write the decision values
	bounds, probabilities *mat.Dense          // one row per point; nil if not requested
	intervals             *interval.Intervals // nil if not requested
	figure                *plots.Figure       // picture for --plot; nil without it
	fittedRows            int                 // number of rows that were used for the fit; 0 without answers
	farRowsNote           string              // note on the rows far from those of the fit; "" if there are none
	isCalibrationData     bool                // intervals and probabilities of the model were calibrated on the rows
	unit                  float64             // power of ten to a multiple of which CSV rounds; 0 for all digits
}

// digitsLevel is the level of the intervals that determine the number of digits of predictions without --interval.
const digitsLevel = 0.9

// Limits of rounding, beyond which predictions are written with all digits.
const (
	// maxMultiple is the largest multiple of the unit that is rounded. It leaves a margin below 2⁵³, where float64 no
	// longer has all whole numbers.
	maxMultiple = 1 << 50
	maxUnit     = 1e22 // the largest power of ten that is a float64
)

// setUnit sets p.unit to the largest power of ten that is at most a hundredth of half the width of the narrowest
// interval. Without --interval, the intervals of a regression with one target are those of the scores in calibration,
// at the level digitsLevel. p.unit stays 0 if there are no intervals, if a width is not positive and finite, or if the
// numbers are too large in this unit.
func (p *predictions) setUnit(calibration *model.Calibration) {
	iv := p.intervals
	if iv == nil && calibration != nil && p.Labels == nil && p.Targets == nil {
		// An error means that there are too few scores.
		iv, _ = interval.FromScores(calibration, p.Prediction, digitsLevel)
	}
	if iv == nil || iv.Sets != nil {
		return
	}
	var widths mat.Dense
	widths.Sub(iv.Hi, iv.Lo)
	halfWidth := mat.Min(&widths) / 2
	if !(halfWidth > 0) || math.IsInf(halfWidth, 0) {
		return
	}
	unit := math.Pow(10, math.Floor(math.Log10(halfWidth/100)))
	largest := 0.0 // largest absolute value of the single column of each matrix; NaN if a number is NaN
	for _, m := range []*mat.Dense{p.Decision, iv.Lo, iv.Hi} {
		largest = max(largest, mat.Norm(m, math.Inf(1)))
	}
	if largest/unit <= maxMultiple && unit <= maxUnit {
		p.unit = unit
	}
}

// formatMultiple formats v as a multiple of unit, a power of ten: the nearest multiple if direction is 0, one that is
// at most v if direction is −1, and one that is at least v if direction is 1. |v|/unit must be at most maxMultiple.
func formatMultiple(v, unit, direction float64) string {
	decimals := max(0, int(-math.Round(math.Log10(unit))))
	// The nearest multiple may lie on the wrong side of v; adding 0 turns −0 into 0.
	for multiple := math.Round(v/unit) + 0; ; multiple += direction {
		text := strconv.FormatFloat(multiple*unit, 'f', decimals, 64)
		written, err := strconv.ParseFloat(text, 64)
		if err != nil || direction == 0 || direction*(written-v) >= 0 {
			return text
		}
	}
}

// columns returns the columns of the output file, except the first one with the row numbers.
func (p *predictions) columns() (all []model.Column) {
	add := func(name string, cell func(i int) string, number func(i int) float64) {
		all = append(all, model.Column{Name: name, Cell: cell, Number: number})
	}
	addMatrix := func(prefix string, names []string, m *mat.Dense) {
		all = append(all, model.NumberColumns(prefix, names, m)...)
	}
	for _, column := range p.keptColumns {
		add(column[0], func(i int) string { return column[i+1] }, nil)
	}
	all = append(all, p.Columns()...)
	if p.writesDecision {
		switch _, t := p.Decision.Dims(); {
		case p.Targets != nil:
			addMatrix("decision_", p.Targets, p.Decision)
		case t > 1: // one column per class
			addMatrix("decision_", p.Labels, p.Decision)
		default:
			addMatrix("decision", []string{""}, p.Decision)
		}
	}
	if p.bounds != nil {
		bound := func(i int) float64 { return slices.Max(p.bounds.RawRowView(i)) }
		add("bound", func(i int) string { return model.FullPrecision(bound(i)) }, bound)
		if p.Labels != nil {
			add("settled", func(i int) string { return strconv.FormatBool(p.isSettled(i)) }, func(i int) float64 {
				if p.isSettled(i) {
					return 1
				}
				return 0
			})
		}
	}
	if p.probabilities != nil {
		addMatrix("p_", p.Labels, p.probabilities)
	}
	switch iv := p.intervals; {
	case iv == nil:
	case iv.Sets != nil:
		add("set", func(i int) string { return labelSet(iv.Sets[i], p.Labels) }, nil)
	default:
		addMatrix("lo", []string{""}, iv.Lo)
		addMatrix("hi", []string{""}, iv.Hi)
		if iv.Std != nil {
			addMatrix("std", []string{""}, iv.Std)
		}
	}
	return all
}

// write writes the predictions to a file, or to out if file is "". The format is CSV, or, if the name ends in .npy, a
// matrix of numbers.
func (p *predictions) write(out io.Writer, file string) error {
	switch {
	case file == "":
		return p.writeCSV(out)
	case filepath.Ext(file) == ".npy":
		return p.writeNPY(file)
	}
	return atomicfile.Write(file, p.writeCSV)
}

// writeCSV writes the columns as CSV. If p.unit is set, it rounds the predictions to the nearest multiple of it, and
// the ends of the intervals outward.
func (p *predictions) writeCSV(w io.Writer) error {
	all := p.columns()
	for j, column := range all {
		direction, isRounded := map[string]float64{"prediction": 0, "lo": -1, "hi": 1}[column.Name]
		if number := column.Number; p.unit > 0 && isRounded && number != nil {
			all[j].Cell = func(i int) string { return formatMultiple(number(i), p.unit, direction) }
		}
	}
	return model.WriteCSV(w, p.Decision.RawMatrix().Rows, all)
}

// writeNPY writes the columns as a matrix in NumPy's format; the column settled has 1 for true and 0 for false. It
// returns an error if a label or a cell of the input file is not a finite decimal number: strconv.ParseFloat alone
// would also accept words such as inf and nan.
func (p *predictions) writeNPY(file string) error {
	all := p.columns()
	return writeArray(file, p.Decision.RawMatrix().Rows, len(all), func(i, j int) (float64, error) {
		if all[j].Number != nil {
			return all[j].Number(i), nil
		}
		cell := all[j].Cell(i)
		v, err := strconv.ParseFloat(cell, 64)
		if err != nil || strings.Trim(cell, "+-.eE0123456789") != "" {
			return 0, fmt.Errorf("%s: the column %s has %q, and a .npy file holds numbers only: write a .csv file",
				file, all[j].Name, cell)
		}
		return v, nil
	})
}
