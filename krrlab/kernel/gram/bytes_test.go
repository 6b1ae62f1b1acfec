package gram_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestBytesMatrix compares K of byte points with the K that a float64 copy of the same points gives by coordinate
// differences. The points are far from zero and some are close together. For every storage ‖E‖₂ must be at most
// Choice.Error, and a product of the recomputed matrix must be within its proved bound. Because inner products of
// bytes are exact integers, float32 storage must meet the accuracy for which float64 copies of the points need a
// second attempt.
func TestBytesMatrix(t *testing.T) {
	const n, d = 230, 900
	x := points.NewBytes(n, d, 1.0/255, nil)
	for i := range n {
		for j := range d {
			x.Row(i)[j] = uint8(255 - j%2)
		}
		for j := range i % 23 {
			x.Row(i)[(7*i+j)%d] -= uint8(i % 5)
		}
	}
	dense := points.NewDense(n, d, nil)
	points.RowsTo(x, dense.Data, d)
	k := kernel.Gaussian{Sigma: 0.02}
	const lambda = 1e-3
	m := mustNew(t, k, x, lambda, nil)
	choice := m.Choice()
	if choice.Storage != gram.Float32 || !choice.ExactProducts || choice.Error > choice.Accuracy ||
		!strings.Contains(choice.String(), "points in bytes, products exact in integers") {
		t.Errorf("bytes: %v", choice)
	}
	float64Choice := mustNew(t, k, dense, lambda, &gram.Options{Storage: gram.Float32}).Choice()
	if float64Choice.ExactProducts || len(float64Choice.Tried) < 2 {
		t.Errorf("the same numbers in float64: %v", float64Choice)
	}
	truth := mat.NewDense(n, n, nil)
	exact := mustNew(t, k, dense, lambda, nil).Exact(0) // K from coordinate differences, the reference
	testkit.OK(t, exact.DenseTo(t.Context(), truth))
	for _, storage := range []gram.Storage{gram.Float32, gram.Float64, gram.Recompute, gram.Fixed16} {
		lambda := lambda
		if storage == gram.Fixed16 {
			lambda = 1
		}
		m := mustNew(t, k, x, lambda, &gram.Options{Storage: storage})
		if norm := errorNorm(t, m); !(norm <= m.Choice().Error) {
			t.Errorf("%v: ‖E‖₂ = %g, above %g", storage, norm, m.Choice().Error)
		}
		signs := mat.NewDense(n, 1, nil)
		for i := range n {
			signs.Set(i, 0, 1-2*float64(i%2))
		}
		exactMatrix, want, out := m.Exact(1e-300), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
		testkit.OK(t, exactMatrix.MulTo(t.Context(), out, signs))
		want.Mul(truth, signs)
		for i := range n {
			want.Set(i, 0, want.At(i, 0)+lambda*signs.At(i, 0))
		}
		want.Sub(want, out)
		bound := exactMatrix.Rounding(signs)[0]
		if deviation := mat.Norm(want, 2); deviation > bound || bound > 1e-9 || !exactMatrix.Choice().ExactProducts ||
			exactMatrix.Choice().Arithmetic != kernel.Float64 {
			t.Errorf("%v: a product has an error of %g, the bound is %g; %v", storage, deviation, bound,
				exactMatrix.Choice())
		}
		if v := m.Exact(0).EntryError(); !(v < 1e-14) || math.IsInf(v, 0) {
			t.Errorf("%v: entries are right to %g", storage, v)
		}
	}
}

// TestShift checks float32 tiles that store K − μ11ᵀ, for a wide kernel whose distances take few values. An entry
// must be right to the float32 rounding of 1 − μ, the dense matrix and the columns must agree with each other, and
// products must be within the rounding of 128 float32 terms of |k_ij − μ|. Storage in 16 bits has no shift, and
// Options.SameAs fixes the shift of an earlier matrix.
func TestShift(t *testing.T) {
	const n, d, lambda = 700, 60, 0.01
	x := points.NewBytes(n, d, 1, nil)
	for i := range n {
		for j := range d {
			x.Row(i)[j] = uint8(i*(j+3)/7+i*i/11+j) & 1
		}
	}
	k := kernel.Gaussian{Sigma: 12}
	vectors := mat.NewDense(n, 2, nil)
	for i := range n {
		vectors.Set(i, 0, 1-2*float64(i%2))
		vectors.Set(i, 1, 1)
	}
	truth, idx := mat.NewDense(n, n, nil), []int{3, 511, 512, 699}
	testkit.OK(t, mustNew(t, k, x, lambda, nil).Exact(0).DenseTo(t.Context(), truth))
	var want mat.Dense
	want.Mul(truth, vectors)
	for _, storage := range []gram.Storage{gram.Float32, gram.Recompute} {
		m := mustNew(t, k, x, lambda, &gram.Options{Storage: storage, TileSize: 128})
		choice := m.Choice()
		if !(choice.Shift > 0.7 && choice.Shift < 1) || !strings.Contains(choice.String(), "entries less 0.") {
			t.Fatalf("%v: %v", storage, choice)
		}
		denseK, columns, out := mat.NewDense(n, n, nil), mat.NewDense(n, len(idx), nil), mat.NewDense(n, 2, nil)
		testkit.OK(t, errors.Join(m.DenseTo(t.Context(), denseK), m.Columns(t.Context(), idx, columns),
			m.KMulTo(t.Context(), out, vectors)))
		tolerance := 0x1p-24 * (1 - choice.Shift)
		for i := range n {
			for j := range n {
				if deviation := math.Abs(denseK.At(i, j) - truth.At(i, j)); deviation > tolerance {
					t.Fatalf("%v: entry (%d, %d) has an error of %g, want %g at most", storage, i, j, deviation,
						tolerance)
				}
			}
			for column, j := range idx {
				if columns.At(i, column) != denseK.At(i, j) {
					t.Fatalf("%v: column %d has %v in row %d, the dense matrix %v", storage, j, columns.At(i, column),
						i,
						denseK.At(i, j))
				}
			}
		}
		out.Sub(out, &want)
		var largestRowSum float64 // max_i Σ_j |k_ij − shift|
		for i := range n {
			var sum float64
			for j := range n {
				sum += math.Abs(truth.At(i, j) - choice.Shift)
			}
			largestRowSum = max(largestRowSum, sum)
		}
		// A tile sums 128 terms in float32. Each entry, product and sum is rounded.
		if deviation := mat.Max(out) - mat.Min(out); deviation > 2*(128+4)*0x1p-24*largestRowSum {
			t.Errorf("%v: products are off by %g, want %g at most", storage, deviation, 2*(128+4)*0x1p-24*largestRowSum)
		}
		if norm := errorNorm(t, m); !(norm <= choice.Error) {
			t.Errorf("%v: ‖E‖₂ = %g, above %g", storage, norm, choice.Error)
		}
	}
	if m := mustNew(t, k, x, 1, &gram.Options{Storage: gram.Fixed16}); m.Choice().Shift != 0 {
		t.Errorf("16 bits: %v", m.Choice())
	}
	for _, shift := range []float64{0, 0.625} { // SameAs fixes the shift, whatever the mean of this sample is
		previous := &gram.Choice{Storage: gram.Float32, Shift: shift}
		if m := mustNew(t, k, x, lambda, &gram.Options{SameAs: previous}); m.Choice().Shift != shift ||
			errorNorm(t, m) > m.Choice().Error {
			t.Errorf("SameAs a choice with the shift %g: %v", shift, m.Choice())
		}
	}
}

// nanAtThree is a user-defined radial kernel with the value 1 at every distance except 3, where it is NaN.
type nanAtThree struct{ radial }

func (nanAtThree) String() string { return "NaN at 3" }

func (nanAtThree) Eval(x, z []float64) float64 { return 1 }

func (nanAtThree) Profile(dst, sq []float64) {
	for i, v := range sq {
		if dst[i] = 1; v == 9 {
			dst[i] = math.NaN()
		}
	}
}

// TestNaNAtOneDistance checks that a user-defined kernel that is NaN at one distance is refused, whether or not the
// sampled rows contain that distance. New must name the point if the matrix is stored. A recomputed matrix may report
// the error only in its first product.
func TestNaNAtOneDistance(t *testing.T) {
	const n = 1600
	for _, outlier := range []int{7, 8, 9, 1204, 1205, 1206} {
		x := points.NewBytes(n, 1, 1, nil)
		for i := range n {
			x.Row(i)[0] = 5
		}
		x.Row(outlier)[0] = 2
		if m, err := gram.New(t.Context(), nanAtThree{radial{1, 0, 0}}, x, 1,
			&gram.Options{Storage: gram.Float32}); err == nil || !strings.Contains(err.Error(), fmt.Sprint(outlier)) {
			t.Errorf("point %d: %v, %v", outlier, m, err)
		}
		m, err := gram.New(t.Context(), nanAtThree{radial{1, 0, 0}}, x, 1, &gram.Options{Storage: gram.Recompute})
		if err == nil {
			err = m.KMulTo(t.Context(), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, slices.Repeat([]float64{1}, n)))
		}
		if err == nil {
			t.Errorf("point %d, recomputed: no error", outlier)
		}
	}
}
