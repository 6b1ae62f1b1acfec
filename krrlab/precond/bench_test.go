package precond_test

import (
	"context"
	"fmt"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/precond"
)

const benchN, benchS = 20000, 2000

func useOpenBLAS(b *testing.B) {
	lib, err := accel.OpenBLAS()
	if err != nil {
		b.Skip(err)
	}
	accel.Use(lib)
	b.Cleanup(func() { accel.Use(nil) })
}

// BenchmarkNew reports the seconds of each stage at n = 20,000, s = 2,000.
func BenchmarkNew(b *testing.B) {
	useOpenBLAS(b)
	z, _ := features(1, benchN, benchS, 0.999)
	for _, form := range forms[:3] {
		b.Run(form.String(), func(b *testing.B) {
			var gram, factor, extra float64
			for b.Loop() {
				s := build(b, z, 0.1, form).Seconds()
				gram, factor, extra = gram+s.Gram, factor+s.Factor, extra+s.Form
			}
			b.ReportMetric(gram/float64(b.N), "gram-s")
			b.ReportMetric(factor/float64(b.N), "factor-s")
			b.ReportMetric(extra/float64(b.N), "form-s")
		})
	}
}

// BenchmarkSolveTo applies M⁻¹ at n = 20,000, s = 2,000 and reports how fast Z is read,
// twice.
func BenchmarkSolveTo(b *testing.B) {
	useOpenBLAS(b)
	z, _ := features(1, benchN, benchS, 0.999)
	for _, form := range forms[:3] {
		w := build(b, z, 0.1, form)
		for _, k := range []int{1, 4, 10} {
			r, x := random(1, benchN, k), mat.NewDense(benchN, k, nil)
			b.Run(fmt.Sprintf("%v/t=%d", form, k), func(b *testing.B) {
				b.SetBytes(2 * 4 * benchN * benchS)
				for b.Loop() {
					if err := w.SolveTo(context.Background(), x, r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkMiddle times (ZᵀZ+λ_pI)⁻¹v alone, by form, as n = 1 leaves nothing else: the
// ratio of L to Linv is ρ of precond.Cost.
func BenchmarkMiddle(b *testing.B) {
	useOpenBLAS(b)
	for _, s := range []int{500, 2000, 4000} {
		z, _ := features(1, 1, s, 1)
		for _, form := range []precond.Form{precond.FormL, precond.FormLInv} {
			w := build(b, z, 0.1, form)
			for _, k := range []int{1, 10} {
				r, x := random(1, 1, k), mat.NewDense(1, k, nil)
				b.Run(fmt.Sprintf("s=%d/t=%d/%v", s, k, form), func(b *testing.B) {
					for b.Loop() {
						_ = w.SolveTo(context.Background(), x, r)
					}
				})
			}
		}
	}
}

// BenchmarkGram compares gram (in BenchmarkNew) with a dsyrk of each panel on all
// threads.
func BenchmarkGram(b *testing.B) {
	useOpenBLAS(b)
	z, _ := features(1, benchN, benchS, 0.999)
	c, panel := make([]float64, benchS*benchS), make([]float64, 512*benchS)
	b.Run("dsyrk", func(b *testing.B) {
		for b.Loop() {
			for i0 := 0; i0 < benchN; i0 += 512 {
				rows := min(512, benchN-i0)
				for k, v := range z.Data[i0*benchS : (i0+rows)*benchS] {
					panel[k] = float64(v)
				}
				blas64.Syrk(blas.Trans, 1, blas64.General{Rows: rows, Cols: benchS, Stride: benchS, Data: panel}, 1,
					blas64.Symmetric{Uplo: blas.Lower, N: benchS, Stride: benchS, Data: c})
			}
		}
	})
}
