package cli

import (
	"fmt"
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// rationalQuadratic is the rational quadratic kernel k = (1+r²/(2ασ²))^−α, registered by this test. It has the
// parameter α in addition to its length scale σ.
type rationalQuadratic struct{ Sigma, Alpha float64 }

func (k rationalQuadratic) String() string { return fmt.Sprintf("rational(%g, %g)", k.Sigma, k.Alpha) }
func (k rationalQuadratic) Eval(x, z []float64) float64 {
	var sq float64
	for i := range x {
		sq += (x[i] - z[i]) * (x[i] - z[i])
	}
	return math.Pow(1+sq/(2*k.Alpha*k.Sigma*k.Sigma), -k.Alpha)
}
func (k rationalQuadratic) Scale() float64 { return k.Sigma }
func (k rationalQuadratic) WithScale(sigma float64) kernel.Kernel {
	return rationalQuadratic{sigma, k.Alpha}
}

var errRational = kernel.Register("test.rational", rationalQuadratic{1, 1})

// TestKernelFlag checks which kernel --kernel, with and without parameters in its text, and --sigma make together.
// A missing length scale is 3 here. Two length scales, a length scale of a kernel without one, and an unknown kernel
// are errors.
func TestKernelFlag(t *testing.T) {
	testkit.OK(t, errRational)
	for _, c := range []struct {
		text  string
		sigma bandwidth
		want  string
	}{
		{"rbf", nil, "gaussian(sigma=3)"}, {"laplacian", bandwidth{3}, "laplacian(sigma=3)"},
		{"gaussian sigma=2", nil, "gaussian(sigma=2)"}, {"polynomial degree=2", nil,
			"polynomial(gamma=0.01, coef0=1, degree=2)"},
		{"polynomial", nil, "polynomial(gamma=0.01, coef0=1, degree=3)"},
		{"test.rational", nil, "rational(3, 1)"}, {"test.rational alpha=2", bandwidth{3}, "rational(3, 2)"},
	} {
		f := &kernelFlags{Sigma: c.sigma}
		testkit.OK(t, f.KernelName.Set(c.text))
		testkit.Equal(t, testkit.Must(f.buildKernel(3)).String(), c.want, c.text)
	}
	f := &kernelFlags{KernelName: "gaussian sigma=2", Sigma: bandwidth{3}}
	testkit.Fails(t, f.check(), "has the length scale already")
	f.KernelName = "polynomial degree=2"
	testkit.Fails(t, f.check(), "has no length scale")
	testkit.Fails(t, new(kernelName).Set("unknown"), `unknown kernel "unknown", want one of gaussian,`)
}
