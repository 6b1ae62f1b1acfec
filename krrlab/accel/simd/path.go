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
	pack                   rowPacker
	unpack                 rowUnpacker
	squares64, absolutes64 pairSums[float64]
	absolutes32            pairSums[float32]
}

var (
	kits  = tested(candidates()) // what this processor can run, by Path; else nil
	inUse atomic.Int32           // a Path
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

// tested returns paths without those whose products are not the portable ones. The
// numbers are small integers, so that every order of the sums is exact.
func tested(paths [numPaths]*kit) [numPaths]*kit {
	for p, k := range paths {
		if Path(p) != Portable && k != nil && !(passes2(k.both32) && passes2(k.both64) && passes2(k.both16) && passes2(k.forward) && passes2(k.backward) && passes2(k.forward64) && passes2(k.backward64)) {
			paths[p] = nil
		}
	}
	return paths
}

// passes2 reports whether p computes what the portable code does.
func passes2[T entry, V number](p *passes[T, V]) bool {
	const rows, cols, ld = 7, 50, 53
	value := func(i int) float64 { return float64(i*7%15 - 7) }
	for t := 1; t <= 6; t++ { // all passes that there are
		tile := make([]T, rows*ld)
		for i := range tile {
			tile[i] = T(value(i) + 7)
			if i%16 == 5 {
				tile[i] = 50001 // beyond 15 bits
			}
		}
		x, y, z, u := make([]V, cols*t), make([]V, cols*t), make([]V, rows*t), make([]V, rows*t)
		for i := range x {
			x[i], y[i] = V(value(3*i+1)), V(value(5*i+2))
		}
		for i := range z {
			z[i], u[i] = V(value(2*i+3)), V(value(4*i))
		}
		y2, u2 := append([]V(nil), y...), append([]V(nil), u...)
		p.run(rows, cols, tile, ld, x, y, cols, z, u, rows, t)
		portable[T, V](p.sums, p.adds, rows, 0, cols, tile, ld, x, y2, cols, z, u2, rows, t)
		for i := range y {
			if y[i] != y2[i] {
				return false
			}
		}
		for i := range u {
			if u[i] != u2[i] {
				return false
			}
		}
	}
	return true
}
