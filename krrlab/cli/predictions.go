package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
)

// predictions is the output of krrlab predict.
type predictions struct {
	*model.Prediction
	keptColumns           [][]string          // columns copied from the input file; the first cell is the name
	decision              bool                // whether to write the decision values
	bounds, probabilities *mat.Dense          // one row per point; nil if not requested
	intervals             *interval.Intervals // nil if not requested
}

// columns returns the columns of the output file, except the first one with the row numbers.
func (p *predictions) columns() (all []model.Column) {
	add := func(name string, cell func(i int) string) { all = append(all, model.Column{Name: name, Cell: cell}) }
	entries := func(prefix string, names []string, m *mat.Dense) {
		all = append(all, model.NumberColumns(prefix, names, m)...)
	}
	for _, k := range p.keptColumns {
		add(k[0], func(i int) string { return k[i+1] })
	}
	all = append(all, p.Columns()...)
	if p.decision {
		switch _, t := p.Decision.Dims(); {
		case p.Targets != nil:
			entries("decision_", p.Targets, p.Decision)
		case t > 1: // one column per class
			entries("decision_", p.Labels, p.Decision)
		default:
			entries("decision", []string{""}, p.Decision)
		}
	}
	if p.bounds != nil {
		add("bound", func(i int) string { return model.FullPrecision(slices.Max(p.bounds.RawRowView(i))) })
		if p.Labels != nil {
			add("settled", func(i int) string { return strconv.FormatBool(p.isSettled(i)) })
		}
	}
	if p.probabilities != nil {
		entries("p_", p.Labels, p.probabilities)
	}
	switch w := p.intervals; {
	case w == nil:
	case w.Sets != nil:
		add("set", func(i int) string { return labelSet(w.Sets[i], p.Labels) })
	default:
		entries("lo", []string{""}, w.Lo)
		entries("hi", []string{""}, w.Hi)
		if w.Std != nil {
			entries("std", []string{""}, w.Std)
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

// writeNPY writes the columns as a matrix in NumPy's format, with 1 and 0 for true and false. It returns an error if a
// column contains other words.
func (p *predictions) writeNPY(file string) error {
	all := p.columns()
	return writeArray(file, p.Decision.RawMatrix().Rows, len(all), func(i, j int) (float64, error) {
		cell := all[j].Cell(i)
		v, err := strconv.ParseFloat(cell, 64)
		if b, e := strconv.ParseBool(cell); err != nil && e == nil && b {
			v = 1
		} else if err != nil && e != nil {
			return 0, fmt.Errorf("%s: the column %s has %q, and a .npy file holds numbers only: write a .csv file",
				file, all[j].Name, cell)
		}
		return v, nil
	})
}
