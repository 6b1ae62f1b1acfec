package testbed

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/stage/compare"
)

// askotchName is the name of the runs of ASkotch, which is a solver and no preconditioner. Its rank is the number of
// points of a block, and its iterations are passes over K.
const askotchName = "field.askotch"

const (
	askotchRank   = 100 // largest rank of the Nyström approximation of a block
	powerSteps    = 10  // steps of the power method for the step size
	residualTests = 20  // after p passes the residual is computed every p/residualTests passes; fewer cost less
	countedLevels = 5   // counted relative residuals, 10⁻² to 10⁻⁶
)

// askotch is the solver ASkotch (P. Rathore, Z. Frangella, S. Garg, S. Fazliani, M. Dereziński, M. Udell,
// arXiv:2407.10070) for (K+λI)w = b. A step draws a block B of points uniformly and computes
//
//	g = (K̂_BB+ρI)⁻¹((K+λI)_B,: z − b_B)/L,  w = z − I_B g,  v ← βv + (1−β)z − γI_B g,  z ← αv + (1−α)w,
//
// where K̂_BB is a Nyström approximation of K_BB of rank r = min(100, |B|), ρ is λ plus the r-th eigenvalue of K̂_BB,
// and L is the largest eigenvalue of (K̂_BB+ρI)⁻¹(K_BB+λI), both by ten power steps. With ν = n/|B| and μ = min(λ,
// 1/ν), which the theory requires to be at most 1/ν, β = 1−√(μ/ν), γ = 1/√(μν) and α = 1/(1+γν).
type askotch struct {
	k      *mat.Dense // kernel matrix K, n×n
	lambda float64    // ridge λ
	size   int        // number of points of a block
	random rng.Stream // source of the blocks and the sketches
	w      []float64  // the solution, set by passes
}

// flops returns the flops of a pass over K in addition to 2n², if the inverse of a block is applied by its factor F.
func (a *askotch) flops() float64 {
	n, b := float64(a.k.RawMatrix().Rows), float64(a.size)
	r := min(b, askotchRank)
	return n / b * (2*b*b*r + 4*b*r*r + 2*r*r*r + (2*b*b+4*b*r)*(powerSteps+1))
}

// passes returns after how many passes over K the relative residual is at most 10⁻², 10⁻³, … . One pass consists of
// ⌈n/|B|⌉ steps.
func (a *askotch) passes(ctx context.Context, b []float64, maxPasses int) ([]int, error) {
	n, reached := len(b), []int{}
	nu := float64(n) / float64(a.size)
	mu := min(a.lambda, 1/nu)
	beta, gamma := 1-math.Sqrt(mu/nu), 1/math.Sqrt(mu*nu)
	alpha := 1 / (1 + gamma*nu)
	a.w = make([]float64, n)
	w, v, z, residual := a.w, make([]float64, n), make([]float64, n), make([]float64, n)
	steps := (n + a.size - 1) / a.size
	for pass := 1; pass <= maxPasses && len(reached) < countedLevels; pass++ {
		for step := range steps {
			g := a.random.Sub("step", uint64(pass), uint64(step))
			block := g.Sub("block").Perm(n)[:a.size]
			direction, err := a.direction(block, b, z, g)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return nil, err
			}
			copy(w, z)
			floats.Scale(beta, v)
			floats.AddScaled(v, 1-beta, z)
			for k, i := range block {
				w[i] -= direction[k]
				v[i] -= gamma * direction[k]
			}
			floats.AddScaledTo(z, w, alpha/(1-alpha), v)
			floats.Scale(1-alpha, z)
		}
		if pass%max(1, pass/residualTests) != 0 && pass < maxPasses {
			continue
		}
		a.residualTo(residual, nil, b, w)
		for relative := floats.Norm(residual, 2) / floats.Norm(b, 2); len(reached) < countedLevels &&
			relative <= math.Pow10(-2-len(reached)); {
			reached = append(reached, pass)
		}
	}
	return reached, nil
}

// residualTo sets dst to the given rows of (K+λI)x−b, or to all rows if rows is nil.
func (a *askotch) residualTo(dst []float64, rows []int, b, x []float64) {
	for k := range dst {
		i := k
		if rows != nil {
			i = rows[k]
		}
		dst[k] = floats.Dot(a.k.RawRowView(i), x) + a.lambda*x[i] - b[i]
	}
}

// direction returns (K̂_BB+ρI)⁻¹((K+λI)_B,: z − b_B)/L.
func (a *askotch) direction(block []int, b, z []float64, g rng.Stream) ([]float64, error) {
	size, r := a.size, min(a.size, askotchRank)
	omega, sketch, blockK := mat.NewDense(size, r, nil), mat.NewDense(size, r, nil), mat.NewDense(size, size, nil)
	for position, i := range block {
		row, source := blockK.RawRowView(position), a.k.RawRowView(i)
		for column, j := range block {
			row[column] = source[j]
		}
	}
	g.Sub("sketch").Normals(omega.RawMatrix().Data, 0)
	sketch.Mul(blockK, omega)
	if err := nystromFactor(sketch, omega); err != nil {
		return nil, err
	}
	var small mat.SymDense
	small.SymOuterK(1, sketch.T())
	product := mat.NewVecDense(size, nil)
	var factor mat.Cholesky
	rho := a.lambda
	if factor.Factorize(&small) { // otherwise the r-th eigenvalue is 0 up to rounding
		_, product := powerMethod(r, g.Sub("inverse"), func(x *mat.VecDense) { _ = factor.SolveVecTo(x, x) })
		rho += 1 / mat.Norm(product, 2) // an estimate from above
	}
	approximation := mat.NewSymDense(size, nil)
	approximation.SymOuterK(1, sketch)
	for i := range size {
		approximation.SetSym(i, i, approximation.At(i, i)+rho)
	}
	if !factor.Factorize(approximation) {
		return nil, fmt.Errorf("the approximation of a block of %d points is not positive definite", size)
	}
	x, image := powerMethod(size, g.Sub("power"), func(x *mat.VecDense) {
		_ = factor.SolveVecTo(x, x) // an error only says that the matrix is badly conditioned
		product.MulVec(blockK, x)
		x.AddScaledVec(product, a.lambda, x)
	})
	gradient := mat.NewVecDense(size, nil)
	a.residualTo(gradient.RawVector().Data, block, b, z)
	_ = factor.SolveVecTo(gradient, gradient)
	gradient.ScaleVec(1/mat.Dot(x, image), gradient)
	return gradient.RawVector().Data, nil
}

// powerMethod makes powerSteps steps of the power method with an n×n matrix, from a random vector. multiply replaces a
// vector by the product of the matrix with it. The results are the last unit vector x and its product.
func powerMethod(n int, g rng.Stream, multiply func(x *mat.VecDense)) (x, product *mat.VecDense) {
	product = mat.NewVecDense(n, nil)
	g.Normals(product.RawVector().Data, 0)
	for range powerSteps {
		product.ScaleVec(1/mat.Norm(product, 2), product)
		x = mat.VecDenseCopyOf(product)
		multiply(product)
	}
	return x, product
}

// runASkotch makes Options.Seeds runs of ASkotch with blocks of base.Rank points. Their flops of M⁻¹r are those of a
// pass over K in addition to 2n². Seconds and bytes are unknown, since K would not be stored.
func (s *setup) runASkotch(ctx context.Context, lab *krrlab.Lab, base Line) ([]Line, error) {
	k, _, err := s.denseK(ctx, base.Lambda)
	if err != nil {
		return nil, err
	}
	b := mat.Col(nil, 0, compare.CombinedTargets(lab.Targets(), lab.Config().Seed))
	runs, errs := make([]Line, s.options.Seeds), make([]error, s.options.Seeds)
	err = accel.ForEach(ctx, s.options.Seeds, func(_, draw int) {
		a := askotch{k: k, lambda: base.Lambda, size: base.Rank, random: rng.New(uint64(draw)).Sub("askotch")}
		line := &runs[draw]
		*line = base
		line.Preconditioner, line.Draw, line.ApplyFlops = askotchName, draw, roundMeasured(a.flops())
		line.Reached, errs[draw] = a.passes(ctx, b, s.options.MaxIter)
	})
	return runs, cmp.Or(append(errs, err)...)
}
