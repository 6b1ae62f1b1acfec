package feature

import (
	"context"
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// distsToDouble are the distributions that Doubling handles in different ways.
var distsToDouble = []Dist{
	Fourier{Kernel: kernel.Gaussian{Sigma: 1.5}},
	Fourier{Kernel: kernel.Matern32{Sigma: 1.5}},
	TensorSketch{Kernel: kernel.Polynomial{Gamma: 0.3, Coef0: 1, Degree: 3}},
}

// TestDoublingNests checks Z_2s = [Z_s Z_new]/√2 with Z_s and Z_new from Part, for widths first·2^k and one other
// width.
func TestDoublingNests(t *testing.T) {
	const n, d, first = 300, 7, 24 // more than one panel of points
	x, g := testkit.RandomPoints(5, n, d), rng.New(3)
	matrix := func(m Map, err error) *points.Dense32 {
		t.Helper()
		testkit.OK(t, err)
		return testkit.Must(Matrix(context.Background(), m, x, nil))
	}
	for _, dist := range distsToDouble {
		doubling := Doubling{dist, first}
		for _, widths := range [][2]int{{24, 48}, {48, 96}, {96, 192}, {48, 77}} {
			s, total := widths[0], widths[1]
			all, firstPart, secondPart := matrix(doubling.Sample(d, total, g)), matrix(doubling.Part(d, 0, s, g)),
				matrix(doubling.Part(d, s, total, g))
			for i := range n {
				for j, v := range all.Row(i) {
					var want float64
					if j < s {
						want = math.Sqrt(float64(s)/float64(total)) * float64(firstPart.Row(i)[j])
					} else {
						want = math.Sqrt(float64(total-s)/float64(total)) * float64(secondPart.Row(i)[j-s])
					}
					if math.Abs(float64(v)-want) > 1e-5 { // float32 rounding errors are below 1e-6
						t.Fatalf("%v: feature %d of %d of point %d is %g, in its part %g", doubling, j, total, i, v,
							want)
					}
				}
			}
		}
		doubled, undoubled := matrix(doubling.Sample(d, first, g)), matrix(dist.Sample(d, first, g))
		if doubled.Data[17] != undoubled.Data[17] {
			t.Errorf("%v: the first %d features are not a draw of %v", doubling, first, dist)
		}
	}
}

// TestDoublingMean checks E[φ(x)ᵀφ(z)] = k(x, z) for stacked TensorSketches to five standard errors, and their
// variance against the bound of a single TensorSketch with as many features.
func TestDoublingMean(t *testing.T) {
	k := kernel.Polynomial{Gamma: 0.3, Coef0: 1, Degree: 2}
	const s, draws = 40, 3000
	x := testkit.RandomPoints(5, 2, 4)
	doubling := Doubling{TensorSketch{k}, 8}
	want := k.Eval(x.Data[:4], x.Data[4:])
	varianceBound := (2 + 9.0) / s * k.Eval(x.Data[:4], x.Data[:4]) * k.Eval(x.Data[4:], x.Data[4:])
	var sum, sumSquares float64
	var w Workspace
	z := make([]float64, 2*s)
	for i := range uint64(draws) {
		m := testkit.Must(doubling.Sample(4, s, rng.New(1).Sub("draw", i)))
		m.MapTo(z, s, x, &w)
		var product float64
		for j := range s {
			product += z[j] * z[s+j]
		}
		sum += product
		sumSquares += (product - want) * (product - want)
	}
	testkit.Near(t, sum/draws, want, 5*math.Sqrt(varianceBound/draws))
	if variance := sumSquares / draws; variance > 1.1*varianceBound {
		t.Errorf("variance %g above the bound %g", variance, varianceBound)
	}
}

// TestDoublingMisuse checks the panics and errors for widths, kernels and matrices that Doubling cannot use.
func TestDoublingMisuse(t *testing.T) {
	poly := distsToDouble[2]
	testkit.Panics(t, map[string]func(){
		"not First·2^k features": func() { _, _ = Doubling{poly, 8}.Part(3, 12, 24, rng.New(1)) },
		"empty":                  func() { _, _ = Doubling{poly, 8}.Part(3, 8, 8, rng.New(1)) },
		"First = 0":              func() { _, _ = Doubling{poly, 0}.Sample(3, 8, rng.New(1)) },
		"columns": func() {
			m, _ := poly.Sample(7, 8, rng.New(1))
			_ = MatrixTo(context.Background(), points.NewDense32(4, 10, nil), 3, m, testkit.RandomPoints(5, 4, 7), nil)
		},
	})
	if _, err := (Doubling{Fourier{Kernel: kernel.Gaussian{}}, 8}).Sample(3, 8, rng.New(1)); err == nil {
		t.Error("σ = 0 is accepted")
	}
	testkit.Fails(t, testkit.ErrOf((Doubling{poly, 8}).Sample(3, 0, rng.New(1))), "0 features")
}

// TestStack checks that the parts of a stack of s features are the maps of b features scaled by √(b/s), and that a
// stack of one map is that map.
func TestStack(t *testing.T) {
	x := testkit.RandomPoints(5, 20, 4)
	var parts []Map
	for j, s := range []int{5, 9, 2} {
		m := testkit.Must(TensorSketch{Kernel: kernel.Polynomial{Gamma: 0.3, Coef0: 1, Degree: 2}}.Sample(4, s,
			rng.New(uint64(j))))
		parts = append(parts, m)
	}
	fourier := Fourier{Kernel: kernel.Gaussian{Sigma: 1}}
	if f := (Doubling{fourier, 8}); f.String() != fourier.String() {
		t.Errorf("Doubling of %v is %v", fourier, f)
	}
	testkit.Equal(t, stackMaps(parts[:1]), parts[0])
	m := stackMaps(parts)
	if d, s := m.Dims(); d != 4 || s != 16 {
		t.Fatalf("a stack maps %d to %d numbers, want 4 to 16", d, s)
	}
	var w Workspace
	features := make([]float64, 20*16)
	m.MapTo(nil, 16, points.NewDense(0, 4, nil), &w)
	m.MapTo(features, 16, x, &w)
	start := 0
	for _, part := range parts {
		_, width := part.Dims()
		z := make([]float64, 20*width)
		part.MapTo(z, width, x, &w)
		for i := range 20 {
			for k := range width {
				if want := math.Sqrt(float64(width)/16) * z[i*width+k]; math.Abs(features[i*16+start+k]-want) > 1e-15 {
					t.Fatalf("point %d, feature %d: %g, want %g", i, start+k, features[i*16+start+k], want)
				}
			}
		}
		start += width
	}
}
