package cli

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/model"
)

// priced returns a table whose first column is 3x − 2y, with the columns in that order.
func priced(n int, order ...string) string {
	var b strings.Builder
	b.WriteString(strings.Join(order, ",") + "\n")
	for i := range n {
		x, y := math.Sin(float64(i)), math.Cos(3*float64(i))
		value := map[string]float64{"price": 3*x - 2*y, "x": x, "y": y}
		for j, name := range order {
			if j > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, "%.9g", value[name])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestColumnsOfTheFit checks that predict and verify take the target's column of the fit,
// whatever its place, and that features under other names are refused.
func TestColumnsOfTheFit(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, order ...string) string { return write(t, dir, name, priced(40, order...)) }
	train, m := file("train.csv", "price", "x", "y"), filepath.Join(dir, "m.krr")
	code, _, errs := command(t, "fit", "--train", train, "--target", "price", "--sigma", "1", "--lambda", "1e-6", "--solver", "direct", "--out", m)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for name, in := range map[string]string{
		"target first": train, "target last": file("last.csv", "x", "y", "price"), "no target": file("none.csv", "x", "y"),
	} {
		pred := filepath.Join(dir, "pred.csv")
		if code, out, errs := command(t, "predict", "--model", m, "--in", in, "--out", pred); code != 0 || strings.Contains(out, "R²") == (name == "no target") {
			t.Errorf("%s: exit %d: %s%s", name, code, out, errs)
			continue
		}
		b := read(t, pred)
		for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
			_, text, _ := strings.Cut(line, ",")
			v, err := strconv.ParseFloat(text, 64)
			if want := 3*math.Sin(float64(i)) - 2*math.Cos(3*float64(i)); err != nil || math.Abs(v-want) > 0.01 {
				t.Errorf("%s: row %d is predicted %s, want %g", name, i, text, want)
			}
		}
	}
	var svm strings.Builder // the same rows in a format that has no columns
	for _, line := range strings.Split(strings.TrimSpace(priced(40, "price", "x", "y")), "\n")[1:] {
		cells := strings.Split(line, ",")
		fmt.Fprintf(&svm, "%s 1:%s 2:%s\n", cells[0], cells[1], cells[2])
	}
	if code, out, errs := command(t, "verify", m, "--train", write(t, dir, "train.svm", svm.String())); code != 0 || !strings.Contains(out, "proved") {
		t.Errorf("in LIBSVM's format: exit %d: %s%s", code, out, errs)
	}
	swapped, other := file("swapped.csv", "price", "y", "x"), file("other.csv", "x", "y", "price")
	for _, args := range [][]string{ // found by their names
		{"fit", "--train", train, "--test", swapped, "--target", "price"},
		{"predict", "--model", m, "--in", swapped, "--out", filepath.Join(dir, "p.csv")},
		{"verify", m, "--train", swapped},
		{"verify", m, "--train", train, "--test", swapped},
	} {
		if code, out, errs := command(t, args...); code != 0 || !strings.Contains(out, `swapped.csv: csv; separator comma (3 cells in 41 of 41 rows); header yes`) {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
		args = slices.Clone(args)
		args[slices.Index(args, swapped)] = file("missing.csv", "price", "x")
		if code, _, errs := command(t, args...); code != 1 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, `missing.csv, line 1: the columns "y" of `) {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
	if code, _, errs := command(t, "fit", "--train", train, "--test", other, "--target", "price", "--solver", "direct"); code != 0 {
		t.Errorf("the target elsewhere: exit %d: %s", code, errs)
	}
	if code, _, errs := command(t, "predict", "--model", m, "--in", train, "--target", "prise"); code != 1 || !strings.Contains(errs, `"prise": there are "price", "x", "y"`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestPredictScaled: predict judges a model on the file of the test points as fit did, however
// the points were scaled.
func TestPredictScaled(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	sparse := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d 1:%d 3:0.%d 4:%d\n", i%2, i%7, i, 100-i)
		}
		return b.String()
	}
	write(t, dir, "a.csv", table(90, nil, true))
	write(t, dir, "b.csv", table(40, nil, true))
	write(t, dir, "a.svm", sparse(90))
	write(t, dir, "b.svm", sparse(40))
	for _, form := range []string{"csv", "svm"} {
		for _, scale := range datasets.Scalings {
			judged := func(args ...string) string {
				t.Helper()
				code, out, errs := command(t, args...)
				line := regexp.MustCompile(`(?m)^(?:test|training) +(.*)`).FindStringSubmatch(out)
				if code != exitOK || line == nil {
					t.Fatalf("%s: exit %d, %s%s", args, code, out, errs)
				}
				return line[1]
			}
			want := judged("fit", "--train", "a."+form, "--test", "b."+form, "--scale", scale, "--out", "m.krr")
			if got := judged("predict", "--model", "m.krr", "--in", "b."+form, "--out", "p.csv"); got != want {
				t.Errorf("%s, %s: %s, of the fit: %s", form, scale, got, want)
			}
		}
	}
}

// TestPredictBound: exact answers are within the bounds that a loose fit's model gives, labels that it calls settled are
// the exact fit's, and a model without bounds says so.
func TestPredictBound(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	rows := func(args ...string) [][]string {
		t.Helper()
		if code, _, errs := command(t, append(args, "--out", file("pred.csv"))...); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, errs)
		}
		b := read(t, file("pred.csv"))
		var all [][]string
		for line := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n") {
			all = append(all, strings.Split(line, ","))
		}
		return all
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for name, data := range map[string]string{"regression": priced(80, "x", "y", "price"), "classes": table(80, []string{"a", "b", "c"}, true)} {
		train := write(t, dir, name+".csv", data)
		for _, tol := range []string{"1e-1", "1e-12"} {
			code, _, errs := command(t, "fit", "--train", train, "--sigma", "1", "--lambda", "0.01", "--solver", "cg", "--residual", "exact", "--tol", tol, "--out", file(tol))
			if code != 0 && tol == "1e-1" {
				t.Fatalf("%s: exit %d: %s", name, code, errs)
			}
		}
		bound := []string{"predict", "--bound", "--decision", "--in", train, "--model"}
		loose, exact := rows(append(bound, file("1e-1"))...), rows(append(bound, file("1e-12"))...)
		at, last := slices.Index(loose[0], "bound"), len(loose[0])-1
		if at < 0 || (loose[0][last] == "settled") != (name == "classes") {
			t.Fatalf("%s: columns %v", name, loose[0])
		}
		moved := 0.0
		for i := range loose[1:] {
			l, e := loose[i+1], exact[i+1]
			for j := 2; j < at; j++ {
				off := math.Abs(number(l[j]) - number(e[j]))
				if moved = max(moved, off); off > number(l[at])+number(e[at]) {
					t.Errorf("%s, row %d: %s, exactly %s, bound %s", name, i, l[j], e[j], l[at])
				}
			}
			if l[last] == "true" && l[1] != e[1] {
				t.Errorf("%s, row %d: %s is settled and becomes %s", name, i, l[1], e[1])
			}
		}
		if moved < 1e-4 {
			t.Errorf("%s: the loose fit is off by %g only", name, moved)
		}
		m, err := model.Load(file("1e-1"))
		if err != nil || m.Error == nil || !m.Error.Certain {
			t.Fatalf("%s: %v, %v", name, m.Error, err)
		}
		m.Error = nil
		if err := m.Save(file("old")); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := command(t, append(bound, file("old"))...); code == 0 || !strings.Contains(errs, "has no bounds of its error") {
			t.Errorf("%s: a model without bounds: exit %d: %s", name, code, errs)
		}
	}
}

// TestFitStop: --stop says what ended the iteration, and that is a success.
func TestFitStop(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(120, []string{"a", "b", "c"}, true))
	js := filepath.Join(dir, "r.json")
	fit := func(more ...string) (int, string, string) {
		return command(t, append([]string{"fit", "--train", train, "--sigma", "1", "--lambda", "0.1", "--precond", "nystrom", "--features", "20", "--json", js}, more...)...)
	}
	for _, c := range []struct{ stop, tol, criterion string }{
		{"anorm", "1e-2", "anorm"}, {"labels=20%", "1e-9", "labels"}, {"labels=0.001", "0.5", "residual"}, {"residual", "1e-2", "residual"},
	} {
		code, out, errs := fit("--stop", c.stop, "--tol", c.tol)
		r := report(t, js)
		if code != 0 || r["criterion"] != c.criterion || (r["status"] == "converged") != (c.criterion == "residual") || !strings.Contains(out, "‖e‖_A ≤") {
			t.Errorf("--stop %s: exit %d, criterion %v, status %v: %s%s", c.stop, code, r["criterion"], r["status"], out, errs)
		}
		if open, ok := r["labels_open"].(float64); !ok || (r["labels_of"] != nil) != strings.HasPrefix(c.stop, "labels") || c.criterion == "labels" && open > 24 {
			t.Errorf("--stop %s: %v of %v labels open", c.stop, r["labels_open"], r["labels_of"])
		}
	}
	for _, stop := range []string{"labels", "labels=0", "energy"} {
		if code, _, errs := fit("--stop", stop); code != 2 || !strings.Contains(errs, "--stop") {
			t.Errorf("--stop %s: exit %d: %s", stop, code, errs)
		}
	}
}

// TestClassifierReport: fit, predict and verify show of a classifier's answers the base rate, the AUC and the confusion matrix, alike.
func TestClassifierReport(t *testing.T) {
	dir := t.TempDir()
	train, m, js := write(t, dir, "train.csv", table(120, []string{"lo", "mid", "hi"}, true)), filepath.Join(dir, "m.krr"), filepath.Join(dir, "m.json")
	test, v := write(t, dir, "test.csv", table(50, []string{"lo", "mid", "hi"}, true)), filepath.Join(dir, "v.json")
	var seen []string
	for _, args := range [][]string{
		{"fit", "--train", train, "--test", test, "--out", m, "--json", js}, {"predict", m, "--in", test, "--out", filepath.Join(dir, "p.csv")},
		{"verify", m, "--train", train, "--test", test, "--json", v},
	} {
		code, out, errs := command(t, args...)
		_, text, ok := strings.Cut(out, "\nclasses ")
		if args[0] == "predict" {
			_, text, ok = strings.Cut(out, "classes ")
		}
		lines := strings.Split(text, "\n")
		if code != exitOK || !ok || len(lines) < 6 {
			t.Fatalf("%v: exit %d: %s%s", args, code, out, errs)
		}
		for i, line := range lines[:5] {
			lines[i] = strings.Join(strings.Fields(line), " ")
		}
		seen = append(seen, strings.Join(lines[:5], "\n"))
	}
	if seen[0] != seen[1] || seen[0] != seen[2] || !strings.Contains(seen[0], "AUC 0.") || !strings.Contains(seen[0], "confusion class, taken for →") {
		t.Errorf("%q", seen)
	}
	r, w := report(t, js), report(t, v)
	c := r["classes"].(map[string]any)
	if c["base_rate"].(float64) < 0.34 || c["auc"] == nil || len(c["confusion"].([]any)) != 3 || !reflect.DeepEqual(c, w["classes"]) || r["training_error"].(float64) > r["test_error"].(float64) {
		t.Errorf("%v, %v", c, w["classes"])
	}
}

// TestKeep: the columns that --keep names are copied as they stand in the file, by name and number, with and without a header.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	train, m, bare := write(t, dir, "train.csv", table(60, nil, true)), filepath.Join(dir, "m.krr"), filepath.Join(dir, "bare.krr")
	headless := write(t, dir, "bare.csv", table(60, nil, false))
	for from, to := range map[string]string{train: m, headless: bare} {
		if code, out, errs := command(t, "fit", "--train", from, "--out", to); code != exitOK {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
	}
	named := write(t, dir, "new.csv", "id,c,a,b,note\n007,1,2,3,\"x, \"\"y\"\"\"\n1e3, 0.50 ,1,1,-\n")
	plain := write(t, dir, "plain.csv", "1,2,3\n 4,5,6.50\n")
	for _, c := range []struct{ model, in, keep, head, first, second string }{
		{m, named, "id", "row,id,prediction", "0,007,", "1,1e3,"}, {m, named, "note,id", "row,note,id,prediction", `0,"x, ""y""",007,`, "1,-,1e3,"},
		{m, named, "c,-1", "row,c,note,prediction", `0,1,"x, ""y""",`, "1,0.50,-,"}, {m, named, "0", "row,id,prediction", "0,007,", "1,1e3,"},
		{bare, plain, "2", "row,column 2,prediction", "0,3,", "1,6.50,"}, {m, train, "y,a", "row,y,a,prediction", "0,", "1,"},
	} {
		code, out, errs := command(t, "predict", c.model, "--in", c.in, "--keep", c.keep)
		lines := strings.Split(out, "\n")
		if code != exitOK || lines[0] != c.head || !strings.HasPrefix(lines[1], c.first) || !strings.HasPrefix(lines[2], c.second) {
			t.Errorf("--keep %s: exit %d, %q, %s", c.keep, code, lines[:min(3, len(lines))], errs)
		}
	}
	for _, c := range [][2]string{{"nothing", `no column is named "nothing"`}, {"9", "column 9"}} {
		if code, _, errs := command(t, "predict", m, "--in", named, "--keep", c[0]); code != exitError || !strings.Contains(errs, c[1]) {
			t.Errorf("--keep %s: exit %d, %s", c[0], code, errs)
		}
	}
	svm := write(t, dir, "new.svm", "1 1:2 2:3 3:1\n")
	if code, _, errs := command(t, "predict", m, "--in", svm, "--format", "libsvm", "--keep", "id"); code != exitError || !strings.Contains(errs, "--keep is for csv files") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
