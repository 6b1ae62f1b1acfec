//go:build !race

// Package race says whether the race detector is on. A test asks it where the detector changes what is
// tested: pools drop what they hold, and everything takes ten times as long.
package race

// Enabled reports whether the race detector is on.
const Enabled = false
