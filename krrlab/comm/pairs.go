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
	piece := min(pairPiece, c.p.opt.MaxCount)
	for lo := 0; lo < len(x) && c.size > 1; lo += piece {
		y := x[lo:min(lo+piece, len(x))]
		parts, got := make([][]T, c.size), make([][]T, c.size)
		for q := range parts {
			parts[q] = y[len(y)*q/c.size : len(y)*(q+1)/c.size]
		}
		own := parts[c.rank]
		if need := len(own) * c.size; len(c.room) < need {
			c.room = make([]int64, need)
		}
		for q := range got {
			if got[q] = own; q != c.rank && len(own) > 0 {
				got[q] = unsafe.Slice((*T)(unsafe.Pointer(&c.room[len(own)*q])), len(own))
			}
		}
		if code := exchange(c, r, parts, got, kind); code != 0 {
			return code
		}
		for i := range own {
			sum := got[0][i]
			for _, p := range got[1:] {
				sum += p[i]
			}
			own[i] = sum
		}
		sums := make([][]T, c.size)
		for q := range sums {
			sums[q] = own
		}
		if code := exchange(c, r, sums, parts, kind); code != 0 {
			return code
		}
	}
	return 0
}

// gatherPairs is AllGather in pieces of at most MaxCount numbers of each rank.
func (c *mpiComm) gatherPairs(r *request, x []float64, counts []int) int32 {
	from, to := make([][]float64, c.size), make([][]float64, c.size)
	for done, left := 0, true; left; done += c.p.opt.MaxCount {
		left = false
		at := 0
		for q, m := range counts {
			lo, hi := min(done, m), min(done+c.p.opt.MaxCount, m)
			to[q] = x[at+lo : at+hi]
			at += m
			left = left || hi < m
		}
		for q := range from {
			from[q] = to[c.rank]
		}
		if code := exchange(c, r, from, to, c.p.lib.float64); code != 0 {
			return code
		}
	}
	return 0
}

// exchange sends from[q] to every other rank q, and receives to[q] from it.
func exchange[T int64 | float64](c *mpiComm, r *request, from, to [][]T, kind uintptr) int32 {
	var calls []func(req *handle) int32
	call := func(fn uintptr, x []T, peer int) {
		if len(x) == 0 || peer == c.rank {
			return
		}
		for len(x) > 0 {
			y := x[:min(len(x), message)]
			x = x[len(y):]
			calls = append(calls, func(req *handle) int32 {
				return invoke(fn, uintptr(unsafe.Pointer(&y[0])), uintptr(len(y)), kind, uintptr(peer), 0, c.handle,
					uintptr(unsafe.Pointer(req)))
			})
		}
	}
	for q, x := range to {
		call(r.lib.irecv, x, q)
	}
	for q, x := range from {
		call(r.lib.isend, x, q)
	}
	return r.finish(calls...)
}
