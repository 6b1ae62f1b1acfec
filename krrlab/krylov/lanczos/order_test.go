package lanczos

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// isOrdered reports whether interval is valid: Lo ≤ Value ≤ Hi, or an unknown Value, NaN.
func isOrdered(interval estimate.Interval) bool {
	if math.IsNaN(interval.Lo) || math.IsNaN(interval.Hi) || interval.Lo > interval.Hi {
		return false
	}
	return math.IsNaN(interval.Value) || interval.Lo <= interval.Value && interval.Value <= interval.Hi
}

// TestIndefinite checks processes with Options.Definite on spectra with a negative eigenvalue. The result must be
// Indefinite, and the interval of λ_min must not be clipped at 0.
func TestIndefinite(t *testing.T) {
	v := []float64{-10.8}
	for i := range 60 {
		v = append(v, float64(i)/10)
	}
	for _, quantity := range []Quantity{BothEnds, ConditionNumber} {
		r := run(t, diagonal(v), &Options{Definite: true, Quantity: quantity, Start: rng.New(3)})
		if !r.Indefinite() || !isOrdered(r.Min) || !r.Min.Contains(-10.8) {
			t.Errorf("indefinite %v, λ_min %v", r.Indefinite(), r.Min)
		}
		if k := r.Cond(); !math.IsInf(k.Hi, 1) || k.Lo != 1 || !math.IsNaN(k.Value) {
			t.Errorf("κ %v", k)
		}
	}
	v[0] = 0
	r, err := Run(context.Background(), diagonal(v), &Options{Definite: true, Start: rng.New(3), Steps: len(v),
		Tol: -1})
	if err != nil || r.Indefinite() || !isOrdered(r.Min) || !r.Min.Contains(0) || r.Min.Lo != 0 {
		t.Errorf("with λ_min = 0: indefinite %v, λ_min %v, %v", r.Indefinite(), r.Min, err)
	}
}

// inexactInverse is M = I whose computed inverse is a matrix near I.
type inexactInverse struct{ *mat.Dense }

func (m inexactInverse) Dim() int { return m.RawMatrix().Rows }

func (m inexactInverse) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	dst.Mul(m.Dense, r)
	return nil
}

func (m inexactInverse) NormalTo(_ context.Context, dst *mat.Dense, g rng.Stream) error {
	g.Normals(dst.RawMatrix().Data, 0)
	return nil
}

// TestInexactInverse checks that errors of M⁻¹, which may make Ritz values of a positive definite pencil negative, do
// not make the result Indefinite, and that the intervals are still valid. A pencil with a negative eigenvalue must be
// Indefinite.
func TestInexactInverse(t *testing.T) {
	const n = 60
	v, negative := make(diagonal, n), 0
	for i := range v {
		v[i] = math.Pow(10, float64(8-i%12))
	}
	shiftedMetrics := slices.Clone(v)
	shiftedMetrics[n-1] = -1e7
	for seed := range uint64(4) {
		for _, size := range []float64{1e-12, 1e-7, 1e-4} {
			inverse := mat.NewDense(n, n, nil)
			rng.New(8).Normals(inverse.RawMatrix().Data, 0)
			inverse.Scale(size/math.Sqrt(n), inverse)
			for i := range n {
				inverse.Set(i, i, 1+inverse.At(i, i))
			}
			opts := &Options{Start: rng.New(seed), Steps: n, Tol: 1e-9, Definite: true}
			r := testkit.Must(RunPencil(t.Context(), v, inexactInverse{inverse}, opts))
			if r.Ritz[0] < 0 {
				negative++
			}
			if r.Indefinite() || !(r.Min.Lo <= 1e-3) || !(r.Min.Hi >= 1e-3) || !(r.Max.Lo <= 1e8 && 1e8 <= r.Max.Hi) {
				t.Errorf("seed %d, error %g: indefinite %v, λ_min %v, λ_max %v", seed, size, r.Indefinite(), r.Min, r.Max)
			}
			if r = testkit.Must(RunPencil(t.Context(), shiftedMetrics, inexactInverse{inverse},
				opts)); !r.Indefinite() {
				t.Errorf("seed %d, error %g: λ_min = -1e7 in %v", seed, size, r.Min)
			}
		}
	}
	if negative == 0 {
		t.Error("no Ritz value was negative")
	}
}

// randomSpectrum draws random eigenvalues: of similar or very different sizes, many of them equal, some zero, some
// negative.
func randomSpectrum(g rng.Stream, n int) []float64 {
	v := make([]float64, n)
	size := math.Pow(10, 16*g.Sub("size").Float64(0)-8)
	decades := 14 * g.Sub("decades").Float64(0)
	kinds := 1 + g.Sub("kinds").IntN(0, n)
	negative := g.Sub("negative").Float64(0) < 0.3
	for i := range v {
		k := uint64(i % kinds)
		v[i] = size * math.Pow(10, -decades*g.Sub("value").Float64(k))
		if g.Sub("zero").Float64(k) < 0.1 {
			v[i] = 0
		}
		if negative && g.Sub("sign").Float64(k) < 0.3 {
			v[i] = -v[i]
		}
	}
	return v
}

// TestRandomSpectra checks on random spectra and after every step that intervals are ordered and that their inner
// ends are valid. The outer ends may fail no more often than stated.
func TestRandomSpectra(t *testing.T) {
	const problems, confidence = 400, 0.8
	g := rng.New(11)
	missed := 0
	for p := range uint64(problems) {
		g := g.Sub("problem", p)
		n := 1 + g.Sub("n").IntN(0, 40)
		v := randomSpectrum(g, n)
		smallest, largest := slices.Min(v), slices.Max(v)
		opts := &Options{Steps: 1 + g.Sub("steps").IntN(0, n+2), Confidence: confidence, Start: g.Sub("start"), Tol: 0.01}
		switch g.Sub("options").IntN(0, 5) {
		case 1:
			opts.Quantity = TwoNorm
		case 2:
			opts.Quantity = ConditionNumber
		case 3:
			opts.Definite = true // also set for indefinite matrices
		}
		room := 1e-13 * max(-smallest, largest)
		opts.Monitor = func(r *Result) error {
			for name, interval := range map[string]estimate.Interval{"λ_min": r.Min, "λ_max": r.Max, "κ": r.Cond(),
				"norm": r.Norm()} {
				if !isOrdered(interval) {
					t.Fatalf("problem %d, step %d: %s %+v", p, r.Steps, name, interval)
				}
			}
			if r.Min.Hi < smallest-room || r.Max.Lo > largest+room || r.Norm().Lo > max(-smallest, largest)+room {
				t.Errorf("problem %d, step %d: inner ends %g and %g of a spectrum from %g to %g", p, r.Steps, r.Min.Hi,
					r.Max.Lo, smallest, largest)
			}
			return nil
		}
		r, err := Run(context.Background(), diagonal(v), opts)
		if err != nil {
			t.Fatalf("problem %d: %v", p, err)
		}
		if smallest < 0 && opts.Definite && !r.Indefinite() {
			continue // Definite was a false statement
		}
		if r.Min.Lo > smallest+room || r.Max.Hi < largest-room {
			missed++
		}
	}
	t.Logf("%d of %d missed", missed, problems)
	if probabilityAtLeast(problems, missed, 1-confidence) < 1e-4 {
		t.Errorf("%d of %d missed, stated probability %.2g", missed, problems, 1-confidence)
	}
}

// TestPerturbedIntervals checks that intervals from a perturbed matrix, with the allowance for the perturbation, are
// valid for the unperturbed matrix. Perturbations may exceed λ, so some of the perturbed matrices are indefinite.
func TestPerturbedIntervals(t *testing.T) {
	const n, lambda = 30, 1e-3
	missed := 0
	for p := range uint64(200) {
		g := rng.New(12).Sub("problem", p)
		v := make([]float64, n)
		for i := range v {
			v[i] = lambda + math.Pow(10, -8*g.Sub("value").Float64(uint64(i)))
		}
		size := lambda * math.Pow(10, 2*g.Sub("size").Float64(0)-1.5)
		stored := slices.Clone(v)
		for i := range stored {
			stored[i] += size * math.Copysign(1, g.Sub("sign").Float64(uint64(i))-0.5)
		}
		r := run(t, diagonal(stored), &Options{Definite: true, Confidence: 0.99, Start: g.Sub("start"), Steps: 12})
		kappa, smallest, largest := r.PerturbedIntervals(size / lambda)
		for name, interval := range map[string]estimate.Interval{"κ": kappa, "λ_min": smallest, "λ_max": largest} {
			if !isOrdered(interval) {
				t.Errorf("problem %d: the interval of %s is %+v", p, name, interval)
			}
		}
		lo, hi := slices.Min(v), slices.Max(v)
		if smallest.Hi < lo || largest.Lo > hi || kappa.Lo > hi/lo {
			t.Errorf("problem %d: inner ends: κ %v, λ_min %v, λ_max %v of %g to %g", p, kappa, smallest, largest, lo, hi)
		}
		if !kappa.Contains(hi/lo) || !smallest.Contains(lo) || !largest.Contains(hi) {
			missed++
		}
		if r.Indefinite() && !(math.IsInf(kappa.Hi, 1) && math.IsInf(smallest.Hi, 1) && math.IsInf(largest.Hi, 1) &&
			math.IsNaN(kappa.Value)) {
			t.Errorf("problem %d: bounds of an indefinite matrix: κ %v, λ_min %v, λ_max %v", p, kappa, smallest, largest)
		}
	}
	if probabilityAtLeast(200, missed, 0.01) < 1e-4 {
		t.Errorf("%d of 200 missed at 99 %%", missed)
	}
}
