package tune

import (
	"context"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestLimitMemory checks that the matrices of a search fit into the memory budget, that a note says so if it limits the
// rows, and that fewer than minRows rows are refused.
func TestLimitMemory(t *testing.T) {
	const d = 3
	valid := datasets.SyntheticRegression(50, d, 0, 1)
	for _, v := range []struct {
		n      int
		memory int64
		valid  *datasets.Dataset
		rows   int // rows that the search uses at most, or 0 if it must be refused
	}{
		{3000, 0, nil, 2000},
		{3000, 8 * 5 * 3000 * 3010, nil, 2000}, // all 3,000 rows fit
		{3000, 8 * 5 * 2000 * 2010, nil, 2003}, // K, two tables and two factors
		{3000, 8 * 3 * 2000 * 2010, nil, 1551},
		{30_000, 8 * 5 * 2000 * 1990, nil, 1993},
		{30_000, 8 * 5 * 1000 * 1050, valid, 1008},
		{30_000, 8 * 5 * 90 * 90, nil, 0},
		{60, 8 * 5 * 60 * 70, nil, 2000},
		{60, 1000, nil, 0},
	} {
		o := Options{Valid: v.valid}.withDefaults()
		p := &stage.Problem{X: points.NewDense(v.n, d, nil)}
		p.N, p.D = v.n, d
		if v.memory > 0 {
			p.Memory = accel.Budget{Limit: v.memory + 500 + points.MemoryBytes(p.X), Used: 500}
		}
		err := o.limitMemory(context.Background(), p)
		if v.rows == 0 {
			testkit.Fails(t, err, "a search with the fewest rows, ")
			continue
		}
		if limited := v.rows != 2000; err != nil || o.Rows != v.rows ||
			strings.Contains(o.memoryNote, "as the memory") != limited || limited && o.usesAllRows(v.n) {
			t.Errorf("%d rows, %d bytes: %d, %q, want %d: %v", v.n, v.memory, o.Rows, o.memoryNote, v.rows, err)
		}
	}
}

// TestSampleSize checks that K has columns for the fitted rows only if other rows judge.
func TestSampleSize(t *testing.T) {
	set := datasets.SyntheticRegression(60, 3, 0.1, 1)
	judged := &sample{x: set.X, y: newProblem(t, set).y, fittedRows: 20, tables: map[kernel.Argument][]float64{}}
	testkit.Must(judged.loss(t.Context(), kernel.Gaussian{Sigma: 1}, 0.1))
	if rows, columns := judged.k.Dims(); rows != 60 || columns != 20 ||
		len(judged.tables[kernel.SquaredDistance]) != 60*20 {
		t.Errorf("K is %d×%d", rows, columns)
	}
}
