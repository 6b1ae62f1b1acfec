package accel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	lapack "gonum.org/v1/gonum/lapack/gonum"
)

// TestDsterf checks that the eigenvalues have gonum's bits at any scale. It compares those of a matrix with very small
// and very large blocks with known ones, to 1e-15 of the largest. A matrix that is not finite must fail.
func TestDsterf(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 32))
	for n := 1; n < 30; n++ {
		diagonal, subdiagonal := make([]float64, n), make([]float64, n-1)
		for i := range diagonal {
			diagonal[i] = random.NormFloat64()
		}
		for i := range subdiagonal {
			subdiagonal[i] = random.NormFloat64()
		}
		want, offDiagonal := slices.Clone(diagonal), slices.Clone(subdiagonal)
		if !(lapack.Implementation{}).Dsterf(n, want, offDiagonal) {
			t.Fatal("gonum's Dsterf failed")
		}
		for _, scale := range []float64{1, 0x1p-900, 0x1p900} {
			got, offDiagonal := slices.Clone(diagonal), slices.Clone(subdiagonal)
			for i := range got {
				got[i] *= scale
			}
			for i := range offDiagonal {
				offDiagonal[i] *= scale
			}
			if !Dsterf(got, offDiagonal) {
				t.Fatalf("n = %d, scale %g: failed", n, scale)
			}
			for i := range got {
				if got[i] != want[i]*scale {
					t.Fatalf("n = %d, scale %g: %v, want %v", n, scale, got, want)
				}
			}
		}
	}
	blocks := []float64{1e-300, 1e-300, 3, 1e300, 2e300, 1e-5}
	if !Dsterf(blocks, []float64{1e-301, 0, 0, 1e299, 0}) {
		t.Fatal("failed")
	}
	// The 2×2 block (1 0.1; 0.1 2)·1e300 has the eigenvalues (1.5 ± √(0.25+0.01))·1e300.
	upper, lower := 1.5+math.Sqrt(0.26), 1.5-math.Sqrt(0.26)
	for i, want := range []float64{0, 0, 1e-5, 3, lower * 1e300, upper * 1e300} {
		if math.Abs(blocks[i]-want) > 1e-15*1e300 {
			t.Errorf("eigenvalue %d of the blocks is %v, want %v", i, blocks[i], want)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		if Dsterf([]float64{1, bad}, []float64{0}) || Dsterf([]float64{1, 2}, []float64{bad}) {
			t.Errorf("no failure with an entry %v", bad)
		}
	}
	if zeros := make([]float64, 3); !Dsterf(zeros, make([]float64, 2)) || slices.Max(zeros) != 0 {
		t.Errorf("eigenvalues of a zero matrix: %v", zeros)
	}
}
