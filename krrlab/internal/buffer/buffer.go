// Package buffer reuses slices that loops work in, so that a loop allocates memory in its first pass only.
package buffer

// Grow sets *buf to a slice of length n, and returns it. It reallocates the slice if its capacity is less than n; the
// numbers are then zeros, and otherwise undefined.
func Grow[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	*buf = (*buf)[:n]
	return *buf
}
