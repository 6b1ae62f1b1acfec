package gemm

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Path is a way to compute: a set of micro-kernels.
type Path int

// The paths, from the slowest to the fastest.
const (
	Portable Path = iota // Go, on every processor
	AVX2                 // assembly for x86-64 with AVX2 and FMA
	AVX512               // assembly for x86-64 with AVX-512F

	numPaths
)

func (p Path) String() string {
	if p < 0 || p >= numPaths {
		return fmt.Sprintf("Path(%d)", int(p))
	}
	return [numPaths]string{"portable", "avx2", "avx512"}[p]
}

var (
	runnable = tested(candidates()) // what this processor can run, by Path; else nil
	inUse    atomic.Int32           // a Path
)

func init() {
	paths := Paths()
	inUse.Store(int32(paths[len(paths)-1]))
}

// Paths returns the paths that this processor can run and whose kernels have passed
// their test when the program started, in ascending order. Portable is always one.
func Paths() []Path {
	var out []Path
	for p, k := range runnable {
		if k != nil {
			out = append(out, Path(p))
		}
	}
	return out
}

// Use makes all products run on p; at the start they run on the last of Paths. It is
// a choice for the whole process and for tests, and must not run beside a product. It
// panics if p is not one of Paths.
func Use(p Path) {
	if p < 0 || p >= numPaths || runnable[p] == nil {
		panic(fmt.Sprintf("gemm: Use(%v): this processor runs %v", p, Paths()))
	}
	inUse.Store(int32(p))
}

// InUse returns the path that products run on.
func InUse() Path { return Path(inUse.Load()) }

func current() *kernels { return runnable[inUse.Load()] }

// tested returns paths without those that fail their test.
func tested(paths [numPaths]*kernels) [numPaths]*kernels {
	for p, k := range paths {
		if Path(p) != Portable && k != nil && !(passes(k.s, portable.s) && passes(k.d, portable.d) && passesBytes(k)) {
			paths[p] = nil
		}
	}
	return paths
}

// passes reports whether a kernel computes what a reference does. The numbers are
// small integers, so that every way to compute them is exact. It tries all four
// remainders of k by the kernels' unrolling, both ways to write C, and that nothing
// beside the tile is written.
func passes[T real](k, ref kernel[T]) bool {
	const maxK = 11
	value := func(i int) T { return T(i*7%15 - 7) }
	a, b := make([]T, k.mr*maxK), make([]T, k.nr*maxK)
	for i := range a {
		a[i] = value(i)
	}
	for i := range b {
		b[i] = value(3*i + 1)
	}
	ldc := k.nr + 3
	got, want := make([]T, k.mr*ldc), make([]T, k.mr*ldc)
	mr, nr := (k.mr+ref.mr-1)/ref.mr*ref.mr, (k.nr+ref.nr-1)/ref.nr*ref.nr
	ra, rb, rc := make([]T, ref.mr*maxK), make([]T, ref.nr*maxK), make([]T, ref.mr*ref.nr)
	for _, depth := range []int{0, 1, 4, 6, maxK} {
		for _, add := range []bool{false, true} {
			for i := range got {
				got[i] = value(5 * i)
			}
			copy(want, got)
			k.mul(depth, &a[0], &b[0], &got[0], ldc, 2, add)
			for i0 := 0; i0 < mr; i0 += ref.mr {
				for j0 := 0; j0 < nr; j0 += ref.nr {
					within := func(visit func(i, j int)) {
						for i := i0; i < min(i0+ref.mr, k.mr); i++ {
							for j := j0; j < min(j0+ref.nr, k.nr); j++ {
								visit(i, j)
							}
						}
					}
					for p := range depth {
						for i := i0; i < min(i0+ref.mr, k.mr); i++ {
							ra[p*ref.mr+i-i0] = a[p*k.mr+i]
						}
						for j := j0; j < min(j0+ref.nr, k.nr); j++ {
							rb[p*ref.nr+j-j0] = b[p*k.nr+j]
						}
					}
					within(func(i, j int) { rc[(i-i0)*ref.nr+j-j0] = want[i*ldc+j] })
					ref.mul(depth, &ra[0], &rb[0], &rc[0], ref.nr, 2, add)
					within(func(i, j int) { want[i*ldc+j] = rc[(i-i0)*ref.nr+j-j0] })
				}
			}
			if !slices.Equal(got, want) {
				return false
			}
		}
	}
	return packs(k)
}

// passesBytes reports whether a path's products of bytes are those of int32, at the border of its tile and
// for every remainder of k.
func passesBytes(k *kernels) bool {
	const most = 11
	m, n := k.b.mr+1, k.b.nr+1
	a, b := make([]uint8, m*most), make([]uint8, n*most)
	for i := range a {
		a[i] = uint8(255 - 37*i)
	}
	for i := range b {
		b[i] = uint8(255 - 91*i)
	}
	var w byteSpace
	for depth := most - 4; depth <= most; depth++ {
		c := make([]int32, m*n)
		w.multiply(k, m, n, depth, a, depth, b, depth, c, n)
		for i, v := range c {
			for p := range depth {
				v -= int32(a[i/n*depth+p]) * int32(b[i%n*depth+p])
			}
			if v != 0 {
				return false
			}
		}
	}
	return true
}

// packs reports whether a kernel's routines pack as portable code does.
func packs[T real](k kernel[T]) bool {
	const maxK = 11
	ld := max(13, k.nr+1)
	src := make([]T, maxK*ld)
	for i := range src {
		src[i] = T(i)
	}
	for _, depth := range []int{1, 4, 6, maxK} {
		for _, w := range []int{6, 7, k.nr} {
			got, want := make([]T, w*maxK), make([]T, w*maxK)
			n := min(w, maxK)
			packAcross(k, got, src, ld, n, depth, w)
			packAcross(kernel[T]{}, want, src, ld, n, depth, w)
			if !slices.Equal(got, want) {
				return false
			}
			packAlong(k, got, src, ld, w, depth, w)
			packAlong(kernel[T]{}, want, src, ld, w, depth, w)
			if !slices.Equal(got, want) {
				return false
			}
		}
	}
	return true
}
