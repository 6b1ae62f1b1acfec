package accel

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// fakeMachine returns a machine with the given files and limits of the process.
func fakeMachine(files map[string]string, processLimits ...limit) machine {
	fileSystem := fstest.MapFS{}
	for name, text := range files {
		fileSystem[strings.TrimPrefix(name, "/")] = &fstest.MapFile{Data: []byte(text)}
	}
	return machine{
		fs:        fileSystem,
		physical:  func() uint64 { return 0 },
		model:     func() string { return "fallback" },
		ownLimits: func() []limit { return processLimits },
		maxRSS:    func() (int64, bool) { return 77, true },
	}
}

const (
	meminfo  = "MemTotal:       16777216 kB\nMemFree:         1000 kB\nMemAvailable:    8388608 kB\n"
	unified  = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	version1 = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 " +
		"- cgroup cgroup rw,memory\n"
	container = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
)

// TestMemoryLimit checks the memory limit, its source and the available memory for the files of different systems and
// control groups.
func TestMemoryLimit(t *testing.T) {
	for _, test := range []struct {
		name          string
		files         map[string]string
		processLimits []limit
		bytes         int64
		source        string
		available     int64
	}{
		{"nothing known", nil, nil, 0, "unknown", 0},
		{"no control group", map[string]string{"/proc/meminfo": meminfo}, nil, 16 << 30, "physical memory", 8 << 30},
		{"v2, own limit", map[string]string{
			"/proc/meminfo":        meminfo,
			"/proc/self/mountinfo": unified,
			"/proc/self/cgroup":    "0::/user.slice/job.scope\n",
			"/sys/fs/cgroup/user.slice/job.scope/memory.max":     "4294967296\n",
			"/sys/fs/cgroup/user.slice/job.scope/memory.current": "2147483648\n",
			"/sys/fs/cgroup/user.slice/job.scope/memory.stat":    "anon 5\ninactive_file 1073741824\n",
			"/sys/fs/cgroup/user.slice/memory.max":               "max\n",
		}, nil, 4 << 30, "/sys/fs/cgroup/user.slice/job.scope/memory.max", 3 << 30},
		{"v2, limit of an ancestor", map[string]string{
			"/proc/meminfo":                   meminfo,
			"/proc/self/mountinfo":            unified,
			"/proc/self/cgroup":               "0::/a/b/c\n",
			"/sys/fs/cgroup/a/b/c/memory.max": "max\n",
			"/sys/fs/cgroup/a/memory.max":     "3221225472\n",
			"/sys/fs/cgroup/a/memory.current": "1073741824\n",
		}, nil, 3 << 30, "/sys/fs/cgroup/a/memory.max", 2 << 30},
		{"v2, limit at the root of a container", map[string]string{
			"/proc/meminfo":             meminfo,
			"/proc/self/mountinfo":      unified,
			"/proc/self/cgroup":         "0::/\n",
			"/sys/fs/cgroup/memory.max": "1073741824\n",
		}, nil, 1 << 30, "/sys/fs/cgroup/memory.max", 1 << 30},
		{"v2, group outside the name space", map[string]string{
			"/proc/meminfo":             meminfo,
			"/proc/self/mountinfo":      unified,
			"/proc/self/cgroup":         "0::/../other\n",
			"/sys/fs/cgroup/memory.max": "1073741824\n",
		}, nil, 1 << 30, "/sys/fs/cgroup/memory.max", 1 << 30},
		{"v1", map[string]string{
			"/proc/meminfo":        meminfo,
			"/proc/self/mountinfo": version1,
			"/proc/self/cgroup":    "9:cpu,cpuacct:/x\n4:memory:/batch/job_7\n0::/\n",
			"/sys/fs/cgroup/memory/batch/job_7/memory.limit_in_bytes": "2147483648\n",
			"/sys/fs/cgroup/memory/batch/job_7/memory.usage_in_bytes": "1073741824\n",
			"/sys/fs/cgroup/memory/batch/job_7/memory.stat": "inactive_file 1\ntotal_inactive_file " +
				"536870912\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, nil, 2 << 30, "job_7/memory.limit_in_bytes", 3 << 29},
		{"v1, container", map[string]string{
			"/proc/meminfo":                               meminfo,
			"/proc/self/mountinfo":                        container,
			"/proc/self/cgroup":                           "4:memory:/docker/abc\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
		}, nil, 2 << 30, "/sys/fs/cgroup/memory/memory.limit_in_bytes", 2 << 30},
		{"v1, a group whose name begins with that of the container", map[string]string{
			"/proc/meminfo":                                   meminfo,
			"/proc/self/mountinfo":                            container,
			"/proc/self/cgroup":                               "4:memory:/docker/abcdef\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes":     "2147483648\n",
			"/sys/fs/cgroup/memory/def/memory.limit_in_bytes": "1\n",
		}, nil, 2 << 30, "/sys/fs/cgroup/memory/memory.limit_in_bytes", 2 << 30},
		{"mount point with a space", map[string]string{
			"/proc/meminfo":         meminfo,
			"/proc/self/mountinfo":  strings.Replace(unified, "/sys/fs/cgroup", `/my\040groups`, 1),
			"/proc/self/cgroup":     "0::/\n",
			"/my groups/memory.max": "1073741824\n",
		}, nil, 1 << 30, "/my groups/memory.max", 1 << 30},
		{"limits of the process", map[string]string{
			"/proc/meminfo":     meminfo,
			"/proc/self/status": "VmHWM:\t 2048 kB\nVmRSS:\t 1048576 kB\n",
		}, []limit{{bytes: 5 << 30, source: "GOMEMLIMIT"}, {bytes: 6 << 30, used: 2 << 30, source: "RLIMIT_AS"}},
			5 << 30,
			"GOMEMLIMIT", 4 << 30},
		{"used beyond the limit", map[string]string{
			"/proc/meminfo": meminfo,
		}, []limit{{bytes: 1 << 30, used: 2 << 30, source: "RLIMIT_AS"}}, 1 << 30, "RLIMIT_AS", 1},
		{"one of two limits used up", map[string]string{
			"/proc/meminfo": meminfo,
		}, []limit{{bytes: 1 << 30, used: 2 << 30, source: "a"}, {bytes: 6 << 30, source: "b"}}, 1 << 30, "a", 1},
		{"used up, the machine's memory unknown", nil, []limit{{bytes: 1 << 30, used: 2 << 30, source: "a"},
			{bytes: 6 << 30, source: "b"}}, 1 << 30, "a", 1},
		{"no memory of the machine available", map[string]string{
			"/proc/meminfo": "MemTotal: 16777216 kB\nMemAvailable: 0 kB\n",
		}, []limit{{bytes: 6 << 30, source: "b"}}, 6 << 30, "b", 1},
		{"damaged files", map[string]string{
			"/proc/meminfo":             "MemTotal:\nMemTotal: x kB\n",
			"/proc/self/mountinfo":      "\n - \n1 2 3 - cgroup2\n" + unified,
			"/proc/self/cgroup":         "nonsense\n0:\n0::/\n",
			"/sys/fs/cgroup/memory.max": "many\n",
		}, nil, 0, "unknown", 0},
	} {
		m := fakeMachine(test.files, test.processLimits...)
		bytes, source := m.memoryShare(1)
		if bytes != test.bytes || !strings.Contains(source, test.source) {
			t.Errorf("%s: limit %d of %q, want %d of %q", test.name, bytes, source, test.bytes, test.source)
		}
		if available := m.memoryAvailable(); available != test.available {
			t.Errorf("%s: available %d, want %d", test.name, available, test.available)
		}
	}
}

// TestAddressLimit checks that addresses that are reserved without memory do not count as available under an address
// limit.
func TestAddressLimit(t *testing.T) {
	m := fakeMachine(map[string]string{"/proc/meminfo": meminfo}, addressLimit(3<<30, 2<<30, 1<<29))
	limit, _ := m.memoryShare(1)
	if available := m.memoryAvailable(); limit != 3<<29 || available != 1<<30 {
		t.Errorf("limit %d, available %d", limit, available)
	}
	if exhausted := addressLimit(1<<30, 2<<30, 1<<20); exhausted.bytes != 1 {
		t.Errorf("the limit of a process that has used it up is %+v, want 1 byte", exhausted)
	}
}

// TestMemoryShare checks that processes share the memory of the machine, but that each has its own address limit.
func TestMemoryShare(t *testing.T) {
	for ranks, want := range map[int]int64{1: 6 << 30, 2: 6 << 30, 4: 4 << 30} {
		m := fakeMachine(map[string]string{"/proc/meminfo": meminfo}, addressLimit(6<<30, 0, 0)) // of 16 GiB
		share, source := m.memoryShare(ranks)
		if share != want || strings.HasPrefix(source, "RLIMIT_AS") != (ranks < 4) {
			t.Errorf("%d ranks: %d of %s, want %d", ranks, share, source, want)
		}
	}
}

// TestMemoryInUse checks that free memory of Go's heap does not count, for numbers that do not depend on this machine,
// and that the heap of this process counts as long as it is in use.
func TestMemoryInUse(t *testing.T) {
	m := fakeMachine(map[string]string{"/proc/self/status": "VmRSS:\t 2048 kB\n"})
	for free, want := range map[int64]int64{0: 2 << 20, 512 << 10: 3 << 19, 3 << 20: 0} {
		if got := m.memoryInUse(free); got != want {
			t.Errorf("%d bytes in use if %d of 2 MiB are free, want %d", got, free, want)
		}
	}
	if got := fakeMachine(nil).memoryInUse(1 << 20); got != 0 {
		t.Errorf("%d bytes in use, although the system does not report them", got)
	}
	if used := MemoryInUse(); used < 0 || used == 0 && runtime.GOOS == "linux" {
		t.Errorf("this process uses %d bytes", used)
	}
}

// TestPeakRSSAndModel reads the peak memory and the model of the processor from files, or from the system if there
// are none.
func TestPeakRSSAndModel(t *testing.T) {
	m := fakeMachine(map[string]string{
		"/proc/self/status": "Name:\tx\nVmHWM:\t    2048 kB\n",
		"/proc/cpuinfo": "processor\t: 0\nmodel\t\t: 1\nmodel name\t: Some CPU @ 2 GHz\n\nprocessor\t: " +
			"1\nmodel name\t: Other\n",
	})
	if got := m.peakRSS(); got != 2<<20 {
		t.Errorf("peak memory %d, want 2 MiB", got)
	}
	if got := m.cpu().Model; got != "Some CPU @ 2 GHz" {
		t.Errorf("model %q", got)
	}
	m = fakeMachine(nil)
	if m.peakRSS() != 77 || m.cpu().Model != "fallback" {
		t.Errorf("fallbacks: %d, %q", m.peakRSS(), m.cpu().Model)
	}
}

// TestThisMachine checks the numbers of this machine for plausibility.
func TestThisMachine(t *testing.T) {
	info := CPU()
	limit, source := MemoryLimit()
	available, peak := MemoryAvailable(), PeakRSS()
	t.Logf("%+v; limit %d (%s), available %d, peak %d", info, limit, source, available, peak)
	if info.Arch == "" || info.Cores < 1 {
		t.Errorf("CPU() = %+v", info)
	}
	if limit < 0 || limit == math.MaxInt64 || source == "" || available < 0 || available > limit || peak < 0 {
		t.Errorf("limit %d of %q, %d available, peak %d: not plausible", limit, source, available, peak)
	}
	// The peak must include memory that was touched.
	buf := make([]byte, 64<<20)
	for i := range buf {
		buf[i] = byte(i)
	}
	if newPeak := PeakRSS(); peak > 0 && newPeak < int64(len(buf)) {
		t.Errorf("peak %d after touching %d bytes", newPeak, len(buf))
	}
	sink.Add(uint64(buf[len(buf)/2]))
}

// TestConfigureGC checks that ConfigureGC sets Go's memory limit, which then does not count as a limit of the
// process, and that it does not change a limit that is set already.
func TestConfigureGC(t *testing.T) {
	oldLimit := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(oldLimit)
	debug.SetMemoryLimit(math.MaxInt64)
	before, source := MemoryLimit()
	if before == 0 {
		t.Skip("the system reports no memory limit")
	}
	_, _, hasAddressLimit := addressSpace() // an address limit changes with every allocation
	ConfigureGC()
	if got := debug.SetMemoryLimit(-1); got != before/10*9 && !hasAddressLimit {
		t.Errorf("Go's limit is %d of %d", got, before)
	}
	if after, newSource := MemoryLimit(); after != before && !hasAddressLimit || newSource != source {
		t.Errorf("the process's limit was %d (%s), is %d (%s)", before, source, after, newSource)
	}
	debug.SetMemoryLimit(1 << 40)
	ConfigureGC()
	if got := debug.SetMemoryLimit(-1); got != 1<<40 {
		t.Errorf("a limit of %d became %d", 1<<40, got)
	}
}

// TestGarbageLimit checks that the collector allows garbage of 10 % of 400 MB of live memory, but of 100 % of little
// live memory. In some of the 20 rounds, the collection that finds the 400 MB runs before the bound of the previous one
// is set.
func TestGarbageLimit(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	ConfigureGC()
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	// waitForLimit calls next until the garbage limit is the given percentage of the live memory.
	waitForLimit := func(want uint64, next func()) {
		timeout := time.After(time.Minute)
		for metrics.Read(percent); percent[0].Value.Uint64() != want; metrics.Read(percent) {
			select {
			case <-timeout:
				t.Fatalf("garbage of %d %%, want %d %%", percent[0].Value.Uint64(), want)
			default:
				next()
			}
		}
	}
	type node struct {
		next *node
		_    [6]int
	}
	var list *node // pointers for the collector to follow
	for range 100_000 {
		list = &node{next: list}
	}
	for range 20 {
		waitForLimit(100, runtime.GC)
		runtime.GC()
		live := make([]byte, 400<<20)
		waitForLimit(10, runtime.Gosched)
		sink.Add(uint64(live[len(live)-1]))
	}
	runtime.KeepAlive(list)
}

// TestFormatBytes checks the units of a number of bytes.
func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 12345678: "12.3 MB", 7.26e9: "7.26 GB",
		5e15: "5e+03 TB"} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}
