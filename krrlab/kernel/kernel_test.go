package kernel_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestEval compares the kernels with values worked out by hand: x−z = (3, 4), so r = 5, ‖x−z‖₁ = 7 and xᵀz = −5.
func TestEval(t *testing.T) {
	x, z := []float64{1, 3}, []float64{-2, -1}
	for _, c := range []struct {
		k    kernel.Kernel
		want float64
	}{
		{kernel.Gaussian{Sigma: 5}, math.Exp(-0.5)},
		{kernel.Laplacian{Sigma: 7}, math.Exp(-1)},
		{kernel.Matern32{Sigma: 5 * math.Sqrt(3)}, 2 * math.Exp(-1)},
		{kernel.Matern52{Sigma: 5 * math.Sqrt(5)}, (1 + 1 + 1.0/3) * math.Exp(-1)},
		{kernel.Polynomial{Gamma: 0.4, Coef0: 4, Degree: 5}, 32},
		{kernel.Polynomial{Gamma: 1, Coef0: 0, Degree: 1}, -5},
		{kernel.Func{F: func(x, z []float64) float64 { return x[0] - z[1] }}, 2},
	} {
		testkit.Near(t, c.k.Eval(x, z), c.want, 1e-14*math.Abs(c.want), c.k)
	}
}

// TestValidate checks that each invalid parameter is an error that names it.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		k    kernel.Kernel
		want string // "" if valid
	}{
		{nil, "no kernel"},
		{kernel.Gaussian{Sigma: 8.5}, ""},
		{kernel.Gaussian{}, "sigma = 0"},
		{kernel.Gaussian{Sigma: 1e-200}, "sigma = 1e-200"},
		{kernel.Gaussian{Sigma: 1e200}, "sigma = 1e+200"},
		{kernel.Laplacian{Sigma: -1}, "sigma = -1"},
		{kernel.Matern32{Sigma: math.NaN()}, "sigma = NaN"},
		{kernel.Matern52{Sigma: math.Inf(1)}, "sigma = +Inf"},
		{kernel.Polynomial{Gamma: 0.01, Coef0: 1, Degree: 3}, ""},
		{kernel.Polynomial{Gamma: 0, Coef0: 1, Degree: 3}, "gamma = 0"},
		{kernel.Polynomial{Gamma: 1, Coef0: -1, Degree: 3}, "coef0 = -1"},
		{kernel.Polynomial{Gamma: 1, Coef0: math.Inf(1), Degree: 3}, "coef0 = +Inf"},
		{kernel.Polynomial{Gamma: 1, Degree: 0}, "degree = 0"},
		{kernel.Func{Name: "mine"}, "mine has no function"},
		{&failingKernel{}, "cannot be used"},
	} {
		err := kernel.Validate(c.k)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("Validate(%v) = %v, want %q", c.k, err, c.want)
		}
	}
}

// failingKernel is a user-defined kernel whose method Validate always fails.
type failingKernel struct{}

func (*failingKernel) Eval(x, z []float64) float64 { return 0 }
func (*failingKernel) String() string              { return "strange" }
func (*failingKernel) Validate() error             { return errors.New("cannot be used") }

// TestSpecRoundTrip writes kernels to JSON and reads them back. A function has no Spec.
func TestSpecRoundTrip(t *testing.T) {
	for _, k := range []kernel.Kernel{
		kernel.Gaussian{Sigma: 8.5}, kernel.Laplacian{Sigma: 1.0 / 3}, kernel.Matern32{Sigma: 1e-3},
		kernel.Matern52{Sigma: 1e5},
		kernel.Polynomial{Gamma: 0.01, Coef0: 1, Degree: 3}, kernel.Polynomial{Gamma: 2, Degree: 1},
	} {
		spec := testkit.Must(kernel.ToSpec(k))
		encoded, _ := json.Marshal(spec)
		var decoded kernel.Spec
		testkit.OK(t, json.Unmarshal(encoded, &decoded))
		if got, err := kernel.FromSpec(decoded); err != nil || got != k {
			t.Errorf("FromSpec(%s) = %v, %v, want %v", encoded, got, err, k)
		}
	}
	testkit.Fails(t, testkit.ErrOf(kernel.ToSpec(kernel.Func{Name: "mine"})), "mine is a Go function")
	if _, err := kernel.ToSpec(nil); err == nil {
		t.Error("ToSpec of nil: no error")
	}
}

// TestDiag compares Diag with Eval of each point with itself.
func TestDiag(t *testing.T) {
	x := points.NewDense(3, 2, []float64{0, 0, 1, 2, 1e3, -1e3})
	for _, k := range kernels {
		row := make([]float64, 2)
		for i, got := range kernel.Diag(k, x) {
			x.RowTo(row, i)
			if want := k.Eval(row, row); math.Abs(got-want) > 1e-15*want {
				t.Errorf("%v: diagonal %d is %v, want %v", k, i, got, want)
			}
		}
	}
}

// TestShortText checks that the short text of a kernel has its parameters with four digits, and that a function without
// a name is called func.
func TestShortText(t *testing.T) {
	for spec, want := range map[kernel.Spec]string{
		{Name: "polynomial", Gamma: 0.0123456, Coef0: 1.00004,
			Degree: 3}: "polynomial(gamma=0.01235, coef0=1, degree=3)",
		{Name: "matern52", Sigma: 8.5}: "matern52(sigma=8.5)",
		{Name: "my kernel"}:            "my kernel",
	} {
		testkit.Equal(t, spec.Short(), want)
	}
	if function := (kernel.Func{F: kernel.Gaussian{Sigma: 1}.Eval}); function.String() != "func" ||
		kernel.Validate(function) != nil {
		t.Errorf("a function without a name is %q, or invalid", function)
	}
	testkit.Equal(t, (kernel.Spec{Name: "gaussian",
		Sigma: 2.0 / 3}).Shorten("features of gaussian(sigma=0.6666666666666666)"), "features of "+
		"gaussian(sigma=0.6667)")
}
