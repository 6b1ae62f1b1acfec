package comm

import "unsafe"

// mostPairs is up to how many ranks all numbers go between pairs of ranks directly, each link in both directions at
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

// mayspin says that no other rank needs this one's processor.
func (c *mpiComm) mayspin() { c.p.spin = longSpin }

// addPairs sets x = Σ_r x_r in the order of the ranks, by pieces of which rank q sums part q: it gets this part from
// all others, and sends them the sum.
func addPairs[T int64 | float64](c *mpiComm, r *request, x []T, kind uintptr) int32 {
	parts, got := make([][]T, c.size), make([][]T, c.size)
	for lo := 0; lo < len(x) && c.size > 1; lo += pairPiece {
		y := x[lo:min(lo+pairPiece, len(x))]
		for q := range parts {
			parts[q] = y[len(y)*q/c.size : len(y)*(q+1)/c.size]
		}
		own := parts[c.rank]
		if need := len(own)*c.size + 1; len(c.room) < need {
			c.room = make([]int64, need)
		}
		room := unsafe.Slice((*T)(unsafe.Pointer(&c.room[0])), len(c.room))
		for q := range got {
			got[q] = room[len(own)*q : len(own)*(q+1)]
		}
		if code := exchange(c, r, func(q int) []T { return parts[q] }, got, kind); code != 0 {
			return code
		}
		got[c.rank] = own
		for i := range own {
			sum := got[0][i]
			for _, p := range got[1:] {
				sum += p[i]
			}
			own[i] = sum
		}
		if code := exchange(c, r, func(int) []T { return own }, parts, kind); code != 0 {
			return code
		}
	}
	return 0
}

// exchange sends from(q) to every other rank q, and receives to[q] from it, a piece of each at a time.
func exchange[T int64 | float64](c *mpiComm, r *request, from func(q int) []T, to [][]T, kind uintptr) int32 {
	step := min(message, c.p.opt.MaxCount)
	for at, left := 0, true; left; at += pairPiece {
		left = false
		var calls []func(req *handle) int32
		call := func(fn uintptr, x []T, peer int) {
			end := min(at+pairPiece, len(x))
			left = left || end < len(x)
			for lo := at; lo < end; lo += step {
				y := x[lo:min(lo+step, end)]
				calls = append(calls, func(req *handle) int32 {
					return invoke(fn, uintptr(unsafe.Pointer(&y[0])), uintptr(len(y)), kind, uintptr(peer), 0, c.handle,
						uintptr(unsafe.Pointer(req)))
				})
			}
		}
		for q := range to {
			if q != c.rank {
				call(r.lib.irecv, to[q], q)
				call(r.lib.isend, from(q), q)
			}
		}
		if code := r.finish(calls...); code != 0 {
			return code
		}
	}
	return 0
}
