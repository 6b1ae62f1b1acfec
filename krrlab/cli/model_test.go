package cli

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestModelInfo checks that krrlab model info prints the settings and results of a fit and writes them as JSON, and
// that a file with one changed bit is refused.
func TestModelInfo(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(90, []string{"low", "mid", "high"})})
	runScript(t, `
$ fit --train train.csv --kernel matern52 --sigma 1.25 --lambda 0.03 --drop b --scale standard --holdout 0.1 --seed 7 --out m.krr
$ model info m.krr --json m.json
	classification
	matern52(sigma=1.25), λ = 0.03
	n = 81, d = 2, dense
	t = 3, column y; 3 classes: 
	low
	standard
	a, c
	10 % of 90 rows held out, without column b
	converged by direct
	asked 0.001, seed 7
	‖c−c*‖_A ≤ 
	(certain)
	version 1, written by krrlab test`)
	info, modelFile := readReport(t, "m.json"), readFile(t, "m.krr")
	if info["n"] != 81. || info["lambda"] != 0.03 || info["file_bytes"] != float64(len(modelFile)) ||
		info["origin"].(map[string]any)["seed"] != 7. {
		t.Errorf("want n = 81, λ = 0.03, seed 7 and %d bytes in the JSON: %v", len(modelFile), info)
	}
	modelFile[len(modelFile)/2] ^= 1
	writeFile(t, ".", "bad.krr", string(modelFile))
	runScript(t, `
1$ model info bad.krr
	bad.krr
2$ model info
	want one model`)
}

// TestPythonVerifier checks the independent verifier in NumPy, experiments/peers/verify_model.py. For models with each
// kind of kernel, scaling and target it must confirm the claimed residual and reproduce the predictions of krrlab. It
// must refuse models with weights, a missing file, other training data, and a model file with one changed bit.
func TestPythonVerifier(t *testing.T) {
	python := testkit.Python(t, "numpy", "python3-numpy")
	verifier := filepath.Join("..", "..", "experiments", "peers", "verify_model.py")
	if source, err := os.ReadFile(verifier); err != nil || strings.Count(string(source), "\n") > 120 {
		t.Fatalf("error %v, or the verifier has more than 120 lines", err)
	}
	dir := t.TempDir()
	modelFile := filepath.Join(dir, "m.krr")
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), python, append([]string{verifier}, args...)...).CombinedOutput()
		return string(out), err
	}
	words := []string{"low", "mid", "high"}
	// A table with words, missing cells and two targets.
	mixed := "city,x,y,z\n" + generateLines(120, func(i int) string {
		x := strconv.Itoa(i * 7 % 120)
		if i%9 == 4 {
			x = "NA"
		}
		return fmt.Sprintf("%s,%s,%d,%g\n", []string{"ulm", "bonn", ""}[i%3], x, i*7%120, math.Sin(float64(i)))
	})
	for i, c := range []struct{ train, flags string }{
		{randomTable(120, nil), "--kernel gaussian --sigma 1 --scale standard --holdout 0.2"},
		{randomRows(120, nil), "--kernel laplacian --sigma 3 --scale unit"},
		{randomTable(120, words), "--kernel matern32 --sigma 2 --drop b"},
		{randomTable(120, words[:2]), "--kernel matern52 --sigma 2 --solver cg --max-iter 2000"},
		{randomTable(120, nil), "--kernel matern32 --scale standard --holdout 0.2 --sigma " +
			writeFile(t, dir, "matrix.txt", "0.5 -0.25 0\n0.1 0.7 -0.3\n0 0.2 0.4\n")},
		{randomTable(120, nil), "--kernel laplacian --scale standard --holdout 0.2 --sigma 0.7,1.3,3.1"},
		{randomTable(120, nil), `--kernel "polynomial gamma=0.1 degree=2" --lambda 1`},
		{mixed, "--sigma 1 --target 3 --categorical city --impute median --holdout 0.2"},
		{strings.ReplaceAll(strings.ReplaceAll(mixed, ",NA", ",7"), ",", ";"),
			"--sigma 1 --target y,z --task regression --categorical city"},
	} {
		train := writeFile(t, dir, "train.csv", c.train)
		runScript(t, "$ fit --train "+train+" --out "+modelFile+" "+c.flags)
		newRows := train
		if !strings.HasPrefix(c.train, "city") {
			newRows = writeFile(t, dir, "new.csv", withoutLastColumn(c.train))
		}
		want := runScript(t, "$ predict --model "+modelFile+" --digits full --in "+newRows)
		got, err := run(modelFile, train, "--predict", newRows)
		if err != nil || !strings.Contains(got, "claimed") || !samePredictions(want, got) {
			t.Errorf("%s: %v: predictions\n%.300s, want\n%.300s", c.flags, err, got, want)
		}
		if i > 0 {
			continue // the refusals are checked only once, with the first model
		}
		runScript(t, "$ fit --train "+writeFile(t, dir, "heavy.csv",
			"x,w,y\n1,1,2\n2,2,3\n3,1,5\n4,2,4.5\n")+" --weights w --out "+filepath.Join(dir, "w.krr"))
		if out, err := run(filepath.Join(dir, "w.krr"), train); err == nil ||
			!strings.Contains(out, "fitted with weights") {
			t.Errorf("a model with weights: error %v: %s", err, out)
		}
		if out, err := run(modelFile, filepath.Join(dir, "no.csv")); err == nil || strings.Contains(out, "damaged") ||
			!strings.Contains(out, "no.csv: No such file") {
			t.Errorf("a missing file: error %v: %s", err, out)
		}
		other := writeFile(t, dir, "other.csv", strings.ReplaceAll(c.train, ",0", ",9"))
		if out, err := run(modelFile, other); err == nil || !strings.Contains(out, "refused") {
			t.Errorf("%s, other data: %v: %s", c.flags, err, out)
		}
		damaged := readFile(t, modelFile)
		// A byte of the array of coefficients, after the header of c.npy.
		position := strings.Index(string(damaged), "c.npy") + 600
		damaged[position] ^= 1
		if out, err := run(writeFile(t, dir, "bad.krr", string(damaged)), train); err == nil ||
			!strings.Contains(out, "c.npy") {
			t.Errorf("%s, damaged: %v: %s", c.flags, err, out)
		}
	}
}

// withoutLastColumn returns a table without its last column.
func withoutLastColumn(table string) string {
	var shortened strings.Builder
	for line := range strings.Lines(table) {
		shortened.WriteString(line[:strings.LastIndex(line, ",")] + "\n")
	}
	return shortened.String()
}

// samePredictions compares the csv output of krrlab predict with the predictions that the NumPy script prints, one row
// in a line after its messages. Numbers may differ by the relative error 1e-4; labels must be equal.
func samePredictions(csv, lines string) bool {
	rows, texts := strings.Fields(csv)[1:], strings.Split(strings.TrimSpace(lines), "\n")
	texts = slices.DeleteFunc(texts, func(l string) bool { return strings.HasPrefix(l, "verify_model.py") })
	if len(rows) != len(texts) {
		return false
	}
	for i := range rows {
		want, got := strings.Split(rows[i], ",")[1:], strings.Split(texts[i], ",")
		if len(want) != len(got) {
			return false
		}
		for j := range want {
			wantNumber, wantErr := strconv.ParseFloat(want[j], 64)
			gotNumber, gotErr := strconv.ParseFloat(got[j], 64)
			if want[j] != got[j] && (wantErr != nil || gotErr != nil ||
				math.Abs(wantNumber-gotNumber) > 1e-4*(1+math.Abs(wantNumber))) {
				return false
			}
		}
	}
	return true
}

// TestModelMemory checks that commands read a model within --memory, and that ranks share the memory of their machine.
func TestModelMemory(t *testing.T) {
	enterTempFolder(t, nil)
	const n, d = 1050, 2000 // more than the 16 MiB that are read within any limit
	m := &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, X: points.NewDense(n, d, nil), C: mat.NewDense(n, 1,
		nil)}
	testkit.OK(t, m.Save("large.krr"))
	for _, command := range []string{"serve large.krr --listen 127.0.0.1:0", "predict large.krr --in new.csv"} {
		runScript(t, "1$ "+command+" --memory 10MB\n\tof memory")
	}
	testkit.Equal(t, (&app{}).processesHere(), 1)
	testkit.Equal(t, (&app{ranks: &rankGroup{node: comm.Node{Ranks: 3}}}).processesHere(), 3)
}
