package fourier

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// blockRows is how many points are multiplied together. More take memory that no cache holds, fewer waste the matrix
// product.
const blockRows = 2048

// block is the factors of some points: of each axis cosines and sines up to a frequency.
type block struct {
	rows    int
	factors []blas64.General // one for each axis, rows×width(q_a)
	pairs   blas64.General   // the products of the factors of the first two of three axes
}

// newBlock returns room for the factors of blockRows points up to the frequencies q.
func newBlock(q []int) *block {
	b := &block{}
	for _, top := range q {
		w := width(top)
		b.factors = append(b.factors, blas64.General{Rows: blockRows, Cols: w, Stride: w, Data: make([]float64, blockRows*w)})
	}
	if len(q) == MaxDim {
		w := width(q[0]) * width(q[1])
		b.pairs = blas64.General{Rows: blockRows, Cols: w, Stride: w, Data: make([]float64, blockRows*w)}
	}
	return b
}

// fill computes the factors of points begin, …, end−1.
func (s *Series) fill(ctx context.Context, b *block, x points.Points, begin, end int, q []int) error {
	b.rows = end - begin
	const chunk = 128
	d := len(s.axes)
	return accel.ForEach(ctx, (b.rows+chunk-1)/chunk, func(_, c int) {
		point := make([]float64, d)
		for i := c * chunk; i < min((c+1)*chunk, b.rows); i++ {
			x.RowTo(point, begin+i)
			for a := range s.axes {
				f := b.factors[a]
				cosinesAndSines(f.Data[i*f.Stride:(i+1)*f.Stride], s.axes[a].angle(point[a]), q[a])
			}
			if d == MaxDim {
				b.multiplyPairs(i)
			}
		}
	})
}

// multiplyPairs sets row i of pairs to the products of its factors of the first two axes.
func (b *block) multiplyPairs(i int) {
	f0, f1 := b.factors[0], b.factors[1]
	dst, second := b.pairs.Data[i*b.pairs.Stride:], f1.Data[i*f1.Stride:(i+1)*f1.Stride]
	for k, v := range f0.Data[i*f0.Stride : (i+1)*f0.Stride] {
		for l, w := range second {
			dst[k*len(second)+l] = v * w
		}
	}
}

// split returns the factors as a matrix product takes them: the leading one, whose columns are the leading indices of a
// tensor, and the trailing one, whose columns are the last index. In one dimension the trailing one is a column of ones.
func (b *block) split() (leading, trailing blas64.General) {
	switch len(b.factors) {
	case 1:
		leading, trailing = b.factors[0], ones
	case 2:
		leading, trailing = b.factors[0], b.factors[1]
	default:
		leading, trailing = b.pairs, b.factors[2]
	}
	leading.Rows, trailing.Rows = b.rows, b.rows
	return leading, trailing
}

// ones is a column of ones.
var ones = func() blas64.General {
	g := blas64.General{Rows: blockRows, Cols: 1, Stride: 1, Data: make([]float64, blockRows)}
	for i := range g.Data {
		g.Data[i] = 1
	}
	return g
}()

// tensors returns, for each column v_j of the n×t matrix v, the tensor Σ_i v_ij ⊗_a (cos, sin)(q θ_ia), q = 0, …, top_a,
// in row-major order. A nil v is a column of ones. The sums run over the blocks in their order, so that the bits do not
// depend on the number of threads.
func (s *Series) tensors(ctx context.Context, x points.Points, v *mat.Dense, top []int) ([][]float64, error) {
	n, _ := x.Dims()
	columns := 1
	if v != nil {
		_, columns = v.Dims()
	}
	b := newBlock(top)
	leading, trailing := b.split()
	sums := make([][]float64, columns)
	for j := range sums {
		sums[j] = make([]float64, leading.Cols*trailing.Cols)
	}
	scaled := blas64.General{Cols: trailing.Cols, Stride: trailing.Cols, Data: make([]float64, blockRows*trailing.Cols)}
	for begin := 0; begin < n; begin += blockRows {
		if err := s.fill(ctx, b, x, begin, min(begin+blockRows, n), top); err != nil {
			return nil, err
		}
		leading, trailing = b.split()
		for j := range sums {
			factor := trailing
			if v != nil {
				scaled.Rows = b.rows
				for i := range b.rows {
					f := v.At(begin+i, j)
					for k, w := range trailing.Data[i*trailing.Stride : i*trailing.Stride+trailing.Cols] {
						scaled.Data[i*scaled.Stride+k] = f * w
					}
				}
				factor = scaled
			}
			blas64.Gemm(blas.Trans, blas.NoTrans, 1, leading, factor, 1,
				blas64.General{Rows: leading.Cols, Cols: trailing.Cols, Stride: trailing.Cols, Data: sums[j]})
		}
	}
	return sums, nil
}

// frequencies returns the highest frequency along each axis times a factor.
func (s *Series) frequencies(factor int) []int {
	top := make([]int, len(s.axes))
	for a := range s.axes {
		top[a] = factor * (len(s.axes[a].weights) - 1)
	}
	return top
}

// position returns the place of a mode in a tensor with the frequencies of the series.
func (s *Series) position(m *mode) int {
	place := 0
	for a := range s.axes {
		place = place*width(len(s.axes[a].weights)-1) + m.index[a]
	}
	return place
}

// Eval returns Φβ for any points of the box, β M×t: decision values where β solves Normal's equations.
func (s *Series) Eval(ctx context.Context, x points.Points, beta *mat.Dense) (*mat.Dense, error) {
	n, _ := x.Dims()
	_, columns := beta.Dims()
	top := s.frequencies(1)
	b := newBlock(top)
	leading, trailing := b.split()
	values := mat.NewDense(n, columns, nil)
	coefficients := blas64.General{Rows: leading.Cols, Cols: trailing.Cols, Stride: trailing.Cols,
		Data: make([]float64, leading.Cols*trailing.Cols)}
	product := blas64.General{Cols: leading.Cols, Stride: leading.Cols, Data: make([]float64, blockRows*leading.Cols)}
	for j := range columns {
		clear(coefficients.Data)
		for k := range s.modes {
			coefficients.Data[s.position(&s.modes[k])] = s.modes[k].root * beta.At(k, j)
		}
		for begin := 0; begin < n; begin += blockRows {
			if err := s.fill(ctx, b, x, begin, min(begin+blockRows, n), top); err != nil {
				return nil, err
			}
			leading, trailing = b.split()
			product.Rows = b.rows
			blas64.Gemm(blas.NoTrans, blas.Trans, 1, trailing, coefficients, 0, product)
			for i := range b.rows {
				sum := blas64.Dot(blas64.Vector{N: leading.Cols, Inc: 1, Data: leading.Data[i*leading.Stride:]},
					blas64.Vector{N: leading.Cols, Inc: 1, Data: product.Data[i*product.Stride:]})
				values.Set(begin+i, j, sum)
			}
		}
	}
	return values, nil
}
