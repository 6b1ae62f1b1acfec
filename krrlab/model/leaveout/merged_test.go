package leaveout

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
)

// residualsByRefitting returns the residual y_i − f(x_i) of each row for a fit without the rows that are equal to it by
// o.FirstEqual, or without the row alone if o.FirstEqual is nil. A fit minimizes Σ w (y−ȳ−f)² + λ‖f‖², where ȳ is the
// weighted mean of its targets if o.SubtractsMean is set, and 0 otherwise.
func residualsByRefitting(t *testing.T, k, y *mat.Dense, lambda float64, o *Problem) *mat.Dense {
	n, cols := y.Dims()
	e, firstEqual, weights := mat.NewDense(n, cols, nil), o.FirstEqual, o.Weights
	if firstEqual == nil {
		firstEqual = indices(n)
	}
	if weights == nil {
		weights = slices.Repeat([]float64{1}, n)
	}
	for i := range n {
		var others []int
		for j := range n {
			if firstEqual[j] != firstEqual[i] {
				others = append(others, j)
			}
		}
		a, b := mat.NewDense(len(others), len(others), nil), mat.NewDense(len(others), cols, nil)
		mean := make([]float64, cols)
		for j := range cols {
			var v, w []float64
			for _, r := range others {
				v, w = append(v, y.At(r, j)), append(w, weights[r])
			}
			if o.SubtractsMean {
				mean[j] = stat.Mean(v, w)
			}
		}
		for p, r := range others {
			for q, s := range others {
				a.Set(p, q, k.At(r, s))
			}
			a.Set(p, p, k.At(r, r)+lambda/weights[r])
			for j := range cols {
				b.Set(p, j, y.At(r, j)-mean[j])
			}
		}
		var c mat.Dense
		testkit.OK(t, c.Solve(a, b))
		for j := range cols {
			v := y.At(i, j) - mean[j]
			for p, r := range others {
				v -= k.At(i, r) * c.At(p, j)
			}
			e.Set(i, j, v)
		}
	}
	return e
}

// randomProblemWithRepeats returns K and Y of n points in random order of which only the given number are different.
// The rows have random weights if weights is set.
func randomProblemWithRepeats(n, different, t int, classes, weights bool, seed uint64) (k, y *mat.Dense,
	problem *Problem) {
	random := rand.New(rand.NewPCG(seed, 5))
	differentK, _ := randomProblem(different, 2, t, 1, false, seed)
	original := random.Perm(n) // for each row, the point that it repeats
	for i, v := range original {
		if v >= different {
			original[i] = random.IntN(different/2 + 1)
		}
	}
	k, y = mat.NewDense(n, n, nil), mat.NewDense(n, t, nil)
	problem = &Problem{Classification: classes, ComputeResiduals: true, Weights: slices.Repeat([]float64{1}, n)}
	k.Apply(func(i, j int, _ float64) float64 { return differentK.At(original[i], original[j]) }, k)
	for i := range n {
		problem.FirstEqual = append(problem.FirstEqual, slices.Index(original, original[i]))
		if weights {
			problem.Weights[i] = math.Exp(random.NormFloat64())
		}
		row := y.RawRowView(i)
		for j := range row {
			row[j] = 3*differentK.At(original[i], 0) + 2 + 0.5*random.NormFloat64()
		}
		if classes {
			encodeClass(row, datasets.PredictedClass([]float64{row[0] - 2.5}))
		}
	}
	return k, y, problem
}

// weightedProblem returns W^½KW^½ and W^½Y, the unweighted problem that is equivalent to one with weights w.
func weightedProblem(k, y *mat.Dense, w []float64) (wk, wy *mat.Dense) {
	wk, wy = mat.DenseCopyOf(k), mat.DenseCopyOf(y)
	wk.Apply(func(i, j int, v float64) float64 { return v * math.Sqrt(w[i]*w[j]) }, wk)
	wy.Apply(func(i, _ int, v float64) float64 { return v * math.Sqrt(w[i]) }, wy)
	return wk, wy
}

// TestLeaveOutGroups checks that the rows of a group are left out together, even if they are not equal, with the mean
// of the others, weights, several targets and classes. The residuals must be those of fits without each group, and the
// intervals must cover the exact error for a wrong K with a given error. Path refuses groups.
func TestLeaveOutGroups(t *testing.T) {
	for name, c := range map[string]struct {
		n, groups, targets     int
		classes, weights, mean bool
	}{
		"one target":               {n: 40, groups: 9, targets: 1},
		"mean":                     {n: 30, groups: 4, targets: 2, mean: true},
		"weights":                  {n: 24, groups: 24, targets: 1, weights: true, mean: true},
		"two groups":               {n: 20, groups: 2, targets: 1, weights: true, mean: true},
		"two classes":              {n: 50, groups: 12, targets: 1, classes: true},
		"classes in three columns": {n: 50, groups: 12, targets: 3, classes: true, weights: true},
	} {
		k, y, o := randomProblemWithRepeats(c.n, c.n-3, c.targets, c.classes, c.weights, 5)
		firstOfGroup := map[int]int{}
		for i := range o.FirstEqual {
			g := i * i % c.groups
			if _, seen := firstOfGroup[g]; !seen {
				firstOfGroup[g] = i
			}
			o.FirstEqual[i] = firstOfGroup[g]
		}
		o.SubtractsMean = c.mean
		wk, wy := weightedProblem(k, y, o.Weights)
		grouped := *o
		grouped.FirstEqual, grouped.Groups = nil, o.FirstEqual
		exact := testkit.Must(Dense(context.Background(), wk, wy, []float64{0.1}, &grouped))[0]
		var difference mat.Dense
		difference.Sub(residualsByRefitting(t, k, y, exact.Lambda, o), exact.Residuals)
		if e := mat.Norm(&difference, math.Inf(1)); e > 1e-9 {
			t.Errorf("%s: residuals differ by %g from those of fits without each group", name, e)
		}
		const kError = 1e-4
		wrongK := mat.DenseCopyOf(wk)
		for i := range c.n {
			wrongK.Set(i, i, wrongK.At(i, i)+kError*float64(i%2*2-1))
		}
		grouped.KError = kError
		e := testkit.Must(Dense(context.Background(), wrongK, wy, []float64{0.1}, &grouped))[0].Error
		if !e.Contains(exact.Error.Value) {
			t.Errorf("%s: %v with a storage error, exactly %g", name, e, exact.Error.Value)
		}
		_, err := Path(context.Background(), denseMatrix{wk}, nil, wy, []float64{0.1}, &grouped)
		testkit.Fails(t, err, "groups")
	}
}

// TestLeaveOutEqualRows checks that equal rows are left out together, with the mean of the others, weights, several
// targets and classes. Residuals and errors must be those of a fit without each set of equal rows. GCV must use the hat
// matrix of the problem with merged rows, and s_λ must be its trace.
func TestLeaveOutEqualRows(t *testing.T) {
	for _, c := range []struct {
		name                   string
		n, different, targets  int
		classes, weights, mean bool
	}{
		{name: "different rows", n: 40, different: 40, targets: 1},
		{name: "different rows, three targets", n: 40, different: 40, targets: 3},
		{name: "different rows of two classes", n: 40, different: 40, targets: 1, classes: true},
		{name: "different rows of classes in three columns", n: 40, different: 40, targets: 3, classes: true},
		{name: "different rows, mean", n: 20, different: 20, targets: 2, mean: true},
		{name: "different rows, mean and weights", n: 20, different: 20, targets: 1, weights: true, mean: true},
		{name: "half of the rows", n: 24, different: 12, targets: 1},
		{name: "mean, weights, two targets", n: 30, different: 11, targets: 2, weights: true, mean: true},
		{name: "two different rows of nine", n: 9, different: 2, targets: 1, mean: true},
		{name: "two rows", n: 2, different: 2, targets: 1, mean: true},
		{name: "two classes", n: 40, different: 15, targets: 1, classes: true},
		{name: "classes in three columns, weights", n: 40, different: 15, targets: 3, classes: true, weights: true},
	} {
		k, y, o := randomProblemWithRepeats(c.n, c.different, c.targets, c.classes, c.weights, 3)
		if o.SubtractsMean = c.mean; c.name == "two rows" {
			y = mat.NewDense(2, 1, []float64{1, 2})
		}
		wk, wy := weightedProblem(k, y, o.Weights)
		simplified, lambdas, before := *o, []float64{1, 1e-3, 0.01}, mat.DenseCopyOf(wk)
		if c.different == c.n {
			simplified.FirstEqual = nil
		}
		if !c.weights {
			simplified.Weights = nil
		}
		scores, err := Dense(context.Background(), wk, wy, lambdas, &simplified)
		if err != nil || !mat.Equal(wk, before) {
			t.Fatalf("%s: error %v, or K was changed", c.name, err)
		}
		for j, s := range scores {
			residuals := residualsByRefitting(t, k, y, s.Lambda, o)
			want := score(y, residuals, o)
			var difference mat.Dense
			difference.Sub(residuals, s.Residuals)
			if mat.Norm(&difference, math.Inf(1)) > 1e-8 || math.Abs(s.Error.Value-want) > 1e-8*max(1, want) ||
				!(s.Error.Lo <= want+1e-12 && want <= s.Error.Hi+1e-12) || s.Error.Hi-s.Error.Lo > 1e-3 ||
				s.Lambda != lambdas[j] {
				t.Errorf("%s, λ = %g: %v, want the error %g; residuals differ by %g", c.name, s.Lambda, s.Error, want,
					mat.Norm(&difference, math.Inf(1)))
			}
			gcv, degreesOfFreedom := mergedGCV(t, k, y, s.Lambda, o)
			testkit.Near(t, s.GCV/gcv, 1, 1e-6, c.name, "GCV for λ =", s.Lambda)
			testkit.Near(t, s.S, degreesOfFreedom, 1e-6, c.name, "s_λ for λ =", s.Lambda)
		}
		if c.name == "two rows" { // each row is predicted by the other one
			testkit.Near(t, scores[0].Error.Value, 1, 1e-12, "mean square for y = 1, 2")
		}
	}
	_, err := Dense(context.Background(), mat.NewDense(3, 3, nil), mat.NewDense(3, 1, nil), []float64{1},
		&Problem{FirstEqual: []int{0, 0, 0}})
	testkit.Fails(t, err, "all 3 rows are in one group")
}

// mergedGCV returns GCV and the trace of the hat matrix H of the problem with merged rows, the degrees of freedom. Each
// of the u sets of equal rows becomes one row with their weight W_g and weighted mean ȳ_g. GCV is
// (Σ_g W_g((I−H)ȳ)_g²/(1−tr H/u)² + Σ_i w_i(y_i−ȳ_g(i))²)/Σ_i w_i, averaged over the columns of Y.
func mergedGCV(t *testing.T, k, y *mat.Dense, lambda float64, o *Problem) (gcv, degreesOfFreedom float64) {
	n, columns := y.Dims()
	var first []int                                    // the first row of each set
	setWeight, set := map[int]float64{}, map[int]int{} // of the set with this first row
	for i := range n {
		if o.FirstEqual[i] == i {
			set[i], first = len(first), append(first, i)
		}
		setWeight[o.FirstEqual[i]] += o.Weights[i]
	}
	u, total := len(first), floats.Sum(o.Weights)
	mean := mat.NewDense(u, columns, nil)
	for i, f := range o.FirstEqual {
		for j := range columns {
			mean.Set(set[f], j, mean.At(set[f], j)+o.Weights[i]*y.At(i, j)/setWeight[f])
		}
	}
	// K+λW⁻¹, the centering matrix I − 1Wᵀ/ΣW or I, and K(K+λW⁻¹)⁻¹(I − 1Wᵀ/ΣW) + 1Wᵀ/ΣW of the merged rows
	a, centering, h := mat.NewDense(u, u, nil), mat.NewDense(u, u, nil), mat.NewDense(u, u, nil)
	mergedK, average := mat.NewDense(u, u, nil), mat.NewDense(u, u, nil)
	for g, i := range first {
		for l, j := range first {
			mergedK.Set(g, l, k.At(i, j))
			if o.SubtractsMean {
				average.Set(g, l, setWeight[j]/total)
			}
		}
		a.Set(g, g, lambda/setWeight[i])
		centering.Set(g, g, 1)
	}
	a.Add(a, mergedK)
	centering.Sub(centering, average)
	testkit.OK(t, h.Solve(a, centering))
	h.Mul(mergedK, h)
	h.Add(h, average)
	degreesOfFreedom = mat.Trace(h)
	var f mat.Dense
	f.Mul(h, mean)
	for i, first := range o.FirstEqual {
		g := set[first]
		for j := range columns {
			inSet, ofSet := y.At(i, j)-mean.At(g, j), (mean.At(g, j)-f.At(g, j))/(1-degreesOfFreedom/float64(u))
			gcv += o.Weights[i] * (inSet*inSet + ofSet*ofSet)
		}
	}
	return gcv / total / float64(columns), degreesOfFreedom
}

// denseMatrix is a kernel matrix in memory that Path can use.
type denseMatrix struct{ *mat.Dense }

func (k denseMatrix) Dim() int { return k.RawMatrix().Rows }

func (k denseMatrix) Diag() (d []float64) {
	for i := range k.Dim() {
		d = append(d, k.At(i, i))
	}
	return d
}

func (k denseMatrix) KMulTo(_ context.Context, dst, src *mat.Dense) error {
	dst.Mul(k.Dense, src)
	return nil
}

// TestPathWithEqualRows checks that Path also leaves equal rows out together, with weights and the mean of the others.
// For regression its intervals must cover the exact error, and classes are refused.
func TestPathWithEqualRows(t *testing.T) {
	const n, different, features = 260, 200, 80
	for seed := range uint64(4) {
		k, y, o := randomProblemWithRepeats(n, different, 1, false, seed%2 == 1, seed)
		o.SubtractsMean = seed > 1
		wk, wy := weightedProblem(k, y, o.Weights)
		var eig mat.EigenSym
		eig.Factorize(testkit.Symmetric(wk), true)
		var eigenvectors mat.Dense
		eig.VectorsTo(&eigenvectors)
		z, eigenvalues := points.NewDense32(n, features, nil), eig.Values(nil) // ZZᵀ has the largest eigenvalues of K
		for i := range n {
			for j := range features {
				z.Row(i)[j] = float32(eigenvectors.At(i, n-1-j) * math.Sqrt(max(0, eigenvalues[n-1-j])))
			}
		}
		woodbury := testkit.Must(precond.New(context.Background(), o.Merged(z), 0.1,
			&precond.Options{Form: precond.FormEigen}))
		lambdas := []float64{0.05, 1}
		exact := testkit.Must(Dense(context.Background(), wk, wy, lambdas, o))
		got := testkit.Must(Path(context.Background(), denseMatrix{wk}, woodbury, wy, lambdas, o))
		for j, s := range got {
			if want := exact[j]; !(s.Error.Lo <= want.Error.Value && want.Error.Value <= s.Error.Hi) ||
				math.Abs(s.GCV/want.GCV-1) > 0.1 || math.Abs(s.S/want.S-1) > 0.1 {
				t.Errorf("seed %d: %v, GCV %g, s_λ %g, want %v, %g, %g", seed, s.Error, s.GCV, s.S, want.Error,
					want.GCV, want.S)
			}
		}
		o.Classification = true
		testkit.Fails(t, testkit.ErrOf(Path(context.Background(), denseMatrix{wk}, woodbury, wy, lambdas, o)),
			"only for regression")
	}
}
