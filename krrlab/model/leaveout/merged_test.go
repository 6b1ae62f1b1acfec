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

// refit returns the residual y_i − f(x_i) of each row for a fit without the rows that o.FirstEqual calls equal to it,
// or without the row alone if o.FirstEqual is nil. A fit minimizes Σ w (y−ȳ−f)² + λ‖f‖², where ȳ is the weighted mean
// of its targets if o.SubtractsMean is set, and 0 otherwise.
func refit(t *testing.T, k, y *mat.Dense, lambda float64, o *Problem) *mat.Dense {
	n, cols := y.Dims()
	e, same, weights := mat.NewDense(n, cols, nil), o.FirstEqual, o.Weights
	if same == nil {
		same = indices(n)
	}
	if weights == nil {
		weights = slices.Repeat([]float64{1}, n)
	}
	for i := range n {
		var others []int
		for j := range n {
			if same[j] != same[i] {
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

// repeating returns K and Y of n points in random order of which only the given number are different. The rows have
// random weights if weights is set.
func repeating(n, different, t int, classes, weights bool, seed uint64) (k, y *mat.Dense, o *Problem) {
	g := rand.New(rand.NewPCG(seed, 5))
	differentK, _ := problem(different, 2, t, 1, false, seed)
	original := g.Perm(n)
	for i, v := range original {
		if original[i] = v; v >= different {
			original[i] = g.IntN(different/2 + 1)
		}
	}
	k, y = mat.NewDense(n, n, nil), mat.NewDense(n, t, nil)
	o = &Problem{Classification: classes, ComputeResiduals: true, Weights: slices.Repeat([]float64{1}, n)}
	k.Apply(func(i, j int, _ float64) float64 { return differentK.At(original[i], original[j]) }, k)
	for i := range n {
		o.FirstEqual = append(o.FirstEqual, slices.Index(original, original[i]))
		if weights {
			o.Weights[i] = math.Exp(g.NormFloat64())
		}
		row := y.RawRowView(i)
		for j := range row {
			row[j] = 3*differentK.At(original[i], 0) + 2 + 0.5*g.NormFloat64()
		}
		if classes {
			code(row, datasets.PredictedClass([]float64{row[0] - 2.5}))
		}
	}
	return k, y, o
}

// symmetricForm returns W^½KW^½ and W^½Y, the unweighted problem that is equivalent to one with weights w.
func symmetricForm(k, y *mat.Dense, w []float64) (pk, py *mat.Dense) {
	pk, py = mat.DenseCopyOf(k), mat.DenseCopyOf(y)
	pk.Apply(func(i, j int, v float64) float64 { return v * math.Sqrt(w[i]*w[j]) }, pk)
	py.Apply(func(i, _ int, v float64) float64 { return v * math.Sqrt(w[i]) }, py)
	return pk, py
}

// TestGroups checks that the rows of a group are left out together, even if they are not equal, with the mean of the
// others, weights, several targets and classes. The residuals must be those of fits without each group, and the
// intervals must cover the exact error for a wrong K with a given error.
func TestGroups(t *testing.T) {
	for name, c := range map[string]struct {
		n, groups, t           int
		classes, weights, mean bool
	}{"plain": {40, 9, 1, false, false, false}, "mean": {30, 4, 2, false, false, true},
		"weights": {24, 24, 1, false, true, true}, "two": {20, 2, 1, false, true, true},
		"classes": {50, 12, 1, true, false, false}, "columns": {50, 12, 3, true, true, false}} {
		k, y, o := repeating(c.n, c.n-3, c.t, c.classes, c.weights, 5) // some rows are equal
		for i := range o.FirstEqual {
			o.FirstEqual[i] = i * i % c.groups
		}
		first := map[int]int{}
		for i, g := range o.FirstEqual {
			if _, seen := first[g]; !seen {
				first[g] = i
			}
			o.FirstEqual[i] = first[g]
		}
		o.SubtractsMean = c.mean
		pk, py := symmetricForm(k, y, o.Weights)
		blocks := *o
		blocks.FirstEqual, blocks.Groups = nil, o.FirstEqual
		s := testkit.Must(Dense(context.Background(), pk, py, []float64{0.1}, &blocks))[0]
		e := refit(t, k, y, s.Lambda, o)
		var difference mat.Dense
		if difference.Sub(e, s.Residuals); mat.Norm(&difference, math.Inf(1)) > 1e-9 {
			t.Errorf("%s: residuals are off by %g", name, mat.Norm(&difference, math.Inf(1)))
		}
		const kError = 1e-4
		wrongK := mat.DenseCopyOf(pk)
		for i := range c.n {
			wrongK.Set(i, i, wrongK.At(i, i)+kError*float64(i%2*2-1))
		}
		blocks.KError = kError
		b := testkit.Must(Dense(context.Background(), wrongK, py, []float64{0.1}, &blocks))[0].Error
		if !b.Contains(s.Error.Value) {
			t.Errorf("%s: %v, exactly %g", name, b, s.Error.Value)
		}
		if _, err := Path(context.Background(), denseMatrix{pk}, nil, py, []float64{0.1}, &blocks); err == nil {
			t.Error("probes leave out groups")
		}
	}
}

// TestTogether checks that equal rows are left out together, with the mean of the others, weights, several targets
// and classes. Residuals and errors must be those of a fit without each set of equal rows. GCV must use the hat
// matrix of the problem with merged rows, and s_λ must be its trace.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		name           string
		n, different   int
		t              int
		classes        bool
		weights, means bool
	}{
		{"alone", 40, 40, 1, false, false, false}, {"three targets", 40, 40, 3, false, false, false},
		{"classes alone", 40, 40, 1, true, false, false}, {"three classes alone", 40, 40, 3, true, false, false},
		{"pairs", 24, 12, 1, false, false, false}, {"means", 20, 20, 2, false, false, true},
		{"means and weights", 20, 20, 1, false, true, true},
		{"all", 30, 11, 2, false, true, true}, {"two left", 9, 2, 1, false, false, true},
		{"two rows", 2, 2, 1, false, false, true},
		{"classes", 40, 15, 1, true, false, false}, {"three columns, weights", 40, 15, 3, true, true, false},
	} {
		k, y, o := repeating(c.n, c.different, c.t, c.classes, c.weights, 3)
		if o.SubtractsMean = c.means; c.name == "two rows" {
			y = mat.NewDense(2, 1, []float64{1, 2})
		}
		pk, py := symmetricForm(k, y, o.Weights)
		plain, lambdas, before := *o, []float64{1, 1e-3, 0.01}, mat.DenseCopyOf(pk)
		if c.different == c.n {
			plain.FirstEqual = nil
		}
		if !c.weights {
			plain.Weights = nil
		}
		scores, err := Dense(context.Background(), pk, py, lambdas, &plain)
		if err != nil || !mat.Equal(pk, before) {
			t.Fatalf("%s: %v, or K was changed", c.name, err)
		}
		for q, s := range scores {
			e := refit(t, k, y, s.Lambda, o)
			want := score(y, e, o)
			var difference mat.Dense
			difference.Sub(e, s.Residuals)
			if mat.Norm(&difference, math.Inf(1)) > 1e-8 || math.Abs(s.Error.Value-want) > 1e-8*max(1, want) ||
				!(s.Error.Lo <= want+1e-12 && want <= s.Error.Hi+1e-12) || s.Error.Hi-s.Error.Lo > 1e-3 ||
				s.Lambda != lambdas[q] {
				t.Errorf("%s, λ = %g: %v, residuals off by %g, want error %g", c.name, s.Lambda, s.Error,
					mat.Norm(&difference, math.Inf(1)), want)
			}
			if gcv, dim := smoother(k, y, s.Lambda, o); math.Abs(s.GCV/gcv-1) > 1e-6 || math.Abs(s.S-dim) > 1e-6 {
				t.Errorf("%s, λ = %g: GCV %g, s_λ %g, want %g, %g", c.name, s.Lambda, s.GCV, s.S, gcv, dim)
			}
		}
		if c.name == "two rows" && math.Abs(scores[0].Error.Value-1) > 1e-12 {
			t.Errorf("y = 1, 2: mean square %g", scores[0].Error.Value)
		}
	}
	if _, err := Dense(context.Background(), mat.NewDense(3, 3, nil), mat.NewDense(3, 1, nil), []float64{1},
		&Problem{FirstEqual: []int{0, 0, 0}}); err == nil {
		t.Error("all rows are equal")
	}
}

// smoother returns GCV and the trace of the hat matrix H of the problem with merged rows. Each set of equal rows
// becomes one row with their weight W_g and mean target. GCV is Σ_g W_g((I−H)ȳ)_g²/(1−tr H/u)² plus the squares of
// the rows minus their means, divided by the sum of weights and the number of columns.
func smoother(k, y *mat.Dense, lambda float64, o *Problem) (gcv, dim float64) {
	n, t := y.Dims()
	var first []int
	w, at := map[int]float64{}, map[int]int{}
	for i := range n {
		if o.FirstEqual[i] == i {
			at[i], first = len(first), append(first, i)
		}
		w[o.FirstEqual[i]] += o.Weights[i]
	}
	u, total := len(first), floats.Sum(o.Weights)
	mean, a, h := mat.NewDense(u, t, nil), mat.NewDense(u, u, nil), mat.NewDense(u, u, nil)
	for i := range n {
		for j := range t {
			mean.Set(at[o.FirstEqual[i]], j, mean.At(at[o.FirstEqual[i]], j)+o.Weights[i]*y.At(i, j)/w[o.FirstEqual[i]])
		}
	}
	kk, centered := mat.NewDense(u, u, nil), mat.NewDense(u, u, nil)
	for g, i := range first {
		for l, j := range first {
			kk.Set(g, l, k.At(i, j))
			a.Set(g, l, k.At(i, j))
			if o.SubtractsMean {
				centered.Set(g, l, -w[j]/total)
			}
		}
		a.Set(g, g, a.At(g, g)+lambda/w[i])
		centered.Set(g, g, centered.At(g, g)+1)
	}
	var b mat.Dense
	if b.Solve(a, centered) != nil {
		return math.NaN(), math.NaN()
	}
	h.Mul(kk, &b) // the part of the hat matrix without the mean
	for g := range u {
		for l, j := range first {
			if o.SubtractsMean {
				h.Set(g, l, h.At(g, l)+w[j]/total)
			}
		}
	}
	dim = mat.Trace(h)
	var f mat.Dense
	f.Mul(h, mean)
	for i := range n {
		g := at[o.FirstEqual[i]]
		for j := range t {
			v := y.At(i, j) - mean.At(g, j)
			gcv += o.Weights[i] * v * v
		}
	}
	for g, i := range first {
		for j := range t {
			v := (mean.At(g, j) - f.At(g, j)) / (1 - dim/float64(u))
			gcv += w[i] * v * v
		}
	}
	return gcv / total / float64(t), dim
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

// TestPathTogether checks that Path also leaves equal rows out together, with weights and the mean of the others. For
// regression its intervals must cover the exact error, and classes are refused.
func TestPathTogether(t *testing.T) {
	const n, different = 260, 200
	for seed := range uint64(4) {
		k, y, o := repeating(n, different, 1, false, seed%2 == 1, seed)
		o.SubtractsMean = seed > 1
		pk, py := symmetricForm(k, y, o.Weights)
		var eig mat.EigenSym
		eig.Factorize(testkit.Symmetric(pk), true)
		var v mat.Dense
		eig.VectorsTo(&v)
		z := points.NewDense32(n, 80, nil)
		for i := range n {
			for j := range 80 {
				z.Row(i)[j] = float32(v.At(i, n-1-j) * math.Sqrt(max(0, eig.Values(nil)[n-1-j])))
			}
		}
		m := testkit.Must(precond.New(context.Background(), o.Merged(z), 0.1,
			&precond.Options{Form: precond.FormEigen}))
		lambdas := []float64{0.05, 1}
		exact := testkit.Must(Dense(context.Background(), pk, py, lambdas, o))
		got := testkit.Must(Path(context.Background(), denseMatrix{pk}, m, py, lambdas, o))
		for j, s := range got {
			if want := exact[j]; !(s.Error.Lo <= want.Error.Value && want.Error.Value <= s.Error.Hi) ||
				math.Abs(s.GCV/want.GCV-1) > 0.1 || math.Abs(s.S/want.S-1) > 0.1 {
				t.Errorf("seed %d: %v, GCV %g, s_λ %g, want %v, %g, %g", seed, s.Error, s.GCV, s.S, want.Error,
					want.GCV, want.S)
			}
		}
		o.Classification = true
		if _, err := Path(context.Background(), denseMatrix{pk}, m, py, lambdas, o); err == nil {
			t.Error("Path accepts classes with repeated rows")
		}
	}
}
