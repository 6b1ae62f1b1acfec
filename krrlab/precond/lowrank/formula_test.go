package lowrank

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// numbers is a Source of columns that need not be of any matrix.
type numbers struct {
	diag    []float64
	entry   float64
	columns *mat.Dense // n×k: column j of K is column j mod k of it
}

func (s *numbers) Dim() int            { return s.columns.RawMatrix().Rows }
func (s *numbers) Diag() []float64     { return s.diag }
func (s *numbers) EntryError() float64 { return s.entry }

func (s *numbers) Part(_ context.Context, rows, cols []int, dst blas64.General) error {
	_, k := s.columns.Dims()
	for a, i := range rows {
		for q, j := range cols {
			dst.Data[a*dst.Stride+q] = s.columns.At(i, j%k)
		}
	}
	return nil
}

// TestSmallLandmarks: nothing is certified of landmarks whose diagonal is below 2⁻⁹⁰ of the largest, zeros
// excepted.
func TestSmallLandmarks(t *testing.T) {
	b := &builder{n: 3, comm: comm.Alone(), f: points.NewDense32(3, 1, nil), residualDiag: make([]float64, 3), diag: []float64{2, 0, 0}}
	for v, certain := range map[float64]bool{1: true, 0x1p-89: true, 0x1p-89 * (1 - 0x1p-52): false, 0x1p-200: false,
		0: true} {
		b.diag[1] = v
		f := &Factor{Landmarks: []int{0, 1}}
		if testkit.OK(t, b.certify(t.Context(), f)); math.IsInf(f.EntryError, 1) == certain {
			t.Errorf("diagonal entry %g: error %g of an entry", v, f.EntryError)
		}
	}
}

// nystromOf is the state of Nystrom with the given landmarks, W being n×n.
func nystromOf(t *testing.T, w *mat.Dense, exponent int, landmarks []int) *nystrom {
	t.Helper()
	n, _ := w.Dims()
	src := &numbers{diag: make([]float64, n), columns: w}
	for i := range n {
		src.diag[i] = w.At(i, i)
	}
	b := testkit.Must(newBuilder(src, len(landmarks), &Options{Block: len(landmarks)}))
	return &nystrom{builder: b, landmarks: landmarks, exponent: exponent}
}

// TestShiftRaised: ν is raised tenfold until W+νD is positive definite, and no further, up to 1e-4; a zero on
// the diagonal counts as 1.
func TestShiftRaised(t *testing.T) {
	for _, over := range []float64{1e-9, 3e-6, 1e-5, 3e-3} {
		w := mat.NewDense(2, 2, []float64{1, 1 + over, 1 + over, 1})
		p := nystromOf(t, w, 0, []int{0, 1})
		err := p.factorW(t.Context())
		if over > 1e-4 {
			testkit.Fails(t, err, "order 2")
			continue
		}
		tens := math.Log10(p.nu / p.shift())
		if err != nil || p.nu < over || p.nu > 10.1*over || math.Abs(tens-math.Round(tens)) > 1e-9 {
			t.Errorf("over by %g: ν = %g, %g of the first, %v", over, p.nu, p.nu/p.shift(), err)
		}
	}
	p := nystromOf(t, mat.NewDense(2, 2, []float64{4, 0, 0, 0}), 0, []int{0, 1})
	if err := p.factorW(t.Context()); err != nil || math.Abs(p.l[0]-2) > 1e-9 || p.l[3] != 1 {
		t.Errorf("L = %v, %v", p.l, err)
	}
}

// TestCertify: q, ν and the rounding that is certified are those of the derivation.
func TestCertify(t *testing.T) {
	const u = 0x1p-53
	b := &builder{n: 4, comm: comm.Alone(), f: points.NewDense32(4, 10, nil), block: 5, entryError: 1e-13, diag: []float64{1, 1, 1, 1}}
	q := 1e-13 + 2.2*(10+5+64)*u
	testkit.Near(t, b.relativeError(), q, 1e-12*q)
	if got := b.shift(); math.Abs(got-40*q) > 1e-12*40*q { // 4rq
		t.Errorf("ν = %g, want %g", got, 40*q)
	}
	b.entryError = math.Inf(1)
	if got, want := b.relativeError(), 2.2*79*u; math.Abs(got-want) > 1e-12*want {
		t.Errorf("q = %g of columns with an unknown error, want %g", got, want)
	}
	b.entryError = 0
	for _, c := range []struct {
		d              []float64
		trace, delta2  float64
		residual, want float64
	}{
		// With ‖F‖_F² = tr K − residual, t the larger of tr K and it.
		{[]float64{1, 0, 0, 0}, 4, 0, 1, 3*2.2*79*u*4 + 4*u*1},
		{[]float64{-1, 0.5, -1, 0.5}, 4, 0, -1, 3*2.2*79*u*5 + 4*u*3},
		{[]float64{1, 1, 1, 0}, 4, 0.01, 3, 2*1*0.1 + 0.01},
		{[]float64{0, 0, 0, 0}, 4, 0.01, 0, 2*2*0.1 + 0.01},
	} {
		b.residualDiag, b.trace, b.roundingSq = c.d, c.trace, []float64{c.delta2}
		f := &Factor{Trace: c.trace}
		testkit.OK(t, b.certify(t.Context(), f))
		if f.Residual != c.residual || !near(f.Rounding, c.want) {
			t.Errorf("%+v: residual %g, rounding %g", c, f.Residual, f.Rounding)
		}
	}
}

// near reports whether v is at least want, and hardly more: what is allowed for is allowed for, and no more.
func near(v, want float64) bool { return v >= want && v <= 1.01*want }
