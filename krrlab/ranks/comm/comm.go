package comm

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
)

// Comm is a group of ranks. All methods except Rank, Size and Traffic are collectives: every rank of the group calls
// them, in the same order. Only one goroutine at a time may use a Comm.
type Comm interface {
	// Rank returns this rank, in [0, Size()).
	Rank() int
	// Size returns the number P of ranks.
	Size() int
	// AllReduceInt64 sets x = Σ_r x_r on all ranks, exactly, modulo 2⁶⁴.
	AllReduceInt64(ctx context.Context, x []int64) error
	// AllGather fills x on all ranks. x consists of P consecutive parts; part r has counts[r] numbers and is copied
	// from rank r to all others. counts is the same on all ranks and adds up to len(x).
	AllGather(ctx context.Context, x []float64, counts []int) error
	// Broadcast copies x from rank root to all ranks.
	Broadcast(ctx context.Context, x []byte, root int) error
	// Traffic returns the number of calls, bytes and seconds of the collectives of this rank.
	Traffic() Traffic
}

// Traffic measures the collectives of one rank.
type Traffic struct {
	Calls int64 // number of collectives
	// Bytes is the amount of data that this rank contributed: 8m for m numbers in AllReduceInt64, 8·counts[rank] in
	// AllGather, and the length of x in Broadcast at the root. The bytes sent over the network depend on the
	// algorithm of MPI; a sum by reduce-scatter and all-gather, which is used for up to three ranks, sends
	// 2·Bytes·(P−1)/P from each rank.
	Bytes   int64
	Seconds float64 // elapsed time, including the wait for peers
}

// add records one collective that started at start and ends now.
func (t *Traffic) add(bytes int, start time.Time) {
	t.Calls++
	t.Bytes += int64(bytes)
	t.Seconds += time.Since(start).Seconds()
}

// Sub returns t − u, the traffic between two moments.
func (t Traffic) Sub(u Traffic) Traffic {
	return Traffic{t.Calls - u.Calls, t.Bytes - u.Bytes, t.Seconds - u.Seconds}
}

// Options configures Local and Open. The zero value selects the defaults.
type Options struct {
	// Limit is the longest time that a collective may take. Default DefaultLimit.
	Limit time.Duration
}

// DefaultLimit is the default of Options.Limit. It is longer than the time that ranks with evenly distributed work
// wait for each other while the kernel matrix is formed.
const DefaultLimit = 10 * time.Minute

// limit returns o.Limit or its default. It panics if the limit is negative.
func (o Options) limit() time.Duration {
	if o.Limit < 0 {
		panic(fmt.Sprintf("comm: a limit of %v: want a positive one, or 0 for the default", o.Limit))
	}
	return cmp.Or(o.Limit, DefaultLimit)
}

// Error is a failure of communication as one rank saw it. Other ranks may return a different one.
type Error struct {
	Rank, Size int    // this rank, and the number of ranks
	Op         string // "all-gather", "broadcast", …
	Err        error
}

func (e *Error) Error() string {
	return fmt.Sprintf("comm: rank %d of %d: %s: %v", e.Rank, e.Size, e.Op, e.Err)
}

// Unwrap returns the cause, for example the error of a context.
func (e *Error) Unwrap() error { return e.Err }

// checkParts panics unless counts has one non-negative length for each of size ranks and the lengths add up to n.
func checkParts(n, size int, counts []int) {
	sum := 0
	for _, c := range counts {
		if c < 0 {
			panic(fmt.Sprintf("comm: a part of %d numbers", c))
		}
		sum += c
	}
	if len(counts) != size || sum != n {
		panic(fmt.Sprintf("comm: %d parts of %d numbers in all for %d ranks and %d numbers", len(counts), sum, size, n))
	}
}

// checkRoot panics unless root is a rank of a group of the given size.
func checkRoot(root, size int) {
	if root < 0 || root >= size {
		panic(fmt.Sprintf("comm: root %d of %d ranks", root, size))
	}
}

// Launch describes how a launcher started this process as a rank.
type Launch struct {
	Launcher string // "Open MPI", "MPICH", "PMIx" or "Slurm"
	Rank     int
	Size     int // 0 if the launcher does not announce it
	// NoPMI reports that srun started the ranks without the process manager interface that MPI ranks need to find
	// each other.
	NoPMI bool
	// RequestedCPUs reports that the user requested a number of processors per rank from Slurm.
	RequestedCPUs bool
	// LostHostTimeout is the time after which the launcher notices that a host is unreachable and ends the run; 0 if
	// unknown.
	LostHostTimeout time.Duration
}

// launchers lists the environment variables that a launcher sets for each rank. Intel MPI and MVAPICH use those of
// Hydra, the launcher of MPICH. The variables of Slurm are those of a job step, which srun starts; a batch script
// also sees the size of the job but is not a rank. PMIx, which srun uses to start ranks of Open MPI, does not
// announce the number of ranks.
var launchers = []struct{ name, rank, size string }{
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"MPICH", "PMI_RANK", "PMI_SIZE"},
	{"PMIx", "PMIX_RANK", ""},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
}

// DetectLaunch determines from the environment how the process was started as a rank. It returns false if the process
// is not a rank. It loads no library.
func DetectLaunch(getenv func(string) string) (Launch, bool) {
	requestedCPUs := getenv("SLURM_CPUS_PER_TASK") != ""
	for _, l := range launchers {
		rank, err := strconv.Atoi(getenv(l.rank))
		if err != nil || rank < 0 {
			continue
		}
		if l.size == "" {
			launch := Launch{Launcher: l.name, Rank: rank, Size: stepSize(getenv, rank), RequestedCPUs: requestedCPUs}
			return launch, true
		}
		size, err := strconv.Atoi(getenv(l.size))
		if err != nil || size < 1 || l.name == "Slurm" && size == 1 { // a step of one task is an ordinary process
			continue
		}
		launch := Launch{Launcher: l.name, Rank: rank, Size: size, RequestedCPUs: requestedCPUs}
		switch l.name {
		case "Open MPI":
			launch.LostHostTimeout = openMPILostHostTimeout(getenv)
		case "Slurm": // srun offers no PMI under these names of SLURM_MPI_TYPE; a plugin with another name may
			launch.NoPMI = slices.Contains([]string{"", "none", "pmix", "pmi2"}, getenv("SLURM_MPI_TYPE"))
		}
		return launch, true
	}
	return Launch{}, false
}

// stepSize returns the number of ranks of the srun job step if its environment agrees that this process is the given
// rank of a step with several ranks, and 0 otherwise.
func stepSize(getenv func(string) string, rank int) int {
	id, err := strconv.Atoi(getenv("SLURM_PROCID"))
	size, e := strconv.Atoi(getenv("SLURM_STEP_NUM_TASKS"))
	if err != nil || e != nil || id != rank || size < 2 {
		return 0
	}
	return size
}

// openMPILostHostTimeout returns the time after which mpirun of Open MPI 4 and its daemons give up a silent
// connection. TCP keep-alive starts after some seconds of silence and sends a number of probes; getenv returns these
// settings, and the defaults of Open MPI apply to those that are not set.
func openMPILostHostTimeout(getenv func(string) string) time.Duration {
	seconds := func(name string, def int) int {
		if v, err := strconv.Atoi(getenv("OMPI_MCA_oob_tcp_keepalive_" + name)); err == nil && v > 0 {
			return v
		}
		return def
	}
	return time.Duration(seconds("time", 300)+seconds("intvl", 20)*seconds("probes", 9)) * time.Second
}

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
