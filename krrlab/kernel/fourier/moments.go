package fourier

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// blockRows is how many points are multiplied together. More take memory that no cache holds, fewer waste the matrix
// product.
const blockRows = 2048

// block is the factors of some points: of each axis cosines and sines up to a frequency. The columns of the frequencies
// up to a lower one come first.
type block struct {
	begin, rows int
	factors     []blas64.General // one for each axis, rows×width(q_a)
	pairs       blas64.General   // the products of the factors of the first two of three axes
	scaled      blas64.General   // the last factor times a number for each row
	product     blas64.General   // the last factor times coefficients
}

func general(rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, rows*cols)}
}

// newBlock returns room for the factors of blockRows points up to the frequencies q.
func newBlock(q []int) *block {
	b := &block{}
	for _, top := range q {
		b.factors = append(b.factors, general(blockRows, width(top)))
	}
	return b
}

// width returns the columns of a factor up to frequency q: cos 0, sin 0, cos 1, sin 1, …, sin q.
func width(q int) int { return 2 * (q + 1) }

// cosinesAndSines sets row, of width(q) numbers, to cos(jθ) and sin(jθ), j = 0, …, q, by e^{i(a+b)θ} = e^{iaθ}e^{ibθ}
// with a a power of two. The error is about j roundings, as that of the angle is.
func cosinesAndSines(row []float64, theta float64) {
	row[0], row[1] = 1, 0
	if len(row) < 4 {
		return
	}
	row[3], row[2] = math.Sincos(theta)
	for filled := 4; filled < len(row); {
		// e^{iaθ} for the largest lower a
		c, s := row[filled-2], row[filled-1]
		fresh := row[filled:min(2*filled-2, len(row))]
		lower := row[2 : 2+len(fresh)]
		for k := 0; k+1 < len(fresh); k += 2 {
			x, y := lower[k], lower[k+1]
			fresh[k], fresh[k+1] = x*c-y*s, y*c+x*s
		}
		filled += len(fresh)
	}
}

// scan calls use for one block of points after the other, with its factors up to the frequencies top.
func (s *Series) scan(ctx context.Context, x points.Points, top []int, use func(b *block)) error {
	n, _ := x.Dims()
	b := newBlock(top)
	const chunk = 128
	d := len(s.axes)
	for b.begin = 0; b.begin < n; b.begin += blockRows {
		b.rows = min(blockRows, n-b.begin)
		err := accel.ForEach(ctx, (b.rows+chunk-1)/chunk, func(_, c int) {
			point := make([]float64, d)
			for i := c * chunk; i < min((c+1)*chunk, b.rows); i++ {
				x.RowTo(point, b.begin+i)
				for a := range s.axes {
					f := b.factors[a]
					cosinesAndSines(f.Data[i*f.Stride:(i+1)*f.Stride], s.axes[a].angle(point[a]))
				}
			}
		})
		if err != nil {
			return err
		}
		use(b)
	}
	return nil
}

// split returns the factors up to the frequencies q as a matrix product takes them: the leading one, whose columns are
// the leading indices of a tensor, and the trailing one, whose columns are the last index. In one dimension the
// trailing one is a column of ones.
func (b *block) split(q []int) (leading, trailing blas64.General) {
	factor := func(a int) blas64.General {
		f := b.factors[a]
		f.Rows, f.Cols = b.rows, width(q[a])
		return f
	}
	switch len(b.factors) {
	case 1:
		trailing = ones
		trailing.Rows = b.rows
		return factor(0), trailing
	case 2:
		return factor(0), factor(1)
	}
	return b.multiplyPairs(factor(0), factor(1)), factor(2)
}

// multiplyPairs returns the products of the columns of two factors.
func (b *block) multiplyPairs(f0, f1 blas64.General) blas64.General {
	cols := f0.Cols * f1.Cols
	if len(b.pairs.Data) < blockRows*cols {
		b.pairs = general(blockRows, cols)
	}
	pairs := blas64.General{Rows: b.rows, Cols: cols, Stride: cols, Data: b.pairs.Data}
	_ = accel.ForEach(context.Background(), b.rows, func(_, i int) {
		dst, row := pairs.Data[i*cols:(i+1)*cols], f1.Data[i*f1.Stride:i*f1.Stride+f1.Cols]
		for k, v := range f0.Data[i*f0.Stride : i*f0.Stride+f0.Cols] {
			for l, w := range row {
				dst[k*len(row)+l] = v * w
			}
		}
	})
	return pairs
}

// ones is a column of ones.
var ones = func() blas64.General {
	g := general(blockRows, 1)
	for i := range g.Data {
		g.Data[i] = 1
	}
	return g
}()

// add adds to a tensor Σ_i v_i ⊗_a (cos, sin)(q θ_ia) over the points of the block, for the frequencies up to q. value
// returns v_i for a row of the block; nil means 1.
func (b *block) add(tensor []float64, q []int, value func(i int) float64) {
	leading, trailing := b.split(q)
	cols := trailing.Cols
	if value != nil {
		if len(b.scaled.Data) < blockRows*cols {
			b.scaled = general(blockRows, cols)
		}
		scaled := blas64.General{Rows: b.rows, Cols: cols, Stride: cols, Data: b.scaled.Data}
		for i := range b.rows {
			f, dst := value(i), scaled.Data[i*cols:(i+1)*cols]
			for k, w := range trailing.Data[i*trailing.Stride : i*trailing.Stride+cols] {
				dst[k] = f * w
			}
		}
		trailing = scaled
	}
	multiplyTransposed(leading, trailing, 1, blas64.General{Rows: leading.Cols, Cols: cols, Stride: cols, Data: tensor})
}

// eval calls use with each row of the block and Σ_q tensor_q ∏_a (cos, sin)(q_a θ_ia).
func (b *block) eval(tensor []float64, q []int, use func(i int, value float64)) {
	leading, trailing := b.split(q)
	if len(b.product.Data) < blockRows*leading.Cols {
		b.product = general(blockRows, leading.Cols)
	}
	product := blas64.General{Rows: b.rows, Cols: leading.Cols, Stride: leading.Cols, Data: b.product.Data}
	coefficients := blas64.General{Rows: leading.Cols, Cols: trailing.Cols, Stride: trailing.Cols, Data: tensor}
	accel.Each((b.rows+pieceRows-1)/pieceRows, func(_, k int) { // on one thread each, as in multiplyTransposed
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, submatrix(trailing, k*pieceRows, pieceRows, 0, trailing.Cols), coefficients, 0,
			submatrix(product, k*pieceRows, pieceRows, 0, product.Cols))
	})
	for i := range b.rows {
		use(i, blas64.Dot(blas64.Vector{N: leading.Cols, Inc: 1, Data: leading.Data[i*leading.Stride:]},
			blas64.Vector{N: leading.Cols, Inc: 1, Data: product.Data[i*product.Stride:]}))
	}
}

// frequencies returns the highest frequency along each axis times a factor.
func (s *Series) frequencies(factor int) []int {
	top := make([]int, len(s.axes))
	for a := range s.axes {
		top[a] = factor * s.axes[a].top
	}
	return top
}

// cells returns the size of a tensor with the frequencies up to q.
func cells(q []int) int {
	size := 1
	for _, top := range q {
		size *= width(top)
	}
	return size
}

// position returns the place of a mode in a tensor with the frequencies of the series.
func (s *Series) position(m *mode) int {
	place := 0
	for a := range s.axes {
		place = place*width(s.axes[a].top) + m.index[a]
	}
	return place
}

// coefficients returns the tensors whose values are those of Φβ, one for each column of β.
func (s *Series) coefficients(beta *mat.Dense) [][]float64 {
	_, t := beta.Dims()
	all := make([][]float64, t)
	for j := range all {
		all[j] = make([]float64, cells(s.frequencies(1)))
		for k := range s.modes {
			all[j][s.position(&s.modes[k])] = s.modes[k].root * beta.At(k, j)
		}
	}
	return all
}

// project returns ΦᵀV for the tensors of the columns of V.
func (s *Series) project(sums [][]float64) *mat.Dense {
	b := mat.NewDense(len(s.modes), len(sums), nil)
	for k := range s.modes {
		m := &s.modes[k]
		for j := range sums {
			b.Set(k, j, m.root*sums[j][s.position(m)])
		}
	}
	return b
}

// tensors returns t tensors of zeros with the frequencies of the series.
func (s *Series) tensors(t int) [][]float64 {
	all := make([][]float64, t)
	for j := range all {
		all[j] = make([]float64, cells(s.frequencies(1)))
	}
	return all
}

// Project returns ΦᵀV, M×t, for V n×t. The sums run over the points in blocks in their order, so that the bits do not
// depend on the number of threads.
func (s *Series) Project(ctx context.Context, x points.Points, v *mat.Dense) (*mat.Dense, error) {
	_, t := v.Dims()
	sums, top := s.tensors(t), s.frequencies(1)
	err := s.scan(ctx, x, top, func(b *block) {
		for j := range sums {
			b.add(sums[j], top, func(i int) float64 { return v.At(b.begin+i, j) })
		}
	})
	return s.project(sums), err
}

// Eval returns Φβ for any points of the box, β M×t: decision values where β solves Normal's equations.
func (s *Series) Eval(ctx context.Context, x points.Points, beta *mat.Dense) (*mat.Dense, error) {
	n, _ := x.Dims()
	tensors, top := s.coefficients(beta), s.frequencies(1)
	values := mat.NewDense(n, len(tensors), nil)
	return values, s.scan(ctx, x, top, func(b *block) {
		for j := range tensors {
			b.eval(tensors[j], top, func(i int, f float64) { values.Set(b.begin+i, j, f) })
		}
	})
}

// EvalProject returns ΦᵀV for V_ij = update(i, j, (Φβ)_ij), in one pass over the points. It calls update once for each
// entry, row after row within blocks of one column.
func (s *Series) EvalProject(ctx context.Context, x points.Points, beta *mat.Dense,
	update func(i, j int, f float64) float64) (*mat.Dense, error) {
	tensors, top := s.coefficients(beta), s.frequencies(1)
	sums, v := s.tensors(len(tensors)), make([]float64, blockRows)
	err := s.scan(ctx, x, top, func(b *block) {
		for j := range tensors {
			b.eval(tensors[j], top, func(i int, f float64) { v[i] = update(b.begin+i, j, f) })
			b.add(sums[j], top, func(i int) float64 { return v[i] })
		}
	})
	return s.project(sums), err
}
