package gemm

// Packed, a block is a row of panels, each w vectors of the block wide (rows of
// op(A), columns of op(B)): element p of vector i is dst[i/w·w·k + p·w + i%w]. The
// last panel is filled up with zeros, which the kernel computes with but never
// writes.

// packAlong packs n vectors of k elements, element p of vector i being src[p·ld+i].
func packAlong[T real](dst, src []T, ld, n, k, w int) {
	for i := 0; i < n; i += w {
		panel := dst[i*k : i*k+w*k]
		if n-i < w {
			for p := range k {
				to := panel[p*w : p*w+w]
				clear(to[copy(to, src[p*ld+i:p*ld+n]):])
			}
			continue
		}
		switch w {
		case 6:
			for p := range k {
				*(*[6]T)(panel[p*6:]) = *(*[6]T)(src[p*ld+i:])
			}
		case 8:
			for p := range k {
				*(*[8]T)(panel[p*8:]) = *(*[8]T)(src[p*ld+i:])
			}
		case 16:
			for p := range k {
				*(*[16]T)(panel[p*16:]) = *(*[16]T)(src[p*ld+i:])
			}
		default:
			for p := range k {
				copy(panel[p*w:p*w+w], src[p*ld+i:])
			}
		}
	}
}

// packAcross packs n vectors of k elements, element p of vector i being src[i·ld+p].
func packAcross[T real](dst, src []T, ld, n, k, w int) {
	for i := 0; i < n; i += w {
		panel := dst[i*k : i*k+w*k]
		r, rows := 0, min(w, n-i)
		for ; r+2 <= rows; r += 2 {
			x0 := src[(i+r)*ld : (i+r)*ld+k]
			x1 := src[(i+r+1)*ld : (i+r+1)*ld+k]
			if r+4 <= rows {
				x2 := src[(i+r+2)*ld : (i+r+2)*ld+k]
				x3 := src[(i+r+3)*ld : (i+r+3)*ld+k]
				for p := range x0 {
					*(*[4]T)(panel[p*w+r:]) = [4]T{x0[p], x1[p], x2[p], x3[p]}
				}
				r += 2
				continue
			}
			for p := range x0 {
				*(*[2]T)(panel[p*w+r:]) = [2]T{x0[p], x1[p]}
			}
		}
		for ; r < w; r++ {
			var x []T
			if r < rows {
				x = src[(i+r)*ld : (i+r)*ld+k]
			}
			for p := range k {
				if x != nil {
					panel[p*w+r] = x[p]
				} else {
					panel[p*w+r] = 0
				}
			}
		}
	}
}
