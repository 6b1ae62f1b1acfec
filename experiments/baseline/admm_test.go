package baseline_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/experiments/baseline"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

var losses = []baseline.Loss{baseline.Square, baseline.Hinge}

// plainLoss returns loss(y, o) by its definition.
func plainLoss(loss baseline.Loss, y, o float64) float64 {
	if loss == baseline.Square {
		return 0.5 * math.Pow(y-o, 2)
	}
	return math.Max(0, 1-y*o)
}

// TestLoss compares the values, the proximal points and the conjugates of the losses with a search over a fine grid
// and with the inequalities that define them.
func TestLoss(t *testing.T) {
	for _, loss := range losses {
		for _, y := range []float64{1, -1} {
			for _, rho := range []float64{0.02, 0.5, 1, 3, 200} {
				for v := -4.0; v <= 4; v += 0.23 {
					o := loss.Prox(y, v, rho)
					objective := func(o float64) float64 { return plainLoss(loss, y, o) + rho/2*(o-v)*(o-v) }
					// objective is ρ-strongly convex: objective(o') ≥ objective(o) + ρ/2·(o'−o)² at its minimum.
					for _, h := range []float64{1, 0.1, 1e-3, 1e-5} {
						for _, d := range []float64{h, -h} {
							if low := objective(o) + rho/2*d*d - 1e-14*(1+rho); objective(o+d) < low {
								t.Errorf("%v y = %g v = %g ρ = %g: prox %g, but %g has a value less by %g", loss, y, v,
									rho, o, o+d, low-objective(o+d))
							}
						}
					}
				}
			}
			for o := -30.0; o <= 30; o += 0.37 {
				if got, want := loss.Value(y, o), plainLoss(loss, y, o); math.Abs(got-want) > 1e-12*(1+want) {
					t.Errorf("%v(%g, %g) = %g, want %g", loss, y, o, got, want)
				}
			}
			for u := -1.5; u <= 1.5; u += 0.125 {
				best := math.Inf(-1)
				for o := -40.0; o <= 40; o += 0.001 {
					best = math.Max(best, u*o-plainLoss(loss, y, o))
				}
				got := loss.Conjugate(y, u)
				inside := loss == baseline.Square || -u*y >= 0 && -u*y <= 1
				if inside && math.Abs(got-best) > 1e-6 || !inside && !(math.IsInf(got, 1) && best > 3) {
					t.Errorf("%v*(%g, %g) = %g, at least %g", loss, y, u, got, best)
				}
			}
		}
	}
}

// lossObjective returns the objective F(W) by its definition.
func lossObjective(loss baseline.Loss, z, y, w *mat.Dense, lambda float64) float64 {
	var out mat.Dense
	out.Mul(z, w)
	n, t := y.Dims()
	norm := mat.Norm(w, 2)
	sum := lambda / 2 * norm * norm
	for i := range n {
		for j := range t {
			sum += plainLoss(loss, y.At(i, j), out.At(i, j))
		}
	}
	return sum
}

// lossOptimum returns the minimum of F for a loss, by the normal equations or by dual coordinate ascent for each
// column.
func lossOptimum(t testing.TB, loss baseline.Loss, z, y *mat.Dense, lambda float64) float64 {
	t.Helper()
	if loss == baseline.Square {
		_, best := ridgeOptimum(t, z, y, lambda)
		return best / 2
	}
	_, cols := y.Dims()
	var sum float64
	for j := range cols {
		sum += hingeOptimum(t, z, mat.Col(nil, j, y), lambda)
	}
	return sum
}

// hingeOptimum returns the minimum of F for the hinge loss, by dual coordinate ascent (C.-J. Hsieh et al., ICML 2008):
// W = Zᵀ(α∘y)/λ with 0 ≤ α ≤ 1.
func hingeOptimum(t testing.TB, z *mat.Dense, y []float64, lambda float64) float64 {
	t.Helper()
	n, s := z.Dims()
	alpha, w, g := make([]float64, n), make([]float64, s), rand.New(rand.NewPCG(1, 2))
	norms := make([]float64, n)
	for i := range n {
		norms[i] = floats.Dot(z.RawRowView(i), z.RawRowView(i))
	}
	order := g.Perm(n)
	for epoch := range 3000 {
		g.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			row := z.RawRowView(i)
			next := math.Max(0, math.Min(1, alpha[i]+lambda*(1-y[i]*floats.Dot(row, w))/norms[i]))
			floats.AddScaled(w, (next-alpha[i])*y[i]/lambda, row)
			alpha[i] = next
		}
		if epoch%10 != 9 {
			continue
		}
		primal := lossObjective(baseline.Hinge, z, mat.NewDense(n, 1, y), mat.NewDense(s, 1, w), lambda)
		if dual := floats.Sum(alpha) - lambda/2*floats.Dot(w, w); primal-dual < 4e-7*primal {
			return primal
		}
	}
	t.Fatal("reference: the dual ascent did not converge")
	return 0
}

// targetsOf returns t columns of targets for the points, ±1 if the loss is Hinge.
func targetsOf(loss baseline.Loss, x *points.Dense, t int) *mat.Dense {
	y := smoothTargets(x, t)
	if loss != baseline.Square {
		y = signs(y)
	}
	return y
}

// expectOptimum checks that the objective of a result is that of its W, and close to the optimum, and that the dual
// value is a lower bound.
func expectOptimum(t testing.TB, label string, r *baseline.Result, loss baseline.Loss, z, y *mat.Dense,
	lambda float64) {
	t.Helper()
	best, objective := lossOptimum(t, loss, z, y, lambda), lossObjective(loss, z, y, r.W, lambda)
	if r.Status != pcg.Converged || !(math.Abs(r.Objective-best) <= 1e-6*best) || r.Gap > 1e-5 ||
		!(math.Abs(objective-r.Objective) <= 1e-10*best) || !(r.Dual <= best*(1+1e-6)) {
		t.Errorf("%s, %v: %v, objective %.10g, of W %.10g, optimum %.10g, dual value %.10g", label, loss, r.Status,
			r.Objective, objective, best, r.Dual)
	}
}

// TestADMMDual checks that the dual value after a few iterations with any ρ is a lower bound on the optimum, and not
// negative.
func TestADMMDual(t *testing.T) {
	const n, d, s, lambda = 200, 4, 40, 0.1
	x := randomPoints(31, n, d)
	m := sampleFeatures(t, gaussian, d, s)
	z := denseZ(t, m, x)
	for _, loss := range losses {
		y := targetsOf(loss, x, 1)
		best := lossOptimum(t, loss, z, y, lambda)
		for _, rho := range []float64{0.001, 0.03, 1, 30} {
			for _, iterations := range []int{1, 10} {
				result := must(baseline.ADMM(t.Context(), m, x, lambda, y, &baseline.ADMMOptions{Loss: loss,
					RhoGrid: []float64{rho}, Tol: 1e-12, MaxIter: iterations}))
				if result.Iterations != iterations || result.Status != pcg.MaxIterations ||
					!(result.Dual >= 0 && result.Dual <= best && result.Gap >= 0 && result.Gap <= 1) ||
					loss != baseline.Square && result.Dual == 0 {
					t.Errorf("%v, ρ = %g, %d iterations: dual value %g, gap %g, optimum %g", loss, rho, iterations,
						result.Dual, result.Gap,
						best)
				}
			}
		}
	}
}

// TestADMM compares the objective with the optimum, also with blocks of different sizes, several columns, sparse
// points and a TensorSketch.
func TestADMM(t *testing.T) {
	for _, c := range []struct {
		n, d, s, cols, blocks int
		dist                  feature.Dist
		lambda, tol           float64
	}{
		{2000, 6, 500, 1, 1, gaussian, 1, 1e-6}, {2000, 6, 500, 1, 3, gaussian, 1, 1e-6},
		{203, 4, 67, 3, 4, gaussian, 2, 3e-7}, {203, 4, 40, 3, 2, sketched, 2, 3e-7}, {203, 4, 300, 3, 1, gaussian, 2, 3e-7},
	} {
		x, m := randomPoints(21, c.n, c.d), sampleFeatures(t, c.dist, c.d, c.s)
		z := denseZ(t, m, x)
		for _, loss := range losses {
			y := targetsOf(loss, x, c.cols)
			result := must(baseline.ADMM(t.Context(), m, toCSR(x), c.lambda, y, &baseline.ADMMOptions{Loss: loss,
				Blocks: c.blocks, RhoGrid: []float64{0.5}, Tol: c.tol, MaxIter: 20000}))
			expectOptimum(t, fmt.Sprint(c), result, loss, z, y, c.lambda)
		}
	}
}

// TestADMMIsRandomFeatures checks that with the square loss W is that of RandomFeatures with the same λ, and that the
// chosen ρ has the smallest objective.
func TestADMMIsRandomFeatures(t *testing.T) {
	x := randomPoints(22, 400, 3)
	y := smoothTargets(x, 2)
	m := sampleFeatures(t, gaussian, 3, 64)
	randomFeatures := must(baseline.RandomFeatures(t.Context(), m, x, 0.5, y, nil))
	result := must(baseline.ADMM(t.Context(), m, x, 0.5, y, &baseline.ADMMOptions{RhoGrid: []float64{0.01, 0.3, 100},
		TrialIterations: 50, Tol: 1e-11, MaxIter: 5000}))
	if objectives := result.RhoObjectives; result.Rho != 0.3 || len(objectives) != 3 ||
		!(objectives[1] < objectives[0] && objectives[1] < objectives[2]) || objectives[1] < result.Objective {
		t.Fatalf("ρ = %g of %v", result.Rho, objectives)
	}
	var difference mat.Dense
	difference.Sub(result.W, randomFeatures.W)
	if relativeError := mat.Norm(&difference, 2) / mat.Norm(randomFeatures.W, 2); !(relativeError < 1e-8) ||
		result.Iterations == 5000 {
		t.Errorf("W has an error of %.3g after %d iterations", relativeError, result.Iterations)
	}
	// For zero targets W is 0 after one iteration.
	zero := must(baseline.ADMM(t.Context(), m, x, 1, mat.NewDense(400, 1, nil), nil))
	if zero.Iterations != 1 || zero.Objective != 0 || zero.Gap != 0 || mat.Norm(zero.W, 2) != 0 {
		t.Errorf("zero targets: %+v", zero)
	}
	y.Set(7, 1, math.NaN())
	if result := must(baseline.ADMM(t.Context(), m, x, 1, y, &baseline.ADMMOptions{MaxIter: 2})); result.Gap == 0 ||
		result.Status == pcg.Converged {
		t.Errorf("a target is not a number, and still the gap is %g: %v", result.Gap, result.Status)
	}
}
