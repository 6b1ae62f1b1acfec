package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/model"
)

// TestWarm: fit --warm takes kernel, λ, scaling and target of the model, adds rows or changes λ, comes to the predictions of a
// fresh fit, and says how many iterations that took; a model of another problem is refused in one line.
func TestWarm(t *testing.T) {
	dir := t.TempDir()
	lines := strings.SplitAfter(table(300, nil, true), "\n")
	few, all := write(t, dir, "few.csv", strings.Join(lines[:201], "")), write(t, dir, "all.csv", strings.Join(lines, ""))
	m := filepath.Join(dir, "m.krr")
	iterate := []string{"--solver", "cg", "--tol", "1e-6", "--max-iter", "3000"}
	run := func(args ...string) (string, string) {
		t.Helper()
		code, out, errs := command(t, append([]string{"fit"}, args...)...)
		if code != 0 && errs == "" {
			t.Fatalf("%v: exit %d, and no word why: %s", args, code, out)
		}
		return out, errs
	}
	if _, errs := run(append(iterate, "--train", few, "--target", "a", "--drop", "b", "--scale", "standard", "--kernel", "matern32", "--sigma", "1.3", "--lambda", "0.2", "--out", m)...); errs != "" {
		t.Fatal(errs)
	}
	first, err := model.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(dir, "next.krr")
	for _, c := range []struct {
		flags []string
		n     int
		want  string
	}{
		{[]string{"--train", all}, 300, "has 200 of the 300 rows, λ = 0.2: the residual began at "},
		{[]string{"--train", few, "--lambda", "0.3"}, 200, "has 200 of the 200 rows, λ = 0.2: the residual began at "},
		{[]string{"--train", few}, 200, "has 200 of the 200 rows, λ = 0.2: the residual began at "},
	} {
		out, errs := run(append(append(c.flags, "--warm", m, "--out", next), iterate...)...)
		if errs != "" || !strings.Contains(out, c.want) {
			t.Errorf("%v: no %q in %s%s", c.flags, c.want, out, errs)
			continue
		}
		got, err := model.Load(next)
		if err != nil {
			t.Fatal(err)
		}
		if n, d, _ := got.Dims(); n != c.n || d != 2 || got.Kernel != first.Kernel || got.Scaling.Kind != "standard" || got.Scaling.Shift[0] != first.Scaling.Shift[0] || got.Origin.Target != "a" {
			t.Errorf("%v: %v, target %s, %v", c.flags, got, got.Origin.Target, got.Scaling)
		}
	}
	if out, errs := run("--train", all, "--warm", m); !strings.Contains(out, "was not used: the direct solver does not iterate") {
		t.Errorf("direct: %s%s", out, errs)
	}
	for want, flags := range map[string][]string{
		"the model has the kernel matern32(sigma=1.3), the fit gaussian(sigma=3)": {"--train", all, "--kernel", "gaussian", "--sigma", "3"},
		"not scaled as the model's points":                                        {"--train", all, "--scale", "none"},
		"feature column 1 is":                                                     {"--train", all, "--drop", "c"},
		"row 0 (counted from 0)":                                                  {"--train", write(t, dir, "other.csv", table(400, nil, true))},
		"cannot open model":                                                       {"--train", all, "--warm", filepath.Join(dir, "none.krr")},
	} {
		code, out, errs := command(t, append([]string{"fit", "--warm", m, "--out", next}, flags...)...)
		if code == 0 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q, %s", flags, code, errs, out)
		}
	}
}
