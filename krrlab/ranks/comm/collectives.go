package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/krrlab/lab/krrlab/accel"
)

// RankError is an error that one rank had and that Agree distributed to all ranks.
type RankError struct {
	Rank int    // rank that had the error
	Size int    // number of ranks
	Text string // text of the error at that rank
	err  error  // the error itself; nil on the other ranks
}

// Error returns the text of the error, with its rank unless that is 0.
func (e *RankError) Error() string {
	if e.Rank == 0 {
		return e.Text
	}
	return fmt.Sprintf("rank %d of %d: %s", e.Rank, e.Size, e.Text)
}

// Unwrap returns the original error on the rank that had it, nil on the others.
func (e *RankError) Unwrap() error { return e.err }

// Agree is a collective that returns nil if err is nil on all ranks. Otherwise it returns on all ranks the error of
// the lowest rank with an error, as a *RankError; with a single rank it returns err itself. If err is an *Error,
// communication has failed: Agree returns it immediately without waiting for peers.
func Agree(ctx context.Context, c Comm, err error) error {
	if _, isCommError := errors.AsType[*Error](err); isCommError || c.Size() == 1 {
		return err
	}
	failed := make([]int64, c.Size())
	ownText := ""
	if err != nil {
		ownText, failed[c.Rank()] = err.Error(), 1
	}
	if commErr := c.AllReduceInt64(ctx, failed); commErr != nil {
		return errors.Join(err, commErr)
	}
	failedRank := slices.Index(failed, 1)
	if failedRank < 0 {
		return nil
	}
	failedText, commErr := BroadcastBytes(ctx, c, []byte(ownText), failedRank)
	if commErr != nil {
		return errors.Join(err, commErr)
	}
	if failedRank != c.Rank() {
		err = nil
	}
	return &RankError{failedRank, c.Size(), string(failedText), err}
}

// BroadcastBytes is a collective that returns the data of rank root on all ranks. The other ranks need not know the
// length, and their data are ignored.
func BroadcastBytes(ctx context.Context, c Comm, data []byte, root int) ([]byte, error) {
	length := []int64{0} // the sum over the ranks is the length at root, because the others contribute 0
	if c.Rank() == root {
		length[0] = int64(len(data))
	}
	if err := c.AllReduceInt64(ctx, length); err != nil {
		return nil, err
	}
	if c.Rank() != root {
		data = make([]byte, length[0])
	}
	return data, c.Broadcast(ctx, data, root)
}

// CheckEqual is a collective that returns nil if all ranks have the same bytes in local. Otherwise the error of the
// lowest rank with other bytes than rank 0 is errDiffers, and Agree distributes it.
func CheckEqual(ctx context.Context, c Comm, local []byte, errDiffers error) error {
	fromRoot, err := BroadcastBytes(ctx, c, local, 0)
	if err == nil && !bytes.Equal(fromRoot, local) {
		err = errDiffers
	}
	return Agree(ctx, c, err)
}

// BroadcastFloats is a collective that copies x from rank root to all ranks. x has the same length on all ranks.
func BroadcastFloats(ctx context.Context, c Comm, x []float64, root int) error {
	return c.Broadcast(ctx, bytesOf(x), root)
}

// MergeDisjoint is a collective that combines vectors: each number of x is set on one rank and 0 on all others, and is
// set on all ranks afterwards. The sum of the bit patterns is the pattern of the number, because that of 0 is 0.
func MergeDisjoint(ctx context.Context, c Comm, x []float64) error {
	return c.AllReduceInt64(ctx, bitsOf(x))
}

// bitsOf returns the numbers of x as int64 bit patterns that share its memory.
func bitsOf(x []float64) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// bytesOf returns the numbers of x as bytes that share its memory.
func bytesOf[T int64 | float64](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 8*len(x))
}

// AllReduceMin is a collective that returns the smallest of the numbers v of the ranks.
func AllReduceMin(ctx context.Context, c Comm, v int64) (int64, error) {
	all := make([]int64, c.Size())
	all[c.Rank()] = v
	if err := c.AllReduceInt64(ctx, all); err != nil {
		return v, err
	}
	return slices.Min(all), nil
}

// SmallestBudget is a collective that returns the budget b, reduced so that its free memory is the smallest of all
// ranks. A rank whose budget has no limit gets a limit if another rank has one.
func SmallestBudget(ctx context.Context, c Comm, b accel.Budget) (accel.Budget, error) {
	minFree, err := AllReduceMin(ctx, c, b.Free())
	if err != nil {
		return b, err
	}
	if minFree < b.Free() {
		if b.Limit == 0 {
			b.Limit = max(1, minFree)
		}
		b.Used = b.Limit - minFree
	}
	return b, nil
}

// RowRange returns the rows [lo, hi) of n that a rank owns in a block distribution: blocks of unit rows are distributed
// over size ranks as evenly as possible. A rank may own no rows.
func RowRange(n, unit, rank, size int) (lo, hi int) {
	blocks := (n + unit - 1) / unit
	return min(n, blocks*rank/size*unit), min(n, blocks*(rank+1)/size*unit)
}

// RowCounts returns for every rank the number of entries of its rows in the distribution of RowRange, for a matrix with
// width columns.
func RowCounts(n, unit, size, width int) []int {
	counts := make([]int, size)
	for rank := range counts {
		lo, hi := RowRange(n, unit, rank, size)
		counts[rank] = (hi - lo) * width
	}
	return counts
}
