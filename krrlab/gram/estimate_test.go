package gram

import (
	"math"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/rng"
)

// withSpectrum returns QDQᵀ, Q random orthogonal.
func withSpectrum(seed uint64, d []float64) *mat.Dense {
	n := len(d)
	a := mat.NewDense(n, n, nil)
	rng.New(seed).Normals(a.RawMatrix().Data, 0)
	var qr mat.QR
	qr.Factorize(a)
	var q, e mat.Dense
	qr.QTo(&q)
	e.Mul(&q, mat.NewDiagDense(n, d))
	e.Mul(&e, q.T())
	return &e
}

// TestForm: every row of the sample is formed once, whatever the number of blocks.
func TestForm(t *testing.T) {
	for _, n := range []int{1, sampleBlock - 1, sampleBlock, sampleBlock + 1, 2*sampleBlock + 1} {
		x := cloud(n, 2)
		m, _, err := begin(kernel.Gaussian{Sigma: 1}, x, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &sample{m: m, random: n, idx: make([]int, n), x: x}
		times := make([]atomic.Int32, n)
		for i := range n {
			s.idx[i] = i
		}
		for _, by := range []method{{wide: true, arith: kernel.Float64}, {arith: kernel.Float32, centered: true}, {arith: kernel.Float32, fixed: true}} {
			if err := s.form(t.Context(), by, func(i int, row []float64) {
				times[i].Add(1)
				for j, v := range row {
					want, tol := m.k.Eval(x.Row(i), x.Row(j)), 1e-14
					if !by.wide {
						tol = 3e-6
					}
					if by.fixed {
						tol += 0.5 / fixedOne
						if f := v * fixedOne; i != j && math.Abs(f-math.Round(f)) > 1e-9 {
							t.Errorf("%v is no multiple of 1/65535", v)
						}
					}
					if len(row) != i+1 || math.Abs(v-want) > tol || i == j && v != 1 {
						t.Errorf("%+v: entry (%d, %d) is %v, want %v", by, i, j, v, want)
					}
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range times {
			if times[i].Load() != 3 {
				t.Errorf("n = %d: row %d was formed %d times in three ways", n, i, times[i].Load())
			}
		}
	}
}

// TestMeasure gives K on a sample an error of known spectrum, and takes the formula of Estimate of it:
// where the leading eigenvalue is hidden among the others, and shows along v only; where it stands out;
// where the far rows have more; and where there is nothing but the rounding of entries.
func TestMeasure(t *testing.T) {
	const n, rows, m = 400, 80, 60
	x := cloud(n, 3)
	mx, _, err := begin(kernel.Gaussian{Sigma: 1}, x, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float64, m)
	rng.New(5).Normals(v, 0)
	scale(v)
	by := method{wide: true, arith: kernel.Differences}
	for _, c := range []struct{ lead, size, far, normK float64 }{
		{1, 1e-3, 0, 50}, {2.05, 1e-3, 0, 50}, {2.3, 1e-3, 0, 50}, {10, 1e-3, 0, 50}, {10, 1e-3, 300, 50}, {0, 0, 0, 50}, {1, 1e-3, 0, 1e16},
	} {
		d := make([]float64, m)
		for i := range d {
			d[i] = c.size * float64(1-2*(i%2))
		}
		d[0] *= c.lead
		e := mat.NewDense(rows, rows, nil)
		em := withSpectrum(7, d)
		e.Slice(0, m, 0, m).(*mat.Dense).Copy(em)
		e.Set(m+3, m+3, c.size*c.far)
		s := &sample{m: mx, random: m, idx: make([]int, rows), x: x.Slice(0, rows), k: make([]float64, rows*rows), error: 0.25 * c.size, normK: c.normK, v: v}
		a := mat.NewDense(rows, rows, nil)
		for i := range rows {
			s.idx[i] = i
		}
		if err := s.form(t.Context(), by, func(i int, row []float64) {
			if len(row) != i+1 {
				t.Errorf("row %d has %d entries", i, len(row))
			}
			for j, k := range row {
				s.k[i*rows+j] = k - e.At(i, j)
				a.Set(i, j, k)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if want := mx.k.Eval(x.Row(70), x.Row(9)); math.Abs(a.At(70, 9)-want) > 1e-14 {
			t.Errorf("K(70, 9) = %v, want %v", a.At(70, 9), want)
		}
		got, err := s.measure(t.Context(), by)
		if err != nil {
			t.Fatal(err)
		}
		rms := math.Sqrt((c.lead*c.lead+m-1)/m/m) * c.size
		top := c.size * max(c.lead, 1)
		var ev mat.VecDense
		ev.MulVec(em, mat.NewVecDense(m, v))
		along := math.Abs(mat.Dot(mat.NewVecDense(m, v), &ev))
		if edge := rms * math.Sqrt(m); top > 2.1*edge {
			along = max(along, (top+math.Sqrt(top*top-4*rms*rms*m))/2)
		}
		norm := max(top, c.size*c.far)
		bound := max(2*rms*math.Sqrt(n)+along*n/m, 1.1*norm, 0x1p-52*c.normK*n/m) + s.error
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*b+1e-14 }
		if !near(got.Rms, rms) || !near(got.Norm, norm) || !near(got.Bound, bound) || got.Rows != rows || got.NormK != c.normK {
			t.Errorf("%+v: %+v, want rms %g, norm %g and bound %g", c, got, rms, norm, bound)
		}
		s.k[50*rows+20] = math.Inf(1)
		if got, err := s.measure(t.Context(), by); err != nil || !math.IsInf(got.Bound, 1) || !math.IsInf(got.Rms, 0) {
			t.Errorf("an entry is infinite: %+v, %v", got, err)
		}
	}
}

// TestSampleOfRows: how many rows are looked at, that K on them is what it is, and how it is formed.
func TestSampleOfRows(t *testing.T) {
	gauss := kernel.Gaussian{Sigma: 2}
	own := kernel.Func{Name: "own", F: gauss.Eval}
	for _, c := range []struct {
		k      kernel.Kernel
		counts map[int]int // of random rows, by n; as many where all are looked at
	}{
		{gauss, map[int]int{1152: 1152, 1153: 512, 5000: 625, 10000: 1024}},
		{kernel.Laplacian{Sigma: 2}, map[int]int{640: 640, 641: 512, 10000: 512}},
		{own, map[int]int{384: 384, 385: 256}},
	} {
		for n, random := range c.counts {
			x := cloud(n, 1)
			m, _, err := begin(c.k, x, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			s, err := m.newSample(t.Context(), 1, 3)
			if err != nil {
				t.Fatal(err)
			}
			if s.random != random || random == n && len(s.idx) != n || random < n && len(s.idx) > random+128 {
				t.Errorf("%v, n = %d: %d rows of %d at random", c.k, n, s.random, len(s.idx))
			}
			rows := len(s.idx)
			for _, p := range [][2]int{{0, 0}, {rows - 1, 0}, {rows / 2, rows / 3}, {rows - 1, rows - 2}} {
				want := c.k.Eval(x.Row(s.idx[p[0]]), x.Row(s.idx[p[1]]))
				if got := s.k[p[0]*rows+p[1]]; math.Abs(got-want) > 1e-14 {
					t.Errorf("%v: entry %v is %v, want %v", c.k, p, got, want)
				}
			}
			av := make([]float64, s.random)
			symv(av, s.k, s.v, rows)
			blas64.Axpy(-s.normK, blas64.Vector{N: s.random, Inc: 1, Data: s.v}, blas64.Vector{N: s.random, Inc: 1, Data: av})
			if off := blas64.Nrm2(blas64.Vector{N: s.random, Inc: 1, Data: av}); off > 1e-3*s.normK {
				t.Errorf("%v: ‖Kv − ‖K‖v‖ = %g, ‖K‖ = %g", c.k, off, s.normK)
			}
		}
	}
	k := kernel.Gaussian{Sigma: 1e3}
	for d, want := range map[int]kernel.Arithmetic{20000: kernel.Differences, 20001: kernel.Float64} {
		m, _, err := begin(k, cloud(100, d), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.newSample(t.Context(), 1, 3)
		if bound := 100 * kernel.EntryError(k, want, m.extent()); err != nil || math.Abs(s.error-bound) > 1e-9*bound {
			t.Errorf("d = %d: certain bound %g, want %g of %v; %v", d, s.error, bound, want, err)
		}
	}
}

// TestPower: the norm and the vector of matrices with a leading eigenvalue of either sign, and of none.
func TestPower(t *testing.T) {
	for _, lead := range []float64{5, -5} {
		a := withSpectrum(3, []float64{lead, 1, -1, 0.5, 0})
		wide := mat.NewDense(5, 7, nil)
		wide.Slice(0, 5, 0, 5).(*mat.Dense).Copy(a)
		norm, v := power(wide.RawMatrix().Data, 5, 7)
		var w mat.VecDense
		w.MulVec(a, mat.NewVecDense(5, v))
		w.AddScaledVec(&w, -lead, mat.NewVecDense(5, v))
		if math.Abs(norm-5) > 1e-9 || mat.Norm(&w, 2) > 1e-5 {
			t.Errorf("norm %v, residual %v", norm, mat.Norm(&w, 2))
		}
	}
	// 1 along signs, and 0.87 along the vector of ones: to start near that would hide the first.
	const n = 1000
	a := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range n {
			si, sj := float64(1-2*(i%2)), float64(1-2*(j%2))
			a.Set(i, j, (si*sj+0.87)/n)
		}
	}
	if norm, _ := power(a.RawMatrix().Data, n, n); norm < 0.98 || norm > 1+1e-12 {
		t.Errorf("norm %v, want 1", norm)
	}
	if norm, v := power(make([]float64, 9), 3, 3); norm != 0 || math.Abs(mat.Norm(mat.NewVecDense(3, v), 2)-1) > 1e-15 {
		t.Errorf("of zeros: %v, %v", norm, v)
	}
}
