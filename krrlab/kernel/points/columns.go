package points

import "sort"

// float is the type of an entry.
type float interface{ float32 | float64 }

// Panel64To writes all points to dst as dense rows with stride ld ≥ d.
func Panel64To(x Points, dst []float64, ld int) {
	_, d := x.Dims()
	columnsTo(dst, ld, x, 0, d)
}

// Panel32To is Panel64To rounded to float32.
func Panel32To(x Points, dst []float32, ld int) {
	_, d := x.Dims()
	columnsTo(dst, ld, x, 0, d)
}

// columnsTo writes columns c0, …, c1-1 of x to dst as dense rows of stride ld.
func columnsTo[T float](dst []T, ld int, x Points, c0, c1 int) {
	x, _ = Split(x)
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
		rowsTo(dst, ld, x, c0, c1)
	}
}

// shiftedTo writes x_i − c for dense points; sparse and unknown ones go by row.
func shiftedTo[T float](dst []T, ld int, x *Shifted, c0, c1 int) {
	c := x.C[c0:c1]
	switch y := x.X.(type) {
	case *Dense:
		for i := range y.N {
			subtract(dst[i*ld:i*ld+c1-c0], y.Row(i)[c0:c1], c)
		}
	case *Dense32:
		for i := range y.N {
			subtract(dst[i*ld:i*ld+c1-c0], y.Row(i)[c0:c1], c)
		}
	default:
		rowsTo(dst, ld, x, c0, c1)
	}
}

func convert[T, S float](dst []T, src []S) {
	for j, v := range src {
		dst[j] = T(v)
	}
}

func subtract[T, S float](dst []T, src []S, c []float64) {
	for j, v := range src {
		dst[j] = T(float64(v) - c[j])
	}
}

// rowsTo is the way of last resort: it reads whole rows through RowTo.
func rowsTo[T float](dst []T, ld int, x Points, c0, c1 int) {
	n, d := x.Dims()
	row := make([]float64, d)
	for i := range n {
		x.RowTo(row, i)
		convert(dst[i*ld:i*ld+c1-c0], row[c0:c1])
	}
}
