package feature_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

// chains returns chains of the paper's Algorithm 2 of several forms, with 12 final features.
func chains() []feature.Chain {
	fourier, tensor := fourierDists()[0], feature.TensorSketch{Kernel: poly}
	return []feature.Chain{
		{Features: fourier, Width: 70, Sketches: sketch.Composition{{Dist: sketch.SRHT{}, Width: 30},
			{Dist: sketch.Gaussian{}, Width: 12}}},
		{Features: tensor, Width: 64, Sketches: sketch.Composition{{Dist: sketch.CountSketch{}, Width: 40},
			{Dist: sketch.Gaussian{}}}},
		{Features: tensor, Width: 33, Sketches: sketch.Composition{{Dist: sketch.SRHT{}}}},
		{Features: fourier, Width: 12},
	}
}

// TestChain compares a chain with its levels applied one by one, Z_{j+1} = Z_j·S_{j+1}ᵀ, in float64 and float32.
// There are more points than one panel holds, and the result has a stride; the numbers between
// the rows must not be changed.
func TestChain(t *testing.T) {
	const n, d, s, stride = 300, 5, 12, 15
	x := normalPoints(n, d, 1, 6)
	for _, chain := range chains() {
		m := sampleMap(t, chain, d, s, 3).(*feature.ChainMap)
		if _, width := m.Level(1).Dims(); width != chain.Width {
			t.Errorf("%v: the first level has the width %d", chain, width)
		}
		want := featuresOf(m.Level(1), x)
		width := chain.Width
		for k := 2; k <= 1+len(chain.Sketches); k++ {
			_, nextWidth := m.Sketch(k).Dims()
			out := make([]float64, n*nextWidth)
			m.Sketch(k).Apply64(sketch.Rows64{Dst: out, DstStride: nextWidth, Src: want, SrcStride: width, Count: n},
				&sketch.Workspace{})
			want, width = out, nextWidth
			checkNear(t, fmt.Sprintf("%v, level %d", chain, k), featuresOf(m.Level(k), x), want, 1e-13)
		}
		z, z32 := make([]float64, n*stride), make([]float32, n*stride)
		var w feature.Workspace
		m.MapTo(z, stride, x, &w)
		m.MapTo32(z32, stride, x, &w)
		for i := range n {
			testkit.Equal(t, [stride - s]float64(z[i*stride+s:(i+1)*stride]), [stride - s]float64{}, chain, i)
			checkNear(t, chain.String(), z[i*stride:i*stride+s], want[i*s:(i+1)*s], 1e-13)
			checkNear(t, chain.String()+" in float32", inFloat64(z32[i*stride:i*stride+s]), want[i*s:(i+1)*s], 3e-5)
		}
	}
}

// TestChainMean checks that the mean of φ(x)ᵀφ(z) over 2,000 draws of a chain is k(x, z) to five standard errors
// (deviates).
func TestChainMean(t *testing.T) {
	const d = 4
	x := normalPoints(2, d, 0.7, 2)
	for _, chain := range chains() {
		want := poly.Eval(x.Row(0), x.Row(1))
		if fourier, ok := chain.Features.(feature.Fourier); ok {
			want = fourier.Kernel.Eval(x.Row(0), x.Row(1))
		}
		values := make([]float64, 2000)
		for draw := range values {
			z := featuresOf(sampleMap(t, chain, d, 12, uint64(draw)), x)
			values[draw] = floats.Dot(z[:12], z[12:])
		}
		if deviates(values, want) {
			mean, stdErr := meanOf(values)
			t.Errorf("%v: mean %.4f ± %.4f, want %.4f", chain, mean, stdErr, want)
		}
	}
}

// TestChainErrors checks the errors of incomplete and inconsistent chains, and that an overflow in the features is
// reported although only their sketch is returned.
func TestChainErrors(t *testing.T) {
	fourier := fourierDists()[0]
	for _, test := range []struct {
		chain feature.Chain
		s     int
		want  string
	}{
		{feature.Chain{}, 5, "without features"},
		{feature.Chain{Features: fourier, Width: 5}, 4, "no sketch has that width"},
		{feature.Chain{Features: fourier, Sketches: sketch.Composition{{Dist: sketch.SRHT{}}}}, 4, "0 features"},
		{feature.Chain{Features: fourier, Width: 9, Sketches: sketch.Composition{{Dist: sketch.SRHT{}, Width: 17},
			{Dist: sketch.Gaussian{}}}}, 4, "s ≤ 16"},
		{feature.Chain{Features: fourier, Width: 9, Sketches: sketch.Composition{{Dist: sketch.SRHT{}, Width: 5}}}, 4,
			"4 are asked for"},
		{feature.Chain{Features: fourier, Width: 9, Sketches: sketch.Composition{{Dist: sketch.SRHT{}}}}, 0,
			"at least 1"},
	} {
		testkit.Fails(t, testkit.ErrOf(test.chain.Sample(3, test.s, rng.New(1))), test.want)
	}
	if s := chains()[0].String(); !strings.HasSuffix(s, " to 70 → srht to 30 → gaussian to 12") {
		t.Errorf("text of a chain: %s", s)
	}
	// An overflow in the features must be visible in their sketch.
	huge := points.NewDense(2, 3, []float64{1, 1, 1, 1e20, 1e20, 1e20})
	testkit.Fails(t, testkit.ErrOf(feature.Matrix(t.Context(), sampleMap(t, chains()[1], 3, 12, 1), huge, nil)),
		"point 1")
	var worst float64
	for _, v := range featuresOf(sampleMap(t, chains()[1], 3, 12, 1), huge.Slice(0, 1)) {
		worst = max(worst, math.Abs(v))
	}
	if worst == 0 || worst > 1e3 {
		t.Errorf("features of the first point up to %g", worst)
	}
}

// FuzzParseLevels checks that every text that ParseLevels accepts describes a chain and that its String is parsed as
// the same levels.
func FuzzParseLevels(f *testing.F) {
	f.Add("features:16000,srht:4000,gaussian:2000")
	f.Add(" features:3, countsketch:3")
	f.Fuzz(func(t *testing.T, spec string) {
		levels, err := feature.ParseLevels(spec)
		if err != nil {
			return
		}
		reparsed, err := feature.ParseLevels(levels.String())
		if err != nil || !slices.Equal(reparsed, levels) {
			t.Errorf("%q: %v, then %v, %v", spec, levels, reparsed, err)
		}
		c, err := feature.ChainFor(kernel.Gaussian{Sigma: 1}, levels)
		if err != nil || c.Width != levels[0].Width || len(c.Sketches) != len(levels)-1 {
			t.Errorf("%q: %v, %v", spec, c, err)
		}
	})
}
