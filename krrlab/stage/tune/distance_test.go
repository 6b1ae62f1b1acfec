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

// TestDistanceObjective compares the gradient of distanceObjective by the shape and log λ with central differences, and
// the value with leave-one-out by refits, with and without weights of rows.
func TestDistanceObjective(t *testing.T) {
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
		data, sampleOfAll := newProblem(t, set), (&search{data: newProblem(t, set)}).trainingSample(upTo(n))
		x := centeredDense(set.X)
		for _, k := range []kernel.Differentiable{kernel.Gaussian{Sigma: 1}, kernel.Laplacian{Sigma: 1},
			kernel.Matern32{Sigma: 1}, kernel.Matern52{Sigma: 1}} {
			for _, isMatrix := range []bool{true, false} {
				objective := &distanceObjective{x: x, y: points.ScaleRows(sampleOfAll.sqrtWeights, data.y),
					sqrtWeights: sampleOfAll.sqrtWeights, k: k, freeLambda: true,
					isMatrix: isMatrix, priorPrecision: 0.01, priorMean: []float64{0, 0.1, 0.2, 0}}
				theta := []float64{-0.3, 0.4, 0.9, math.Log(0.2)}
				if isMatrix {
					theta = []float64{1.2, 0.3, -0.4, 0.2, 0.7, 0.5, -0.6, 0.1, 0.9, math.Log(0.2)}
					objective.priorMean = []float64{1, 0, 0, 0.1, 1, 0, 0, 0, 1, 0}
				}
				checkGradient(t, objective, theta, name)
				stretched := &problem{train: &datasets.Dataset{X: stretch(x, objective.shape(theta)),
					Weights: set.Weights},
					y: data.y}
				residuals := points.ScaleRows(sampleOfAll.sqrtWeights, looResiduals(t, stretched, k, 0.2))
				want := defaultScoring(false).loss(data.y, residuals).objective()
				for j, v := range theta[:len(theta)-1] { // the prior, ½·priorPrecision·(θ_j − priorMean_j)²
					want += 0.005 * (v - objective.priorMean[j]) * (v - objective.priorMean[j])
				}
				gradient := make([]float64, len(theta))
				value := testkit.Must(objective.value(ctx, theta, gradient))
				testkit.Near(t, value, want, 1e-8, name, k)
				objective.freeLambda = false
				if _, err := objective.value(ctx, theta, gradient); err != nil || gradient[len(theta)-1] != 0 {
					t.Errorf("λ is fixed: derivative %g by log λ, want 0; error %v", gradient[len(theta)-1], err)
				}
			}
		}
	}
}

// checkGradient compares the gradient at θ with central differences.
func checkGradient(t *testing.T, objective *distanceObjective, theta []float64, name string) {
	t.Helper()
	value := func(theta []float64) ([]float64, float64) {
		gradient := make([]float64, len(theta))
		return gradient, testkit.Must(objective.value(t.Context(), theta, gradient))
	}
	gradient, _ := value(theta)
	for j := range theta {
		const step = 1e-5
		var values [2]float64
		for i, sign := range []float64{1, -1} {
			shifted := slices.Clone(theta)
			shifted[j] += sign * step
			_, values[i] = value(shifted)
		}
		if want := (values[0] - values[1]) / (2 * step); math.Abs(gradient[j]-want) > 1e-6*(1+math.Abs(want)) {
			t.Errorf("%s, %v, matrix %v: derivative %d is %.8g, by differences %.8g", name, objective.k,
				objective.isMatrix, j, gradient[j], want)
		}
	}
}

// twoRelevantFeatures returns n rows of d normal features x_j, with the target target(x_0, x_1, noise).
func twoRelevantFeatures(n, d int, target func(a, b, noise float64) float64) *datasets.Dataset {
	stream := rng.New(3)
	x, noise := points.NewDense(n, d, nil), make([]float64, n)
	stream.Sub("x").Normals(x.Data, 0)
	stream.Sub("noise").Normals(noise, 0)
	set := &datasets.Dataset{Name: "columns", X: x, Task: datasets.Regression}
	for j := range d {
		set.Columns = append(set.Columns, fmt.Sprint("x", j))
	}
	for i := range n {
		set.Target = append(set.Target, target(x.Row(i)[0], x.Row(i)[1], noise[i]))
	}
	return set
}

// bowl is a function of two features, linear in the first and quadratic in the second, with noise.
func bowl(a, b, noise float64) float64 { return a + b*b - 1 + noise }

// toClasses turns a regression into a classification, and returns it: the classes are the intervals of the target
// between the thresholds.
func toClasses(set *datasets.Dataset, thresholds ...float64) *datasets.Dataset {
	set.Task, set.Labels = datasets.Classification, []string{"0", "1", "2"}[:len(thresholds)+1]
	for _, target := range set.Target {
		class, _ := slices.BinarySearch(thresholds, target)
		set.Class = append(set.Class, class)
	}
	set.Target = nil
	return set
}

// TestLengthScales checks that irrelevant features get long length scales, which are accepted because they reduce the
// error on rows that were not used for the fit, and that the result describes them. If all features are relevant, no
// length scales are accepted.
func TestLengthScales(t *testing.T) {
	ctx := context.Background()
	target := func(a, b, noise float64) float64 { return math.Sin(a+b) + math.Cos(a-b) + 0.1*noise }
	options := Options{Kernels: []string{"gaussian", "laplacian"}}
	data := newProblem(t, twoRelevantFeatures(450, 8, target))
	isotropic, err := searchPoints(ctx, data, options, nil, nil)
	if err != nil || isotropic.Distances != nil || isotropic.Best.Lengths != nil {
		t.Fatalf("%+v, %v", isotropic, err)
	}
	options.Distance = "lengths"
	perFeature := testkit.Must(searchPoints(ctx, data, options, nil, nil))
	distance := perFeature.Distances[0]
	if distance == nil || !distance.Accepted || len(perFeature.Best.Lengths) != 8 ||
		float64(perFeature.Best.Error) > 0.6*float64(isotropic.Best.Error) {
		t.Fatalf("%+v: %+v", perFeature.Best, distance)
	}
	lengths := perFeature.Best.Lengths
	if max(lengths[0], lengths[1]) > slices.Min(lengths[2:])/3 ||
		!slices.Equal(slices.Sorted(slices.Values(distance.RelevantFeatures[:2])), []string{"x0", "x1"}) {
		t.Errorf("length scales %v, most relevant features %v", lengths, distance.RelevantFeatures)
	}
	testkit.Equal(t, perFeature.Best.Spec().Sigma, 1, "σ next to length scales")
	testkit.Contains(t, perFeature.Best.flags(), fmt.Sprintf("--sigma %g,%g,", lengths[0], lengths[1]))
	for _, text := range []string{perFeature.String(), perFeature.Short(), perFeature.Table().Caption,
		perFeature.Plot().Caption} {
		testkit.Contains(t, text, perFeature.mostRelevant(5))
	}
	testkit.Contains(t, perFeature.errorMapFigure("RMSE").Title, "lengths: "+distance.RelevantFeatures[0])
	rows := upTo(450)
	train, _, err := datasets.ChangeDistance(perFeature.Best.Lengths, data.train, nil)
	testkit.OK(t, err)
	k := testkit.Must(kernel.FromSpec(perFeature.Best.Spec()))
	sampleOfAll := (&search{data: data}).newSample(rows)
	sampleOfAll.setShape(distance.Shape)
	geometric := testkit.Must(kernel.FromSpec(kernel.Spec{Name: perFeature.Best.Kernel, Sigma: perFeature.Best.Sigma}))
	found := testkit.Must(sampleOfAll.loss(ctx, geometric, perFeature.Best.Lambda))
	for i := 0; i < 450; i += 90 { // compare the leave-one-out losses of a few rows with refits without the row
		residual := fitResiduals(t, &problem{train: train, y: data.y}, k, perFeature.Best.Lambda,
			slices.Concat(rows[:i], rows[i+1:]), []int{i}).At(0, 0)
		testkit.Near(t, found.rowLosses[i], residual*residual, 1e-5*(1+residual*residual), "loss of row", i)
	}
	equallyRelevant, err := searchPoints(ctx, newProblem(t, twoRelevantFeatures(450, 2,
		func(a, b, noise float64) float64 { return math.Sin(a+b) + math.Cos(a-b) + noise })), options, nil, nil)
	if err != nil || len(equallyRelevant.Distances) != 1 || equallyRelevant.Distances[0].Accepted ||
		equallyRelevant.Best.Lengths != nil || !strings.Contains(equallyRelevant.String(), "not taken") {
		t.Errorf("two equally relevant features: %+v, error %v; want no length scales", equallyRelevant, err)
	}
	for name, options := range map[string]Options{
		"fixed σ":    {Kernels: []string{"gaussian"}, Sigma: 1, Distance: "lengths"},
		"polynomial": {Kernels: []string{"polynomial degree=2"}, Distance: "lengths"},
	} {
		result, err := searchPoints(ctx, newProblem(t, twoRelevantFeatures(200, 3, target)), options, nil, nil)
		if err != nil || result.Distances != nil {
			t.Errorf("%s: %+v, error %v; want no search for a distance", name, result, err)
		}
	}
}

// rotatedData returns n rows of d features whose target is a function of three random orthogonal directions, with noise
// of the standard deviation 0.1.
func rotatedData(n, d int, seed uint64) *datasets.Dataset {
	stream := rng.New(seed)
	x, noise, randomEntries := points.NewDense(n, d, nil), make([]float64, n), make([]float64, d*d)
	stream.Sub("x").Normals(x.Data, 0)
	stream.Sub("noise").Normals(noise, 0)
	stream.Sub("rotation").Normals(randomEntries, 0)
	var qr mat.QR
	qr.Factorize(mat.NewDense(d, d, randomEntries))
	var rotation, rotated mat.Dense
	qr.QTo(&rotation)
	rotated.Mul(mat.NewDense(n, d, x.Data), &rotation)
	set := &datasets.Dataset{Name: "rotated", X: points.NewDense(n, d, rotated.RawMatrix().Data),
		Task: datasets.Regression}
	for i := range n {
		row := x.Row(i)
		set.Target = append(set.Target, math.Sin(2*row[0])+row[1]*row[1]/2+0.3*row[2]+0.1*noise[i])
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
		var result *Result
		for _, distance := range []string{"lengths", "full"} {
			result = testkit.Must(searchPoints(t.Context(), train, Options{Kernels: []string{"gaussian"}, Points: 15,
				Distance: distance}, nil, nil))
			stretched, _, err := datasets.ChangeDistance(result.Best.Distance(), all, nil)
			testkit.OK(t, err)
			k := testkit.Must(kernel.FromSpec(result.Best.Spec()))
			residuals := fitResiduals(t, &problem{train: stretched, y: y}, k, result.Best.Lambda, upTo(n),
				upTo(n + testRows)[n:])
			errors[distance] = mat.Norm(residuals, 2) / math.Sqrt(testRows)
		}
		if !(errors["full"] <= 0.75*errors["lengths"]) || len(result.Best.Matrix) != d*d ||
			result.Best.Spec().Sigma != 1 {
			t.Fatalf("seed %d: RMSE %v with %+v", seed, errors, result.Distances)
		}
		full := result.bestDistance()
		if full.Kind != "full" || !full.Accepted || len(full.Directions) != d {
			t.Errorf("seed %d: the best distance is %+v, want an accepted full one with %d directions", seed, full, d)
		}
		sampleOfAll := (&search{data: train}).newSample(upTo(n))
		sampleOfAll.setShape(full.Shape)
		k := testkit.Must(kernel.FromSpec(kernel.Spec{Name: result.Best.Kernel, Sigma: result.Best.Sigma}))
		found, _, _ := testkit.Must(sampleOfAll.loss(t.Context(), k, result.Best.Lambda)).errorInterval()
		sampleOfAll.setShape(result.Best.Matrix)
		same, _, _ := testkit.Must(sampleOfAll.loss(t.Context(), kernel.Gaussian{Sigma: 1},
			result.Best.Lambda)).errorInterval()
		testkit.Near(t, found, float64(result.Best.Error), 1e-9*found)
		testkit.Near(t, same, found, 1e-5*found)
		matrix := mat.NewDense(d, d, result.Best.Matrix)
		// The features have the standard deviation 1 up to sampling, hence the tolerance of 0.15.
		for i, direction := range full.Directions {
			var product mat.VecDense
			product.MulVec(matrix, mat.NewVecDense(d, direction.Features))
			testkit.Near(t, mat.Norm(&product, 2)*direction.Length*result.Best.Sigma/full.Sigma, 1, 0.15, seed, i)
		}
		for _, text := range []string{result.String(), result.Plot().Caption} {
			testkit.Contains(t, text, full.Directions[0].Text)
		}
		testkit.Contains(t, result.Best.flags(), fmt.Sprintf(" --sigma %g,%g,", result.Best.Matrix[0],
			result.Best.Matrix[1]))
		figure := result.directionsFigure()
		testkit.OK(t, figure.Validate())
		testkit.Contains(t, figure.Title, full.Directions[0].Text)
	}
}

// noDerivative is a Gaussian kernel without a method Derivative, which TestUnsearchableDistance registers.
type noDerivative struct{ Sigma float64 }

func (k noDerivative) String() string                        { return fmt.Sprintf("tunetest.bare(%g)", k.Sigma) }
func (k noDerivative) Eval(x, z []float64) float64           { return kernel.Gaussian(k).Eval(x, z) }
func (k noDerivative) Profile(dst, sq []float64)             { kernel.Gaussian(k).Profile(dst, sq) }
func (k noDerivative) Slope() float64                        { return kernel.Gaussian(k).Slope() }
func (k noDerivative) Scale() float64                        { return k.Sigma }
func (k noDerivative) WithScale(sigma float64) kernel.Kernel { return noDerivative{sigma} }

var registerNoDerivative = sync.OnceValue(func() error { return kernel.Register("tunetest.bare", noDerivative{1}) })

// powerKernel is a registered kernel, a power of a Gaussian, with a parameter that is not a length scale.
type powerKernel struct{ Sigma, Power float64 }

func (k powerKernel) String() string {
	return fmt.Sprintf("tunetest.sharpened(%g, %g)", k.Sigma, k.Power)
}
func (k powerKernel) Eval(x, z []float64) float64 {
	return math.Pow(kernel.Gaussian{Sigma: k.Sigma}.Eval(x, z), k.Power)
}
func (k powerKernel) Scale() float64                        { return k.Sigma }
func (k powerKernel) WithScale(sigma float64) kernel.Kernel { return powerKernel{sigma, k.Power} }

// TestFlagsOfRegisteredKernel checks the flags and the text of a point whose kernel has another parameter besides the
// length scale. The scale must occur only once in the flags, since krrlab fit refuses two.
func TestFlagsOfRegisteredKernel(t *testing.T) {
	testkit.OK(t, kernel.Register("tunetest.sharpened", powerKernel{1, 1}))
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

// TestUnsearchableDistance checks that a request for a distance that cannot be searched is an error with the reason,
// and that with auto the reason is a note of the result.
func TestUnsearchableDistance(t *testing.T) {
	target := func(a, b, noise float64) float64 { return a + b + noise }
	testkit.OK(t, registerNoDerivative())
	fewRows, manyFeatures := twoRelevantFeatures(190, 2, target), twoRelevantFeatures(120, 65, target)
	for _, test := range []struct {
		set       *datasets.Dataset
		options   Options
		wantError string
	}{
		{fewRows, Options{Distance: "full"},
			"tune: no distance full: there are 190 different rows, want 200 for 2 features"},
		{manyFeatures, Options{Distance: "lengths"}, "tune: no distance lengths: there are 65 features, want 2 to 64"},
		{fewRows, Options{Distance: "full", Sigma: 2}, "tune: the distance full is not searched for a given σ = 2"},
		{twoRelevantFeatures(220, 2, target), Options{Distance: "full", Kernels: []string{"tunetest.bare"}},
			"tune: no distance full: the kernel tunetest.bare has no method Derivative (kernel.Differentiable)"},
		{fewRows, Options{Distance: "half"}, `tune: Distance "half": want one of auto, sigma, lengths, full`},
		{fewRows, Options{Distance: "lengths", Kernels: []string{"gaussian", "polynomial"}},
			"tune: no distance lengths: the kernel polynomial is a function of inner products"},
	} {
		if test.options.Kernels == nil {
			test.options.Kernels = []string{"gaussian"}
		}
		test.options.Points = 3
		err := test.options.check()
		if err == nil {
			_, err = searchPoints(t.Context(), newProblem(t, test.set), test.options, nil, nil)
		}
		if err == nil || err.Error() != test.wantError {
			t.Errorf("%+v: error %v, want %s", test.options, err, test.wantError)
		}
		if test.options.Distance = "auto"; test.options.Sigma == 0 {
			result := testkit.Must(searchPoints(t.Context(), newProblem(t, test.set), test.options, nil, nil))
			if _, reason, _ := strings.Cut(test.wantError, "no distance full: "); result.DistanceNote == "" ||
				strings.Contains(test.wantError, "no distance full") && !strings.HasSuffix(result.DistanceNote,
					reason) {
				t.Errorf("auto: the note is %q, want the reason of %s", result.DistanceNote, test.wantError)
			}
		}
	}
}
