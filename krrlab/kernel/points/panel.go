package points

import (
	"fmt"
	"slices"
)

// Panel is a block of points with their squared norms. A tile of a kernel that depends on xᵀz, ‖x‖² and ‖z‖² only is
// computed from two panels.
type Panel struct {
	X       Points    // the points without weights
	Norms   []float64 // ‖x_i‖²
	Factors []float64 // √w_i of Weighted points, which multiply kernel values; nil means ones
}

// NewPanel returns the panel of x, with squared norms in float64.
func NewPanel(x Points) Panel { return newPanel(x, sumSq) }

// newPanel returns the panel of x with squared norms computed by sqNorm.
func newPanel(x Points, sqNorm func(row []float64) float64) Panel {
	x, factors := Split(x)
	return Panel{x, squaredNorms(x, sqNorm), factors}
}

// NewPanel32 returns the panel of x with the squared norms of the points *rounded to float32*, accumulated in float64.
// These are the right norms for inner products of the rounded points (Inner32): ‖x‖²+‖z‖²−2xᵀz is then the squared
// distance of the rounded points. With unit roundoff ε, rounding the points changes the squared distance by about
// 2ε‖x−z‖·‖x‖, whereas norms of the unrounded points would add an error of ε‖x‖². Rounding in the inner products comes
// in addition to both. Bytes are not rounded.
func NewPanel32(x Points) Panel {
	return newPanel(x, sumSq32)
}

// sumSq32 returns the sum of squares of the numbers rounded to float32.
func sumSq32(row []float64) (s float64) {
	for _, v := range row {
		r := float64(float32(v))
		s += r * r
	}
	return s
}

// Len returns the number of points.
func (p Panel) Len() int { return len(p.Norms) }

// Slice returns points i, …, j-1 of the panel. The result shares memory with p.
func (p Panel) Slice(i, j int) Panel {
	s := Panel{X: p.X.Slice(i, j), Norms: p.Norms[i:j]}
	if p.Factors != nil {
		s.Factors = p.Factors[i:j]
	}
	return s
}

// Mean returns the mean of the points, a vector of length d, or zeros if there is no point. The sums are computed in
// float64.
func Mean(x Points) []float64 {
	n, d := x.Dims()
	mean := make([]float64, d)
	if n == 0 {
		return mean
	}
	var row []float64
	for i := range n {
		col, val := storedValues(x, i, &row)
		if col == nil {
			for j, v := range val {
				mean[j] += v
			}
			continue
		}
		for k, j := range col {
			mean[j] += val[k]
		}
	}
	for j := range mean {
		mean[j] /= float64(n)
	}
	return mean
}

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

// Concat returns the points of a followed by those of b, without weights, in the representation of a if b fits it, and
// in float64 otherwise. It panics if the dimensions differ.
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
				slices.Concat(withoutGaps(x.Data, na, d, x.Stride), withoutGaps(z.Data, nb, d, z.Stride)))
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
	Panel64To(a, out.Data, d)
	Panel64To(b, out.Data[na*d:], d)
	return out
}
