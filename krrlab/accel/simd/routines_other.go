//go:build !amd64

package simd

// supportedRoutines returns the routines of each Path; nil for a path whose instructions the processor lacks.
func supportedRoutines() (paths [numPaths]*routines) {
	paths[Portable] = &routines{}
	return paths
}
