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
	const unlimited = 2000 // the default limit of the rows
	for _, c := range []struct {
		n      int
		memory int64 // free bytes, or 0 for no limit
		valid  *datasets.Dataset
		rows   int // rows that the search uses at most, or 0 if it must be refused
	}{
		{3000, 0, nil, unlimited},
		{3000, 8 * 5 * 3000 * 3010, nil, unlimited}, // all 3,000 rows fit
		{3000, 8 * 5 * 2000 * 2010, nil, 2003},      // K, two tables and two factors
		{3000, 8 * 3 * 2000 * 2010, nil, 1551},
		{30_000, 8 * 5 * 2000 * 1990, nil, 1993},
		{30_000, 8 * 5 * 1000 * 1050, valid, 1008},
		{30_000, 8 * 5 * 90 * 90, nil, 0},
		{60, 8 * 5 * 60 * 70, nil, unlimited},
		{60, 1000, nil, 0},
	} {
		o := Options{Valid: c.valid}.withDefaults()
		p := &stage.Problem{X: points.NewDense(c.n, d, nil)}
		p.N, p.D = c.n, d
		if c.memory > 0 {
			p.Memory = accel.Budget{Limit: c.memory + 500 + points.MemoryBytes(p.X), Used: 500}
		}
		err := o.limitMemory(context.Background(), p)
		if c.rows == 0 {
			testkit.Fails(t, err, "a search with the fewest rows, ")
			continue
		}
		if limited := c.rows != unlimited; err != nil || o.Rows != c.rows ||
			strings.Contains(o.memoryNote, "as the memory") != limited || limited && o.usesAllRows(c.n) {
			t.Errorf("%d rows, %d bytes: at most %d rows with the note %q, want %d: error %v", c.n, c.memory, o.Rows,
				o.memoryNote, c.rows, err)
		}
	}
}

// TestHeldOutSample checks that K has columns for the 20 fitted rows only if the other rows are held out to judge.
func TestHeldOutSample(t *testing.T) {
	set := datasets.SyntheticRegression(60, 3, 0.1, 1)
	judged := &sample{x: set.X, y: newProblem(t, set).y, fittedRows: 20, tables: map[kernel.Argument][]float64{}}
	testkit.Must(judged.loss(t.Context(), kernel.Gaussian{Sigma: 1}, 0.1))
	if rows, columns := judged.k.Dims(); rows != 60 || columns != 20 ||
		len(judged.tables[kernel.SquaredDistance]) != 60*20 {
		t.Errorf("K is %d×%d, want 60×20", rows, columns)
	}
}
