package simd

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// ulp32 returns the error of got in float32 units in the last place of want.
func ulp32(got float32, want float64) float64 {
	_, exponent := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(exponent-24, -149))
}

// forFloats calls visit with slices of the float32 numbers between from and to, which have the same sign: every step-th
// one in the order of their magnitudes, the first being the one nearer to zero, and to.
func forFloats(from, to float32, step uint32, visit func(x []float32)) {
	lo, hi := math.Float32bits(from), math.Float32bits(to)
	if lo > hi {
		lo, hi = hi, lo // to is nearer to zero
	}
	numbers := make([]float32, 0, 1021)
	for float32Bits := uint64(lo); float32Bits <= uint64(hi); float32Bits += uint64(step) {
		numbers = append(numbers, math.Float32frombits(uint32(float32Bits)))
		if len(numbers) == cap(numbers) {
			visit(numbers)
			numbers = numbers[:0]
		}
	}
	visit(append(numbers, to))
}

// TestExp32Error checks that Exp32 has an error of at most 0.55 ulp.
func TestExp32Error(t *testing.T) { onEachPath(t, testExp32Error) }

// testExp32Error runs TestExp32Error on one path.
func testExp32Error(t *testing.T) {
	var worst float64
	check := func(x []float32) {
		got := make([]float32, len(x))
		Exp32(got, x)
		for i, v := range x {
			if ulps := ulp32(got[i], math.Exp(float64(v))); ulps > worst {
				worst = ulps
				if ulps > 0.55 {
					t.Fatalf("Exp32(%g) = %g, want %g: %.3f ulp", v, got[i], math.Exp(float64(v)), ulps)
				}
			}
		}
	}
	forFloats(0, 88.72283, 1999, check)
	forFloats(float32(math.Copysign(0, -1)), -87.33654, 1999, check)
	forFloats(88.7227, 88.72283, 1, check) // all numbers near the ends of the range
	forFloats(-87.3365, -87.33654, 1, check)
	forFloats(0.34, 0.35, 13, check) // near ±ln 2/2, where the integer nearest to x/ln 2 changes
	forFloats(-0.35, -0.34, 13, check)
	t.Logf("worst error %.4f ulp", worst)
}

// TestExp32Special checks that Exp32 returns the exact results for zeros, subnormal arguments, infinities, NaN,
// overflow and underflow, and no subnormal number.
func TestExp32Special(t *testing.T) { onEachPath(t, testExp32Special) }

// testExp32Special runs TestExp32Special on one path.
func testExp32Special(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, test := range []struct{ x, want float32 }{
		{0, 1}, {float32(math.Copysign(0, -1)), 1}, {1e-40, 1}, {-1e-40, 1},
		{inf, inf}, {-inf, 0}, {88.7229, inf}, {1e30, inf}, {math.MaxFloat32, inf},
		{-87.34, 0}, {-100, 0}, {-1e30, 0}, {-math.MaxFloat32, 0},
	} {
		got := []float32{-7}
		Exp32(got, []float32{test.x})
		if got[0] != test.want {
			t.Errorf("Exp32(%g) = %g, want %g", test.x, got[0], test.want)
		}
	}
	got := []float32{float32(math.NaN())}
	if Exp32(got, got); got[0] == got[0] {
		t.Errorf("Exp32(NaN) = %g", got[0])
	}
	// Exp32 must return no subnormal number.
	forFloats(-87.3, -87.4, 1, func(x []float32) {
		y := make([]float32, len(x))
		Exp32(y, x)
		for i, v := range y {
			if v != 0 && v < 0x1p-126 {
				t.Fatalf("Exp32(%g) = %g is subnormal", x[i], v)
			}
		}
	})
}

// TestExp64 checks that Exp64 computes e^(scale·x) with an error of at most 0.9 ulp, by comparison with 200-bit
// arithmetic, and 0 for arguments below flush. A number must have the same bits wherever it is in a slice.
func TestExp64(t *testing.T) { onEachPath(t, testExp64) }

// testExp64 runs TestExp64 on one path.
func testExp64(t *testing.T) {
	const flush = -200 * math.Ln2 // Exp64 returns 0 for arguments below it
	random := rand.New(rand.NewPCG(19, 20))
	x := []float64{0, 0x1p-1074, 1e-300, 1e-17, math.Nextafter(-flush, 0), -flush, math.Nextafter(-flush, 1e3), 1e3,
		1e300, math.Inf(1), math.NaN()}
	for k := range 40 { // near the points (k+½)ln 2, where the integer nearest to x/ln 2 changes, and anywhere
		x = append(x, (float64(k)+0.5)*math.Ln2, math.Nextafter((float64(k)+0.5)*math.Ln2, 0), 2*random.Float64(),
			-flush*random.Float64(), math.Exp(-30*random.Float64()))
	}
	worst := 0.0
	got := make([]float64, len(x))
	for _, scale := range []float64{-1, -0.37} {
		Exp64(got, x, scale, flush)
		for i, v := range x {
			a := scale * v
			if math.IsNaN(v) {
				if !math.IsNaN(got[i]) {
					t.Errorf("e^NaN is %g, want NaN", got[i])
				}
				continue
			}
			if a < flush {
				if got[i] != 0 {
					t.Errorf("e^%g is %g, want 0", a, got[i])
				}
				continue
			}
			want := bigExp(a)
			nearest, _ := want.Float64()
			_, exponent := math.Frexp(nearest)
			diff, _ := want.Sub(want, big.NewFloat(got[i])).Float64()
			worst = max(worst, math.Abs(diff)/math.Ldexp(1, exponent-53))
			alone := []float64{v}
			if Exp64(alone, alone, scale, flush); alone[0] != got[i] {
				t.Errorf("e^%g is %g in a row, %g alone", a, got[i], alone[0])
			}
		}
	}
	if worst > 0.9 {
		t.Errorf("the worst error is %.3f ulp, want at most 0.9", worst)
	}
	t.Logf("worst error %.4f ulp", worst)
}

// bigExp returns e^a for −140 ≤ a ≤ 0, from the series of e^(a/1024) squared ten times.
func bigExp(a float64) *big.Float {
	toBig := func(v float64) *big.Float { return big.NewFloat(v).SetPrec(200) }
	y := toBig(a)
	y.Quo(y, toBig(1024))
	sum, term := toBig(1), toBig(1)
	for k := 1; k < 60; k++ {
		term.Mul(term, y)
		term.Quo(term, toBig(float64(k)))
		sum.Add(sum, term)
	}
	for range 10 {
		sum.Mul(sum, sum)
	}
	return sum
}

// TestCos32Error checks that Cos32 has an error of at most 3.1e-8 and is NaN for infinite arguments.
func TestCos32Error(t *testing.T) { onEachPath(t, testCos32Error) }

// testCos32Error runs TestCos32Error on one path.
func testCos32Error(t *testing.T) {
	const bound = 3.1e-8
	worst := 0.0
	check := func(x []float32) {
		got := make([]float32, len(x))
		Cos32(got, x)
		for i, v := range x {
			if math.Abs(float64(got[i])) > 1 {
				t.Fatalf("Cos32(%g) = %g", v, got[i])
			}
			if deviation := math.Abs(float64(got[i]) - math.Cos(float64(v))); deviation > worst {
				worst = deviation
				if deviation > bound {
					t.Fatalf("Cos32(%g) = %g, want %g: error %.3g", v, got[i], math.Cos(float64(v)), deviation)
				}
			}
		}
	}
	forFloats(0, cosMax, 1999, check)
	forFloats(float32(math.Copysign(0, -1)), -cosMax, 1999, check)
	forFloats(1.57, 1.58, 1, check)            // near the zero π/2 of the cosine
	forFloats(9990, 10010, 1, check)           // all numbers in some periods, with a large integer part of x/2π
	forFloats(cosMax-10, 2*cosMax, 101, check) // near the limit of the fast method, and above it
	forFloats(1e6, 1e9, 997, check)            // far above it
	t.Logf("worst error %.3g", worst)
	x := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	Cos32(x, x)
	for _, v := range x {
		if v == v {
			t.Errorf("Cos32 of ±Inf or NaN is %g", v)
		}
	}
}

// TestElementwiseSlices checks that the results of Exp32 and Cos32 do not depend on the length of the slices, or on dst
// being x, and that nothing beyond the slices is written.
func TestElementwiseSlices(t *testing.T) { onEachPath(t, testElementwiseSlices) }

// testElementwiseSlices runs TestElementwiseSlices on one path.
func testElementwiseSlices(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, compute := range map[string]func(dst, x []float32){"Exp32": Exp32, "Cos32": Cos32} {
		x := make([]float32, 133)
		for i := range x {
			x[i] = float32(40 * random.NormFloat64())
		}
		want := make([]float32, len(x))
		for i := range x {
			compute(want[i:], x[i:i+1])
		}
		for n := range x {
			got := make([]float32, n+1)
			got[n] = 42
			compute(got, x[:n])
			inPlace := append([]float32(nil), x[:n]...)
			compute(inPlace, inPlace)
			for i := range n {
				if got[i] != want[i] || inPlace[i] != want[i] {
					t.Fatalf("%s, n = %d, i = %d: %g, in place %g, want %g", name, n, i, got[i], inPlace[i], want[i])
				}
			}
			if got[n] != 42 {
				t.Fatalf("%s, n = %d: wrote beyond len(x)", name, n)
			}
		}
	}
}

// TestShortSlices checks that the functions panic if a slice is too short although its capacity suffices.
func TestShortSlices(t *testing.T) {
	const n = 3
	x, short := make([]float64, n), make([]float64, n)[:n-1]
	x32, short32 := make([]float32, n), make([]float32, n)[:n-1]
	mask, order := make([]uint16, 1), make([]int32, n)
	checkPanics(t, map[string]func(){
		"Exp32":                        func() { Exp32(short32, x32) },
		"Exp64":                        func() { Exp64(short, x, 1, -1) },
		"Cos32":                        func() { Cos32(short32, x32) },
		"GaussianRow":                  func() { GaussianRow(short32, x, x, 1, -1, -1) },
		"GaussianRow, norms":           func() { GaussianRow(x32, x, short, 1, -1, -1) },
		"SquaredDistances":             func() { SquaredDistances(short, x, x, 1) },
		"SquaredDistances, zz":         func() { SquaredDistances(x, x, short, 1) },
		"RoundToFloat32":               func() { RoundToFloat32(short32, x) },
		"FromUint16":                   func() { FromUint16(short32, make([]uint16, n)) },
		"ToUint16":                     func() { ToUint16(make([]uint16, n)[:n-1], x32, 1) },
		"Butterfly":                    func() { Butterfly(x, short) },
		"PackRow":                      func() { PackRow(short, mask, x, 1, x) },
		"PackRow, mask":                func() { PackRow(x, mask[:0], x, 1, x) },
		"PackRow, dropped":             func() { PackRow(x, mask, x, 1, short) },
		"UnpackRow":                    func() { UnpackRow(x, mask[:0], x) },
		"SelectMagnitudes":             func() { SelectMagnitudes(order[:n-1], x32, x32, order, 1, 1) },
		"SelectMagnitudes, thresholds": func() { SelectMagnitudes(order, x32, short32, order, 1, 1) },
		"SelectMagnitudes, positions":  func() { SelectMagnitudes(order, x32, x32, order[:n-1], 1, 1) },
		"SumSquaredDifferences": func() {
			SumSquaredDifferences(new([PairLanes]float64), x, make([]float64, n*PairLanes)[:n])
		},
	})
}
