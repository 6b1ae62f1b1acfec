package accel

import (
	"fmt"
	"math"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// limit is a bound on memory and who sets it.
type limit struct {
	bytes  int64
	used   int64 // memory in use by everything that the limit counts; 0 if unknown
	source string
	// perProcess is set for a limit that each process has for itself, such as ulimit -v. Other limits are shared by
	// the processes of the machine or of the control group.
	perProcess bool
}

// MemoryLimit returns the bytes of memory that the process may use and which
// bound that is: the least of the machine's memory, the limits of its control
// group and of every group above it (cgroup version 1 and 2: containers, batch
// systems and systemd use them), RLIMIT_AS (less the addresses that hold no memory)
// and Go's own GOMEMLIMIT. Where the system tells nothing it is 0 and "unknown".
func MemoryLimit() (bytes int64, source string) { return here.memoryShare(1) }

// MemoryShare returns the share of one of several equal processes on this machine, and the bound that it comes from: the
// memory of the machine and the limits of control groups are divided by the number of processes, RLIMIT_AS and
// GOMEMLIMIT, which hold for each process, are not.
func MemoryShare(processes int) (bytes int64, source string) { return here.memoryShare(processes) }

// addressLimit is the limit on a process's addresses as one on its memory: addresses that hold
// none, of stacks, libraries and buffers that wait, cannot be had for data.
func addressLimit(bound, used, rss int64) limit {
	const source = "RLIMIT_AS (ulimit -v), less the addresses that hold no memory"
	return limit{bytes: max(1, bound-used+rss), used: rss, source: source, perProcess: true}
}

// MemoryAvailable returns the bytes that the process may still take: of the
// machine's memory what can be had without swapping, and of each limit in
// MemoryLimit what is left, caches that can be dropped not counted as used. It
// is 1 where nothing is left, and 0 where the system tells nothing.
func MemoryAvailable() int64 { return here.memoryAvailable() }

// PeakRSS returns the most bytes of physical memory that the process has held
// so far, 0 if the system does not say.
func PeakRSS() int64 { return here.peakRSS() }

// Occupied returns the bytes of physical memory that the process holds now, without what Go's heap has for use again, 0
// if the system does not say.
func Occupied() int64 {
	rss, _ := here.bytes("/proc/self/status", "VmRSS:")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return max(0, rss-int64(m.HeapIdle-m.HeapReleased))
}

// Bytes writes a number of bytes with three digits and a unit.
func Bytes(n int64) string {
	v, units := float64(n), []string{"B", "kB", "MB", "GB", "TB"}
	i := 0
	for ; v >= 1000 && i < len(units)-1; i++ {
		v /= 1000
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", v, units[i])
}

func (m machine) memoryShare(processes int) (int64, string) {
	best := limit{source: "unknown"}
	for _, l := range m.allLimits() {
		if !l.perProcess {
			l.bytes = max(1, l.bytes/int64(processes))
		}
		if best.bytes == 0 || l.bytes < best.bytes {
			best = l
		}
	}
	return best.bytes, best.source
}

func (m machine) memoryAvailable() int64 {
	avail, known := m.bytes("/proc/meminfo", "MemAvailable:")
	meminfo := known
	rss, _ := m.bytes("/proc/self/status", "VmRSS:")
	for i, l := range m.allLimits() {
		if i == 0 && l.source == physicalSource && meminfo {
			continue
		}
		if left := l.bytes - max(l.used, rss); !known || left < avail {
			avail, known = left, true
		}
	}
	if !known {
		return 0
	}
	return max(1, avail)
}

func (m machine) peakRSS() int64 {
	if peak, ok := m.bytes("/proc/self/status", "VmHWM:"); ok {
		return peak
	}
	b, _ := m.maxRSS()
	return b
}

const physicalSource = "physical memory"

// allLimits lists the bounds on the memory of the process, the machine's memory
// first if it is known.
func (m machine) allLimits() []limit {
	var all []limit
	if total, ok := m.bytes("/proc/meminfo", "MemTotal:"); ok {
		all = append(all, limit{bytes: total, source: physicalSource})
	} else if b := m.physical(); b > 0 {
		all = append(all, limit{bytes: int64(b), source: physicalSource})
	}
	all = append(all, m.cgroupLimits()...)
	return append(all, m.limits()...)
}

// garbageBound is the limit that BoundGarbage set.
var garbageBound atomic.Int64

// BoundGarbage makes Go's collector keep what it has not freed yet within 16 MB or a tenth of what is in use, and all
// within nine tenths of MemoryLimit: beside matrices of gigabytes the collector's default, as much again, is too much.
// GOGC and GOMEMLIMIT go before. It is for the main program to call.
func BoundGarbage() {
	if os.Getenv("GOGC") == "" {
		lean.Do(func() {
			bound()
			boundNext(time.AfterFunc(boundAgain, func() {
				bound()
				time.AfterFunc(20*boundAgain, bound) // on a busy machine the collection may not have ended
			}))
		})
	}
	if now := debug.SetMemoryLimit(-1); now < math.MaxInt64 && now != garbageBound.Load() {
		return
	}
	if b, _ := MemoryLimit(); b > 0 {
		garbageBound.Store(b / 10 * 9)
		debug.SetMemoryLimit(b / 10 * 9)
	}
}

// lean is done once garbage is bounded.
var lean sync.Once

// boundAgain is how long after a collection the bound is set again: one that runs beside boundNext keeps what that
// allocates to the next collection.
const boundAgain = 50 * time.Millisecond

// boundNext sets the garbage that may come after the next collection, and each one that follows.
func boundNext(again *time.Timer) {
	runtime.AddCleanup(new(*int), func(again *time.Timer) {
		bound()
		boundNext(again)
		again.Reset(boundAgain)
	}, again)
}

// bound sets the garbage that may come after the last collection.
func bound() {
	const free = 16 << 20
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := int(min(100, max(10, 100*free/max(1, live[0].Value.Uint64()))))
	if old := debug.SetGCPercent(percent); old < 0 { // it is off
		debug.SetGCPercent(old)
	}
}

// goLimit returns GOMEMLIMIT as the runtime has it, if it is set.
func goLimit() []limit {
	if b := debug.SetMemoryLimit(-1); b < math.MaxInt64 && b != garbageBound.Load() {
		return []limit{{bytes: b, source: "GOMEMLIMIT", perProcess: true}}
	}
	return nil
}

// field returns the number after the name at the start of a line of text.
func field(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				n, err := strconv.ParseInt(f[0], 10, 64)
				return n, err == nil
			}
		}
	}
	return 0, false
}

// bytes returns the number of kB after the name in a file, in bytes.
func (m machine) bytes(file, name string) (int64, bool) {
	kb, ok := field(m.read(file), name)
	return kb << 10, ok
}

// mount is one line of /proc/self/mountinfo: the directory root of a file system
// is seen at point.
type mount struct{ root, point string }

// cgroupLimits lists the memory limits of the process's control group and of all
// its ancestors that can be seen.
func (m machine) cgroupLimits() []limit {
	v1, v2 := m.cgroupMounts()
	var all []limit
	for line := range strings.Lines(m.read("/proc/self/cgroup")) {
		// hierarchy:controllers:path, with 0:: for version 2
		f := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		switch {
		case f[0] == "0" && f[1] == "" && v2 != nil:
			all = append(all, m.ancestors(*v2, f[2], "memory.max", "memory.current", "inactive_file ")...)
		case slices.Contains(strings.Split(f[1], ","), "memory") && v1 != nil:
			all = append(all, m.ancestors(*v1, f[2], "memory.limit_in_bytes", "memory.usage_in_bytes",
				"total_inactive_file ")...)
		}
	}
	return all
}

// cgroupMounts finds where the memory controller of version 1 and the unified
// hierarchy of version 2 are mounted; nil where they are not.
func (m machine) cgroupMounts() (v1, v2 *mount) {
	for line := range strings.Lines(m.read("/proc/self/mountinfo")) {
		// id parent dev root point options [tags] - type source superoptions
		before, after, ok := strings.Cut(strings.TrimRight(line, "\n"), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		mt := &mount{unescaped.Replace(f[3]), unescaped.Replace(f[4])}
		switch {
		case g[0] == "cgroup2" && v2 == nil:
			v2 = mt
		case g[0] == "cgroup" && v1 == nil && slices.Contains(strings.Split(g[2], ","), "memory"):
			v1 = mt
		}
	}
	return v1, v2
}

// ancestors reads the limits of the group at dir, a path within the hierarchy,
// and of every group above it up to the mount point.
func (m machine) ancestors(mt mount, dir, max, current, inactive string) []limit {
	rel, ok := strings.CutPrefix(path.Clean(dir), strings.TrimSuffix(mt.root, "/"))
	if !ok || strings.HasPrefix(rel, "/..") || rel != "" && rel[0] != '/' {
		rel = "" // the group lies outside what is mounted here: a container
	}
	var all []limit
	for {
		at := path.Join(mt.point, rel)
		if b, err := strconv.ParseInt(strings.TrimSpace(m.read(path.Join(at, max))), 10, 64); err == nil && b < 1<<60 {
			used, _ := strconv.ParseInt(strings.TrimSpace(m.read(path.Join(at, current))), 10, 64)
			cache, _ := field(m.read(path.Join(at, "memory.stat")), inactive)
			all = append(all, limit{bytes: b, used: used - cache, source: fmt.Sprintf("cgroup limit %s", path.Join(at, max))})
		}
		if rel == "" || rel == "/" {
			return all
		}
		rel = path.Dir(rel)
	}
}

// unescaped undoes the escapes of mountinfo.
var unescaped = strings.NewReplacer(`\011`, "\t", `\012`, "\n", `\040`, " ", `\043`, "#", `\134`, `\`)
