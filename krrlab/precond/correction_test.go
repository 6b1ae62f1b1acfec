package precond_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
)

// TestCorrection checks that the correction of M⁻¹r leaves four digits of rᵀM⁻¹r if M is so ill-conditioned that
// λ_p⁻¹(r−Zv) alone leaves few digits or none. The vectors r are those to which conjugate gradients and the Lanczos
// process apply M⁻¹: draws from N(0, M), and their products with M. FormU cannot correct, and its error grows with
// the condition number.
func TestCorrection(t *testing.T) {
	const n = 60
	// Each function returns the mean and the standard deviation of the entries of column j of Z.
	columnDistributions := map[string]func(j int) (mean, deviation float64){
		"decaying": func(j int) (float64, float64) { return 0, math.Pow(0.4, float64(j)) },
		"graded":   func(j int) (float64, float64) { return 1, math.Pow(10, float64(-1-2*(j%4))) },
		"flat":     func(int) (float64, float64) { return 0, 1 },
	}
	testkit.EachBLAS(t, func(t *testing.T) {
		for distribution, momentsOf := range columnDistributions {
			for _, s := range []int{20, n} {
				z, z64 := points.NewDense32(n, s, nil), mat.NewDense(n, s, nil)
				for i, x := range testkit.Normals(9, 2, n*s) {
					mean, deviation := momentsOf(i % s)
					z.Data[i] = float32(mean + deviation*x)
					z64.Set(i/s, i%s, float64(z.Data[i]))
				}
				frobeniusNorm := mat.Norm(z64, 2)
				for _, ratio := range []float64{1e11, 1e12, 1e13} { // tr ZᵀZ/λ_p
					lambdaP := frobeniusNorm * frobeniusNorm / ratio
					for _, form := range append(forms, precond.AutoForm) {
						w := buildForm(t, z, lambdaP, form)
						bound := 1e-4 // four digits
						if w.Form() == precond.FormU {
							bound = 1e-14 * ratio // errors without a correction are about 1e-15·tr ZᵀZ/λ_p
						}
						testkit.Equal(t, w.Corrects(), w.Form() != precond.FormU, form)
						shorter := buildForm(t, z.Slice(0, n-5).(*points.Dense32), lambdaP, form)
						extended := testkit.Must(shorter.Extend(t.Context(), z))
						preconditioners := map[string]pcg.Preconditioner{form.String(): w,
							form.String() + " extended": extended}
						if form == precond.FormEigen {
							family := testkit.Must(w.WithLambdas([]float64{frobeniusNorm, lambdaP}))
							preconditioners["family"] = familyMember{family, 1}
						}
						for name, m := range preconditioners {
							if relative := quadraticError(t, m, z64, lambdaP); !(relative < bound) {
								t.Errorf("%s, s = %d, tr ZᵀZ/λ_p = %.0e, %s: relative error %.2g of rᵀM⁻¹r",
									distribution, s, ratio, name, relative)
							}
						}
					}
				}
			}
		}
	})
}

// quadraticError returns the largest relative error of rᵀM⁻¹r, M = ZZᵀ+λ_pI, for draws r of N(0, M) and for Mr. The
// reference is ‖UᵀD r‖² + λ_p⁻¹‖r−UUᵀr‖² with the singular vectors U of Z and D = (Σ²+λ_pI)^(-1/2).
func quadraticError(t *testing.T, m pcg.Preconditioner, z *mat.Dense, lambdaP float64) (worst float64) {
	t.Helper()
	n, s := z.Dims()
	const drawCount = 4
	var svd mat.SVD
	if !svd.Factorize(z, mat.SVDThin) {
		t.Fatal("no singular value decomposition of Z")
	}
	var u, draws, zTrans, mr, r mat.Dense
	svd.UTo(&u)
	draws.Mul(z, normalMatrix(3, s, drawCount))
	noise := normalMatrix(4, n, drawCount)
	noise.Scale(math.Sqrt(lambdaP), noise)
	draws.Add(&draws, noise)
	zTrans.Mul(z.T(), &draws)
	mr.Mul(z, &zTrans)
	noise.Scale(lambdaP, &draws)
	mr.Add(&mr, noise)
	r.Augment(&draws, &mr)
	x := solve(t, m, &r)
	var inside, outside mat.Dense
	for range 2 { // the second pass removes rounding errors of the first
		var coefficients, projection mat.Dense
		if outside.IsEmpty() {
			outside.CloneFrom(&r)
		}
		coefficients.Mul(u.T(), &outside)
		if inside.IsEmpty() {
			inside.CloneFrom(&coefficients)
		}
		projection.Mul(&u, &coefficients)
		outside.Sub(&outside, &projection)
	}
	for j := range 2 * drawCount {
		want := math.Pow(mat.Norm(outside.ColView(j), 2), 2) / lambdaP
		for k, v := range svd.Values(nil) {
			want += inside.At(k, j) * inside.At(k, j) / (v*v + lambdaP)
		}
		worst = max(worst, math.Abs(mat.Dot(r.ColView(j), x.ColView(j))/want-1))
	}
	return worst
}
