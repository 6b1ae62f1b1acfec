package gemm

// A packed block is a sequence of panels. Each panel holds w = width vectors of k elements (rows of op(A) or columns of
// op(B)): element p of vector i is dst[i/w·w·k + p·w + i%w]. The last panel is padded with zeros. The kernel computes
// with the padding, but its results there are never written to C.

// panelShape describes a packed block: count vectors of k elements, in panels of width vectors.
type panelShape struct{ count, k, width int }

// pack packs the vectors of a block, which are the columns of src if vectorsAreColumns, and
// otherwise its rows. Element p of
// vector i is at row p0+p and column i0+i, or at row i0+i and column p0+p.
func pack[T float](micro kernel[T], dst, src []T, ld, i0, p0 int, vectorsAreColumns bool, shape panelShape) {
	if vectorsAreColumns {
		packAlong(micro, dst, src[p0*ld+i0:], ld, shape)
	} else {
		packAcross(micro, dst, src[i0*ld+p0:], ld, shape)
	}
}

// packAlong packs the vectors of a block, where element p of vector i is src[p·ld+i]. It uses the routine micro.pack
// unless that is nil.
func packAlong[T float](micro kernel[T], dst, src []T, ld int, shape panelShape) {
	n, k, w := shape.count, shape.k, shape.width
	for i := 0; i < n; i += w {
		panel := dst[i*k : i*k+w*k]
		if micro.pack != nil && w == micro.nr && w <= n-i {
			micro.pack(k, &src[i], ld, &panel[0])
			continue
		}
		cols := min(w, n-i)
		if cols == 6 && w == 6 { // mr of the AVX2 kernels; copy would take three times as long
			for p := range k {
				*(*[6]T)(panel[p*6:]) = *(*[6]T)(src[p*ld+i:])
			}
			continue
		}
		for p := range k {
			step := panel[p*w : p*w+w]
			copy(step, src[p*ld+i:p*ld+i+cols])
			clear(step[cols:])
		}
	}
}

// packAcross packs the vectors of a block, where element p of vector i is src[i·ld+p]. It uses the routines
// micro.pack4 and micro.pack2 unless they are nil.
func packAcross[T float](micro kernel[T], dst, src []T, ld int, shape panelShape) {
	n, k, w := shape.count, shape.k, shape.width
	for i := 0; i < n; i += w {
		panel := dst[i*k : i*k+w*k]
		r, rows := 0, min(w, n-i)
		for ; micro.pack4 != nil && r+4 <= rows; r += 4 {
			micro.pack4(k, &src[(i+r)*ld], ld, &panel[r], w)
		}
		for ; micro.pack2 != nil && r+2 <= rows; r += 2 {
			micro.pack2(k, &src[(i+r)*ld], ld, &panel[r], w)
		}
		for ; r < rows; r++ {
			for p, v := range src[(i+r)*ld : (i+r)*ld+k] {
				panel[p*w+r] = v
			}
		}
		if r < w {
			for p := range k {
				clear(panel[p*w+r : p*w+w])
			}
		}
	}
}
