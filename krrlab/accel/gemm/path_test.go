package gemm

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"
)

func TestPaths(t *testing.T) {
	before := InUse()
	t.Cleanup(func() { Use(before) })
	paths := Paths()
	t.Log(paths, before)
	if len(paths) == 0 || paths[0] != Portable || !slices.IsSorted(paths) || before != paths[len(paths)-1] {
		t.Errorf("Paths() = %v, InUse() = %v", paths, before)
	}
	for p := Path(-1); p <= numPaths; p++ {
		panicked := func() (v any) {
			defer func() { v = recover() }()
			Use(p)
			return nil
		}()
		if (panicked == nil) != slices.Contains(paths, p) {
			t.Errorf("Use(%v) panics with %v", p, panicked)
		}
		if panicked == nil && InUse() != p {
			t.Errorf("InUse() = %v after Use(%v)", InUse(), p)
		}
	}
	if s := AVX512.String() + Path(7).String(); s != "avx512Path(7)" {
		t.Error(s)
	}
	for p, k := range runnable {
		if k != nil && (rowsMax%k.s.mr != 0 && p != 0 || colsMax%k.s.nr != 0 || rowsMax%k.d.mr != 0 || colsMax%k.d.nr != 0) {
			t.Errorf("%v: blocks are no multiple of the tile", Path(p))
		}
	}
}

// TestSelfTest gives wrong kernels to the test that every path must pass.
func TestSelfTest(t *testing.T) {
	candidate := func(wrong func(k int, a, b, c *float32, ldc int, alpha float32, add bool)) *kernels {
		return &kernels{kernel[float32]{mr: 4, nr: 4, mul: wrong}, portable.d, portable.b}
	}
	for name, wrong := range map[string]func(k int, a, b, c *float32, ldc int, alpha float32, add bool){
		"nothing":  func(int, *float32, *float32, *float32, int, float32, bool) {},
		"no alpha": func(k int, a, b, c *float32, ldc int, _ float32, add bool) { mul4x4(k, a, b, c, ldc, 1, add) },
		"no add":   func(k int, a, b, c *float32, ldc int, alpha float32, _ bool) { mul4x4(k, a, b, c, ldc, alpha, false) },
		"add":      func(k int, a, b, c *float32, ldc int, alpha float32, _ bool) { mul4x4(k, a, b, c, ldc, alpha, true) },
		"k": func(k int, a, b, c *float32, ldc int, alpha float32, add bool) {
			mul4x4(k&^1, a, b, c, ldc, alpha, add)
		},
		"swapped": func(k int, a, b, c *float32, ldc int, alpha float32, add bool) { mul4x4(k, b, a, c, ldc, alpha, add) },
		"beside": func(k int, a, b, c *float32, ldc int, alpha float32, add bool) {
			mul4x4(k, a, b, c, ldc, alpha, add)
			unsafe.Slice(c, 5)[4] = 0.5
		},
	} {
		paths := [numPaths]*kernels{Portable: &portable, AVX2: candidate(wrong), AVX512: candidate(mul4x4[float32])}
		if out := tested(paths); out[AVX2] != nil || out[AVX512] == nil || out[Portable] == nil {
			t.Errorf("%s: %v", name, out)
		}
	}
	wrong := portable
	wrong.d.pack2 = func(n int, src *float64, ld int, dst *float64, w int) {}
	if out := tested([numPaths]*kernels{Portable: &portable, AVX2: &wrong}); out[AVX2] != nil {
		t.Error("packing: passed")
	}
	wrong = portable
	wrong.b.mul = func(k int, a, b *uint32, start, c *int32, ldc int) { imul4x4(k&^1, a, b, start, c, ldc) }
	wrong.b.wide = false
	if out := tested([numPaths]*kernels{Portable: &portable, AVX2: &wrong}); out[AVX2] != nil {
		t.Error("bytes: passed")
	}
	if start := time.Now(); true {
		tested(candidates())
		t.Log("self-test:", time.Since(start))
	}
}

// TestAVX512Shape drives tiles of AVX-512's size, on any processor, by a kernel in Go.
func TestAVX512Shape(t *testing.T) {
	before, real512 := InUse(), runnable[AVX512]
	t.Cleanup(func() { runnable[AVX512] = real512; Use(before) })
	runnable[AVX512] = &kernels{
		kernel[float32]{mr: 14, nr: 32, mul: mulShape[float32](14, 32)},
		kernel[float64]{mr: 14, nr: 16, mul: mulShape[float64](14, 16)},
		portable.b,
	}
	if out := tested(runnable); out[AVX512] == nil {
		t.Fatal("the kernel in Go is wrong")
	}
	Use(AVX512)
	g := rand.New(rand.NewPCG(17, 18))
	for _, m := range []int{1, 13, 14, 15, 29, rowsMax + 1} {
		for _, n := range []int{1, 16, 31, 32, 33, 65} {
			for _, k := range []int{1, 9, depthMax + 1} {
				q := g.IntN(4)
				testCase(t, Sgemm, g, transposes[q%2], transposes[q/2], m, n, k, 0.5, float32(g.IntN(3))/2)
				testCase(t, Dgemm, g, transposes[q%2], transposes[q/2], m, n, k, 0.5, float64(g.IntN(3))/2)
			}
		}
	}
}

// mulShape returns a micro-kernel of any size, in Go.
func mulShape[T real](mr, nr int) func(k int, a, b, c *T, ldc int, alpha T, add bool) {
	return func(k int, a, b, c *T, ldc int, alpha T, add bool) {
		as, bs, cs := unsafe.Slice(a, k*mr), unsafe.Slice(b, k*nr), unsafe.Slice(c, (mr-1)*ldc+nr)
		for i := range mr {
			for j := range nr {
				sum := T(0)
				for p := range k {
					sum += as[p*mr+i] * bs[p*nr+j]
				}
				if add {
					cs[i*ldc+j] += alpha * sum
				} else {
					cs[i*ldc+j] = alpha * sum
				}
			}
		}
	}
}
