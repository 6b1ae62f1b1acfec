package fourier

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// functionCount returns the number of functions of one axis up to the frequency q: cos 0, sin 0, cos θ, …, cos qθ, sin
// qθ.
func functionCount(q int) int { return 2 * (q + 1) }

// cosinesAndSines sets row, of functionCount(q) numbers, to cos(jθ) and sin(jθ), j = 0, …, q. It uses e^{i(a+b)θ} =
// e^{iaθ}e^{ibθ}, where a is a power of two. The error is about j roundings, like the error that the rounding of θ
// causes.
func cosinesAndSines(row []float64, theta float64) {
	row[0], row[1] = 1, 0
	if len(row) < 4 {
		return
	}
	row[3], row[2] = math.Sincos(theta)
	for filled := 4; filled < len(row); {
		cos, sin := row[filled-2], row[filled-1] // cos aθ and sin aθ for the largest frequency a that is set
		added := row[filled:min(2*filled-2, len(row))]
		lower := row[2 : 2+len(added)]
		for k := 0; k+1 < len(added); k += 2 {
			x, y := lower[k], lower[k+1]
			added[k], added[k+1] = x*cos-y*sin, y*cos+x*sin
		}
		filled += len(added)
	}
}

// position returns the index of mode m in a tensor with the frequencies of the series.
func (s *Series) position(m *mode) int {
	index := 0
	for a := range s.axes {
		index = index*functionCount(s.axes[a].topFrequency) + m.index[a]
	}
	return index
}

// coefficients returns, for each column of β, the coefficients of the trigonometric polynomial whose values at the
// points are that column of Φβ.
func (s *Series) coefficients(beta *mat.Dense) []tensor {
	_, t := beta.Dims()
	all := s.tensors(t)
	for j := range all {
		for k := range s.modes {
			all[j].data[s.position(&s.modes[k])] = s.modes[k].root * beta.At(k, j)
		}
	}
	return all
}

// project returns ΦᵀV, M×t. The entries of sums[j] are the sums over i of V_ij times a product of cosines and sines at
// point i. project selects the sums for the products that are modes, and multiplies them by the square roots of the
// weights of the modes.
func (s *Series) project(sums []tensor) *mat.Dense {
	projected := mat.NewDense(len(s.modes), len(sums), nil)
	for k := range s.modes {
		m := &s.modes[k]
		for j := range sums {
			projected.Set(k, j, m.root*sums[j].data[s.position(m)])
		}
	}
	return projected
}

// tensors returns t tensors of zeros with the frequencies of the series.
func (s *Series) tensors(t int) []tensor {
	all := make([]tensor, t)
	for j := range all {
		all[j] = s.newTensor(1)
	}
	return all
}

// Project returns ΦᵀV, M×t, for V n×t. The matrix is not valid if there is an error.
func (s *Series) Project(ctx context.Context, x points.Points, v *mat.Dense) (*mat.Dense, error) {
	_, t := v.Dims()
	sums := s.tensors(t)
	err := s.pass(ctx, x, 1, nil, sums, func(i int, _, weights []float64) { copy(weights, v.RawRowView(i)) })
	return s.project(sums), err
}

// Eval returns Φβ, n×t, for n points and β, M×t. These are predictions if β is from Factor.Solve. Eval panics if a
// point lies outside the box for which the series was built. The matrix is not valid if there is an error.
func (s *Series) Eval(ctx context.Context, x points.Points, beta *mat.Dense) (*mat.Dense, error) {
	n, _ := x.Dims()
	_, t := beta.Dims()
	values := mat.NewDense(n, t, nil)
	return values, s.pass(ctx, x, 1, s.coefficients(beta), nil, func(i int, row, _ []float64) { values.SetRow(i, row) })
}

// EvalProject returns ΦᵀV for V_ij = update(i, j, (Φβ)_ij), in one pass over the points. It calls update once for each
// entry, and for different rows at the same time. The matrix is not valid if there is an error.
func (s *Series) EvalProject(ctx context.Context, x points.Points, beta *mat.Dense,
	update func(i, j int, value float64) float64) (*mat.Dense, error) {
	_, t := beta.Dims()
	sums := s.tensors(t)
	err := s.pass(ctx, x, 1, s.coefficients(beta), sums, func(i int, values, weights []float64) {
		for j, value := range values {
			weights[j] = update(i, j, value)
		}
	})
	return s.project(sums), err
}
