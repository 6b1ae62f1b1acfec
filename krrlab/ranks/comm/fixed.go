package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/krrlab/lab/krrlab/accel"
)

// FixedPoint converts float64 numbers to 64-bit fixed point: v is represented by the integer trunc(v·2^e). Sums of such
// integers are exact. If the terms are the same, the sum therefore has the same bits for any order and any
// distribution over workers and ranks.
//
// If |Σ v| ≤ B, also for partial sums, then the sum of m terms has an error of at most m·q, where
//
//	q = 2^-e,  B·2^e ∈ [2⁶¹, 2⁶²),  q ≤ B·2⁻⁶¹.
type FixedPoint struct {
	up, down float64 // 2^e and 2^-e
	valid    bool    // the bound is finite
}

// NewFixedPoint returns the fixed-point format for sums whose absolute value is at most bound. With bound 0 only zeros
// fit. If the bound is not finite, every sum is NaN.
func NewFixedPoint(bound float64) FixedPoint {
	bound = math.Abs(bound)
	if !(bound <= math.MaxFloat64) {
		return FixedPoint{down: math.NaN()}
	}
	_, exp := math.Frexp(bound) // 2^(exp−1) ≤ bound < 2^exp
	e := min(62-exp, 1000)      // at most 1000, so that neither 2^e nor 2^-e overflows or underflows
	return FixedPoint{up: math.Ldexp(1, e), down: math.Ldexp(1, -e), valid: true}
}

// magnitudeLimit is the magnitude of 2⁶², the largest number that fits: the exponent 62 with the bias 1023, above 53
// zeros. The bits of floating-point numbers without the sign have the same order as the absolute values, with NaN last,
// so one maximum over the bits replaces a branch for each number.
const magnitudeLimit = (1023 + 62) << 53

// magnitude returns the bits of s without its sign. It is monotone in |s|.
func magnitude(s float64) uint64 { return math.Float64bits(s) << 1 }

// Over returns the fixed-point format for sums of at most B/scale; scale is a power of two.
func (f FixedPoint) Over(scale float64) FixedPoint {
	return FixedPoint{f.up * scale, f.down / scale, f.valid}
}

// Add adds src to dst elementwise, dst_i += trunc(src_i·2^e), and reports whether all numbers fit.
func (f FixedPoint) Add(dst []int64, src []float64) bool {
	if !f.valid {
		return true // the sum is NaN
	}
	var maxMagnitude uint64
	dst = dst[:len(src)]
	for i, v := range src {
		s := v * f.up
		maxMagnitude = max(maxMagnitude, magnitude(s))
		dst[i] += int64(s)
	}
	return maxMagnitude <= magnitudeLimit
}

// AddScaled adds src_i·scale_i to dst_i; the scales are powers of two. It reports whether all numbers fit.
func (f FixedPoint) AddScaled(dst []int64, src, scale []float64) bool {
	return addScaled(f, dst, src, scale)
}

// AddScaled32 is AddScaled for float32 numbers.
func (f FixedPoint) AddScaled32(dst []int64, src []float32, scale []float64) bool {
	return addScaled(f, dst, src, scale)
}

// addScaled implements AddScaled and AddScaled32.
func addScaled[T float32 | float64](f FixedPoint, dst []int64, src []T, scale []float64) bool {
	if !f.valid {
		return true
	}
	var maxMagnitude uint64
	dst, scale = dst[:len(src)], scale[:len(src)]
	for i, v := range src {
		s := float64(v) * f.up * scale[i]
		maxMagnitude = max(maxMagnitude, magnitude(s))
		dst[i] += int64(s)
	}
	return maxMagnitude <= magnitudeLimit
}

// AddFine is AddScaled with extra precision: the truncated part of each term, which is exact in float64, is added to
// fraction in units of q·2⁻⁴⁰. The pair (dst, fraction) then represents the sum of m terms with an error of at most
// m·q·2⁻⁴⁰, less than m·B·2⁻¹⁰¹. Up to m = 2²², the sum of the fractions cannot overflow.
func (f FixedPoint) AddFine(dst, fraction []int64, src, scale []float64) bool {
	if !f.valid {
		return true
	}
	var maxMagnitude uint64
	dst, fraction, scale = dst[:len(src)], fraction[:len(src)], scale[:len(src)]
	for i, v := range src {
		s := v * f.up * scale[i]
		maxMagnitude = max(maxMagnitude, magnitude(s))
		w := int64(s)
		dst[i] += w
		fraction[i] += int64((s - float64(w)) * fractionUnits)
	}
	return maxMagnitude <= magnitudeLimit
}

// fractionUnits is the number of units of the fraction in one unit of the sum.
const fractionUnits = 1 << 40

// FineValue returns the number that a sum and its fraction represent, rounded to float64.
func (f FixedPoint) FineValue(sum, fraction int64) float64 {
	sum += fraction / fractionUnits
	return (float64(sum) + float64(fraction%fractionUnits)/fractionUnits) * f.down
}

// Value returns the number sum·2^-e that the integer represents.
func (f FixedPoint) Value(sum int64) float64 { return float64(sum) * f.down }

// RankError is an error that one rank had and that Agree distributed to all ranks.
type RankError struct {
	Rank int    // rank that had the error
	Size int    // number of ranks
	Text string // text of the error at that rank
	err  error  // the error itself; nil on the other ranks
}

func (e *RankError) Error() string {
	if e.Rank == 0 {
		return e.Text
	}
	return fmt.Sprintf("rank %d of %d: %s", e.Rank, e.Size, e.Text)
}

// Unwrap returns the original error on the rank that had it, nil on the others.
func (e *RankError) Unwrap() error { return e.err }

// Agree is a collective that returns nil if err is nil on all ranks. Otherwise it returns on all ranks the error of
// the lowest rank with an error, as a *RankError. If err is an *Error, communication has failed: Agree returns it
// immediately without waiting for peers.
func Agree(ctx context.Context, c Comm, err error) error {
	if _, isCommError := errors.AsType[*Error](err); isCommError || c.Size() == 1 {
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
	failedText, e := BroadcastBytes(ctx, c, []byte(text), r)
	if e != nil {
		return errors.Join(err, e)
	}
	if r != c.Rank() {
		err = nil
	}
	return &RankError{r, c.Size(), string(failedText), err}
}

// BroadcastBytes is a collective that returns the bytes of rank root on all ranks. The length need not be known on the
// other ranks.
func BroadcastBytes(ctx context.Context, c Comm, b []byte, root int) ([]byte, error) {
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

// CheckEqual is a collective that returns errDiffers, as Agree does, if any rank has other bytes than rank 0.
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
// set on all ranks afterwards.
func MergeDisjoint(ctx context.Context, c Comm, x []float64) error {
	return c.AllReduceInt64(ctx, bitsOf(x))
}

// bitsOf returns the numbers of x as int64 bit patterns that share its memory. Adding the pattern of 0 changes no
// bits.
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

// SmallestBudget is a collective that returns b with as little free memory as the rank that has the least. A budget
// without a limit does not count, unless no rank has one.
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

// RowCounts returns the number of rows of every rank in the distribution of RowRange, times width.
func RowCounts(n, unit, size, width int) []int {
	counts := make([]int, size)
	for r := range counts {
		lo, hi := RowRange(n, unit, r, size)
		counts[r] = (hi - lo) * width
	}
	return counts
}

// alone is a group of one rank.
type alone struct{}

// Alone returns a group of one rank, for a process that no launcher started. Its collectives change and count
// nothing. They fail only if the context has ended and return its error unwrapped. Unlike those of other groups, they
// may be called by several goroutines at once.
func Alone() Comm { return alone{} }

// OrAlone returns c, or Alone() if c is nil. It resolves an optional Comm.
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
