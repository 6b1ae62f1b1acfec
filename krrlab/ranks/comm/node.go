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

// Node describes the share of its machine that a rank may use.
type Node struct {
	Ranks     int // number of ranks of the group on this machine
	CPUs      int // number of processors for this rank, at least 1
	BoundCPUs int // number of processors in the union of the affinity masks of these ranks
	// LauncherCPUs is the number of processors in the affinity mask of the launcher. A batch system or taskset may
	// restrict this mask; the launcher may then bind ranks to fewer processors.
	LauncherCPUs int
}

// cpuWords is the number of 64-bit words of an affinity mask. Processors from number 1,024 on are ignored.
const cpuWords = 16

// LocateNode is a collective that determines how the ranks share their machines. A processor that k ranks may run on
// counts 1/k for each of them. Two ranks are on the same machine if they run on the same booted system and are not in
// containers with separate limits; a container with separate limits counts as a machine.
//
// If this rank has a processor to itself, its later MPI collectives poll longer before they start to sleep.
func LocateNode(ctx context.Context, c Comm) (Node, error) {
	const width = 1 + cpuWords // of the row of a rank: a hash of the name of its machine, and its affinity mask
	rows := make([]int64, width*c.Size())
	ownRow := rows[width*c.Rank():][:width]
	mask := affinity(0)
	name := fnv.New64a()
	_, _ = name.Write([]byte(machine(mask)))
	ownRow[0] = int64(name.Sum64())
	for w, m := range mask {
		ownRow[1+w] = int64(m)
	}
	if err := c.AllReduceInt64(ctx, rows); err != nil {
		return Node{}, err
	}
	ownRow = rows[width*c.Rank():][:width]
	var n Node
	var peers [][]int64
	for r := range c.Size() {
		if p := rows[width*r:][:width]; p[0] == ownRow[0] {
			peers = append(peers, p)
			for w := range mask {
				mask[w] |= uint64(p[1+w])
			}
		}
	}
	n.Ranks, n.BoundCPUs, n.LauncherCPUs = len(peers), count(mask), count(affinity(os.Getppid()))
	cpus := shareOfCPUs(ownRow, peers)
	n.CPUs = max(1, cpus)
	if w, ok := c.(*World); ok && cpus > 0 {
		w.spin = longSpin
	}
	return n, nil
}

// shareOfCPUs returns the number of processors for the rank with the given row (LocateNode), rounded down: Σ 1/users
// over the processors in its affinity mask, limited by a quota of processor time. peers are the rows of all ranks on
// the machine, including this one. It returns 0 if several ranks share one processor.
func shareOfCPUs(ownRow []int64, peers [][]int64) int {
	usable, sum := 0, 0.0
	for w := 1; w < len(ownRow); w++ {
		for m := uint64(ownRow[w]); m != 0; m &= m - 1 { // clears the lowest bit
			bit := uint64(1) << bits.TrailingZeros64(m)
			users := 0
			for _, p := range peers {
				if uint64(p[w])&bit != 0 {
					users++
				}
			}
			usable++
			sum += 1 / float64(users)
		}
	}
	// The Go runtime lowers GOMAXPROCS to the quota of the control group, which all ranks on the machine share.
	if limit := runtime.GOMAXPROCS(0); limit < usable {
		sum = min(sum, float64(limit)/float64(len(peers)))
	}
	return int(sum + 1e-9) // 1e-9 offsets the rounding of Σ 1/users
}

// machine returns a name that is equal for ranks on the same machine: the boot identifier of the system, extended by
// the control group if a container has separate limits on memory or processor time.
func machine(mask [cpuWords]uint64) string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		name, _ := os.Hostname()
		return name
	}
	if _, limit := accel.MemoryLimit(); strings.HasPrefix(limit, "cgroup") || runtime.GOMAXPROCS(0) < count(mask) {
		group, _ := os.Readlink("/proc/self/ns/cgroup")
		return string(id) + group
	}
	return string(id)
}

// count returns the number of processors in a mask.
func count(mask [cpuWords]uint64) (n int) {
	for _, m := range mask {
		n += bits.OnesCount64(m)
	}
	return n
}

// everyCPU returns the mask of all processors that the Go runtime reports.
func everyCPU() (mask [cpuWords]uint64) {
	for i := range min(runtime.NumCPU(), 64*cpuWords) {
		mask[i/64] |= 1 << (i % 64)
	}
	return mask
}
