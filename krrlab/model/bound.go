package model

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
)

func (e *Error) fits(t int) bool {
	bad := func(v float64) bool { return !(v >= 0) || math.IsInf(v, 1) }
	return len(e.ANorm) == t && !slices.ContainsFunc(e.ANorm, bad) &&
		(e.Decision == nil || len(e.Decision) == t && !slices.ContainsFunc(e.Decision, bad))
}

// Bounds returns B, m×t, with |f_j*(z_a) − F_aj| ≤ B_aj for the points z_a of d and decision values F of them that
// were predicted with Options.Float64:
//
//	B_aj = √k(z_a, z_a)·(D_j + (δ+(n+9)u)·Σ_i √k(x_i, x_i)·|C_ij|) + u·|mean_j|,
//
// f* that of the solution and the model's Mean, D_j of Error.Decision, or else ‖c_j−c_j*‖_A. What follows D_j is the
// rounding of F, with the error δ of kernel values (kernel.EntryError) and u = 2⁻⁵³. It returns an error if the model
// has no Error or the points do not fit.
func (m *Model) Bounds(d *datasets.Dataset) (*mat.Dense, error) {
	if m.Error == nil && kernel.AsPrecomputed(m.Kernel) != nil {
		return nil, fmt.Errorf("the model is of a precomputed K, which is not known to be positive semi-definite: " +
			"it has no bounds of its error; predict without bounds")
	}
	if m.Error == nil {
		return nil, fmt.Errorf("the model has no bounds of its error: it was fitted by an older krrlab, or its " +
			"residual is not known; fit again")
	}
	d, err := m.Scaled(d)
	if err != nil {
		return nil, err
	}
	n, _, t := m.Dims()
	rows := d.Len()
	place := kernel.NewPlacement(m.Kernel, m.X)
	z := place.Apply(d.X)
	extent := place.SummaryWith(z)
	const u = 0x1p-53
	share := max(kernel.EntryError(m.Kernel, kernel.Float64, extent),
		kernel.EntryError(m.Kernel, kernel.Differences, extent))
	share += float64(n+9) * u
	own, mean := make([]float64, t), make([]float64, t)
	copy(mean, m.Mean)
	for i, v := range kernel.Diag(m.Kernel, m.X) {
		for j, c := range m.C.RawRowView(i) {
			own[j] += math.Sqrt(v) * math.Abs(c)
		}
	}
	b, known := mat.NewDense(rows, t, nil), m.Error.Decision
	if known == nil {
		known = m.Error.ANorm
	}
	for a, v := range kernel.Diag(m.Kernel, d.X) {
		for j, e := range known {
			rounding := math.Sqrt(v)*share*own[j] + u*math.Abs(mean[j])
			b.Set(a, j, math.Sqrt(v)*e+rounding)
		}
	}
	return b, nil
}
