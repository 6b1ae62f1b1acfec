package accel

import (
	"errors"
	"math"
	"testing"
)

// TestBudget checks to the byte what fits into a budget, what is free if more is in use than the limit, and the message
// of what does not fit.
func TestBudget(t *testing.T) {
	none := Budget{}
	if none.Reserve(1<<60).Free() != math.MaxInt64 || none.Check(math.MaxInt64, "", "") != nil {
		t.Error("a budget without a limit is limited")
	}
	b := Budget{Limit: 2e6}.Reserve(5e5)
	if b.Used != 5e5 || b.Free() != 15e5 || !b.Fits(15e5) || b.Fits(15e5+1) || b.Check(15e5, "it", "") != nil {
		t.Errorf("%+v has %d bytes free", b, b.Free())
	}
	if over := b.Reserve(1 << 40); over.Free() != 15e5-1<<40 || over.Fits(0) {
		t.Errorf("%+v has %d bytes free", over, over.Free())
	}
	for advice, want := range map[string]string{
		"":           "Z would take 1.6 MB of memory, and 1.5 MB of 2 MB are free: allow more by --memory",
		"take fewer": "Z would take 1.6 MB of memory, and 1.5 MB of 2 MB are free: take fewer",
	} {
		err := b.Check(16e5, "Z", advice)
		if e, ok := errors.AsType[*MemoryError](err); !ok || e.Need != 16e5 || e.Budget != b || e.Error() != want {
			t.Errorf("the error of 1.6 MB is %v, want %s", err, want)
		}
	}
	want := "Z would take 1.6 MB of memory, and none is free, as 100 MB are kept for the program itself: take fewer"
	if err := (Budget{Limit: ProcessLimit(programBytes, 1)}).Check(16e5, "Z", "take fewer"); err.Error() != want {
		t.Errorf("the error without free memory is %v, want %s", err, want)
	}
	if got := [2]int64{SaturateInt64(1e300), SaturateInt64(5)}; got != [2]int64{math.MaxInt64, 5} {
		t.Errorf("SaturateInt64 of 1e300 and 5: %d", got)
	}
}

// TestProcessLimit checks the limit of a process and the memory that is available to it, from --memory and from the
// machine.
func TestProcessLimit(t *testing.T) {
	share, _ := MemoryShare(2)
	if got := ProcessLimit(0, 2); share > 1e9 && got != int64(machineShare*float64(share))-programBytes {
		t.Errorf("the limit in half of the machine, %d bytes, is %d", share, got)
	}
	for limit, want := range map[int64]int64{1: 1, programBytes: 1, 3e8: 2e8} {
		if got := ProcessLimit(limit, 7); got != want {
			t.Errorf("the limit of a process with --memory %d is %d, want %d", limit, got, want)
		}
	}
	if b := AvailableMemory(9, 2); b != (Budget{Limit: 9}) {
		t.Errorf("available memory with --memory 9: %+v", b)
	}
	if part, all := AvailableMemory(0, 1<<40).Limit, MemoryAvailable(); all > 0 && part != 1 {
		t.Errorf("the part of one of 2⁴⁰ ranks of %d bytes is %d, want 1", all, part)
	}
}
