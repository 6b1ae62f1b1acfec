package gemm

import (
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"
)

// BytesDepth is the largest k of Bytes: 255²·2¹⁵ < 2³¹.
const BytesDepth = 1 << 15

// blockBytes bounds a packed block of bytes.
const blockBytes = 1 << 20

// byteKernel is a micro-kernel of integers. mul sets one tile of C, mr×nr, from panels of words
// of 32 bits,
//
//	c[i·ldc+j] = start[j] + Σ_{p<k} ⟨a[p·mr+i], b[p·nr+j]⟩.
//
// A word has four bytes of a row, ⟨,⟩ their inner product, those of a signed if shifted, to which 128 was subtracted,
// and start makes up for it; or, if wide, two numbers of 16 bits. k is a multiple of depth: if that is not 1, start is
// 0, and a panel of A is its rows, a[i·k+p].
type byteKernel struct {
	mr, nr        int
	wide, shifted bool
	depth         int
	mul           func(k int, a, b *uint32, start, c *int32, ldc int)
}

// byteSpace is what one product of bytes needs.
type byteSpace struct {
	a, b        []uint32
	start, tile []int32
}

var bytePool = sync.Pool{New: func() any { return new(byteSpace) }}

// Bytes computes C = A·Bᵀ of bytes, A m×k, B n×k and C m×n, row-major with strides lda, ldb and ldc, exactly: the
// bits are those of any other way. It runs on the calling goroutine, and panics if k is
// negative or above BytesDepth or a matrix does not fit its slice. No row of A or B needs to begin at a
// multiple of anything; strides that are multiples of 4 are faster.
func Bytes(m, n, k int, a []uint8, lda int, b []uint8, ldb int, c []int32, ldc int) {
	if k < 0 || k > BytesDepth || !byteMatrix(m, k, lda, len(a)) || !byteMatrix(n, k, ldb, len(b)) ||
		!byteMatrix(m, n, ldc, len(c)) {
		panic(fmt.Sprintf("gemm: Bytes of %d×%d and %d×%d with strides %d, %d and %d in slices of %d, %d and %d", m, k,
			n, k, lda, ldb, ldc, len(a), len(b), len(c)))
	}
	if m == 0 || n == 0 {
		return
	}
	w := bytePool.Get().(*byteSpace)
	w.multiply(current(), m, n, k, a, lda, b, ldb, c, ldc)
	bytePool.Put(w)
}

func byteMatrix(rows, cols, ld, have int) bool {
	return rows >= 0 && cols >= 0 && ld >= cols && (rows == 0 || have >= (rows-1)*ld+cols)
}

// multiply packs a block of B, and for each such all blocks of A.
func (w *byteSpace) multiply(ks *kernels, m, n, k int, a []uint8, lda int, b []uint8, ldb int, c []int32, ldc int) {
	f := &ks.b
	words := f.words(k)
	limit := max(f.mr, f.nr, blockBytes/max(4*words, 1))
	mc, nc := parts(m, limit/f.mr*f.mr, f.mr), parts(n, limit/f.nr*f.nr, f.nr)
	for j := 0; j < n; j += nc {
		cols := min(nc, n-j)
		w.b = grow(w.b, 2*nc*words)
		packBytes(ks, w.b, b[j*ldb:], ldb, cols, k, f.nr)
		w.start = grow(w.start, nc)
		clear(w.start)
		if f.shifted {
			for q := range cols {
				w.start[q] = 128 * byteSum(b[(j+q)*ldb:][:k])
			}
		}
		for i := 0; i < m; i += mc {
			rows := min(mc, m-i)
			w.a = grow(w.a, 2*mc*words)
			if f.depth > 1 {
				packRows(w.a, a[i*lda:], lda, rows, k, words)
			} else {
				packBytes(ks, w.a, a[i*lda:], lda, rows, k, f.mr)
			}
			if f.shifted {
				for q := range mc * words {
					w.a[q] ^= 0x80808080
				}
			}
			w.block(f, rows, cols, words, c[i*ldc+j:], ldc)
		}
	}
}

// words returns how many words of a panel hold k bytes of a row.
func (f *byteKernel) words(k int) int { return (max(k, 1) + 4*f.depth - 1) / (4 * f.depth) * f.depth }

// packRows packs n rows of k bytes, each of them so many words, one after the other. What is beside them meets zeros.
func packRows(dst []uint32, src []uint8, ld, n, k, words int) {
	to := view[uint8](dst)
	for i := range n {
		copy(to[4*i*words:], src[i*ld:i*ld+k])
	}
}

// block multiplies the packed blocks, tile by tile; those at the border beside C.
func (w *byteSpace) block(f *byteKernel, m, n, words int, c []int32, ldc int) {
	if f.wide {
		words *= 2
	}
	w.tile = grow(w.tile, f.mr*f.nr)
	for j := 0; j < n; j += f.nr {
		b, cols := unsafe.SliceData(w.b[j*words:]), min(f.nr, n-j)
		for i := 0; i < m; i += f.mr {
			a, rows := unsafe.SliceData(w.a[i*words:]), min(f.mr, m-i)
			if rows == f.mr && cols == f.nr {
				f.mul(words, a, b, &w.start[j], &c[i*ldc+j], ldc)
				continue
			}
			f.mul(words, a, b, &w.start[j], &w.tile[0], f.nr)
			for r := range rows {
				copy(c[(i+r)*ldc+j:][:cols], w.tile[r*f.nr:])
			}
		}
	}
}

// packBytes packs n rows of k bytes in panels of w rows, four bytes a word, filled up with words of zeros, or, for wide
// kernels, the bytes 0 and 2 and the bytes 1 and 3 in a word each. Rows beside them are none of the product's.
func packBytes(ks *kernels, dst []uint32, src []uint8, ld, n, k, w int) {
	words, whole := ks.b.words(k), k/4
	end := (n + w - 1) / w * words // of steps
	for i := 0; i < n; i += w {
		panel, rows := dst[i*words:(i+w)*words], min(w, n-i)
		clear(panel[whole*w:])
		if from := src[i*ld:]; ld%4 == 0 && whole > 0 {
			// The routines that pack float32 move bits.
			f := kernel[float32]{pack4: ks.s.pack4, pack2: ks.s.pack2}
			packAcross(f, view[float32](panel), view[float32](from), ld/4, rows, whole, w)
		} else {
			for r := range rows {
				for p := range whole {
					panel[p*w+r] = binary.NativeEndian.Uint32(from[r*ld+4*p:])
				}
			}
		}
		for r := 0; r < rows && k%4 > 0; r++ {
			var last [4]uint8
			copy(last[:], src[(i+r)*ld+4*whole:(i+r)*ld+k])
			panel[whole*w+r] = binary.NativeEndian.Uint32(last[:])
		}
	}
	if !ks.b.wide {
		return
	}
	// From the end: panel by panel, step by step.
	for s := end - 1; s >= 0; s-- {
		for r := w - 1; r >= 0; r-- {
			v := dst[s*w+r]
			dst[2*s*w+r], dst[(2*s+1)*w+r] = v&0x00ff00ff, v>>8&0x00ff00ff
		}
	}
}

// view is the memory of v, which may begin anywhere, as whole numbers of another type.
func view[D, S any](v []S) []D {
	return unsafe.Slice((*D)(unsafe.Pointer(unsafe.SliceData(v))),
		len(v)*int(unsafe.Sizeof(*new(S)))/int(unsafe.Sizeof(*new(D))))
}

// byteSum returns the sum of at most BytesDepth bytes, eight at a time in four sums of 16 bits.
func byteSum(v []uint8) (sum int32) {
	const even = 0x00ff00ff00ff00ff
	for len(v) >= 8 {
		part := v[:min(len(v)&^7, 8*128)] // 128·2·255 < 2¹⁶
		v = v[len(part):]
		var s uint64
		for ; len(part) >= 8; part = part[8:] {
			w := binary.LittleEndian.Uint64(part)
			s += w&even + w>>8&even
		}
		s = s&0x0000ffff0000ffff + s>>16&0x0000ffff0000ffff
		sum += int32(uint32(s)) + int32(s>>32)
	}
	for _, b := range v {
		sum += int32(b)
	}
	return sum
}
