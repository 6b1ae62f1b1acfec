package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
)

// predictions is the output of krrlab predict.
type predictions struct {
	*model.Prediction
	keptColumns           [][]string          // columns copied from the input file; the first cell is the name
	writesDecision        bool                // whether to write the decision values
	bounds, probabilities *mat.Dense          // one row per point; nil if not requested
	intervals             *interval.Intervals // nil if not requested
}

// columns returns the columns of the output file, except the first one with the row numbers.
func (p *predictions) columns() (all []model.Column) {
	add := func(name string, cell func(i int) string, number func(i int) float64) {
		all = append(all, model.Column{Name: name, Cell: cell, Number: number})
	}
	addMatrix := func(prefix string, names []string, m *mat.Dense) {
		all = append(all, model.NumberColumns(prefix, names, m)...)
	}
	for _, k := range p.keptColumns {
		add(k[0], func(i int) string { return k[i+1] }, nil)
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
	switch v := p.intervals; {
	case v == nil:
	case v.Sets != nil:
		add("set", func(i int) string { return labelSet(v.Sets[i], p.Labels) }, nil)
	default:
		addMatrix("lo", []string{""}, v.Lo)
		addMatrix("hi", []string{""}, v.Hi)
		if v.Std != nil {
			addMatrix("std", []string{""}, v.Std)
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

func (p *predictions) writeCSV(w io.Writer) error {
	return model.WriteCSV(w, p.Decision.RawMatrix().Rows, p.columns())
}

// writeNPY writes the columns as a matrix in NumPy's format; the column settled has 1 for true and 0 for false. It
// returns an error if a label or a cell of the input file is not a finite decimal number: strconv.ParseFloat alone would
// also accept words such as inf and nan.
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
