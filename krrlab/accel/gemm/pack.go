package gemm

// Packed, a block is a row of panels, each w vectors of the block wide (rows of
// op(A), columns of op(B)): element p of vector i is dst[i/w·w·k + p·w + i%w]. The
// last panel is filled up with zeros, which the kernel computes with but never
// writes.

// packAlong packs n vectors of k elements, element p of vector i being src[p·ld+i].
// f has the routine to do so, or none.
func packAlong[T real](f kernel[T], dst, src []T, ld, n, k, w int) {
	for i := 0; i < n; i += w {
		panel := dst[i*k : i*k+w*k]
		if f.pack != nil && w == f.nr && w <= n-i {
			f.pack(k, &src[i], ld, &panel[0])
			continue
		}
		cols := min(w, n-i)
		if cols == 6 && w == 6 { // mr of AVX2; copy would take three times as long
			for p := range k {
				*(*[6]T)(panel[p*6:]) = *(*[6]T)(src[p*ld+i:])
			}
			continue
		}
		for p := range k {
			to := panel[p*w : p*w+w]
			copy(to, src[p*ld+i:p*ld+i+cols])
			clear(to[cols:])
		}
	}
}

// packAcross packs n vectors of k elements, element p of vector i being src[i·ld+p].
// f has the routines to do so, or none.
func packAcross[T real](f kernel[T], dst, src []T, ld, n, k, w int) {
	for i := 0; i < n; i += w {
		panel := dst[i*k : i*k+w*k]
		r, rows := 0, min(w, n-i)
		for ; f.pack4 != nil && r+4 <= rows; r += 4 {
			f.pack4(k, &src[(i+r)*ld], ld, &panel[r], w)
		}
		for ; f.pack2 != nil && r+2 <= rows; r += 2 {
			f.pack2(k, &src[(i+r)*ld], ld, &panel[r], w)
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
