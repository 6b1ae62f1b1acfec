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

// minComplement is the smallest accepted complement 1 − h of a leverage h. At this limit h is about 1, so 1 − h has at
// most seven correct digits in float64, and fewer if h has rounding errors.
const minComplement = 1e-9

// Fourier computes the score of each λ as Dense does, from a Fourier series of K (package fourier) for the points x,
// which are not multiplied by their weights. Equal rows are merged (Problem.FirstEqual). For row g of the merged rows,
// let φ_gᵀ be the values of the M modes, row g of Φ, with ‖φ_g‖ = 1, and W_g the weight. With Ã = W^½ΦΦᵀW^½+λI and the
// merged, weighted targets Ỹ,
//
//	C = Ã⁻¹Ỹ = (Ỹ − W^½Φβ)/λ,  β = (ΦᵀWΦ+λI)⁻¹ΦᵀW^½Ỹ,
//	(Ã⁻¹)_gg = (1 − W_g φ_gᵀ(ΦᵀWΦ+λI)⁻¹φ_g)/λ.
//
// It also sets Score.Minus2LogLikelihood. The intervals include Problem.KError and 4(M+1)·2⁻⁵³·tr(ΦᵀWΦ+λI) for
// rounding, which is an estimate and no proof. Work: a pass over the points for the moments, and for each λ a pass and
// 5M³/3 multiply-adds. Fourier returns an error for Problem.Groups, if the series has too many modes to be factored, or
// if λ is too small for float64.
func Fourier(ctx context.Context, series *fourier.Series, x points.Points, y *mat.Dense, lambdas []float64,
	problem *Problem) ([]Score, error) {
	n, _ := y.Dims()
	if err := check(n, y, lambdas); err != nil {
		return nil, err
	}
	options := problem.withDefaults()
	if options.Groups != nil {
		return nil, fmt.Errorf("leaveout: a Fourier series leaves out no groups of rows that differ")
	}
	if !series.Direct() {
		return nil, fmt.Errorf("leaveout: the %d modes of the Fourier series are too many for leave-one-out",
			series.Modes())
	}
	m, err := options.merge(y)
	if err != nil {
		return nil, err
	}
	if len(m.firstRows) < n {
		x = points.Gather(x, m.firstRows)
	}
	rhs, weights, totalWeight := m.rightHandSides(), make([]float64, len(m.firstRows)), 0.0
	for g, rootWeight := range m.rootWeights {
		weights[g] = rootWeight * rootWeight
		totalWeight += weights[g]
	}
	normalEquations, projected, err := series.NormalEquations(ctx, x, weights, points.ScaleRows(m.rootWeights, rhs))
	if err != nil {
		return nil, err
	}
	scores := make([]Score, len(lambdas))
	for index, lambda := range lambdas {
		start := time.Now()
		factor, err := normalEquations.Factor(ctx, lambda)
		if err != nil {
			return nil, err
		}
		beta, _, err := factor.Solve(ctx, projected, 0)
		if err != nil {
			return nil, err
		}
		solution, inverseDiag, smallest := mat.DenseCopyOf(rhs), make([]float64, len(weights)), 1.0
		err = factor.Leverages(ctx, x, beta, func(g int, values []float64, unweighted float64) {
			complement := 1 - weights[g]*unweighted
			smallest = min(smallest, complement)
			inverseDiag[g] = complement / lambda
			for j, v := range values {
				solution.Set(g, j, (rhs.At(g, j)-m.rootWeights[g]*v)/lambda)
			}
		})
		if err == nil && !(smallest > minComplement) { // also if it is NaN
			err = fmt.Errorf("1 − the leverage of a row is %.1g, too small for float64: take a larger λ", smallest)
		}
		if err != nil {
			return nil, fmt.Errorf("leaveout: λ = %g: %w", lambda, err)
		}
		modes := float64(series.Modes())
		rounding := 4 * (modes + 1) * 0x1p-53 * (totalWeight + modes*lambda) // tr(ΦᵀWΦ) = Σ W_g
		scores[index], err = m.exactScore(solution, &InverseFactor{Diag: inverseDiag}, lambda, options.KError+rounding,
			&options)
		if err != nil {
			return nil, err
		}
		scores[index].Minus2LogLikelihood = m.minus2LogLikelihood(solution, factor.LogDet, lambda, n, options.Weights)
		scores[index].Error.Method, scores[index].Error.Seconds = "fourier", time.Since(start).Seconds()
		options.Progress(index+1, len(lambdas))
	}
	return scores, nil
}

// minus2LogLikelihood returns −2 ln p(Y) = tr(YᵀA⁻¹Y) + t·(ln det A + n·ln 2π) for the n rows before merging, from
// solution, whose first t columns are Ã⁻¹Ỹ, and logDet = ln det Ã. For each row that was merged away, det A has a
// factor λ in addition to det Ã; the differences of merged targets from their means contribute withinGroups/λ. weights
// are those of the n rows, or nil.
func (m *merged) minus2LogLikelihood(solution *mat.Dense, logDet, lambda float64, n int, weights []float64) float64 {
	groups, t := m.y.Dims()
	value := m.withinGroups/lambda + float64(t)*
		(logDet+float64(n-groups)*math.Log(lambda)+float64(n)*math.Log(2*math.Pi))
	for g := range groups {
		for j := range t {
			value += m.y.At(g, j) * solution.At(g, j)
		}
	}
	for _, w := range weights { // Y was multiplied by √w; the value becomes that of the original Y
		value -= float64(t) * math.Log(w)
	}
	return value
}
