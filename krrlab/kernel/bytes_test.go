package kernel_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// closeBytePoints returns byte points many of which are close together and far from zero.
func closeBytePoints(n, d int, scale float64) *points.Bytes {
	g := rand.New(rand.NewPCG(uint64(n), uint64(d)))
	x := points.NewBytes(n, d, scale, nil)
	for i := range n {
		row := x.Row(i)
		for j := range row {
			row[j] = uint8(255 - (j*j+g.IntN(1+i%4))%256)
		}
	}
	return x
}

// TestTilesOfBytePoints compares tiles of byte points, in every arithmetic, with the kernel of the exact distance.
// Float64 entries must be right to EntryError and float32 entries to their rounding, and all SIMD paths must give the
// same bits. The Laplacian, which uses no inner products, is excluded from the last two checks. HasExactProducts must
// hold for all other kernels.
func TestTilesOfBytePoints(t *testing.T) {
	defer simd.UsePath(simd.CurrentPath())
	for _, d := range []int{1, 3, 784, gemm.MaxBytesK + 9} {
		const scale = 1.0 / 255
		nx, nz := 5, 21
		xPanel := points.NewPanel(closeBytePoints(nx, d, scale))
		zPanel := points.NewPanel32(closeBytePoints(nz, d, scale))
		summary := kernel.SummaryOf(xPanel)
		for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 0.5}, kernel.Matern32{Sigma: 0.7},
			kernel.Matern52{Sigma: 0.3}, kernel.Polynomial{Gamma: 1e-4, Coef0: 1, Degree: 3},
			kernel.Laplacian{Sigma: 2}, multiquadric{1, 1}} {
			_, isLaplacian := k.(kernel.Laplacian)
			testkit.Equal(t, kernel.HasExactProducts(k, summary), !isLaplacian, k)
			for _, arithmetic := range []kernel.Arithmetic{kernel.Float32, kernel.Float64, kernel.Differences} {
				var first64 []float64
				var first32 []float32
				for _, path := range simd.Paths() {
					simd.UsePath(path)
					t64, t32 := make([]float64, nx*(nz+1)), make([]float32, nx*(nz+1))
					var w kernel.Workspace
					kernel.Tile64(t64, nz+1, k, xPanel, zPanel, arithmetic, &w)
					kernel.Tile32(t32, nz+1, k, xPanel, zPanel, arithmetic, &w)
					if first64 == nil {
						first64, first32 = t64, t32
					}
					for i := range t64 {
						if !isLaplacian && (t64[i] != first64[i] || t32[i] != first32[i]) {
							t.Fatalf("%v, d = %d, %v: entry %d is %v and %v on %v, %v and %v in Go", k, d, arithmetic,
								i,
								t64[i], t32[i], path, first64[i], first32[i])
						}
					}
				}
				x, z := make([]float64, d), make([]float64, d)
				for a := range nx {
					for b := range nz {
						xPanel.X.RowTo(x, a)
						zPanel.X.RowTo(z, b)
						xBytes, zBytes := xPanel.X.(*points.Bytes).Row(a), zPanel.X.(*points.Bytes).Row(b)
						want, size := exactValue(k, xBytes, zBytes, scale, x, z)
						relTol := kernel.EntryError(k, arithmetic, summary)
						if _, isUserDefined := k.(multiquadric); isUserDefined {
							relTol = 0x1p-48 // EntryError does not count Profile's own rounding
						}
						testkit.Near(t, first64[a*(nz+1)+b], want, relTol*size, k, d, arithmetic, a, b, relTol)
						if isLaplacian {
							continue
						}
						// Two roundings to float32 of the value and, in Matérn kernels, one of the argument −a of the
						// exponential, which changes e^−a by a relative error of at most a·2⁻²³. The small terms are
						// for values that are stored as 0.
						tol := want*(0x1p-22+0x1p-23*math.Abs(math.Log(want+0x1p-140))) + 0x1p-100
						if got := first32[a*(nz+1)+b]; math.Abs(float64(got)-want) > tol {
							t.Errorf("%v in float32, d = %d, %v (%d, %d): %v, want %v", k, d, arithmetic, a, b, got,
								want)
						}
					}
				}
			}
		}
	}
}

// exactValue returns the kernel of two byte points and √(k(x,x)·k(z,z)). xBytes and zBytes are the bytes, x and z the
// same points multiplied by scale. A Radial or Polynomial is evaluated at the exact squared distance or inner product,
// rounded to float64; another kernel is evaluated by Eval of x and z.
func exactValue(k kernel.Kernel, xBytes, zBytes []uint8, scale float64, x, z []float64) (value, size float64) {
	var sq, inner, xx, zz int64
	for j, b := range xBytes {
		xj, zj := int64(b), int64(zBytes[j])
		sq += (xj - zj) * (xj - zj)
		inner += xj * zj
		xx += xj * xj
		zz += zj * zj
	}
	scaled := func(n int64) float64 { // scale²·n, rounded once
		s := new(big.Float).SetPrec(300).SetFloat64(scale)
		product, _ := s.Mul(s, s).Mul(s, new(big.Float).SetInt64(n)).Float64()
		return product
	}
	switch k := k.(type) {
	case kernel.Polynomial:
		eval := func(p int64) float64 { return math.Pow(k.Gamma*scaled(p)+k.Coef0, float64(k.Degree)) }
		return eval(inner), math.Sqrt(eval(xx) * eval(zz))
	case kernel.Radial:
		v := []float64{scaled(sq)}
		k.Profile(v, v)
		return v[0], 1
	}
	return k.Eval(x, z), 1
}
