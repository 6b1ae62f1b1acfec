package tune

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestRelevanceGradient compares the gradient by the shape and log λ with central differences, and the value with
// leave-one-out by refits, with and without weights of rows.
func TestRelevanceGradient(t *testing.T) {
	ctx := context.Background()
	const n, d = 30, 3
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 0.2 + float64(i*i%7)
	}
	weighted := *datasets.SyntheticRegression(n, d, 0.1, 1)
	weightedClasses := *toClasses(twoRelevantFeatures(n, d, bowl), -0.7, 0.4)
	weighted.Weights, weightedClasses.Weights = weights, weights
	for name, set := range map[string]*datasets.Dataset{"regression": datasets.SyntheticRegression(n, d, 0.1, 1),
		"two classes":   toClasses(twoRelevantFeatures(n, d, bowl), 0),
		"three classes": toClasses(twoRelevantFeatures(n, d, bowl), -0.7, 0.4),
		"weights":       &weighted, "weights of classes": &weightedClasses} {
		single, sampleOfAll := newProblem(t, set), (&search{data: newProblem(t, set)}).trainingSample(upTo(n))
		x := centeredDense(set.X)
		for _, k := range []kernel.Differentiable{kernel.Gaussian{Sigma: 1}, kernel.Laplacian{Sigma: 1},
			kernel.Matern32{Sigma: 1}, kernel.Matern52{Sigma: 1}} {
			for _, matrix := range []bool{true, false} {
				r := &distanceObjective{x: x, y: points.ScaleRows(sampleOfAll.sqrtWeights, single.y),
					sqrtWeights: sampleOfAll.sqrtWeights, k: k, freeLambda: true,
					matrix: matrix, priorPrecision: 0.01, priorMean: []float64{0, 0.1, 0.2, 0}}
				theta := []float64{-0.3, 0.4, 0.9, math.Log(0.2)}
				if matrix {
					theta = []float64{1.2, 0.3, -0.4, 0.2, 0.7, 0.5, -0.6, 0.1, 0.9, math.Log(0.2)}
					r.priorMean = []float64{1, 0, 0, 0.1, 1, 0, 0, 0, 1, 0}
				}
				checkGradient(t, r, theta, name)
				stretched := &problem{train: &datasets.Dataset{X: stretch(x, r.shape(theta)), Weights: set.Weights},
					y: single.y}
				residuals := points.ScaleRows(sampleOfAll.sqrtWeights, looResiduals(t, stretched, k, 0.2))
				want := defaultScoring(false).loss(single.y, residuals).objective()
				for j, v := range theta[:len(theta)-1] { // the prior, ½·priorPrecision·(θ_j − priorMean_j)²
					want += 0.005 * (v - r.priorMean[j]) * (v - r.priorMean[j])
				}
				grad := make([]float64, len(theta))
				value := testkit.Must(r.value(ctx, theta, grad))
				testkit.Near(t, value, want, 1e-8, name, k)
				r.freeLambda = false
				if _, err := r.value(ctx, theta, grad); err != nil || grad[len(theta)-1] != 0 {
					t.Errorf("λ is fixed: derivative %g by log λ, want 0; error %v", grad[len(theta)-1], err)
				}
			}
		}
	}
}

// checkGradient compares the gradient at θ with central differences.
func checkGradient(t *testing.T, r *distanceObjective, theta []float64, name string) {
	t.Helper()
	value := func(theta []float64) ([]float64, float64) {
		grad := make([]float64, len(theta))
		return grad, testkit.Must(r.value(t.Context(), theta, grad))
	}
	grad, _ := value(theta)
	for j := range theta {
		const h = 1e-5
		var f [2]float64
		for i, sign := range []float64{1, -1} {
			shifted := slices.Clone(theta)
			shifted[j] += sign * h
			_, f[i] = value(shifted)
		}
		if want := (f[0] - f[1]) / (2 * h); math.Abs(grad[j]-want) > 1e-6*(1+math.Abs(want)) {
			t.Errorf("%s, %v, matrix %v: derivative %d is %.8g, by differences %.8g", name, r.k, r.matrix, j, grad[j],
				want)
		}
	}
}

// twoRelevantFeatures returns n rows of d random features x, with the target f(x_0, x_1, noise).
func twoRelevantFeatures(n, d int, f func(a, b, noise float64) float64) *datasets.Dataset {
	g := rng.New(3)
	x, noise := points.NewDense(n, d, nil), make([]float64, n)
	g.Sub("x").Normals(x.Data, 0)
	g.Sub("noise").Normals(noise, 0)
	set := &datasets.Dataset{Name: "columns", X: x, Task: datasets.Regression}
	for j := range d {
		set.Columns = append(set.Columns, fmt.Sprint("x", j))
	}
	for i := range n {
		set.Target = append(set.Target, f(x.Row(i)[0], x.Row(i)[1], noise[i]))
	}
	return set
}

// bowl is a function of two features, linear in the first and quadratic in the second, with noise.
func bowl(a, b, noise float64) float64 { return a + b*b - 1 + noise }

// toClasses turns a regression into a classification: the classes are the intervals between the thresholds.
func toClasses(set *datasets.Dataset, thresholds ...float64) *datasets.Dataset {
	set.Task, set.Labels = datasets.Classification, []string{"0", "1", "2"}[:len(thresholds)+1]
	for _, v := range set.Target {
		c, _ := slices.BinarySearch(thresholds, v)
		set.Class = append(set.Class, c)
	}
	set.Target = nil
	return set
}

// TestLengthScales checks that irrelevant features get long length scales, which are accepted by rows that were not
// used for the fit, and that the result describes them. If all features are relevant, nothing is accepted.
func TestLengthScales(t *testing.T) {
	ctx := context.Background()
	f := func(a, b, noise float64) float64 { return math.Sin(a+b) + math.Cos(a-b) + 0.1*noise }
	o := Options{Kernels: []string{"gaussian", "laplacian"}}
	d := newProblem(t, twoRelevantFeatures(450, 8, f))
	isotropic, err := searchPoints(ctx, d, o, nil, nil)
	if err != nil || isotropic.Distances != nil || isotropic.Best.Lengths != nil {
		t.Fatalf("%+v, %v", isotropic, err)
	}
	o.Distance = "lengths"
	perFeature := testkit.Must(searchPoints(ctx, d, o, nil, nil))
	l := perFeature.Distances[0]
	if l == nil || !l.Accepted || len(perFeature.Best.Lengths) != 8 ||
		float64(perFeature.Best.Error) > 0.6*float64(isotropic.Best.Error) {
		t.Fatalf("%+v: %+v", perFeature.Best, l)
	}
	lengths := perFeature.Best.Lengths
	if max(lengths[0], lengths[1]) > slices.Min(lengths[2:])/3 ||
		!slices.Equal(slices.Sorted(slices.Values(l.RelevantFeatures[:2])), []string{"x0", "x1"}) {
		t.Errorf("length scales %v, most relevant features %v", lengths, l.RelevantFeatures)
	}
	testkit.Equal(t, perFeature.Best.Spec().Sigma, 1, "σ next to length scales")
	testkit.Contains(t, perFeature.Best.flags(), fmt.Sprintf("--sigma %g,%g,", lengths[0], lengths[1]))
	for _, text := range []string{perFeature.String(), perFeature.Short(), perFeature.Table().Caption,
		perFeature.Plot().Caption} {
		testkit.Contains(t, text, perFeature.mostRelevant(5))
	}
	testkit.Contains(t, perFeature.errorMapFigure("RMSE").Title, "lengths: "+l.RelevantFeatures[0])
	rows := upTo(450)
	train, _, err := datasets.ChangeDistance(perFeature.Best.Lengths, d.train, nil)
	testkit.OK(t, err)
	k := testkit.Must(kernel.FromSpec(perFeature.Best.Spec()))
	sampleOfAll := (&search{data: d}).newSample(rows)
	sampleOfAll.setShape(l.Shape)
	geometric := testkit.Must(kernel.FromSpec(kernel.Spec{Name: perFeature.Best.Kernel, Sigma: perFeature.Best.Sigma}))
	found := testkit.Must(sampleOfAll.loss(ctx, geometric, perFeature.Best.Lambda))
	for i := 0; i < 450; i += 90 { // leave-one-out losses of a few rows by refits with the result
		e := fitResiduals(t, &problem{train: train, y: d.y}, k, perFeature.Best.Lambda,
			slices.Concat(rows[:i], rows[i+1:]), []int{i}).At(0, 0)
		testkit.Near(t, found.rows[i], e*e, 1e-5*(1+e*e), "loss of row", i)
	}
	equallyRelevant, err := searchPoints(ctx, newProblem(t, twoRelevantFeatures(450, 2,
		func(a, b, noise float64) float64 { return math.Sin(a+b) + math.Cos(a-b) + noise })), o, nil, nil)
	if err != nil || len(equallyRelevant.Distances) != 1 || equallyRelevant.Distances[0].Accepted ||
		equallyRelevant.Best.Lengths != nil || !strings.Contains(equallyRelevant.String(), "not taken") {
		t.Errorf("two equally relevant features: %+v, error %v; want no length scales", equallyRelevant, err)
	}
	for name, options := range map[string]Options{
		"fixed σ":    {Kernels: []string{"gaussian"}, Sigma: 1, Distance: "lengths"},
		"polynomial": {Kernels: []string{"polynomial degree=2"}, Distance: "lengths"},
	} {
		if r, err := searchPoints(ctx, newProblem(t, twoRelevantFeatures(200, 3, f)), options, nil, nil); err != nil ||
			r.Distances != nil {
			t.Errorf("%s: %+v, error %v; want no search for a distance", name, r, err)
		}
	}
}

// rotatedData returns n rows of d features whose target is a function of three random orthogonal directions, with noise
// of the standard deviation 0.1.
func rotatedData(n, d int, seed uint64) *datasets.Dataset {
	g := rng.New(seed)
	x, noise, r := points.NewDense(n, d, nil), make([]float64, n), make([]float64, d*d)
	g.Sub("x").Normals(x.Data, 0)
	g.Sub("noise").Normals(noise, 0)
	g.Sub("rotation").Normals(r, 0)
	var qr mat.QR
	qr.Factorize(mat.NewDense(d, d, r))
	var q, rotated mat.Dense
	qr.QTo(&q)
	rotated.Mul(mat.NewDense(n, d, x.Data), &q)
	set := &datasets.Dataset{Name: "rotated", X: points.NewDense(n, d, rotated.RawMatrix().Data),
		Task: datasets.Regression}
	for i := range n {
		v := x.Row(i)
		set.Target = append(set.Target, math.Sin(2*v[0])+v[1]*v[1]/2+0.3*v[2]+0.1*noise[i])
	}
	return set
}

// TestFullMatrix checks on randomly rotated data that a distance with a full matrix has at most 0.75 times the error of
// length scales on new rows, and that fits with the result agree with the search.
func TestFullMatrix(t *testing.T) {
	const n, testRows, d = 400, 300, 6
	for seed := range uint64(suite.Scale(1, 1, 10)) {
		all := rotatedData(n+testRows, d, seed+1)
		train, y := newProblem(t, all.Subset(upTo(n))), newProblem(t, all).y
		errors := map[string]float64{} // RMSE on the test rows
		var r *Result
		for _, distance := range []string{"lengths", "full"} {
			r = testkit.Must(searchPoints(t.Context(), train, Options{Kernels: []string{"gaussian"}, Points: 15,
				Distance: distance}, nil, nil))
			stretched, _, err := datasets.ChangeDistance(r.Best.Distance(), all, nil)
			testkit.OK(t, err)
			k := testkit.Must(kernel.FromSpec(r.Best.Spec()))
			e := fitResiduals(t, &problem{train: stretched, y: y}, k, r.Best.Lambda, upTo(n), upTo(n + testRows)[n:])
			errors[distance] = mat.Norm(e, 2) / math.Sqrt(testRows)
		}
		if !(errors["full"] <= 0.75*errors["lengths"]) || len(r.Best.Matrix) != d*d || r.Best.Spec().Sigma != 1 {
			t.Fatalf("seed %d: RMSE %v with %+v", seed, errors, r.Distances)
		}
		full := r.bestDistance()
		if full.Kind != "full" || !full.Accepted || len(full.Directions) != d {
			t.Errorf("seed %d: the best distance is %+v, want an accepted full one with %d directions", seed, full, d)
		}
		sampleOfAll := (&search{data: train}).newSample(upTo(n))
		sampleOfAll.setShape(full.Shape)
		k := testkit.Must(kernel.FromSpec(kernel.Spec{Name: r.Best.Kernel, Sigma: r.Best.Sigma}))
		found, _, _ := testkit.Must(sampleOfAll.loss(t.Context(), k, r.Best.Lambda)).Error()
		sampleOfAll.setShape(r.Best.Matrix)
		same, _, _ := testkit.Must(sampleOfAll.loss(t.Context(), kernel.Gaussian{Sigma: 1}, r.Best.Lambda)).Error()
		testkit.Near(t, found, float64(r.Best.Error), 1e-9*found)
		testkit.Near(t, same, found, 1e-5*found)
		l := mat.NewDense(d, d, r.Best.Matrix)
		for i, v := range full.Directions { // the features have the standard deviation 1, up to sampling
			var lv mat.VecDense
			lv.MulVec(l, mat.NewVecDense(d, v.Features))
			testkit.Near(t, mat.Norm(&lv, 2)*v.Length*r.Best.Sigma/full.Sigma, 1, 0.15, seed, i)
		}
		for _, text := range []string{r.String(), r.Plot().Caption} {
			testkit.Contains(t, text, full.Directions[0].Text)
		}
		testkit.Contains(t, r.Best.flags(), fmt.Sprintf(" --sigma %g,%g,", r.Best.Matrix[0], r.Best.Matrix[1]))
		figure := r.directionsFigure()
		testkit.OK(t, figure.Validate())
		testkit.Contains(t, figure.Title, full.Directions[0].Text)
	}
}

// noDerivative is a kernel without a method Derivative, which the test registers.
type noDerivative struct{ Sigma float64 }

func (k noDerivative) String() string                        { return fmt.Sprintf("tunetest.bare(%g)", k.Sigma) }
func (k noDerivative) Eval(x, z []float64) float64           { return kernel.Gaussian(k).Eval(x, z) }
func (k noDerivative) Profile(dst, sq []float64)             { kernel.Gaussian(k).Profile(dst, sq) }
func (k noDerivative) Slope() float64                        { return kernel.Gaussian(k).Slope() }
func (k noDerivative) Scale() float64                        { return k.Sigma }
func (k noDerivative) WithScale(sigma float64) kernel.Kernel { return noDerivative{sigma} }

var registerNoDerivative = sync.OnceValue(func() error { return kernel.Register("tunetest.bare", noDerivative{1}) })

// sharpened is a registered kernel with a parameter that is not a length scale.
type sharpened struct{ Sigma, Power float64 }

func (k sharpened) String() string {
	return fmt.Sprintf("tunetest.sharpened(%g, %g)", k.Sigma, k.Power)
}
func (k sharpened) Eval(x, z []float64) float64 {
	return math.Pow(kernel.Gaussian{Sigma: k.Sigma}.Eval(x, z), k.Power)
}
func (k sharpened) Scale() float64                        { return k.Sigma }
func (k sharpened) WithScale(sigma float64) kernel.Kernel { return sharpened{sigma, k.Power} }

// TestFlags checks the flags and the text of a point whose kernel has another parameter next to its length scale. The
// scale must be in one place only, since krrlab fit refuses it in two.
func TestFlags(t *testing.T) {
	testkit.OK(t, kernel.Register("tunetest.sharpened", sharpened{1, 1}))
	p := Point{Kernel: "tunetest.sharpened", Params: `{"Sigma":1,"Power":3}`, Lambda: 0.5}
	testkit.Equal(t, p.flags(), " --kernel 'tunetest.sharpened sigma=1 power=3' --lambda 0.5")
	p.Lengths = []float64{2, 8}
	p.Sigma = 4
	testkit.Equal(t, p.flags(), " --kernel 'tunetest.sharpened power=3' --sigma 2,8 --lambda 0.5")
	testkit.Equal(t, p.kernelText(), "tunetest.sharpened power=3 (2 length scales, geometric mean 4)")
	p.Lengths, p.Matrix = nil, []float64{1, 0, 0, 1}
	testkit.Equal(t, p.flags(), " --kernel 'tunetest.sharpened power=3' --sigma 1,0,0,1 --lambda 0.5")
	testkit.Equal(t, p.kernelText(), "tunetest.sharpened power=3 (‖L(x−z)‖, √d/‖L‖_F = 4)")
	p = Point{Kernel: "gaussian", Lengths: []float64{1, 2}, Sigma: 1.5, Lambda: 0.5}
	testkit.Equal(t, p.flags(), " --kernel gaussian --sigma 1,2 --lambda 0.5")
	testkit.Equal(t, p.kernelText(), "gaussian(2 length scales, geometric mean 1.5)")
}

// TestUnsearchableDistance checks that a distance that cannot be searched is an error with the reason if it was
// requested, and with auto a line of the result.
func TestUnsearchableDistance(t *testing.T) {
	f := func(a, b, noise float64) float64 { return a + b + noise }
	testkit.OK(t, registerNoDerivative())
	few, many := twoRelevantFeatures(190, 2, f), twoRelevantFeatures(120, 65, f)
	for _, c := range []struct {
		set  *datasets.Dataset
		o    Options
		want string
	}{
		{few, Options{Distance: "full"},
			"tune: no distance full: there are 190 different rows, want 200 for 2 features"},
		{many, Options{Distance: "lengths"}, "tune: no distance lengths: there are 65 features, want 2 to 64"},
		{few, Options{Distance: "full", Sigma: 2}, "tune: the distance full is not searched for a given σ = 2"},
		{twoRelevantFeatures(220, 2, f), Options{Distance: "full", Kernels: []string{"tunetest.bare"}},
			"tune: no distance full: the kernel tunetest.bare has no method Derivative (kernel.Differentiable)"},
		{few, Options{Distance: "half"}, `tune: Distance "half": want one of auto, sigma, lengths, full`},
		{few, Options{Distance: "lengths", Kernels: []string{"gaussian", "polynomial"}},
			"tune: no distance lengths: the kernel polynomial is a function of inner products"},
	} {
		if c.o.Kernels == nil {
			c.o.Kernels = []string{"gaussian"}
		}
		c.o.Points = 3
		err := c.o.check()
		if err == nil {
			_, err = searchPoints(t.Context(), newProblem(t, c.set), c.o, nil, nil)
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%+v: error %v, want %s", c.o, err, c.want)
		}
		if c.o.Distance = "auto"; c.o.Sigma == 0 {
			r := testkit.Must(searchPoints(t.Context(), newProblem(t, c.set), c.o, nil, nil))
			if _, reason, _ := strings.Cut(c.want, "no distance full: "); r.DistanceNote == "" ||
				strings.Contains(c.want, "no distance full") && !strings.HasSuffix(r.DistanceNote, reason) {
				t.Errorf("auto: the note is %q, want the reason of %s", r.DistanceNote, c.want)
			}
		}
	}
}
