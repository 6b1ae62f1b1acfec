package cli

import (
	"fmt"
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

// TestWarmTable: fit --warm reads columns of words and missing values as the model does, new words and new gaps in the rows added too.
func TestWarmTable(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("city,x,y\n")
	for i := range 60 {
		x := fmt.Sprint(i * 7 % 60)
		if i%9 == 4 {
			x = "NA"
		}
		fmt.Fprintf(&b, "%s,%s,%d\n", []string{"ulm", "bonn"}[i%2], x, 100+i*7%60+30*(i%2))
	}
	few := write(t, dir, "few.csv", b.String())
	all := write(t, dir, "all.csv", b.String()+"ulm,,111\nberlin,30,140\n")
	m, next := filepath.Join(dir, "m.krr"), filepath.Join(dir, "next.krr")
	if code, _, errs := command(t, "fit", "--train", few, "--target", "y", "--categorical", "city", "--impute", "mean", "--solver", "cg", "--out", m); code != exitOK {
		t.Fatalf("exit %d, %s", code, errs)
	}
	code, out, errs := command(t, "fit", "--train", all, "--warm", m, "--solver", "cg", "--out", next)
	if code != exitOK || !strings.Contains(out, "has 60 of the 62 rows") || !strings.Contains(out, "1 word of a categorical column") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	if code, again, errs := command(t, "fit", "--train", all, "--warm", m, "--solver", "cg", "--impute", "median", "--out", filepath.Join(dir, "again.krr")); code != exitOK || !strings.Contains(again, "has 60 of the 62 rows") || !strings.Contains(again, "note: --impute is not used: missing values are filled by the numbers of --warm") {
		t.Errorf("exit %d, %s%s", code, again, errs)
	}
	bare := filepath.Join(dir, "bare.krr")
	whole := write(t, dir, "whole.csv", table(30, nil, true))
	if code, _, errs := command(t, "fit", "--train", whole, "--lambda", "1", "--out", bare); code != exitOK {
		t.Fatal(errs)
	}
	if code, _, errs := command(t, "fit", "--train", whole, "--warm", bare, "--impute", "mean"); code != exitUsage || !strings.Contains(errs, "--impute mean: the model of --warm fills no missing values") {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code, _, errs := command(t, "fit", "--train", whole, "--warm", bare, "--impute", "none"); code != exitOK {
		t.Errorf("--impute none: exit %d, %s", code, errs)
	}
	first, err := model.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	second, err := model.Load(next)
	if err != nil {
		t.Fatal(err)
	}
	if !second.Scaling.Fills() || second.Scaling.Fill[2] != first.Scaling.Fill[2] || len(second.Origin.Categorical) != 1 || len(second.Origin.Categorical[0].Values) != 2 {
		t.Errorf("%v, %v", second.Scaling, second.Origin.Categorical)
	}
	if code, out, errs := command(t, "predict", "--model", next, "--in", all, "--out", filepath.Join(dir, "p.csv")); code != exitOK || !strings.Contains(out, "62 points") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}
