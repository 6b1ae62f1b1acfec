package verify

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// Spectrum has certain bounds of the extreme eigenvalues of K and of the condition number of A = K+λI. The bounds hold
// if K is positive semi-definite.
type Spectrum struct {
	Cond        estimate.Interval `json:"kappa"`               // κ(A)
	SimpleBound float64           `json:"kappa_simple_bound"`  // upper bound 1 + n·max k(x,x)/λ of κ(A), rounded up
	Largest     estimate.Interval `json:"largest_eigenvalue"`  // λ_max(K)
	Smallest    estimate.Interval `json:"smallest_eigenvalue"` // λ_min(K)
	Passes      int               `json:"passes"`              // number of passes over K
}

// Cond bounds the ends of the spectrum of K+λI with the given number of passes over K. A third of the passes are power
// steps from a vector of ones, and the others are Lanczos steps from a random vector drawn from the stream. With fewer
// passes the bounds are wider, but still certain.
func (m *Matrix) Cond(ctx context.Context, lambda float64, passes int, stream rng.Stream) (*Spectrum, error) {
	const roundUp = 1 + 4*unitRoundoff // covers the few rounding errors of an expression of positive terms
	n := float64(m.N)
	traceBound := n * m.MaxDiagonal * roundUp // λ_max(K) ≤ tr K
	if m.function.mayBeNegative {             // for such kernels k(x, x) has rounding errors
		traceBound += n * m.EntryError
	}
	spectrum := &Spectrum{SimpleBound: (1 + traceBound/lambda) * roundUp}
	// The rounding errors of the entries change K by at most nδ in the 2-norm, and a product Kv has an error of at most
	// sumError·|K||v|.
	productError := n*m.EntryError + m.sumError()*n*m.MaxDiagonal
	powerSteps := (passes + 2) / 3
	lo, hi, err := m.boundLargest(ctx, powerSteps)
	if err != nil {
		return nil, err
	}

	smallest := m.diag[0] // λ_min(K) ≤ every Rayleigh quotient ≤ λ_max(K)
	for _, diagonal := range m.diag {
		smallest = min(smallest, diagonal) // k(x_i, x_i) is the Rayleigh quotient of the unit vector e_i
		lo = max(lo, diagonal)
	}
	if steps := min(passes-powerSteps, m.N); steps > 0 {
		ritz, err := m.lanczos(ctx, steps, stream)
		if err != nil {
			return nil, err
		}
		smallest, lo = min(smallest, ritz[0]), max(lo, ritz[len(ritz)-1])
	}

	spectrum.Passes = passes
	lo, hi = max(0, lo-productError), min(hi+productError, traceBound)
	spectrum.Largest = estimate.Interval{Value: lo, Lo: lo, Hi: max(lo, hi), Confidence: 1,
		Method: "Rayleigh quotients, Collatz–Wielandt"}
	smallest = max(0, smallest) + productError
	spectrum.Smallest = estimate.Interval{Value: smallest, Lo: 0, Hi: smallest, Confidence: 1,
		Method: "Rayleigh quotients, K ≽ 0"}
	cond := estimate.Interval{
		Lo:         max(1, (spectrum.Largest.Lo+lambda)/(smallest+lambda)/roundUp),
		Hi:         max(1, (spectrum.Largest.Hi+lambda)/lambda*roundUp),
		Confidence: 1, Method: "ends of the spectrum of K",
	}
	cond.Value = math.Sqrt(cond.Lo * cond.Hi)
	spectrum.Cond = cond
	return spectrum, nil
}

// boundLargest bounds λ_max(K) by power steps of |K|, the matrix of absolute values, from a vector v of ones: from
// below by the Rayleigh quotient vᵀKv/vᵀv, and from above by max_i (|K|v)_i/v_i (Collatz and Wielandt). The bounds do
// not include rounding errors of the products.
func (m *Matrix) boundLargest(ctx context.Context, steps int) (lo, hi float64, err error) {
	v, product := slices.Repeat([]float64{1}, m.N), make([]float64, m.N)
	hi = float64(m.N) * m.MaxDiagonal
	for range steps {
		if err := m.mulAbs(ctx, product, v, 1); err != nil {
			return 0, 0, err
		}
		var rayleighNumerator, sqNorm, largestValue, ratio float64
		for i, value := range product {
			rayleighNumerator += v[i] * value
			sqNorm += v[i] * v[i]
			ratio = max(ratio, value/v[i])
			largestValue = max(largestValue, value)
		}
		hi = min(hi, ratio*(1+4*unitRoundoff))
		if !m.function.mayBeNegative {
			lo = max(lo, rayleighNumerator/sqNorm)
		}
		if largestValue == 0 { // K = 0
			break
		}
		for i, value := range product {
			v[i] = max(value/largestValue, 0x1p-1000) // The bound holds for every positive v; zeros would lead to 0/0.
		}
	}
	return lo, hi, nil
}

// lanczos returns the Ritz values of K in ascending order, after the given number of Lanczos steps with full
// orthogonalization, or after fewer steps if the Krylov space is invariant.
func (m *Matrix) lanczos(ctx context.Context, steps int, stream rng.Stream) ([]float64, error) {
	var basis [][]float64
	v, w := make([]float64, m.N), make([]float64, m.N) // Lanczos vector, and Kv
	stream.Normals(v, 0)
	floats.Scale(1/floats.Norm(v, 2), v)
	t := mat.NewSymDense(steps, nil) // the tridiagonal matrix
	k := 0
	for ; k < steps; k++ {
		basis = append(basis, slices.Clone(v))
		if err := m.Mul(ctx, w, v, 1); err != nil {
			return nil, err
		}
		normBefore := floats.Norm(w, 2)
		for pass := range 2 { // orthogonalize twice, because of rounding
			for j, basisVector := range basis {
				projection := floats.Dot(basisVector, w)
				floats.AddScaled(w, -projection, basisVector)
				if pass == 0 && j == k {
					t.SetSym(k, k, projection)
				}
			}
		}
		beta := floats.Norm(w, 2)
		if beta <= 1e-12*normBefore || k+1 == steps { // up to rounding, w is in the span of the basis
			k++
			break
		}
		t.SetSym(k, k+1, beta)
		floats.ScaleTo(v, 1/beta, w)
	}
	var eigen mat.EigenSym
	eigen.Factorize(t.SliceSym(0, k), false)
	return eigen.Values(nil), nil
}
