package theory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
)

// TestClopperPearson checks both ends of the interval by the binomial probabilities that define them.
func TestClopperPearson(t *testing.T) {
	for _, c := range []struct{ k, n int }{{1, 10}, {3, 40}, {25, 400}, {399, 400}, {400, 400}} {
		p := clopperPearson(c.k, c.n)
		if tail := 1 - (distuv.Binomial{N: float64(c.n), P: p}).CDF(float64(c.k)-1); math.Abs(tail-1e-3) > 1e-8 {
			t.Errorf("%d of %d: P(X ≥ k) = %g at the lower end", c.k, c.n, tail)
		}
		p = 1 - clopperPearson(c.n-c.k, c.n) // the upper end
		if tail := (distuv.Binomial{N: float64(c.n), P: p}).CDF(float64(c.k)); c.k < c.n && math.Abs(tail-1e-3) > 1e-8 {
			t.Errorf("%d of %d: P(X ≤ k) = %g at the upper end", c.k, c.n, tail)
		}
	}
	if clopperPearson(0, 100) != 0 {
		t.Error("the lower end for no event is not 0")
	}
}

// TestMeasureRatios checks the ratios of measures of known numbers.
func TestMeasureRatios(t *testing.T) {
	e := &experiment{}
	e.checkAtMost("a", []float64{0.1, 0.5}, 1)
	e.checkAtMost("b", []float64{0.1, math.NaN()}, 1)
	e.checkProbability("c", []float64{0, 0, 2, 2}, 1, 0.1)
	z := make([]float64, 1000)
	rng.New(1).Normals(z, 0)
	e.checkMean("d", z, 0, 0)
	e.checkMean("e", z, 0.5, 1)
	e.checkMean("f", z, 0.01, 0.005) // the mean is the expected one, which exceeds the bound
	e.checkAtMost("g", []float64{math.NaN(), 0.1}, 1)
	e.finish()
	measures := e.Measures
	if measures[0].Ratio != 0.5 || measures[0].Failures != 0 || measures[1].Ratio != worstRatio ||
		measures[1].Failures != 1 ||
		measures[6].Ratio != worstRatio {
		t.Errorf("atMost: %+v, %+v, %+v", measures[0], measures[1], measures[6])
	}
	if measures[2].Failures != 2 || measures[2].Value != 0.5 ||
		math.Abs(measures[2].Ratio-10*clopperPearson(2, 4)) > 1e-12 {
		t.Errorf("share: %+v", measures[2])
	}
	if measures[3].Ratio > 0.6 || measures[4].Ratio < 2 || measures[4].Tightness != 0.5 || measures[5].Ratio != 2 ||
		measures[5].Failures != 1 {
		t.Errorf("mean: %+v, %+v, %+v", measures[3], measures[4], measures[5])
	}
	if e.Verdict != Fail || e.Trials != 2+2+4+3000+2 {
		t.Errorf("%+v", e.Result)
	}
	empty := &experiment{}
	if empty.finish(); empty.Verdict != Fail {
		t.Error("an experiment without measures passes")
	}
}

// findClaims returns the claims with the given names.
func findClaims(t *testing.T, names ...string) (claims []Claim) {
	t.Helper()
	for _, name := range names {
		claims = append(claims, must(FindClaim(name)))
	}
	return claims
}

// TestReport checks that a report is unchanged after it was encoded and decoded as JSON, that its text names the
// claims, and that no claim fails.
func TestReport(t *testing.T) {
	report := must(CheckClaims(t.Context(), findClaims(t, "proposition2", "lambda-p"), &Options{Trials: 20}, nil))
	encoded := must(json.Marshal(report))
	var decoded Report
	if err := json.Unmarshal(encoded, &decoded); err != nil || !reflect.DeepEqual(&decoded, report) {
		t.Errorf("%v: %s", err, encoded)
	}
	if text := report.String(); !strings.Contains(text, "proposition2") || !strings.Contains(text, "bound") {
		t.Errorf("text of the report: %s", text)
	}
	if failed := report.Failed(); len(failed) != 0 {
		t.Errorf("failed claims: %v", failed)
	}
}

// TestThreads compares the results of claims of each kind with one and three threads.
func TestThreads(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	for _, c := range findClaims(t, "lemma4", "definition1", "theorem7", "lambda-p", "fixed16") {
		var out []*Result
		for _, n := range []int{1, 3} {
			accel.SetThreads(n)
			r := must(c.Check(context.Background(), &Options{Trials: 20, Seed: 4}))
			r.Seconds = 0
			out = append(out, r)
		}
		if !reflect.DeepEqual(out[0], out[1]) {
			t.Errorf("%s differs: one thread %v\nthree threads %v", c.Name, out[0], out[1])
		}
	}
}

// TestCanceledCheck checks that a check ends if its context ends, and returns the finished results.
func TestCanceledCheck(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := &Options{Trials: 20, Progress: func(claim string, done, _ int) {
		if claim == "lambda-p" && done == 5 {
			cancel()
		}
	}}
	r, err := CheckClaims(ctx, findClaims(t, "proposition2", "lambda-p", "lemma4"), o, nil)
	if !errors.Is(err, context.Canceled) || len(r.Claims) != 1 || r.Claims[0].Claim != "proposition2" {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestInvalidArguments checks the errors and panics for invalid arguments.
func TestInvalidArguments(t *testing.T) {
	if _, err := CheckClaims(context.Background(), Claims(), &Options{Trials: 3}, nil); err == nil ||
		!strings.Contains(err.Error(), "at least 20") {
		t.Errorf("3 trials: error %v", err)
	}
	if _, err := FindClaim("theorem8"); err == nil || !strings.Contains(err.Error(), "theorem7") {
		t.Errorf("unknown claim: error %v", err)
	}
	if s := SufficientFeatures(3, 10, 0.1); s != 116000 { // 4·29·100/0.1
		t.Errorf("SufficientFeatures: %g", s)
	}
	for name, f := range map[string]func(){
		"a figure of a claim that has none": func() { _, _ = findClaims(t, "proposition2")[0].Figure(t.Context(), nil) },
		"q = 0":                             func() { SufficientFeatures(0, 1, 0.1) },
		"δ = 1":                             func() { SufficientFeatures(2, 1, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// TestFigures draws figures twice and compares the files. Only the fast ones are drawn unless the long tests are run.
func TestFigures(t *testing.T) {
	claims := findClaims(t, "proposition2", "lemma4", "theorem7", "lambda-p", "iterations", "fixed16")
	if suite.Scale(0, 0, 1) == 1 {
		claims = Claims()
	}
	var files [2][][]byte
	for i := range files {
		names := must(Figures(context.Background(), t.TempDir(), claims, &Options{Trials: 20}))
		if len(names) < 5 || filepath.Base(names[0]) != "lemma4.svg" {
			t.Fatal(names)
		}
		for _, name := range names {
			content := must(os.ReadFile(name))
			files[i] = append(files[i], content)
		}
	}
	for i := range files[0] {
		if !bytes.Equal(files[0][i], files[1][i]) || !bytes.Contains(files[0][i], []byte("</svg>")) {
			t.Errorf("figure %d differs from draw to draw", i)
		}
	}
}

// TestFalseAlarms checks that all claims pass with many seeds. make test omits it, because TestAllClaimsPass checks
// them with one seed. The slow claims are checked only if the long tests are run.
func TestFalseAlarms(t *testing.T) {
	suite.RequireLong(t, "all claims with several seeds")
	seeds, long := uint64(suite.Scale(0, 4, 60)), suite.Scale(0, 0, 1) == 1
	var claims []Claim
	for _, c := range Claims() {
		if long || !slices.Contains([]string{"theorem1", "theorem5", "theorem6"}, c.Name) {
			claims = append(claims, c)
		}
	}
	for seed := range seeds {
		r := must(CheckClaims(context.Background(), claims, &Options{Trials: 60, Seed: 1000 + seed}, nil))
		for _, c := range r.Claims {
			if c.Verdict != Pass {
				t.Errorf("seed %d: %v", 1000+seed, &c)
			}
		}
	}
}

// TestPresetMargins draws random pairs with (1−ε)A ≼ M ≼ (1+ε)A. If ε is within the margin of a preset, its conditions
// must hold.
func TestPresetMargins(t *testing.T) {
	used := 0
	for i := range uint64(2000) {
		g := rng.New(7).Sub("pair", i)
		p, lambda := newMatrixPair(g, 6), logUniform(g.Sub("lambda"), 0.1, 100)
		zz := timesTranspose(toFloat64(p.z))
		v := eigenvalues(congruence(choleskyFactor(addRidge(zz, lambda)), addRidge(p.k, lambda))) // spectrum of M⁻¹A
		eps := max(1/v[0]-1, 1-1/v[len(v)-1])
		for _, want := range presets[1:] {
			if eps >= want.Margin() {
				continue
			}
			used++
			if got := conditions(p.k, zz, lambda, want.Theta); got.Alpha > want.Alpha ||
				got.Gamma > want.Gamma {
				t.Errorf("%s: ε = %g < %g and still %+v", want.Name, eps, want.Margin(), got)
			}
		}
	}
	if used < 100 {
		t.Errorf("ε is within the margin in %d cases only, want 100 or more", used)
	}
}
