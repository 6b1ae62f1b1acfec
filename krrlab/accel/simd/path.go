package simd

import (
	"fmt"
	"sync/atomic"
)

// Path is an implementation of this package for one instruction set.
type Path int

// The paths, from the slowest to the fastest.
const (
	Portable Path = iota // Go, on every processor
	AVX2                 // assembly for x86-64 with AVX2 and FMA
	AVX512               // assembly for x86-64 with AVX-512 (F and VL)

	numPaths
)

// String returns the name of the path, such as "avx2".
func (p Path) String() string {
	if p < 0 || p >= numPaths {
		return fmt.Sprintf("Path(%d)", int(p))
	}
	return [numPaths]string{"portable", "avx2", "avx512"}[p]
}

// ParsePath is the inverse of String.
func ParsePath(name string) (Path, error) {
	for p := range numPaths {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("simd: unknown path %q: want portable, avx2 or avx512", name)
}

// routines holds the assembly routines of a path. A nil field selects the portable code.
type routines struct {
	both32                *passes[float32, float32] // AddBothProducts for tiles of float32
	both64                *passes[float64, float64] // AddBothProducts for tiles of float64
	both16                *passes[uint16, float32]  // AddBothProducts for tiles of 16-bit numbers
	forward, backward     *passes[float32, float64] // AddProduct and AddTransposeProduct for tiles of float32
	forward64, backward64 *passes[float64, float64] // AddProduct and AddTransposeProduct for tiles of float64
	hasElementwise        bool                      // the elementwise routines of AVX2 are available
	// The following routines belong to GaussianRow, PackRow, UnpackRow, SumSquaredDifferences and
	// SumAbsoluteDifferences.
	gaussian32             gaussianRow[float32]
	gaussian64             gaussianRow[float64]
	gaussianInt            gaussianRow[int32]
	pack                   rowPacker
	unpack                 rowUnpacker
	squares64, absolutes64 pairSums[float64]
	absolutes32            pairSums[float32]
}

var (
	pathRoutines = supportedRoutines() // routines of each Path; nil if this processor cannot run it
	inUse        atomic.Int32          // the Path in use
)

func init() {
	paths := Paths()
	inUse.Store(int32(paths[len(paths)-1]))
}

// Paths returns the paths that this processor can run, in ascending order. Portable is always the first.
func Paths() (paths []Path) {
	for p, routines := range pathRoutines {
		if routines != nil {
			paths = append(paths, Path(p))
		}
	}
	return paths
}

// UsePath selects the path p for the whole process. Initially, the last of Paths is selected. UsePath must not be
// called concurrently with other functions of this package. It panics if p is not one of Paths.
func UsePath(p Path) {
	if p < 0 || p >= numPaths || pathRoutines[p] == nil {
		panic(fmt.Sprintf("simd: UsePath(%v): this processor runs %v", p, Paths()))
	}
	inUse.Store(int32(p))
}

// CurrentPath returns the path in use.
func CurrentPath() Path { return Path(inUse.Load()) }

// current returns the routines of the path in use.
func current() *routines { return pathRoutines[inUse.Load()] }
