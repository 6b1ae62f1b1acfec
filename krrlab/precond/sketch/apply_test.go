package sketch_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

// rows32 returns n rows to sketch in float32, with the row strides ldd of dst and lds of src.
func rows32(dst []float32, ldd int, src []float32, lds, n int) sketch.Rows32 {
	return sketch.Rows32{Dst: dst, DstStride: ldd, Src: src, SrcStride: lds, Count: n}
}

// rows64 returns n rows to sketch in float64, with the row strides ldd of dst and lds of src.
func rows64(dst []float64, ldd int, src []float64, lds, n int) sketch.Rows64 {
	return sketch.Rows64{Dst: dst, DstStride: ldd, Src: src, SrcStride: lds, Count: n}
}

// checkProduct compares Apply32 and Apply64, for rows with strides, with products with the dense matrix S. The numbers
// between the rows must not be changed.
func checkProduct(t *testing.T, op sketch.Operator, rows int) {
	t.Helper()
	m, s := op.Dims()
	matrix := matrixOf(t, op)
	const gapX, gapY = 3, 2 // numbers between two rows of src and of dst
	const gapValue = 99
	lds, ldd := m+gapX, s+gapY
	src := normalVectors(rows, lds, 7)
	src32 := make([]float32, len(src))
	for i, v := range src {
		src32[i] = float32(v)
		src[i] = float64(src32[i])
	}
	dst, dst32 := make([]float64, rows*ldd), make([]float32, rows*ldd)
	for i := range dst {
		dst[i], dst32[i] = gapValue, gapValue
	}
	var w sketch.Workspace
	op.Apply64(rows64(dst, ldd, src, lds, rows), &w)
	op.Apply32(rows32(dst32, ldd, src32, lds, rows), &w)
	for row := range rows {
		x := src[row*lds : row*lds+m]
		norm := math.Sqrt(floats.Dot(x, x))
		for i := range ldd {
			got, got32 := dst[row*ldd+i], float64(dst32[row*ldd+i])
			if i >= s {
				if got != gapValue || got32 != gapValue {
					t.Fatalf("%d→%d: wrote behind row %d", m, s, row)
				}
				continue
			}
			want := floats.Dot(matrix[i], x)
			size := norm * math.Sqrt(floats.Dot(matrix[i], matrix[i]))
			// A row of S has at most 1,000 entries, so float32 sums have errors far below 1000·2⁻²⁴.
			if !(math.Abs(got-want) <= 1e-13*size) || !(math.Abs(got32-want) <= 3e-6*size) {
				t.Fatalf("%T %d→%d: (Sx)_%d of row %d is %v in float64 and %v in float32, want %v", op, m, s, i, row,
					got, got32, want)
			}
		}
	}
}

// TestApply compares products with those of the dense matrix, for sizes around powers of two, around the block sizes
// of the transform, and 1. Compositions are sketched in many rows, and may be nested.
func TestApply(t *testing.T) {
	for _, d := range []sketch.Dist{sketch.CountSketch{}, sketch.SRHT{}, sketch.Gaussian{}} {
		for _, m := range []int{1, 2, 3, 5, 7, 8, 9, 16, 31, 33, 64, 100, 127, 257, 1000} {
			for _, s := range []int{1, 2, 7, 60, m} {
				if _, srht := d.(sketch.SRHT); srht && s > m {
					continue
				}
				checkProduct(t, sampleOperator(t, d, m, s, rng.New(3)), 4)
			}
		}
	}
	for _, d := range dists[3:] {
		checkProduct(t, sampleOperator(t, d, 77, 9, rng.New(3)), 300)
	}
	inner := sketch.Composition{{Dist: sketch.SRHT{}, Width: 50}, {Dist: sketch.CountSketch{}}}
	nested := sketch.Composition{{Dist: sketch.CountSketch{}, Width: 70}, {Dist: inner, Width: 40},
		{Dist: inner[0].Dist, Width: 30}, {Dist: sketch.Gaussian{}}}
	checkProduct(t, sampleOperator(t, nested, 77, 9, rng.New(3)), 5)
}

// TestLongTransform compares a few numbers of transforms that are longer than the first cache with sums over all
// entries.
func TestLongTransform(t *testing.T) {
	for _, m := range []int{4095, 4097, 5000, 8192, 9000, 13000, 16384} {
		const s = 500
		op := sampleOperator(t, sketch.SRHT{}, m, s, rng.New(uint64(m))).(*sketch.SRHTOperator)
		x := normalVectors(1, m, 5)
		x32 := make([]float32, m)
		for i, v := range x {
			x32[i] = float32(v)
		}
		y, y32 := make([]float64, s), make([]float32, s)
		var w sketch.Workspace
		op.Apply64(rows64(y, s, x, m, 1), &w)
		op.Apply32(rows32(y32, s, x32, m, 1), &w)
		for i := 0; i < s; i += 17 {
			row, _ := op.Row(i)
			var want float64
			for j, v := range x {
				sign := op.Sign(j)
				for common := row & j; common != 0; common &= common - 1 {
					sign = -sign // H_ij = (−1)^(number of bits of i∧j)
				}
				want += sign * v / math.Sqrt(s)
			}
			if math.Abs(y[i]-want) > 1e-11 || math.Abs(float64(y32[i])-want) > 1e-4 {
				t.Fatalf("m=%d, row %d: %v and %v, want %v", m, row, y[i], y32[i], want)
			}
		}
	}
}

// FuzzApply compares products with those of the dense matrix for arbitrary sizes and seeds.
func FuzzApply(f *testing.F) {
	f.Add(uint16(100), uint16(30), uint8(3), uint8(0), uint64(1))
	f.Add(uint16(1), uint16(1), uint8(1), uint8(1), uint64(2))
	f.Add(uint16(65), uint16(128), uint8(2), uint8(1), uint64(3))
	f.Add(uint16(511), uint16(3), uint8(9), uint8(2), uint64(4))
	f.Fuzz(func(t *testing.T, m, s uint16, rows, which uint8, seed uint64) {
		d := dists[int(which)%3]
		op, err := d.Sample(int(m%600), int(s%600), rng.New(seed))
		if err != nil {
			if m%600 > 0 && s%600 > 0 && (d != sketch.SRHT{} || s%600 <= m%600) {
				t.Fatal(err)
			}
			return
		}
		checkProduct(t, op, int(rows%20))
	})
}

// TestMatrixApply checks Apply for whole matrices with a stride. It must have the same bits for any number of
// threads, report its progress, and be canceled. The last row must be the sketch of the last row alone.
func TestMatrixApply(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	const m, s = 50, 12
	for _, n := range []int{1, 255, 256, 257, 600} {
		wide := points.NewDense32(n, m+5, nil)
		for i, v := range normalVectors(n, m+5, 2) {
			wide.Data[i] = float32(v)
		}
		z := &points.Dense32{N: n, D: m, Stride: m + 5, Data: wide.Data}
		for _, dist := range dists {
			op := sampleOperator(t, dist, m, s, rng.New(9))
			var first []float32
			for _, threads := range []int{1, 2, 5} {
				accel.SetThreads(threads)
				var calls []int
				out := testkit.Must(sketch.Apply(t.Context(), op, z, func(done, total int) {
					if calls = append(calls, done); total != n {
						t.Errorf("progress of %d rows, want %d", total, n)
					}
				}))
				if !slices.IsSorted(calls) || calls[len(calls)-1] != n {
					t.Errorf("progress %v, want ascending to %d", calls, n)
				}
				if first == nil {
					first = out.Data
				}
				if !slices.Equal(first, out.Data) {
					t.Errorf("%v, n=%d: %d threads change the result", dist, n, threads)
				}
			}
			last := make([]float32, s)
			op.Apply32(rows32(last, s, z.Row(n-1), m, 1), &sketch.Workspace{})
			for i, v := range last {
				if math.Abs(float64(v-first[(n-1)*s+i])) > 1e-5 {
					t.Fatalf("%v: the last row is %v, alone %v", dist, first[(n-1)*s:], last)
				}
			}
		}
	}
	testkit.CheckCancellation(t, func(ctx context.Context) error {
		return testkit.ErrOf(sketch.Apply(ctx, sampleOperator(t, sketch.SRHT{}, 4, 2, rng.New(1)),
			points.NewDense32(3, 4, nil), nil))
	})
}

// TestSampleFromStream checks that a draw depends on the stream and the sizes only, that a Gaussian sketch of s rows is
// the scaled beginning of one of 2s rows, and that the SRHT samples rows without replacement.
func TestSampleFromStream(t *testing.T) {
	for _, d := range dists {
		seed1, seed1Again, seed2 := matrixOf(t, sampleOperator(t, d, 40, 8, rng.New(1))),
			matrixOf(t, sampleOperator(t, d, 40, 8, rng.New(1))),
			matrixOf(t, sampleOperator(t, d, 40, 8, rng.New(2)))
		if fmt.Sprint(seed1) != fmt.Sprint(seed1Again) || fmt.Sprint(seed1) == fmt.Sprint(seed2) {
			t.Errorf("%v: the same stream gives different draws, or two streams the same", d)
		}
	}
	short, long := matrixOf(t, sampleOperator(t, sketch.Gaussian{}, 30, 6, rng.New(1))),
		matrixOf(t, sampleOperator(t, sketch.Gaussian{}, 30, 12, rng.New(1)))
	for i, row := range short {
		for j, v := range row {
			if math.Abs(v-math.Sqrt2*long[i][j]) > 1e-15 {
				t.Fatalf("row %d of a gaussian is not that of one with twice as many rows, scaled", i)
			}
		}
	}
	op := sampleOperator(t, sketch.SRHT{}, 30, 32, rng.New(1)).(*sketch.SRHTOperator)
	for i := range 32 {
		if row, order := op.Row(i); row != i || order != 32 {
			t.Fatalf("with s = M row %d of S is row %d of H: sampled with replacement", i, row)
		}
	}
}

// TestErrorsAndPanics checks the errors of sketches that cannot exist or exceed the memory, the parsing of names, and
// the panics for slices of the wrong length.
func TestErrorsAndPanics(t *testing.T) {
	for _, test := range []struct {
		d    sketch.Dist
		m, s int
		want string
	}{
		{sketch.Gaussian{}, 1 << 30, 1 << 30, "GB"},
		{sketch.Composition{}, 5, 3, "no sketches"},
		{sketch.Composition{{Dist: sketch.SRHT{}}, {Dist: sketch.Gaussian{}}}, 5, 3, "width 0"},
		{sketch.Composition{{Dist: sketch.SRHT{}, Width: 4}, {Dist: sketch.Gaussian{}, Width: 2}}, 5, 3,
			"ends with 2 numbers, 3"},
		{sketch.Composition{{Dist: sketch.SRHT{}, Width: 9}, {Dist: sketch.Gaussian{}, Width: 2}}, 5, 2, "s ≤ 8"},
	} {
		testkit.Fails(t, testkit.ErrOf(test.d.Sample(test.m, test.s, rng.New(1))), test.want)
	}
	for _, name := range []string{"countsketch", "srht", "gaussian"} {
		if d, err := sketch.Parse(name); err != nil || d.String() != name {
			t.Errorf("Parse(%q) = %v, %v", name, d, err)
		}
	}
	testkit.Fails(t, testkit.ErrOf(sketch.Parse("fft")), "want countsketch, srht or gaussian")
	empty := sampleOperator(t, sketch.Gaussian{}, 10, 4, rng.New(1))
	empty.Apply32(rows32(nil, 4, nil, 10, 0), nil)
	empty.Apply64(rows64(nil, 4, nil, 10, 0), nil)
	op := sampleOperator(t, sketch.SRHT{}, 10, 4, rng.New(1))
	testkit.Panics(t, map[string]func(){
		"short source": func() {
			op.Apply32(rows32(make([]float32, 8), 4, make([]float32, 19), 10, 2), &sketch.Workspace{})
		},
		"short destination": func() {
			op.Apply64(rows64(make([]float64, 7), 4, make([]float64, 20), 10, 2), &sketch.Workspace{})
		},
		"small stride": func() {
			op.Apply64(rows64(make([]float64, 8), 4, make([]float64, 20), 9, 2), &sketch.Workspace{})
		},
		"wrong length": func() { sketch.Apply(t.Context(), op, points.NewDense32(3, 9, nil), nil) },
	})
}

// TestApplyAllocations checks that Apply32 and Apply64 allocate nothing after the first use of a workspace.
func TestApplyAllocations(t *testing.T) {
	for _, d := range []sketch.Dist{sketch.CountSketch{}, sketch.SRHT{},
		sketch.Composition{{Dist: sketch.CountSketch{}, Width: 64}, {Dist: sketch.SRHT{}}}} {
		op := sampleOperator(t, d, 100, 10, rng.New(1))
		src, dst := make([]float64, 500), make([]float64, 50)
		src32, dst32 := make([]float32, 500), make([]float32, 50)
		var w sketch.Workspace
		count := testkit.AllocationCount(10, func() {
			op.Apply64(rows64(dst, 10, src, 100, 5), &w)
			op.Apply32(rows32(dst32, 10, src32, 100, 5), &w)
		})
		testkit.Equal(t, count, 0, d)
	}
}
