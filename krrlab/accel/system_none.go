//go:build !linux && !darwin

package accel

import "context"

// TouchRate returns 0, which callers take for an unknown rate: only Linux and macOS have mappings to measure it with.
func TouchRate(context.Context, int) float64 { return 0 }

// processLimits returns the only limit of the process that is known on this system, GOMEMLIMIT.
func processLimits() []limit { return goLimit() }

// maxRSS reports that the peak of the resident memory is unknown.
func maxRSS() (bytes int64, ok bool) { return 0, false }

// addressSpace reports that there is no known limit on the address space.
func addressSpace() (bound, used int64, limited bool) { return 0, 0, false }

// ProcessorSeconds returns 0: getrusage is a call of Linux and macOS. Differences of it, such as the seconds of a group
// of runs that the testbed records, are 0 on other systems, too.
func ProcessorSeconds() float64 { return 0 }
