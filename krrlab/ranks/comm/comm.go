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

// Comm is a group of ranks. Its methods but Rank, Size and Traffic are
// collectives: every rank of the group calls them, in one order. A Comm is used by one
// goroutine at a time.
type Comm interface {
	// Rank returns this rank, in [0, Size()).
	Rank() int
	// Size returns the number P of ranks.
	Size() int
	// AllReduceInt64 sets x = Σ_r x_r on all ranks, exactly, modulo 2⁶⁴.
	AllReduceInt64(ctx context.Context, x []int64) error
	// AllGather fills x on all ranks. It consists of P parts of counts[r] numbers, part r
	// being what rank r has in that place; counts is the same everywhere and adds up to
	// len(x).
	AllGather(ctx context.Context, x []float64, counts []int) error
	// Broadcast sets x to rank root's on all ranks.
	Broadcast(ctx context.Context, x []byte, root int) error
	// Traffic returns what this rank has handed to collectives of this Comm.
	Traffic() Traffic
}

// Traffic counts the collectives of one rank.
type Traffic struct {
	Calls int64
	// Bytes handed over: 8m for m numbers in AllReduceInt64, of AllGather the rank's own part,
	// of Broadcast all at the root. What goes over the wire depends on MPI's algorithm:
	// 2·Bytes·(P−1)/P sent by each rank for a sum by reduce-scatter and all-gather, as of up to three ranks.
	Bytes   int64
	Seconds float64 // waiting for peers included
}

// add counts one collective that began at start.
func (t *Traffic) add(bytes int, start time.Time) {
	t.Calls++
	t.Bytes += int64(bytes)
	t.Seconds += time.Since(start).Seconds()
}

// Sub returns t − u, the traffic between two moments.
func (t Traffic) Sub(u Traffic) Traffic {
	return Traffic{t.Calls - u.Calls, t.Bytes - u.Bytes, t.Seconds - u.Seconds}
}

// Options of Local and Open. The zero value asks for the defaults.
type Options struct {
	// Limit is how long a collective may take. Default DefaultLimit.
	Limit time.Duration
}

// DefaultLimit is the default of Options.Limit: longer than ranks that share work
// evenly wait for each other while K is formed.
const DefaultLimit = 10 * time.Minute

// limit returns the Limit, or its default.
func (o Options) limit() time.Duration {
	if o.Limit < 0 {
		panic(fmt.Sprintf("comm: a limit of %v: want a positive one", o.Limit))
	}
	return cmp.Or(o.Limit, DefaultLimit)
}

// Error is a failure of communication. Its rank alone knows of it; peers find out by
// their own errors.
type Error struct {
	Rank, Size int
	Op         string // "all-gather", "broadcast", …
	Err        error
}

func (e *Error) Error() string {
	return fmt.Sprintf("comm: rank %d of %d: %s: %v", e.Rank, e.Size, e.Op, e.Err)
}

// Unwrap returns what happened, a context's error for one.
func (e *Error) Unwrap() error { return e.Err }

// checkParts panics unless counts are the lengths of the parts of n numbers.
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

func checkRoot(root, size int) {
	if root < 0 || root >= size {
		panic(fmt.Sprintf("comm: root %d of %d ranks", root, size))
	}
}

// Launch says how the process was started as a rank.
type Launch struct {
	Launcher string // "Open MPI", "MPICH", "PMIx" or "Slurm"
	Rank     int
	Size     int // 0 if the launcher does not tell
	// NoPMI says that srun has started the ranks without a process manager interface, by which those of MPI
	// find each other.
	NoPMI bool
	// Asked says that Slurm was asked for a number of processors for each rank.
	Asked bool
	// Lost is how long the launcher takes to notice that a host cannot be reached any
	// more, and to end the run; 0 where that is not known.
	Lost time.Duration
}

// launchers lists the variables that a launcher sets for each rank it starts. Intel MPI
// and MVAPICH use those of MPICH's Hydra. Slurm's are of a job step, which srun starts;
// a batch script, which sees the job's size as well, is none. PMIx, by which srun starts ranks
// of Open MPI, does not tell the size.
var launchers = []struct{ name, rank, size string }{
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"MPICH", "PMI_RANK", "PMI_SIZE"},
	{"PMIx", "PMIX_RANK", ""},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
}

// Detect returns how the process was started as a rank, judged by its environment, and
// false if it was not. It loads nothing.
func Detect(getenv func(string) string) (Launch, bool) {
	asked := getenv("SLURM_CPUS_PER_TASK") != ""
	for _, l := range launchers {
		rank, err := strconv.Atoi(getenv(l.rank))
		if err != nil || rank < 0 {
			continue
		}
		if l.size == "" {
			return Launch{Launcher: l.name, Rank: rank, Size: stepSize(getenv, rank), Asked: asked}, true
		}
		size, err := strconv.Atoi(getenv(l.size))
		if err != nil || size < 1 || l.name == "Slurm" && size == 1 {
			continue
		}
		found := Launch{Launcher: l.name, Rank: rank, Size: size, Asked: asked}
		switch l.name {
		case "Open MPI":
			found.Lost = openMPILost(getenv)
		case "Slurm": // an interface of another name may serve
			found.NoPMI = slices.Contains([]string{"", "none", "pmix", "pmi2"}, getenv("SLURM_MPI_TYPE"))
		}
		return found, true
	}
	return Launch{}, false
}

// stepSize returns the number of ranks of the job step of srun in which this is that rank, 0 if
// it is not in one of several.
func stepSize(getenv func(string) string, rank int) int {
	id, err := strconv.Atoi(getenv("SLURM_PROCID"))
	size, e := strconv.Atoi(getenv("SLURM_STEP_NUM_TASKS"))
	if err != nil || e != nil || id != rank || size < 2 {
		return 0
	}
	return size
}

// openMPILost returns when Open MPI 4's mpirun and its daemons give a silent connection up:
// TCP's keep-alive, after the seconds of silence and the probes that getenv sets, or else its
// defaults.
func openMPILost(getenv func(string) string) time.Duration {
	seconds := func(name string, def int) int {
		if v, err := strconv.Atoi(getenv("OMPI_MCA_oob_tcp_keepalive_" + name)); err == nil && v > 0 {
			return v
		}
		return def
	}
	return time.Duration(seconds("time", 300)+seconds("intvl", 20)*seconds("probes", 9)) * time.Second
}

// Node is a rank's share of the machine it runs on.
type Node struct {
	Ranks int // of the group on this machine
	CPUs  int // of this rank, at least 1
	Bound int // processors that these ranks may run on
	// Given counts the processors that the launcher may run on, which has what a batch system or taskset leaves it, and
	// may bind ranks to fewer.
	Given int
}

// cpuWords is how many words of 64 processors an affinity mask has.
const cpuWords = 16

// Locate is a collective that says how the ranks share their machines: a processor that k ranks may run on counts 1/k
// for each of them. A machine is a system that was booted, whatever its containers call it, or a container with limits
// of its own. Where a rank has a processor of its own, its collectives of MPI then wait for peers without a pause for
// longer.
func Locate(ctx context.Context, c Comm) (Node, error) {
	const width = 1 + cpuWords
	all := make([]int64, width*c.Size())
	own := all[width*c.Rank():][:width]
	mask := affinity(0)
	name := fnv.New64a()
	_, _ = name.Write([]byte(machine(mask)))
	own[0] = int64(name.Sum64())
	for w, m := range mask {
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
			for w := range mask {
				mask[w] |= uint64(p[1+w])
			}
		}
	}
	n.Ranks, n.Bound, n.Given = len(peers), count(mask), count(affinity(os.Getppid()))
	cpus := share(own, peers)
	n.CPUs = max(1, cpus)
	if w, ok := c.(*World); ok && cpus > 0 {
		w.spin = longSpin
	}
	return n, nil
}

// share returns how many processors fall to a rank, 0 where ranks share one.
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
	return int(sum + 1e-9)
}

// machine names what this rank shares with others of its name: a system that was booted, or a container whose limits
// on memory or on processor time are its own.
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

// count returns the number of processors of a mask.
func count(mask [cpuWords]uint64) (n int) {
	for _, m := range mask {
		n += bits.OnesCount64(m)
	}
	return n
}

// everyCPU is the mask of all processors that Go knows of.
func everyCPU() (mask [cpuWords]uint64) {
	for i := range min(runtime.NumCPU(), 64*cpuWords) {
		mask[i/64] |= 1 << (i % 64)
	}
	return mask
}
