//go:build linux || darwin

package accel

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// processLimits returns the limits on memory that apply to the process itself: GOMEMLIMIT and RLIMIT_AS.
func processLimits() []limit {
	limits := goLimit()
	if bound, used, limited := addressSpace(); limited {
		status, _ := os.ReadFile("/proc/self/status")
		rss, _ := integerField(string(status), "VmRSS:")
		limits = append(limits, addressLimit(bound, used, rss<<10))
	}
	return limits
}

// addressSpace returns the limit on the address space of the process (RLIMIT_AS) and the part of it in use, both in
// bytes, and whether there is such a limit.
func addressSpace() (bound, used int64, limited bool) {
	var rlimit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &rlimit); err != nil || rlimit.Cur >= 1<<60 {
		return 0, 0, false
	}
	status, _ := os.ReadFile("/proc/self/status")
	kilobytes, _ := integerField(string(status), "VmSize:")
	return int64(rlimit.Cur), kilobytes << 10, true
}

// ProcessorSeconds returns the processor time that all threads of the process have used so far, in seconds. It returns
// 0 if the system does not report it.
func ProcessorSeconds() float64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// maxRSS returns the peak of the resident memory of the process in bytes; ok is false if the system does not report it.
func maxRSS() (bytes int64, ok bool) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, false
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss), true
	}
	return int64(usage.Maxrss) << 10, true
}
