package adapt

import (
	"context"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestBadArguments checks that each is refused in one line that has the number.
func TestBadArguments(t *testing.T) {
	p := problem(t, kernel.Gaussian{Sigma: 2}, cloud(60, 4, 0.7), 0.05)
	ridged := p
	ridged.LambdaP = 0.5
	none := p
	none.Lambda = 0
	for _, c := range []struct {
		p    Problem
		o    Options
		want string
	}{
		{p, Options{Test: "theorem8"}, "theorem8"},
		{p, Options{Target: 1}, "κ ≤ 1"},
		{p, Options{First: 60}, "s = 60 for n = 60"},
		{p, Options{First: -1}, "s = -1"},
		{p, Options{First: 8, Max: 4}, "largest s = 4"},
		{p, Options{Max: 60}, "largest s = 60"},
		{p, Options{Confidence: 1.5}, "confidence 1.5"},
		{p, Options{Test: Theorem7, Constants: Test{Gamma: 1}}, "γ=1"},
		{p, Options{Check: -1}, "-1"},
		{p, Options{Steps: -1}, "-1 steps"},
		{ridged, Options{Test: Theorem7}, "λ_p = 0.5"},
		{none, Options{}, "λ = 0"},
	} {
		res, err := Search(context.Background(), c.p, &c.o, rng.New(1))
		if err == nil || res != nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: error %v, want one with %q", c.o, err, c.want)
		}
	}
	testkit.Fails(t, testkit.ErrOf(ParseTest("kappa6")), "kappa6")
	for _, c := range []Test{PaperTest, Kappa5, Kappa10} {
		if got, err := ParseTest(c.Name); err != nil || got != c {
			t.Errorf("%s: %v, %v", c.Name, got, err)
		}
	}
}
