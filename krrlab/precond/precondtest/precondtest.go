package precondtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// Options of the checks. Zero values, and nil, mean the defaults.
type Options struct {
	// Tol is the error allowed, relative to the norms of the vectors involved; MulTo undoes
	// SolveTo to about κ(M)·10⁻¹⁵. Default 1e-10.
	Tol float64
	// Seed of the probes.
	Seed uint64

	// What the type promises beyond the interface, which is tested where it is set.

	InPlace    bool // dst may be r
	Strided    bool // dst and r may be columns of wider matrices, whose other columns stay
	Concurrent bool // goroutines may call at once
}

// Test returns what is wrong with M, one line for each property that fails; nil if nothing is
// wrong. It takes some 30 solves and 500 draws, and changes the number of threads on the way, so
// that nothing else may run beside it: no parallel tests.
func Test(ctx context.Context, m pcg.Preconditioner, o *Options) error {
	s := newSuite(ctx, o)
	s.solve = inverse{m}
	if !s.operator("M⁻¹: ", s.solve) {
		return errors.Join(s.wrong...)
	}
	s.x = probes(m.Dim(), 3, s.o.Seed+1)
	s.y = s.must("SolveTo", s.solve, s.x)
	s.threads()
	s.shapes()
	if s.o.InPlace {
		x := mat.DenseCopyOf(s.x)
		s.expect("SolveTo in place", m.SolveTo(ctx, x, x), x, s.y)
	}
	if s.o.Strided {
		s.strided()
	}
	if s.o.Concurrent {
		s.concurrent()
	}
	if a, ok := m.(pcg.Operator); ok && s.operator("M: ", a) {
		s.expect("M·M⁻¹x", nil, s.must("MulTo", a, s.y), s.x)
		s.expect("M⁻¹·Mx", nil, s.must("SolveTo", s.solve, s.must("MulTo", a, s.x)), s.x)
	}
	if metric, ok := m.(lanczos.Metric); ok {
		s.metric(metric)
	}
	return errors.Join(s.wrong...)
}

// inverse is M⁻¹ as an operator.
type inverse struct{ pcg.Preconditioner }

func (m inverse) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return m.SolveTo(ctx, dst, src)
}

// suite is a preconditioner under test, with Y = M⁻¹X for probes X.
type suite struct {
	ctx   context.Context
	solve pcg.Operator // M⁻¹
	o     Options
	x, y  *mat.Dense
	wrong []error
}

func newSuite(ctx context.Context, o *Options) *suite {
	s := &suite{ctx: ctx, o: *cmp.Or(o, &Options{})}
	s.o.Tol = cmp.Or(s.o.Tol, 1e-10)
	return s
}

func (s *suite) add(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Errorf(format, args...))
}

// expect notes an error, or a result that is not near what it should be.
func (s *suite) expect(what string, err error, got *mat.Dense, want mat.Matrix) {
	if err != nil || !s.near(got, want) {
		s.add("%s is wrong by %.3g, error %v", what, apart(got, want), err)
	}
}

// must returns AX, or notes the error and returns zeros.
func (s *suite) must(what string, a pcg.Operator, x *mat.Dense) *mat.Dense {
	y, err := s.product(a, x)
	if err != nil {
		s.add("%s: %w", what, err)
		return mat.NewDense(x.RawMatrix().Rows, x.RawMatrix().Cols, nil)
	}
	return y
}

// threads checks that the number of threads does not change a bit.
func (s *suite) threads() {
	defer accel.SetThreads(accel.Threads())
	for _, n := range []int{1, 2, 5} {
		accel.SetThreads(n)
		if y := s.must("SolveTo", s.solve, s.x); !mat.Equal(y, s.y) {
			s.add("SolveTo has other bits on %d threads, off by %.3g", n, apart(y, s.y))
			return
		}
	}
}

// shapes checks that blocks of the wrong shape are refused.
func (s *suite) shapes() {
	n := s.solve.Dim()
	for _, c := range [][4]int{{n + 1, 1, n + 1, 1}, {n, 1, n + 1, 1}, {n, 1, n, 2}, {n, 2, n, 1},
		{n - 1, 1, n - 1, 1}} {
		if c[0] == 0 {
			continue
		}
		if fault := s.fault(mat.NewDense(c[0], c[1], nil), mat.NewDense(c[2], c[3], nil)); fault != "" {
			s.add("SolveTo of %d×%d into %d×%d, at order %d, %s: want an error, or a panic that says what is wrong",
				c[2], c[3], c[0], c[1], n, fault)
			return
		}
	}
}

// fault says what SolveTo does where it should refuse: "" if it returns an error or panics with a message of its own.
func (s *suite) fault(dst, r *mat.Dense) (fault string) {
	defer func() {
		if e := recover(); e != nil {
			fault = ""
			if e, ok := e.(runtime.Error); ok {
				fault = fmt.Sprintf("panics with %q", e.Error())
			}
		}
	}()
	if s.solve.MulTo(s.ctx, dst, r) == nil {
		return "gives an answer"
	}
	return ""
}

// strided checks columns of wider matrices.
func (s *suite) strided() {
	const outside = 7
	n, k := s.x.Dims()
	src, dst := filled(n, k+2, outside), filled(n, k+3, outside)
	r, y := src.Slice(0, n, 1, k+1).(*mat.Dense), dst.Slice(0, n, 2, k+2).(*mat.Dense)
	r.Copy(s.x)
	s.expect("SolveTo between columns of wider matrices", s.solve.MulTo(s.ctx, y, r), y, s.y)
	y.Zero()
	if want := float64(3 * outside * n); mat.Sum(dst) != want {
		s.add("SolveTo into columns of a wider matrix changes the others")
	}
}

// concurrent checks calls under way at the same time, of one column and of many.
func (s *suite) concurrent() {
	const callers, calls = 4, 8
	n, k := s.x.Dims()
	start := make(chan struct{})
	var group sync.WaitGroup
	var first sync.Once
	for c := range callers {
		group.Go(func() {
			<-start
			x, want := mat.DenseCopyOf(s.x.Slice(0, n, c%2, k-c%2)), s.y.Slice(0, n, c%2, k-c%2)
			y := mat.NewDense(n, k-c%2*2, nil)
			for range calls {
				if err := s.solve.MulTo(s.ctx, y, x); err != nil || !s.near(y, want) {
					first.Do(func() { s.expect("SolveTo beside other calls", err, y, want) })
					return
				}
			}
		})
	}
	close(start)
	group.Wait()
}

// apart returns ‖x−y‖_F/‖y‖_F.
func apart(x, y mat.Matrix) float64 {
	var d mat.Dense
	d.Sub(x, y)
	return mat.Norm(&d, 2) / mat.Norm(y, 2)
}

// near reports whether every column of x is that of y to the tolerance.
func (s *suite) near(x *mat.Dense, y mat.Matrix) bool {
	n, k := x.Dims()
	d := mat.DenseCopyOf(y)
	for j := range k {
		if e := apart(x.Slice(0, n, j, j+1), d.Slice(0, n, j, j+1)); !(e <= s.o.Tol) {
			return false
		}
	}
	return true
}

// filled returns an n×k matrix of one number.
func filled(n, k int, v float64) *mat.Dense {
	x := mat.NewDense(n, k, nil)
	x.Apply(func(_, _ int, _ float64) float64 { return v }, x)
	return x
}

// product returns AX, or an error if an entry is not overwritten or not finite.
func (s *suite) product(a pcg.Operator, x *mat.Dense) (*mat.Dense, error) {
	n, k := x.Dims()
	y := filled(n, k, math.NaN())
	if err := a.MulTo(s.ctx, y, x); err != nil {
		return nil, fmt.Errorf("unexpected error: %w", err)
	}
	for i, v := range y.RawMatrix().Data {
		if v-v != 0 {
			return nil, fmt.Errorf("entry (%d, %d) of the result is %v", i/k, i%k, v)
		}
	}
	return y, nil
}
