package interval

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// dense returns k(x_i, z_j) by the kernel's own Eval.
func dense(k kernel.Kernel, x, z points.Points) *mat.Dense {
	n, d := x.Dims()
	m, _ := z.Dims()
	a, b, out := make([]float64, n*d), make([]float64, m*d), mat.NewDense(n, m, nil)
	points.Panel64To(x, a, d)
	points.Panel64To(z, b, d)
	for i := range n {
		for j := range m {
			out.Set(i, j, k.Eval(a[i*d:(i+1)*d], b[j*d:(j+1)*d]))
		}
	}
	return out
}

// inverse returns A⁻¹.
func inverse(t *testing.T, k kernel.Kernel, x points.Points, lambda float64) *mat.Dense {
	t.Helper()
	var inv mat.Dense
	testkit.OK(t, inv.Inverse(testkit.Plus(testkit.Gram(k, x), lambda)))
	return &inv
}

// fit solves by a dense factorization.
func fit(t *testing.T, d *datasets.Dataset, k kernel.Kernel, lambda float64) *model.Model {
	t.Helper()
	a := testkit.Plus(testkit.Gram(k, d.X), lambda)
	coding := datasets.Coding{Labels: d.Labels, Mean: d.Mean}
	y := testkit.Must(coding.EncodeForFit(d))
	var ch mat.Cholesky
	var c mat.Dense
	if !ch.Factorize(a) || ch.SolveTo(&c, y) != nil {
		t.Fatal("not positive definite")
	}
	var r mat.Dense
	r.Mul(a, &c)
	r.Sub(y, &r)
	return &model.Model{Kernel: k, Lambda: lambda, X: d.X, C: &c, Labels: d.Labels, Mean: d.Mean, Scaling: d.Scaling,
		Groups: d.Groups, Repeats: d.Repeats,
		Origin: model.Origin{TrueResidual: new(mat.Norm(&r, 2) / mat.Norm(y, 2))}}
}

func predict(t *testing.T, m *model.Model, d *datasets.Dataset) *model.Prediction {
	t.Helper()
	return testkit.Must(m.Predict(t.Context(), d, &model.Options{Float64: true}))
}

func cholesky(t *testing.T, m *model.Model) *System {
	t.Helper()
	return testkit.Must(Cholesky(t.Context(), m, 0))
}

// without returns d without the group of row i, or, if no groups were chosen, those of the same features, less the mean
// of the others if d is less its mean.
func without(d *datasets.Dataset, i int) *datasets.Dataset {
	if d.Repeats == nil {
		d = testkit.Must(d.Group("together", nil))
	}
	first := d.Grouping(nil).First
	var rows []int
	for q := range first {
		if first[q] != first[i] {
			rows = append(rows, q)
		}
	}
	if d = d.Subset(rows); d.Mean != nil {
		return d.Center()
	}
	return d
}

// grouping returns d in groups of rows of different features.
func grouping(d *datasets.Dataset) *datasets.Dataset {
	groups := make([]int, d.Len())
	for i := range groups {
		groups[i] = i * i % 13
	}
	return d.GroupBy(groups)
}

// repeated returns d with the features of some rows replaced by those of others.
func repeated(d *datasets.Dataset) *datasets.Dataset {
	rows := make([]int, d.Len())
	for i := range rows {
		rows[i] = min(i, i*i%(d.Len()-3))
	}
	out := *d
	out.X = points.Gather(d.X, rows)
	return &out
}

var kernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 1.5}, kernel.Laplacian{Sigma: 3}, kernel.Matern32{Sigma: 1.5}, kernel.Matern52{Sigma: 2},
	kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 2},
}
