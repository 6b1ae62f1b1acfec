//go:build !amd64

package simd

// candidates are the paths that the processor has the instructions for, by Path.
func candidates() (paths [numPaths]*kit) {
	paths[Portable] = &kit{}
	return paths
}
