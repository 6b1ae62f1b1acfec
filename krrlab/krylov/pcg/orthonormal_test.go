package pcg

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestPivotedCholesky checks the status and rank of the pivoted Cholesky factorization of matrices that are definite,
// semidefinite, indefinite, or not finite.
func TestPivotedCholesky(t *testing.T) {
	const gap = 1e-3
	inf := math.Inf(1)
	for name, test := range map[string]struct {
		g      []float64
		k      int
		status Status
		rank   int
	}{
		"positive number":                  {[]float64{4}, 1, Active, 1},
		"negative number":                  {[]float64{-4}, 1, Indefinite, 0},
		"definite":                         {[]float64{4, 1e100, 1e100, 1e201}, 2, Active, 2},
		"nearly singular":                  {[]float64{1, 1, 1, 1 + 1e-9}, 2, Active, 1},
		"singular":                         {[]float64{1, 1, 1, 1, 1, 1, 1, 1, 1}, 3, Active, 1},
		"zero direction":                   {[]float64{1, 0, 0, 0}, 2, Active, 1},
		"negative entry":                   {[]float64{1, 0, 0, -1e-30}, 2, Indefinite, 0},
		"negative pivot after elimination": {[]float64{1, 2, 2, 1}, 2, Indefinite, 1},
		"slightly indefinite":              {[]float64{1, 1 + 1e-9, 1 + 1e-9, 1}, 2, Indefinite, 1},
		"indefinite with equal diagonal":   {[]float64{1, 1, 1, 1, 1, 1 - gap, 1, 1 - gap, 1}, 3, Indefinite, 1},
		"within asymmetry":                 {[]float64{1, 1 + 2e-6, 1, 1}, 2, Active, 1},
		"NaN":                              {[]float64{1, math.NaN(), 0, 1}, 2, Breakdown, 0},
		"infinite":                         {[]float64{1, 0, 0, inf}, 2, Breakdown, 0},
	} {
		chol := newPivotedCholesky(4)
		status := chol.factorize(test.g, test.k, 1e-8, 1)
		if status != test.status || chol.rank != test.rank {
			t.Errorf("%s: %v of rank %d, want %v of rank %d", name, status, chol.rank, test.status, test.rank)
		}
		testkit.Equal(t, (status == Indefinite), (chol.badCurvature < 0), name, status, chol.badCurvature)
	}
}

// TestOrthonormalize checks that blocks of any condition number become M⁻¹-orthonormal with R = QS.
func TestOrthonormalize(t *testing.T) {
	const n, k = 700, 6
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, spread := range []float64{1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-14, 0} {
		b := mat.NewDense(n, k, nil)
		for i := range n {
			common := rnd.NormFloat64()
			for j := range k {
				b.Set(i, j, common+spread*rnd.NormFloat64())
			}
		}
		for _, m := range []Preconditioner{nil, growingDiagonal(n)} {
			base := testkit.Must(newSolver(growingDiagonal(n), m, b, &Options{Tol: 1e-9}))
			solver := newBlock(base)
			testkit.OK(t, solver.start(context.Background()))
			r := mat.DenseCopyOf(solver.r)
			solver.k = k
			testkit.OK(t, solver.orthonormalize(context.Background(), 0))
			want := k
			if spread <= 1e-12 {
				want = 1
			}
			if solver.k != want || solver.width != k {
				t.Errorf("spread %g: %d directions, want %d", spread, solver.k, want)
			}
			var defect, difference mat.Dense
			defect.Mul(solver.r.T(), solver.z)
			for i := range solver.k {
				defect.Set(i, i, defect.At(i, i)-1)
			}
			if norm := mat.Norm(&defect, 2); norm > 1e-10 {
				t.Errorf("spread %g, M %v: ‖QᵀM⁻¹Q − I‖ = %.3g", spread, m != nil, norm)
			}
			z := mat.NewDense(n, solver.k, nil)
			if m != nil {
				m.SolveTo(context.Background(), z, solver.r)
				z.Sub(z, solver.z)
			}
			if norm := mat.Norm(z, 2); norm > 1e-10 {
				t.Errorf("spread %g: ‖M⁻¹Q − Z‖ = %.3g", spread, norm)
			}
			difference.Mul(solver.r, mat.NewDense(solver.k, k, solver.s[:solver.k*k]))
			difference.Sub(&difference, r)
			if norm := mat.Norm(&difference, 2); norm > 1e-11*mat.Norm(r, 2) {
				t.Errorf("spread %g: ‖QS − R‖ = %.3g", spread, norm)
			}
		}
	}
}

// growingDiagonal is the diagonal matrix with entries from 1 to 10.
type growingDiagonal int

func (d growingDiagonal) Dim() int { return int(d) }

func (d growingDiagonal) SolveTo(_ context.Context, dst, src *mat.Dense) error {
	dst.Apply(func(i, _ int, v float64) float64 { return v / (1 + 9*float64(i)/float64(d-1)) }, src)
	return nil
}

func (d growingDiagonal) MulTo(context.Context, *mat.Dense, *mat.Dense) error { panic("not called") }
