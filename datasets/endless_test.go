package datasets

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestEndless checks that the first generated rows are the given ones, and that the others depend only on the seed
// and their index, not on the number of rows or threads.
func TestEndless(t *testing.T) {
	base := SyntheticDigits(30, 3)
	generate := func(d deformation, seed uint64, rows int) *Dataset {
		return must(generateEndless(t.Context(), base, d, seed, rows))
	}
	hundred := generate(endlessDeformation, 1, 100)
	pixels := func(d *Dataset, rows int) []float32 { return d.X.(*points.Dense32).Data[:784*rows] }
	if !slices.Equal(pixels(hundred, 30), pixels(base, 30)) ||
		strings.Contains(generate(endlessDeformation, 1, 30).Source, "generated from") {
		t.Error("the first rows are not the given ones")
	}
	if !strings.Contains(hundred.Source, "generated from synthetic-digits") {
		t.Errorf("source %q", hundred.Source)
	}
	if !slices.Equal(pixels(generate(endlessDeformation, 1, 75), 75), pixels(hundred, 75)) {
		t.Error("the rows depend on how many follow")
	}
	threads := accel.Threads()
	accel.SetThreads(3)
	again := generate(endlessDeformation, 1, 100)
	accel.SetThreads(threads)
	if !slices.Equal(pixels(again, 100), pixels(hundred, 100)) {
		t.Error("the rows depend on the number of threads")
	}
	row := func(d *Dataset, i int) []float32 { return d.X.(*points.Dense32).Row(i) }
	if slices.Equal(row(hundred, 30), row(hundred, 60)) || slices.Equal(row(hundred, 30),
		row(generate(endlessDeformation, 2, 31), 30)) {
		t.Error("a deformation is drawn twice")
	}
	for i := range 100 {
		if hundred.Class[i] != base.Class[i%30] {
			t.Errorf("row %d has class %d, its original %d", i, hundred.Class[i], base.Class[i%30])
		}
	}
	if undeformed := generate(deformation{}, 1, 60); !slices.Equal(pixels(undeformed, 60)[30*784:], pixels(base, 30)) {
		t.Error("no deformation deforms")
	}
	wantError(t, checkEndlessMemory(base, 1<<40, accel.AvailableMemory(0, 1)), "take fewer")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := generateEndless(ctx, base, endlessDeformation, 1, 1000); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

// TestDeformation checks the interpolation between pixels, and compares a random rotation and shift of a picture with
// its formula. The pixels of the picture are a linear function, for which the interpolation is exact.
func TestDeformation(t *testing.T) {
	const side = 9
	src := make([]float32, side*side)
	for i := range src {
		src[i] = float32(i)
	}
	deformer := newDeformer(deformation{}, side)
	if v := deformer.value(src, 2.25, 3.5); v != 0.5*(0.75*29+0.25*30)+0.5*(0.75*38+0.25*39) {
		t.Errorf("interpolated %g", v)
	}
	if deformer.value(src, -1, 0) != 0 || deformer.value(src, 0, side) != 0 || deformer.value(src, -0.5, 1) != 4.5 {
		t.Error("outside the picture there is not zero")
	}
	// The formula of a rotation and shift: pixel p has the value of the picture at c + R(p−c) + t.
	g := rng.New(5)
	u := g.Sub("affine")
	rotation := deformation{Rotation: 90, Shift: 3}
	deformer = newDeformer(rotation, side)
	got := make([]float32, side*side)
	deformer.apply(got, src, g)
	angle, tx, ty := 90*(2*u.Float64(2)-1)*math.Pi/180, 3*(2*u.Float64(0)-1), 3*(2*u.Float64(1)-1)
	for y := range side {
		for x := range side {
			px, py := float64(x-4), float64(y-4)
			wx, wy := 4+math.Cos(angle)*px-math.Sin(angle)*py+tx, 4+math.Sin(angle)*px+math.Cos(angle)*py+ty
			want := 0.0
			if wx >= 0 && wy >= 0 && wx <= side-1 && wy <= side-1 {
				want = math.Round(wx + side*wy) // the picture is linear, so the interpolation is exact
			} else if wx > -1 && wy > -1 && wx < side && wy < side {
				continue // between the border and nothing
			}
			if math.Abs(float64(got[y*side+x])-want) > 1e-9 { // both are whole numbers
				t.Errorf("pixel (%d, %d) is %g, want %g", x, y, got[y*side+x], want)
			}
		}
	}
}

// TestElasticField checks that the random displacement field has the root mean square of its formula, inside the
// picture and at its border, and that it is smooth.
func TestElasticField(t *testing.T) {
	const side, draws = 16, 200
	d := deformation{Alpha: 30, Sigma: 3}
	deformer := newDeformer(d, side)
	var sum, border float64
	for i := range draws {
		deformer.drawField(rng.New(1).Sub("test", uint64(i)))
		for axis := range deformer.field {
			for pixel, v := range deformer.field[axis] {
				sum += v * v
				if pixel < side {
					border += v * v
				}
			}
		}
	}
	want := d.Alpha / (2 * d.Sigma * math.Sqrt(3*math.Pi))
	for name, got := range map[string]float64{"inside": math.Sqrt(sum / (2 * draws * side * side)),
		"at the border": math.Sqrt(border / (2 * draws * side))} {
		// Some 2·200·(16/(2√π·3))² = 900 independent values, for the border 200: 5 standard errors.
		if math.Abs(got/want-1) > 0.18 {
			t.Errorf("the field has the root mean square %.3g %s, want %.3g", got, name, want)
		}
	}
	// The field is smooth: neighbors differ by about 1/(√2σ) of its size.
	var largestStep float64
	for y := range side {
		for x := range side - 1 {
			largestStep = max(largestStep, math.Abs(deformer.field[0][y*side+x+1]-deformer.field[0][y*side+x]))
		}
	}
	if largestStep > want {
		t.Errorf("neighbouring pixels are displaced by %g more", largestStep)
	}
}

// TestSyntheticDigits checks that all ten digits occur, and that the first rows do not depend on the number of rows.
func TestSyntheticDigits(t *testing.T) {
	data := must(Load(context.Background(), "synthetic-digits", &LoadOptions{N: 300}))
	for digit, rows := range data.Train.rowsOfClasses() {
		if rows < 12 { // the expectation is 30, and the standard deviation 5.2
			t.Errorf("%d of the digit %d", rows, digit)
		}
	}
	if a, b := SyntheticDigits(5, 1), SyntheticDigits(9, 1); !slices.Equal(a.X.(*points.Dense32).Data,
		b.X.(*points.Dense32).Data[:5*784]) {
		t.Error("the first rows depend on n")
	}
}

// TestEndlessLoad loads 12 rows of mnist-infinite from a set of five pictures laid out like MNIST.
func TestEndlessLoad(t *testing.T) {
	dir := t.TempDir()
	digits := SyntheticDigits(5, 1)
	images, labels := []byte{0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 28, 0, 0, 0, 28}, []byte{0, 0, 8, 1, 0, 0, 0, 5}
	for _, v := range digits.X.(*points.Dense32).Data {
		images = append(images, byte(v))
	}
	for _, c := range digits.Class {
		labels = append(labels, byte(c))
	}
	for _, part := range []string{"train", "t10k"} {
		writeFile(t, dir, "mnist/"+part+"-images-idx3-ubyte", images)
		writeFile(t, dir, "mnist/"+part+"-labels-idx1-ubyte", labels)
	}
	load := func(name string, n int) *TrainTest {
		return must(Load(t.Context(), name, &LoadOptions{Dirs: []string{dir}, N: n}))
	}
	endless, mnist := load("mnist-infinite", 12), load("mnist", 12)
	if endless.Train.Len() != 12 || mnist.Train.Len() != 5 || endless.Test.Len() != 5 {
		t.Errorf("%d and %d rows, want 12 and 5", endless.Train.Len(), mnist.Train.Len())
	}
	if !slices.Equal(endless.Train.X.(*points.Bytes).Data[:5*784], mnist.Train.X.(*points.Bytes).Data) {
		t.Error("the first rows are not MNIST's")
	}
	if endless.Train.Name != "mnist-infinite" || !strings.Contains(endless.Train.Source, "generated from MNIST") ||
		!strings.Contains(endless.Train.Note, "generated from MNIST") {
		t.Errorf("name %q, source %q, note %q", endless.Train.Name, endless.Train.Source, endless.Train.Note)
	}
	if note := (&Info{N: 5}).describeRows(12, 12); note != "5 rows and 7 generated from them" {
		t.Errorf("5 given rows of 12: note %q", note)
	}
}
