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

// TestLimitMemory checks that the number of rows is reduced until the matrices of a search fit into the memory budget,
// with a note, and that a budget for fewer than minRows rows is an error.
func TestLimitMemory(t *testing.T) {
	const d = 3
	valid := datasets.SyntheticRegression(50, d, 0, 1)
	const unlimited = 2000 // the default of Options.Rows
	for _, test := range []struct {
		n        int
		memory   int64 // free bytes, or 0 for no limit
		valid    *datasets.Dataset
		wantRows int // largest number of rows of the search, or 0 if there must be an error
	}{
		{3000, 0, nil, unlimited},
		{3000, 8 * 5 * 3000 * 3010, nil, unlimited}, // all 3,000 rows fit
		{3000, 8 * 5 * 2000 * 2010, nil, 2003},      // five matrices: K, two tables and two factors
		{3000, 8 * 3 * 2000 * 2010, nil, 1551},
		{30_000, 8 * 5 * 2000 * 1990, nil, 1993},
		{30_000, 8 * 5 * 1000 * 1050, valid, 1008},
		{30_000, 8 * 5 * 90 * 90, nil, 0},
		{60, 8 * 5 * 60 * 70, nil, unlimited},
		{60, 1000, nil, 0},
	} {
		options := Options{Valid: test.valid}.withDefaults()
		problem := &stage.Problem{X: points.NewDense(test.n, d, nil)}
		problem.N, problem.D = test.n, d
		if test.memory > 0 {
			problem.Memory = accel.Budget{Limit: test.memory + 500 + points.MemoryBytes(problem.X), Used: 500}
		}
		err := options.limitMemory(context.Background(), problem)
		if test.wantRows == 0 {
			testkit.Fails(t, err, "a search with the fewest rows, ")
			continue
		}
		if limited := test.wantRows != unlimited; err != nil || options.Rows != test.wantRows ||
			strings.Contains(options.memoryNote, "as the memory") != limited || limited && options.usesAllRows(test.n) {
			t.Errorf("%d rows, %d bytes: at most %d rows with the note %q, want %d: error %v", test.n, test.memory,
				options.Rows, options.memoryNote, test.wantRows, err)
		}
	}
}

// TestColumnsOfHeldOutSample checks that K has columns for the 20 fitted rows only if the other rows are judging rows.
func TestColumnsOfHeldOutSample(t *testing.T) {
	set := datasets.SyntheticRegression(60, 3, 0.1, 1)
	judged := &sample{x: set.X, y: newProblem(t, set).y, fittedRows: 20, tables: map[kernel.Argument][]float64{}}
	testkit.Must(judged.loss(t.Context(), kernel.Gaussian{Sigma: 1}, 0.1))
	if rows, columns := judged.k.Dims(); rows != 60 || columns != 20 ||
		len(judged.tables[kernel.SquaredDistance]) != 60*20 {
		t.Errorf("K is %d×%d, want 60×20", rows, columns)
	}
}
