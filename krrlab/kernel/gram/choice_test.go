package gram_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// shiftedPoints returns dense points with shift added to every coordinate.
func shiftedPoints(seed uint64, n, d int, shift float64) *points.Dense {
	x := pointsInFormats(seed, n, d, 1)[0].(*points.Dense)
	for i := range x.Data {
		x.Data[i] += shift
	}
	return x
}

// errorNorm returns ‖E‖₂ for E = K̃ − K, where K comes from Eval.
func errorNorm(t *testing.T, m *gram.Matrix) float64 {
	t.Helper()
	n := m.Dim()
	storageError := mat.NewDense(n, n, nil)
	testkit.OK(t, m.DenseTo(ctx, storageError))
	storageError.Sub(storageError, evalMatrix(m.Kernel(), m.Points()))
	v := testkit.Eigenvalues(t, mat.NewSymDense(n, storageError.RawMatrix().Data))
	return max(-v[0], v[n-1])
}

// TestPredictedErrorNorm checks that the predicted ‖E‖₂ is at least half and at most twenty times the true one, for
// points near the origin and far from it.
func TestPredictedErrorNorm(t *testing.T) {
	for _, shift := range []float64{0, 3, 30, 1e3} {
		x := shiftedPoints(1, 160, 10, shift)
		for _, k := range kernels[:4] {
			for _, storage := range []gram.Storage{gram.Float32, gram.Float64, gram.Recompute, gram.Fixed16} {
				for _, accuracy := range []float64{1e-20, 1e3} {
					lambda := 1.0
					if storage == gram.Fixed16 {
						lambda = 1e4 // large enough for the error of 16 bits
					}
					m := mustNew(t, k, x, lambda, &gram.Options{Storage: storage, TileSize: 64, Accuracy: accuracy})
					choice, norm := m.Choice(), errorNorm(t, m)
					t.Logf("%v moved by %g, %v/%v centered=%v: ‖E‖₂ = %.2g, predicted %.2g", k, shift, choice.Storage,
						choice.Arithmetic, choice.Centered, norm, choice.Error)
					if norm > 2*choice.Error+1e-12 || choice.Error > 20*norm+1e-12 {
						t.Errorf("%v moved by %g, %v: ‖E‖₂ = %.2g, predicted %.2g", k, shift, choice, norm,
							choice.Error)
					}
				}
			}
		}
	}
}

// TestAutoStorage checks which storage and arithmetic are chosen for points near the origin and far from it, loose and
// tight accuracies, and ample and scarce memory. The true ‖E‖₂ must be at most twice the accuracy λ/10, and the memory
// limit must be kept.
func TestAutoStorage(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(2) // the memory need depends on the number of threads
	const n = 200
	gaussian := kernel.Gaussian{Sigma: 2}
	for _, c := range []struct {
		shift, lambda float64
		memory        int64
		storage       gram.Storage
		arithmetic    kernel.Arithmetic
		centered      bool
	}{
		{0, 1e-2, 0, gram.Float32, kernel.Float32, false},
		{100, 1e-2, 0, gram.Float32, kernel.Float32, true},
		{0, 1e-7, 0, gram.Float64, kernel.Float64, false},
		{1e5, 1e-7, 0, gram.Float64, kernel.Float64, true},
		{0, 1e-2, 100e3, gram.Recompute, kernel.Float32, false},
		{100, 1e-2, 100e3, gram.Recompute, kernel.Float32, true},
		{0, 1e-7, 150e3, gram.Recompute, kernel.Float64, false},
		{0, 1e-2, 150e3, gram.Float32, kernel.Float32, false},
	} {
		m := mustNew(t, gaussian, shiftedPoints(3, n, 5, c.shift), c.lambda,
			&gram.Options{Memory: accel.Budget{Limit: c.memory}, TileSize: 32})
		got := m.Choice()
		if got.Storage != c.storage || got.Arithmetic != c.arithmetic || got.Centered != c.centered {
			t.Errorf("moved by %g, λ = %g, memory %d: %v", c.shift, c.lambda, c.memory, got)
		}
		if norm := errorNorm(t, m); norm > c.lambda/5 || got.Accuracy != c.lambda/10 {
			t.Errorf("moved by %g, λ = %g: ‖E‖₂ = %.2g, want at most 2·%.2g", c.shift, c.lambda, norm, got.Accuracy)
		}
		if c.memory > 0 && got.Bytes > c.memory {
			t.Errorf("holds %d bytes of %d allowed", got.Bytes, c.memory)
		}
	}
}

// TestPreferredAccuracy checks Options.PreferredAccuracy. Float64 storage is chosen for it if it fits. If it does not
// fit, float32 is chosen as long as Accuracy is met.
func TestPreferredAccuracy(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(2) // the memory need depends on the number of threads
	x := shiftedPoints(3, 200, 5, 0)
	for _, c := range []struct {
		preferred float64
		memory    int64
		want      gram.Storage
	}{
		{0, 0, gram.Float32},
		{1, 0, gram.Float32}, // not stricter than Accuracy, so without effect
		{1e-9, 0, gram.Float64},
		{1e-9, 150e3, gram.Float32},
		{1e-9, 100e3, gram.Recompute},
	} {
		m := mustNew(t, kernel.Gaussian{Sigma: 2}, x, 1e-2, &gram.Options{Memory: accel.Budget{Limit: c.memory}, TileSize: 32,
			PreferredAccuracy: c.preferred})
		got := m.Choice()
		testkit.Equal(t, got.Storage, c.want, c.preferred, c.memory, got)
		if norm := errorNorm(t, m); norm > 1e-3 || c.want == gram.Float64 && norm > c.preferred {
			t.Errorf("preferred %g, memory %d: ‖E‖₂ = %.2g", c.preferred, c.memory, norm)
		}
	}
}

// TestFixed16 checks that 16-bit storage is refused for kernels with values outside [0, 1] and for a predicted ‖E‖₂
// above λ/2, and that the prediction bounds the true norm.
func TestFixed16(t *testing.T) {
	x := pointsInFormats(4, 200, 3, 1)[1]
	for want, c := range map[string]struct {
		k      kernel.Kernel
		lambda float64
	}{
		"values in [0, 1]": {kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}, 1},
		"more than λ/2":    {kernel.Gaussian{Sigma: 2}, 1e-5},
	} {
		_, err := gram.New(ctx, c.k, x, c.lambda, &gram.Options{Storage: gram.Fixed16})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "take float32") {
			t.Errorf("%v, λ = %g: error %v, want one with %q", c.k, c.lambda, err, want)
		}
	}
	m := mustNew(t, kernel.Gaussian{Sigma: 2}, x, 1e-2, &gram.Options{Storage: gram.Fixed16})
	predicted := m.Choice().Error
	if norm := errorNorm(t, m); norm > predicted || m.Storage().String() != "fixed16" {
		t.Errorf("‖E‖₂ = %.2g, predicted %.2g", norm, predicted)
	}
	for _, ratio := range []float64{1.9, 2.1} { // λ/‖E‖₂
		_, err := gram.New(ctx, kernel.Gaussian{Sigma: 2}, x, ratio*predicted,
			&gram.Options{Storage: gram.Fixed16, Accuracy: 1e-3})
		testkit.Equal(t, (err == nil), (ratio > 2), predicted, ratio, err)
	}
}

// TestFixed16IfFloat32DoesNotFit checks that a matrix that does not fit in float32 is stored in 16 bits if
// Options.ExactResiduals is set and 16 bits are accurate enough, and is recomputed otherwise.
func TestFixed16IfFloat32DoesNotFit(t *testing.T) {
	for _, c := range []struct {
		k              kernel.Kernel
		lambda         float64
		exactResiduals bool
		memory         int64
		want           gram.Storage
	}{
		{kernels[0], 0.1, true, 17e5, gram.Fixed16}, {kernels[0], 0.1, true, 3e6, gram.Float32},
		{kernels[0], 0.1, true, 9e5, gram.Recompute}, {kernels[0], 0.1, false, 17e5, gram.Recompute},
		{kernels[0], 1e-5, true, 17e5, gram.Recompute},
		{kernel.Polynomial{Gamma: 1, Degree: 2}, 0.1, true, 17e5, gram.Recompute},
	} {
		m := mustNew(t, c.k, pointsInFormats(4, 1000, 3, 1)[1], c.lambda, &gram.Options{TileSize: 50,
			Memory: accel.Budget{Limit: c.memory}, ExactResiduals: c.exactResiduals})
		if got := m.Choice(); got.Storage != c.want || got.Bytes > c.memory {
			t.Errorf("%v: %v", c, got)
		}
	}
}

// TestMemoryError checks that a matrix that exceeds the memory limit yields an error that lists the storages
// that fit.
func TestMemoryError(t *testing.T) {
	x := pointsInFormats(4, 1000, 3, 1)[1]
	_, err := gram.New(ctx, kernels[0], x, 0.1, &gram.Options{Storage: gram.Float64, Memory: accel.Budget{Limit: 4e6}, TileSize: 50})
	var memoryError *accel.MemoryError
	if !errors.As(err, &memoryError) || memoryError.Budget.Limit != 4e6 || memoryError.Need < 4e6 {
		t.Fatalf("error %v", err)
	}
	testkit.Contains(t, err.Error(), "1000 points as float64 would take 4.", "4 MB of 4 MB are free: float32 (2.",
		"fixed16 (1.", "recompute (", " fits, or allow more by --memory")
	_, err = gram.New(ctx, kernel.Polynomial{Gamma: 1, Degree: 2}, x, 0.1,
		&gram.Options{Storage: gram.Float64, Memory: accel.Budget{Limit: 4e6}, TileSize: 50})
	if !errors.As(err, &memoryError) || strings.Contains(memoryError.Advice, "fixed16") ||
		strings.Count(memoryError.Advice, "fits") != 2 {
		t.Errorf("the error for a kernel with values outside [0, 1] advises fixed16: %v", err)
	}
	_, err = gram.New(ctx, kernels[0], x, 0.1, &gram.Options{Memory: accel.Budget{Limit: 1000}})
	if !errors.As(err, &memoryError) || memoryError.Advice != "allow more by --memory" ||
		!strings.Contains(err.Error(), "as recompute") {
		t.Errorf("error %v", err)
	}
}

// TestPeriodicRows checks that the rows sampled to predict ‖E‖₂ include points of every kind, although the kind of a
// point repeats with a fixed period of rows, or only ten points are outliers.
func TestPeriodicRows(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		shift func(i int) float64
	}{
		{"every second row shifted", 2048, func(i int) float64 { return 100 * float64(i%2) }},
		{"shift by row modulo 5", 5120, func(i int) float64 { return 60 * float64(i%5) }},
		{"ten outliers", 2500, func(i int) float64 {
			if i%250 == 17 {
				return 3e4
			}
			return 0
		}},
	} {
		x := shiftedPoints(5, c.n, 8, 0)
		for i := range c.n {
			for j := range x.Row(i) {
				x.Row(i)[j] += c.shift(i)
			}
		}
		k := kernel.Gaussian{Sigma: 2}
		m := mustNew(t, k, x, 0.01, nil)
		norm := powerNorm(t, m, c.n, 8) // products with float32 tiles add about 1e-6
		if choice := m.Choice(); norm > 2*choice.Error+1e-5 || choice.Error > choice.Accuracy {
			t.Errorf("%s: ‖E‖₂ = %.2g: %v", c.name, norm, choice)
		}
	}
}

// TestFloat32ProductError compares products with float32 tiles with float64 products of the same stored tiles. The
// error must be at most 4u(rms·√n·‖v‖₂ + ‖Kv‖₂) for random vectors and for the leading eigenvector, also at scales
// where float32 would overflow or underflow.
func TestFloat32ProductError(t *testing.T) {
	const n, u = 1200, 0x1p-24
	x := pointsInFormats(6, n, 8, 1)[1]
	m := mustNew(t, kernel.Gaussian{Sigma: 4}, x, 1, &gram.Options{Storage: gram.Float32})
	k := mat.NewDense(n, n, nil)
	testkit.OK(t, m.DenseTo(ctx, k))
	rms := mat.Norm(k, 2) / n // mat.Norm(k, 2) is the Frobenius norm
	eigenvector := mat.NewDense(n, 1, nil)
	for i := range n {
		eigenvector.Set(i, 0, 1)
	}
	for range 10 {
		var product mat.Dense
		product.Mul(k, eigenvector)
		eigenvector.Scale(1/mat.Norm(&product, 2), &product)
	}
	for name, v := range map[string]*mat.Dense{"random": gaussianMatrix(1, n, 3), "leading": eigenvector} {
		for _, scale := range []float64{1, 1e-60, 1e60, 1e-290, 1e300} {
			var src, want mat.Dense
			src.Scale(scale, v)
			want.Mul(k, &src)
			_, cols := src.Dims()
			got := mat.NewDense(n, cols, nil)
			testkit.OK(t, m.KMulTo(ctx, got, &src))
			got.Scale(1/scale, got)
			want.Scale(1/scale, &want)
			for c := range cols {
				var difference mat.VecDense
				difference.SubVec(got.ColView(c), want.ColView(c))
				bound := 4 * u * (rms*math.Sqrt(n)*mat.Norm(v.ColView(c), 2) + mat.Norm(want.ColView(c), 2))
				norm := mat.Norm(&difference, 2)
				t.Logf("%s × %g: error %.2g, bound %.2g", name, scale, norm, bound)
				if !(norm <= bound) {
					t.Errorf("%s × %g: error %.2g of the product, bound %.2g", name, scale, norm, bound)
				}
			}
		}
	}
}

func ExampleNew() {
	x := points.NewDense(4, 1, []float64{0, 1, 2, 3})
	m, err := gram.New(ctx, kernel.Gaussian{Sigma: 1}, x, 0.5, nil)
	if err != nil {
		panic(err)
	}
	y := mat.NewDense(4, 1, nil)
	if err := m.MulTo(ctx, y, mat.NewDense(4, 1, []float64{1, 0, 0, 0})); err != nil {
		panic(err)
	}
	fmt.Printf("%v, λ = %v: first column %.4f\n", m.Storage(), m.Lambda(), y.RawMatrix().Data)
	// Output:
	// float32, λ = 0.5: first column [1.5000 0.6065 0.1353 0.0111]
}

// TestSameAs checks that Options.SameAs reproduces an earlier matrix bit for bit, whatever Auto would choose for the
// new accuracy.
func TestSameAs(t *testing.T) {
	k := kernel.Gaussian{Sigma: 2}
	x := shiftedPoints(3, 300, 5, 4)
	src := gaussianMatrix(4, 300, 2)
	for _, opts := range []gram.Options{
		{Storage: gram.Float64}, {Storage: gram.Float32, Accuracy: 1e3}, {Storage: gram.Float32, Accuracy: 1e-20},
		{Storage: gram.Recompute, Accuracy: 1e3}, {Storage: gram.Recompute, Accuracy: 1e-20}, {Storage: gram.Fixed16},
	} {
		previous := mustNew(t, k, x, 100, &opts)
		want, got := mat.NewDense(300, 2, nil), mat.NewDense(300, 2, nil)
		testkit.OK(t, previous.MulTo(ctx, want, src))
		choice := previous.Choice()
		for _, accuracy := range []float64{1e-20, 1e3} {
			m := mustNew(t, k, x, 100, &gram.Options{SameAs: &choice, Accuracy: accuracy})
			testkit.OK(t, m.MulTo(ctx, got, src))
			if c := m.Choice(); c.Storage != choice.Storage || c.Arithmetic != choice.Arithmetic ||
				c.Centered != choice.Centered || !mat.Equal(got, want) {
				t.Errorf("SameAs gives\n%v\nwant\n%v", c, choice)
			}
		}
		var memoryError *accel.MemoryError
		_, err := gram.New(ctx, k, x, 100, &gram.Options{SameAs: &choice, Memory: accel.Budget{Limit: 1000}})
		if !errors.As(err, &memoryError) ||
			!strings.HasSuffix(memoryError.Item, "as "+choice.Storage.String()) {
			t.Errorf("SameAs with %v in 1 kB: error %v", choice.Storage, err)
		}
	}
	other := gram.Choice{Storage: gram.Float64, Arithmetic: kernel.Float32}
	testkit.Fails(t, testkit.ErrOf(gram.New(ctx, k, x, 100, &gram.Options{SameAs: &other})), "do not allow")
}
