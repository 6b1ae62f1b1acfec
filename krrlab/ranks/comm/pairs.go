package comm

import (
	"slices"
	"unsafe"
)

// maxPairRanks is the largest number of ranks for which sums use direct messages between pairs of ranks. These use each
// link in both directions at once. MPI libraries add over a tree for so few ranks, one direction after the other, which
// takes twice the time if the network is the bottleneck.
var maxPairRanks = 3

const (
	// pairPiece is the number of elements that are exchanged and added at a time. It limits the buffer for received
	// numbers.
	pairPiece = 1 << 20
	// messageLength is the number of elements per message. Over TCP, Open MPI sends up to 64 kB without a handshake.
	// The handshakes of longer messages queue behind the data in the other direction, so that one direction waits for
	// the other.
	messageLength = 7 << 10
)

// addPairs sets x = Σ_r x_r, one piece of x at a time. Each rank sums one part of the piece: it receives this part from
// all other ranks and sends them the sum.
func (r *request) addPairs(x []int64) int32 {
	parts, received := make([][]int64, r.size), make([][]int64, r.size)
	for lo := 0; lo < len(x) && r.size > 1; lo += pairPiece {
		piece := x[lo:min(lo+pairPiece, len(x))]
		for rank := range parts {
			parts[rank] = piece[len(piece)*rank/r.size : len(piece)*(rank+1)/r.size]
		}
		ownPart := parts[r.rank]
		r.receiveBuffer = slices.Grow(r.receiveBuffer[:0], len(ownPart)*r.size)[:len(ownPart)*r.size]
		for rank := range received {
			received[rank] = r.receiveBuffer[len(ownPart)*rank : len(ownPart)*(rank+1)]
		}
		if code := r.exchange(func(rank int) []int64 { return parts[rank] }, received); code != 0 {
			return code
		}
		for rank, part := range received {
			for i := 0; i < len(part) && rank != r.rank; i++ {
				ownPart[i] += part[i]
			}
		}
		if code := r.exchange(func(int) []int64 { return ownPart }, parts); code != 0 {
			return code
		}
	}
	return 0
}

// exchange sends outgoing(q) to every other rank q and receives incoming[q] from it. It transfers pairPiece elements
// of each at a time, in messages of messageLength elements.
func (r *request) exchange(outgoing func(peer int) []int64, incoming [][]int64) int32 {
	const tag = 0
	step := min(messageLength, maxCount)
	for offset, unfinished := 0, true; unfinished; offset += pairPiece {
		unfinished = false
		var calls []func(req *handle) int32
		addCalls := func(fn uintptr, x []int64, rank int) {
			end := min(offset+pairPiece, len(x))
			unfinished = unfinished || end < len(x)
			for lo := offset; lo < end; lo += step {
				message := x[lo:min(lo+step, end)]
				calls = append(calls, func(req *handle) int32 {
					return invoke(fn, uintptr(unsafe.Pointer(&message[0])), uintptr(len(message)), r.lib.int64,
						uintptr(rank), tag, r.lib.world, uintptr(unsafe.Pointer(req)))
				})
			}
		}
		for i := 1; i < r.size; i++ { // each rank starts with another peer
			peer := (r.rank + i) % r.size
			addCalls(r.lib.irecv, incoming[peer], peer)
			addCalls(r.lib.isend, outgoing(peer), peer)
		}
		if code := r.finish(calls...); code != 0 {
			return code
		}
	}
	return 0
}
