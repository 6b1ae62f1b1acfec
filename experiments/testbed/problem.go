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

// Problem is a problem of the testbed: points with targets, a kernel and a ridge.
type Problem struct {
	Name   string        // name on the command line and in files
	Kernel kernel.Kernel // the kernel
	Lambda float64       // ridge λ, or λ/n if LambdaPerPoint is set
	// LambdaPerPoint reports whether λ is Lambda multiplied by the number of points. The problem is then run with this
	// λ only.
	LambdaPerPoint bool
	// Source is the origin of the points: the data set and its scaling, or a formula.
	Source string
	// Data returns the first n points, or all points if there are fewer. Data sets are searched for in dirs.
	Data func(ctx context.Context, n int, dirs []string) (*datasets.Dataset, error)
}

// lambdas returns the ridges that the problem with n points is run with.
func (p *Problem) lambdas(n int) []float64 {
	if p.LambdaPerPoint {
		return []float64{p.Lambda * float64(n)}
	}
	return []float64{p.Lambda, p.Lambda / 100}
}

// Problems returns all problems of the testbed. Some have the points of a data set, which must be on this machine to
// run them; the others compute their points by a formula.
func Problems() []Problem {
	var problems []Problem
	for _, name := range strings.Fields("mnist usps mnist8m-sample adult ijcnn1 covtype-sample covtype7-sample " +
		"cal-housing protein abalone") {
		info := lookUp(name)
		problems = append(problems, dataSetProblem(name, info, kernel.Gaussian{Sigma: info.Sigma}))
		switch name {
		case "covtype-sample":
			problems = append(problems, dataSetProblem("covtype-wide", info, kernel.Gaussian{Sigma: 0.3}))
		case "cal-housing":
			problems = append(problems, dataSetProblem("cal-laplacian", info, kernel.Laplacian{Sigma: 4 * info.Sigma}),
				dataSetProblem("cal-matern", info, kernel.Matern32{Sigma: 2 * info.Sigma}))
		}
	}
	problems = append(problems,
		formulaProblem("curve", 0.5, 1e-3, 20, "x_j = sin(2πju+j), u uniform, y = sin(40u)"),
		formulaProblem("clusters", 1, 1e-3, 5,
			"center c of 100, normal of size 3, plus normal of size 0.1; P(c) ∝ 1/c"),
		formulaProblem("pairs", 1, 1e-5, 3, "points 2i and 2i+1 uniform in [0,10]³ at a distance of 10^−5 to 1"),
		formulaProblem("grid", 0.03, 1e-3, 2, "⌈√n⌉² grid of [0,1]², moved by a tenth of its step"),
		formulaProblem("plane", 0.1, 1e-2, 2, "uniform in [0,1]²"),
		formulaProblem("noise", 2, 1e-2, 10, "normal, y normal"))
	// The following problems are from Díaz, Epperly, Frangella, Tropp and Webber (arXiv:2304.12465), who solve them
	// with 15,000 points and ranks 500 and 1,000.
	for _, name := range strings.Fields("mnist adult ijcnn1 covtype-sample cal-housing") {
		standard := *lookUp(name)
		standard.Scale = "standard"
		p := dataSetProblem("published-"+name, &standard, kernel.Gaussian{Sigma: 3})
		p.Lambda, p.LambdaPerPoint = 1e-7, true
		problems = append(problems, p)
	}
	return problems
}

// lookUp returns the description of a data set. It panics if there is none with this name.
func lookUp(name string) *datasets.Info {
	info, err := datasets.Lookup(name)
	if err != nil {
		panic(err)
	}
	return info
}

// dataSetProblem returns a problem with the points of a data set.
func dataSetProblem(name string, info *datasets.Info, k kernel.Kernel) Problem {
	return Problem{Name: name, Kernel: k, Lambda: info.Lambda, Source: info.Name + ", scaled: " + info.Scale,
		Data: func(ctx context.Context, n int, dirs []string) (*datasets.Dataset, error) {
			pair, err := datasets.Load(ctx, info.Name, &datasets.LoadOptions{N: n, Dirs: dirs, Scale: info.Scale})
			if err != nil {
				return nil, err
			}
			return pair.Train, nil
		}}
}

// formulaProblem returns a problem that needs no data set. It has a Gaussian kernel and points in R^d that setPoint
// computes by the formula in source. Point i and its target are computed from random numbers of rand.NewPCG(1, i).
func formulaProblem(name string, sigma, lambda float64, d int, source string) Problem {
	return Problem{Name: name, Kernel: kernel.Gaussian{Sigma: sigma}, Lambda: lambda, Source: source,
		Data: func(_ context.Context, n int, _ []string) (*datasets.Dataset, error) {
			x, y := points.NewDense(n, d, nil), make([]float64, n)
			for i := range n {
				y[i] = setPoint(name, x.Row(i), i, n, rand.New(rand.NewPCG(1, uint64(i))))
			}
			return &datasets.Dataset{Name: name, X: x, Target: y, Task: datasets.Regression}, nil
		}}
}

// setPoint sets x to point i of the n points of a problem of formulaProblem, and returns the target.
func setPoint(problem string, x []float64, i, n int, g *rand.Rand) float64 {
	switch problem {
	case "curve":
		u := g.Float64()
		for j := range x {
			x[j] = math.Sin(2*math.Pi*float64(j+1)*u + float64(j))
		}
		return math.Sin(40 * u)
	case "clusters":
		center := int(math.Exp(g.Float64() * math.Log(101)))
		centers := rand.New(rand.NewPCG(2, uint64(center)))
		for j := range x {
			x[j] = 3*centers.NormFloat64() + 0.1*g.NormFloat64()
		}
		return math.Sin(float64(center)) + 0.1*g.NormFloat64()
	case "pairs":
		pairRand := rand.New(rand.NewPCG(3, uint64(i/2)))
		for j := range x {
			x[j] = 10 * pairRand.Float64()
		}
		sum := floats.Sum(x)
		if i%2 == 1 {
			x[0] += math.Pow(10, -5*pairRand.Float64())
		}
		return math.Sin(sum) + 0.1*g.NormFloat64()
	case "plane":
		x[0], x[1] = g.Float64(), g.Float64()
		return math.Sin(9*x[0])*math.Cos(7*x[1]) + 0.1*g.NormFloat64()
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

// selectProblems returns the problems with these names, or all problems if there are no names.
func selectProblems(names []string) ([]Problem, error) {
	problems := Problems()
	if len(names) == 0 {
		return problems, nil
	}
	var selected []Problem
	var knownNames []string
	for _, p := range problems {
		knownNames = append(knownNames, p.Name)
	}
	for _, name := range names {
		i, err := indexOf("problem", name, knownNames)
		if err != nil {
			return nil, err
		}
		selected = append(selected, problems[i])
	}
	return selected, nil
}

// indexOf returns the index of a name in a list of problems or preconditioners. It returns an error if there is none.
func indexOf(kind, name string, all []string) (int, error) {
	i := slices.Index(all, name)
	if i < 0 {
		return 0, fmt.Errorf("no %s %q: want one of %s", kind, name, strings.Join(all, ", "))
	}
	return i, nil
}
