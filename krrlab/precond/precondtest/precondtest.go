package precondtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/pcg"
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
	Columns    bool // a column has the same bits whatever stands beside it
	Concurrent bool // goroutines may call at once
}

// Test returns what is wrong with M, one line for each property that fails; nil if nothing is
// wrong. It takes some 30 solves and 500 draws, and changes the number of threads on the way, so
// that nothing else may run beside it: no parallel tests.
func Test(ctx context.Context, m pcg.Preconditioner, o *Options) error {
	if err := Operator(ctx, inverse{m}, o); err != nil {
		return each("M⁻¹", err)
	}
	s := newSuite(ctx, inverse{m}, o)
	s.x = probes(m.Dim(), 3, s.o.Seed+1)
	s.y = s.must("SolveTo", s.a, s.x)
	s.threads()
	s.shapes()
	if s.o.InPlace {
		s.inPlace()
	}
	if s.o.Strided {
		s.strided()
	}
	if s.o.Columns {
		s.columns()
	}
	if s.o.Concurrent {
		s.concurrent()
	}
	if a, ok := m.(pcg.Operator); ok {
		s.product(a)
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

// suite is an operator A under test, with Y = AX for probes X; of a preconditioner it is M⁻¹.
type suite struct {
	ctx   context.Context
	a     pcg.Operator
	o     Options
	x, y  *mat.Dense
	wrong []error
}

func newSuite(ctx context.Context, a pcg.Operator, o *Options) *suite {
	s := &suite{ctx: ctx, a: a, o: *cmp.Or(o, &Options{})}
	s.o.Tol = cmp.Or(s.o.Tol, 1e-10)
	return s
}

func (s *suite) add(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Errorf(format, args...))
}

// must returns AX, or notes the error and returns zeros.
func (s *suite) must(what string, a pcg.Operator, x *mat.Dense) *mat.Dense {
	y, err := product(s.ctx, a, x)
	if err != nil {
		s.add("%s: %w", what, err)
		return mat.NewDense(x.RawMatrix().Rows, x.RawMatrix().Cols, nil)
	}
	return y
}

// each puts what was tested before every line of an error.
func each(what string, err error) error {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s: %w", what, err)
	}
	var lines []error
	for _, err := range all.Unwrap() {
		lines = append(lines, fmt.Errorf("%s: %w", what, err))
	}
	return errors.Join(lines...)
}

// threads checks that the number of threads does not change a bit.
func (s *suite) threads() {
	defer accel.SetThreads(accel.Threads())
	for _, n := range []int{1, 2, 5} {
		accel.SetThreads(n)
		if y := s.must("SolveTo", s.a, s.x); !mat.Equal(y, s.y) {
			s.add("SolveTo has other bits on %d threads, off by %.3g", n, apart(y, s.y))
			return
		}
	}
}

// shapes checks that blocks of the wrong shape are refused.
func (s *suite) shapes() {
	n := s.a.Dim()
	for _, c := range [][4]int{{n + 1, 1, n + 1, 1}, {n, 1, n + 1, 1}, {n, 1, n, 2}, {n, 2, n, 1},
		{n - 1, 1, n - 1, 1}} {
		if c[0] == 0 {
			continue
		}
		what := fmt.Sprintf("SolveTo of %d×%d into %d×%d, at order %d,", c[2], c[3], c[0], c[1], n)
		switch refused, message := s.refuses(mat.NewDense(c[0], c[1], nil), mat.NewDense(c[2], c[3], nil)); {
		case !refused:
			s.add("%s gives an answer: want an error, or a panic that says what is wrong", what)
			return
		case message != "":
			s.add("%s panics with %q: want an error, or a panic that says what is wrong", what, message)
			return
		}
	}
}

// refuses reports whether SolveTo returns an error or panics, with the message if it is the run time's.
func (s *suite) refuses(dst, r *mat.Dense) (refused bool, message string) {
	defer func() {
		if e := recover(); e != nil {
			refused = true
			if e, ok := e.(runtime.Error); ok {
				message = e.Error()
			}
		}
	}()
	return s.a.MulTo(s.ctx, dst, r) != nil, ""
}

// inPlace checks dst = r.
func (s *suite) inPlace() {
	x := mat.DenseCopyOf(s.x)
	if err := s.a.MulTo(s.ctx, x, x); err != nil || !s.near(x, s.y) {
		s.add("SolveTo in place is wrong by %.3g, error %v", apart(x, s.y), err)
	}
}

// strided checks columns of wider matrices.
func (s *suite) strided() {
	const outside = 7
	n, k := s.x.Dims()
	src, dst := mat.NewDense(n, k+2, nil), mat.NewDense(n, k+3, nil)
	src.Apply(func(i, j int, _ float64) float64 { return outside }, src)
	dst.Apply(func(i, j int, _ float64) float64 { return outside }, dst)
	r, y := src.Slice(0, n, 1, k+1).(*mat.Dense), dst.Slice(0, n, 2, k+2).(*mat.Dense)
	r.Copy(s.x)
	if err := s.a.MulTo(s.ctx, y, r); err != nil || !s.near(y, s.y) {
		s.add("SolveTo between columns of wider matrices is wrong by %.3g, error %v", apart(y, s.y), err)
	}
	y.Zero()
	if want := float64(3 * outside * n); mat.Sum(dst) != want {
		s.add("SolveTo into columns of a wider matrix changes the others")
	}
}

// columns checks that a column alone has the bits that it has in a block.
func (s *suite) columns() {
	n, k := s.x.Dims()
	for j := range k {
		y := s.must("SolveTo", s.a, mat.DenseCopyOf(s.x.Slice(0, n, j, j+1)))
		if want := s.y.Slice(0, n, j, j+1); !mat.Equal(y, want) {
			s.add("column %d alone has other bits than in a block of %d, off by %.3g", j, k, apart(y, want))
			return
		}
	}
}

// concurrent checks calls under way at the same time, of one column and of many.
func (s *suite) concurrent() {
	const callers, calls = 4, 8
	n, k := s.x.Dims()
	off := make([]error, callers)
	start := make(chan struct{})
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			<-start
			x := mat.DenseCopyOf(s.x.Slice(0, n, c%2, k-c%2))
			want := s.y.Slice(0, n, c%2, k-c%2)
			y := mat.NewDense(n, k-c%2*2, nil)
			for range calls {
				if err := s.a.MulTo(s.ctx, y, x); err != nil || !s.near(y, want) {
					off[c] = fmt.Errorf("SolveTo beside other calls is wrong by %.3g, error %v", apart(y, want), err)
					return
				}
			}
		})
	}
	close(start)
	group.Wait()
	for _, err := range off {
		if err != nil {
			s.wrong = append(s.wrong, err)
			return
		}
	}
}

// product checks that MulTo is an operator, and the inverse of SolveTo.
func (s *suite) product(a pcg.Operator) {
	err := Operator(s.ctx, a, &s.o)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return
	case err != nil:
		s.wrong = append(s.wrong, each("M", err))
		return
	}
	if x := s.must("MulTo", a, s.y); !s.near(x, s.x) {
		s.add("M·M⁻¹x differs from x by %.3g", apart(x, s.x))
	}
	if x := s.must("SolveTo", s.a, s.must("MulTo", a, s.x)); !s.near(x, s.x) {
		s.add("M⁻¹·Mx differs from x by %.3g", apart(x, s.x))
	}
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
