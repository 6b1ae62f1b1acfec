package fourier

import (
	"math"
	"math/cmplx"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestChebyshevExpansion checks that the error of the Chebyshev expansion of e^{iqθ} is at most truncation, for several
// sizes of cells and numbers of polynomials. With one polynomial less the error must exceed the bound if qr, for the
// half-width r of a cell, is below a third of the number of polynomials, because |J_j(z)| is then about (z/2)^j/j!.
func TestChebyshevExpansion(t *testing.T) {
	const rounding = 3e-14 // of sums of 40 terms with Bessel functions, and of angles up to 40 periods
	shorterCases := 0      // cases in which one polynomial less was tried
	for _, topFrequency := range []int{1, 7, 40} {
		for cells := 1; cells <= 16; cells *= 2 {
			for terms := 1; terms < 40; terms += 3 {
				e := expansion{axis: axis{low: -1, side: 3, spacing: 0.2}, topFrequency: topFrequency,
					width: functionCount(topFrequency), cells: cells, terms: terms,
					halfAngle: 0.2 * math.Pi * 3 / float64(cells)}
				e.setBessel()
				worst, bound := worstError(&e, terms), truncation(float64(topFrequency)*e.halfAngle, terms)
				if worst > bound+rounding {
					t.Errorf("frequency %d, %d cells, %d polynomials: error %.3g, bound %.3g", topFrequency, cells,
						terms, worst,
						bound)
				}
				if bound > 1e-12 && bound < 1e-5 && float64(topFrequency)*e.halfAngle < float64(terms)/3 {
					shorterCases++
					if shorter := worstError(&e, terms-1); shorter <= bound {
						t.Errorf("frequency %d, %d cells, %d polynomials: without the last the error is %.3g, bound %.3g",
							topFrequency, cells, terms, shorter, bound)
					}
				}
			}
		}
	}
	if shorterCases < 10 {
		t.Errorf("one polynomial less was tried %d times only", shorterCases)
	}
}

// worstError returns the largest error of the expansion with the given number of polynomials.
func worstError(e *expansion, terms int) (worst float64) {
	var scratch []float64
	row := make([]float64, terms)
	for cell := range e.cells {
		coefficients := e.coefficients(cell, &scratch)
		for position := -1.0; position <= 1; position += 1.0 / 16 {
			chebyshev(row, position)
			for q := range e.topFrequency + 1 {
				sum := -cmplx.Exp(complex(0, float64(q)*(float64(2*cell+1)+position)*e.halfAngle))
				for j, v := range row {
					pair := coefficients.Data[j*coefficients.Stride+2*q:]
					sum += complex(v*pair[0], v*pair[1])
				}
				worst = max(worst, cmplx.Abs(sum))
			}
		}
	}
	return worst
}

// TestSumsAndValues compares the sums and values of a series with sums of cosines and sines, one point and mode at a
// time, for each size of a cell.
func TestSumsAndValues(t *testing.T) {
	defer func(angles []float64) { cellAngles = angles }(cellAngles)
	for _, angle := range cellAngles {
		cellAngles = []float64{angle}
		for d := 1; d <= 3; d++ {
			for name, x := range pointSets(40, d, 5) {
				if name == "line" || name == "duplicates" {
					continue
				}
				s := testkit.Must(New(kernel.Gaussian{Sigma: []float64{0.02, 0.3, 1}[d-1]}, Options{EntryError: 1e-3}, x))
				phi, v, beta := features(s, x), mat.NewDense(x.N, 2, nil), mat.NewDense(s.Modes(), 2, nil)
				rng.New(6).Normals(v.RawMatrix().Data, 0)
				rng.New(7).Normals(beta.RawMatrix().Data, 0)
				normal, projected, err := s.NormalEquations(t.Context(), x, nil, v)
				testkit.OK(t, err)
				gram := testkit.Must(normal.Matrix(t.Context()))
				for i := range s.Modes() {
					for j := range i {
						gram.Set(j, i, gram.At(i, j))
					}
				}
				var wantGram, wantProjected, wantValues mat.Dense
				wantGram.Mul(phi.T(), phi)
				wantProjected.Mul(phi.T(), v)
				wantValues.Mul(phi, beta)
				for quantity, c := range map[string]struct{ got, want *mat.Dense }{
					"ΦᵀΦ":                  {gram, &wantGram},
					"NormalEquations' ΦᵀV": {projected, &wantProjected},
					"Project":              {testkit.Must(s.Project(t.Context(), x, v)), &wantProjected},
					"Eval":                 {testkit.Must(s.Eval(t.Context(), x, beta)), &wantValues},
				} {
					var difference mat.Dense
					difference.Sub(c.got, c.want)
					relative := mat.Norm(&difference, 2) / mat.Norm(c.want, 2)
					if !(relative < 2e-14) { // about 100 roundings
						t.Errorf("d = %d, %s, angle %g, %s: relative error %.3g", d, name, angle, quantity, relative)
					}
				}
			}
		}
	}
}

// TestPointOutsideBox checks that a point outside the box of the training points panics, because the expansions do not
// hold there.
func TestPointOutsideBox(t *testing.T) {
	for _, x := range []*points.Dense{points.NewDense(2, 1, []float64{0, 1}), points.NewDense(1, 1, nil)} {
		s := testkit.Must(New(kernel.Gaussian{Sigma: 0.3}, Options{}, x))
		for _, v := range []float64{-0.1, 1.1, math.NaN()} {
			outside := points.NewDense(1, 1, []float64{v})
			beta := mat.NewDense(s.Modes(), 1, nil)
			testkit.Panics(t, map[string]func(){"outside": func() { _, _ = s.Eval(t.Context(), outside, beta) }})
		}
	}
}
