//go:build !linux && !darwin

package accel

import "context"

// TouchRate is not measured on this system.
func TouchRate(context.Context, int) float64 { return 0 }

func processLimits() []limit { return goLimit() }

func maxRSS() (bytes int64, ok bool) { return 0, false }

func addresses() (bound, used int64, limited bool) { return 0, 0, false }

func ProcessorSeconds() float64 { return 0 }
