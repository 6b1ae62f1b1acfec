package kernel

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Kernel is a symmetric positive semidefinite function of two points of the same dimension.
//
// A kernel whose calls are expensive can have a method EvalTile(dst, x, z []float64, nx, nz int). It sets dst[i·nz+j]
// to k(x_i, z_j) for i < nx and j < nz. The points are the consecutive rows of x and z. EvalTile must satisfy the same
// conditions as Eval, and Check compares the two.
type Kernel interface {
	// Eval returns k(x, z) in float64. It must not keep or change x and z, and must allow calls from several
	// goroutines.
	Eval(x, z []float64) float64
	// String names the kernel and its parameters.
	String() string
}

// formatFloat returns v in the shortest notation that has the same bits.
func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// squaredDistance returns ‖x−z‖₂².
func squaredDistance(x, z []float64) float64 {
	var sum float64
	for j, v := range x {
		difference := v - z[j]
		sum += difference * difference
	}
	return sum
}

// Validate returns an error of one line if k is nil or one of its parameters is out of range. A user-defined kernel
// checks its parameters in a method Validate() error.
func Validate(k Kernel) error {
	if k == nil {
		return errors.New("kernel: no kernel given")
	}
	if v, ok := k.(validator); ok {
		return v.Validate()
	}
	return nil
}

// validator is a kernel that checks its parameters.
type validator interface{ Validate() error }

// checkSigma returns an error that names the kernel if σ is so small or large that σ² underflows or overflows.
func checkSigma(name string, sigma float64) error {
	if !(sigma >= 1e-150 && sigma <= 1e150) { // the negation also rejects NaN
		return fmt.Errorf("kernel: %s has sigma = %v, want a number from 1e-150 to 1e150", name, sigma)
	}
	return nil
}

// BuiltIn reports whether k is one of the kernels of this package, whose properties are all known.
func BuiltIn(k Kernel) bool {
	return builtIn[reflect.TypeOf(k)] // not a method of k, which a type that embeds a built-in kernel would inherit
}

// IsPairwise reports whether k is evaluated pair by pair, because only Eval is known.
func IsPairwise(k Kernel) bool { return ArgumentOf(k) == UnknownArgument }

// IsExpensive reports whether every entry of the kernel matrix needs a call of Eval, which may take as long as 10⁴
// multiplications.
func IsExpensive(k Kernel) bool {
	_, tiles := k.(tiler)
	return IsPairwise(k) && !tiles && AsPrecomputed(k) == nil
}

// ShiftInvariant reports whether k is known to depend on x−z only. All points may then be shifted by the same vector.
func ShiftInvariant(k Kernel) bool {
	a := ArgumentOf(k)
	return a == SquaredDistance || a == L1Distance
}

// Bounded01 reports whether k is known to have values in [0, 1] and k(x, x) = 1.
func Bounded01(k Kernel) bool { return BuiltIn(k) && ShiftInvariant(k) }

// Diag returns w_i·k(x_i, x_i) for all points in float64, where w_i is the weight of a points.Weighted and otherwise 1.
func Diag(k Kernel, x points.Points) []float64 {
	return diagonal(k, points.NewPanel(x))
}

// diagonal is Diag for a panel.
func diagonal(k Kernel, x points.Panel) []float64 {
	_, d := x.X.Dims()
	diag := make([]float64, x.Len())
	switch {
	case ShiftInvariant(k):
		k.(profile).Profile(diag, diag) // ‖x−x‖ = 0
	case ArgumentOf(k) == InnerProduct:
		k.(profile).Profile(diag, x.Norms)
	default:
		row := make([]float64, d)
		for i := range diag {
			x.X.RowTo(row, i)
			diag[i] = k.Eval(row, row)
		}
	}
	return x.MultiplyByWeights(diag)
}
