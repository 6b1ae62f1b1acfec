//go:build linux || darwin

package accel

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// processLimits returns the limits on memory that apply to the process itself: GOMEMLIMIT and RLIMIT_AS.
func processLimits() []limit {
	all := goLimit()
	if bound, used, limited := addressSpace(); limited {
		status, _ := os.ReadFile("/proc/self/status")
		rss, _ := integerField(string(status), "VmRSS:")
		all = append(all, addressLimit(bound, used, rss<<10))
	}
	return all
}

// addressSpace returns the limit on the address space of the process (RLIMIT_AS) and the part of it in use, both in
// bytes, and whether there is such a limit.
func addressSpace() (bound, used int64, limited bool) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &r); err != nil || r.Cur >= 1<<60 {
		return 0, 0, false
	}
	status, _ := os.ReadFile("/proc/self/status")
	kb, _ := integerField(string(status), "VmSize:")
	return int64(r.Cur), kb << 10, true
}

// ProcessorSeconds returns the processor time that all threads of the process have used so far, in seconds. It returns
// 0 if the system does not report it.
func ProcessorSeconds() float64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// maxRSS returns the peak of the resident memory of the process.
func maxRSS() (bytes int64, ok bool) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0, false
	}
	if runtime.GOOS == "darwin" {
		return int64(r.Maxrss), true
	}
	return int64(r.Maxrss) << 10, true
}
