package gemm

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/accel/simd"
)

// onByteKernels runs f with the kernel of each path of this processor, and on AVX-512 also with the kernels for
// processors without AMX or VNNI.
func onByteKernels(t *testing.T, test func(t *testing.T)) {
	previous := simd.CurrentPath()
	defer simd.UsePath(previous)
	for _, path := range simd.Paths()[1:] {
		simd.UsePath(path)
		t.Run(path.String(), test)
	}
	if previous == simd.AVX512 {
		pathKernels := byPath[previous]
		fastest := pathKernels.bytes
		defer func() { pathKernels.bytes = fastest }()
		for i := range len(byteKernels) - 1 {
			pathKernels.bytes = byteKernels[i]
			t.Run(fmt.Sprintf("avx512, %d×%d", pathKernels.bytes.mr, pathKernels.bytes.nr), test)
		}
	}
}

// TestBytesExact compares products of bytes with big integers, for numbers of rows around the tile sizes, strides
// that are and are not multiples of 4, and rows that end with their slice.
func TestBytesExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draws := map[string]func() uint8{
		"any":       func() uint8 { return uint8(random.Uint32()) },
		"0 and 255": func() uint8 { return uint8(255 * random.IntN(2)) },
		"0 and 1":   func() uint8 { return uint8(random.IntN(2)) }, "255": func() uint8 { return 255 },
		"0": func() uint8 { return 0 },
	}
	onByteKernels(t, func(t *testing.T) {
		for name, draw := range draws {
			for _, shape := range [][3]int{{1, 1, 1}, {1, 1, 0}, {3, 5, 4}, {7, 17, 2}, {13, 31, 3}, {14, 32, 8},
				{15, 33, 123}, {29, 65, 30}, {6, 16, 785}, {50, 40, 7}} {
				for _, gap := range []int{0, 1, 5, (8 - shape[2]%4) % 4} {
					m, n, k := shape[0], shape[1], shape[2]
					lda, ldb, ldc := k+gap, k+2*gap, n+gap
					a, b := make([]uint8, (m-1)*lda+k), make([]uint8, (n-1)*ldb+k)
					for i := range a {
						a[i] = draw()
					}
					for i := range b {
						b[i] = draw()
					}
					c := make([]int32, m*ldc)
					for i := range c {
						c[i] = -7
					}
					MultiplyBytes(ByteProduct{m, n, k, a, lda, b, ldb, c, ldc})
					for i := range m {
						for j := range ldc {
							want := big.NewInt(-7)
							if j < n {
								want.SetInt64(0)
								for p := range k {
									want.Add(want, new(big.Int).Mul(big.NewInt(int64(a[i*lda+p])),
										big.NewInt(int64(b[j*ldb+p]))))
								}
							}
							if int64(c[i*ldc+j]) != want.Int64() {
								t.Fatalf("%s, %v, gap %d: (%d, %d) is %d, want %v", name, shape, gap, i, j, c[i*ldc+j],
									want)
							}
						}
					}
				}
			}
		}
	})
}

// TestBytesLongestRows checks that the longest rows, full of 255, do not overflow. They are divided into blocks.
func TestBytesLongestRows(t *testing.T) {
	onByteKernels(t, func(t *testing.T) {
		const m, n, k = 33, 35, MaxBytesK
		a, b := slices.Repeat([]uint8{255}, m*k), slices.Repeat([]uint8{255}, n*k)
		a[3*k+5] = 0
		c := make([]int32, m*n)
		MultiplyBytes(ByteProduct{m, n, k, a, k, b, k, c, n})
		for i, entry := range c {
			want := int32(255 * 255 * k)
			if i/n == 3 {
				want -= 255 * 255
			}
			if entry != want {
				t.Fatalf("entry %d is %d, want %d", i, entry, want)
			}
		}
	})
}

// TestBytesPanics checks that slices that are too short for the shape, strides that are too small, negative depths and
// rows longer than MaxBytesK panic.
func TestBytesPanics(t *testing.T) {
	bytes, c := make([]uint8, 12), make([]int32, 9)
	for i, call := range []func(){
		func() { MultiplyBytes(ByteProduct{3, 3, 5, bytes, 5, bytes, 5, c, 3}) },
		func() { MultiplyBytes(ByteProduct{3, 3, 4, bytes, 3, bytes, 4, c, 3}) },
		func() { MultiplyBytes(ByteProduct{3, 3, 4, bytes, 4, bytes, 4, c, 4}) },
		func() { MultiplyBytes(ByteProduct{3, 3, -1, bytes, 4, bytes, 4, c, 3}) },
		func() {
			MultiplyBytes(ByteProduct{0, 0, MaxBytesK + 1, nil, MaxBytesK + 1, nil, MaxBytesK + 1, nil, 0})
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("case %d: no panic", i)
				}
			}()
			call()
		}()
	}
	MultiplyBytes(ByteProduct{0, 3, 4, nil, 4, bytes, 4, nil, 3}) // no rows: valid
}

// TestByteSum adds bytes in slices of every length up to more than one part.
func TestByteSum(t *testing.T) {
	bytes := slices.Repeat([]uint8{255}, 2100)
	for n := range bytes {
		if got := byteSum(bytes[:n]); got != int32(255*n) {
			t.Fatalf("the sum of %d bytes of 255 is %d", n, got)
		}
	}
}
