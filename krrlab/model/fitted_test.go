package model

import (
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestFittedRows: rows of the fit are found in any order and in any storage, also among others; rows with other answers,
// and rows of few values that are equal by chance, are new.
func TestFittedRows(t *testing.T) {
	const n, d = 300, 4
	for name, x := range kinds(n, d, 3) {
		m := random(kernel.Gaussian{Sigma: 1}, x, 1)
		values := make([]float64, n*d)
		points.Panel64To(x, values, d)
		rows := &datasets.Dataset{X: points.NewDense(n, d, values)}
		all, mixed := rng.New(1).Perm(n), points.NewDense(n, d, nil)
		for i := range n {
			copy(mixed.Row(i), values[all[i]*d:][:d])
			if i >= 210 {
				mixed.Row(i)[0] += 1000
			}
		}
		testkit.Equal(t, m.FittedRows(rows), n, name)
		testkit.Equal(t, m.FittedRows(rows.Subset(all)), n, name)
		testkit.Equal(t, m.FittedRows(&datasets.Dataset{X: mixed}), 210, name)
	}
	x := points.NewDense(n, 1, nil)
	m := random(kernel.Gaussian{Sigma: 1}, x, 1)
	rows := &datasets.Dataset{X: points.NewDense(n, 1, nil), Task: datasets.Regression, Target: make([]float64, n)}
	for i := range n {
		x.Data[i] = float64(i)
		rows.X.(*points.Dense).Data[n-1-i] = float64(i) * (1 + 1e-12)
		rows.Target[n-1-i] = float64(2 * i)
		m.Answers = append(m.Answers, float64(2*i))
	}
	testkit.Equal(t, m.FittedRows(rows), n)
	for i := range 100 {
		rows.Target[i]++
	}
	testkit.Equal(t, m.FittedRows(rows), n-100)
	m.Repeats = &datasets.Repeats{Question: datasets.NewRow, Repeated: n / 2}
	testkit.Equal(t, m.FittedRows(rows), 0)
	m.Repeats.Grouped = n / 2
	testkit.Equal(t, m.FittedRows(rows), n-100)
	testkit.Equal(t, m.FittedRows(&datasets.Dataset{X: points.NewDense(3, 2, nil)}), 0)
}
