package tune

import (
	"context"
	"fmt"
	"sort"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// leastRows is the smallest subsample that a memory limit may lead to. A search on fewer rows finds the scale of the
// kernel by chance only.
const leastRows = 100

// sampleBytes returns the memory that losses of a sample take, where K has a row for each row of the sample and a
// column for each of the fitted ones: K, the tables, some copies of K's square part, and four copies of the features.
func sampleBytes(rows, fitted, d, tables, copies int) int64 {
	r, m := int64(rows), int64(fitted)
	return 8 * (r*m*int64(tables+1) + m*m*int64(copies) + 4*r*int64(d))
}

// rowsWithin returns the largest m ≤ most for which bytes(m), which increases, is at most the memory; 0 bytes of memory
// are no limit.
func rowsWithin(memory int64, most int, bytes func(m int) int64) int {
	if memory == 0 {
		return most
	}
	return sort.Search(most, func(m int) bool { return bytes(m+1) > memory })
}

// limit sets the memory of the search, and Rows to fewer if no more fit. It returns an error that is the same on all
// ranks if not even leastRows fit.
func (o *Options) limit(ctx context.Context, p *stage.Problem) error {
	memory, err := comm.Least(ctx, comm.OrAlone(p.Comm), p.Memory)
	if err != nil || memory == 0 {
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
	base := p.HeldBytes + points.Held(p.X) // the last level splits the points into two copies
	o.memory = max(1, memory-base)
	bytes := func(m int) int64 { // a factorization, and the one before that is not collected yet
		return sampleBytes(m+valid, m, p.D, len(tables), 2)
	}
	wanted := o.Rows
	if o.takesAll(p.N) {
		wanted = p.N
	}
	switch m := rowsWithin(o.memory, wanted, bytes); {
	case m < min(wanted, leastRows):
		least := min(wanted, leastRows)
		return fmt.Errorf("tune: a search on %d rows, the fewest: %w", least,
			&stage.TooLarge{Need: base + bytes(least), Limit: memory})
	case m < wanted:
		o.Rows = m
		o.limited = fmt.Sprintf("a subsample of %d rows, as the memory (--memory) allows no more", m)
	}
	return nil
}

// takesAll reports whether a sample takes all of n rows.
func (o *Options) takesAll(n int) bool { return n <= 2*o.Rows && o.limited == "" }

// free drops K and the tables, which the next loss makes again.
func (s *sample) free() {
	s.k, s.held = nil, nil
	clear(s.tables)
}
