package tune

import (
	"context"
	"fmt"
	"sort"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// minRows is the smallest subsample that a memory limit may lead to. With fewer rows, a search finds a good scale of
// the kernel only by chance.
const minRows = 100

// sampleBytes returns the memory for the losses of a sample,
//
//	8·(r·m·(tables+1) + m²·copies + 4·r·d) bytes,
//
// where r is the number of rows of the sample and m the number of those to which models are fitted. K is r×m. There is
// an r×m table of distances or inner products for each kind of kernel argument. Each copy of the square part of K is
// m×m. The d features of the sample are stored four times.
func sampleBytes(rows, fittedRows, d, tables, copies int) int64 {
	const copiesOfX = 4
	r, m := int64(rows), int64(fittedRows)
	return 8 * (r*m*int64(tables+1) + m*m*int64(copies) + copiesOfX*r*int64(d))
}

// maxRows returns the largest number m ≤ upperBound of rows for which bytesFor(m), which must increase with m, fits the
// memory budget.
func maxRows(memory accel.Budget, upperBound int, bytesFor func(m int) int64) int {
	return sort.Search(upperBound, func(m int) bool { return !memory.Fits(bytesFor(m + 1)) })
}

// limitMemory sets the memory budget of the search, and reduces o.Rows, with a note, if the budget is too small. All
// ranks return the same error if not even minRows rows fit.
func (o *Options) limitMemory(ctx context.Context, problem *stage.Problem) error {
	memory, err := comm.SmallestBudget(ctx, comm.OrAlone(problem.Comm), problem.Memory)
	if err != nil {
		return err
	}
	families, err := o.families()
	if err != nil {
		return err
	}
	tables, validRows := map[kernel.Argument]bool{}, 0
	for _, family := range families {
		tables[kernel.ArgumentOf(family.base)] = true
	}
	if o.Valid != nil {
		validRows = o.Valid.Len()
	}
	o.memory = memory.Reserve(points.MemoryBytes(problem.X)) // holding out rows copies the points once
	// There are two copies of K: its factorization, and the previous factorization until it is garbage-collected.
	bytesFor := func(m int) int64 {
		if o.Quick {
			m += m / 2 // rows that addRareClasses may add
		}
		const copiesOfK = 2
		return sampleBytes(m+validRows, m, problem.D, len(tables), copiesOfK)
	}
	wantedRows := o.Rows
	if o.usesAllRows(problem.N) {
		wantedRows = problem.N
	}
	switch m := maxRows(o.memory, wantedRows, bytesFor); {
	case m < min(wantedRows, minRows):
		fewestRows := min(wantedRows, minRows)
		return o.memory.Check(bytesFor(fewestRows), fmt.Sprintf("tune: a search with the fewest rows, %d,",
			fewestRows), "")
	case m < wantedRows:
		o.Rows = m
		o.memoryNote = fmt.Sprintf("a subsample of %d rows, as the memory (--memory) allows no more", m)
	}
	return nil
}

// usesAllRows reports whether the last sample has all n rows of the problem. A problem of up to 2·Rows rows is sampled
// in full, because the search then needs no further fits to all rows. A quick search never makes such fits, and the
// memory has no room for more rows if it has limited Rows; both searches sample at most Rows rows.
func (o *Options) usesAllRows(n int) bool {
	return n <= o.Rows || n <= 2*o.Rows && !o.Quick && o.memoryNote == ""
}

// freeMatrices frees K and the tables of distances and inner products. The next loss forms them again.
func (s *sample) freeMatrices() {
	s.k, s.formedKernel = nil, nil
	clear(s.tables)
}
