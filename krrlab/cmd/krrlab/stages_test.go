package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestStagesUnderMPI runs the command of every stage, and predict and verify, on two ranks of one MPI implementation
// and three ranks of the other. There must be one output and one set of files, with the same numbers apart from times.
func TestStagesUnderMPI(t *testing.T) {
	dir := t.TempDir()
	data := []string{"--data", "synthetic-classes", "--n", "500", "--lambda", "0.3"}
	modelFile := filepath.Join(dir, "m.krr")
	mustRun(t, krrlab(testContext(t), t, 0, 2, append([]string{"fit", "--blas", "go", "--precond", "auto features=60",
		"--out", modelFile}, data...)...))
	for _, stage := range []struct {
		name string
		args []string
	}{
		{"statdim", append([]string{"statdim", "--method", "slq", "--precond", "features features=60", "--max-probes",
			"16"}, data...)},
		{"sketch-size", append([]string{"sketch-size", "--max", "128", "--kappa-target", "170"}, data...)},
		{"multilevel", append([]string{"multilevel", "--levels", "features:200,gaussian:60"}, data...)},
		{"lambda-p", append([]string{"lambda-p", "--precond", "features features=60", "--points", "3"}, data...)},
		{"quality", append([]string{"quality", "--precond", "features features=60"}, data...)},
		{"verify", []string{"verify", modelFile, "--data", "synthetic-classes"}},
		{"predict", []string{"predict", "--model", modelFile, "--data", "synthetic-classes:test", "--decision"}},
	} {
		t.Run(stage.name, func(t *testing.T) {
			var reference any
			for launcher, rankCount := range []int{2, 3} {
				file := filepath.Join(dir, fmt.Sprintf("%s-%d", stage.name, launcher))
				flag := "--json"
				if stage.name == "predict" {
					flag = "--out"
				}
				text, err := krrlab(testContext(t), t, launcher, rankCount, append(stage.args, "--blas", "go", flag,
					file)...).CombinedOutput()
				if err != nil || strings.Count(string(text), "wrote") != 1 {
					t.Fatalf("want one output file; error %v:\n%s", err, text)
				}
				if want := fmt.Sprintf("ranks          %d (%d on this machine)", rankCount,
					rankCount); stage.name != "predict" && strings.Count(string(text), want) != 1 {
					t.Errorf("want one line %q:\n%s", want, text)
				}
				content := testkit.Must(os.ReadFile(file))
				got := any(string(content))
				if flag == "--json" {
					testkit.OK(t, json.NewDecoder(bytes.NewReader(content)).Decode(&got))
					got = testkit.JSONWithoutTimes(got, nil)
				}
				if reference == nil {
					reference = got
				}
				if !reflect.DeepEqual(got, reference) {
					t.Errorf("%d ranks of %s:\n%v\n2 of %s:\n%v", rankCount, launchers[launcher].name, got,
						launchers[0].name, reference)
				}
			}
		})
	}
	text, err := krrlab(testContext(t), t, 1, 2, append([]string{"quality", "--precond", "none", "--solver"},
		data...)...).CombinedOutput()
	if err == nil || strings.Count(string(text), "unknown flag") != 1 {
		t.Errorf("a wrong flag: want an error and one message; error %v:\n%s", err, text)
	}
}
