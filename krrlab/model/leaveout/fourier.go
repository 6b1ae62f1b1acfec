package leaveout

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// minComplement is the smallest 1 − h of a leverage h that float64 computes with some digits.
const minComplement = 1e-9

// Fourier computes the score of each λ as Dense does, from a Fourier series of K (package fourier) for the points x,
// without their weights. With the M modes Φ of the merged rows and their weights W,
//
//	C = (Ỹ − W^½Φβ)/λ,  (Ã⁻¹)_gg = (1 − W_g φ_gᵀ(ΦᵀWΦ+λI)⁻¹φ_g)/λ.
//
// It also sets Score.Minus2LogLikelihood. The intervals include Problem.KError and 4(M+1)·2⁻⁵³·tr(ΦᵀWΦ+λI) for
// rounding, which is an estimate and no proof. Work: a pass over the points for the moments, and for each λ a pass and
// 5M³/3 multiply-adds. It returns an error for Problem.Groups, if the series has too many modes to be factored, or if λ
// is too small for float64.
func Fourier(ctx context.Context, s *fourier.Series, x points.Points, y *mat.Dense, lambdas []float64,
	o *Problem) ([]Score, error) {
	n, t := y.Dims()
	if err := check(n, y, lambdas); err != nil {
		return nil, err
	}
	opt := o.withDefaults()
	if opt.Groups != nil {
		return nil, fmt.Errorf("leaveout: a Fourier series leaves out no groups of rows that differ")
	}
	if !s.Direct() {
		return nil, fmt.Errorf("leaveout: the %d modes of the Fourier series are too many for leave-one-out", s.Modes())
	}
	m, err := opt.merge(y)
	if err != nil {
		return nil, err
	}
	if len(m.firstRows) < n {
		x = points.Gather(x, m.firstRows)
	}
	rhs, weights, total := m.rightHandSides(), make([]float64, len(m.firstRows)), 0.0
	for g, root := range m.rootWeights {
		weights[g] = root * root
		total += weights[g]
	}
	normal, projected, err := s.Normal(ctx, x, weights, points.ScaleRows(m.rootWeights, rhs))
	if err != nil {
		return nil, err
	}
	scores := make([]Score, len(lambdas))
	for q, lambda := range lambdas {
		start := time.Now()
		f, err := normal.Factor(ctx, lambda)
		if err != nil {
			return nil, err
		}
		beta, _, err := f.Solve(ctx, projected, 0)
		if err != nil {
			return nil, err
		}
		solution, inverse, smallest := mat.DenseCopyOf(rhs), &Factor{Diag: make([]float64, len(weights))}, 1.0
		err = f.Leverages(ctx, x, beta, func(g int, values []float64, h float64) {
			complement := 1 - weights[g]*h
			smallest = min(smallest, complement)
			inverse.Diag[g] = complement / lambda
			for j, v := range values {
				solution.Set(g, j, (rhs.At(g, j)-m.rootWeights[g]*v)/lambda)
			}
		})
		if err == nil && !(smallest > minComplement) {
			err = fmt.Errorf("1 − the leverage of a row is %.1g, too small for float64: take a larger λ", smallest)
		}
		if err != nil {
			return nil, fmt.Errorf("leaveout: λ = %g: %w", lambda, err)
		}
		size := float64(s.Modes())
		scores[q], err = m.exactScore(solution, inverse, lambda, opt.KError+4*(size+1)*0x1p-53*(total+size*lambda),
			&opt)
		if err != nil {
			return nil, err
		}
		fit := m.withinGroups/lambda + float64(t)*(f.LogDet+float64(n-len(weights))*math.Log(lambda)+float64(n)*math.Log(2*math.Pi))
		for g := range weights {
			for j := range t {
				fit += m.y.At(g, j) * solution.At(g, j)
			}
		}
		for _, w := range opt.Weights { // p of Y before it was multiplied by the weights
			fit -= float64(t) * math.Log(w)
		}
		scores[q].Minus2LogLikelihood, scores[q].Error.Method = fit, "fourier"
		scores[q].Error.Seconds = time.Since(start).Seconds()
		opt.Progress(q+1, len(lambdas))
	}
	return scores, nil
}
