//go:build !linux && !darwin

package accel

func processLimits() []limit { return goLimit() }

func maxRSS() (bytes int64, ok bool) { return 0, false }
