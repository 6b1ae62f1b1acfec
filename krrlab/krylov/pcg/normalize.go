package pcg

import (
	"cmp"
	"context"
	"math"

	"gonum.org/v1/gonum/mat"
)

// maxExponent is the largest |e| for which an M⁻¹ of the size 2^e is not scaled. The value is a judgment: products of
// five numbers of the size 2^±200 neither overflow nor underflow.
const maxExponent = 200

// Normalized is a preconditioner M of any scale, with M⁻¹ multiplied by Factor. Conjugate gradients and κ(M⁻¹A) do not
// depend on the scale of M, but products such as rᵀM⁻¹AM⁻¹r overflow or underflow if it is extreme.
type Normalized struct {
	Preconditioner
	factor float64   // 0 before the first solve
	scaled mat.Dense // scratch: r times the root of factor
}

// Normalize returns m with a factor that the first solve determines.
func Normalize(m Preconditioner) *Normalized { return &Normalized{Preconditioner: m} }

// Factor returns the number by which M⁻¹ is multiplied, a power of four. It is 1 for a scale that is not extreme,
// before the first solve, and as long as all products with M⁻¹ are zero or not finite.
func (m *Normalized) Factor() float64 { return cmp.Or(m.factor, 1) }

// SolveTo sets dst = Factor·M⁻¹r. It multiplies both r and M⁻¹r by the root of the factor, so that neither overflows
// nor underflows.
func (m *Normalized) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	if m.Factor() == 1 {
		if err := m.Preconditioner.SolveTo(ctx, dst, r); err != nil || m.factor == 1 {
			return err
		}
		if m.setFactor(mat.Norm(dst, math.Inf(1)) / mat.Norm(r, math.Inf(1))); m.Factor() == 1 {
			return nil
		}
	}
	root := math.Sqrt(m.factor)
	m.scaled.Reset()
	m.scaled.Scale(root, r)
	if err := m.Preconditioner.SolveTo(ctx, dst, &m.scaled); err != nil {
		return err
	}
	dst.Scale(root, dst)
	return nil
}

// setFactor sets the factor for a matrix M⁻¹ of the given size.
func (m *Normalized) setFactor(size float64) {
	if !(size > 0 && finite(size)) {
		return
	}
	m.factor = 1
	if _, exponent := math.Frexp(size); max(exponent, -exponent) > maxExponent {
		const largest = 1022 // exponent of the largest finite power of four; a subnormal size would need a larger one
		m.factor = math.Ldexp(1, min(-exponent/2*2, largest))
	}
}

// SetFactorFrom determines the factor from M⁻¹r, unless an earlier solve has done so.
func (m *Normalized) SetFactorFrom(ctx context.Context, r *mat.Dense) error {
	if m.factor != 0 {
		return nil
	}
	n, k := r.Dims()
	return m.SolveTo(ctx, mat.NewDense(n, k, nil), r)
}
