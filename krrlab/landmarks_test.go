package krrlab

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestSpectralForm checks the spectral form of landmark preconditioners. With the singular values Σ and vectors U of F,
// the matrix M must equal U(Σ²+λI)Uᵀ+(σ_r²+λ)(I−UUᵀ), and the certain bounds of λ_min(M⁻¹A) and κ must hold for the
// dense spectrum.
func TestSpectralForm(t *testing.T) {
	const n, s, lambda = 150, 20, 0.01
	narrow := kernel.Gaussian{Sigma: 0.5}
	train := ranksProblem(n)
	for _, name := range []string{"nystrom", "rpcholesky"} {
		makeLab := func(spectral bool) *Lab {
			parsed := testkit.Must(stage.ParsePreconditioner(fmt.Sprintf("%s features=%d spectral=%t", name, s,
				spectral)))
			return newLab(t, train, Config{Kernel: narrow, Lambda: lambda, Seed: 3, Precond: parsed})
		}
		lab := makeLab(true)
		var svd mat.SVD
		z := testkit.Must(makeLab(false).Z(t.Context()))
		if !svd.Factorize(toFloat64(z), mat.SVDThin) {
			t.Fatal("the singular value decomposition failed")
		}
		var u, v, want mat.Dense
		svd.UTo(&u)
		sigma := svd.Values(nil)
		residual := math.Pow(sigma[z.D-1], 2)
		v.Apply(func(_, j int, u float64) float64 { return u * (sigma[j]*sigma[j] - residual) }, &u)
		want.Mul(&v, u.T())
		got := mat.NewDense(n, n, nil)
		for i := range n {
			got.Set(i, i, 1)
			want.Set(i, i, want.At(i, i)+lambda+residual)
		}
		m := testkit.Must(lab.M(t.Context()))
		testkit.OK(t, m.SolveTo(t.Context(), got, got))
		var product mat.Dense
		product.Mul(&want, got)
		for i := range n {
			product.Set(i, i, product.At(i, i)-1)
		}
		if deviation := mat.Norm(&product, 2); deviation > 1e-6*sigma[0]*sigma[0]/lambda {
			t.Errorf("%v: ‖M·M⁻¹−I‖ = %g", lab.cfg.Precond, deviation)
		}
		k := newReference(t, narrow, train.X, lambda, lab.y).a
		var a mat.Dense
		a.Mul(got, k)
		var eigen mat.Eigen
		if !eigen.Factorize(&a, mat.EigenNone) {
			t.Fatal("the eigenvalue decomposition failed")
		}
		smallest, largest := math.Inf(1), 0.0
		for _, v := range eigen.Values(nil) {
			smallest, largest = min(smallest, real(v)), max(largest, real(v))
		}
		factor := lab.z.value.Factor
		lambdaP := lambda + lab.z.value.ExtraLambdaP
		if theta := factor.LambdaMin(lambda, lambdaP); theta > smallest || theta < 0.9*lambda/(lambda+residual) ||
			factor.CondBound(lambda, lambdaP) < largest/smallest {
			t.Errorf("%v: λ_min %g, κ %g; claimed %g, %g", lab.cfg.Precond, smallest, largest/smallest, theta,
				factor.CondBound(lambda, lambdaP))
		}
		sol := solveLab(t, lab)
		if residual < lambda {
			t.Fatalf("σ_s² = %g is below λ = %g: choose a problem in which λ_p differs clearly from λ", residual,
				lambda)
		}
		if v := float64(sol.LambdaP); math.Abs(v-lambda-residual) > 1e-6*residual {
			t.Errorf("λ_p = %g, want %g", v, lambda+residual)
		}
	}
}

// TestGivenLandmarks checks that M−λI and K agree exactly in the columns of the landmarks that the user gives, that
// the landmarks survive the text form of the preconditioner, and that impossible landmarks are refused.
func TestGivenLandmarks(t *testing.T) {
	const n, lambda = 90, 0.1
	train := ranksProblem(n)
	// differenceFromK returns ZZᵀ−K for the preconditioner with the given text.
	differenceFromK := func(text string) (*mat.Dense, error) {
		parsed := testkit.Must(stage.ParsePreconditioner(text))
		testkit.Equal(t, testkit.Must(stage.PreconditionerText(parsed, gauss)), text)
		lab := newLab(t, train, Config{Kernel: gauss, Lambda: lambda, Solver: PCG, Precond: parsed})
		z, err := lab.Z(t.Context())
		if err != nil {
			return nil, err
		}
		dense, difference := toFloat64(z), new(mat.Dense)
		difference.Mul(dense, dense.T())
		difference.Sub(difference, testkit.KernelMatrix(gauss, lab.train.X))
		return difference, nil
	}
	for text, want := range map[string][]int{
		"nystrom landmarks=60,3,41":            {60, 3, 41},
		"nystrom features=2 landmarks=60,3,41": {60, 3},
	} {
		diff, err := differenceFromK(text)
		testkit.OK(t, err)
		for j := range n {
			testkit.Equal(t, mat.Norm(diff.ColView(j), math.Inf(1)) < 1e-6, slices.Contains(want, j), text, j)
		}
	}
	for text, want := range map[string]string{
		"nystrom landmarks=60,90":            "landmark 2 of 2 is row 90",
		"nystrom landmarks=6,6":              "want rows from 0 to",
		"nystrom features=3 landmarks=60,80": "3 of 2 landmarks",
	} {
		testkit.Fails(t, testkit.ErrOf(differenceFromK(text)), want)
	}
}

// TestVecchia checks that the sparse inverse gives the coefficients of the direct solver in few iterations, for
// several options and storages. The JSON report must contain the chosen options, and the preconditioner must survive
// its text form.
func TestVecchia(t *testing.T) {
	train := datasets.SyntheticRegression(600, 3, 0.1, 1)
	solve := func(p Preconditioner, solver Solver, storage gram.Storage) *Solution {
		return mustSolve(t, train, Config{Kernel: kernel.Gaussian{Sigma: 0.2}, Lambda: 0.01, Precond: p, Solver: solver,
			Storage: storage, Tol: 1e-6})
	}
	want := solve(nil, Direct, gram.Float64).Model.C
	plainIterations := solve(None{}, PCG, gram.Float64).Iterations
	for _, p := range []Vecchia{{}, {S: 50}, {Neighbors: 20, Damping: 0.5}, {S: 30, Neighbors: -1},
		{Neighbors: -1}} {
		for _, storage := range []gram.Storage{gram.Float32, gram.Recompute} {
			sol := solve(p, PCG, storage)
			if difference := relativeDifference(sol.Model.C, want); !sol.Converged() || !(difference < 1e-4) {
				t.Errorf("%v, %v: %v, coefficients off by %g", p, storage, sol.Status, difference)
			}
			if p.Neighbors >= 0 && 3*sol.Iterations > plainIterations {
				t.Errorf("%v: %d iterations, and %d without", p, sol.Iterations, plainIterations)
			}
			if origin := sol.Model.Origin; p.S == 0 && p.Neighbors > 0 &&
				origin.Method != "pcg, preconditioner sparse inverse on 20 neighbors, ω = 0.5" {
				t.Errorf("the model's origin is %+v", origin)
			}
			text, err := json.Marshal(sol)
			var got struct {
				Precond   string
				Neighbors int
				Damping   float64
				S         int
			}
			if err == nil {
				err = json.Unmarshal(text, &got)
			}
			if err != nil || got.Precond != "vecchia" || got.S != p.S || got.Neighbors != sol.Neighbors ||
				!(got.Damping > 0) {
				t.Errorf("%v: JSON says %+v (%v)", p, got, err)
			}
		}
		parsed := testkit.Must(stage.ParsePreconditioner(testkit.Must(stage.PreconditionerText(p, gauss))))
		testkit.Equal(t, parsed, Preconditioner(p))
	}
	for _, p := range []Vecchia{{S: -1}, {S: 601}, {Damping: 2}, {Damping: math.NaN()}} {
		testkit.Fails(t, testkit.ErrOf(New(train, Config{Kernel: kernel.Gaussian{Sigma: 0.2}, Lambda: 0.01,
			Precond: p})), "ecchia: ")
	}
}

// TestVecchiaWithEvalOnly checks that the sparse inverse works with a user-defined kernel known by Eval only.
func TestVecchiaWithEvalOnly(t *testing.T) {
	k := kernel.Func{Name: "own", F: kernel.Gaussian{Sigma: 0.2}.Eval}
	sol := mustSolve(t, datasets.SyntheticRegression(300, 3, 0.1, 1),
		Config{Kernel: k, Lambda: 0.01, Precond: Vecchia{S: 9}})
	if !sol.Converged() || sol.Iterations > 12 {
		t.Errorf("%s after %d iterations, want convergence in at most 12", sol.Status, sol.Iterations)
	}
}
