package comm

import (
	"context"
	"hash/fnv"
	"math/bits"
	"os"
	"runtime"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
)

// Node describes the share of its node that a rank may use. A node is a machine, or a container with separate limits on
// memory or processor time.
type Node struct {
	Ranks     int // number of ranks of the group on this node
	CPUs      int // number of processors for this rank, at least 1
	BoundCPUs int // number of processors in the union of the affinity masks of these ranks
	// LauncherCPUs is the number of processors in the affinity mask of the launcher. A batch system or taskset may
	// restrict this mask; the launcher may then bind ranks to fewer processors.
	LauncherCPUs int
}

// cpuWords is the number of 64-bit words of an affinity mask. Processors from number 1,024 on are ignored.
const cpuWords = 16

// LocateNode is a collective that determines how the ranks share their nodes. A processor that k ranks may run on
// counts 1/k for each of them. Two ranks are on the same node if they run on the same booted system and are not in
// containers with separate limits.
//
// If no other rank uses a processor of this rank, the later MPI collectives of this rank poll longer before they start
// to sleep.
func LocateNode(ctx context.Context, c Comm) (Node, error) {
	const width = 1 + cpuWords // length of the row of a rank: a hash of the name of its node, and its affinity mask
	rows := make([]int64, width*c.Size())
	ownRow := rows[width*c.Rank():][:width]
	mask := affinityMask(0)
	name := fnv.New64a()
	_, _ = name.Write([]byte(nodeName(mask)))
	ownRow[0] = int64(name.Sum64())
	for i, word := range mask {
		ownRow[1+i] = int64(word)
	}
	if err := c.AllReduceInt64(ctx, rows); err != nil {
		return Node{}, err
	}
	ownRow = rows[width*c.Rank():][:width]
	var node Node
	var peers [][]int64
	for rank := range c.Size() {
		if row := rows[width*rank:][:width]; row[0] == ownRow[0] {
			peers = append(peers, row)
			for i := range mask {
				mask[i] |= uint64(row[1+i])
			}
		}
	}
	node.Ranks, node.BoundCPUs, node.LauncherCPUs = len(peers), countCPUs(mask), countCPUs(affinityMask(os.Getppid()))
	share := shareOfCPUs(ownRow, peers)
	node.CPUs = max(1, share)
	if world, ok := c.(*World); ok && share > 0 {
		world.spin = longSpin
	}
	return node, nil
}

// shareOfCPUs returns the number of processors for a rank, rounded down: Σ 1/users over the processors in its affinity
// mask, where users is the number of ranks that may run on the processor, limited by a quota of processor time. ownRow
// is the row of the rank (LocateNode), and peers are the rows of all ranks on the node, including this one. It returns
// 0 if several ranks share one processor.
func shareOfCPUs(ownRow []int64, peers [][]int64) int {
	usable, sum := 0, 0.0
	for i := 1; i < len(ownRow); i++ {
		for mask := uint64(ownRow[i]); mask != 0; mask &= mask - 1 { // clears the lowest bit
			bit := uint64(1) << bits.TrailingZeros64(mask)
			users := 0
			for _, peer := range peers {
				if uint64(peer[i])&bit != 0 {
					users++
				}
			}
			usable++
			sum += 1 / float64(users)
		}
	}
	// The Go runtime lowers GOMAXPROCS to the quota of the control group, which all ranks on the node share.
	if limit := runtime.GOMAXPROCS(0); limit < usable {
		sum = min(sum, float64(limit)/float64(len(peers)))
	}
	return int(sum + 1e-9) // 1e-9 offsets the rounding of Σ 1/users
}

// nodeName returns a name that is equal for ranks on the same node: the boot identifier of the system, followed by the
// control group if a container has separate limits on memory or processor time.
func nodeName(mask [cpuWords]uint64) string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		name, _ := os.Hostname()
		return name
	}
	if _, limit := accel.MemoryLimit(); strings.HasPrefix(limit, "cgroup") || runtime.GOMAXPROCS(0) < countCPUs(mask) {
		group, _ := os.Readlink("/proc/self/ns/cgroup")
		return string(id) + group
	}
	return string(id)
}

// countCPUs returns the number of processors in a mask.
func countCPUs(mask [cpuWords]uint64) (n int) {
	for _, word := range mask {
		n += bits.OnesCount64(word)
	}
	return n
}

// allCPUs returns the mask of all processors that the Go runtime reports.
func allCPUs() (mask [cpuWords]uint64) {
	for i := range min(runtime.NumCPU(), 64*cpuWords) {
		mask[i/64] |= 1 << (i % 64)
	}
	return mask
}
