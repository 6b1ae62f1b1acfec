package kernel_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
)

// TestFrequencies checks, to five standard errors, that every built-in kernel with a spectrum is the mean of cos(wr)
// over random frequencies w, from Spread or Frequency.
func TestFrequencies(t *testing.T) {
	const draws = 4000
	g, w := rng.New(3).Sub("spectrum"), make([]float64, draws)
	for _, r := range []float64{0.1, 0.7, 3} {
		checkMean := func(k kernel.Kernel, term func(i int) float64) {
			var mean, meanSquare float64
			for i := range draws {
				v := term(i)
				mean, meanSquare = mean+v/draws, meanSquare+v*v/draws
			}
			standardError := math.Sqrt(max(0, meanSquare-mean*mean) / draws)
			if want := k.Eval([]float64{r}, []float64{0}); !(math.Abs(mean-want) <= 5*standardError+1e-9) {
				t.Errorf("%v at %g: mean %g, want %g", k, r, mean, want)
			}
		}
		for _, k := range builtInKernels(0.8) {
			switch k := k.(type) {
			case kernel.Mixture:
				checkMean(k, func(i int) float64 {
					v := k.Spread(g.Sub("draw", uint64(i))) * r
					return math.Exp(-v * v / 2) // E cos(wr) for normal frequencies w with this spread
				})
			case kernel.Spectral:
				k.Frequency(w, g)
				checkMean(k, func(i int) float64 { return math.Cos(w[i] * r) })
			}
		}
	}
}

// TestTailBound checks that TailBound is at least the kernel at every distance and hardly larger, and which kernels
// are bounded by 1 or costly.
func TestTailBound(t *testing.T) {
	for _, k := range builtInKernels(0.8) {
		if !kernel.ShiftInvariant(k) {
			continue
		}
		bound, metric := kernel.TailBound(k)
		testkit.Equal(t, (metric == tree.Manhattan), (k == kernel.Laplacian{Sigma: 0.8}), k, metric)
		for _, r := range []float64{0, 0.3, 2, 9, 1000} {
			distance := r
			if metric != tree.Manhattan {
				distance = r * r
			}
			got, want := bound(distance), k.Eval([]float64{r}, []float64{0})
			if !(got >= want) || got > want*(1+1e-9)+1e-59 { // 2⁻²⁰⁰ < 1e-59: values that are stored as 0
				t.Errorf("%v: bound %g at distance %g, want at least %g and hardly more", k, got, r, want)
			}
		}
		if !kernel.Bounded01(k) || kernel.IsExpensive(k) {
			t.Errorf("%v: in [0, 1] %v, costly %v", k, kernel.Bounded01(k), kernel.IsExpensive(k))
		}
	}
	cube := kernel.Polynomial{Gamma: 1, Degree: 3}
	if bound, _ := kernel.TailBound(cube); bound != nil || kernel.Bounded01(cube) {
		t.Errorf("%v has a tail bound or values in [0, 1]", cube)
	}
	if !kernel.IsExpensive(minKernel{}) || kernel.IsExpensive(minKernelTiles{}) {
		t.Error("IsExpensive must hold for kernels that are evaluated pair by pair only")
	}
}

// TestProse checks the descriptions of kernels in running text.
func TestProse(t *testing.T) {
	for want, k := range map[string]kernel.Kernel{
		"Gaussian kernel, σ = 0.3333":                            kernel.Gaussian{Sigma: 1. / 3},
		"Matérn 5/2 kernel, σ = 2":                               kernel.Matern52{Sigma: 2},
		"polynomial kernel of degree 3, γ = 0.5, c = 1":          kernel.Polynomial{Gamma: 0.5, Coef0: 1, Degree: 3},
		"precomputed kernel":                                     testkit.Must(kernel.NewPrecomputed(points.NewDense(2, 2, make([]float64, 4)))),
		"kernel " + kernel.Spec{Name: "other", Sigma: 2}.Short(): nil,
	} {
		spec := kernel.Spec{Name: "other", Sigma: 2}
		if k != nil {
			spec = testkit.Must(kernel.ToSpec(k))
		}
		testkit.Equal(t, spec.Prose(), want)
		if k != nil {
			testkit.Equal(t, spec.InProse("9 features of "+k.String()), "9 features of the "+want)
		}
	}
}

// rationalQuadratic is the rational quadratic kernel, with a parameter that is not a length scale.
type rationalQuadratic struct{ Sigma, Alpha float64 }

func (rationalQuadratic) Title() string { return "rational quadratic" }

func (k rationalQuadratic) String() string { return fmt.Sprintf("ratio(%v, %v)", k.Sigma, k.Alpha) }

func (k rationalQuadratic) Eval(x, z []float64) float64 {
	var sq float64
	for j, v := range x {
		sq += (v - z[j]) * (v - z[j])
	}
	return math.Pow(1+sq/(2*k.Alpha*k.Sigma*k.Sigma), -k.Alpha)
}

func (k rationalQuadratic) Scale() float64 { return k.Sigma }
func (k rationalQuadratic) WithScale(sigma float64) kernel.Kernel {
	return rationalQuadratic{sigma, k.Alpha}
}

// TestParameters checks the texts of a kernel whose parameters are not fields of a Spec.
func TestParameters(t *testing.T) {
	testkit.OK(t, kernel.Register("test.ratio", rationalQuadratic{1, 1}))
	spec := testkit.Must(kernel.ToSpec(rationalQuadratic{1. / 3, 2. / 3}))
	testkit.Equal(t, spec.Short(), "ratio(0.3333, 0.6667)")
	testkit.Equal(t, spec.Prose(), "rational quadratic kernel, σ = 0.3333, alpha = 0.6667")
	testkit.Equal(t, spec.Text(), "test.ratio sigma=0.3333333333333333 alpha=0.6666666666666666")
	testkit.Equal(t, spec.TextWithoutScale(), "test.ratio alpha=0.6666666666666666")
	testkit.Equal(t, testkit.Must(kernel.ToSpec(kernel.Polynomial{Gamma: 2, Coef0: 1, Degree: 3})).TextWithoutScale(),
		"polynomial coef0=1 degree=3")
	if _, scaled, err := kernel.Parse(spec.TextWithoutScale()); scaled || err != nil {
		t.Error(scaled, err)
	}
}
