//go:build !linux && !darwin

package accel

import "context"

// TouchRate returns 0: it is not implemented for this system.
func TouchRate(context.Context, int) float64 { return 0 }

func processLimits() []limit { return goLimit() }

func maxRSS() (bytes int64, ok bool) { return 0, false }

func addresses() (bound, used int64, limited bool) { return 0, 0, false }

// ProcessorSeconds returns 0: it is not implemented for this system.
func ProcessorSeconds() float64 { return 0 }
