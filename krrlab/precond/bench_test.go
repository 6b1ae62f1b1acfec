package precond_test

import (
	"context"
	"fmt"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond"
)

const benchN, benchS = 20000, 2000

// BenchmarkNew reports the seconds of each step of New for n = 20,000 and s = 2,000, and the ratio of the time of ZᵀZ
// to that of ns² flops at the measured rate.
func BenchmarkNew(b *testing.B) {
	testkit.FastBLAS(b)
	rates := testkit.MeasureRates()
	z, _ := decayingFeatures(1, benchN, benchS, 0.999)
	for _, form := range forms[:3] {
		for _, fast := range []bool{false, true} {
			b.Run(fmt.Sprintf("%v/fast=%v", form, fast), func(b *testing.B) {
				gramSeconds, rate := 0.0, rates.Gemm64
				if fast {
					rate = rates.Gemm32
				}
				var factorSeconds, formSeconds float64
				for b.Loop() {
					w, err := precond.New(context.Background(), z, 0.1, &precond.Options{Form: form, Fast: fast})
					testkit.OK(b, err)
					seconds := w.Seconds()
					gramSeconds += seconds.Gram
					factorSeconds += seconds.Factor
					formSeconds += seconds.Form
				}
				b.ReportMetric(gramSeconds/float64(b.N)/(benchN*benchS*benchS/rate), "gram-x-floor")
				b.ReportMetric(factorSeconds/float64(b.N), "factor-s")
				b.ReportMetric(formSeconds/float64(b.N), "form-s")
			})
		}
	}
}

// BenchmarkSolveTo applies M⁻¹ for n = 20,000 and s = 2,000. The lower limit of the time is that of reading Z and the
// triangular factor twice, or of 4ns+2s² flops for each column.
func BenchmarkSolveTo(b *testing.B) {
	testkit.FastBLAS(b)
	z, _ := decayingFeatures(1, benchN, benchS, 0.999)
	for _, form := range forms[:3] {
		w := buildForm(b, z, 0.1, form)
		for _, columns := range []int{1, 10, 26} {
			r, x := normalMatrix(1, benchN, columns), mat.NewDense(benchN, columns, nil)
			b.Run(fmt.Sprintf("%v/t=%d", form, columns), func(b *testing.B) {
				testkit.BenchmarkFloor(b, 8*benchS*(benchN+benchS), 0, float64(columns)*2*benchS*(2*benchN+benchS),
					func() error {
						return w.SolveTo(context.Background(), x, r)
					})
			})
		}
	}
}

// BenchmarkInnerSolve times (ZᵀZ+λ_pI)⁻¹v alone: with n = 1 the products with Z cost nothing. The ratio of the times of
// FormL and FormLInv is the constant ρ of precond.Cost.
func BenchmarkInnerSolve(b *testing.B) {
	testkit.FastBLAS(b)
	for _, s := range []int{500, 2000, 4000} {
		z, _ := decayingFeatures(1, 1, s, 1)
		for _, form := range []precond.Form{precond.FormL, precond.FormLInv} {
			w := buildForm(b, z, 0.1, form)
			for _, columns := range []int{1, 10} {
				r, x := normalMatrix(1, 1, columns), mat.NewDense(1, columns, nil)
				b.Run(fmt.Sprintf("s=%d/t=%d/%v", s, columns, form), func(b *testing.B) {
					for b.Loop() {
						_ = w.SolveTo(context.Background(), x, r)
					}
				})
			}
		}
	}
}
