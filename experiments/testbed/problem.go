package testbed

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Problem is one of the testbed.
type Problem struct {
	Name   string
	Kernel kernel.Kernel
	Lambda float64
	// PerPoint says that λ is Lambda times the number of points, and that no other is run.
	PerPoint bool
	// Source says where the points come from: the data set and its scaling, or the formula.
	Source string
	// Data returns the first n points, or all if there are fewer; dirs are where data sets are looked for.
	Data func(ctx context.Context, n int, dirs []string) (*datasets.Dataset, error)
}

// lambdas returns those that the problem is run with, of n points.
func (p *Problem) lambdas(n int) []float64 {
	if p.PerPoint {
		return []float64{p.Lambda * float64(n)}
	}
	return []float64{p.Lambda, p.Lambda / 100}
}

// Problems returns all: of data sets, which must be at hand to be run, and of formulas.
func Problems() []Problem {
	var all []Problem
	for _, name := range strings.Fields("mnist usps mnist8m-sample adult ijcnn1 covtype-sample covtype7-sample " +
		"cal-housing protein abalone") {
		info := known(name)
		all = append(all, named(name, info, kernel.Gaussian{Sigma: info.Sigma}))
		switch name {
		case "covtype-sample":
			all = append(all, named("covtype-wide", info, kernel.Gaussian{Sigma: 0.3}))
		case "cal-housing":
			all = append(all, named("cal-laplacian", info, kernel.Laplacian{Sigma: 4 * info.Sigma}),
				named("cal-matern", info, kernel.Matern32{Sigma: 2 * info.Sigma}))
		}
	}
	all = append(all, generated()...)
	// of Díaz, Epperly, Frangella, Tropp and Webber (arXiv:2304.12465), there with 15,000 points
	// and ranks 500 and 1,000
	for _, name := range strings.Fields("mnist adult ijcnn1 covtype-sample cal-housing") {
		standard := *known(name)
		standard.Scale = "standard"
		p := named("published-"+name, &standard, kernel.Gaussian{Sigma: 3})
		p.Lambda, p.PerPoint = 1e-7, true
		all = append(all, p)
	}
	return all
}

// known returns a data set that there is.
func known(name string) *datasets.Info {
	info, err := datasets.Lookup(name)
	if err != nil {
		panic(err)
	}
	return info
}

// named is a problem of a data set.
func named(name string, info *datasets.Info, k kernel.Kernel) Problem {
	return Problem{Name: name, Kernel: k, Lambda: info.Lambda, Source: info.Name + ", scaled: " + info.Scale,
		Data: func(ctx context.Context, n int, dirs []string) (*datasets.Dataset, error) {
			pair, err := datasets.Load(ctx, info.Name, &datasets.LoadOptions{N: n, Dirs: dirs, Scale: info.Scale})
			if err != nil {
				return nil, err
			}
			return pair.Train, nil
		}}
}

// formulas are the problems that anybody can make: Gaussian kernels of points in R^d.
var formulas = []struct {
	name          string
	sigma, lambda float64
	d             int
	source        string
}{
	{"curve", 0.5, 1e-3, 20, "x_j = sin(2πju+j), u uniform, y = sin(40u)"},
	{"clusters", 1, 1e-3, 5, "center c of 100, normal of size 3, plus normal of size 0.1; P(c) ∝ 1/c"},
	{"pairs", 1, 1e-5, 3, "points 2i and 2i+1 uniform in [0,10]³ at a distance of 10^−5 to 1"},
	{"grid", 0.03, 1e-3, 2, "⌈√n⌉² grid of [0,1]², moved by a tenth of its step"},
	{"noise", 2, 1e-2, 10, "normal, y normal"},
}

// generated are the problems of formulas: point i and its target are from numbers of rand.NewPCG(1, i).
func generated() (all []Problem) {
	for _, f := range formulas {
		all = append(all, Problem{Name: f.name, Kernel: kernel.Gaussian{Sigma: f.sigma}, Lambda: f.lambda,
			Source: f.source,
			Data: func(_ context.Context, n int, _ []string) (*datasets.Dataset, error) {
				x, y := points.NewDense(n, f.d, nil), make([]float64, n)
				for i := range n {
					y[i] = place(f.name, x.Row(i), i, n, rand.New(rand.NewPCG(1, uint64(i))))
				}
				return &datasets.Dataset{Name: f.name, X: x, Target: y, Task: datasets.Regression}, nil
			}})
	}
	return all
}

// place sets x to point i of n of one of formulas, and returns its target.
func place(problem string, x []float64, i, n int, g *rand.Rand) float64 {
	switch problem {
	case "curve":
		u := g.Float64()
		for j := range x {
			x[j] = math.Sin(2*math.Pi*float64(j+1)*u + float64(j))
		}
		return math.Sin(40 * u)
	case "clusters":
		c := int(math.Exp(g.Float64() * math.Log(101)))
		centers := rand.New(rand.NewPCG(2, uint64(c)))
		for j := range x {
			x[j] = 3*centers.NormFloat64() + 0.1*g.NormFloat64()
		}
		return math.Sin(float64(c)) + 0.1*g.NormFloat64()
	case "pairs":
		both := rand.New(rand.NewPCG(3, uint64(i/2)))
		for j := range x {
			x[j] = 10 * both.Float64()
		}
		sum := floats.Sum(x)
		if i%2 == 1 {
			x[0] += math.Pow(10, -5*both.Float64())
		}
		return math.Sin(sum) + 0.1*g.NormFloat64()
	case "grid":
		side := int(math.Ceil(math.Sqrt(float64(n))))
		x[0] = (float64(i%side) + 0.1*g.NormFloat64()) / float64(side)
		x[1] = (float64(i/side) + 0.1*g.NormFloat64()) / float64(side)
		return math.Sin(9*x[0]) * math.Cos(7*x[1])
	}
	for j := range x { // noise
		x[j] = g.NormFloat64()
	}
	return g.NormFloat64()
}

// pick returns the problems of these names, all for none.
func pick(names []string) ([]Problem, error) {
	all := Problems()
	if len(names) == 0 {
		return all, nil
	}
	var some []Problem
	var known []string
	for _, p := range all {
		known = append(known, p.Name)
	}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, fmt.Errorf("no problem %q: want one of %s", name, strings.Join(known, ", "))
		}
		some = append(some, all[i])
	}
	return some, nil
}
