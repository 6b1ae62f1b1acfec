package cli

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
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
		b, err := os.ReadFile(pred)
		if err != nil {
			t.Fatal(err)
		}
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
	for _, args := range [][]string{
		{"fit", "--train", train, "--test", swapped, "--target", "price"},
		{"predict", "--model", m, "--in", swapped},
		{"verify", m, "--train", swapped},
		{"verify", m, "--train", train, "--test", swapped},
	} {
		code, _, errs := command(t, args...)
		if code != 1 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, `swapped.csv: feature column 1 is "y" here, "x" in `) {
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
				line := regexp.MustCompile(`(?m)^test .*`).FindString(out)
				if code != exitOK || line == "" {
					t.Fatalf("%s: exit %d, %s%s", args, code, out, errs)
				}
				return line
			}
			want := judged("fit", "--train", "a."+form, "--test", "b."+form, "--scale", scale, "--out", "m.krr")
			if got := judged("predict", "--model", "m.krr", "--in", "b."+form, "--out", "p.csv"); got != want {
				t.Errorf("%s, %s: %s, of the fit: %s", form, scale, got, want)
			}
		}
	}
}
