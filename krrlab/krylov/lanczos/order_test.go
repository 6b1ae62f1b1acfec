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
	spectrum := []float64{-10.8}
	for i := range 60 {
		spectrum = append(spectrum, float64(i)/10)
	}
	for _, quantity := range []Quantity{BothEnds, ConditionNumber} {
		result := run(t, diagonal(spectrum), &Options{Definite: true, Quantity: quantity, Start: rng.New(3)})
		if !result.Indefinite() || !isOrdered(result.Min) || !result.Min.Contains(-10.8) {
			t.Errorf("indefinite %v, λ_min %v", result.Indefinite(), result.Min)
		}
		if kappa := result.Cond(); !math.IsInf(kappa.Hi, 1) || kappa.Lo != 1 || !math.IsNaN(kappa.Value) {
			t.Errorf("κ %v", kappa)
		}
	}
	spectrum[0] = 0
	result, err := Run(context.Background(), diagonal(spectrum), &Options{Definite: true, Start: rng.New(3),
		Steps: len(spectrum),
		Tol:   -1})
	if err != nil || result.Indefinite() || !isOrdered(result.Min) || !result.Min.Contains(0) || result.Min.Lo != 0 {
		t.Errorf("with λ_min = 0: indefinite %v, λ_min %v, %v", result.Indefinite(), result.Min, err)
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
	spectrum, negative := make(diagonal, n), 0
	for i := range spectrum {
		spectrum[i] = math.Pow(10, float64(8-i%12))
	}
	withNegative := slices.Clone(spectrum)
	withNegative[n-1] = -1e7
	for seed := range uint64(4) {
		for _, inverseError := range []float64{1e-12, 1e-7, 1e-4} {
			inverse := mat.NewDense(n, n, nil)
			rng.New(8).Normals(inverse.RawMatrix().Data, 0)
			inverse.Scale(inverseError/math.Sqrt(n), inverse)
			for i := range n {
				inverse.Set(i, i, 1+inverse.At(i, i))
			}
			opts := &Options{Start: rng.New(seed), Steps: n, Tol: 1e-9, Definite: true}
			result := testkit.Must(RunPencil(t.Context(), spectrum, inexactInverse{inverse}, opts))
			if result.Ritz[0] < 0 {
				negative++
			}
			if result.Indefinite() || !(result.Min.Lo <= 1e-3) || !(result.Min.Hi >= 1e-3) || !(result.Max.Lo <= 1e8 &&
				1e8 <= result.Max.Hi) {
				t.Errorf("seed %d, error %g: indefinite %v, λ_min %v, λ_max %v", seed, inverseError,
					result.Indefinite(), result.Min, result.Max)
			}
			if result = testkit.Must(RunPencil(t.Context(), withNegative, inexactInverse{inverse},
				opts)); !result.Indefinite() {
				t.Errorf("seed %d, error %g: λ_min = -1e7 in %v", seed, inverseError, result.Min)
			}
		}
	}
	if negative == 0 {
		t.Error("no Ritz value was negative")
	}
}

// randomSpectrum draws random eigenvalues: of similar or very different sizes, many of them equal, some zero, some
// negative.
func randomSpectrum(stream rng.Stream, n int) []float64 {
	spectrum := make([]float64, n)
	size := math.Pow(10, 16*stream.Sub("size").Float64(0)-8)
	decades := 14 * stream.Sub("decades").Float64(0)
	kinds := 1 + stream.Sub("kinds").IntN(0, n)
	negative := stream.Sub("negative").Float64(0) < 0.3
	for i := range spectrum {
		kind := uint64(i % kinds)
		spectrum[i] = size * math.Pow(10, -decades*stream.Sub("value").Float64(kind))
		if stream.Sub("zero").Float64(kind) < 0.1 {
			spectrum[i] = 0
		}
		if negative && stream.Sub("sign").Float64(kind) < 0.3 {
			spectrum[i] = -spectrum[i]
		}
	}
	return spectrum
}

// TestRandomSpectra checks on random spectra and after every step that intervals are ordered and that their inner
// ends are valid. The outer ends may fail no more often than stated.
func TestRandomSpectra(t *testing.T) {
	const problems, confidence = 400, 0.8
	stream := rng.New(11)
	missed := 0
	for problem := range uint64(problems) {
		stream := stream.Sub("problem", problem)
		n := 1 + stream.Sub("n").IntN(0, 40)
		spectrum := randomSpectrum(stream, n)
		smallest, largest := slices.Min(spectrum), slices.Max(spectrum)
		opts := &Options{Steps: 1 + stream.Sub("steps").IntN(0, n+2), Confidence: confidence,
			Start: stream.Sub("start"), Tol: 0.01}
		switch stream.Sub("options").IntN(0, 5) {
		case 1:
			opts.Quantity = TwoNorm
		case 2:
			opts.Quantity = ConditionNumber
		case 3:
			opts.Definite = true // also set for indefinite matrices
		}
		slack := 1e-13 * max(-smallest, largest)
		opts.Monitor = func(result *Result) error {
			for name, interval := range map[string]estimate.Interval{"λ_min": result.Min, "λ_max": result.Max,
				"κ":    result.Cond(),
				"norm": result.Norm()} {
				if !isOrdered(interval) {
					t.Fatalf("problem %d, step %d: %s %+v", problem, result.Steps, name, interval)
				}
			}
			if result.Min.Hi < smallest-slack || result.Max.Lo > largest+slack || result.Norm().Lo > max(-smallest,
				largest)+slack {
				t.Errorf("problem %d, step %d: inner ends %g and %g of a spectrum from %g to %g", problem, result.Steps,
					result.Min.Hi,
					result.Max.Lo, smallest, largest)
			}
			return nil
		}
		result, err := Run(context.Background(), diagonal(spectrum), opts)
		if err != nil {
			t.Fatalf("problem %d: %v", problem, err)
		}
		if smallest < 0 && opts.Definite && !result.Indefinite() {
			continue // Definite was a false statement
		}
		if result.Min.Lo > smallest+slack || result.Max.Hi < largest-slack {
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
	for problem := range uint64(200) {
		stream := rng.New(12).Sub("problem", problem)
		spectrum := make([]float64, n)
		for i := range spectrum {
			spectrum[i] = lambda + math.Pow(10, -8*stream.Sub("value").Float64(uint64(i)))
		}
		size := lambda * math.Pow(10, 2*stream.Sub("size").Float64(0)-1.5)
		stored := slices.Clone(spectrum)
		for i := range stored {
			stored[i] += size * math.Copysign(1, stream.Sub("sign").Float64(uint64(i))-0.5)
		}
		result := run(t, diagonal(stored), &Options{Definite: true, Confidence: 0.99, Start: stream.Sub("start"),
			Steps: 12})
		kappa, minInterval, maxInterval := result.PerturbedIntervals(size / lambda)
		for name, interval := range map[string]estimate.Interval{"κ": kappa, "λ_min": minInterval,
			"λ_max": maxInterval} {
			if !isOrdered(interval) {
				t.Errorf("problem %d: the interval of %s is %+v", problem, name, interval)
			}
		}
		lambdaMin, lambdaMax := slices.Min(spectrum), slices.Max(spectrum)
		if minInterval.Hi < lambdaMin || maxInterval.Lo > lambdaMax ||
			kappa.Lo > lambdaMax/lambdaMin {
			t.Errorf("problem %d: inner ends: κ %v, λ_min %v, λ_max %v of %g to %g", problem, kappa, minInterval,
				maxInterval, lambdaMin, lambdaMax)
		}
		if !kappa.Contains(lambdaMax/lambdaMin) || !minInterval.Contains(lambdaMin) ||
			!maxInterval.Contains(lambdaMax) {
			missed++
		}
		if result.Indefinite() && !(math.IsInf(kappa.Hi, 1) && math.IsInf(minInterval.Hi, 1) &&
			math.IsInf(maxInterval.Hi, 1) &&
			math.IsNaN(kappa.Value)) {
			t.Errorf("problem %d: bounds of an indefinite matrix: κ %v, λ_min %v, λ_max %v", problem, kappa,
				minInterval, maxInterval)
		}
	}
	if probabilityAtLeast(200, missed, 0.01) < 1e-4 {
		t.Errorf("%d of 200 missed at 99 %%", missed)
	}
}
