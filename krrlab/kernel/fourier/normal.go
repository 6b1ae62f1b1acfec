package fourier

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// NormalMatrix is the matrix ΦᵀWΦ of the normal equations, M×M, represented by its moments.
type NormalMatrix struct {
	series  *Series
	moments []float64 // Σ_i w_i ⊗_a (cos, sin)(q θ_ia), q ≤ 2m_a, with the angle θ_ia of coordinate a of point i
	n       int       // number of points
}

// NormalEquations returns ΦᵀWΦ for W = diag(weights), or W = I if weights is nil, and ΦᵀV, M×t, for V n×t, in one pass
// over the n points. For the weighted problem (W^½KW^½ + λI)Ĉ = W^½Y, V is WY.
func (s *Series) NormalEquations(ctx context.Context, x points.Points, weights []float64,
	v *mat.Dense) (*NormalMatrix, *mat.Dense, error) {
	n, _ := x.Dims()
	_, t := v.Dims()
	summed := append([]tensor{s.newTensor(2)}, s.tensors(t)...)
	err := s.pass(ctx, x, 2, nil, summed, func(i int, _, coefficients []float64) {
		coefficients[0] = 1
		if weights != nil {
			coefficients[0] = weights[i]
		}
		copy(coefficients[1:], v.RawRowView(i))
	})
	return &NormalMatrix{series: s, moments: summed[0].data, n: n}, s.project(summed[1:]), err
}

// Moments returns the moments that represent the matrix, for NormalMatrixOf. They must not be changed.
func (normal *NormalMatrix) Moments() []float64 { return normal.moments }

// NormalMatrixOf returns the matrix ΦᵀWΦ of n points with the given moments. It returns an error if the series has
// another number of moments.
func (s *Series) NormalMatrixOf(moments []float64, n int) (*NormalMatrix, error) {
	if want := len(s.newTensor(2).data); len(moments) != want {
		return nil, fmt.Errorf("fourier: %d moments, want %d", len(moments), want)
	}
	return &NormalMatrix{series: s, moments: moments, n: n}, nil
}

// term is a term of a sum of moments: coefficient times the moment with the given index.
type term struct {
	index       int
	coefficient float64
}

// product writes the product of two functions of one axis as a sum of two terms, by the product-to-sum identities. The
// functions are given by their indices a and b among cos 0, sin 0, cos θ, sin θ, …, and so are those of the
// terms.
func product(a, b int) [2]term {
	cos := func(q int) int { return 2 * q }
	sin := func(q int) int { return 2*q + 1 }
	j, l := a/2, b/2
	difference, sign := j-l, 1.0
	if difference < 0 {
		difference, sign = -difference, -1
	}
	switch sineA, sineB := a%2 == 1, b%2 == 1; {
	case !sineA && !sineB:
		return [2]term{{cos(difference), 0.5}, {cos(j + l), 0.5}}
	case sineA && sineB:
		return [2]term{{cos(difference), 0.5}, {cos(j + l), -0.5}}
	case sineA:
		return [2]term{{sin(j + l), 0.5}, {sin(difference), 0.5 * sign}}
	default:
		return [2]term{{sin(j + l), 0.5}, {sin(difference), -0.5 * sign}}
	}
}

// Matrix returns ΦᵀΦ, M×M; only the lower triangle is set.
func (normal *NormalMatrix) Matrix(ctx context.Context) (*mat.Dense, error) {
	s := normal.series
	size := len(s.modes)
	result := mat.NewDense(size, size, nil)
	widths := newMomentWidths(s)
	return result, accel.ForEach(ctx, size, func(_, i int) {
		row, modeA := result.RawRowView(i), &s.modes[i]
		for j := range i + 1 {
			modeB := &s.modes[j]
			terms, count := widths.terms(modeA, modeB, modeA.root*modeB.root)
			for _, term := range terms[:count] {
				row[j] += term.coefficient * normal.moments[term.index]
			}
		}
	})
}

// momentWidths are the widths of the moments of each axis.
type momentWidths []int

// newMomentWidths returns the widths for the moments of a series, whose frequencies are twice those of the series.
func newMomentWidths(s *Series) (w momentWidths) {
	for _, a := range s.axes {
		w = append(w, functionCount(2*a.topFrequency))
	}
	return w
}

// terms writes scale times the product of two modes, without their weights, as a sum of count = 2^d terms.
func (w momentWidths) terms(modeA, modeB *mode, scale float64) (sum [1 << MaxDim]term, count int) {
	sum[0], count = term{0, scale}, 1
	for a, width := range w {
		pair := product(modeA.index[a], modeB.index[a])
		for k, previous := range sum[:count] {
			sum[k] = term{previous.index*width + pair[0].index, previous.coefficient * pair[0].coefficient}
			sum[count+k] = term{previous.index*width + pair[1].index, previous.coefficient * pair[1].coefficient}
		}
		count *= 2
	}
	return sum, count
}

// Factor solves (ΦᵀΦ + λI)β = b for one λ. If ranks share the passes, only the first one has the factor, and StatDim
// and Leverages are not available.
type Factor struct {
	LogDet     float64 // ln det(K̃ + λI); NaN if ΦᵀΦ + λI was not factored
	series     *Series
	lambda     float64
	lower      *mat.Dense            // L of ΦᵀΦ + λI = LLᵀ; nil: conjugate gradients
	normalGrid *grid                 // ΦᵀΦ for conjugate gradients; nil with L
	precond    *weightPreconditioner // of conjugate gradients; nil with L

	leverage []float64 // tensor of φᵀ(ΦᵀΦ+λI)⁻¹φ; nil before the first call of Leverages
}

// Factor prepares Solve for one λ. Up to Options.DirectModes modes it computes a Cholesky factor; for more modes it
// prepares the matrix and the preconditioner of conjugate gradients. It returns an error if ΦᵀΦ + λI is not positive
// definite in float64. Factor is collective: all ranks must call it.
func (normal *NormalMatrix) Factor(ctx context.Context, lambda float64) (*Factor, error) {
	f, logDet := &Factor{series: normal.series, lambda: lambda}, []float64{0}
	err := normal.series.onFirstRank(ctx, logDet, func() (err error) {
		logDet[0], err = f.prepare(ctx, normal)
		return err
	})
	f.LogDet = logDet[0]
	return f, err
}

// prepare factors ΦᵀΦ + λI and returns ln det(K̃ + λI), or prepares conjugate gradients and returns NaN.
func (f *Factor) prepare(ctx context.Context, normal *NormalMatrix) (logDet float64, err error) {
	if !f.series.Direct() {
		if f.normalGrid, err = newGrid(ctx, normal); err == nil {
			f.precond, err = newWeightPreconditioner(ctx, normal, f.lambda)
		}
		return math.NaN(), err
	}
	if f.lower, err = normal.cholesky(ctx, f.lambda); err != nil {
		return 0, err
	}
	size := len(f.series.modes)
	logDet = float64(normal.n-size) * math.Log(f.lambda) // det(K̃+λI) = λ^(n−M)·det(ΦᵀΦ+λI)
	for k := range size {
		logDet += 2 * math.Log(f.lower.At(k, k))
	}
	return logDet, nil
}

// cholesky returns the Cholesky factor of ΦᵀΦ + λI.
func (normal *NormalMatrix) cholesky(ctx context.Context, lambda float64) (*mat.Dense, error) {
	a, err := normal.Matrix(ctx)
	if err != nil {
		return nil, err
	}
	size := len(normal.series.modes)
	for k := range size {
		a.Set(k, k, a.At(k, k)+lambda)
	}
	if !accel.Dpotrf(size, a.RawMatrix().Data, size) {
		return nil, errNotDefinite(lambda)
	}
	return a, nil
}

// errNotDefinite returns the error for a λ that is lost in the rounding of ΦᵀΦ.
func errNotDefinite(lambda float64) error {
	return fmt.Errorf("ΦᵀΦ + λI is not positive definite in float64: λ = %g is too small", lambda)
}

// Solve returns β, M×t, with (ΦᵀΦ + λI)β = b for the right-hand sides b = ΦᵀY. If ΦᵀΦ + λI was factored, it ignores
// tol, and iterations is 0. Otherwise it runs conjugate gradients on each column to a relative residual of tol or
// maxIterations, and iterations is the largest number over the columns. All ranks must call Solve.
func (f *Factor) Solve(ctx context.Context, b *mat.Dense, tol float64) (beta *mat.Dense, iterations int, err error) {
	size, t := b.Dims()
	results := make([]float64, size*t+1) // β and the iterations
	err = f.series.onFirstRank(ctx, results, func() error {
		solved := mat.NewDense(size, t, results[:size*t])
		solved.Copy(b)
		if f.lower != nil {
			solveLower(f.lower, solved)
			return nil
		}
		count, err := f.iterate(ctx, solved, tol)
		results[size*t] = float64(count)
		return err
	})
	return mat.NewDense(size, t, results[:size*t]), int(results[size*t]), err
}
