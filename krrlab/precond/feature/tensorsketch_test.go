package feature_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// sketchByDefinition returns φ(x) by its definition. For each of the (d+1)^q tuples (i₁, …, i_q) it adds G(i₁, …,
// i_q)·x̂_{i₁}⋯x̂_{i_q} to bucket Σ h_t(i_t) mod s. With misprint the sign is Π g_t(i₁), as section 2.2 of the paper
// prints it.
func sketchByDefinition(m *feature.TensorSketchMap, k kernel.Polynomial, x []float64, misprint bool) []float64 {
	d, s := m.Dims()
	extended := make([]float64, d+1)
	for i, v := range x {
		extended[i] = math.Sqrt(k.Gamma) * v
	}
	extended[d] = math.Sqrt(k.Coef0)
	z := make([]float64, s)
	tuple := make([]int, k.Degree)
	for {
		bucket, value := 0, 1.0
		for t, i := range tuple {
			h, g := m.Hash(t, i)
			if misprint {
				_, g = m.Hash(t, tuple[0])
			}
			bucket += h
			value *= g * extended[i]
		}
		z[bucket%s] += value
		t := 0
		for ; t < len(tuple); t++ {
			if tuple[t]++; tuple[t] <= d {
				break
			}
			tuple[t] = 0
		}
		if t == len(tuple) {
			return z
		}
	}
}

// TestTensorSketchDefinition compares TensorSketch, which uses the FFT, with the definition, for lengths with small
// and large prime factors and all kinds of points.
func TestTensorSketchDefinition(t *testing.T) {
	for _, q := range []int{1, 2, 3, 4} {
		for _, s := range []int{1, 2, 16, 30, 37, 211} {
			k := kernel.Polynomial{Gamma: 0.7, Coef0: 1.3, Degree: q}
			x, csr := sparsify(normalPoints(5, 4, 1, 9))
			x32 := testkit.RoundToFloat32(x)
			for i, v := range csr.Val {
				csr.Val[i] = float64(float32(v))
			}
			m := sampleMap(t, feature.TensorSketch{Kernel: k}, 4, s, uint64(q*1000+s)).(*feature.TensorSketchMap)
			for _, pts := range []points.Points{x, csr, x32} {
				got := featuresOf(m, pts)
				z := make([]float32, len(got))
				m.MapTo32(z, s, pts, &feature.Workspace{})
				for i := range 5 {
					want := sketchByDefinition(m, k, x.Row(i), false)
					name := fmt.Sprintf("q=%d, s=%d, %T, point %d", q, s, pts, i)
					scale := math.Pow(k.Eval(x.Row(i), x.Row(i)), 0.5)
					checkNear(t, name, got[i*s:(i+1)*s], want, 1e-13*scale)
					checkNear(t, name+" in float32", inFloat64(z[i*s:(i+1)*s]), want, 3e-7*scale)
				}
			}
		}
	}
}

// TestTensorSketchMoments checks E[φ(x)ᵀφ(z)] = k(x, z) and Var ≤ (2+3^q)/s·k(x,x)k(z,z) over 4,000 draws, with the
// threshold of five standard errors (deviates). The sign that the paper prints, g₁(i₁)g₂(i₁), must be found
// biased: for x = (1, 1, 1, 1), d = 4, q = 2, c = 0 and s = 16 its mean is 16 + 4·12/16 = 19, not 16.
func TestTensorSketchMoments(t *testing.T) {
	const draws = 4000
	ones := []float64{1, 1, 1, 1}
	other := []float64{0.5, -1, 2, 0.25}
	for _, test := range []struct {
		k    kernel.Polynomial
		x, z []float64
		s    int
	}{
		{kernel.Polynomial{Gamma: 1, Coef0: 0, Degree: 2}, ones, ones, 16},
		{kernel.Polynomial{Gamma: 0.5, Coef0: 1, Degree: 3}, ones, other, 16},
		{kernel.Polynomial{Gamma: 0.5, Coef0: 1, Degree: 3}, other, other, 11},
	} {
		products, misprintedProducts := make([]float64, draws), make([]float64, draws)
		for draw := range draws {
			m := sampleMap(t, feature.TensorSketch{Kernel: test.k}, 4, test.s, uint64(draw)).(*feature.TensorSketchMap)
			z := featuresOf(m, points.NewDense(2, 4, append(append([]float64{}, test.x...), test.z...)))
			products[draw] = floats.Dot(z[:test.s], z[test.s:])
			misprintedProducts[draw] = floats.Dot(sketchByDefinition(m, test.k, test.x, true),
				sketchByDefinition(m, test.k, test.z, true))
		}
		k := test.k.Eval(test.x, test.z)
		mean, stdErr := meanOf(products)
		if deviates(products, k) {
			t.Errorf("%v: mean of φ(x)ᵀφ(z) is %.3f ± %.3f, want %.3f", test.k, mean, stdErr, k)
		}
		bound := (2 + math.Pow(3, float64(test.k.Degree))) / float64(test.s) * test.k.Eval(test.x,
			test.x) * test.k.Eval(test.z, test.z)
		if variance := stdErr * stdErr * draws; variance > bound {
			t.Errorf("%v: variance of φ(x)ᵀφ(z) is %.3f, above the bound %.3f", test.k, variance, bound)
		}
		if test.k.Degree == 2 {
			if !deviates(misprintedProducts, k) || deviates(misprintedProducts, 19) {
				mean, stdErr := meanOf(misprintedProducts)
				t.Errorf("%v: with the printed sign the mean is %.3f ± %.3f, expected 19, biased", test.k, mean, stdErr)
			}
		}
	}
}
