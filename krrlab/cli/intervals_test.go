package cli

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// readColumns returns the columns of a csv file by name.
func readColumns(t *testing.T, name string) map[string][]string {
	t.Helper()
	b := read(t, name)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	out := map[string][]string{}
	for _, line := range lines[1:] {
		for j, cell := range strings.Split(line, ",") {
			key := strings.Split(lines[0], ",")[j]
			out[key] = append(out[key], cell)
		}
	}
	return out
}

// TestIntervals: every method writes intervals around the predictions, names what it guarantees, and covers new rows about
// as often as asked; a model without scores says how to get them.
func TestIntervals(t *testing.T) {
	dir := t.TempDir()
	m, pred := filepath.Join(dir, "m.krr"), filepath.Join(dir, "pred.csv")
	whole := strings.Split(table(700, nil, true), "\n")
	train := write(t, dir, "train.csv", strings.Join(whole[:301], "\n"))
	new := write(t, dir, "new.csv", strings.Join(append(whole[:1:1], whole[301:]...), "\n"))
	fit := func(flags ...string) {
		t.Helper()
		args := append([]string{"fit", "--train", train, "--target", "y", "--sigma", "1.5", "--lambda", "0.01", "--out", m}, flags...)
		if code, _, errs := command(t, args...); code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
	}
	widths := map[string]float64{}
	for _, c := range []struct{ fit, flags, want string }{
		{"--holdout=0.4", "", "90 % by split, covers with probability 0.9 at least"},
		{"--holdout=0.4", "--method=jackknife", "by jackknife, coverage mostly near 0.9, not guaranteed"},
		{"--calibrate=loo", "", "by jackknife, coverage mostly near 0.9"},
		{"--calibrate=loo", "--method=jackknife+", "by jackknife+, covers with probability 0.8 at least"},
		{"--calibrate=none", "", "by jackknife+"},
		{"--calibrate=none", "--method=jackknife", "by jackknife, "},
		{"--calibrate=none", "--method=gp", "by gp, right if"},
	} {
		fit(c.fit)
		args := []string{"predict", "--model", m, "--in", new, "--interval", "90%", "--out", pred}
		if c.flags != "" {
			args = append(args, c.flags)
		}
		code, out, errs := command(t, args...)
		if code != 0 || !strings.Contains(out, c.want) || !strings.Contains(out, "of the 400 answers are inside") {
			t.Errorf("%v: exit %d, no %q in %s%s", c, code, c.want, out, errs)
			continue
		}
		got := readColumns(t, pred)
		inside := 0
		for i, lo := range got["lo"] {
			var v [4]float64
			for j, text := range []string{lo, got["prediction"][i], got["hi"][i], strings.Split(whole[301+i], ",")[3]} {
				var err error
				if v[j], err = strconv.ParseFloat(text, 64); err != nil {
					t.Fatal(err)
				}
			}
			if !(v[0] < v[1] && v[1] < v[2]) {
				t.Fatalf("%v: row %d: %v", c, i, v)
			}
			if v[0] <= v[3] && v[3] <= v[2] {
				inside++
			}
			widths[c.fit+c.flags] += v[2] - v[0]
		}
		// 400 rows by 120 scores or more: a standard deviation of 3 %
		if share := float64(inside) / 400; math.Abs(share-0.9) > 0.09 && !strings.HasSuffix(c.flags, "gp") {
			t.Errorf("%v: %.1f %% are covered", c, 100*share)
		}
	}
	if a, b := widths["--calibrate=loo"], widths["--calibrate=none--method=jackknife"]; !(math.Abs(a/b-1) < 1e-9) {
		t.Errorf("scores kept or found anew: widths %g, %g", a, b)
	}
	factorBelow = 50 // by conjugate gradients
	defer func() { factorBelow = 10_000 }()
	if _, out, errs := command(t, "predict", "--model", m, "--in", new, "--interval", "57%", "--method", "jackknife", "--out", pred); !strings.Contains(out, "57 % by jackknife, coverage mostly near 0.57,") {
		t.Errorf("%s%s", out, errs)
	}
	if code, out, errs := command(t, "predict", "--model", m, "--in", new, "--interval", "90%", "--method", "gp", "--out", pred); code != 0 {
		t.Errorf("gp by iteration: exit %d: %s%s", code, out, errs)
	}
	var width float64
	got := readColumns(t, pred)
	for i := range got["lo"] {
		lo, _ := strconv.ParseFloat(got["lo"][i], 64)
		hi, _ := strconv.ParseFloat(got["hi"][i], 64)
		width += hi - lo
	}
	if want := widths["--calibrate=none--method=gp"]; !(math.Abs(width/want-1) < 1e-4) {
		t.Errorf("gp by iteration: width %g, by a factor %g", width, want)
	}
	for want, args := range map[string][]string{
		"--interval \"90\": want a level": {"--interval", "90"},
		"--method goes with --interval":   {"--method", "gp"},
		"want one of auto, split":         {"--interval", "0.9", "--method", "magic"},
		"fit with --holdout or --test":    {"--interval", "0.9", "--method", "split"},
	} {
		code, _, errs := command(t, append([]string{"predict", "--model", m, "--in", new}, args...)...)
		if code == 0 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q", args, code, errs)
		}
	}
	if code, _, errs := command(t, "fit", "--train", train, "--calibrate", "test", "--out", m); code != exitUsage || !strings.Contains(errs, "there are no test rows") {
		t.Errorf("no test rows: exit %d, %q", code, errs)
	}
	if code, _, errs := command(t, "fit", "--train", train, "--calibrate", "loo", "--weights", "w", "--out", m); code != exitUsage || !strings.Contains(errs, "does not go with weights") {
		t.Errorf("weights: exit %d, %q", code, errs)
	}
}

// TestSets: classes get sets with the predicted label among them.
func TestSets(t *testing.T) {
	dir := t.TempDir()
	m, pred := filepath.Join(dir, "m.krr"), filepath.Join(dir, "pred.csv")
	train := write(t, dir, "train.csv", table(300, []string{"low", "mid", "high"}, true))
	if code, _, errs := command(t, "fit", "--train", train, "--sigma", "1.5", "--holdout", "0.4", "--out", m); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, method := range []string{"split", "jackknife"} {
		code, out, errs := command(t, "predict", "--model", m, "--in", train, "--interval", "0.97", "--method", method, "--out", pred)
		if code != 0 || !strings.Contains(out, "97 % by "+method) || !strings.Contains(out, "labels a set; ") {
			t.Fatalf("%s: exit %d: %s%s", method, code, out, errs)
		}
		got, large := readColumns(t, pred), 0
		for i, set := range got["set"] {
			if !strings.Contains("|"+set+"|", "|"+got["prediction"][i]+"|") {
				t.Errorf("%s: row %d: %s is not in %s", method, i, got["prediction"][i], set)
			}
			large += strings.Count(set, "|")
		}
		if large == 0 {
			t.Errorf("%s: no set has two labels", method)
		}
	}
	if code, _, errs := command(t, "predict", "--model", m, "--in", train, "--interval", "0.9", "--method", "gp"); code != exitError || !strings.Contains(errs, "take split or jackknife") {
		t.Errorf("gp: exit %d, %q", code, errs)
	}
}

// TestUnsolvedIntervals: a model that is too far from the solution for leave-one-out is refused by predict, and its fit
// writes it all the same, beside the error.
func TestUnsolvedIntervals(t *testing.T) {
	dir := t.TempDir()
	m, train := filepath.Join(dir, "m.krr"), write(t, dir, "train.csv", table(200, nil, true))
	args := []string{"fit", "--train", train, "--target", "y", "--sigma", "1.5", "--lambda", "1e-6", "--solver", "cg", "--tol", "0.5", "--calibrate", "loo", "--out", m}
	const want = "too far from the solution"
	if code, out, errs := command(t, args...); code == 0 || !strings.Contains(errs, want) || !strings.Contains(out, "converged") {
		t.Errorf("fit: exit %d: %s%s", code, out, errs)
	}
	few := append(args[:len(args):len(args)], "--tol", "1e-8", "--max-iter", "2", "--out", filepath.Join(dir, "few.krr"))
	if code, _, errs := command(t, few...); code != exitNotConverged || !strings.Contains(errs, want) || !strings.Contains(errs, "not converged") {
		t.Errorf("fit that does not converge: exit %d: %s", code, errs)
	}
	for _, method := range []string{"auto", "jackknife", "jackknife+", "gp"} {
		if code, _, errs := command(t, "predict", m, "--in", train, "--interval", "90%", "--method", method); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d: %s", method, code, errs)
		}
	}
}
