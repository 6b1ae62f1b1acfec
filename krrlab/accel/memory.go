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

// limit is an upper bound on memory and its origin.
type limit struct {
	bytes  int64
	used   int64 // memory in use that counts against the limit; 0 if unknown
	source string
	// perProcess marks a limit that applies to each process separately, such as ulimit -v. The processes of the machine
	// or of the control group share all other limits.
	perProcess bool
}

// MemoryLimit returns the number of bytes of memory that the process may use, and the name of the limit that sets it.
// It is the smallest of these limits: the memory of the machine; the limits of the control group and of every group
// above it (cgroup version 1 and 2, used by containers, batch systems and systemd); RLIMIT_AS minus the reserved
// address space that is not resident; and GOMEMLIMIT. If the system reports no limit, it returns 0 and "unknown".
func MemoryLimit() (bytes int64, source string) { return hostMachine.memoryShare(1) }

// MemoryShare is MemoryLimit for one of several equal processes on this machine. The memory of the machine and the
// limits of control groups are divided by the number of processes. RLIMIT_AS and GOMEMLIMIT apply to each process and
// are not divided.
func MemoryShare(processes int) (bytes int64, source string) {
	return hostMachine.memoryShare(processes)
}

// addressLimit converts a limit on the address space of the process to a limit on its memory. bound is the limit, used
// the size of the address space in use, and rss the resident memory. Reserved addresses that are not resident, such as
// those of stacks, libraries and unused buffers, are not available for data.
func addressLimit(bound, used, rss int64) limit {
	const source = "RLIMIT_AS (ulimit -v), less the addresses that hold no memory"
	return limit{bytes: max(1, bound-used+rss), used: rss, source: source, perProcess: true}
}

// MemoryAvailable returns the number of bytes that the process can still allocate. It is the smallest of the memory of
// the machine that is available without swapping, and the unused part of each limit of MemoryLimit, where caches that
// can be dropped do not count as used. It returns 1 if no memory is available, and 0 if the system reports nothing.
func MemoryAvailable() int64 { return hostMachine.memoryAvailable() }

// PeakRSS returns the peak of the physical memory of the process so far, in bytes, or 0 if the system does not report
// it.
func PeakRSS() int64 { return hostMachine.peakRSS() }

// MemoryInUse returns the physical memory of the process in bytes, without the parts of Go's heap that are free for
// reuse. It returns 0 if the system does not report it.
func MemoryInUse() int64 {
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	return hostMachine.memoryInUse(int64(heap.HeapIdle - heap.HeapReleased))
}

// FormatBytes formats a number of bytes with three digits and a unit.
func FormatBytes(n int64) string {
	value, units := float64(n), []string{"B", "kB", "MB", "GB", "TB"}
	unit := 0
	for ; value >= 1000 && unit < len(units)-1; unit++ {
		value /= 1000
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", value, units[unit])
}

// memoryShare is MemoryShare for the machine m.
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

// memoryAvailable is MemoryAvailable for the machine m.
func (m machine) memoryAvailable() int64 {
	available, isKnown := m.kilobyteField("/proc/meminfo", "MemAvailable:")
	hasMeminfo := isKnown
	rss, _ := m.kilobyteField("/proc/self/status", "VmRSS:")
	for i, l := range m.allLimits() {
		if i == 0 && l.source == physicalSource && hasMeminfo {
			continue
		}
		if remaining := l.bytes - max(l.used, rss); !isKnown || remaining < available {
			available, isKnown = remaining, true
		}
	}
	if !isKnown {
		return 0
	}
	return max(1, available)
}

// memoryInUse is MemoryInUse for the machine m, if Go's heap has freeHeap bytes of physical memory that are free for
// reuse.
func (m machine) memoryInUse(freeHeap int64) int64 {
	rss, _ := m.kilobyteField("/proc/self/status", "VmRSS:")
	return max(0, rss-freeHeap)
}

// peakRSS is PeakRSS for the machine m.
func (m machine) peakRSS() int64 {
	if peak, ok := m.kilobyteField("/proc/self/status", "VmHWM:"); ok {
		return peak
	}
	bytes, _ := m.maxRSS()
	return bytes
}

// physicalSource is the source of the limit that is the memory of the machine.
const physicalSource = "physical memory"

// allLimits returns the limits on the memory of the process. If the memory of the machine is known, it is the first.
func (m machine) allLimits() []limit {
	var all []limit
	if total, ok := m.kilobyteField("/proc/meminfo", "MemTotal:"); ok {
		all = append(all, limit{bytes: total, source: physicalSource})
	} else if bytes := m.physical(); bytes > 0 {
		all = append(all, limit{bytes: int64(bytes), source: physicalSource})
	}
	all = append(all, m.cgroupLimits()...)
	return append(all, m.ownLimits()...)
}

// ownMemoryLimit is the memory limit of the Go runtime that ConfigureGC set; 0 if it set none.
var ownMemoryLimit atomic.Int64

// ConfigureGC configures Go's garbage collector for large matrices. It limits the garbage between collections to 16 MB
// or a tenth of the live heap, whichever is larger, and all memory to nine tenths of MemoryLimit. The collector's
// default would allow as much garbage as live memory, which is too much for matrices of gigabytes. The environment
// variables GOGC and GOMEMLIMIT take precedence. Only a main program should call ConfigureGC.
func ConfigureGC() {
	if os.Getenv("GOGC") == "" {
		gcUpdatesOnce.Do(func() {
			setGCPercent()
			updateAfterNextCollection(time.AfterFunc(gcUpdateDelay, func() {
				setGCPercent()
				time.AfterFunc(20*gcUpdateDelay, setGCPercent) // on a busy machine the collection may end late
			}))
		})
	}
	if current := debug.SetMemoryLimit(-1); current < math.MaxInt64 && current != ownMemoryLimit.Load() {
		return
	}
	if bytes, _ := MemoryLimit(); bytes > 0 {
		ownMemoryLimit.Store(bytes / 10 * 9)
		debug.SetMemoryLimit(bytes / 10 * 9)
	}
}

// gcUpdatesOnce starts the updates of the collector's percentage once per process.
var gcUpdatesOnce sync.Once

// gcUpdateDelay is the time after a collection at which the percentage is set again. The second update is needed
// because a collection that runs at the same time as updateAfterNextCollection counts what that function allocates as
// live.
const gcUpdateDelay = 50 * time.Millisecond

// updateAfterNextCollection calls setGCPercent after the next collection and after every later one.
func updateAfterNextCollection(timer *time.Timer) {
	runtime.AddCleanup(new(*int), func(timer *time.Timer) {
		setGCPercent()
		updateAfterNextCollection(timer)
		timer.Reset(gcUpdateDelay)
	}, timer)
}

// setGCPercent sets the collector's percentage from the size of the live heap at the last collection (see
// ConfigureGC).
func setGCPercent() {
	const garbage = 16 << 20
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := int(min(100, max(10, 100*garbage/max(1, live[0].Value.Uint64()))))
	if old := debug.SetGCPercent(percent); old < 0 { // the collector is off, and stays off
		debug.SetGCPercent(old)
	}
}

// goLimit returns the value of GOMEMLIMIT in the runtime, unless it is unset or was set by ConfigureGC.
func goLimit() []limit {
	if bytes := debug.SetMemoryLimit(-1); bytes < math.MaxInt64 && bytes != ownMemoryLimit.Load() {
		return []limit{{bytes: bytes, source: "GOMEMLIMIT", perProcess: true}}
	}
	return nil
}

// integerField returns the integer that follows name on the first line of text that starts with name; ok is false if
// there is none.
func integerField(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name); ok {
			if fields := strings.Fields(value); len(fields) > 0 {
				number, err := strconv.ParseInt(fields[0], 10, 64)
				return number, err == nil
			}
		}
	}
	return 0, false
}

// kilobyteField returns, in bytes, the value of a field that a file states in kB; ok is false if there is none.
func (m machine) kilobyteField(file, name string) (int64, bool) {
	kilobytes, ok := integerField(m.read(file), name)
	return kilobytes << 10, ok
}

// mount is one line of /proc/self/mountinfo: the directory root of a file system is mounted at point.
type mount struct{ root, point string }

// cgroupLimits returns the memory limits of the process's control group and of all its visible ancestors.
func (m machine) cgroupLimits() []limit {
	v1, v2 := m.cgroupMounts()
	var all []limit
	for line := range strings.Lines(m.read("/proc/self/cgroup")) {
		// hierarchy:controllers:path, with 0:: for version 2
		fields := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[0] == "0" && fields[1] == "" && v2 != nil:
			all = append(all, m.groupLimits(*v2, fields[2], "memory.max", "memory.current", "inactive_file ")...)
		case slices.Contains(strings.Split(fields[1], ","), "memory") && v1 != nil:
			all = append(all, m.groupLimits(*v1, fields[2], "memory.limit_in_bytes", "memory.usage_in_bytes",
				"total_inactive_file ")...)
		}
	}
	return all
}

// cgroupMounts returns the mounts of the memory controller of version 1 and of the unified hierarchy of version 2.
// Either is nil if it is not mounted.
func (m machine) cgroupMounts() (v1, v2 *mount) {
	for line := range strings.Lines(m.read("/proc/self/mountinfo")) {
		// id parent dev root point options [tags] - type source superoptions
		mountPart, sourcePart, ok := strings.Cut(strings.TrimRight(line, "\n"), " - ")
		mountFields, sourceFields := strings.Fields(mountPart), strings.Fields(sourcePart)
		if !ok || len(mountFields) < 5 || len(sourceFields) < 3 {
			continue
		}
		memoryMount := &mount{unescaped.Replace(mountFields[3]), unescaped.Replace(mountFields[4])}
		switch {
		case sourceFields[0] == "cgroup2" && v2 == nil:
			v2 = memoryMount
		case sourceFields[0] == "cgroup" && v1 == nil && slices.Contains(strings.Split(sourceFields[2], ","), "memory"):
			v1 = memoryMount
		}
	}
	return v1, v2
}

// groupLimits returns the limits of the control group at dir, a path in the mounted hierarchy, and of every group above
// it up to the mount point. limitFile and usageFile are the names of the files with the limit and the usage of a group,
// and inactiveKey is the key of its droppable caches in memory.stat.
func (m machine) groupLimits(hierarchy mount, dir, limitFile, usageFile, inactiveKey string) []limit {
	group, ok := strings.CutPrefix(path.Clean(dir), strings.TrimSuffix(hierarchy.root, "/"))
	if !ok || strings.HasPrefix(group, "/..") || group != "" && group[0] != '/' {
		group = "" // in a container, the group may lie outside the mounted directory
	}
	var limits []limit
	for {
		groupDir := path.Join(hierarchy.point, group)
		limitPath := path.Join(groupDir, limitFile)
		if bytes, err := strconv.ParseInt(strings.TrimSpace(m.read(limitPath)), 10, 64); err == nil && bytes < 1<<60 {
			used, _ := strconv.ParseInt(strings.TrimSpace(m.read(path.Join(groupDir, usageFile))), 10, 64)
			cache, _ := integerField(m.read(path.Join(groupDir, "memory.stat")), inactiveKey)
			limits = append(limits, limit{bytes: bytes, used: used - cache, source: fmt.Sprintf("cgroup limit %s",
				limitPath)})
		}
		if group == "" || group == "/" {
			return limits
		}
		group = path.Dir(group)
	}
}

// unescaped replaces the escape sequences of mountinfo.
var unescaped = strings.NewReplacer(`\011`, "\t", `\012`, "\n", `\040`, " ", `\043`, "#", `\134`, `\`)
