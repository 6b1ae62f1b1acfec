package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// Fixed turns float64 numbers into 64-bit fixed point: v stands for the integer v·2^e cut
// off towards zero. Sums of such integers are exact, so they are the same in any order
// and for any distribution over workers and ranks, as long as the terms are.
//
// With |Σ v| ≤ B, also for partial sums, and m terms the sum has an error of at most m·q with
//
//	q = 2^-e,  B·2^e ∈ [2⁶¹, 2⁶²),  q ≤ B·2⁻⁶¹.
type Fixed struct {
	up, down float64 // 2^e and 2^-e
	valid    bool
}

// FixedFor returns the fixed point for sums of at most bound in absolute value. A bound of
// 0 is one for zeros. If the bound is not finite every sum is NaN.
func FixedFor(bound float64) Fixed {
	bound = math.Abs(bound)
	if !(bound <= math.MaxFloat64) {
		return Fixed{down: math.NaN()}
	}
	_, exp := math.Frexp(bound) // bound < 2^exp
	e := min(62-exp, 1000)
	return Fixed{up: math.Ldexp(1, e), down: math.Ldexp(1, -e), valid: true}
}

// largest is what the bits of numbers without their sign, which are in the order of the numbers,
// NaN being the last, are compared with: no branch for each number.
const largest = (1023 + 62) << 53 // of 2⁶²

// magnitude returns the bits of s without its sign.
func magnitude(s float64) uint64 { return math.Float64bits(s) << 1 }

// Over returns the fixed point for sums of at most B/scale, scale being a power of two.
func (f Fixed) Over(scale float64) Fixed { return Fixed{f.up * scale, f.down / scale, f.valid} }

// Add adds the numbers src to dst, and reports whether all of them fit.
func (f Fixed) Add(dst []int64, src []float64) bool {
	if !f.valid {
		return true // the sum is NaN
	}
	var most uint64
	dst = dst[:len(src)]
	for i, v := range src {
		s := v * f.up
		most = max(most, magnitude(s))
		dst[i] += int64(s)
	}
	return most <= largest
}

// AddScaled adds the numbers src_i·scale_i to dst, scale being powers of two, and reports whether
// all of them fit.
func (f Fixed) AddScaled(dst []int64, src, scale []float64) bool {
	return addScaled(f, dst, src, scale)
}

// AddScaled32 is AddScaled for float32 numbers.
func (f Fixed) AddScaled32(dst []int64, src []float32, scale []float64) bool {
	return addScaled(f, dst, src, scale)
}

func addScaled[T float32 | float64](f Fixed, dst []int64, src []T, scale []float64) bool {
	if !f.valid {
		return true
	}
	var most uint64
	dst, scale = dst[:len(src)], scale[:len(src)]
	for i, v := range src {
		s := float64(v) * f.up * scale[i]
		most = max(most, magnitude(s))
		dst[i] += int64(s)
	}
	return most <= largest
}

// AddFine is AddScaled with what is cut off, which is exact in float64, added to rest in units of
// q·2⁻⁴⁰: together the sum of m ≤ 2²² terms has an error of at most m·q·2⁻⁴⁰, less than m·B·2⁻¹⁰¹.
func (f Fixed) AddFine(dst, rest []int64, src, scale []float64) bool {
	if !f.valid {
		return true
	}
	var most uint64
	dst, rest, scale = dst[:len(src)], rest[:len(src)], scale[:len(src)]
	for i, v := range src {
		s := v * f.up * scale[i]
		most = max(most, magnitude(s))
		w := int64(s)
		dst[i] += w
		rest[i] += int64((s - float64(w)) * restUnits)
	}
	return most <= largest
}

// restUnits is how many units of the rest make one of the sum.
const restUnits = 1 << 40

// Fine returns the number that a sum and its rest stand for, to the rounding of float64.
func (f Fixed) Fine(sum, rest int64) float64 {
	sum += rest / restUnits
	return (float64(sum) + float64(rest%restUnits)/restUnits) * f.down
}

// Value returns the number that the integer stands for.
func (f Fixed) Value(sum int64) float64 { return float64(sum) * f.down }

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
	if _, own := errors.AsType[*Error](err); own || c.Size() == 1 {
		return err
	}
	failed := make([]int64, c.Size())
	text := ""
	if err != nil {
		text, failed[c.Rank()] = err.Error(), 1
	}
	if e := c.AllReduceInt64(ctx, failed); e != nil {
		return errors.Join(err, e)
	}
	r := slices.Index(failed, 1)
	if r < 0 {
		return nil
	}
	said, e := Share(ctx, c, []byte(text), r)
	if e != nil {
		return errors.Join(err, e)
	}
	if r != c.Rank() {
		err = nil
	}
	return &RankError{r, c.Size(), string(said), err}
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

// Same is a collective that returns the error where a rank has other bytes than rank 0, as Agree does.
func Same(ctx context.Context, c Comm, own []byte, other error) error {
	first, err := Share(ctx, c, own, 0)
	if err == nil && !bytes.Equal(first, own) {
		err = other
	}
	return Agree(ctx, c, err)
}

// ShareNumbers is a collective that sets x, of the same length on all ranks, to rank root's.
func ShareNumbers(ctx context.Context, c Comm, x []float64, root int) error {
	return c.Broadcast(ctx, bytesOf(x), root)
}

// Merge is a collective that sets each number of x to that of the one rank that has it, on all; at others it is 0.
func Merge(ctx context.Context, c Comm, x []float64) error { return c.AllReduceInt64(ctx, bitsOf(x)) }

// bitsOf returns numbers as their bits, which are added to those of 0 without a change.
func bitsOf(x []float64) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

func bytesOf[T int64 | float64](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 8*len(x))
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

// alone is one rank without peers.
type alone struct{}

// Alone returns a group of one rank, whose collectives change and count nothing: what a process is that
// no launcher started. Its collectives fail only with the context, whose error they return as
// it is, and unlike those of other groups they may be called by several goroutines at once.
func Alone() Comm { return alone{} }

// OrAlone returns c, or Alone() for nil: how an option that may be left out is settled.
func OrAlone(c Comm) Comm {
	if c == nil {
		return Alone()
	}
	return c
}

func (alone) Rank() int        { return 0 }
func (alone) Size() int        { return 1 }
func (alone) Traffic() Traffic { return Traffic{} }

func (alone) AllReduceInt64(ctx context.Context, x []int64) error { return ctx.Err() }

func (alone) AllGather(ctx context.Context, x []float64, counts []int) error {
	checkParts(len(x), 1, counts)
	return ctx.Err()
}

func (alone) Broadcast(ctx context.Context, x []byte, root int) error {
	checkRoot(root, 1)
	return ctx.Err()
}

// Names of the collectives in errors.
const (
	opReduce    = "all-reduce of integers"
	opGather    = "all-gather"
	opBroadcast = "broadcast"
)
