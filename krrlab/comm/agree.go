package comm

import (
	"context"
	"errors"
	"fmt"
)

// RankError is an error that all ranks know of: one of them met it and Agree told the
// others.
type RankError struct {
	Rank int
	Size int
	Text string // of the error at that rank
	err  error  // at that rank itself, the error
}

func (e *RankError) Error() string {
	if e.Rank == 0 {
		return e.Text
	}
	return fmt.Sprintf("rank %d of %d: %s", e.Rank, e.Size, e.Text)
}

// Unwrap returns the error at the rank that met it, nil at others.
func (e *RankError) Unwrap() error { return e.err }

// Agree is a collective that returns nil if err is nil on all ranks, and otherwise the
// error of the lowest rank that has one, on all, as a *RankError. An *Error is no matter
// of agreement and is returned as it is, without waiting for peers.
func Agree(ctx context.Context, c Comm, err error) error {
	var own *Error
	if errors.As(err, &own) || c.Size() == 1 {
		return err
	}
	length := make([]int64, c.Size())
	text := ""
	if err != nil {
		text = err.Error()
		length[c.Rank()] = int64(len(text)) + 1
	}
	if e := c.AllReduceInt64(ctx, length); e != nil {
		return errors.Join(err, e)
	}
	for r, n := range length {
		if n == 0 {
			continue
		}
		b := make([]byte, n-1)
		if r == c.Rank() {
			copy(b, text)
		}
		if e := c.Broadcast(ctx, b, r); e != nil {
			return errors.Join(err, e)
		}
		if r != c.Rank() {
			err = nil
		}
		return &RankError{r, c.Size(), string(b), err}
	}
	return nil
}

// Share is a collective that returns rank root's bytes, of any length, on all ranks.
func Share(ctx context.Context, c Comm, b []byte, root int) ([]byte, error) {
	length := []int64{0}
	if c.Rank() == root {
		length[0] = int64(len(b))
	}
	if err := c.AllReduceInt64(ctx, length); err != nil {
		return nil, err
	}
	if c.Rank() != root {
		b = make([]byte, length[0])
	}
	return b, c.Broadcast(ctx, b, root)
}

// ShareNumbers is a collective that sets x, of the same length on all ranks, to rank root's.
func ShareNumbers(ctx context.Context, c Comm, x []float64, root int) error {
	counts := make([]int, c.Size())
	counts[root] = len(x)
	return c.AllGather(ctx, x, counts)
}

// Least is a collective that returns the least v > 0 of the ranks', 0 if none has one.
func Least(ctx context.Context, c Comm, v int64) (int64, error) {
	all := make([]int64, c.Size())
	all[c.Rank()] = v
	if err := c.AllReduceInt64(ctx, all); err != nil {
		return 0, err
	}
	var least int64
	for _, w := range all {
		if w > 0 && (least == 0 || w < least) {
			least = w
		}
	}
	return least, nil
}

// Rows returns the rows [lo, hi) of n that belong to a rank, when whole blocks of unit
// rows are dealt to size ranks as evenly as they go. A rank may have none.
func Rows(n, unit, rank, size int) (lo, hi int) {
	blocks := (n + unit - 1) / unit
	return min(n, blocks*rank/size*unit), min(n, blocks*(rank+1)/size*unit)
}

// Counts returns the number of rows of every rank, as Rows deals them, times width.
func Counts(n, unit, size, width int) []int {
	counts := make([]int, size)
	for r := range counts {
		lo, hi := Rows(n, unit, r, size)
		counts[r] = (hi - lo) * width
	}
	return counts
}
