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

// Spectrum has certain bounds of eigenvalues of K and of A = K+λI. They assume that K is positive semi-definite.
type Spectrum struct {
	Cond        estimate.Interval `json:"kappa"`               // κ(A)
	SimpleBound float64           `json:"kappa_simple_bound"`  // 1 + n·max k(x,x)/λ, rounded up, without any product
	Largest     estimate.Interval `json:"largest_eigenvalue"`  // λ_max(K)
	Smallest    estimate.Interval `json:"smallest_eigenvalue"` // λ_min(K)
	Passes      int               `json:"passes"`              // number of passes over K
}

// Cond bounds the ends of the spectrum of K+λI with the given number of passes over K. A third of them are power steps
// from v = 1, and the others are Lanczos steps from a random start of the stream. With at most one pass the bounds are
// wider, but also certain.
func (m *Matrix) Cond(ctx context.Context, lambda float64, passes int, g rng.Stream) (*Spectrum, error) {
	const roundUp = 1 + 4*unitRoundoff // a factor that covers the few rounding errors of an expression of positive terms
	n := float64(m.N)
	traceBound := n * m.Largest * roundUp // λ_max(K) ≤ tr K
	if m.function.signed {                // then K(x, x) has rounding errors
		traceBound += n * m.EntryError
	}
	s := &Spectrum{SimpleBound: (1 + traceBound/lambda) * roundUp}
	// ‖ΔK‖₂ ≤ nδ, and products have a relative error of at most sumError of |K||v|.
	slack := n*m.EntryError + m.sumError()*n*m.Largest
	powerSteps := (passes + 2) / 3
	lo, hi, err := m.boundLargest(ctx, powerSteps)
	if err != nil {
		return nil, err
	}

	smallest := m.diag[0] // λ_min(K) ≤ every Rayleigh quotient ≤ λ_max(K)
	for _, d := range m.diag {
		smallest = min(smallest, d) // eᵢᵀKeᵢ
		lo = max(lo, d)
	}
	if steps := min(passes-powerSteps, m.N); steps > 0 {
		ritz, err := m.lanczos(ctx, steps, g)
		if err != nil {
			return nil, err
		}
		smallest, lo = min(smallest, ritz[0]), max(lo, ritz[len(ritz)-1])
	}

	s.Passes = passes
	lo, hi = max(0, lo-slack), min(hi+slack, traceBound)
	s.Largest = estimate.Interval{Value: lo, Lo: lo, Hi: max(lo, hi), Confidence: 1,
		Method: "Rayleigh quotients, Collatz–Wielandt"}
	smallest = max(0, smallest) + slack
	s.Smallest = estimate.Interval{Value: smallest, Lo: 0, Hi: smallest, Confidence: 1,
		Method: "Rayleigh quotients, K ≽ 0"}
	cond := estimate.Interval{
		Lo: max(1, (s.Largest.Lo+lambda)/(smallest+lambda)/roundUp), Hi: max(1, (s.Largest.Hi+lambda)/lambda*roundUp),
		Confidence: 1, Method: "ends of the spectrum of K",
	}
	cond.Value = math.Sqrt(cond.Lo * cond.Hi)
	s.Cond = cond
	return s, nil
}

// boundLargest bounds λ_max(K) by power steps of |K| from v = 1: from below by the Rayleigh quotient vᵀKv/vᵀv, and from
// above by max_i (|K|v)_i/v_i (Collatz and Wielandt).
func (m *Matrix) boundLargest(ctx context.Context, steps int) (lo, hi float64, err error) {
	v, w := slices.Repeat([]float64{1}, m.N), make([]float64, m.N)
	hi = float64(m.N) * m.Largest
	for range steps {
		if err := m.mulAbs(ctx, w, v, 1); err != nil {
			return 0, 0, err
		}
		var vw, vv, norm, ratio float64
		for i, y := range w {
			vw += v[i] * y
			vv += v[i] * v[i]
			ratio = max(ratio, y/v[i])
			norm = max(norm, y)
		}
		hi = min(hi, ratio*(1+4*unitRoundoff))
		if !m.function.signed {
			lo = max(lo, vw/vv)
		}
		if norm == 0 { // K = 0
			break
		}
		for i, y := range w {
			v[i] = max(y/norm, 0x1p-1000) // every positive v is valid, and avoids 0/0 for rows of zeros
		}
	}
	return lo, hi, nil
}

// lanczos returns the Ritz values of K in ascending order, after the given number of steps with full orthogonalization,
// or after fewer if the Krylov space is invariant.
func (m *Matrix) lanczos(ctx context.Context, steps int, g rng.Stream) ([]float64, error) {
	var basis [][]float64
	v, w := make([]float64, m.N), make([]float64, m.N)
	g.Normals(v, 0)
	floats.Scale(1/floats.Norm(v, 2), v)
	t := mat.NewSymDense(steps, nil)
	k := 0
	for ; k < steps; k++ {
		basis = append(basis, slices.Clone(v))
		if err := m.Mul(ctx, w, v, 1); err != nil {
			return nil, err
		}
		size := floats.Norm(w, 2)
		for pass := range 2 { // orthogonalize twice, because of rounding
			for j, b := range basis {
				h := floats.Dot(b, w)
				floats.AddScaled(w, -h, b)
				if pass == 0 && j == k {
					t.SetSym(k, k, h)
				}
			}
		}
		beta := floats.Norm(w, 2)
		if beta <= 1e-12*size || k+1 == steps { // up to rounding, w is in the span of the basis
			k++
			break
		}
		t.SetSym(k, k+1, beta)
		floats.ScaleTo(v, 1/beta, w)
	}
	var e mat.EigenSym
	e.Factorize(t.SliceSym(0, k), false)
	return e.Values(nil), nil
}
