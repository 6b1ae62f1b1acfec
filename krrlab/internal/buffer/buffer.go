// Package buffer keeps slices that loops work in from one call to the next. A loop that is warm then allocates nothing.
package buffer

// Grow returns *buf with length n, reallocating it if it is too short. The contents are undefined, zeros where
// it was nil.
func Grow[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	*buf = (*buf)[:n]
	return *buf
}
