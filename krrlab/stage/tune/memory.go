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
	r, m := int64(rows), int64(fittedRows)
	return 8 * (r*m*int64(tables+1) + m*m*int64(copies) + 4*r*int64(d))
}

// maxRows returns the largest m ≤ upperBound for which bytes(m) fit the memory budget. The function bytes must
// increase.
func maxRows(memory accel.Budget, upperBound int, bytes func(m int) int64) int {
	return sort.Search(upperBound, func(m int) bool { return !memory.Fits(bytes(m + 1)) })
}

// limitMemory sets the memory budget of the search, and reduces Rows if the memory requires it. All ranks return the
// same error if not even minRows fit.
func (o *Options) limitMemory(ctx context.Context, p *stage.Problem) error {
	memory, err := comm.SmallestBudget(ctx, comm.OrAlone(p.Comm), p.Memory)
	if err != nil {
		return err
	}
	families, err := o.families()
	if err != nil {
		return err
	}
	tables, valid := map[kernel.Argument]bool{}, 0
	for _, f := range families {
		tables[kernel.ArgumentOf(f.base)] = true
	}
	if o.Valid != nil {
		valid = o.Valid.Len()
	}
	o.memory = memory.Reserve(points.MemoryBytes(p.X)) // the last sample splits the points into two copies
	// In addition to K there are two copies: a factorization, and the previous one until it is collected.
	bytes := func(m int) int64 {
		if o.Quick {
			m += m / 2 // rows that addRareClasses may add
		}
		return sampleBytes(m+valid, m, p.D, len(tables), 2)
	}
	wantedRows := o.Rows
	if o.usesAllRows(p.N) {
		wantedRows = p.N
	}
	switch m := maxRows(o.memory, wantedRows, bytes); {
	case m < min(wantedRows, minRows):
		fewestRows := min(wantedRows, minRows)
		return o.memory.Check(bytes(fewestRows), fmt.Sprintf("tune: a search with the fewest rows, %d,",
			fewestRows), "")
	case m < wantedRows:
		o.Rows = m
		o.memoryNote = fmt.Sprintf("a subsample of %d rows, as the memory (--memory) allows no more", m)
	}
	return nil
}

// usesAllRows reports whether the last sample has all n rows of the problem. A problem of up to 2·Rows rows is sampled
// in full, because the search then needs no further fits to all rows. A quick search never makes such fits, and a
// search whose memory has limited Rows cannot take more; both sample at most Rows rows.
func (o *Options) usesAllRows(n int) bool {
	return n <= o.Rows || n <= 2*o.Rows && !o.Quick && o.memoryNote == ""
}

// freeMatrices frees K and the tables. The next loss forms them again.
func (s *sample) freeMatrices() {
	s.k, s.formedKernel = nil, nil
	clear(s.tables)
}
