package theory

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

var remark1 = Claim{
	Name: "remark1", Place: "first remark on Theorem 1, section 3.2", Kind: Identity,
	Statement: "(γxᵀz+c)^q is the homogeneous kernel of the points (√γ·x, √c): one constant feature more.",
	Measured:  "K of either, and Z of either from one stream, entry by entry.",
	Fails:     "a constant c in place of √c, or a constant outside of the sketch, gives another K and another Z.",
	run:       checkRemark1,
}

func checkRemark1(ctx context.Context, e *experiment) error {
	out, err := e.sample(ctx, "trial", e.trials, 2, func(_ int, g rng.Stream, out []float64) error {
		size := g.Sub("sizes")
		k := kernel.Polynomial{Gamma: spread(g.Sub("gamma"), 0, 0.1, 10), Coef0: spread(g.Sub("c"), 0, 0.1, 10), Degree: 1 + size.IntN(0, 4)}
		x := cloud(g, 1+size.IntN(1, 8), 1+size.IntN(2, 6), 0.9)
		up := lifted(k, x)
		a, err := e.parts.Kernel(ctx, k, x, 1, gram.Float64)
		if err != nil {
			return err
		}
		b := evaluated(plain(k.Degree), up)
		out[0] = apart(a, b) / largest(b)
		s := 1 + size.IntN(3, 40)
		z, err := mapped(e.parts.TensorSketch(k), x, s, g)
		if err != nil {
			return err
		}
		z0, err := mapped(e.parts.TensorSketch(plain(k.Degree)), up, s, g)
		if err != nil {
			return err
		}
		out[1] = apart(z, z0) / largest(z0)
		return nil
	})
	if err != nil {
		return err
	}
	e.atMost("|K − K of the lifted points|, relative", out[0], 1e-12)
	e.atMost("|Z − Z of the lifted points|, relative", out[1], 1e-11)
	return nil
}

var remark2 = Claim{
	Name: "remark2", Place: "second remark on Theorem 1, section 3.2", Kind: Bound,
	Statement: "Stop by the residual, not by the count: PCG that stops at ‖y−Ac̃‖₂ ≤ τ‖y‖₂ is right in every draw,\n‖c̃−c‖_A ≤ τ√κ(A)·‖c‖_A; the count ⌈(√3/2)·ln(2/ε)⌉ fails with the features.",
	Measured:  "the true residual and the error over their limits, with so few features that κ ≤ 3 fails for most draws; among these draws the count must be seen to fail.",
	Fails:     "a solver that reports the recurrence's residual, or stops early, exceeds the limits.",
	run:       checkRemark2,
}

func checkRemark2(ctx context.Context, e *experiment) error {
	g := e.g.Sub("problem")
	p, err := newProblem(g, plain(2), cloud(g, 40, 8, 0.8), 10)
	if err != nil {
		return err
	}
	kappaA := (p.mu[p.n-1] + p.lambda) / (math.Max(p.mu[0], 0) + p.lambda)
	norm := mat.Norm(p.y, 2)
	out, err := e.sample(ctx, "trial", e.trials, 3, func(i int, g rng.Stream, out []float64) error {
		z, err := p.features(ctx, e.parts.TensorSketch(plain(2)), 16, g)
		if err != nil {
			return err
		}
		m, err := e.parts.Precond(ctx, z, p.lambda, p.lambda, forms[i%len(forms)])
		if err != nil {
			return err
		}
		tau := spread(g.Sub("tau"), 0, 1e-6, 1e-1)
		r, err := e.parts.Solve(ctx, operator{p.a}, m, column(p.y), &pcg.Options{Tol: tau})
		if err != nil {
			return err
		}
		var res mat.VecDense
		res.MulVec(p.a, r.X.ColView(0))
		res.SubVec(p.y, &res)
		out[0] = mat.Norm(&res, 2) / (tau * norm)
		out[1] = p.distance(r.X.ColView(0)) / (tau * math.Sqrt(kappaA))
		out[2], err = p.missed(ctx, e, m, e.parts.Iterations(3, epsilon))
		return err
	})
	if err != nil {
		return err
	}
	e.atMost("‖y−Ac̃‖₂ over τ‖y‖₂", out[0], 1+1e-9)
	e.atMost("‖c̃−c‖_A over τ√κ(A)·‖c‖_A", out[1], 1+1e-9)
	failed := 0.0
	for _, v := range out[2] {
		if v > epsilon {
			failed++
		}
	}
	e.add(Measure{Name: "share of draws in which the count does not suffice (wanted: some)", Value: failed / float64(e.trials), Limit: 1, Ratio: ratioIf(failed == 0)})
	return nil
}

// ratioIf is the ratio of a measure that fails if the condition holds.
func ratioIf(fails bool) float64 {
	if fails {
		return 2
	}
	return 0
}

var remark3 = Claim{
	Name: "remark3", Place: "first remark on Theorem 6, section 4", Kind: Bound,
	Statement: "κ(K+λI) ≤ 1+‖K‖₂/λ; so κ ≤ 2 if λ ≥ ‖K‖₂, and plain CG needs ⌈(√2/2)·ln(2/ε)⌉ iterations.",
	Measured:  "κ of K+λI over its bound, for spectra with and without a zero eigenvalue (where the bound is met), and the error of CG after the count over ε.",
	Fails:     "an identity that is not I, a count that is too low, or a K of another scale.",
	run:       checkRemark3,
}

func checkRemark3(ctx context.Context, e *experiment) error {
	out, err := e.sample(ctx, "trial", e.trials, 3, func(i int, g rng.Stream, out []float64) error {
		size := g.Sub("sizes")
		n := 2 + size.IntN(0, 14)
		x := cloud(g, n, 1+size.IntN(1, n), 0.8)
		k, err := e.parts.Kernel(ctx, plain(1), x, 1, gram.Float64)
		if err != nil {
			return err
		}
		mu, err := eigenvalues(evaluated(plain(1), x))
		if err != nil {
			return err
		}
		top := mu[n-1]
		lambda := top * spread(g.Sub("lambda"), 0, 1e-3, 1e2)
		v, err := eigenvalues(shifted(symmetrized(k), lambda))
		if err != nil {
			return err
		}
		out[0] = cond(v) / (1 + top/lambda)
		lambda = top * uniform(g.Sub("above"), 0, 1, 3)
		a := shifted(symmetrized(k), lambda)
		if v, err = eigenvalues(a); err != nil {
			return err
		}
		out[1] = cond(v) / 2
		out[2], err = solveError(ctx, e, a, precond.Identity{N: n}, g, e.parts.Iterations(2, epsilon))
		out[2] /= epsilon
		return err
	})
	if err != nil {
		return err
	}
	e.atMost("κ(K+λI) over 1+‖K‖₂/λ", out[0], 1+1e-9)
	e.atMost("κ(K+λI) over 2 for λ ≥ ‖K‖₂", out[1], 1+1e-9)
	e.atMost("‖c̃−c‖_A/‖c‖_A over ε after the count for κ = 2", out[2], 1)
	return nil
}

// solveError returns ‖c̃−c‖_A/‖c‖_A of PCG for a random right-hand side.
func solveError(ctx context.Context, e *experiment, a *mat.SymDense, m pcg.Preconditioner, g rng.Stream, iterations int) (float64, error) {
	y := mat.NewVecDense(a.SymmetricDim(), nil)
	g.Sub("right-hand side").Normals(y.RawVector().Data, 0)
	return solveErrorFor(ctx, e, a, m, y, iterations)
}

func solveErrorFor(ctx context.Context, e *experiment, a *mat.SymDense, m pcg.Preconditioner, y *mat.VecDense, iterations int) (float64, error) {
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return 0, errors.New("a matrix that is not positive definite")
	}
	p := &problem{n: a.SymmetricDim(), a: a, y: y, c: mat.NewVecDense(y.Len(), nil)}
	if err := chol.SolveVecTo(p.c, y); err != nil {
		var badly mat.Condition
		if !errors.As(err, &badly) {
			return 0, err
		}
	}
	return p.missed(ctx, e, m, iterations)
}

var remark4 = Claim{
	Name: "remark4", Place: "second remark on Theorem 6, section 4", Kind: Probability,
	Statement: "Of R candidates take the i whose list of ‖c̃_i−c̃_j‖_A has the least median. If more than R/2 are within ε, it is within 3ε;\n" +
		"so if each is with probability 1−p, p < ½, it fails with probability at most P(Binomial(R, p) ≥ R/2) ≤ e^(−2R(½−p)²).",
	Measured: "the choice of pcg.Repeat among PCG runs with features of their own, cut off after a fixed count: its error over 3ε where most are within ε, and the share of failures against δ, both sides of which come from p's draws.",
	Fails:    "the mean or the last candidate in place of the median one, or candidates that share their features.",
	run:      checkRemark4,
}

func checkRemark4(ctx context.Context, e *experiment) error {
	const runs, s, iterations = 7, 24, 4
	g := e.g.Sub("problem")
	p, err := newProblem(g, plain(2), cloud(g, 30, 8, 0.9), 6)
	if err != nil {
		return err
	}
	const eps = 0.006
	out, err := e.sample(ctx, "trial", e.trials, 2+runs, func(_ int, g rng.Stream, out []float64) error {
		rep := pcg.Repeat{R: runs, New: func(ctx context.Context, i int) (pcg.Preconditioner, error) {
			z, err := p.features(ctx, e.parts.TensorSketch(plain(2)), s, g.Sub("candidate", uint64(i)))
			if err != nil {
				return nil, err
			}
			return e.parts.Precond(ctx, z, p.lambda, p.lambda, precond.FormLInv)
		}}
		r, err := rep.Solve(ctx, operator{p.a}, column(p.y), &pcg.Options{Tol: 1e-15, MaxIter: iterations})
		if err != nil {
			return err
		}
		good := 0
		for i, run := range r.Runs {
			if out[2+i] = p.distance(run.X.ColView(0)); out[2+i] <= eps {
				good++
			}
		}
		out[0] = p.distance(r.X.ColView(0))
		out[1] = float64(good)
		return nil
	})
	if err != nil {
		return err
	}
	var ratios []float64
	bad := 0.0
	for t := range e.trials {
		if out[1][t] > runs/2.0 {
			ratios = append(ratios, out[0][t]/(3*eps))
		}
		bad += runs - out[1][t]
	}
	if len(ratios) == 0 {
		return fmt.Errorf("no trial had most of its candidates within ε = %g", eps)
	}
	e.atMost(fmt.Sprintf("the chosen error over 3ε, where most of %d are within ε = %g", runs, eps), ratios, 1)
	share := bad / float64(e.trials*runs)
	e.add(Measure{Name: "p, the share of candidates beyond ε (wanted: between 0 and ½)", Value: share, Limit: 0.5, Ratio: ratioIf(share <= 0 || share >= 0.5)})
	// δ of what p may be at most, seen over all candidates.
	worst := clopperPearsonUpper(int(bad), e.trials*runs)
	delta := 1 - distuv.Binomial{N: runs, P: math.Min(worst, 1)}.CDF((runs-1)/2) // P(bad ≥ R/2), R odd
	e.share(fmt.Sprintf("share of choices beyond 3ε, R = %d, p = %.2g", runs, share), out[0], 3*eps, delta)
	return nil
}

var proposition8 = Claim{
	Name: "proposition8", Place: "Proposition 8, appendix", Kind: Identity,
	Statement: "K(Q,Q) + λL⁻¹L⁻ᵀ = I for q_i = Σ_j (L⁻¹)_ij k(x_j, ·), K+λI = LLᵀ.",
	Measured:  "the largest entry of the difference, with L from K as package gram stores it and the inner products ⟨q_i, q_j⟩ from the kernel's formula, for all kernels.",
	Fails:     "a K that is not the kernel's, or a factor transposed.",
	run:       checkProposition8,
}

var proposition9 = Claim{
	Name: "proposition9", Place: "Proposition 9, appendix", Kind: Identity,
	Statement: "tr K(Q,Q) = s_λ(K) = n − λ·tr((K+λI)⁻¹) (the print has K+I).",
	Measured:  "the trace of ⟨q_i, q_j⟩ and what package statdim has, against Σ μ/(μ+λ).",
	Fails:     "the printed K+I gives another number wherever λ ≠ 1.",
	run:       checkProposition9,
}

// manyKernels are the kernels of Propositions 8 and 9.
var manyKernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 1}, kernel.Laplacian{Sigma: 1.5}, kernel.Matern32{Sigma: 1}, kernel.Matern52{Sigma: 2},
	kernel.Polynomial{Gamma: 0.5, Coef0: 1, Degree: 3},
}

// innerProducts returns K(Q, Q) by the kernel's formula, L⁻¹, K's eigenvalues and λ.
func (e *experiment) innerProducts(ctx context.Context, i int, g rng.Stream) (kqq, rest *mat.SymDense, mu []float64, lambda float64, stored *mat.Dense, err error) {
	k := manyKernels[i%len(manyKernels)]
	size := g.Sub("sizes")
	x := cloud(g, 1+size.IntN(0, 14), 1+size.IntN(1, 4), 0.8)
	lambda = spread(g.Sub("lambda"), 0, 1e-2, 1e2)
	if stored, err = e.parts.Kernel(ctx, k, x, lambda, gram.Float64); err != nil {
		return nil, nil, nil, 0, nil, err
	}
	l, err := tiled(shifted(symmetrized(stored), lambda))
	if err != nil {
		return nil, nil, nil, 0, nil, err
	}
	byFormula := evaluated(k, x)
	kqq = between(l, byFormula)
	rest = outer(solved(l, identity(x.N)))
	rest.ScaleSym(lambda, rest)
	mu, err = eigenvalues(byFormula)
	return kqq, rest, mu, lambda, stored, err
}

func checkProposition8(ctx context.Context, e *experiment) error {
	out, err := e.sample(ctx, "trial", e.trials, 1, func(i int, g rng.Stream, out []float64) error {
		kqq, rest, _, _, _, err := e.innerProducts(ctx, i, g)
		if err != nil {
			return err
		}
		kqq.AddSym(kqq, rest)
		out[0] = apart(kqq, identity(kqq.SymmetricDim()))
		return nil
	})
	if err != nil {
		return err
	}
	e.atMost("|K(Q,Q) + λL⁻¹L⁻ᵀ − I|", out[0], 1e-9)
	return nil
}

func checkProposition9(ctx context.Context, e *experiment) error {
	out, err := e.sample(ctx, "trial", e.trials, 2, func(i int, g rng.Stream, out []float64) error {
		kqq, _, mu, lambda, stored, err := e.innerProducts(ctx, i, g)
		if err != nil {
			return err
		}
		want := degrees(mu, lambda)
		out[0] = math.Abs(mat.Trace(kqq) - want)
		out[1], err = statDimError(stored, lambda, want)
		return err
	})
	if err != nil {
		return err
	}
	e.atMost("|tr K(Q,Q) − s_λ(K)|", out[0], 1e-9)
	e.atMost("|statdim.Exact − s_λ(K)|", out[1], 1e-9)
	return nil
}

// leftOut returns the points but for number i.
func leftOut(x *points.Dense, i int) *points.Dense {
	out := points.NewDense(x.N-1, x.D, nil)
	for j := range out.N {
		from := j
		if j >= i {
			from++
		}
		copy(out.Row(j), x.Row(from))
	}
	return out
}
