// Package pcgtest is the conformance suite of pcg.Operator and pcg.Preconditioner:
// every type that implements one should pass it.
//
//	func TestConforms(t *testing.T) {
//		pcgtest.Operator(t, a, nil)
//		pcgtest.Preconditioner(t, m, &pcgtest.Options{Tol: 1e-8})
//	}
//
// With S the map under test, A or M⁻¹, it checks by probes that S is linear, symmetric
// and positive definite, that the columns of a block do not influence each other, that
// a block of one column and one of many give the same, that sources are not changed,
// that old contents of the destination do not matter, that a call repeated gives the
// same bits, and that the end of the context is an error.
package pcgtest

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg"
)

// Options of the checks. Zero values, and nil, mean the defaults.
type Options struct {
	// Tol is the error allowed, relative to the norms of the vectors involved.
	// Default 1e-10.
	Tol float64
	// Probes is the number of random vectors. Default 8.
	Probes int
	// Seed of the random vectors.
	Seed uint64
}

// Operator checks A.
func Operator(t testing.TB, a pcg.Operator, o *Options) {
	t.Helper()
	check(t, a.Dim(), a.MulTo, o)
}

// Preconditioner checks M⁻¹.
func Preconditioner(t testing.TB, m pcg.Preconditioner, o *Options) {
	t.Helper()
	check(t, m.Dim(), m.SolveTo, o)
}

type apply func(ctx context.Context, dst, src *mat.Dense) error

func check(t testing.TB, n int, f apply, o *Options) {
	t.Helper()
	opt := Options{Tol: 1e-10, Probes: 8}
	if o != nil {
		opt.Seed = o.Seed
		if o.Tol > 0 {
			opt.Tol = o.Tol
		}
		if o.Probes > 0 {
			opt.Probes = o.Probes
		}
	}
	x := probes(n, opt)
	y := must(t, f, x)
	linear(t, f, x, y, opt)
	symmetric(t, x, y, opt)
	columns(t, f, x, y, opt)
	effects(t, f, x, y)
}

// probes returns random vectors, the vector of ones, an alternating one, and the
// first and last unit vectors.
func probes(n int, o Options) *mat.Dense {
	rnd := rand.New(rand.NewPCG(o.Seed, 0x70726f6265))
	x := mat.NewDense(n, o.Probes+4, nil)
	for i := range n {
		for j := range o.Probes {
			x.Set(i, j, rnd.NormFloat64())
		}
		x.Set(i, o.Probes, 1)
		x.Set(i, o.Probes+1, float64(1-2*(i%2)))
	}
	x.Set(0, o.Probes+2, 1)
	x.Set(n-1, o.Probes+3, 1)
	return x
}

func must(t testing.TB, f apply, x *mat.Dense) *mat.Dense {
	t.Helper()
	n, k := x.Dims()
	y := mat.NewDense(n, k, nil)
	for i := range n {
		for j := range k {
			y.Set(i, j, math.NaN()) // must be overwritten
		}
	}
	if err := f(context.Background(), y, x); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	for i := range n {
		for j := range k {
			if v := y.At(i, j); math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("entry (%d, %d) of the result is %v", i, j, v)
			}
		}
	}
	return y
}

func col(x *mat.Dense, j int) *mat.VecDense { return mat.VecDenseCopyOf(x.ColView(j)) }

// linear checks S(ax+by) = aSx + bSy.
func linear(t testing.TB, f apply, x, y *mat.Dense, o Options) {
	t.Helper()
	n, k := x.Dims()
	const a, b = 1.75, -0.3
	comb := mat.NewDense(n, 1, nil)
	for j := 1; j < k; j++ {
		var want mat.VecDense
		for i := range n {
			comb.Set(i, 0, a*x.At(i, j-1)+b*x.At(i, j))
		}
		want.ScaleVec(a, col(y, j-1))
		want.AddScaledVec(&want, b, col(y, j))
		got := col(must(t, f, comb), 0)
		size := a*mat.Norm(col(y, j-1), 2) - b*mat.Norm(col(y, j), 2)
		got.SubVec(got, &want)
		if e := mat.Norm(got, 2); e > o.Tol*size {
			t.Errorf("not linear: ‖S(ax+by)−aSx−bSy‖ = %.3g for ‖aSx‖+‖bSy‖ = %.3g (probes %d, %d)", e, size, j-1, j)
		}
	}
}

// symmetric checks xᵀSy = yᵀSx and xᵀSx > 0.
func symmetric(t testing.TB, x, y *mat.Dense, o Options) {
	t.Helper()
	_, k := x.Dims()
	for i := range k {
		if v := mat.Dot(col(x, i), col(y, i)); v <= 0 {
			t.Errorf("not positive definite: xᵀSx = %.3g (probe %d)", v, i)
		}
		for j := range i {
			u, v := mat.Dot(col(x, i), col(y, j)), mat.Dot(col(x, j), col(y, i))
			size := max(mat.Norm(col(x, i), 2)*mat.Norm(col(y, j), 2), mat.Norm(col(x, j), 2)*mat.Norm(col(y, i), 2))
			if math.Abs(u-v) > o.Tol*size {
				t.Errorf("not symmetric: xᵀSz = %.17g, zᵀSx = %.17g (probes %d, %d)", u, v, i, j)
			}
		}
	}
}

// columns checks that blocks of 1, 2, … columns give the columns of the large one.
func columns(t testing.TB, f apply, x, y *mat.Dense, o Options) {
	t.Helper()
	n, k := x.Dims()
	for j, w := 0, 1; j+w <= k; j, w = j+w, w+1 {
		part := must(t, f, mat.DenseCopyOf(x.Slice(0, n, j, j+w)))
		for c := range w {
			want, got := col(y, j+c), col(part, c)
			size := mat.Norm(want, 2)
			got.SubVec(got, want)
			if e := mat.Norm(got, 2); e > o.Tol*size {
				t.Errorf("column %d differs by %.3g of %.3g when it is one of %d", j+c, e, size, w)
			}
		}
	}
}

// effects checks that the source is not changed, that a repeated call gives the same
// bits, and that the end of a context is an error.
func effects(t testing.TB, f apply, x, y *mat.Dense) {
	t.Helper()
	before := mat.DenseCopyOf(x)
	again := must(t, f, x)
	if !mat.Equal(x, before) {
		t.Error("the source was changed")
	}
	if !mat.Equal(y, again) {
		t.Error("the same call gave another result")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f(ctx, again, x); err == nil {
		t.Error("no error after the context has ended")
	}
}
