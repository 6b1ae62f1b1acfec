package cli

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestTuneCommand: krrlab tune writes what scripts rely on, and prints the command that fits with it; krrlab fit --tune
// does both, and comes to the same model.
func TestTuneCommand(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(160, []string{"a", "b", "c"}, true))
	var r map[string]any
	out := staged(t, &r, "tune", "--train", train, "--target", "y", "--scale", "standard", "--kernels", "gaussian,matern52")
	if !strings.Contains(out, "chosen") {
		t.Fatal(out)
	}
	best := r["best"].(map[string]any)
	for _, key := range []string{"sigma", "lambda", "error", "lo", "hi"} {
		if v, ok := best[key].(float64); !ok || v <= 0 {
			t.Errorf("best.%s is %v", key, best[key])
		}
	}
	if points := r["points"].([]any); len(points) < 10 || points[0].(map[string]any)["error"] == nil {
		t.Errorf("%d points", len(r["points"].([]any)))
	}
	_, line, ok := strings.Cut(out, "krrlab fit ")
	line, _, _ = strings.Cut(line, "\n")
	if want := fmt.Sprintf("--kernel %v --sigma %v --lambda %v", best["kernel"], best["sigma"], best["lambda"]); !ok || !strings.Contains(line, want) {
		t.Fatalf("the command %q has no %q", line, want)
	}
	one, two := filepath.Join(dir, "1.json"), filepath.Join(dir, "2.json")
	if code, out, errs := command(t, append(append([]string{"fit"}, strings.Fields(line)...), "--test", train, "--json", one)...); code != 0 {
		t.Fatalf("the command %q: exit %d: %s%s", line, code, out, errs)
	}
	code, out, errs := command(t, "fit", "--train", train, "--test", train, "--target", "y", "--scale", "standard", "--kernel", fmt.Sprint(best["kernel"]), "--tune", "--json", two)
	if code != 0 || !strings.Contains(out, "tuned ") {
		t.Fatalf("fit --tune: exit %d: %s%s", code, out, errs)
	}
	a, b := report(t, one), report(t, two)
	tuned := b["tune"].(map[string]any)["best"].(map[string]any)
	if a["rmse"] != b["rmse"] || tuned["sigma"] != best["sigma"] || tuned["lambda"] != best["lambda"] || b["lambda"] != best["lambda"] {
		t.Errorf("by the command RMSE %v, by --tune %v: %v, want %v", a["rmse"], b["rmse"], tuned, best)
	}
}

// TestTuneLengths: where most columns do not matter each feature gets its length; the command that is printed, krrlab fit --tune and the
// model agree, and --ard no has none.
func TestTuneLengths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("u,v,w,a,b,y\n")
	for range 400 {
		var x [5]float64
		for j := range x {
			x[j] = rng.NormFloat64()
			fmt.Fprintf(&b, "%.6g,", x[j])
		}
		fmt.Fprintf(&b, "%.6g\n", math.Sin(2*x[3])+x[4]+0.1*rng.NormFloat64())
	}
	write(t, dir, "a.csv", b.String())
	args := []string{"--train", "a.csv", "--target", "y", "--scale", "standard", "--kernel", "gaussian"}
	var r map[string]any
	out := staged(t, &r, append([]string{"tune"}, args...)...)
	best := r["best"].(map[string]any)
	lengths, _ := best["lengths"].([]any)
	if len(lengths) != 5 || !(best["sigma"].(float64) > 0) || !strings.Contains(out, "features ") || fmt.Sprint(r["ard"].(map[string]any)["relevant"])[:4] != "[a b" {
		t.Fatalf("%v\n%s", r["ard"], out)
	}
	_, line, _ := strings.Cut(out, "krrlab fit ")
	line, _, _ = strings.Cut(line, "\n")
	for js, args := range map[string][]string{"1.json": strings.Fields(line), "2.json": append(args, "--tune")} {
		if code, out, errs := command(t, append(append([]string{"fit"}, args...), "--test", "a.csv", "--json", js, "--out", js+".krr")...); code != exitOK {
			t.Fatalf("%v: exit %d: %s%s", args, code, out, errs)
		}
		if code, out, errs := command(t, "verify", js+".krr", "--train", "a.csv"); code != exitOK || !strings.Contains(out, "proved") {
			t.Errorf("%v: verify: exit %d, %s%s", args, code, out, errs)
		}
	}
	one, two := report(t, "1.json"), report(t, "2.json")
	if one["rmse"] != two["rmse"] || one["scaling"] != two["scaling"] || two["kernel"].(map[string]any)["sigma"] != 1.0 {
		t.Errorf("by the command RMSE %v (%v), by --tune %v (%v)", one["rmse"], one["scaling"], two["rmse"], two["scaling"])
	}
	staged(t, &r, append([]string{"tune", "--ard", "no"}, args...)...)
	if best := r["best"].(map[string]any); best["lengths"] != nil {
		t.Errorf("--ard no: %v", best)
	}
}

// TestTuneCommandLine: the command has the length scales that the search was made with, and the rows held out.
func TestTuneCommandLine(t *testing.T) {
	dir := t.TempDir()
	train, js := write(t, dir, "train.csv", table(90, []string{"a", "b"}, true)), filepath.Join(dir, "t.json")
	for want, args := range map[string][]string{
		" --sigma 2,0.5,1 --lambda ": {"tune", "--sigma", "2,0.5,1", "--kernel", "gaussian"},
		" --sigma 1.5 --lambda ":     {"tune", "--sigma", "2,0.5,1", "--sigma", "1.5", "--kernel", "gaussian"},
		"krrlab fit --holdout 0.2 ":  {"fit", "--tune", "--holdout", "0.2", "--kernel", "gaussian"},
	} {
		if code, out, errs := command(t, append(args, "--train", train, "--target", "y", "--json", js)...); code != 0 {
			t.Fatalf("%v: exit %d: %s%s", args, code, out, errs)
		}
		r := report(t, js)
		if args[0] == "fit" {
			r = r["tune"].(map[string]any)
		}
		if line := fmt.Sprint(r["command"]); !strings.Contains(line, want) {
			t.Errorf("%v: %q has no %q", args, line, want)
		}
	}
}

// TestTuneHolds: flags hold what they name, validation rows judge, and a polynomial has γ.
func TestTuneHolds(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(90, []string{"a", "b"}, true))
	js := filepath.Join(dir, "t.json")
	for _, c := range []struct {
		args []string
		key  string
		want any
	}{
		{[]string{"--sigma", "1.7", "--kernel", "gaussian"}, "sigma", 1.7},
		{[]string{"--lambda", "0.3", "--kernels", "matern32"}, "lambda", 0.3},
		{[]string{"--kernel", "polynomial", "--degree", "2"}, "degree", 2.0},
		{[]string{"--valid", train, "--kernel", "laplacian"}, "kernel", "laplacian"},
		{[]string{"--criterion", "kfold", "--folds", "3", "--kernel", "matern32"}, "kernel", "matern32"},
	} {
		code, out, errs := command(t, append([]string{"tune", "--train", train, "--target", "y", "--scale", "standard", "--json", js}, c.args...)...)
		if code != 0 {
			t.Fatalf("%v: exit %d: %s%s", c.args, code, out, errs)
		}
		if best := report(t, js)["best"].(map[string]any); best[c.key] != c.want {
			t.Errorf("%v: %v", c.args, best)
		}
	}
}
