package accel

import (
	"fmt"
	"math"
)

// Budget is the memory that a piece of work may use: a limit, and the bytes that count against it already. A caller
// that hands a budget on first adds its own bytes (Reserve). The zero Budget has no limit.
type Budget struct {
	Limit int64 // bytes; 0 means no limit
	Used  int64 // bytes that are in use or set aside
}

const (
	// machineShare is the fraction of the memory of the machine, or of its control group, that all its processes may
	// use together by default. A larger value allows larger problems but risks that the system runs out of memory.
	machineShare = 0.9
	// programBytes is the memory that is subtracted from the limit of a process for the program, its libraries and
	// garbage, which the predicted memory of a solve does not include.
	programBytes = 100e6
	// noMemory is the limit if no memory remains, because a limit of 0 means that there is none.
	noMemory = 1
)

// ProcessLimit returns the bytes that the data and the matrices of one of several equal processes on this machine may
// take: limit minus the memory of the program itself. If limit is 0, the share of the process in nine tenths of the
// machine's memory replaces it. It is the limit of plans and of solves. The result is noMemory if nothing remains, and
// 0 if both limits are unknown.
func ProcessLimit(limit int64, processes int) int64 {
	if limit == 0 {
		share, _ := MemoryShare(processes)
		limit = int64(machineShare * float64(share))
	}
	if limit == 0 {
		return 0
	}
	return max(noMemory, limit-programBytes)
}

// AvailableMemory returns the budget of work whose data are in memory already: limit bytes, or if limit is 0 one of
// several equal parts of the memory that the process can still allocate (MemoryAvailable). The budget has no limit if
// limit is 0 and the available memory is unknown.
func AvailableMemory(limit int64, parts int) Budget {
	if limit == 0 { // rounded up, because 0 stands for an unknown limit
		limit = (MemoryAvailable() + int64(parts) - 1) / int64(parts)
	}
	return Budget{Limit: limit}
}

// Reserve returns b with more bytes in use.
func (b Budget) Reserve(bytes int64) Budget {
	b.Used += bytes
	return b
}

// Free returns the bytes that are not in use, or math.MaxInt64 without a limit. The result is negative if more
// bytes are in use than the limit.
func (b Budget) Free() int64 {
	if b.Limit == 0 {
		return math.MaxInt64
	}
	return b.Limit - b.Used
}

// Fits reports whether at least the given number of bytes is free.
func (b Budget) Fits(bytes int64) bool { return bytes <= b.Free() }

// Check returns a *MemoryError unless the bytes that the item takes are free. advice names a remedy, including
// the flag --memory if that sets the limit; "" advises --memory alone.
func (b Budget) Check(bytes int64, item, advice string) error {
	if b.Fits(bytes) {
		return nil
	}
	return &MemoryError{Item: item, Need: bytes, Budget: b, Advice: advice}
}

// MemoryError reports an item that does not fit into a Budget.
type MemoryError struct {
	Item   string // the data or the work that takes the memory
	Need   int64  // number of bytes that the item takes
	Budget Budget
	Advice string // a remedy
}

// Shortage returns the text of the error without the advice.
func (e *MemoryError) Shortage() string {
	if e.Budget.Limit == noMemory {
		return fmt.Sprintf("%s would take %s of memory, and none is free, as %s are kept for the program itself",
			e.Item,
			FormatBytes(e.Need), FormatBytes(programBytes))
	}
	return fmt.Sprintf("%s would take %s of memory, and %s of %s are free", e.Item, FormatBytes(e.Need),
		FormatBytes(max(0, e.Budget.Free())), FormatBytes(e.Budget.Limit))
}

// Error returns the shortage and the advice.
func (e *MemoryError) Error() string {
	advice := e.Advice
	if advice == "" {
		advice = "allow more by --memory"
	}
	return e.Shortage() + ": " + advice
}

// SaturateInt64 converts a number of bytes to an int64. A number that is too large becomes math.MaxInt64.
func SaturateInt64(bytes float64) int64 {
	if bytes >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(bytes)
}
