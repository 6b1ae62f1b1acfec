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

// Options configures the checks. Zero values, and nil, mean the defaults.
type Options struct {
	// Tol is the allowed error, relative to the norms of the vectors involved. MulTo can invert SolveTo up to about
	// κ(M)·10⁻¹⁵ only. Default: 1e-10.
	Tol float64
	// Seed is the seed of the probes.
	Seed uint64
	// InPlace promises that dst may be r in SolveTo, and tests it.
	InPlace bool
	// Strided promises that dst and r may be columns of wider matrices, whose other columns are not changed, and tests
	// it.
	Strided bool
	// Concurrent promises that M is safe for concurrent use, and tests it.
	Concurrent bool
}

// Test returns an error with one line for each property that M violates, and nil if there is none. It takes about 30
// solves and 500 draws. Test changes the number of threads temporarily; do not run it in parallel tests.
func Test(ctx context.Context, m pcg.Preconditioner, options *Options) error {
	s := newSuite(ctx, options)
	s.solve = inverse{m}
	if !s.checkOperator("M⁻¹: ", s.solve) {
		return errors.Join(s.violations...)
	}
	s.x = probes(m.Dim(), 3, s.options.Seed+1)
	s.y = s.productOrZero("SolveTo", s.solve, s.x)
	s.checkThreads()
	s.checkShapes()
	if s.options.InPlace {
		x := mat.DenseCopyOf(s.x)
		s.expectNear("SolveTo in place", m.SolveTo(ctx, x, x), x, s.y)
	}
	if s.options.Strided {
		s.checkStrided()
	}
	if s.options.Concurrent {
		s.checkConcurrent()
	}
	if a, ok := m.(pcg.Operator); ok && s.checkOperator("M: ", a) {
		s.expectNear("M·M⁻¹x", nil, s.productOrZero("MulTo", a, s.y), s.x)
		s.expectNear("M⁻¹·Mx", nil, s.productOrZero("SolveTo", s.solve, s.productOrZero("MulTo", a, s.x)), s.x)
	}
	if metric, ok := m.(lanczos.Metric); ok {
		s.checkMetric(metric)
	}
	return errors.Join(s.violations...)
}

// inverse is M⁻¹ as an operator.
type inverse struct{ pcg.Preconditioner }

// MulTo sets dst = M⁻¹·src.
func (m inverse) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return m.SolveTo(ctx, dst, src)
}

// suite is a run of the conformance suite.
type suite struct {
	ctx        context.Context
	solve      pcg.Operator // M⁻¹
	options    Options
	x, y       *mat.Dense // probes X, and Y = M⁻¹X
	violations []error
}

// newSuite returns a suite without violations, with the defaults for options that are not set.
func newSuite(ctx context.Context, options *Options) *suite {
	s := &suite{ctx: ctx, options: *cmp.Or(options, &Options{})}
	s.options.Tol = cmp.Or(s.options.Tol, 1e-10)
	return s
}

// addViolation adds a violation, an error with the given text.
func (s *suite) addViolation(format string, args ...any) {
	s.violations = append(s.violations, fmt.Errorf(format, args...))
}

// expectNear adds a violation if err is not nil, or if got differs from want by more than the tolerance.
func (s *suite) expectNear(operation string, err error, got *mat.Dense, want mat.Matrix) {
	if err != nil || !s.isNear(got, want) {
		s.addViolation("%s is wrong by %.3g, error %v", operation, relativeError(got, want), err)
	}
}

// productOrZero returns AX. If the product fails, it adds a violation and returns zeros.
func (s *suite) productOrZero(operation string, a pcg.Operator, x *mat.Dense) *mat.Dense {
	y, err := s.product(a, x)
	if err != nil {
		s.addViolation("%s: %w", operation, err)
		return mat.NewDense(x.RawMatrix().Rows, x.RawMatrix().Cols, nil)
	}
	return y
}

// checkThreads checks that the result has the same bits for any number of threads.
func (s *suite) checkThreads() {
	defer accel.SetThreads(accel.Threads())
	for _, threads := range []int{1, 2, 5} {
		accel.SetThreads(threads)
		if y := s.productOrZero("SolveTo", s.solve, s.x); !mat.Equal(y, s.y) {
			s.addViolation("SolveTo has other bits on %d threads, off by %.3g", threads, relativeError(y, s.y))
			return
		}
	}
}

// checkShapes checks that blocks of the wrong shape are rejected.
func (s *suite) checkShapes() {
	n := s.solve.Dim()
	// Each row has the rows and columns of dst, and then those of r.
	for _, dims := range [][4]int{{n + 1, 1, n + 1, 1}, {n, 1, n + 1, 1}, {n, 1, n, 2}, {n, 2, n, 1},
		{n - 1, 1, n - 1, 1}} {
		if dims[0] == 0 {
			continue
		}
		fault := s.shapeFault(mat.NewDense(dims[0], dims[1], nil), mat.NewDense(dims[2], dims[3], nil))
		if fault != "" {
			s.addViolation("SolveTo of %d×%d into %d×%d, at order %d, %s: want an error, or a panic that says what is "+
				"wrong", dims[2], dims[3], dims[0], dims[1], n, fault)
			return
		}
	}
}

// shapeFault describes what SolveTo does wrong with blocks of the wrong shape. It returns "" if SolveTo returns an
// error, or panics with a value that is not a runtime.Error.
func (s *suite) shapeFault(dst, r *mat.Dense) (fault string) {
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

// checkStrided checks SolveTo between columns of wider matrices.
func (s *suite) checkStrided() {
	const outside = 7
	n, columns := s.x.Dims()
	src, dst := filled(n, columns+2, outside), filled(n, columns+3, outside)
	r, y := src.Slice(0, n, 1, columns+1).(*mat.Dense), dst.Slice(0, n, 2, columns+2).(*mat.Dense)
	r.Copy(s.x)
	s.expectNear("SolveTo between columns of wider matrices", s.solve.MulTo(s.ctx, y, r), y, s.y)
	y.Zero()
	if want := float64(3 * outside * n); mat.Sum(dst) != want {
		s.addViolation("SolveTo into columns of a wider matrix changes the others")
	}
}

// checkConcurrent checks concurrent calls. The block of every second caller has all columns of the probes, the others
// lack the first and last column.
func (s *suite) checkConcurrent() {
	const callers, calls = 4, 8
	n, columns := s.x.Dims()
	start := make(chan struct{})
	var group sync.WaitGroup
	var reportOnce sync.Once
	for caller := range callers {
		group.Go(func() {
			<-start
			x, want := mat.DenseCopyOf(s.x.Slice(0, n, caller%2, columns-caller%2)),
				s.y.Slice(0, n, caller%2, columns-caller%2)
			y := mat.NewDense(n, columns-caller%2*2, nil)
			for range calls {
				if err := s.solve.MulTo(s.ctx, y, x); err != nil || !s.isNear(y, want) {
					reportOnce.Do(func() { s.expectNear("SolveTo during other calls", err, y, want) })
					return
				}
			}
		})
	}
	close(start)
	group.Wait()
}

// relativeError returns ‖x−y‖_F/‖y‖_F.
func relativeError(x, y mat.Matrix) float64 {
	var difference mat.Dense
	difference.Sub(x, y)
	return mat.Norm(&difference, 2) / mat.Norm(y, 2)
}

// isNear reports whether every column of x equals the same column of y within the tolerance.
func (s *suite) isNear(x *mat.Dense, y mat.Matrix) bool {
	n, columns := x.Dims()
	want := mat.DenseCopyOf(y)
	for j := range columns {
		if relative := relativeError(x.Slice(0, n, j, j+1), want.Slice(0, n, j, j+1)); !(relative <= s.options.Tol) {
			return false
		}
	}
	return true
}

// filled returns a matrix with n rows, whose entries are v.
func filled(n, columns int, v float64) *mat.Dense {
	x := mat.NewDense(n, columns, nil)
	x.Apply(func(_, _ int, _ float64) float64 { return v }, x)
	return x
}

// product returns AX. It returns an error if an entry of the result is not set or not finite.
func (s *suite) product(a pcg.Operator, x *mat.Dense) (*mat.Dense, error) {
	n, columns := x.Dims()
	y := filled(n, columns, math.NaN())
	if err := a.MulTo(s.ctx, y, x); err != nil {
		return nil, fmt.Errorf("unexpected error: %w", err)
	}
	for i, v := range y.RawMatrix().Data {
		if v-v != 0 {
			return nil, fmt.Errorf("entry (%d, %d) of the result is %v", i/columns, i%columns, v)
		}
	}
	return y, nil
}
