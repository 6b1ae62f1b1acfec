package gemm

import (
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"
)

// MaxBytesK is the largest k for which the sums of MultiplyBytes cannot overflow: 255²·2¹⁵ < 2³¹.
const MaxBytesK = 1 << 15

// blockBytes is the largest size of a packed block of A or B, in bytes. Smaller blocks are packed more often; larger
// ones need a larger cache.
const blockBytes = 1 << 20

// byteKernel is a micro-kernel for integers. mul computes one tile of C, mr×nr, from panels of 32-bit words,
//
//	c[i·ldc+j] = start[j] + Σ_{p<k} ⟨a[p·mr+i], b[p·nr+j]⟩,
//
// where ⟨,⟩ is the inner product of the numbers in two words. k is a multiple of depth. If depth is not 1, start is 0
// and a panel of A is stored by rows, as a[i·k+p].
type byteKernel struct {
	mr, nr  int
	wide    bool // a word holds two 16-bit numbers instead of four bytes
	shifted bool // the bytes of a are signed: 128 was subtracted from each, and start compensates for it
	depth   int  // number of consecutive words of a row that mul uses in one step
	mul     func(k int, a, b *uint32, start, c *int32, ldc int)
}

// byteWorkspace is the scratch memory of one product of bytes.
type byteWorkspace struct {
	a, b  []uint32 // packed blocks of A and B
	start []int32  // initial values of the sums of each column
	tile  []int32  // a tile at the border of C
}

// ByteProduct holds the arguments of C = A·Bᵀ for matrices of bytes: A is M×K, B is N×K and C is M×N, all row-major
// with strides LDA, LDB and LDC.
type ByteProduct struct {
	M, N, K int
	A       []uint8
	LDA     int
	B       []uint8
	LDB     int
	C       []int32
	LDC     int
}

var bytePool = sync.Pool{New: func() any { return new(byteWorkspace) }}

// MultiplyBytes computes a product exactly, so that its result is the same for every algorithm. It runs on the calling
// goroutine. It panics if K is negative or above MaxBytesK, or if a matrix does not fit its slice. The rows of A and B
// need no alignment; strides that are multiples of 4 are faster.
func MultiplyBytes(p ByteProduct) {
	if p.K < 0 || p.K > MaxBytesK || !byteMatrix(p.M, p.K, p.LDA, len(p.A)) || !byteMatrix(p.N, p.K, p.LDB, len(p.B)) ||
		!byteMatrix(p.M, p.N, p.LDC, len(p.C)) {
		panic(fmt.Sprintf("gemm: Bytes of %d×%d and %d×%d with strides %d, %d and %d in slices of %d, %d and %d", p.M,
			p.K, p.N, p.K, p.LDA, p.LDB, p.LDC, len(p.A), len(p.B), len(p.C)))
	}
	if p.M == 0 || p.N == 0 {
		return
	}
	w := bytePool.Get().(*byteWorkspace)
	w.multiply(currentKernels(), &p)
	bytePool.Put(w)
}

// byteMatrix reports whether a rows×cols matrix with stride ld is valid and fits a slice of the given length.
func byteMatrix(rows, cols, ld, length int) bool {
	return rows >= 0 && cols >= 0 && ld >= cols && (rows == 0 || length >= (rows-1)*ld+cols)
}

// multiply computes the product p. It packs every block of B once, and for each of them all blocks of A.
func (w *byteWorkspace) multiply(pathKernels *kernels, p *ByteProduct) {
	micro := &pathKernels.bytes
	words := micro.words(p.K)
	limit := max(micro.mr, micro.nr, blockBytes/max(4*words, 1))
	mc, nc := blockSize(p.M, limit/micro.mr*micro.mr, micro.mr), blockSize(p.N, limit/micro.nr*micro.nr, micro.nr)
	for j := 0; j < p.N; j += nc {
		cols := min(nc, p.N-j)
		w.b = grow(w.b, 2*nc*words) // wide kernels need two words for every four bytes
		packBytes(pathKernels, w.b, p.B[j*p.LDB:], p.LDB, panelShape{cols, p.K, micro.nr})
		w.start = grow(w.start, nc)
		clear(w.start)
		if micro.shifted {
			for column := range cols {
				w.start[column] = 128 * byteSum(p.B[(j+column)*p.LDB:][:p.K])
			}
		}
		for i := 0; i < p.M; i += mc {
			rows := min(mc, p.M-i)
			w.a = grow(w.a, 2*mc*words)
			if micro.depth > 1 {
				packRows(w.a, p.A[i*p.LDA:], p.LDA, panelShape{rows, p.K, words})
			} else {
				packBytes(pathKernels, w.a, p.A[i*p.LDA:], p.LDA, panelShape{rows, p.K, micro.mr})
			}
			if micro.shifted {
				for word := range mc * words {
					w.a[word] ^= 0x80808080 // subtracts 128 from each byte
				}
			}
			w.multiplyBlocks(micro, words, ByteProduct{M: rows, N: cols, C: p.C[i*p.LDC+j:], LDC: p.LDC})
		}
	}
}

// words returns the number of words that a panel needs for k bytes of a row.
func (b *byteKernel) words(k int) int { return (max(k, 1) + 4*b.depth - 1) / (4 * b.depth) * b.depth }

// packRows packs shape.count rows of shape.k bytes one after the other, with shape.width words for each. Bytes beyond
// the k-th may have any value, since the other factor is zero there.
func packRows(dst []uint32, src []uint8, ld int, shape panelShape) {
	dstBytes := view[uint8](dst)
	for i := range shape.count {
		copy(dstBytes[4*i*shape.width:], src[i*ld:i*ld+shape.k])
	}
}

// multiplyBlocks multiplies the packed blocks, tile by tile, and stores the result in C of p, M×N. A tile that crosses
// the border of C is computed in w.tile, from which the elements inside C are copied.
func (w *byteWorkspace) multiplyBlocks(micro *byteKernel, words int, p ByteProduct) {
	m, n, c, ldc := p.M, p.N, p.C, p.LDC
	if micro.wide {
		words *= 2
	}
	w.tile = grow(w.tile, micro.mr*micro.nr)
	for j := 0; j < n; j += micro.nr {
		b, cols := unsafe.SliceData(w.b[j*words:]), min(micro.nr, n-j)
		for i := 0; i < m; i += micro.mr {
			a, rows := unsafe.SliceData(w.a[i*words:]), min(micro.mr, m-i)
			if rows == micro.mr && cols == micro.nr {
				micro.mul(words, a, b, &w.start[j], &c[i*ldc+j], ldc)
				continue
			}
			micro.mul(words, a, b, &w.start[j], &w.tile[0], micro.nr)
			for r := range rows {
				copy(c[(i+r)*ldc+j:][:cols], w.tile[r*micro.nr:])
			}
		}
	}
}

// packBytes packs shape.count rows of shape.k bytes in panels of shape.width rows, with four bytes in each word, and
// pads each row with zero words. For wide kernels, bytes 0 and 2 of such a word form one word of 16-bit numbers, and
// bytes 1 and 3 another. If the last panel has fewer rows, the missing ones may have any value, since their results are
// not used.
func packBytes(pathKernels *kernels, dst []uint32, src []uint8, ld int, shape panelShape) {
	n, k, w := shape.count, shape.k, shape.width
	words, wholeWords := pathKernels.bytes.words(k), k/4
	steps := (n + w - 1) / w * words // number of steps, of w words each
	for i := 0; i < n; i += w {
		panel, rows := dst[i*words:(i+w)*words], min(w, n-i)
		clear(panel[wholeWords*w:])
		if srcRows := src[i*ld:]; ld%4 == 0 && wholeWords > 0 {
			// The routines that pack float32 only copy 32-bit words, so they can pack bytes too.
			copyKernel := kernel[float32]{pack4: pathKernels.f32.pack4, pack2: pathKernels.f32.pack2}
			packAcross(copyKernel, view[float32](panel), view[float32](srcRows), ld/4, panelShape{rows, wholeWords, w})
		} else {
			for r := range rows {
				for p := range wholeWords {
					panel[p*w+r] = binary.NativeEndian.Uint32(srcRows[r*ld+4*p:])
				}
			}
		}
		for r := 0; r < rows && k%4 > 0; r++ {
			var tail [4]uint8
			copy(tail[:], src[(i+r)*ld+4*wholeWords:(i+r)*ld+k])
			panel[wholeWords*w+r] = binary.NativeEndian.Uint32(tail[:])
		}
	}
	if !pathKernels.bytes.wide {
		return
	}
	// Words expand to twice their size in place, so go from the end: panel by panel, step by step.
	for step := steps - 1; step >= 0; step-- {
		for r := w - 1; r >= 0; r-- {
			word := dst[step*w+r]
			dst[2*step*w+r], dst[(2*step+1)*w+r] = word&0x00ff00ff, word>>8&0x00ff00ff
		}
	}
}

// view returns the memory of v as numbers of another type. The result has as many complete numbers as fit, and need not
// be aligned.
func view[D, S any](v []S) []D {
	return unsafe.Slice((*D)(unsafe.Pointer(unsafe.SliceData(v))),
		len(v)*int(unsafe.Sizeof(*new(S)))/int(unsafe.Sizeof(*new(D))))
}

// byteSum returns the sum of at most MaxBytesK bytes. It adds eight bytes at a time, in four sums of 16 bits.
func byteSum(v []uint8) (sum int32) {
	const even = 0x00ff00ff00ff00ff
	for len(v) >= 8 {
		chunk := v[:min(len(v)&^7, 8*128)] // 128·2·255 < 2¹⁶
		v = v[len(chunk):]
		var sums uint64
		for ; len(chunk) >= 8; chunk = chunk[8:] {
			word := binary.LittleEndian.Uint64(chunk)
			sums += word&even + word>>8&even
		}
		sums = sums&0x0000ffff0000ffff + sums>>16&0x0000ffff0000ffff
		sum += int32(uint32(sums)) + int32(sums>>32)
	}
	for _, number := range v {
		sum += int32(number)
	}
	return sum
}
