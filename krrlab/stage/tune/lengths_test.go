package tune

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestRelevanceGradient compares the gradient by all log ℓ_j and log λ with central differences, and the value with
// leave-one-out by refits, of rows with weights too.
func TestRelevanceGradient(t *testing.T) {
	ctx := context.Background()
	const n, d = 30, 3
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 0.2 + float64(i*i%7)
	}
	weighted, weightedClasses := *datasets.SyntheticRegression(n, d, 0.1, 1), *cut(columns(n, d, bowl), -0.7, 0.4)
	weighted.Weights, weightedClasses.Weights = weights, weights
	for name, set := range map[string]*datasets.Dataset{"regression": datasets.SyntheticRegression(n, d, 0.1, 1),
		"two classes": cut(columns(n, d, bowl), 0), "three": cut(columns(n, d, bowl), -0.7, 0.4),
		"weights": &weighted, "weights of classes": &weightedClasses} {
		one, all := data(t, set), (&search{data: data(t, set)}).trainingSample(upTo(n))
		x := centeredDense(set.X)
		for _, k := range []kernel.Differentiable{kernel.Gaussian{Sigma: 1}, kernel.Laplacian{Sigma: 1},
			kernel.Matern32{Sigma: 1}, kernel.Matern52{Sigma: 1}} {
			r := &relevance{x: x, y: all.weighted(one.y), sqrtWeights: all.sqrtWeights, k: k, freeLambda: true,
				priorPrecision: 0.01, priorMean: []float64{0, 0.1, 0.2, 0}}
			theta, grad := []float64{-0.3, 0.4, 0.9, math.Log(0.2)}, make([]float64, d+1)
			value, err := r.value(ctx, theta, grad)
			testkit.OK(t, err)
			for j := range theta {
				const h = 1e-5
				var f [2]float64
				for i, sign := range []float64{1, -1} {
					at := slices.Clone(theta)
					at[j] += sign * h
					if f[i], err = r.value(ctx, at, make([]float64, d+1)); err != nil {
						t.Fatal(err)
					}
				}
				if want := (f[0] - f[1]) / (2 * h); math.Abs(grad[j]-want) > 1e-6*(1+math.Abs(want)) {
					t.Errorf("%s, %v: derivative %d is %.8g, by differences %.8g", name, k, j, grad[j], want)
				}
			}
			by := &problem{train: &datasets.Dataset{X: divideByLengths(x, theta[:d]), Weights: set.Weights}, y: one.y}
			want := judge(false).loss(one.y, all.weighted(leaveOut(t, by, k, 0.2))).objective()
			for j, v := range theta[:d] {
				want += 0.005 * (v - r.priorMean[j]) * (v - r.priorMean[j])
			}
			testkit.Near(t, value, want, 1e-8, name, k)
			r.freeLambda = false
			if _, err := r.value(ctx, theta, grad); err != nil || grad[d] != 0 {
				t.Errorf("λ held: derivative %g, %v", grad[d], err)
			}
		}
	}
}

// columns returns n rows of d features, the first two of which matter.
func columns(n, d int, f func(a, b, noise float64) float64) *datasets.Dataset {
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

func bowl(a, b, noise float64) float64 { return a + b*b - 1 + noise }

// cut returns the set with classes between some answers.
func cut(set *datasets.Dataset, at ...float64) *datasets.Dataset {
	set.Task, set.Labels = datasets.Classification, []string{"0", "1", "2"}[:len(at)+1]
	for _, v := range set.Target {
		c, _ := slices.BinarySearch(at, v)
		set.Class = append(set.Class, c)
	}
	set.Target = nil
	return set
}

// TestLengths: columns that do not matter get long lengths, which are taken by rows that took no part, and say so;
// without such columns nothing is taken.
func TestLengths(t *testing.T) {
	ctx := context.Background()
	f := func(a, b, noise float64) float64 { return math.Sin(a+b) + math.Cos(a-b) + 0.1*noise }
	o := Options{Kernels: []string{"gaussian", "laplacian"}}
	d := data(t, columns(450, 8, f))
	same, err := run(ctx, d, o, nil, nil)
	if err != nil || same.ARD != nil || same.Best.Lengths != nil {
		t.Fatalf("%+v, %v", same, err)
	}
	o.ARD = true
	each := testkit.Must(run(ctx, d, o, nil, nil))
	l := each.ARD
	if l == nil || !l.Accepted || len(each.Best.Lengths) != 8 ||
		float64(each.Best.Error) > 0.6*float64(same.Best.Error) {
		t.Fatalf("%+v: %+v", each.Best, l)
	}
	least := slices.Min(each.Best.Lengths[2:])
	if m := max(each.Best.Lengths[0], each.Best.Lengths[1]); m > least/3 || !slices.Contains(l.Relevant[:2], "x0") ||
		!slices.Contains(l.Relevant[:2], "x1") {
		t.Errorf("lengths %v, %v", each.Best.Lengths, l.Relevant)
	}
	if k := each.Best.Spec(); k.Sigma != 1 ||
		!strings.Contains(each.Best.flags(), fmt.Sprintf("--sigma %g,%g,", each.Best.Lengths[0],
			each.Best.Lengths[1])) {
		t.Errorf("%+v, %s", k, each.Best.flags())
	}
	for _, text := range []string{each.String(), each.Short(), each.Table().Caption, each.Plot().Caption} {
		testkit.Contains(t, text, each.mostRelevant(5))
	}
	testkit.Contains(t, each.errorMapFigure("RMSE").Title, "lengths: "+l.Relevant[0])
	rows, e := upTo(450), mat.NewDense(450, 1, nil)
	train, _, err := datasets.Stretch(each.Best.Lengths, d.train, nil)
	testkit.OK(t, err)
	k := testkit.Must(kernel.FromSpec(each.Best.Spec()))
	for i := 0; i < 450; i += 90 { // of a few rows, by refits of the result
		e.SetRow(i, predict(t, &problem{train: train, y: d.y}, k, each.Best.Lambda, slices.Concat(rows[:i], rows[i+1:]),
			[]int{i}).RawRowView(0))
	}
	one := (&search{data: d}).newSample(rows)
	one.setShape(l.Shape)
	geometric := testkit.Must(kernel.FromSpec(kernel.Spec{Name: each.Best.Kernel, Sigma: each.Best.Sigma}))
	found := testkit.Must(one.loss(ctx, geometric, each.Best.Lambda))
	for i := 0; i < 450; i += 90 {
		if want := e.At(i, 0) * e.At(i, 0); math.Abs(found.rows[i]-want) > 1e-5*(1+want) {
			t.Errorf("row %d: %g in the search, %g by a refit of the result", i, found.rows[i], want)
		}
	}
	alike, err := run(ctx, data(t, columns(450, 2,
		func(a, b, noise float64) float64 { return math.Sin(a+b) + math.Cos(a-b) + noise })), o, nil, nil)
	if err != nil || alike.ARD == nil || alike.ARD.Accepted || alike.Best.Lengths != nil ||
		!strings.Contains(alike.String(), "not taken") {
		t.Errorf("alike: %+v, %v", alike, err)
	}
	for name, change := range map[string]func(*Options){"σ held": func(o *Options) { o.Sigma = 1 },
		"polynomial": func(o *Options) { o.Kernels = []string{"polynomial"}; o.Degree = 2 }} {
		with := o
		if change(&with); name != "polynomial" {
			with.Kernels = []string{"gaussian"}
		}
		if r, err := run(ctx, data(t, columns(200, 3, f)), with, nil, nil); err != nil || r.ARD != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
