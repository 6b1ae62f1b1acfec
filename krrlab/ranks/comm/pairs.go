package comm

import (
	"slices"
	"unsafe"
)

// mostPairs is up to how many ranks numbers are added between pairs of ranks directly, each link in both directions at
// once. Libraries add over a tree there, one direction after the other, which takes twice the time where the network
// is what limits.
var mostPairs = 3

const (
	// pairPiece is how many numbers are added before more are sent: what peers send needs room.
	pairPiece = 1 << 20
	// message is how many numbers go as one message: Open MPI sends 64 kB over TCP without an answer, and answers to
	// longer ones queue behind what goes the other way, so that one direction waits for the other.
	message = 7 << 10
)

// addPairs sets x = Σ_r x_r by pieces of which rank q sums part q: it gets this part from all others, and sends them
// the sum.
func (r *request) addPairs(x []int64) int32 {
	parts, got := make([][]int64, r.size), make([][]int64, r.size)
	for lo := 0; lo < len(x) && r.size > 1; lo += pairPiece {
		y := x[lo:min(lo+pairPiece, len(x))]
		for q := range parts {
			parts[q] = y[len(y)*q/r.size : len(y)*(q+1)/r.size]
		}
		own := parts[r.rank]
		r.room = slices.Grow(r.room[:0], len(own)*r.size)[:len(own)*r.size]
		for q := range got {
			got[q] = r.room[len(own)*q : len(own)*(q+1)]
		}
		if code := r.exchange(func(q int) []int64 { return parts[q] }, got); code != 0 {
			return code
		}
		for q, part := range got {
			for i := 0; i < len(part) && q != r.rank; i++ {
				own[i] += part[i]
			}
		}
		if code := r.exchange(func(int) []int64 { return own }, parts); code != 0 {
			return code
		}
	}
	return 0
}

// exchange sends from(q) to every other rank q, and receives to[q] from it, a piece of each at a time.
func (r *request) exchange(from func(q int) []int64, to [][]int64) int32 {
	step := min(message, maxCount)
	for at, left := 0, true; left; at += pairPiece {
		left = false
		var calls []func(req *handle) int32
		call := func(fn uintptr, x []int64, peer int) {
			end := min(at+pairPiece, len(x))
			left = left || end < len(x)
			for lo := at; lo < end; lo += step {
				y := x[lo:min(lo+step, end)]
				calls = append(calls, func(req *handle) int32 {
					return invoke(fn, uintptr(unsafe.Pointer(&y[0])), uintptr(len(y)), r.lib.int64, uintptr(peer), 0,
						r.lib.world, uintptr(unsafe.Pointer(req)))
				})
			}
		}
		for i := 1; i < r.size; i++ { // not all to the same first
			q := (r.rank + i) % r.size
			call(r.lib.irecv, to[q], q)
			call(r.lib.isend, from(q), q)
		}
		if code := r.finish(calls...); code != 0 {
			return code
		}
	}
	return 0
}
