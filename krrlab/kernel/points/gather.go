package points

import (
	"fmt"
	"slices"
)

// Gather returns a copy of the points idx[0], idx[1], …. The result has the type of x, or *Dense if x has a type that
// this package does not know. Gather panics if an index is out of range.
func Gather(x Points, idx []int) Points {
	n, d := x.Dims()
	for _, i := range idx {
		if i < 0 || i >= n {
			panic(fmt.Sprintf("points: Gather of point %d of %d", i, n))
		}
	}
	switch x := x.(type) {
	case *Dense32:
		out := NewDense32(len(idx), d, nil)
		for k, i := range idx {
			copy(out.Row(k), x.Row(i))
		}
		return out
	case *Bytes:
		out := NewBytes(len(idx), d, x.Scale, nil)
		for k, i := range idx {
			copy(out.Row(k), x.Row(i))
		}
		return out
	case *CSR:
		out := &CSR{N: len(idx), D: d, Ptr: make([]int, 1, len(idx)+1)}
		for _, i := range idx {
			col, val := x.Row(i)
			out.Col = append(out.Col, col...)
			out.Val = append(out.Val, val...)
			out.Ptr = append(out.Ptr, len(out.Val))
		}
		return out
	case *Shifted:
		return &Shifted{Gather(x.X, idx), x.C}
	case *Weighted:
		factors := make([]float64, len(idx))
		for k, i := range idx {
			factors[k] = x.Factors[i]
		}
		return &Weighted{Gather(x.Points, idx), factors}
	}
	out := NewDense(len(idx), d, nil)
	for k, i := range idx {
		x.RowTo(out.Row(k), i)
	}
	return out
}

// Concat returns the points of a followed by those of b, without weights. They are Bytes, Dense32 or CSR if a is and b
// fits, and otherwise Dense in float64. It panics if the dimensions differ.
func Concat(a, b Points) Points {
	na, d := a.Dims()
	nb, db := b.Dims()
	if d != db {
		panic(fmt.Sprintf("points: Concat of dimensions %d and %d", d, db))
	}
	switch x := a.(type) {
	case *Bytes:
		if z, ok := AsBytes(b, x.Scale); ok {
			out := NewBytes(na+nb, d, x.Scale, nil)
			for i := range out.N {
				if i < na {
					copy(out.Row(i), x.Row(i))
				} else {
					copy(out.Row(i), z.Row(i-na))
				}
			}
			return out
		}
	case *Dense32:
		if z, ok := b.(*Dense32); ok {
			return NewDense32(na+nb, d,
				slices.Concat(contiguous(x.Data, na, d, x.Stride), contiguous(z.Data, nb, d, z.Stride)))
		}
	case *CSR:
		if z, ok := b.(*CSR); ok {
			out := &CSR{N: na + nb, D: d, Col: slices.Concat(x.Col[x.Ptr[0]:x.Ptr[na]], z.Col[z.Ptr[0]:z.Ptr[nb]]),
				Val: slices.Concat(x.Val[x.Ptr[0]:x.Ptr[na]], z.Val[z.Ptr[0]:z.Ptr[nb]])}
			for _, p := range x.Ptr {
				out.Ptr = append(out.Ptr, p-x.Ptr[0])
			}
			for _, p := range z.Ptr[1:] {
				out.Ptr = append(out.Ptr, x.NNZ()+p-z.Ptr[0])
			}
			return out
		}
	}
	out := NewDense(na+nb, d, nil)
	RowsTo(a, out.Data, d)
	RowsTo(b, out.Data[na*d:], d)
	return out
}
