package simd

import (
	"fmt"
	"sync/atomic"
)

// Path is a way to compute: a set of instructions.
type Path int

// The paths, from the slowest to the fastest.
const (
	Portable Path = iota // Go, on every processor
	AVX2                 // assembly for x86-64 with AVX2 and FMA
	AVX512               // assembly for x86-64 with AVX-512 (F and VL)

	numPaths
)

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

// kit is what a path runs on; a nil field means the portable code.
type kit struct {
	both32                 *passes[float32, float32]
	both64                 *passes[float64, float64]
	both16                 *passes[uint16, float32]
	forward, backward      *passes[float32, float64]
	forward64, backward64  *passes[float64, float64]
	vectors                bool // the elementwise routines of AVX2
	gaussian32             gaussianRow[float32]
	gaussian64             gaussianRow[float64]
	gaussianInt            gaussianRow[int32]
	pack                   rowPacker
	unpack                 rowUnpacker
	squares64, absolutes64 pairSums[float64]
	absolutes32            pairSums[float32]
}

var (
	kits  = candidates() // what this processor can run, by Path; else nil
	inUse atomic.Int32   // a Path
)

func init() {
	p := Paths()
	inUse.Store(int32(p[len(p)-1]))
}

// Paths returns the paths that this processor can run, in ascending order; Portable is
// always one.
func Paths() (paths []Path) {
	for p, k := range kits {
		if k != nil {
			paths = append(paths, Path(p))
		}
	}
	return paths
}

// Use makes this package run on p; at the start it runs on the last of Paths. It is a
// choice for the whole process, and must not run beside other calls. It panics if p is not
// one of Paths.
func Use(p Path) {
	if p < 0 || p >= numPaths || kits[p] == nil {
		panic(fmt.Sprintf("simd: Use(%v): this processor runs %v", p, Paths()))
	}
	inUse.Store(int32(p))
}

// InUse returns the path in use.
func InUse() Path { return Path(inUse.Load()) }

func current() *kit { return kits[inUse.Load()] }
