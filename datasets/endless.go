package datasets

import (
	"context"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// endlessDeformation is that of the registry's endless sets. It takes a digit about as far as
// MNIST8M's deformations do: the squared distance of a row to the nearest of MNIST's 60,000
// training digits, pixels in [0, 1], has over 1,000 rows the quartiles 15.6, 22.5 and 29.2;
// over 1,000 rows of MNIST8M they are 16.6, 21.7 and 26.4.
var endlessDeformation = Deformation{Shift: 1, Rotate: 7.5, Alpha: 20, Sigma: 4}

// endlessSeed fixes the registry's endless sets.
const endlessSeed = 1

// Endless is an unending sequence of labelled pictures made of n given ones, after the
// "infinite MNIST" of Loosli, Canu and Bottou (Training invariant support vector machines
// using selective sampling, in Large Scale Kernel Machines, 2007): rows 0 … n−1 are the
// given ones, and row i ≥ n is number i mod n of them under a deformation that is a function
// of the seed and i alone. So any slice can be made without the rows before it, and the
// first rows do not depend on how many follow.
type Endless struct {
	base *Dataset
	side int
	d    Deformation
	g    rng.Stream
	text string
}

// NewEndless returns the sequence made of the pictures of base, square, row by row, with
// values from 0 (the background) to 255.
func NewEndless(base *Dataset, d Deformation, seed uint64) (*Endless, error) {
	side := int(math.Round(math.Sqrt(float64(base.Dim()))))
	switch {
	case side*side != base.Dim():
		return nil, fmt.Errorf("%s: points of %d numbers are no square pictures", base.Name, base.Dim())
	case base.Class == nil:
		return nil, fmt.Errorf("%s: pictures without labels", base.Name)
	case !(d.Shift >= 0 && d.Rotate >= 0 && d.Alpha >= 0 && d.Sigma >= 0) || math.IsInf(d.Shift+d.Rotate+d.Alpha+d.Sigma, 0):
		return nil, fmt.Errorf("%s: a deformation of %v: want no negative number", base.Name, d)
	}
	return &Endless{base, side, d, rng.New(seed).Sub("endless"), fmt.Sprintf("generated from %s: %v, seed %d", base.Name, d, seed)}, nil
}

// Slice returns rows i, …, j−1 of the sequence. It panics if i < 0 or j < i.
func (e *Endless) Slice(ctx context.Context, i, j int) (*Dataset, error) {
	if i < 0 || j < i {
		panic(fmt.Sprintf("datasets: rows %d to %d of an endless sequence", i, j))
	}
	n, d := e.base.X.Dims()
	if need, has := 4*float64(j-i)*float64(d), float64(accel.MemoryAvailable()); has > 0 && need > has {
		return nil, fmt.Errorf("%s: %d rows of %d numbers take %s, more than the machine has: take fewer", e.base.Name, j-i, d, accel.Bytes(int64(need)))
	}
	x := points.NewDense32(j-i, d, nil)
	out := &Dataset{Name: e.base.Name, Task: Classification, X: x, Class: make([]int, j-i), Labels: e.base.Labels, Source: e.base.Source, Scaling: e.base.Scaling}
	if j > n {
		out.Source += "; " + e.text
	}
	const block = 64
	err := accel.ForEach(ctx, (j-i+block-1)/block, func(_, b int) {
		f, src, row := newDeformer(e.d, e.side), make([]float32, d), make([]float64, d)
		for k := b * block; k < min((b+1)*block, j-i); k++ {
			from := (i + k) % n
			out.Class[k] = e.base.Class[from]
			e.base.X.RowTo(row, from)
			for c, v := range row {
				src[c] = float32(v)
			}
			if i+k < n {
				copy(x.Row(k), src)
				continue
			}
			f.apply(x.Row(k), src, e.g.Sub("row", uint64(i+k)))
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
