package sketchsize

import (
	"context"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// TestInvalidOptions checks that each invalid option is an error of one line with its value.
func TestInvalidOptions(t *testing.T) {
	p := newTestProblem(t, kernel.Gaussian{Sigma: 2}, scaledNormals(60, 4, 0.7), 0.05)
	withLambdaP := p
	withLambdaP.LambdaP = 0.5
	for _, test := range []struct {
		problem   Problem
		options   Options
		wantError string
	}{
		{p, Options{Test: "theorem8"}, "theorem8"},
		{p, Options{Target: 1}, "Target 1"},
		{p, Options{First: 60}, "s = 60 for n = 60"},
		{p, Options{First: -1}, "First -1"},
		{p, Options{First: 8, Max: 4}, "largest s = 4"},
		{p, Options{Max: 60}, "largest s = 60"},
		{p, Options{Confidence: 1.5}, "Confidence 1.5"},
		{p, Options{Test: Theorem7, Constants: ConditionConstants{Gamma: 1}}, "γ=1"},
		{p, Options{Steps: -1}, "Steps -1"},
		{withLambdaP, Options{Test: Theorem7}, "λ_p = 0.5"},
		{p, Options{Preset: "kappa6"}, "kappa6"},
		{p, Options{Preset: "paper", Constants: Kappa5Constants}, "exclude each other"},
	} {
		result, err := Search(context.Background(), test.problem, &test.options, rng.New(1))
		if err == nil || result != nil || !strings.Contains(err.Error(), test.wantError) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: error %v, want one with %q", test.options, err, test.wantError)
		}
	}
}

// TestConstants checks the constants of each preset, their text, and that other texts are refused.
func TestConstants(t *testing.T) {
	for text, want := range map[string]string{"0.26,0.36": "want θ,α,γ", "1,2,3,4": "want θ,α,γ", "0.1,0.2,1": "γ=1"} {
		testkit.Fails(t, new(ConditionConstants).Set(text), want)
	}
	for preset, want := range map[string]ConditionConstants{"": Kappa5Constants, "paper": PaperConstants,
		"kappa5": Kappa5Constants, "kappa10": Kappa10Constants} {
		options, parsed := Options{Preset: preset}, ConditionConstants{}
		testkit.OK(t, options.setDefaults(60, 1, 1))
		testkit.OK(t, parsed.Set(want.String()))
		if parsed.Name = want.Name; options.Constants != want || parsed != want {
			t.Errorf("preset %q: %v, read from its text %v, want %v", preset, options.Constants, parsed, want)
		}
	}
}
