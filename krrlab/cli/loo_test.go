package cli

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
)

// TestLeaveOneOut: dense factors and the subspace agree within the intervals, and the JSON has what is printed.
func TestLeaveOneOut(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(400, nil, true))
	read := func(args ...string) (r krrlab.LeaveOneOut) {
		out := staged(t, &r, append([]string{"loo", "--train", train, "--target", "y", "--sigma", "2", "--grid",
			"10,1,0.1"}, args...)...)
		if strings.Count(out, "GCV") != 3 || !strings.Contains(out, "least") {
			t.Errorf("%v: %s", args, out)
		}
		return r
	}
	exact, path := read(), read("--exact-below", "-1", "--rank", "80", "--seed", "3")
	for i, want := range []float64{10, 1, 0.1} {
		e, p := exact.Scores[i], path.Scores[i]
		if e.Lambda != want || p.Lambda != want || e.Error.Confidence != 1 || p.Error.Confidence != 0.95 ||
			p.Error.Method != "probes" {
			t.Errorf("%v and %v", e, p)
		}
		if e.Error.Hi < p.Error.Lo || p.Error.Hi < e.Error.Lo {
			t.Errorf("λ = %g: %v and %v", want, e.Error, p.Error)
		}
	}
}
