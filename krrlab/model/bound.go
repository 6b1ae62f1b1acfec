package model

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
)

// isValid reports whether the bounds are nonnegative, finite, and one for each of t columns.
func (e *ErrorBounds) isValid(t int) bool {
	invalid := func(v float64) bool { return !(v >= 0) || math.IsInf(v, 1) }
	return len(e.ANorm) == t && !slices.ContainsFunc(e.ANorm, invalid) &&
		(e.Decision == nil || len(e.Decision) == t && !slices.ContainsFunc(e.Decision, invalid))
}

// DecisionBounds returns B, m×t, with |f_j*(z_a) − F_aj| ≤ B_aj for the points z_a of d, where F are the decision
// values predicted with Options.Float64:
//
//	B_aj = √k(z_a, z_a)·(D_j + (δ+(n+9)u)·Σ_i √k(x_i, x_i)·|C_ij|) + u·|mean_j|,
//
// where f* is the exact solution plus the model's Mean. D_j is ErrorBounds.Decision, or ‖c_j−c_j*‖_A if that is not
// known. The terms after D_j bound the rounding error of F: δ is the error of kernel values (kernel.EntryError), and u
// = 2⁻⁵³. The factor n+9 counts the roundings of a sum over n points, with 9 for the other operations, rounded up.
// DecisionBounds returns an error if the model has no ErrorBounds or the points do not match the model.
func (m *Model) DecisionBounds(d *datasets.Dataset) (*mat.Dense, error) {
	if m.ErrorBounds == nil && kernel.AsPrecomputed(m.Kernel) != nil {
		return nil, fmt.Errorf("the model is of a precomputed K, which is not known to be positive semi-definite: " +
			"it has no bounds of its error; predict without bounds")
	}
	if m.ErrorBounds == nil {
		return nil, fmt.Errorf("the model has no bounds of its error: it was fitted by an older krrlab, or its " +
			"residual is not known; fit again")
	}
	d, err := m.Scaled(d)
	if err != nil {
		return nil, err
	}
	n, _, t := m.Dims()
	rows := d.Len()
	placement := kernel.NewPlacement(m.Kernel, m.X)
	z := placement.Apply(d.X)
	summary := placement.SummaryWith(z)
	const u = 0x1p-53 // unit roundoff
	kernelError := max(kernel.EntryError(m.Kernel, kernel.Float64, summary),
		kernel.EntryError(m.Kernel, kernel.Differences, summary))
	kernelError += float64(n+9) * u
	absoluteSums, mean := make([]float64, t), make([]float64, t)
	copy(mean, m.Mean)
	for i, selfKernel := range kernel.Diag(m.Kernel, m.X) {
		for j, c := range m.C.RawRowView(i) {
			absoluteSums[j] += math.Sqrt(selfKernel) * math.Abs(c)
		}
	}
	bounds, errorBounds := mat.NewDense(rows, t, nil), m.ErrorBounds.Decision
	if errorBounds == nil {
		errorBounds = m.ErrorBounds.ANorm
	}
	for a, selfKernel := range kernel.Diag(m.Kernel, d.X) {
		for j, coefficientBound := range errorBounds {
			rounding := math.Sqrt(selfKernel)*kernelError*absoluteSums[j] + u*math.Abs(mean[j])
			bounds.Set(a, j, math.Sqrt(selfKernel)*coefficientBound+rounding)
		}
	}
	return bounds, nil
}
