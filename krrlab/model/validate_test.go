package model

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/npy"
	"github.com/krrlab/lab/krrlab/points"
)

// TestValidate: a model that has been read is refused if any one of its parts does not fit or is not finite,
// in whatever form its points are, and whatever else it has.
func TestValidate(t *testing.T) {
	type change struct {
		what string
		fits bool
		set  func(m *Model)
	}
	changes := []change{
		{"nothing", true, func(*Model) {}},
		{"no scaling", true, func(m *Model) { m.Scaling = nil }},
		{"no names", true, func(m *Model) { m.Columns = nil }},
		{"the least λ", true, func(m *Model) { m.Lambda = math.SmallestNonzeroFloat64 }},
		{"the largest λ", true, func(m *Model) { m.Lambda = math.MaxFloat64 }},
		{"no features", false, func(m *Model) { m.X, m.Columns, m.Scaling = points.NewDense(7, 0, nil), nil, nil }},
		{"λ = 0", false, func(m *Model) { m.Lambda = 0 }},
		{"a name less", false, func(m *Model) { m.Columns = m.Columns[1:] }},
		{"scaling of more features", false, func(m *Model) { m.Scaling = scaled(4) }},
		{"scaling of no features", false, func(m *Model) { m.Scaling = scaled(0) }},
		{"an odd scaling", false, func(m *Model) { m.Scaling.Kind = "odd" }},
		{"a coefficient less", false, func(m *Model) { m.C = mat.NewDense(6, 3, nil) }},
		{"two columns of three labels", false, func(m *Model) { m.C = mat.NewDense(7, 2, nil) }},
		{"one label", false, func(m *Model) { m.C, m.Labels = mat.NewDense(7, 1, nil), []string{"a"} }},
		{"no label", false, func(m *Model) { m.C, m.Labels = mat.NewDense(7, 1, nil), []string{} }},
		{"two labels", true, func(m *Model) { m.C, m.Labels = mat.NewDense(7, 1, nil), []string{"a", "b"} }},
		{"two labels and columns", false, func(m *Model) { m.C, m.Labels = mat.NewDense(7, 2, nil), []string{"a", "b"} }},
		{"a kernel of no width", false, func(m *Model) { m.Kernel = kernel.Gaussian{} }},
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		changes = append(changes,
			change{"λ", false, func(m *Model) { m.Lambda = bad }},
			change{"the first coefficient", false, func(m *Model) { m.C.Set(0, 0, bad) }},
			change{"the last coefficient", false, func(m *Model) { m.C.Set(6, 2, bad) }},
			change{"a shift", false, func(m *Model) { m.Scaling.Shift[2] = bad }},
			change{"a scale", false, func(m *Model) { m.Scaling.Scale[0] = bad }},
			change{"a point", false, func(m *Model) {
				switch x := m.X.(type) {
				case *points.Dense:
					x.Data[20] = bad
				case *points.Dense32:
					x.Data[0] = float32(bad)
				case *points.CSR:
					x.Val[0] = bad
				}
			}})
	}
	for _, kind := range []string{"float64", "float32", "sparse"} {
		for _, c := range changes {
			m := random(kernels[0], kinds(7, 3, 1)[kind], 3, "a", "b", "c")
			m.Scaling, m.Columns = scaled(3), []string{"a", "b", "c"}
			task := m.Task()
			c.set(m)
			if err := m.validate(Info{Task: task.String()}); (err == nil) != c.fits {
				t.Errorf("%s points, %s: %v", kind, c.what, err)
			}
		}
	}
	if random(kernels[0], kinds(7, 3, 1)["float64"], 1).validate(Info{Task: "classification"}) == nil {
		t.Error("a classifier without labels")
	}
}

// TestFinite: the number that is not finite is named.
func TestFinite(t *testing.T) {
	if err := finite("number", []float64{0, -math.MaxFloat64, math.MaxFloat64}); err != nil {
		t.Error(err)
	}
	for i, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		v := make([]float64, 3)
		v[i] = bad
		if err := finite("number", v); err == nil || err.Error() != fmt.Sprintf("number %d is %g", i, bad) {
			t.Errorf("%g: %v", bad, err)
		}
	}
}

// TestSizes: sizes of 1 to 2³¹−1 are taken, so that the arrays are what is looked at next, and no others.
func TestSizes(t *testing.T) {
	const most = math.MaxInt32
	whole := save(t, random(kernels[0], points.NewDense(1, 1, nil), 1))
	for _, c := range []struct {
		n, d, t int
		taken   bool
	}{
		{1, 1, 1, true}, {most, 1, 1, true}, {1, most, 1, true}, {1, 1, most, true},
		{0, 1, 1, false}, {1, 0, 1, false}, {1, 1, 0, false}, {most + 1, 1, 1, false}, {1, most + 1, 1, false}, {1, 1, most + 1, false},
	} {
		b := rewrite(t, whole, "model.json", func(js []byte) []byte {
			text := string(js)
			for key, v := range map[string]int{"n": c.n, "d": c.d, "t": c.t} {
				text = strings.Replace(text, fmt.Sprintf(`"%s": 1`, key), fmt.Sprintf(`"%s": %d`, key, v), 1)
			}
			return []byte(text)
		})
		_, err := read(b)
		if refused := err != nil && strings.Contains(err.Error(), fmt.Sprintf("n=%d, d=%d, t=%d", c.n, c.d, c.t)); refused == c.taken {
			t.Errorf("n=%d, d=%d, t=%d: %v", c.n, c.d, c.t, err)
		}
	}
}

// TestTaken: the machine is asked about what is held beyond the small, and refuses what it has not.
func TestTaken(t *testing.T) {
	defer func(f func() int64, b int64) { available, small = f, b }(available, small)
	small = 100
	for _, c := range []struct {
		held, bytes, left int64
		fits              bool
	}{{0, 100, 1, true}, {0, 101, 1, false}, {60, 40, 1, true}, {60, 41, 41, false}, {60, 41, 42, true}, {60, 41, 0, true}} {
		available = func() int64 { return c.left }
		a := &archive{held: c.held}
		if err := a.take(c.bytes); (err == nil) != c.fits || a.held != c.held+c.bytes {
			t.Errorf("%+v: %v, %d held", c, err, a.held)
		}
	}
}

// TestTrialOfFar: differences are taken where the certain error of inner products is too large for the points that are
// predicted, though it is small enough for those of the fit; and not at a little more than the error.
func TestTrialOfFar(t *testing.T) {
	const n = 30
	x, z := points.NewDense(n, 1, nil), points.NewDense(n, 1, nil)
	for i := range n {
		x.Data[i] = 100 * float64(i) / n
		z.Data[i] = 2 * x.Data[i]
	}
	m := random(kernel.Gaussian{Sigma: 20}, x, 1)
	f := mustDecide(t, m, z, &Options{Float64: true})
	size, sum := maxAbs(f), mat.Norm(m.C, 1)
	bound := func(p points.Points) float64 { // of the accuracy that inner products have
		return 100 * sum / size * kernel.EntryError(m.Kernel, kernel.Float64, kernel.ExtentOf(points.NewPanel(p)))
	}
	for _, c := range []struct {
		z        points.Points
		accuracy float64
		want     kernel.Arithmetic
	}{
		{z, 1.01 * bound(z), kernel.Float64}, {z, 0.99 * bound(z), kernel.Differences}, {z, 1.01 * bound(x), kernel.Differences},
	} {
		p := &predictor{m: m, n: n, t: 1, x: points.NewPanel(x), z: points.NewPanel(c.z), work: make([]worker, accel.Threads())}
		p.cut(nil)
		if err := p.choose(t.Context(), &Options{Accuracy: c.accuracy, Float64: true}); err != nil || p.arith != c.want {
			t.Errorf("accuracy %g: %v, want %v, %v", c.accuracy, p.arith, c.want, err)
		}
	}
}

// TestElements: arrays of numbers of another kind than they should be are refused.
func TestElements(t *testing.T) {
	dense, sparse := random(kernels[0], kinds(7, 3, 1)["float64"], 1), random(kernels[0], kinds(7, 3, 1)["sparse"], 1)
	for _, c := range []struct {
		m     *Model
		entry string
		data  any
		shape []int
	}{
		{dense, "x.npy", make([]int32, 21), []int{7, 3}}, {dense, "x.npy", make([]int64, 21), []int{7, 3}}, {dense, "c.npy", make([]float32, 7), []int{7, 1}},
		{sparse, "x_indptr.npy", make([]int32, 8), []int{8}}, {sparse, "x_data.npy", make([]float32, 3), []int{3}},
	} {
		var b bytes.Buffer
		if err := npy.Write(&b, c.data, c.shape...); err != nil {
			t.Fatal(err)
		}
		_, err := read(rewrite(t, save(t, c.m), c.entry, func([]byte) []byte { return b.Bytes() }))
		if err == nil || !strings.Contains(err.Error(), ": elements are of type ") {
			t.Errorf("%s of %T: %v", c.entry, c.data, err)
		}
	}
}

// TestDealt: batches are dealt to ranks, each of which gets all of F, as one process has it.
func TestDealt(t *testing.T) {
	m, z := random(kernels[0], kinds(40, 4, 1)["float64"], 2), kinds(5*batchRows+7, 4, 2)["float64"]
	want := mustDecide(t, m, z, nil)
	for _, p := range []int{2, 3, 7} {
		var wg sync.WaitGroup
		for rank, c := range comm.Local(p, comm.Options{}) {
			wg.Go(func() {
				last, total := 0, 0
				f, err := m.Decision(t.Context(), z, &Options{Comm: c, Progress: func(d, n int) { last, total = d, n }})
				lo, hi := comm.Rows(5*batchRows+7, batchRows, rank, p)
				if err != nil || !mat.Equal(f, want) || last != hi-lo || total != hi-lo {
					t.Errorf("rank %d of %d: %d of %d points at last, want %d, %v", rank, p, last, total, hi-lo, err)
				}
			})
		}
		wg.Wait()
	}
}

// TestGivenRows: a model of a precomputed K whose points are no rows of it is refused, and does not reach beyond K(test, train).
func TestGivenRows(t *testing.T) {
	k, err := kernel.NewPrecomputed(points.NewDense(3, 3, []float64{2, 1, 0, 1, 2, 1, 0, 1, 2}))
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{Kernel: k, Lambda: 1, X: kernel.Rows(3), C: mat.NewDense(3, 1, []float64{1, 2, 3})}
	if _, err := read(save(t, m)); err != nil {
		t.Fatal(err)
	}
	for _, x := range []*points.Dense{points.NewDense(3, 1, []float64{0, 1, 3}), points.NewDense(3, 1, []float64{0, -1, 2}), points.NewDense(3, 1, []float64{0, 0.5, 2}), points.NewDense(3, 2, nil)} {
		m.X = x
		if err := m.check(); err == nil || !strings.Contains(err.Error(), "precomputed K") {
			t.Errorf("%v: %v", x.Data, err)
		}
	}
}
