package model

import (
	"hash/maphash"
	"math"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

const (
	// rowTolerance is the largest difference between features of equal rows, relative to the feature or to 1. The
	// model's features may be stored in float32; a smaller value would not recognize such rows.
	rowTolerance = 1e-6
	// chanceErrors is the number of standard errors by which the share of rows that equal a row of the fit may exceed
	// the share expected of independent rows. A larger excess is not explained by chance. A larger number overlooks
	// more rows of the fit; a smaller one takes more independent rows with few distinct values for rows of the fit.
	chanceErrors = 3
)

// CountFittedRows returns the number of rows of d that are rows of the fit, which means that the model was fitted to
// them. d may be raw or scaled as the model's points. All rows are rows of the fit if they are equal to the model's
// first points. Otherwise a row of the fit is one that is equal to one of the model's points in the precision of
// float32, and in the answers if both are known.
//
// If the rows of the fit repeat each other by chance, independent rows would also be equal to some of them. By the
// estimate of Good and Turing (Good, Biometrika 40, 1953, doi:10.1093/biomet/40.3-4.237), the expected share of such
// rows is the share q of the rows of the fit that equal another row of the fit. CountFittedRows returns 0 if q explains
// the count up to chanceErrors standard errors, unless the equal rows of the fit are known to be copies. If every row
// of the fit repeats, q always explains the count, and only rows in the order of the fit are recognized.
func (m *Model) CountFittedRows(d *datasets.Dataset) int {
	scaled, err := m.Scaled(d)
	if err != nil {
		return 0
	}
	if m.beginsWith(scaled) {
		return d.Len()
	}
	if kernel.AsPrecomputed(m.Kernel) != nil {
		return 0
	}
	n, _, _ := m.Dims()
	seed := maphash.MakeSeed()
	fitHashes, rowHashes := points.Hashes32(m.X, seed), points.Hashes32(scaled.X, seed)
	if answers := m.answersOf(d); answers != nil {
		addAnswers(fitHashes, m.Answers, seed)
		addAnswers(rowHashes, answers, seed)
	}
	multiplicity := make(map[uint64]int, n) // number of rows of the fit with each hash
	for _, hash := range fitHashes {
		multiplicity[hash]++
	}
	count, repeated := 0, 0
	for _, hash := range rowHashes {
		count += min(1, multiplicity[hash])
	}
	for _, copies := range multiplicity {
		if copies > 1 {
			repeated += copies
		}
	}
	q := float64(repeated) / float64(n)
	// This is the variance of the share in d, plus a bound of the variance of q (Good 1953).
	variance := q*(1-q)*(1/float64(len(rowHashes))+1/float64(n)) + q/float64(n)
	chanceShare := q + chanceErrors*math.Sqrt(variance)
	// Groups that the user names are not copies.
	areCopies := m.Repeats != nil && m.Repeats.Grouped > 0 && m.Repeats.RowKind != datasets.RowKindNewGroup
	if !areCopies && float64(count) <= chanceShare*float64(len(rowHashes)) {
		return 0
	}
	return count
}

// beginsWith reports whether the rows of d are equal to the model's first points.
func (m *Model) beginsWith(d *datasets.Dataset) bool {
	n, dim, _ := m.Dims()
	if d.Len() > n {
		return false
	}
	const block = 256
	values, fitted := make([]float64, block*dim), make([]float64, block*dim)
	for lo := 0; lo < d.Len(); lo += block {
		hi := min(lo+block, d.Len())
		points.RowsTo(d.X.Slice(lo, hi), values, dim)
		points.RowsTo(m.X.Slice(lo, hi), fitted, dim)
		for i, v := range values[:(hi-lo)*dim] {
			if !(math.Abs(v-fitted[i]) <= rowTolerance*max(1, math.Abs(v))) {
				return false
			}
		}
	}
	return true
}

// answersOf returns the answers of d in the form of m.Answers, or nil if the answers of d or of the model are not
// known.
func (m *Model) answersOf(d *datasets.Dataset) (answers []float64) {
	switch {
	case m.Answers == nil || d.Task != m.Task() || !d.HasAnswers():
		return nil
	case m.Labels != nil:
		if d.Class == nil {
			return nil
		}
		classIndex := d.ClassIn(m.Labels)
		for _, c := range d.Class {
			answers = append(answers, float64(classIndex[c]))
		}
		return answers
	case len(d.TargetColumns()) != max(1, len(m.Targets)):
		return nil
	}
	return targetsByRows(d)
}

// targetsByRows returns the answers of a regression, n×(number of targets) by rows.
func targetsByRows(d *datasets.Dataset) (answers []float64) {
	columns := d.TargetColumns()
	for i := range d.Target {
		for _, target := range columns {
			answers = append(answers, target[i])
		}
	}
	return answers
}

// addAnswers replaces the hash of each row by a hash of the old one and the answers of the row, rounded to float32.
func addAnswers(hashes []uint64, answers []float64, seed maphash.Seed) {
	t := len(answers) / max(1, len(hashes))
	for i := range hashes {
		for _, v := range answers[i*t : (i+1)*t] {
			hashes[i] = maphash.Comparable(seed, [2]uint64{hashes[i],
				uint64(math.Float32bits(float32(v + 0)))}) // adding 0 turns −0 into 0
		}
	}
}
