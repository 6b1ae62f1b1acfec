package kernel_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestRadialEntryError checks user-defined radial kernels at all distances from zero. Tiles from differences must equal
// Profile, and the error of tiles from inner products must be at most EntryError.
func TestRadialEntryError(t *testing.T) {
	const n, d = 30, 6
	var w kernel.Workspace
	tile, exact := make([]float64, n*n), make([]float64, n*n)
	for _, k := range []multiquadric{{1, 1}, {0.25, 3}, {40, 0.01}} {
		for _, shift := range []float64{0, 1, 1e3, 1e6} {
			x := pointsInFormats(7, n, d, 1)[0].(*points.Dense)
			for i := range x.Data {
				x.Data[i] += shift
			}
			p := points.NewPanel(x)
			kernel.Tile64(exact, n, k, p, p, kernel.Differences, &w)
			kernel.Tile64(tile, n, k, p, p, kernel.Float64, &w)
			bound, worst := kernel.EntryError(k, kernel.Float64, kernel.SummaryOf(p)), 0.0
			for i, v := range tile {
				worst = max(worst, math.Abs(v-exact[i])/k.C)
			}
			if worst > bound || bound > 2 || k.Sigma >= 1 && bound > 1e4*worst {
				t.Errorf("%v of points shifted by %g: error %g, bound %g", k, shift, worst, bound)
			}
		}
		testkit.Equal(t, kernel.EntryError(k, kernel.Differences, kernel.PointSummary{Dim: d, MaxSq: 1}), 0, k)
	}
	testkit.Equal(t, kernel.EntryError(rootExponential{}, kernel.Float64, kernel.PointSummary{Dim: d, MaxSq: 1}), 2)
	arithmetic, bound := kernel.ChooseArithmetic(rootExponential{}, kernel.PointSummary{Dim: d, MaxSq: 1}, 1e-3)
	if arithmetic != kernel.Differences || bound != 0 {
		t.Errorf("infinite slope: %v with the bound %g, want Differences with 0", arithmetic, bound)
	}
	if bound := kernel.EntryError(rootExponential{}, kernel.Float64, kernel.PointSummary{Dim: d}); !(bound < 1e-14) {
		t.Errorf("points at zero: EntryError %g", bound)
	}
}

// rootExponential is the radial kernel e^−r, whose slope with respect to r² is infinite.
type rootExponential struct{}

func (rootExponential) String() string              { return "ramp" }
func (rootExponential) Eval(x, z []float64) float64 { return math.Exp(-math.Abs(x[0] - z[0])) }
func (rootExponential) Slope() float64              { return math.Inf(1) }
func (rootExponential) Profile(dst, sq []float64) {
	for i, v := range sq {
		dst[i] = math.Exp(-math.Sqrt(v))
	}
}

// falseClaims is multiquadric{1, 1} with a false Profile, Slope or maximum.
type falseClaims struct {
	multiquadric
	factor float64 // factor of Profile
	slope  float64 // the result of Slope; ½ is right
	jumps  bool    // k is 3 at distances above 1
}

func (k falseClaims) Slope() float64 { return k.slope }
func (k falseClaims) Profile(dst, sq []float64) {
	for i, v := range sq {
		if k.jumps && v > 1 {
			dst[i] = 3
			continue
		}
		dst[i] = k.factor / math.Sqrt(1+v)
	}
}
func (k falseClaims) Eval(x, z []float64) float64 {
	if k.jumps && k.multiquadric.Eval(x, z) < 0.7 {
		return 3
	}
	return k.multiquadric.Eval(x, z)
}

// mismatchedProfile overrides only Eval of a built-in kernel, so Profile belongs to another kernel.
type mismatchedProfile struct{ kernel.Gaussian }

func (mismatchedProfile) Eval(x, z []float64) float64 { return 1 / (1 + math.Abs(x[0]-z[0])) }

// decreasing is multiquadric with the true claim that it decreases.
type decreasing struct{ multiquadric }

func (decreasing) Decreasing() {}

// falselyDecreasing is cos r with the false claim that it decreases.
type falselyDecreasing struct{ decreasing }

func (falselyDecreasing) Profile(dst, sq []float64) {
	for i, v := range sq {
		dst[i] = math.Cos(math.Sqrt(v))
	}
}
func (k falselyDecreasing) Eval(x, z []float64) float64 {
	return math.Cos(math.Sqrt(1/math.Pow(k.decreasing.Eval(x, z), 2) - 1))
}

// TestCheck checks that Check compares the claims of a radial kernel with its values, and that the error names the
// false one.
func TestCheck(t *testing.T) {
	base := multiquadric{1, 1}
	x := pointsInFormats(9, 200, 1, 1)[0]
	for _, c := range []struct {
		k    kernel.Kernel
		want string // part of the error; "" for none
	}{
		{base, ""}, {rootExponential{}, ""}, {minKernel{}, ""}, {kernel.Gaussian{Sigma: 1e-3}, ""},
		{multiquadric{7, 1e-3}, ""},
		{multiquadric{7, 1e3}, ""},
		{falseClaims{base, 1, 0.5, false}, ""},
		{falseClaims{base, 1, math.Inf(1), false}, ""},
		{falseClaims{base, 1, 0.499, false}, "Slope() = 0.499"},
		{falseClaims{base, 1, 0, false}, "Slope() = 0"},
		{falseClaims{base, 1, math.NaN(), false}, "Slope() = NaN"},
		{falseClaims{base, 1.001, 1, false}, "by Profile and"},
		{falseClaims{base, -1, 1, false}, "g(0) = -1"},
		{falseClaims{base, 1, 0.5, true}, "above k(x, x) = 1"},
		{mismatchedProfile{kernel.Gaussian{Sigma: 1}}, "by Profile and"},
		{decreasing{base}, ""}, {falselyDecreasing{decreasing{base}}, "says that it decreases"},
		{minKernelTiles{minKernel{}, new(int)}, ""}, {transposedTiles{minKernelTiles{minKernel{}, new(int)}},
			"by EvalTile and"},
		{shortTiles{minKernelTiles{minKernel{}, new(int)}}, "is NaN by EvalTile and"},
	} {
		err := kernel.Check(c.k, x)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.k, err, c.want)
		}
	}
	if err := kernel.Check(falseClaims{base, 2, 2, false}, points.NewDense(1, 1, nil)); err == nil {
		t.Error("one point: no error")
	}
}

// transposedTiles exchanges the rows and columns of its tiles.
type transposedTiles struct{ minKernelTiles }

func (k transposedTiles) EvalTile(dst, x, z []float64, nx, nz int) {
	k.minKernelTiles.EvalTile(dst, z, x, nz, nx)
}

// shortTiles omits the last entry of its tiles.
type shortTiles struct{ minKernelTiles }

func (k shortTiles) EvalTile(dst, x, z []float64, nx, nz int) {
	k.minKernelTiles.EvalTile(dst[:len(dst)-1], x, z, nx, nz)
}

// unexportedField has an unexported field, which JSON cannot store.
type unexportedField struct {
	multiquadric
	c int
}

func (k *multiquadric32) Validate() error {
	if k.Sigma > 10 {
		return fmt.Errorf("multiquadric32 has σ = %g, want at most 10", k.Sigma)
	}
	return nil
}

// TestRegister writes registered kernels, values and pointers, to JSON and reads them back, and checks the errors for
// invalid files and invalid registrations.
func TestRegister(t *testing.T) {
	testkit.OK(t, kernel.Register("test.multiquadric", multiquadric{}))
	testkit.OK(t, kernel.Register("test.multiquadric", multiquadric{1, 2})) // once more
	testkit.OK(t, kernel.Register("test.multiquadric32", &multiquadric32{}))
	for _, k := range []kernel.Kernel{multiquadric{0.1, 1.0 / 3}, &multiquadric32{multiquadric{2, 3}}} {
		spec := testkit.Must(kernel.ToSpec(k))
		encoded, err := json.MarshalIndent(spec, "", "  ")
		var decoded kernel.Spec
		if err != nil || json.Unmarshal(encoded, &decoded) != nil || decoded != spec {
			t.Errorf("%s: %+v, %v, want %+v", encoded, decoded, err, spec)
		}
		if got, err := kernel.FromSpec(decoded); err != nil || got.String() != k.String() ||
			got.Eval([]float64{1}, []float64{3}) != k.Eval([]float64{1}, []float64{3}) {
			t.Errorf("%s: %v, %v", encoded, got, err)
		}
	}
	for want, spec := range map[string]kernel.Spec{
		`unknown kernel "other"`:            {Name: "other", Params: "{}"},
		"unknown field":                     {Name: "test.multiquadric", Params: `{"C":1,"Sigma":1,"Run":"x"}`},
		"more than one":                     {Name: "test.multiquadric", Params: `{"C":1} {"C":2}`},
		"cannot unmarshal":                  {Name: "test.multiquadric", Params: `{"C":"x"}`},
		"EOF":                               {Name: "test.multiquadric"},
		"no parameters":                     {Name: "test.multiquadric32", Params: "null"},
		"want at most 10":                   {Name: "test.multiquadric32", Params: `{"C":1,"Sigma":11}`},
		"no such parameter: {Name:test.mul": {Name: "test.multiquadric", Params: `{"C":1}`, Sigma: 2},
		"gaussian has no such parameter":    {Name: "gaussian", Sigma: 1, Params: "{}"},
		`unknown kernel "rbf"`:              {Name: "rbf", Sigma: 1},
		"gaussian has sigma = 0":            {Name: "gaussian"},
		"no such parameter: {Name:gaussian Sigma:1 Gamma:0 Coef0:0 Degree:2": {Name: "gaussian", Sigma: 1, Degree: 2},
		"polynomial has no such parameter":                                   {Name: "polynomial", Gamma: 1, Degree: 2, Sigma: 1},
	} {
		if k, err := kernel.FromSpec(spec); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, %v, want %q", spec, k, err, want)
		}
	}
	testkit.Fails(t, testkit.ErrOf(kernel.ToSpec(minKernel{})), "kernel.Register(name, kernel_test.minKernel{…})")
	for _, c := range []struct {
		name string
		k    kernel.Kernel
		want string
	}{
		{"", minKernel{}, `such as "mylab.kernel"`}, {"own", minKernel{}, `such as "mylab.own"`}, {".own", minKernel{}, `"mylab.own"`},
		{"gaussian", minKernel{}, "names without a dot are for built-in kernels"},
		{"test.other", multiquadric{}, `"test.multiquadric" is registered for kernel_test.multiquadric`},
		{"test.multiquadric", minKernel{}, "is registered for kernel_test.multiquadric"},
		{"test.gaussian", kernel.Gaussian{}, "want a user-defined type"}, {"test.nil", nil, "want a user-defined type"},
		{"test.func", kernel.Func{F: minKernel{}.Eval}, "want a user-defined type"},
		{"test.hidden", unexportedField{c: 1}, "JSON cannot hold all of its fields"},
	} {
		testkit.Fails(t, kernel.Register(c.name, c.k), c.want)
	}
}

// TestParse reads built-in and registered kernels from texts and writes them again.
func TestParse(t *testing.T) {
	testkit.OK(t, kernel.Register("test.multiquadric", multiquadric{1, 2}))
	testkit.OK(t, kernel.Register("test.multiquadric32", &multiquadric32{multiquadric{1, 2}}))
	for text, want := range map[string]struct {
		k      string
		scaled bool
	}{
		"gaussian": {"gaussian(sigma=1)", false}, "gaussian sigma=2.5": {"gaussian(sigma=2.5)", true},
		"gaussian sigma=.5": {"gaussian(sigma=0.5)", true}, "gaussian sigma=+5.": {"gaussian(sigma=5)", true},
		"polynomial degree=2":            {"polynomial(gamma=0.01, coef0=1, degree=2)", false},
		"polynomial gamma=2":             {"polynomial(gamma=2, coef0=1, degree=3)", true},
		"test.multiquadric":              {multiquadric{1, 2}.String(), false},
		" test.multiquadric  sigma=0.5 ": {multiquadric{1, 0.5}.String(), false}, // it has no scale (Scaled)
		"test.multiquadric32 C=3":        {(&multiquadric32{multiquadric{3, 2}}).String(), false},
	} {
		k, scaled, err := kernel.Parse(text)
		if err != nil || k.String() != want.k || scaled != want.scaled {
			t.Errorf("%q: %v, %v, %v", text, k, scaled, err)
			continue
		}
		decoded, _, err := kernel.Parse(testkit.Must(kernel.ToSpec(k)).Text())
		testkit.OK(t, err)
		testkit.Equal(t, decoded.String(), want.k, text)
	}
	for text, want := range map[string]string{
		"": `unknown kernel ""`, "rbf": `unknown kernel "rbf"`, "gaussian alpha=2": `no parameter "alpha"`,
		"gaussian sigma": `no parameter "sigma"`, "gaussian sigma=x": "want a number", "gaussian sigma=-1": "sigma = -1",
		"polynomial degree=1.5": "want a whole number", "gaussian sigma=null": "want a number", "gaussian sigma=inf": "want a number",
	} {
		_, _, err := kernel.Parse(text)
		testkit.Fails(t, err, want)
	}
}

// TestDerivative compares Derivative of every built-in kernel with central differences of Profile.
func TestDerivative(t *testing.T) {
	for _, k := range builtInKernels(0.7) {
		d, ok := k.(kernel.Differentiable)
		if !ok {
			continue
		}
		for _, argument := range []float64{0.3, 1, 4} {
			const h = 1e-5
			g := []float64{argument - h, argument, argument + h}
			d.(interface{ Profile(dst, s []float64) }).Profile(g, g)
			want := (g[2] - g[0]) / (2 * h)
			if got := d.Derivative(argument, g[1]); math.Abs(got-want) > 1e-8*(1+math.Abs(want)) {
				t.Errorf("%v at %g: %g, by differences %g", d, argument, got, want)
			}
		}
	}
}
