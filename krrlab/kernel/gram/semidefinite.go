package gram

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// SemidefiniteShift returns a shift ≥ 0 for which K+shift·I is positive semi-definite. It is at most λ/100 plus the
// rounding error of the test; if that is not enough, SemidefiniteShift returns an error.
//
// The test is a Cholesky factorization in float64. If there are more than 4,000 points, or more than the free memory
// allows, only as many evenly spaced rows and columns of K are factored. SemidefiniteShift returns the number of rows
// that it tested; a test of fewer than all proves nothing about all of K.
func SemidefiniteShift(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, memory accel.Budget) (
	shift float64, tested int, err error) {
	n, _ := x.Dims()
	tested = min(n, 4000, int(math.Sqrt(float64(max(memory.Free(), 64))/16))) // 16 bytes per entry: K and its factor
	if tested < n {
		rows := make([]int, tested)
		for i := range rows {
			rows[i] = i * n / tested
		}
		x = points.Gather(x, rows)
	}
	exact, err := NewExact(k, x, 0, 0, nil)
	if err != nil {
		return 0, tested, err
	}
	dense, factor := mat.NewDense(tested, tested, nil), mat.NewDense(tested, tested, nil)
	if err := exact.DenseTo(ctx, dense); err != nil {
		return 0, tested, err
	}
	for _, fraction := range []float64{1e-8, 1e-6, 1e-4, 1e-2} {
		factor.Copy(dense)
		for i := range tested {
			factor.Set(i, i, dense.At(i, i)+fraction*lambda)
		}
		// The backward error of the factor of a matrix A is at most (n+1)u·tr A with u = 2⁻⁵³ (N. J. Higham, Accuracy
		// and Stability of Numerical Algorithms, 2nd ed., theorem 10.3).
		if accel.Dpotrf(tested, factor.RawMatrix().Data, tested) {
			return fraction*lambda + 2*float64(tested+1)*0x1p-53*(mat.Trace(dense)+float64(tested)*lambda), tested, nil
		}
	}
	return 0, tested, fmt.Errorf("krrlab: the given K is not positive semi-definite, which this stage's intervals "+
		"rest on: it has an eigenvalue near or below −λ/100 = %.3g; clip its negative eigenvalues, or take a larger λ",
		-lambda/100)
}
