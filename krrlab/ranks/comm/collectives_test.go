package comm

import (
	"context"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestFixedPointUnit checks that a bound is 2⁶¹ to 2⁶² units and that the unit is a power of two. For bounds that are
// not finite, all sums are NaN. DivideBound(scale) must give the format for sums that are smaller by that factor.
func TestFixedPointUnit(t *testing.T) {
	for _, bound := range []float64{1, 1.5, 2, 3, -3, 1e-9, 1e-200, 1e200, math.MaxFloat64} {
		format := NewFixedPoint(bound)
		if units := math.Abs(bound) * format.unitsPerOne; !(units >= 0x1p61 && units < 0x1p62) ||
			format.unitsPerOne*format.unit != 1 {
			t.Errorf("a bound of %g is %g units, want 2⁶¹ to 2⁶²; 1 is %g units of %g", bound, units,
				format.unitsPerOne, format.unit)
		}
		if frac, _ := math.Frexp(format.unit); frac != 0.5 {
			t.Errorf("a bound of %g: the unit %g is not a power of two", bound, format.unit)
		}
	}
	for _, bound := range []float64{0, math.SmallestNonzeroFloat64, 1e-300} {
		if format := NewFixedPoint(bound); format.unitsPerOne*format.unit != 1 || format.unitsPerOne < 0x1p61 ||
			!format.Add([]int64{0}, []float64{bound}) {
			t.Errorf("a bound of %g: %+v", bound, format)
		}
	}
	for _, bound := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		format, sum, fraction := NewFixedPoint(bound), []int64{0}, []int64{0}
		terms, scale := []float64{bound}, []float64{1}
		fits := format.Add(sum, terms) && format.AddScaled(sum, terms, scale) &&
			format.AddScaled32(sum, []float32{1}, scale) && format.AddFine(sum, fraction, terms, scale)
		if !fits || sum[0] != 0 || fraction[0] != 0 || !math.IsNaN(format.Value(5)) ||
			!math.IsNaN(format.FineValue(5, 0)) || !math.IsNaN(format.DivideBound(2).Value(5)) {
			t.Errorf("a bound of %g: fits %v, %d and %d", bound, fits, sum[0], fraction[0])
		}
	}
	format := NewFixedPoint(3)
	for _, scale := range []float64{1, 0.25, 8} {
		narrow, sum, scaled := format.DivideBound(scale), []int64{0}, []int64{0}
		narrow.Add(sum, []float64{0.1})
		format.AddScaled(scaled, []float64{0.1}, []float64{scale})
		if sum[0] != scaled[0] || math.Abs(narrow.Value(sum[0])-0.1) > 0x1p-50 ||
			narrow.unitsPerOne*narrow.unit != 1 {
			t.Errorf("over %g: %d units, scaled %d; %g", scale, sum[0], scaled[0], narrow.Value(sum[0]))
		}
	}
}

// TestAddFine checks that a sum with its fraction has an error of at most 2⁻⁴⁰ units per term, and that its value has
// one rounding more.
func TestAddFine(t *testing.T) {
	format := NewFixedPoint(1000)
	sum, fraction, scale := []int64{0}, []int64{0}, []float64{0.5}
	want := new(big.Float).SetPrec(300)
	const terms = 1000
	for i := range terms {
		value := math.Ldexp(math.Sin(float64(i+1)), -(i % 70))
		if !format.AddFine(sum, fraction, []float64{value}, scale) {
			t.Fatal("a term does not fit")
		}
		want.Add(want, new(big.Float).SetPrec(300).SetFloat64(value/2))
	}
	unit := new(big.Float).SetPrec(300).SetFloat64(format.unit)
	got := new(big.Float).SetPrec(300).SetInt64(fraction[0])
	got.Quo(got, big.NewFloat(0x1p40))
	got.Add(got, new(big.Float).SetInt64(sum[0])).Mul(got, unit)
	deviation, _ := new(big.Float).Sub(got, want).Float64()
	if math.Abs(deviation) > terms*format.unit*0x1p-40 {
		t.Errorf("the sum has an error of %g units, want at most %g", deviation/format.unit, terms*0x1p-40)
	}
	exact, _ := want.Float64()
	testkit.Near(t, format.FineValue(sum[0], fraction[0]), exact, 0x1p-51*math.Abs(exact))
	// A fraction of more than one unit, of either sign, is added to the value.
	for _, large := range []int64{3<<40 + 1<<39, -3<<40 - 1<<39} {
		if value, want := format.FineValue(10, large), (10+float64(large)/0x1p40)*format.unit; value != want {
			t.Errorf("10 and a fraction of %d: %v, want %v", large, value, want)
		}
	}
}

// TestAgreeAlone checks that Agree returns the own error without communication on a single process, and after an
// error that broke the group.
func TestAgreeAlone(t *testing.T) {
	ownErr := errors.New("mine")
	alone := OrAlone(nil)
	if err := Agree(t.Context(), alone,
		ownErr); err != ownErr || OrAlone(alone) != alone || alone.Traffic() != (Traffic{}) {
		t.Errorf("alone: %v, traffic %+v, want the given error and no traffic", err, alone.Traffic())
	}
	group := Local(2, time.Minute)
	broken := &Error{0, 2, opReduce, ownErr}
	if err := Agree(t.Context(), group[0], broken); err != error(broken) { // rank 1 does not call Agree
		t.Errorf("in a broken group: %v, want %v", err, broken)
	}
}

// TestCheckEqual checks that all ranks get the error if one rank has other bytes than rank 0.
func TestCheckEqual(t *testing.T) {
	errDiffers := errors.New("other")
	for _, last := range []string{"ab", "aB", "abc", ""} {
		RunLocal(3, func(c Comm) {
			own := "ab"
			if c.Rank() == 2 {
				own = last
			}
			err := CheckEqual(t.Context(), c, []byte(own), errDiffers)
			if rankErr, ok := errors.AsType[*RankError](err); ok != (last != "ab") || ok && rankErr.Rank != 2 {
				t.Errorf("rank 2 has %q: %v", last, err)
			}
		})
	}
}

// TestAgreeRanks checks that all ranks get the error of the lowest rank with an error, and that only this rank can
// unwrap it.
func TestAgreeRanks(t *testing.T) {
	errs := []error{nil, errors.New("one"), errors.New("")}
	RunLocal(3, func(c Comm) {
		if err := Agree(t.Context(), c, nil); err != nil {
			t.Error(err)
		}
		err := Agree(t.Context(), c, errs[c.Rank()])
		var rankErr *RankError
		if !errors.As(err,
			&rankErr) || rankErr.Rank != 1 || rankErr.Size != 3 || rankErr.Text != "one" ||
			err.Error() != "rank 1 of 3: one" ||
			errors.Is(err, errs[1]) != (c.Rank() == 1) {
			t.Errorf("rank %d: %#v", c.Rank(), err)
		}
		if c.Rank() != 1 && errors.Unwrap(err) != nil {
			t.Errorf("rank %d unwraps %v", c.Rank(), errors.Unwrap(err))
		}
		if c.Rank() < 2 { // an error with an empty text is an error
			err = Agree(t.Context(), c, nil)
		} else {
			err = Agree(t.Context(), c, errs[2])
		}
		if !errors.As(err, &rankErr) || rankErr.Rank != 2 || rankErr.Text != "" {
			t.Errorf("rank %d: %#v", c.Rank(), err)
		}
		err = Agree(t.Context(), c, errors.New("all"))
		if err == nil || err.Error() != "all" { // the error of rank 0 has no rank in its text
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
	})
}

// TestSharedValues checks BroadcastBytes for bytes of any length, BroadcastFloats, MergeDisjoint, and the smallest
// budget of all ranks.
func TestSharedValues(t *testing.T) {
	RunLocal(3, func(c Comm) {
		for _, text := range []string{"", "a", "longer"} {
			own := []byte("another, and longer")
			if c.Rank() == 1 {
				own = []byte(text)
			}
			if b, err := BroadcastBytes(t.Context(), c, own, 1); err != nil || string(b) != text {
				t.Errorf("rank %d: %q, %v", c.Rank(), b, err)
			}
		}
		x := []float64{float64(c.Rank()), 7}
		if err := BroadcastFloats(t.Context(), c, x, 2); err != nil || !slices.Equal(x, []float64{2, 7}) {
			t.Errorf("rank %d: %v, %v", c.Rank(), x, err)
		}
		x, values := make([]float64, 3), []float64{-0.1, math.Inf(-1), math.Copysign(0, -1)}
		x[c.Rank()] = values[c.Rank()]
		if err := MergeDisjoint(t.Context(), c, x); err != nil || !slices.Equal(x, values) || !math.Signbit(x[2]) {
			t.Errorf("rank %d: %v, %v", c.Rank(), x, err)
		}
		for _, budgets := range [][3]accel.Budget{
			{{Used: 9}, {Limit: 7}, {Limit: 9, Used: 3}}, {{Limit: 5, Used: 9}, {}, {Limit: 4}}, {{Used: 1}, {Used: 1},
				{}},
		} {
			want := min(budgets[0].Free(), budgets[1].Free(), budgets[2].Free())
			if b, err := SmallestBudget(t.Context(), c, budgets[c.Rank()]); err != nil || b.Free() != want ||
				budgets[c.Rank()].Limit > 0 && b.Limit != budgets[c.Rank()].Limit {
				t.Errorf("the smallest of %v: %v, %v", budgets, b, err)
			}
		}
	})
}

// TestDifferentCalls checks that ranks that call different collectives, or the same with different arguments, get an
// error.
func TestDifferentCalls(t *testing.T) {
	x := make([]float64, 4)
	for name, call := range map[string]func(c Comm) error{
		"another collective": func(c Comm) error {
			if c.Rank() == 1 {
				return c.AllReduceInt64(t.Context(), make([]int64, 4))
			}
			return BroadcastFloats(t.Context(), c, slices.Clone(x), 0)
		},
		"another root": func(c Comm) error { return c.Broadcast(t.Context(), make([]byte, 4), c.Rank()) },
		"other parts": func(c Comm) error {
			return c.AllGather(t.Context(), slices.Clone(x), []int{1 + c.Rank(), 3 - c.Rank()})
		},
		"another length": func(c Comm) error { return c.Broadcast(t.Context(), make([]byte, 4+c.Rank()), 0) },
		"another sum":    func(c Comm) error { return c.AllReduceInt64(t.Context(), make([]int64, 4+c.Rank())) },
	} {
		RunLocal(2, func(c Comm) {
			if err := call(c); err == nil || !strings.Contains(err.Error(), "rank 0 called") ||
				!strings.Contains(err.Error(), "rank 1 ") {
				t.Errorf("%s: %v, want an error that names the calls of both ranks", name, err)
			}
		})
	}
}

// TestBrokenGroup checks that the first error that breaks a group remains, and that it names the rank that stopped.
func TestBrokenGroup(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	ranks := Local(3, 0)
	var commErr *Error
	if err := ranks[1].AllReduceInt64(canceled, nil); !errors.As(err,
		&commErr) || commErr.Rank != 1 || commErr.Size != 3 || commErr.Op != opReduce ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("canceled on rank 1 of 3: %v", err)
	}
	_ = ranks[0].AllReduceInt64(canceled, nil)
	_, errMin := SmallestBudget(canceled, Alone(), accel.Budget{})
	_, errBroadcast := BroadcastBytes(canceled, Alone(), nil, 0)
	if _, errLocate := LocateNode(canceled, Alone()); errMin != context.Canceled || errBroadcast != errMin ||
		errLocate != errMin {
		t.Errorf("alone: %v, %v, %v", errMin, errBroadcast, errLocate)
	}
	testkit.Fails(t, ranks[2].AllReduceInt64(t.Context(), nil), "rank 1 was stopped")
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "0 ranks") {
			t.Errorf("panic %q", v)
		}
	}()
	Local(0, 0)
}
