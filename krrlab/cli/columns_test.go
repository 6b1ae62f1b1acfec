package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

// TestCenter: regression is centered by default, which the report and the model say; predictions, bounds and verify are
// those of the file's answers. --center no is the paper's, and classes are not centered.
func TestCenter(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	var b, c strings.Builder
	for i := range 60 {
		x := float64(i*7%60) / 10
		fmt.Fprintf(&b, "%g,%g\n", x, 500+math.Sin(x))
		fmt.Fprintf(&c, "%g,%s\n", x, []string{"a", "b"}[i%2])
	}
	write(t, dir, "a.csv", b.String())
	write(t, dir, "c.csv", c.String())
	rmse := map[string]float64{}
	for _, center := range []string{"auto", "yes", "no"} {
		code, out, errs := command(t, "fit", "--train", "a.csv", "--test", "a.csv", "--sigma", "1", "--lambda", "1", "--center", center, "--out", "m.krr", "--json", "r.json")
		r := report(t, "r.json")
		if code != exitOK || strings.Contains(out, "y less its mean 500") != (center != "no") || (r["mean"] == nil) != (center == "no") {
			t.Fatalf("%s: exit %d, mean %v, %s%s", center, code, r["mean"], out, errs)
		}
		rmse[center] = r["rmse"].(float64)
		code, out, errs = command(t, "verify", "m.krr", "--train", "a.csv", "--test", "a.csv", "--json", "v.json")
		if v := report(t, "v.json"); code != exitOK || math.Abs(v["test_error"].(float64)-rmse[center]) > 1e-5*(1+rmse[center]) || strings.Contains(out, "y less its mean") != (center != "no") {
			t.Errorf("%s: exit %d, RMSE %v, want %v; %s%s", center, code, v["test_error"], rmse[center], out, errs)
		}
		code, out, errs = command(t, "predict", "--model", "m.krr", "--in", "a.csv", "--bound", "--out", "p.csv")
		if code != exitOK || !strings.Contains(out, fmt.Sprintf("RMSE %.4g", rmse[center])) {
			t.Errorf("%s: exit %d, %s%s", center, code, out, errs)
		}
	}
	if rmse["auto"] != rmse["yes"] || !(rmse["auto"] < rmse["no"]/10) {
		t.Errorf("RMSE %v", rmse)
	}
	if code, out, errs := command(t, "fit", "--train", "c.csv"); code != exitOK || strings.Contains(out, "mean") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := command(t, "fit", "--train", "c.csv", "--center", "yes"); code != exitUsage || !strings.Contains(errs, "--center yes: the answers are classes") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// TestWeights: a column of weights is no feature of any file, whole weights are as many equal rows, and balanced
// classes find the rare one.
func TestWeights(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	var once, often, test, rare strings.Builder
	once.WriteString("x,w,y\n")
	often.WriteString("x,y\n")
	test.WriteString("x,w,y\n")
	for i := range 40 {
		x := float64(i*7%40) / 10
		y := 5 + math.Sin(x) + float64(i%2)
		fmt.Fprintf(&once, "%g,%d,%g\n", x, 1+i%2*2, y)
		for range 1 + i%2*2 {
			fmt.Fprintf(&often, "%g,%g\n", x, y)
		}
		fmt.Fprintf(&test, "%g,1,%g\n", x+0.05, y)
		fmt.Fprintf(&rare, "%g,%s\n", x, []string{"a", "b"}[btoi(i%8 == 0)])
	}
	for name, b := range map[string]*strings.Builder{"once.csv": &once, "often.csv": &often, "test.csv": &test, "rare.csv": &rare} {
		write(t, dir, name, b.String())
	}
	fit := []string{"fit", "--sigma", "1", "--lambda", "0.3", "--scale", "none", "--json", "r.json", "--out"}
	rmse := func(args ...string) float64 {
		t.Helper()
		if code, out, errs := command(t, append(fit, args...)...); code != exitOK {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
		return report(t, "r.json")["rmse"].(float64)
	}
	got := rmse("w.krr", "--train", "once.csv", "--weights", "w", "--test", "test.csv")
	if r := report(t, "r.json"); r["weighted"] != true || r["d"] != 1.0 {
		t.Errorf("%v", r)
	}
	want := rmse("o.krr", "--train", "often.csv", "--test", write(t, dir, "bare.csv", strings.ReplaceAll(strings.ReplaceAll(test.String(), ",1,", ","), ",w,", ",")))
	if !(math.Abs(got-want) <= 1e-5*want) {
		t.Errorf("RMSE %g with weights, %g with rows repeated", got, want)
	}
	code, out, errs := command(t, "predict", "--model", "w.krr", "--in", "test.csv", "--out", "p.csv")
	if code != exitOK || !strings.Contains(out, fmt.Sprintf("RMSE %.4g", got)) {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if code, out, _ := command(t, "model", "info", "w.krr"); code != exitOK || !strings.Contains(out, "weights ") {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, out, errs := command(t, "predict", "--model", "w.krr", "--in", "test.csv", "--interval", "90%"); code != exitOK || !strings.Contains(out, "lo,hi") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	write(t, dir, "huge.csv", "x,w,y\n1,1,2\n2,1e300,3\n3,1,5\n")
	if code, out, _ := command(t, append(fit, "w.krr", "--train", "once.csv", "--weights", "w", "--solver", "direct")...); code != exitOK || !strings.Contains(out, "‖E‖₂ ≲") || !strings.Contains(out, "certain: ") {
		t.Errorf("exit %d, %s", code, out)
	}
	found := func(classes string) int {
		command(t, "fit", "--train", "rare.csv", "--sigma", "5", "--lambda", "1", "--class-weights", classes, "--out", "c.krr")
		_, out, _ := command(t, "predict", "--model", "c.krr", "--in", "rare.csv")
		return strings.Count(out, ",b\n")
	}
	if none, balanced := found("none"), found("balanced"); none != 0 || balanced < 5 {
		t.Errorf("the rare class is predicted %d times, balanced %d times", none, balanced)
	}
	for args, want := range map[string]string{
		"fit --train huge.csv --weights w":                                              "huge: the weight of row 1 (counted from 0) is 1e+300: want a positive number up to 1e150; leave rows of weight 0 out",
		"fit --train once.csv --weights z":                                              `once.csv, line 1: weights: no column is named "z": there are "x", "w", "y"`,
		"fit --train once.csv --weights y":                                              "once.csv, line 1: column 2 is both the target and the weights: name the target by --target",
		"fit --train once.csv --weights w --drop w":                                     "once.csv, line 1: weights: column 1 is among those dropped",
		"fit --train once.csv --weights x":                                              "once.csv, line 2, column 1: x: the weight 0 is not positive; leave rows of weight 0 out",
		"fit --train once.csv --class-weights balanced":                                 "once: class weights need classes, and the answers are numbers",
		"fit --data mnist --weights w":                                                  "--weights goes with --train; --data has its own (see krrlab fit --help)",
		"predict --model w.krr --in test.csv --interval 0.9 --method jackknife+":        "once was fitted with weights, which its model does not hold and leave-one-out and variances need: fit with --holdout or --test, whose rows are then used",
		"verify w.krr --train once.csv":                                                 "the model was fitted with weights, which its file does not have: its residual cannot be recomputed",
		"fit --train once.csv --weights w --solver pcg --precond features --features 9": "",
	} {
		if _, _, errs := command(t, strings.Fields(args)...); want != "" && errs != "krrlab: "+want+"\n" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: %swant %s", args, errs, want)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestImpute: missing values are refused with a count by column, or filled by the training rows' median or mean, as if the
// file had these; predict and verify fill by the same numbers.
func TestImpute(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	rows := func(missing func(i int) string) string {
		var b strings.Builder
		b.WriteString("a,b,y\n")
		for i := range 31 {
			cell := fmt.Sprint(i * i)
			if i%10 == 3 {
				cell = missing(i)
			}
			fmt.Fprintf(&b, "%g,%s,%g\n", float64(i*7%31)/31, cell, float64(i%5))
		}
		return b.String()
	}
	var known []float64
	for i := range 31 {
		if i%10 != 3 {
			known = append(known, float64(i*i))
		}
	}
	mean := 0.0
	for _, v := range known {
		mean += v / float64(len(known))
	}
	words := []string{"", "NA", "NaN", "?"}
	write(t, dir, "a.csv", rows(func(i int) string { return words[i/10] }))
	fills := map[string]float64{"median": (known[13] + known[14]) / 2, "mean": mean}
	if len(known)%2 == 1 {
		fills["median"] = known[len(known)/2]
	}
	for how, fill := range fills {
		write(t, dir, "filled.csv", rows(func(int) string { return strconv.FormatFloat(fill, 'g', -1, 64) }))
		for _, scale := range []string{"none", "standard"} {
			common := []string{"--sigma", "2", "--task", "regression", "--scale", scale, "--out"}
			code, out, errs := command(t, append([]string{"fit", "--train", "a.csv", "--test", "a.csv", "--impute", how}, append(common, "a.krr")...)...)
			if code != exitOK || !strings.Contains(out, "note: --impute "+how+": filled 3 missing values in the training rows, in 1 of 2 features") {
				t.Fatalf("%s, %s: exit %d, %s%s", how, scale, code, out, errs)
			}
			if code, _, errs := command(t, append([]string{"fit", "--train", "filled.csv"}, append(common, "b.krr")...)...); code != exitOK {
				t.Fatal(errs)
			}
			_, got, _ := command(t, "predict", "--model", "a.krr", "--in", "a.csv")
			_, want, _ := command(t, "predict", "--model", "b.krr", "--in", "filled.csv")
			if far := farthest(t, got, want, 31); !(far <= 1e-9) {
				t.Errorf("%s, %s: predictions are off by %g", how, scale, far)
			}
			if code, out, errs := command(t, "verify", "a.krr", "--train", "a.csv"); code != exitOK || !strings.Contains(out, "the points are those of the model") {
				t.Errorf("%s, %s: exit %d, %s%s", how, scale, code, out, errs)
			}
			if code, _, errs := command(t, "predict", "--model", "b.krr", "--in", "a.csv"); code != exitError || !strings.Contains(errs, `in 31 rows 3 cells are missing: "b" 3`) {
				t.Errorf("a model that fills nothing: exit %d, %s", code, errs)
			}
		}
	}
	write(t, dir, "none.csv", "a,b\nNA,1\nNA,2\nNA,3\n")
	if code, _, errs := command(t, "fit", "--train", "none.csv", "--impute", "mean"); code != exitError || !strings.Contains(errs, `"a" has no value at all`) {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// TestLengths: one length scale for each feature is a fit with σ = 1 to features divided by them, after any scaling.
func TestLengths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	var b, divided strings.Builder
	for i := range 40 {
		x, z := float64(i*7%40)/10, float64(i*11%40)/5
		fmt.Fprintf(&b, "%g,%g,%g\n", x, z, math.Sin(x)+z)
		fmt.Fprintf(&divided, "%g,%g,%g\n", x/2, z/0.25, math.Sin(x)+z)
	}
	write(t, dir, "a.csv", b.String())
	write(t, dir, "d.csv", divided.String())
	write(t, dir, "sigma.txt", "2\n0.25\n")
	fitted := func(train string, args ...string) (string, map[string]any) {
		t.Helper()
		if code, out, errs := command(t, append([]string{"fit", "--train", train, "--test", train, "--lambda", "0.1", "--out", "m.krr", "--json", "r.json"}, args...)...); code != exitOK {
			t.Fatalf("%s: exit %d, %s%s", args, code, out, errs)
		}
		_, out, _ := command(t, "predict", "--model", "m.krr", "--in", train)
		if code, text, errs := command(t, "verify", "m.krr", "--train", train); code != exitOK || !strings.Contains(text, "proved") {
			t.Errorf("%s: verify: exit %d, %s%s", args, code, text, errs)
		}
		return out, report(t, "r.json")
	}
	want, _ := fitted("d.csv", "--sigma", "1", "--scale", "none")
	for _, sigma := range []string{"2,0.25", "sigma.txt"} {
		got, r := fitted("a.csv", "--sigma", sigma, "--scale", "none")
		if _, info, _ := command(t, "model", "info", "--model", "m.krr"); !strings.Contains(info, "scaling      length scales 2, 0.25\n") || r["scaling"] != "length scales 2, 0.25" {
			t.Errorf("--sigma %s: %v, %s", sigma, r["scaling"], info)
		}
		if far := farthest(t, got, want, 40); !(far <= 1e-9) || r["kernel"].(map[string]any)["sigma"] != 1.0 {
			t.Errorf("--sigma %s: kernel %v, predictions are off by %g", sigma, r["kernel"], far)
		}
	}
	all, _ := fitted("a.csv", "--sigma", "1.5", "--scale", "standard")
	each, _ := fitted("a.csv", "--sigma", "1.5,1.5", "--scale", "standard")
	if far := farthest(t, each, all, 40); !(far <= 1e-4) {
		t.Errorf("a length for each is off by %g of one for all", far)
	}
	for args, want := range map[string]string{
		"fit --train a.csv --sigma 1,2,3":                    "3 length scales for 2 features: want one for each",
		"fit --train a.csv --sigma 1,2,3 --drop 0":           "3 length scales for 1 feature: want one for each",
		"fit --train a.csv --sigma 1,b":                      `--sigma 1,b: "b" is not a number (see krrlab fit --help)`,
		"fit --train a.csv --sigma 1,0":                      "--sigma 0: want a positive number (see krrlab fit --help)",
		"fit --train a.csv --sigma none.txt":                 `--sigma "none.txt": want a number, one for each feature separated by commas, or a file of numbers (see krrlab fit --help)`,
		"fit --train a.csv --kernel polynomial --sigma 1,2":  "--sigma does not go with --kernel polynomial; it has --gamma, --coef0 and --degree (see krrlab fit --help)",
		"statdim --train a.csv --sigma 1,2,3 --features 10":  "3 length scales for 2 features: want one for each",
		"fit --data synthetic-regression --n 50 --sigma 1,2": "2 length scales for 4 features: want one for each",
	} {
		if _, _, errs := command(t, strings.Fields(args)...); errs != "krrlab: "+want+"\n" {
			t.Errorf("%s: %swant %s", args, errs, want)
		}
	}
}

// TestCategorical: words are coded for the fit, its test file, predict and verify alike; words that the training rows do
// not have are zeros, with a line that says so.
func TestCategorical(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	var train, coded strings.Builder
	train.WriteString("x,city,y\n")
	coded.WriteString("x,city=bonn,city=köln,city=ulm,y\n")
	for i := range 45 {
		x, k := float64(i*7%45)/10, i%3
		y := math.Sin(x) + []float64{0, 3, 7}[k]
		fmt.Fprintf(&train, "%g,%s,%g\n", x, []string{"ulm", "köln", "bonn"}[k], y)
		fmt.Fprintf(&coded, "%g,%s,%g\n", x, []string{"0,0,1", "0,1,0", "1,0,0"}[k], y)
	}
	write(t, dir, "a.csv", train.String())
	write(t, dir, "b.csv", coded.String())
	write(t, dir, "new.csv", "x,city,y\n1,paris,1\n2,ulm,1\n")
	code, out, errs := command(t, "fit", "--train", "a.csv", "--test", "new.csv", "--categorical", "city", "--sigma", "1", "--out", "a.krr")
	if code != exitOK || !strings.Contains(out, "note: 1 word of a categorical column in new.csv is not in the training data") || !strings.Contains(out, "n = 45, d = 4") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	if code, out, errs := command(t, "fit", "--train", "b.csv", "--sigma", "1", "--out", "b.krr"); code != exitOK {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	_, got, _ := command(t, "predict", "--model", "a.krr", "--in", "a.csv")
	_, want, _ := command(t, "predict", "--model", "b.krr", "--in", "b.csv")
	if got != want || strings.Count(got, "\n") != 46 {
		t.Errorf("predicted\n%swant\n%s", got, want)
	}
	if code, out, errs := command(t, "verify", "a.krr", "--train", "a.csv"); code != exitOK || !strings.Contains(out, "the points are those of the model") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if code, out, errs := command(t, "predict", "--model", "a.krr", "--in", "new.csv"); code != exitOK || strings.Count(out, "\n") != 3 || !strings.HasPrefix(errs, "krrlab: note: 1 word of") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := command(t, "fit", "--train", "a.csv"); code != exitError || !strings.HasSuffix(errs, "; say krrlab fit --train a.csv --categorical city\n") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// TestTargets: a fit to several targets predicts each as a fit to it alone does, and judges each; no target is a feature.
func TestTargets(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	var b, alone strings.Builder
	b.WriteString("a,x,b,z,c\n")
	alone.WriteString("x,z\n")
	for i := range 60 {
		x, z := float64(i*7%60)/10, float64(i*11%60)/10
		fmt.Fprintf(&b, "%g,%g,%g,%g,%g\n", 100+math.Sin(x), x, x*z, z, -5+math.Cos(z))
		fmt.Fprintf(&alone, "%g,%g\n", x, z)
	}
	write(t, dir, "a.csv", b.String())
	write(t, dir, "alone.csv", alone.String())
	for _, solver := range []string{"direct", "pcg"} {
		fit := func(target string, args ...string) map[string]any {
			t.Helper()
			code, out, errs := command(t, append([]string{"fit", "--train", "a.csv", "--target", target, "--test", "a.csv", "--task", "regression", "--sigma", "1", "--solver", solver,
				"--tol", "1e-10", "--out", "m.krr", "--json", "r.json"}, args...)...)
			if code != exitOK || target == "a,c" && !strings.Contains(out, "RMSE of each target ") {
				t.Fatalf("exit %d, %s%s", code, out, errs)
			}
			return report(t, "r.json")
		}
		both := fit("a,c", "--drop", "b")
		want := both["target_rmse"].([]any)
		_, together, _ := command(t, "predict", "--model", "m.krr", "--in", "alone.csv")
		code, out, errs := command(t, "predict", "--model", "m.krr", "--in", "a.csv", "--decision", "--out", "p.csv")
		if code != exitOK || !strings.Contains(out, "RMSE of each target ") {
			t.Errorf("exit %d, %s%s", code, out, errs)
		}
		if _, out, _ := command(t, "model", "info", "m.krr"); !strings.Contains(out, "t = 2, columns a, c, y less its means 1") || strings.Contains(out, "intervals") {
			t.Error(out)
		}
		if code, out, errs := command(t, "verify", "m.krr", "--train", "a.csv", "--test", "a.csv"); code != exitOK || !strings.Contains(out, "t = 2") || !strings.Contains(out, "of all targets together") {
			t.Errorf("exit %d, %s%s", code, out, errs)
		}
		for j, target := range []string{"a", "c"} {
			other := []string{"c", "a"}[j]
			r := fit(target, "--drop", "b,"+other)
			if v := want[j].(float64); math.Abs(r["rmse"].(float64)-v) > 1e-6 {
				t.Errorf("%s: target %s: RMSE %v, alone %v", solver, target, v, r["rmse"])
			}
			_, single, _ := command(t, "predict", "--model", "m.krr", "--in", "alone.csv")
			var cells strings.Builder
			for line := range strings.Lines(together) {
				c := strings.Split(strings.TrimSpace(line), ",")
				fmt.Fprintf(&cells, "%s,%s\n", c[0], c[1+j])
			}
			if far := farthest(t, cells.String(), single, 60); !(far <= 1e-3) || !strings.HasPrefix(together, "row,prediction_a,prediction_c\n") {
				t.Errorf("%s: target %s: off by %g of the fit to it alone", solver, target, far)
			}
		}
	}
	for args, want := range map[string]string{
		"fit --train a.csv --target a,q":                       `a.csv, line 1: target: no column is named "q": there are "a", "x", "b", "z", "c"`,
		"fit --train a.csv --target a,a":                       "a.csv, line 1: target: column 0 is dropped or named twice",
		"fit --train a.csv --target a,b --task classification": "a.csv, line 1: --target a,b: several targets need --task regression",
	} {
		if _, _, errs := command(t, strings.Fields(args)...); errs != "krrlab: "+want+"\n" {
			t.Errorf("%s: %swant %s", args, errs, want)
		}
	}
}

// farthest returns by how much two files of so many predictions differ at most.
func farthest(t *testing.T, a, b string, rows int) (far float64) {
	t.Helper()
	x, z := strings.Fields(a), strings.Fields(b)
	if len(x) != rows+1 || len(z) != rows+1 {
		t.Fatalf("%d and %d lines", len(x), len(z))
	}
	for i := range rows {
		var row int
		var v, w float64
		if _, err := fmt.Sscanf(x[i+1]+" "+z[i+1], "%d,%g %d,%g", &row, &v, &row, &w); err != nil {
			t.Fatal(err)
		}
		far = max(far, math.Abs(v-w))
	}
	return far
}
