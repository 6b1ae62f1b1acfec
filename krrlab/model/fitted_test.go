package model

import (
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestFittedRows checks that rows of the fit are recognized in any order, in any format of points and among other
// rows. Rows with other answers are counted as new.
func TestFittedRows(t *testing.T) {
	const n, d = 300, 4
	for name, x := range pointsInFormats(n, d, 3) {
		m := randomModel(kernel.Gaussian{Sigma: 1}, x, 1)
		values := make([]float64, n*d)
		points.RowsTo(x, values, d)
		rows := &datasets.Dataset{X: points.NewDense(n, d, values)}
		permutation, mixed := rng.New(1).Perm(n), points.NewDense(n, d, nil)
		for i := range n {
			copy(mixed.Row(i), values[permutation[i]*d:][:d])
			if i >= 210 {
				mixed.Row(i)[0] += 1000
			}
		}
		testkit.Equal(t, m.CountFittedRows(rows), n, name)
		testkit.Equal(t, m.CountFittedRows(rows.Subset(permutation)), n, name)
		testkit.Equal(t, m.CountFittedRows(&datasets.Dataset{X: mixed}), 210, name)
	}
	x := points.NewDense(n, 1, nil)
	m := randomModel(kernel.Gaussian{Sigma: 1}, x, 1)
	rows := &datasets.Dataset{X: points.NewDense(n, 1, nil), Task: datasets.Regression, Target: make([]float64, n)}
	for i := range n {
		x.Data[i] = float64(i)
		rows.X.(*points.Dense).Data[n-1-i] = float64(i) * (1 + 1e-12)
		rows.Target[n-1-i] = float64(2 * i)
		m.Answers = append(m.Answers, float64(2*i))
	}
	testkit.Equal(t, m.CountFittedRows(rows), n)
	for i := range 100 {
		rows.Target[i]++
	}
	testkit.Equal(t, m.CountFittedRows(rows), n-100)
	testkit.Equal(t, m.CountFittedRows(&datasets.Dataset{X: points.NewDense(3, 2, nil)}), 0)
}

// TestFittedRowsByChance draws the rows of a fit from 400 values, so that many of them repeat. Rows that are drawn
// independently equal many of them by chance and must count as new. A copy of the rows in another order, and a copy
// of which a quarter is new, must be recognized.
func TestFittedRowsByChance(t *testing.T) {
	const n, values = 300, 400
	draw := func(seed uint64) *points.Dense {
		x := points.NewDense(n, 1, nil)
		for i := range n {
			x.Data[i] = float64(rng.New(seed).IntN(uint64(i), values))
		}
		return x
	}
	falseAlarms := 0
	for seed := range uint64(100) {
		x := draw(2 * seed)
		m, independent := randomModel(kernel.Gaussian{Sigma: 1}, x, 1), draw(2*seed+1)
		if m.CountFittedRows(&datasets.Dataset{X: independent}) > 0 {
			falseAlarms++
		}
		rows := points.Gather(x, rng.New(seed).Perm(n)).(*points.Dense)
		testkit.Equal(t, m.CountFittedRows(&datasets.Dataset{X: rows}), n, seed)
		copy(rows.Data, independent.Data[:n/4])
		if got := m.CountFittedRows(&datasets.Dataset{X: rows}); got < n-n/4 {
			t.Errorf("seed %d: %d rows are recognized, want at least %d", seed, got, n-n/4)
		}
		m.Repeats = &datasets.Repeats{RowKind: datasets.RowKindNewGroup, Grouped: n}
		if m.CountFittedRows(&datasets.Dataset{X: independent}) > 0 {
			falseAlarms++
		}
		m.Repeats = &datasets.Repeats{RowKind: datasets.RowKindNewFeatures, Grouped: n / 2}
		if got := m.CountFittedRows(&datasets.Dataset{X: independent}); got < n/4 {
			t.Errorf("seed %d: %d rows of a fit with few different rows are recognized, want at least %d", seed, got,
				n/4)
		}
	}
	if falseAlarms > 4 {
		t.Errorf("%d of 200 independent draws are taken for rows of the fit", falseAlarms)
	}
}
