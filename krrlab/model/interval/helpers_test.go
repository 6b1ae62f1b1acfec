package interval

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// crossKernelMatrix returns the matrix k(x_i, z_j), computed with Eval.
func crossKernelMatrix(k kernel.Kernel, x, z points.Points) *mat.Dense {
	n, d := x.Dims()
	m, _ := z.Dims()
	xs, zs, cross := make([]float64, n*d), make([]float64, m*d), mat.NewDense(n, m, nil)
	points.RowsTo(x, xs, d)
	points.RowsTo(z, zs, d)
	for i := range n {
		for j := range m {
			cross.Set(i, j, k.Eval(xs[i*d:(i+1)*d], zs[j*d:(j+1)*d]))
		}
	}
	return cross
}

// inverseOf returns (K+λI)⁻¹.
func inverseOf(t *testing.T, k kernel.Kernel, x points.Points, lambda float64) *mat.Dense {
	t.Helper()
	var inv mat.Dense
	testkit.OK(t, inv.Inverse(testkit.AddRidge(testkit.KernelMatrix(k, x), lambda)))
	return &inv
}

// fit returns the model of d with the given kernel and λ, solved by a dense Cholesky factorization.
func fit(t *testing.T, d *datasets.Dataset, k kernel.Kernel, lambda float64) *model.Model {
	t.Helper()
	a := testkit.AddRidge(testkit.KernelMatrix(k, d.X), lambda)
	coding := datasets.Coding{Labels: d.Labels, Mean: d.Mean}
	y := testkit.Must(coding.EncodeForFit(d))
	var chol mat.Cholesky
	var c mat.Dense
	if !chol.Factorize(a) || chol.SolveTo(&c, y) != nil {
		t.Fatal("K+λI is not positive definite")
	}
	var residual mat.Dense
	residual.Mul(a, &c)
	residual.Sub(y, &residual)
	return &model.Model{Kernel: k, Lambda: lambda, X: d.X, C: &c, Labels: d.Labels, Mean: d.Mean, Scaling: d.Scaling,
		Groups: d.Groups, Repeats: d.Repeats,
		Origin: model.Origin{TrueResidual: new(mat.Norm(&residual, 2) / mat.Norm(y, 2))}}
}

// predict returns the prediction of the model at the points of d, computed in float64.
func predict(t *testing.T, m *model.Model, d *datasets.Dataset) *model.Prediction {
	t.Helper()
	return testkit.Must(m.Predict(t.Context(), d, &model.Options{Float64: true}))
}

// newSystem returns the dense FactoredSystem of the model.
func newSystem(t *testing.T, m *model.Model) *FactoredSystem {
	t.Helper()
	return testkit.Must(NewFactoredSystem(t.Context(), m, accel.Budget{}))
}

// withoutGroupOf returns d without the group of row i. If no groups were chosen, the rows with the same features are a
// group. If d is centered, the result is centered by the mean of its own rows.
func withoutGroupOf(d *datasets.Dataset, i int) *datasets.Dataset {
	if d.Repeats == nil {
		d = testkit.Must(d.GroupByRule("together", nil))
	}
	firstRow := d.Grouping(nil).FirstRow
	var rows []int
	for j := range firstRow {
		if firstRow[j] != firstRow[i] {
			rows = append(rows, j)
		}
	}
	if d = d.Subset(rows); d.Mean != nil {
		return d.Center()
	}
	return d
}

// withGroups returns d in 13 or fewer groups, whose rows have different features.
func withGroups(d *datasets.Dataset) *datasets.Dataset {
	groups := make([]int, d.Len())
	for i := range groups {
		groups[i] = i * i % 13
	}
	return d.GroupBy(groups)
}

// withRepeats returns d with the features of some rows replaced by those of others.
func withRepeats(d *datasets.Dataset) *datasets.Dataset {
	rows := make([]int, d.Len())
	for i := range rows {
		rows[i] = min(i, i*i%(d.Len()-3))
	}
	repeated := *d
	repeated.X = points.Gather(d.X, rows)
	return &repeated
}

// kernels holds one kernel of each kind that has parameters.
var kernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 1.5}, kernel.Laplacian{Sigma: 3}, kernel.Matern32{Sigma: 1.5}, kernel.Matern52{Sigma: 2},
	kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 2},
}
