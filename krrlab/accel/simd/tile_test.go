package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"gonum.org/v1/gonum/blas/blas64"
)

// onEachPath runs a test on every path of this processor.
func onEachPath(t *testing.T, test func(t *testing.T)) {
	for _, path := range Paths() {
		t.Run(path.String(), func(t *testing.T) {
			defer UsePath(CurrentPath())
			UsePath(path)
			test(t)
		})
	}
}

// edgeSizes are sizes around the number of lanes of a register, a step of the loop and a chunk of rows.
var edgeSizes = []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 49, 64, 121}

// normals returns n normal numbers in an unaligned slice.
func normals[T number](random *rand.Rand, n int) []T {
	numbers := make([]T, n+3)
	for i := range numbers {
		numbers[i] = T(random.NormFloat64())
	}
	return numbers[1 : n+1 : n+1]
}

// testProducts compares the products of a tile T with k vectors with their definitions in float64: U += TX if changesU
// is set, and Y += TᵀZ if changesY is set. Other vectors must not be changed. The error of a sum of m products is at
// most (m+2)·roundoff times the sum of their magnitudes.
func testProducts[T, V number](t *testing.T, changesU, changesY bool, roundoff float64,
	addProducts func(rows, cols int, tile []T, ld int, x, y, z, u []V, k int, w *Workspace)) {
	random := rand.New(rand.NewPCG(1, 2))
	var w Workspace
	for _, rows := range edgeSizes {
		for _, cols := range edgeSizes {
			k := (rows + cols) % 8
			ld := cols + rows%3
			tile := normals[T](random, max(0, rows*ld))
			x, y, z, u := normals[V](random, cols*k), normals[V](random, cols*k), normals[V](random, rows*k),
				normals[V](random, rows*k)
			y0, u0 := slices.Clone(y), slices.Clone(u)
			addProducts(rows, cols, tile, ld, x, y, z, u, k, &w)
			check := func(name string, i, c int, got, start V, m int, term func(j int) float64) {
				want, absSum := float64(start), math.Abs(float64(start))
				for j := range m {
					want += term(j)
					absSum += math.Abs(term(j))
				}
				if deviation := math.Abs(float64(got) - want); !(deviation <= float64(m+2)*roundoff*absSum) {
					t.Fatalf("%d×%d, %d vectors: %s(%d, %d) is %v, want %v", rows, cols, k, name, i, c, got, want)
				}
			}
			for c := range k {
				for r := range rows {
					if changesU {
						check("U", r, c, u[c*rows+r], u0[c*rows+r], cols,
							func(j int) float64 { return float64(tile[r*ld+j]) * float64(x[c*cols+j]) })
					} else if u[c*rows+r] != u0[c*rows+r] {
						t.Fatal("U was changed")
					}
				}
				for j := range cols {
					if changesY {
						check("Y", j, c, y[c*cols+j], y0[c*cols+j], rows,
							func(r int) float64 { return float64(tile[r*ld+j]) * float64(z[c*rows+r]) })
					} else if y[c*cols+j] != y0[c*cols+j] {
						t.Fatal("Y was changed")
					}
				}
			}
		}
	}
}

// TestProducts compares AddBothProducts, AddProduct and AddTransposeProduct with their definitions, for tiles and
// vectors of all edge sizes.
func TestProducts(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		testProducts(t, true, true, 0x1p-24, AddBothProducts[float32, float32])
		testProducts(t, true, true, 0x1p-53, AddBothProducts[float64, float64])
		testOneWayProducts[float32](t)
		testOneWayProducts[float64](t)
	})
}

// testOneWayProducts compares AddProduct and AddTransposeProduct, whose vectors have float64, with their definitions.
func testOneWayProducts[T number](t *testing.T) {
	testProducts(t, true, false, 0x1p-53, func(rows, cols int, tile []T, ld int, x, _, _, u []float64, k int,
		_ *Workspace) {
		AddProduct(tile, ld, columns(x, k, cols, cols), columns(u, k, rows, rows))
	})
	testProducts(t, false, true, 0x1p-53, func(rows, cols int, tile []T, ld int, _, y, z, _ []float64, k int,
		w *Workspace) {
		AddTransposeProduct(tile, ld, columns(y, k, cols, cols), columns(z, k, rows, rows), w)
	})
}

// specialValues are NaN, an infinity and a subnormal number, one of which is in some vectors.
var specialValues = []float32{float32(math.NaN()), float32(math.Inf(-1)), 0x1p-140}

// TestUint16Products compares products of 16-bit tiles with those of the same numbers in float32. The numbers are small
// integers, so that both are exact.
func TestUint16Products(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(13, 14))
		var w Workspace
		for _, rows := range edgeSizes {
			for _, cols := range edgeSizes {
				k, ld := 1+(rows+cols)%7, cols+rows%3
				tile, tile32 := make([]uint16, rows*ld), make([]float32, rows*ld)
				for i := range tile {
					tile[i] = uint16(random.IntN(50))
					tile32[i] = float32(tile[i])
				}
				integers := func(n int) []float32 {
					numbers := make([]float32, n)
					for i := range numbers {
						numbers[i] = float32(random.IntN(41) - 20)
					}
					if bad := (rows + cols) % 8; bad < len(specialValues) && n > 0 {
						numbers[random.IntN(n)] = specialValues[bad]
					}
					return numbers
				}
				x, y, z, u := integers(cols*k), integers(cols*k), integers(rows*k), integers(rows*k)
				wantY, wantU := slices.Clone(y), slices.Clone(u)
				AddBothProducts(rows, cols, tile, ld, x, y, z, u, k, &w)
				AddBothProducts(rows, cols, tile32, ld, x, wantY, z, wantU, k, &w)
				if !equalOrNaN(y, wantY) || !equalOrNaN(u, wantU) {
					t.Fatalf("%d×%d, %d vectors: products of 16-bit numbers differ", rows, cols, k)
				}
			}
		}
	})
}

// TestUint16ProductValues checks products of a tile with all 16-bit numbers and unit vectors, so that each number is
// the result, in several places of a register.
func TestUint16ProductValues(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		const rows, cols, ld = 1 << 8, 1 << 8, 1<<8 + 1 // unaligned rows
		for k := 1; k <= 4; k++ {
			tile := make([]uint16, rows*ld)
			for r := range rows {
				for j := range cols {
					tile[r*ld+j] = uint16(r<<8 + j ^ 0x1357*k)
				}
			}
			x, y, z, u := make([]float32, cols*k), make([]float32, cols*k), make([]float32, rows*k),
				make([]float32, rows*k)
			for r := range rows { // one row at a time: y must be this row, and u a column
				clear(y)
				clear(z)
				clear(x)
				clear(u)
				for c := range k {
					z[c*rows+r], x[c*cols+(r+c)%cols] = 1, 1
				}
				AddBothProducts(rows, cols, tile, ld, x, y, z, u, k, &Workspace{})
				for i, v := range y {
					if want := float32(tile[r*ld+i%cols]); v != want {
						t.Fatalf("%d vectors: y[%d] is %g, want %g", k, i, v, want)
					}
				}
				for i, v := range u {
					if want := float32(tile[i%rows*ld+(r+i/rows)%cols]); v != want {
						t.Fatalf("%d vectors: u[%d] is %g, want %g", k, i, v, want)
					}
				}
			}
		}
	})
}

// TestToUint16 checks that ToUint16 rounds to even on a tie, and that FromUint16 gives these integers as float32.
func TestToUint16(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		x := make([]float32, 1<<16)
		for i := range x {
			x[i] = float32(i) / 65535
		}
		got, converted := make([]uint16, len(x)), make([]float32, len(x))
		ToUint16(got, x, 65535)
		FromUint16(converted, got)
		for i := range got {
			if int(got[i]) != i || converted[i] != float32(i) {
				t.Fatalf("%d/65535 became %d, and %g in float32", i, got[i], converted[i])
			}
		}
		ties := []float32{0.5, 1.5, 2.5, 3.49, 100.5, 65534.5, 0, 65535}
		ties = append(ties, ties...)
		ties = append(ties, 7.5)
		ToUint16(got, ties, 1)
		for i, want := range []uint16{0, 2, 2, 3, 100, 65534, 0, 65535, 0, 2, 2, 3, 100, 65534, 0, 65535, 8} {
			if got[i] != want {
				t.Errorf("%g became %d, want %d", ties[i], got[i], want)
			}
		}
	})
}

// TestProductsOfSpecialValues checks that NaN and Inf reach the results that depend on them and no others, and that
// subnormal numbers are not flushed.
func TestProductsOfSpecialValues(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		const rows, cols, k = 9, 40, 3
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
			for _, position := range [][2]int{{0, 0}, {3, 17}, {8, 39}, {4, 33}} {
				tile := make([]float32, rows*cols)
				tile[position[0]*cols+position[1]] = bad
				ones := slices.Repeat([]float32{1}, cols*k)
				y, u := make([]float32, cols*k), make([]float32, rows*k)
				AddBothProducts(rows, cols, tile, cols, ones, y, ones, u, k, &Workspace{})
				for i, v := range y {
					if affected := i%cols == position[1]; affected != (v != 0) {
						t.Errorf("%v at %v: y[%d] = %v", bad, position, i, v)
					}
				}
				for i, v := range u {
					if affected := i%rows == position[0]; affected != (v != 0) {
						t.Errorf("%v at %v: u[%d] = %v", bad, position, i, v)
					}
				}
			}
		}
		tiny := slices.Repeat([]float32{0x1p-140}, rows*cols)
		ones := slices.Repeat([]float32{1}, cols*k)
		y, u := make([]float32, cols*k), make([]float32, rows*k)
		AddBothProducts(rows, cols, tiny, cols, ones, y, ones, u, k, &Workspace{})
		if y[0] != rows*0x1p-140 || u[0] != cols*0x1p-140 {
			t.Errorf("subnormal sums %g and %g", y[0], u[0])
		}
	})
}

// columns returns t vectors of n numbers, stored one after the other with the given stride.
func columns(v []float64, t, n, stride int) blas64.General {
	return blas64.General{Rows: t, Cols: n, Stride: stride, Data: v}
}

// TestMisusePanics checks that invalid shapes, slices that are too short, and unknown paths panic.
func TestMisusePanics(t *testing.T) {
	v32 := make([]float32, 20)
	v64 := make([]float64, 20)
	checkPanics(t, map[string]func(){
		"stride below columns": func() { AddBothProducts(4, 5, v32, 4, v32, v32, v32, v32, 1, &Workspace{}) },
		"short tile":           func() { AddBothProducts(4, 6, v32, 6, v32, v32, v32, v32, 1, &Workspace{}) },
		"short vectors":        func() { AddBothProducts(4, 5, v32, 5, v32, v32, v32, v32, 5, &Workspace{}) },
		"negative rows":        func() { AddBothProducts(-1, 5, v32, 5, v32, v32, v32, v32, 1, &Workspace{}) },
		"AddProduct":           func() { AddProduct(v32, 5, columns(v64, 5, 5, 5), columns(v64, 5, 4, 4)) },
		"vector stride":        func() { AddProduct(v32, 5, columns(v64, 1, 5, 4), columns(v64, 1, 4, 4)) },
		"AddTransposeProduct": func() {
			AddTransposeProduct(v32, 5, columns(v64, 5, 5, 5), columns(v64, 5, 4, 4), &Workspace{})
		},
		"different numbers of vectors": func() { AddProduct(v32, 5, columns(v64, 1, 5, 5), columns(v64, 2, 4, 4)) },
		"path":                         func() { UsePath(numPaths) },
		"GatherDot":                    func() { GatherDot([]int64{0, 2}, make([]int32, 1), v32, v64, v64, 1) },
		"SumSquaredDifferences":        func() { SumSquaredDifferences(new([PairLanes]float64), v64, v64) },
	})
}

// checkPanics reports the calls, by name, that do not panic.
func checkPanics(t *testing.T, calls map[string]func()) {
	t.Helper()
	for name, call := range calls {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

// TestTileAllocations checks that products allocate nothing after the first use of a workspace.
func TestTileAllocations(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		const n, k = 70, 5
		tile32, vectors32, numbers64 := make([]float32, n*n), make([]float32, n*k), make([]float64, n*k)
		tile16 := make([]uint16, n*n)
		var w Workspace
		multiply := func() {
			AddBothProducts(n, n, tile32, n, vectors32, vectors32, vectors32, vectors32, k, &w)
			AddBothProducts(5, 5, numbers64, 5, numbers64, numbers64, numbers64, numbers64, k, &w)
			AddBothProducts(n, n, tile16, n, vectors32, vectors32, vectors32, vectors32, k, &w)
			AddProduct(tile32, n, columns(numbers64, k, n, n), columns(numbers64, k, n, n))
			AddTransposeProduct(tile32, n, columns(numbers64, k, n, n), columns(numbers64, k, n, n), &w)
			AddProduct(numbers64, 5, columns(numbers64, k, 5, 5), columns(numbers64, k, 5, 5))
			AddTransposeProduct(numbers64, 5, columns(numbers64, k, 5, 5), columns(numbers64, k, 5, 5), &w)
		}
		multiply()
		if allocations := testing.AllocsPerRun(10, multiply); allocations > 0 {
			t.Errorf("%v allocations", allocations)
		}
	})
}

// TestElementwiseBitsOnPaths checks that the elementwise functions have the same bits on all paths, for random numbers,
// numbers out of range, NaN and infinities.
func TestElementwiseBitsOnPaths(t *testing.T) {
	defer UsePath(CurrentPath())
	random := rand.New(rand.NewPCG(5, 6))
	x := normals[float32](random, 5003)
	for i := range x {
		x[i] *= 60
	}
	for i := 0; i < len(x); i += 97 { // some are out of range
		x[i] = []float32{1e30, -1e30, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 100, -100,
			3e6}[i/97%8]
	}
	norms, inner64 := make([]float64, len(x)), make([]float64, len(x))
	for i := range norms {
		norms[i] = math.Abs(random.NormFloat64()) * 50
		inner64[i] = float64(x[i])*(1+1e-9) + 1e-12
	}
	for i := 5; i < len(x); i += 101 { // some are NaN or Inf
		norms[i] = []float64{math.NaN(), math.Inf(1)}[i%2]
		inner64[i+1] = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[i%3]
	}
	integers, small, products := make([]uint16, len(x)), make([]float64, len(x)), make([]int32, len(x))
	for i := range integers {
		integers[i] = uint16(random.Uint32())
		small[i] = math.Ldexp(inner64[i], -130*(i%2)) // some below 2⁻¹²⁶, some NaN or Inf
		products[i] = int32(random.Uint32())
	}
	for name, compute := range map[string]func(dst []float32){
		"Exp32":          func(dst []float32) { Exp32(dst, x) },
		"Cos32":          func(dst []float32) { Cos32(dst, x) },
		"GaussianRow":    func(dst []float32) { GaussianRow(dst, x, norms, 30, -0.1, -69) },
		"GaussianRow64":  func(dst []float32) { GaussianRow(dst, inner64, norms, 30, -0.1, -69) },
		"RoundToFloat32": func(dst []float32) { RoundToFloat32(dst, small) },
		"GaussianRowInt": func(dst []float32) { // the result replaces the products in place
			ints := unsafe.Slice((*int32)(unsafe.Pointer(&dst[0])), len(dst))
			copy(ints, products)
			GaussianRow(dst, ints, norms, 1<<31, -1.0/(1<<27), -69)
		},
		"FromUint16": func(dst []float32) { FromUint16(dst, integers) },
		"Butterfly32": func(dst []float32) {
			copy(dst, x)
			Butterfly(dst[:2501], dst[2501:5002])
		},
	} {
		UsePath(Portable)
		want := make([]float32, len(x))
		compute(want)
		for _, path := range Paths() {
			UsePath(path)
			got := make([]float32, len(x))
			compute(got)
			for i := range got {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
					t.Fatalf("%s of %g (%d): %g on %v, %g in Go", name, x[i], i, got[i], path, want[i])
				}
			}
		}
	}
}

// TestSquaredDistances compares SquaredDistances with its formula, also in place, and checks that RoundToFloat32
// flushes numbers below 2⁻¹²⁶ to zero.
func TestSquaredDistances(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		inner := normals[float32](rand.New(rand.NewPCG(7, 8)), 77)
		norms, inPlace, dst := make([]float64, len(inner)), make([]float64, len(inner)), make([]float64, len(inner))
		for i, v := range inner {
			if i%10 == 3 {
				v, inner[i] = float32(math.NaN()), float32(math.NaN())
			}
			norms[i], inPlace[i] = 3*math.Abs(float64(v)), float64(v)
		}
		SquaredDistances(dst, inner, norms, 0.1)
		SquaredDistances(inPlace, inPlace, norms, 0.1)
		for i, v := range inner {
			if want := max(0, 0.1+norms[i]-2*float64(v)); (dst[i] != want || inPlace[i] != want) &&
				!(want != want && dst[i] != dst[i] && inPlace[i] != inPlace[i]) {
				t.Errorf("squared distance %d: %g, in place %g, want %g", i, dst[i], inPlace[i], want)
			}
			inPlace[i] = math.Ldexp(float64(v), -126)
		}
		RoundToFloat32(inner, inPlace)
		for i, v := range inPlace {
			if want := float32(v); want == want && inner[i] != want && math.Abs(v) >= 0x1p-126 || inner[i] != 0 &&
				math.Abs(v) < 0x1p-126 {
				t.Errorf("%g is rounded to %g", v, inner[i])
			}
		}
	})
}

// TestGaussianRow compares GaussianRow with its formula, and checks the flush to zero.
func TestGaussianRow(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(7, 8))
		const n = 77
		inner := normals[float32](random, n)
		norms, dst := make([]float64, n), make([]float32, n)
		for i := range norms {
			norms[i] = 200 * random.Float64()
		}
		GaussianRow(dst, inner, norms, 2, -0.5, -69)
		for i, v := range dst {
			a := -0.5 * max(0, 2+norms[i]-2*float64(inner[i]))
			want := math.Exp(a)
			if a < -69 {
				want = 0
			}
			if deviation := math.Abs(float64(v) - want); deviation > want*(math.Abs(a)*0x1p-24+0x1p-23) {
				t.Errorf("e^%g is %g, want %g", a, v, want)
			}
		}
		// Squared norm of points with integer coordinates, whose squared distances are a few units.
		const largeNorm = 2e9
		products := make([]int32, n)
		for i := range norms {
			products[i], norms[i] = largeNorm-int32(i%5), largeNorm-float64(i%7)
		}
		GaussianRow(dst, products, norms, largeNorm, -0.5, -69)
		for i, v := range dst {
			r2 := max(0, 2*(i%5)-i%7)
			if want := math.Exp(-0.5 * float64(r2)); math.Abs(float64(v)-want) > 0x1p-23*want {
				t.Errorf("a squared distance of %d gives %g, want %g", r2, v, want)
			}
		}
	})
}

// TestButterfly checks that butterflies compute the Walsh–Hadamard transform, H_ij = (−1)^(number of bits of i∧j).
func TestButterfly(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		const n = 64
		x := normals[float64](rand.New(rand.NewPCG(9, 10)), n)
		y := slices.Clone(x)
		for half := 1; half < n; half *= 2 {
			for i := 0; i < n; i += 2 * half {
				Butterfly(y[i:i+half], y[i+half:i+2*half])
			}
		}
		for i := range n {
			var want float64
			for j, v := range x {
				sign := 1.0
				for commonBits := i & j; commonBits > 0; commonBits &= commonBits - 1 {
					sign = -sign
				}
				want += sign * v
			}
			if math.Abs(y[i]-want) > 1e-13 {
				t.Fatalf("row %d: %g, want %g", i, y[i], want)
			}
		}
	})
}

// TestPaths checks that the names of the paths can be parsed, that the portable path is the first, and that the last
// one is in use.
func TestPaths(t *testing.T) {
	paths := Paths()
	if paths[0] != Portable || CurrentPath() != paths[len(paths)-1] {
		t.Errorf("paths %v, in use %v", paths, CurrentPath())
	}
	for path := range numPaths {
		if got, err := ParsePath(path.String()); err != nil || got != path {
			t.Errorf("%v: %v, %v", path, got, err)
		}
	}
	if _, err := ParsePath("sse"); err == nil {
		t.Error("ParsePath accepts sse")
	}
	if name := fmt.Sprint(Path(9)); name != "Path(9)" {
		t.Errorf("Path(9) prints as %q", name)
	}
}

// TestStridedVectors checks AddProduct and AddTransposeProduct for vectors with a stride, and that the elements between
// them are unchanged.
func TestStridedVectors(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		const rows, cols, k, xStride, uStride = 13, 37, 5, 41, 20
		random := rand.New(rand.NewPCG(11, 12))
		tile := normals[float32](random, rows*cols)
		x, u := normals[float64](random, xStride*k), normals[float64](random, uStride*k)
		x0, u0 := slices.Clone(x), slices.Clone(u)
		AddProduct(tile, cols, columns(x, k, cols, xStride), columns(u, k, rows, uStride))
		for c := range k {
			for r := range uStride {
				want := u0[c*uStride+r]
				for j := range cols {
					if r < rows {
						want += float64(tile[r*cols+j]) * x[c*xStride+j]
					}
				}
				if math.Abs(u[c*uStride+r]-want) > 1e-13 {
					t.Fatalf("u(%d, %d) is %g, want %g", r, c, u[c*uStride+r], want)
				}
			}
		}
		u = slices.Clone(u0)
		AddTransposeProduct(tile, cols, columns(x, k, cols, xStride), columns(u, k, rows, uStride), &Workspace{})
		for c := range k {
			for j := range xStride {
				want := x0[c*xStride+j]
				for r := range rows {
					if j < cols {
						want += float64(tile[r*cols+j]) * u[c*uStride+r]
					}
				}
				if math.Abs(x[c*xStride+j]-want) > 1e-13 {
					t.Fatalf("y(%d, %d) is %g, want %g", j, c, x[c*xStride+j], want)
				}
			}
		}
	})
}
