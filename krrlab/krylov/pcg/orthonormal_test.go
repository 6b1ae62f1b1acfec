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
	const e = 1e-3
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		g    []float64
		k    int
		want Status
		rank int
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
		"indefinite with equal diagonal":   {[]float64{1, 1, 1, 1, 1, 1 - e, 1, 1 - e, 1}, 3, Indefinite, 1},
		"within asymmetry":                 {[]float64{1, 1 + 2e-6, 1, 1}, 2, Active, 1},
		"NaN":                              {[]float64{1, math.NaN(), 0, 1}, 2, Breakdown, 0},
		"infinite":                         {[]float64{1, 0, 0, inf}, 2, Breakdown, 0},
	} {
		f := newPivotedCholesky(4)
		st := f.factorize(c.g, c.k, 1e-8, 1)
		if st != c.want || f.rank != c.rank {
			t.Errorf("%s: %v of rank %d, want %v of rank %d", name, st, f.rank, c.want, c.rank)
		}
		testkit.Equal(t, (st == Indefinite), (f.badCurvature < 0), name, st, f.badCurvature)
	}
}

// TestOrthonormalise checks that blocks of any condition number become M⁻¹-orthonormal with R = QS.
func TestOrthonormalise(t *testing.T) {
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
			s := newBlock(base)
			testkit.OK(t, s.start(context.Background()))
			r := mat.DenseCopyOf(s.r)
			s.k = k
			testkit.OK(t, s.orthonormalize(context.Background(), 0))
			want := k
			if spread <= 1e-12 {
				want = 1
			}
			if s.k != want || s.width != k {
				t.Errorf("e = %g: %d directions, want %d", spread, s.k, want)
			}
			var g, d mat.Dense
			g.Mul(s.r.T(), s.z)
			for i := range s.k {
				g.Set(i, i, g.At(i, i)-1)
			}
			if v := mat.Norm(&g, 2); v > 1e-10 {
				t.Errorf("e = %g, M %v: ‖QᵀM⁻¹Q − I‖ = %.3g", spread, m != nil, v)
			}
			z := mat.NewDense(n, s.k, nil)
			if m != nil {
				m.SolveTo(context.Background(), z, s.r)
				z.Sub(z, s.z)
			}
			if v := mat.Norm(z, 2); v > 1e-10 {
				t.Errorf("e = %g: ‖M⁻¹Q − Z‖ = %.3g", spread, v)
			}
			d.Mul(s.r, mat.NewDense(s.k, k, s.s[:s.k*k]))
			d.Sub(&d, r)
			if v := mat.Norm(&d, 2); v > 1e-11*mat.Norm(r, 2) {
				t.Errorf("e = %g: ‖QS − R‖ = %.3g", spread, v)
			}
		}
	}
}

// growingDiagonal is the diagonal matrix with entries from 1 to 10.
type growingDiagonal int

func (r growingDiagonal) Dim() int { return int(r) }

func (r growingDiagonal) SolveTo(_ context.Context, dst, src *mat.Dense) error {
	dst.Apply(func(i, _ int, v float64) float64 { return v / (1 + 9*float64(i)/float64(r-1)) }, src)
	return nil
}

func (r growingDiagonal) MulTo(context.Context, *mat.Dense, *mat.Dense) error { panic("not called") }
