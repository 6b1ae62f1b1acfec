package accel

import (
	"errors"
	"math"
	"testing"
)

// TestBudget checks to the byte what fits into a budget, what is free if more is in use than the limit, and the message
// of what does not fit.
func TestBudget(t *testing.T) {
	unlimited := Budget{}
	if unlimited.Reserve(1<<60).Free() != math.MaxInt64 || unlimited.Check(math.MaxInt64, "", "") != nil {
		t.Error("a budget without a limit is limited")
	}
	budget := Budget{Limit: 2e6}.Reserve(5e5)
	if budget.Used != 5e5 || budget.Free() != 15e5 || !budget.Fits(15e5) || budget.Fits(15e5+1) || budget.Check(15e5,
		"it", "") != nil {
		t.Errorf("%+v has %d bytes free", budget, budget.Free())
	}
	if exceeded := budget.Reserve(1 << 40); exceeded.Free() != 15e5-1<<40 || exceeded.Fits(0) {
		t.Errorf("%+v has %d bytes free", exceeded, exceeded.Free())
	}
	for advice, want := range map[string]string{
		"":           "Z would take 1.6 MB of memory, and 1.5 MB of 2 MB are free: allow more by --memory",
		"take fewer": "Z would take 1.6 MB of memory, and 1.5 MB of 2 MB are free: take fewer",
	} {
		err := budget.Check(16e5, "Z", advice)
		if memoryErr, ok := errors.AsType[*MemoryError](err); !ok || memoryErr.Need != 16e5 ||
			memoryErr.Budget != budget || memoryErr.Error() != want {
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
	if budget := AvailableMemory(9, 2); budget != (Budget{Limit: 9}) {
		t.Errorf("available memory with --memory 9: %+v", budget)
	}
	if part, all := AvailableMemory(0, 1<<40).Limit, MemoryAvailable(); all > 0 && part != 1 {
		t.Errorf("the part of one of 2⁴⁰ ranks of %d bytes is %d, want 1", all, part)
	}
}
