package points

import "sort"

// realNumber is a type of dense coordinates.
type realNumber interface{ float32 | float64 }

// RowsTo writes the n points of dimension d to dst as dense rows: coordinate j of point i to dst[i·ld+j]. The stride
// (leading dimension) ld must be at least d.
func RowsTo(x Points, dst []float64, ld int) {
	_, d := x.Dims()
	columnsTo(dst, ld, x, 0, d)
}

// RowsTo32 is RowsTo with coordinates rounded to float32.
func RowsTo32(x Points, dst []float32, ld int) {
	_, d := x.Dims()
	columnsTo(dst, ld, x, 0, d)
}

// columnsTo writes columns c0, …, c1-1 of x to dst as dense rows of stride ld.
func columnsTo[T realNumber](dst []T, ld int, x Points, c0, c1 int) {
	x, _ = SplitFactors(x)
	switch x := x.(type) {
	case *Dense:
		for i := range x.N {
			convert(dst[i*ld:i*ld+c1-c0], x.Row(i)[c0:c1])
		}
	case *Dense32:
		for i := range x.N {
			convert(dst[i*ld:i*ld+c1-c0], x.Row(i)[c0:c1])
		}
	case *Bytes:
		for i := range x.N {
			scaleTo(dst[i*ld:i*ld+c1-c0], x.Row(i)[c0:c1], x.Scale)
		}
	case *CSR:
		for i := range x.N {
			out := dst[i*ld : i*ld+c1-c0]
			clear(out)
			col, val := x.Row(i)
			k := 0
			if c0 > 0 {
				k = sort.Search(len(col), func(k int) bool { return int(col[k]) >= c0 })
			}
			for ; k < len(col) && int(col[k]) < c1; k++ {
				out[int(col[k])-c0] = T(val[k])
			}
		}
	case *Shifted:
		shiftedTo(dst, ld, x, c0, c1)
	default:
		convertByRow(dst, ld, x, c0, c1)
	}
}

// shiftedTo is columnsTo for shifted points. Dense points are handled directly, other points row by row.
func shiftedTo[T realNumber](dst []T, ld int, x *Shifted, c0, c1 int) {
	c := x.C[c0:c1]
	switch original := x.X.(type) {
	case *Dense:
		for i := range original.N {
			subtract(dst[i*ld:i*ld+c1-c0], original.Row(i)[c0:c1], c)
		}
	case *Dense32:
		for i := range original.N {
			subtract(dst[i*ld:i*ld+c1-c0], original.Row(i)[c0:c1], c)
		}
	default:
		convertByRow(dst, ld, x, c0, c1)
	}
}

// convert sets dst to src in another number type.
func convert[T, S realNumber](dst []T, src []S) {
	for j, v := range src {
		dst[j] = T(v)
	}
}

// subtract sets dst = src − c, computed in float64.
func subtract[T, S realNumber](dst []T, src []S, c []float64) {
	for j, v := range src {
		dst[j] = T(float64(v) - c[j])
	}
}

// convertByRow is columnsTo for points of any type. It reads whole rows through RowTo, which is slow.
func convertByRow[T realNumber](dst []T, ld int, x Points, c0, c1 int) {
	n, d := x.Dims()
	row := make([]float64, d)
	for i := range n {
		x.RowTo(row, i)
		convert(dst[i*ld:i*ld+c1-c0], row[c0:c1])
	}
}
