package comm

import (
	"cmp"
	"math/bits"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// UseLibraryReductions makes groups of any size use the reductions of the MPI library, which small ones do not, until
// the process ends.
func UseLibraryReductions() { maxPairRanks = 0 }

// UseSmallChunks limits an MPI call to 999 elements until the process ends.
func UseSmallChunks() { maxCount = 999 }

// TestShareOfCPUs checks the number of processors of a rank from the processors that it and its peers may use.
func TestShareOfCPUs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64))
	mask := func(cpus int64) []int64 { return []int64{1, cpus, 0} }
	for _, test := range []struct {
		own   int64   // affinity mask of the rank
		peers []int64 // affinity masks of all ranks on the node, including the rank
		want  int
	}{
		{0b1111, []int64{0b1111}, 4},
		{0b1111, []int64{0b1111, 0b1111}, 2},       // not bound to processors
		{0b0011, []int64{0b0011, 0b1100}, 2},       // bound
		{0b0001, []int64{0b0001, 0b0001, 0b10}, 0}, // more ranks than processors: none for each
		{0b0111, []int64{0b0111, 0b0001, 0b10}, 2}, // 1/2 + 1/2 + 1
		{0b1111, []int64{0b1111, 0b1111, 0b1111}, 1},
	} {
		var peers [][]int64
		for _, peerMask := range test.peers {
			peers = append(peers, mask(peerMask))
		}
		testkit.Equal(t, shareOfCPUs(mask(test.own), peers), test.want, test.own, test.peers)
	}
}

// TestQuotaOfCPUs checks that the ranks divide a quota of processor time, which Go knows, even if they may use more
// processors.
func TestQuotaOfCPUs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	ownRow := []int64{1, 0b111111} // six processors
	if got := shareOfCPUs(ownRow, [][]int64{ownRow, ownRow}); got != 1 {
		t.Errorf("each of 2 ranks gets %d processors of a quota of 2, want 1", got)
	}
	cpus := 0
	for _, word := range allCPUs() {
		cpus += bits.OnesCount64(word)
	}
	testkit.Equal(t, cpus, min(runtime.NumCPU(), 64*cpuWords), runtime.NumCPU())
}

// TestMisusePanics checks that invalid arguments of collectives panic before anything is sent.
func TestMisusePanics(t *testing.T) {
	c, v := Alone(), make([]float64, 3)
	testkit.Panics(t, map[string]func(){
		"limit":         func() { Local(2, -1) },
		"negative part": func() { _ = Local(2, 0)[0].AllGather(t.Context(), v, []int{4, -1}) },
		"parts in all":  func() { _ = c.AllGather(t.Context(), v, []int{2}) },
		"root":          func() { _ = Local(2, 0)[0].Broadcast(t.Context(), make([]byte, 1), 2) },
	})
}

// TestLocateNode checks the numbers of ranks and processors on this machine.
func TestLocateNode(t *testing.T) {
	RunLocal(3, func(c Comm) {
		n, err := LocateNode(t.Context(), c)
		if want := max(1, min(runtime.NumCPU(), runtime.GOMAXPROCS(0))/3); err != nil || n.Ranks != 3 ||
			n.CPUs != want || n.BoundCPUs != countCPUs(affinityMask(0)) || n.LauncherCPUs < 1 {
			t.Errorf("%+v, %v, want %d processors", n, err, want)
		}
	})
}

// TestNodeName checks that a node is identified by the boot identifier, and a container with a limit additionally by
// its cgroup.
func TestNodeName(t *testing.T) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	group, errGroup := os.Readlink("/proc/self/ns/cgroup")
	if err = cmp.Or(err, errGroup); err != nil {
		t.Skip(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	mask := [cpuWords]uint64{0b11}
	_, limit := accel.MemoryLimit()
	if got := nodeName(mask); got != string(boot) && !strings.HasPrefix(limit, "cgroup") {
		t.Errorf("%q, want %q", got, boot)
	}
	runtime.GOMAXPROCS(1)
	testkit.Equal(t, nodeName(mask), string(boot)+group)
}
