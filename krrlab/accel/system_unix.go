//go:build linux || darwin

package accel

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// processLimits lists the limits on memory that the process itself carries.
func processLimits() []limit {
	all := goLimit()
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &r); err == nil && r.Cur < 1<<60 {
		status, _ := os.ReadFile("/proc/self/status")
		used, _ := field(string(status), "VmSize:") // it counts addresses, not pages held
		all = append(all, limit{int64(r.Cur), used << 10, "RLIMIT_AS (ulimit -v)"})
	}
	return all
}

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
