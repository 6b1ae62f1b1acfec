package krrlab

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// leastKnown returns what the eigenvalues of K+λI are known to be at least, which bounds of errors rest on: λ, or 0
// where K is not known to be positive semi-definite.
func (l *Lab) leastKnown() float64 {
	if kernel.Semidefinite(l.cfg.Kernel) {
		return l.cfg.Lambda
	}
	return 0
}

// pointBytes returns the bytes of the points, and of K where it is given.
func (l *Lab) pointBytes() int64 {
	return points.Held(l.train.X) + kernel.Given(l.cfg.Kernel).Bytes()
}

// kError bounds the distance of K as stored from a positive semi-definite K, whose intervals stages give.
func (l *Lab) kError(k *gram.Matrix) float64 { return k.Choice().Error + l.under }

// semidefinite sees to it that K+under·I is positive semi-definite, under at most λ/100, where K is given: by a
// Cholesky factor, of more than 4,000 points, or than the memory allows, by one of as many of its rows, which is no
// proof, and noted.
func (l *Lab) semidefinite(ctx context.Context) error {
	if kernel.Semidefinite(l.cfg.Kernel) || l.under > 0 {
		return nil
	}
	n, x, most := l.train.Len(), l.train.X, 4000
	if l.cfg.Memory > 0 {
		most = min(most, int(math.Sqrt(float64(max(l.cfg.Memory-l.pointBytes(), 64))/16))) // a copy and a factor
	}
	if n > most {
		some := make([]int, most)
		for i := range some {
			some[i] = i * n / most
		}
		x, n = points.Gather(x, some), most
		l.note = fmt.Sprintf("K, which is given, is taken to be positive semi-definite, as %d rows of it are", n)
	}
	a, err := gram.NewExact(l.cfg.Kernel, x, 0, 0, nil)
	if err != nil {
		return err
	}
	k, factor := mat.NewDense(n, n, nil), mat.NewDense(n, n, nil)
	if err := a.DenseTo(ctx, k); err != nil {
		return err
	}
	for _, share := range []float64{1e-8, 1e-6, 1e-4, 1e-2} {
		factor.Copy(k)
		for i := range n {
			factor.Set(i, i, k.At(i, i)+share*l.cfg.Lambda)
		}
		// off by at most (n+1)u·tr (Higham, Accuracy and Stability, theorem 10.3)
		if accel.Dpotrf(n, factor.RawMatrix().Data, n) {
			l.under = share*l.cfg.Lambda + 2*float64(n+1)*0x1p-53*(mat.Trace(k)+float64(n)*l.cfg.Lambda)
			return nil
		}
	}
	return fmt.Errorf("krrlab: the given K is not positive semi-definite, which this stage's intervals rest on: it "+
		"has an eigenvalue near or below −λ/100 = %.3g; clip its negative eigenvalues, or take a larger λ",
		-l.cfg.Lambda/100)
}
