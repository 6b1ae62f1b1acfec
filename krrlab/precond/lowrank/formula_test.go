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

// columnSource is a Source with arbitrary columns, which need not belong to a symmetric matrix.
type columnSource struct {
	diag    []float64
	epsilon float64    // EntryError
	columns *mat.Dense // n×k; column j of the Source is column j mod k
}

func (s *columnSource) Dim() int            { return s.columns.RawMatrix().Rows }
func (s *columnSource) Diag() []float64     { return s.diag }
func (s *columnSource) EntryError() float64 { return s.epsilon }

func (s *columnSource) Submatrix(_ context.Context, rows, cols []int, dst blas64.General) error {
	_, columnCount := s.columns.Dims()
	for row, i := range rows {
		for col, j := range cols {
			dst.Data[row*dst.Stride+col] = s.columns.At(i, j%columnCount)
		}
	}
	return nil
}

// TestSmallLandmarks checks that certify gives no bound if the diagonal of a landmark is below 2⁻⁹⁰ times the
// largest, unless it is zero.
func TestSmallLandmarks(t *testing.T) {
	b := &builder{n: 3, comm: comm.Alone(), f: points.NewDense32(3, 1, nil), residualDiag: make([]float64, 3),
		diag: []float64{2, 0, 0}}
	for v, certain := range map[float64]bool{1: true, 0x1p-89: true, 0x1p-89 * (1 - 0x1p-52): false, 0x1p-200: false,
		0: true} {
		b.diag[1] = v
		f := &Factor{Landmarks: []int{0, 1}}
		if testkit.OK(t, b.certify(t.Context(), f)); math.IsInf(f.EntryError, 1) == certain {
			t.Errorf("diagonal entry %g: error %g of an entry", v, f.EntryError)
		}
	}
}

// newNystrom returns the state of Nystrom for the n×n matrix w and the given landmarks.
func newNystrom(t *testing.T, w *mat.Dense, exponent int, landmarks []int) *nystrom {
	t.Helper()
	n, _ := w.Dims()
	src := &columnSource{diag: make([]float64, n), columns: w}
	for i := range n {
		src.diag[i] = w.At(i, i)
	}
	b := testkit.Must(newBuilder(src, len(landmarks), &Options{Block: len(landmarks)}))
	return &nystrom{builder: b, landmarks: landmarks, exponent: exponent}
}

// TestShiftRaised checks that the shift ν is raised by factors of ten until W+νD is positive definite, and no
// further, up to 1e-4. A zero on the diagonal of W counts as 1 in D.
func TestShiftRaised(t *testing.T) {
	for _, excess := range []float64{1e-9, 3e-6, 1e-5, 3e-3} {
		w := mat.NewDense(2, 2, []float64{1, 1 + excess, 1 + excess, 1})
		p := newNystrom(t, w, 0, []int{0, 1})
		err := p.factorW(t.Context())
		if excess > 1e-4 {
			testkit.Fails(t, err, "order 2")
			continue
		}
		exponent := math.Log10(p.nu / p.shift())
		if err != nil || p.nu < excess || p.nu > 10.1*excess || math.Abs(exponent-math.Round(exponent)) > 1e-9 {
			t.Errorf("off-diagonal entry 1+%g: ν = %g, %g times the first, error %v", excess, p.nu, p.nu/p.shift(), err)
		}
	}
	p := newNystrom(t, mat.NewDense(2, 2, []float64{4, 0, 0, 0}), 0, []int{0, 1})
	if err := p.factorW(t.Context()); err != nil || math.Abs(p.l[0]-2) > 1e-9 || p.l[3] != 1 {
		t.Errorf("L = %v, %v", p.l, err)
	}
}

// TestCertify compares the relative error q, the shift ν and the certified rounding with the formulas derived in
// certify.go.
func TestCertify(t *testing.T) {
	const u = 0x1p-53
	b := &builder{n: 4, comm: comm.Alone(), f: points.NewDense32(4, 10, nil), block: 5, entryError: 1e-13,
		diag: []float64{1, 1, 1, 1}}
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
	for _, test := range []struct {
		residualDiag           []float64
		trace, roundingSq      float64
		residual, wantRounding float64
	}{
		// Here ‖F‖_F² = tr K − residual, and t is the larger of tr K and ‖F‖_F².
		{[]float64{1, 0, 0, 0}, 4, 0, 1, 3*2.2*79*u*4 + 4*u*1},
		{[]float64{-1, 0.5, -1, 0.5}, 4, 0, -1, 3*2.2*79*u*5 + 4*u*3},
		{[]float64{1, 1, 1, 0}, 4, 0.01, 3, 2*1*0.1 + 0.01},
		{[]float64{0, 0, 0, 0}, 4, 0.01, 0, 2*2*0.1 + 0.01},
	} {
		b.residualDiag, b.trace, b.roundingSq = test.residualDiag, test.trace, []float64{test.roundingSq}
		f := &Factor{Trace: test.trace}
		testkit.OK(t, b.certify(t.Context(), f))
		if f.Residual != test.residual || !atMostOnePercentAbove(f.Rounding, test.wantRounding) {
			t.Errorf("%+v: residual %g, rounding %g", test, f.Residual, f.Rounding)
		}
	}
}

// atMostOnePercentAbove reports whether v is at least want and at most 1 % larger: the bound must cover the derived
// error and little more.
func atMostOnePercentAbove(v, want float64) bool { return v >= want && v <= 1.01*want }
