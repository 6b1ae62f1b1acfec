package model

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
)

// Column is a column of a table of predictions.
type Column struct {
	Name   string
	Cell   func(i int) string  // text in row i
	Number func(i int) float64 // value in row i; nil for a column of texts, such as labels
}

// FullPrecision formats a number with all digits that are needed to read it back exactly.
func FullPrecision(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// NumberColumns returns a column of numbers for each column of values. Its name is the prefix followed by one of names.
func NumberColumns(prefix string, names []string, values *mat.Dense) (columns []Column) {
	for j, name := range names {
		number := func(i int) float64 { return values.At(i, j) }
		columns = append(columns, Column{prefix + name, func(i int) string { return FullPrecision(number(i)) }, number})
	}
	return columns
}

// Columns returns the column prediction, or prediction_NAME for each of several targets.
func (p *Prediction) Columns() []Column {
	if p.Targets != nil {
		return NumberColumns("prediction_", p.Targets, p.Decision)
	}
	column := Column{"prediction", p.Text, nil}
	if p.Labels == nil {
		column.Number = func(i int) float64 { return p.Value[i] }
	}
	return []Column{column}
}

// WriteCSV writes a table of n rows, with the row number, counted from 0, as its first column.
func WriteCSV(w io.Writer, n int, columns []Column) error {
	csvWriter, record := csv.NewWriter(w), []string{"row"}
	for _, column := range columns {
		record = append(record, column.Name)
	}
	err := csvWriter.Write(record)
	for i := 0; i < n && err == nil; i++ {
		record = append(record[:0], strconv.Itoa(i))
		for _, column := range columns {
			record = append(record, column.Cell(i))
		}
		err = csvWriter.Write(record)
	}
	if csvWriter.Flush(); err != nil {
		return err
	}
	return csvWriter.Error()
}

// PredictRows reads rows in CSV, with the options of ReadOptions, and predicts them. Answers among the rows are
// ignored. Words that the fit has not seen are listed in UnknownWords of the returned rows.
func (m *Model) PredictRows(ctx context.Context, r io.Reader, o datasets.ReadOptions) (*Prediction, *datasets.Dataset,
	error) {
	o.Format, o.TestPart = "csv", true
	o = m.ReadOptions(o)
	rows, err := datasets.Read(r, "rows", &o)
	if err != nil {
		return nil, nil, err
	}
	p, err := m.Predict(ctx, rows, &Options{Accuracy: AccuracyFor(m.Origin.Tol)})
	return p, rows, err
}

// TrainingData returns the rows of the fit with their answers, weights and groups, scaled as the model's points. It
// returns an error if K was precomputed, if the file lacks the answers, or if they are no indices of labels.
func (m *Model) TrainingData() (*datasets.Dataset, error) {
	n, _, _ := m.Dims()
	if kernel.AsPrecomputed(m.Kernel) != nil {
		return nil, fmt.Errorf("model: the points of a precomputed K are its row numbers: fit the K of all rows")
	}
	if m.Answers == nil {
		return nil, fmt.Errorf("model: there are no answers of the rows of the fit, as the classes are balanced or " +
			"krrlab of an older version wrote the file: fit all rows again, with --out")
	}
	t := len(m.Answers) / n
	d := &datasets.Dataset{Name: m.Origin.Dataset, Source: m.Origin.Dataset, Task: m.Task(), X: m.X, Labels: m.Labels,
		TargetNames: m.Targets, Mean: m.Mean, Scaling: m.Scaling, Columns: m.Columns,
		ColumnCodings: m.Origin.Categorical, Weights: m.Weights, Groups: m.Groups, Repeats: m.Repeats,
		Space: m.Origin.Space}
	for j := range t {
		column := mat.Col(nil, j, mat.NewDense(n, t, m.Answers))
		switch {
		case m.Labels == nil && j == 0:
			d.Target = column
		case m.Labels == nil:
			d.MoreTargets = append(d.MoreTargets, column)
		default:
			for _, v := range column {
				if c := int(v); float64(c) != v || c < 0 || c >= len(m.Labels) {
					return nil, fmt.Errorf("model: the answer %g is not one of %d labels", v, len(m.Labels))
				}
				d.Class = append(d.Class, int(v))
			}
		}
	}
	return d, nil
}

// SetTrainingAnswers stores the answers and weights of the rows of the fit, d, for TrainingData. It stores nothing if d
// has weights of classes, which depend on all rows.
func (m *Model) SetTrainingAnswers(d *datasets.Dataset) {
	if d.ClassWeights != nil {
		return
	}
	if m.Answers = nil; d.Class == nil {
		m.Answers = targetsByRows(d)
	}
	for _, c := range d.Class {
		m.Answers = append(m.Answers, float64(c))
	}
	m.Weights = d.Weights
}

// TrainingPrediction returns the prediction for the n rows of the fit without products with K. d contains these rows
// with their FitWeights w, W = diag(w), and r is the residual W^½y−(W^½KW^½+λI)W^−½c of the centered targets y, where
// nil means 0. From it follows f = mean+Kc = mean+y−λW⁻¹c−W^−½r. TrainingPrediction returns an error if d has no
// targets that a model can be fitted to.
func (m *Model) TrainingPrediction(d *datasets.Dataset, r *mat.Dense) (*Prediction, error) {
	f, err := m.Coding().EncodeForFit(d)
	if err != nil {
		return nil, err
	}
	weights := d.FitWeights()
	f.Apply(func(i, j int, y float64) float64 {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		if y -= m.Lambda * m.C.At(i, j) / w; r != nil {
			y -= r.At(i, j) / math.Sqrt(w)
		}
		return y
	}, f)
	m.AddMean(f.RawMatrix().Data)
	return m.prediction(f), nil
}
