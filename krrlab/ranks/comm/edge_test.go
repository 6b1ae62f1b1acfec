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

// TestFixedRange checks that a bound takes 61 to 62 bits and that the unit is a power of two. Bounds that are not
// finite have no unit, and all their sums are NaN. Over(scale) is the fixed point of sums that are smaller by that
// factor.
func TestFixedRange(t *testing.T) {
	for _, bound := range []float64{1, 1.5, 2, 3, -3, 1e-9, 1e-200, 1e200, math.MaxFloat64} {
		f := NewFixedPoint(bound)
		if n := math.Abs(bound) * f.up; !(n >= 0x1p61 && n < 0x1p62) || f.up*f.down != 1 {
			t.Errorf("a bound of %g is %g units, want 2⁶¹ to 2⁶²; 1 is %g units of %g", bound, n, f.up, f.down)
		}
		if frac, _ := math.Frexp(f.down); frac != 0.5 {
			t.Errorf("a bound of %g: the unit %g is not a power of two", bound, f.down)
		}
	}
	for _, bound := range []float64{0, math.SmallestNonzeroFloat64, 1e-300} {
		if f := NewFixedPoint(bound); f.up*f.down != 1 || f.up < 0x1p61 || !f.Add([]int64{0}, []float64{bound}) {
			t.Errorf("a bound of %g: %+v", bound, f)
		}
	}
	for _, bound := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		f, sum, rest := NewFixedPoint(bound), []int64{0}, []int64{0}
		fits := f.Add(sum, []float64{bound}) && f.AddScaled(sum, []float64{bound}, []float64{1}) &&
			f.AddScaled32(sum, []float32{1}, []float64{1}) && f.AddFine(sum, rest, []float64{bound}, []float64{1})
		if !fits || sum[0] != 0 || rest[0] != 0 || !math.IsNaN(f.Value(5)) || !math.IsNaN(f.FineValue(5, 0)) ||
			!math.IsNaN(f.Over(2).Value(5)) {
			t.Errorf("a bound of %g: fits %v, %d and %d", bound, fits, sum[0], rest[0])
		}
	}
	f := NewFixedPoint(3)
	for _, scale := range []float64{1, 0.25, 8} {
		scaledUnit, sum, scaled := f.Over(scale), []int64{0}, []int64{0}
		scaledUnit.Add(sum, []float64{0.1})
		f.AddScaled(scaled, []float64{0.1}, []float64{scale})
		if sum[0] != scaled[0] || math.Abs(scaledUnit.Value(sum[0])-0.1) > 0x1p-50 || scaledUnit.up*scaledUnit.down != 1 {
			t.Errorf("over %g: %d units, scaled %d; %g", scale, sum[0], scaled[0], scaledUnit.Value(sum[0]))
		}
	}
}

// TestFine checks that a sum with its rest has an error of at most 2⁻⁴⁰ units per term, and that its value has one
// rounding more.
func TestFine(t *testing.T) {
	f := NewFixedPoint(1000)
	sum, rest, scale := []int64{0}, []int64{0}, []float64{0.5}
	want := new(big.Float).SetPrec(300)
	const terms = 1000
	for i := range terms {
		v := math.Ldexp(math.Sin(float64(i+1)), -(i % 70))
		if !f.AddFine(sum, rest, []float64{v}, scale) {
			t.Fatal("a term does not fit")
		}
		want.Add(want, new(big.Float).SetPrec(300).SetFloat64(v/2))
	}
	unit := new(big.Float).SetPrec(300).SetFloat64(f.down)
	got := new(big.Float).SetPrec(300).SetInt64(rest[0])
	got.Quo(got, big.NewFloat(0x1p40))
	got.Add(got, new(big.Float).SetInt64(sum[0])).Mul(got, unit)
	deviation, _ := new(big.Float).Sub(got, want).Float64()
	if math.Abs(deviation) > terms*f.down*0x1p-40 {
		t.Errorf("the sum has an error of %g units, want at most %g", deviation/f.down, terms*0x1p-40)
	}
	exact, _ := want.Float64()
	testkit.Near(t, f.FineValue(sum[0], rest[0]), exact, 0x1p-51*math.Abs(exact))
	// A rest of more than one unit, of either sign, is added to the value.
	for _, r := range []int64{3<<40 + 1<<39, -3<<40 - 1<<39} {
		if v, want := f.FineValue(10, r), (10+float64(r)/0x1p40)*f.down; v != want {
			t.Errorf("10 and a rest of %d: %v, want %v", r, v, want)
		}
	}
}

// TestAgreeAlone checks that Agree returns the own error without communication on a single process, and after an
// error that broke the group.
func TestAgreeAlone(t *testing.T) {
	mine := errors.New("mine")
	a := OrAlone(nil)
	if err := Agree(t.Context(), a, mine); err != mine || OrAlone(a) != a || a.Traffic() != (Traffic{}) {
		t.Errorf("alone: %v, traffic %+v, want the given error and no traffic", err, a.Traffic())
	}
	group := Local(2, time.Minute)
	broken := &Error{0, 2, opReduce, mine}
	if err := Agree(t.Context(), group[0], broken); err != error(broken) { // rank 1 does not call Agree
		t.Errorf("in a broken group: %v, want %v", err, broken)
	}
}

// TestCheckEqual checks that all ranks get the error if one rank has other bytes than rank 0.
func TestCheckEqual(t *testing.T) {
	other := errors.New("other")
	for _, last := range []string{"ab", "aB", "abc", ""} {
		RunLocal(3, func(c Comm) {
			mine := "ab"
			if c.Rank() == 2 {
				mine = last
			}
			err := CheckEqual(t.Context(), c, []byte(mine), other)
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
		if !errors.As(err, &rankErr) || rankErr.Rank != 1 || rankErr.Size != 3 || rankErr.Text != "one" || err.Error() != "rank 1 of 3: one" ||
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

// TestShared checks BroadcastBytes for bytes of any length, BroadcastFloats, MergeDisjoint, and the smallest budget of
// all ranks.
func TestShared(t *testing.T) {
	RunLocal(3, func(c Comm) {
		for _, text := range []string{"", "a", "longer"} {
			mine := []byte("another, and longer")
			if c.Rank() == 1 {
				mine = []byte(text)
			}
			if b, err := BroadcastBytes(t.Context(), c, mine, 1); err != nil || string(b) != text {
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
			{{Used: 9}, {Limit: 7}, {Limit: 9, Used: 3}}, {{Limit: 5, Used: 9}, {}, {Limit: 4}}, {{Used: 1}, {Used: 1}, {}},
		} {
			want := min(budgets[0].Free(), budgets[1].Free(), budgets[2].Free())
			if b, err := SmallestBudget(t.Context(), c, budgets[c.Rank()]); err != nil || b.Free() != want ||
				budgets[c.Rank()].Limit > 0 && b.Limit != budgets[c.Rank()].Limit {
				t.Errorf("the smallest of %v: %v, %v", budgets, b, err)
			}
		}
	})
}

// TestUnlikeCalls checks that ranks that call different collectives, or the same with different arguments, get an
// error.
func TestUnlikeCalls(t *testing.T) {
	x := make([]float64, 4)
	for name, f := range map[string]func(c Comm) error{
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
			if err := f(c); err == nil || !strings.Contains(err.Error(), "rank 0 called") ||
				!strings.Contains(err.Error(), "rank 1 ") {
				t.Errorf("%s: %v, want an error that names the calls of both ranks", name, err)
			}
		})
	}
}

// TestBroken checks that the first error that breaks a group remains, and that it names the rank that stopped.
func TestBroken(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	g := Local(3, 0)
	var commErr *Error
	if err := g[1].AllReduceInt64(done, nil); !errors.As(err, &commErr) || commErr.Rank != 1 || commErr.Size != 3 || commErr.Op != opReduce ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("canceled on rank 1 of 3: %v", err)
	}
	_ = g[0].AllReduceInt64(done, nil)
	_, errMin := SmallestBudget(done, Alone(), accel.Budget{})
	_, errShare := BroadcastBytes(done, Alone(), nil, 0)
	if _, errLocate := LocateNode(done, Alone()); errMin != context.Canceled || errShare != errMin ||
		errLocate != errMin {
		t.Errorf("alone: %v, %v, %v", errMin, errShare, errLocate)
	}
	testkit.Fails(t, g[2].AllReduceInt64(t.Context(), nil), "rank 1 was stopped")
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "0 ranks") {
			t.Errorf("panic %q", v)
		}
	}()
	Local(0, 0)
}
