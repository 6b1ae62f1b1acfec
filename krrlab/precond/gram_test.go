package precond

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// randomFeatures returns an n×s matrix of independent normal numbers of variance 1/s.
func randomFeatures(n, s int) *points.Dense32 {
	z := points.NewDense32(n, s, nil)
	for i := range z.Data {
		z.Data[i] = float32(rng.New(9).Normal(uint64(i)) / math.Sqrt(float64(s)))
	}
	return z
}

// TestGramGrow compares a ZᵀZ that is extended in steps with plain sums, and the M⁻¹ computed from it with the M⁻¹ of
// New. The features are columns of a wider matrix, and some steps end within a block.
func TestGramGrow(t *testing.T) {
	ctx := t.Context()
	wider := randomFeatures(1100, 740) // more than one panel of rows, more than one block
	z := &points.Dense32{N: wider.N, D: 700, Stride: wider.Stride, Data: wider.Data[40:]}
	var g Gram
	for _, s := range []int{40, 80, 513, 700} {
		part := *z
		part.D = s
		testkit.OK(t, g.Grow(ctx, nil, &part))
	}
	grown := testkit.Must(NewFromGram(ctx, z, &g, 0.5, &Options{Form: FormL}))
	direct := testkit.Must(New(ctx, z, 0.5, &Options{Form: FormL}))
	r, fromGrown, fromNew := testkit.RandomMatrix(4, z.N, 2), mat.NewDense(z.N, 2, nil), mat.NewDense(z.N, 2, nil)
	testkit.OK(t, grown.SolveTo(ctx, fromGrown, r))
	testkit.OK(t, direct.SolveTo(ctx, fromNew, r))
	fromNew.Sub(fromGrown, fromNew)
	if relative := mat.Norm(fromNew, 2) / mat.Norm(fromGrown, 2); relative > 1e-12 {
		t.Errorf("M⁻¹ from the grown ZᵀZ has an error of %.3g", relative)
	}
	withNaN := randomFeatures(1100, 701)
	withNaN.Row(7)[700] = float32(math.NaN())
	if err := g.Grow(ctx, nil, withNaN); err == nil || g.s != 700 {
		t.Errorf("a NaN: error %v, order %d", err, g.s)
	}
	sums := g.TakeShifted(0.25)
	testkit.Equal(t, g.s, 0)
	for _, entry := range [][2]int{{0, 0}, {0, 1}, {39, 39}, {40, 39}, {79, 3}, {512, 80}, {513, 512}, {512, 513},
		{699, 0}, {699, 520}, {699, 698}, {699, 699}} {
		var want float64
		for i := range z.N {
			want += float64(z.Row(i)[entry[0]]) * float64(z.Row(i)[entry[1]])
		}
		if entry[0] == entry[1] {
			want += 0.25
		} else if entry[0] < entry[1] {
			want = 0
		}
		testkit.Near(t, sums[entry[0]*700+entry[1]], want, 1e-12, entry)
	}
}

// TestZV compares V with the eigenvectors of ZᵀZ: ZᵀZV must equal VΣ² and the columns of ZV must be eigenvectors of
// ZZᵀ. Only FormEigen has V.
func TestZV(t *testing.T) {
	ctx := context.Background()
	const n, s = 130, 60
	z := randomFeatures(n, s)
	w := testkit.Must(New(ctx, z, 0.1, &Options{Form: FormEigen}))
	z64 := mat.NewDense(n, s, nil)
	for i := range n {
		points.Widen(z64.RawRowView(i), z.Row(i))
	}
	identity := mat.NewDense(s, s, nil)
	for j := range s {
		identity.Set(j, j, 1)
	}
	zv, back := mat.NewDense(n, s, nil), mat.NewDense(s, s, nil)
	if err := w.ZVMulTo(ctx, zv, identity); err != nil { // ZV
		t.Fatal(err)
	}
	if err := w.ZVTransMulTo(ctx, back, zv); err != nil { // VᵀZᵀZV = Σ²
		t.Fatal(err)
	}
	var zzt, product mat.Dense
	zzt.Mul(z64, z64.T())
	product.Mul(&zzt, zv) // ZZᵀ·ZV = ZV·Σ²
	for j, sigma2 := range w.Eigenvalues() {
		for i := range s {
			want := 0.0
			if i == j {
				want = sigma2
			}
			if math.Abs(back.At(i, j)-want) > 1e-11 {
				t.Fatalf("(Σ²)_%d,%d = %g, want %g", i, j, back.At(i, j), want)
			}
		}
		for i := range n {
			if math.Abs(product.At(i, j)-sigma2*zv.At(i, j)) > 1e-11 {
				t.Fatalf("column %d of ZV is no eigenvector of ZZᵀ", j)
			}
		}
	}
	formL := testkit.Must(New(ctx, z, 0.1, &Options{Form: FormL}))
	if err := formL.ZVTransMulTo(ctx, back, zv); err == nil {
		t.Error("form L gave eigenvectors")
	}
}
