//go:build !nodl && (linux || darwin) && !android && (amd64 || arm64)

package dl

// Able reports whether this program can load shared libraries.
const Able = true
