//go:build !race

// Package race reports whether the race detector is enabled. Some tests depend on it: with the detector, pools drop
// their elements at random, and all code takes about ten times as long.
package race

// Enabled reports whether the race detector is enabled.
const Enabled = false
