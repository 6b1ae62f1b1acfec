package comm

import (
	"context"
	"hash/fnv"
	"math/bits"
	"os"
	"runtime"
)

// Node is a rank's share of the machine it runs on.
type Node struct {
	Ranks int // of the group on this machine
	CPUs  int // of this rank, at least 1
}

// cpuWords is how many words of 64 processors an affinity mask has.
const cpuWords = 16

// Locate is a collective that says how the ranks share their machines: a processor that k
// ranks may run on counts 1/k for each of them. Machines are told apart by their names.
func Locate(ctx context.Context, c Comm) (Node, error) {
	const width = 1 + cpuWords
	all := make([]int64, width*c.Size())
	own := all[width*c.Rank():][:width]
	own[0] = int64(hostHash())
	for w, m := range affinity() {
		own[1+w] = int64(m)
	}
	if err := c.AllReduceInt64(ctx, all); err != nil {
		return Node{}, err
	}
	own = all[width*c.Rank():][:width]
	var n Node
	var peers [][]int64
	for r := range c.Size() {
		if p := all[width*r:][:width]; p[0] == own[0] {
			peers = append(peers, p)
		}
	}
	n.Ranks = len(peers)
	n.CPUs = share(own, peers)
	return n, nil
}

// share returns how many processors fall to a rank.
func share(own []int64, peers [][]int64) int {
	count, sum := 0, 0.0
	for w := 1; w < len(own); w++ {
		for m := uint64(own[w]); m != 0; m &= m - 1 {
			bit := uint64(1) << bits.TrailingZeros64(m)
			users := 0
			for _, p := range peers {
				if uint64(p[w])&bit != 0 {
					users++
				}
			}
			count++
			sum += 1 / float64(users)
		}
	}
	if limit := runtime.GOMAXPROCS(0); limit < count { // a quota of processor time, which all share
		sum = min(sum, float64(limit)/float64(len(peers)))
	}
	return max(1, int(sum+1e-9))
}

func hostHash() uint64 {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// everyCPU is the mask of all processors that Go knows of.
func everyCPU() (mask [cpuWords]uint64) {
	for i := range min(runtime.NumCPU(), 64*cpuWords) {
		mask[i/64] |= 1 << (i % 64)
	}
	return mask
}
