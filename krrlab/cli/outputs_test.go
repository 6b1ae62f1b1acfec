package cli

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// TestUnsavedModel checks that a model that cannot be saved is an error, while the report is still printed and written,
// and that the output does not claim to have written the model. A model whose true residual is NaN cannot be saved.
func TestUnsavedModel(t *testing.T) {
	dir := t.TempDir()
	lab, err := krrlab.New(datasets.SyntheticRegression(40, 2, 0.1, 1),
		krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1})
	testkit.OK(t, err)
	sol := testkit.Must(lab.Solve(t.Context()))
	sol.Model.Origin.TrueResidual = new(math.NaN())
	var out, stderr bytes.Buffer
	a := &app{env: Env{Stdout: &out, Stderr: &stderr}}
	f := newFitFlags()
	f.Out, f.JSON = filepath.Join(dir, "m.krr"), filepath.Join(dir, "r.json")
	err = a.writeResults(t.Context(), f, &fitResult{sol: sol})
	testkit.Fails(t, err, "model: not saved")
	testkit.Contains(t, out.String(), "converged", "wrote        "+f.JSON)
	if strings.Contains(out.String(), f.Out) {
		t.Errorf("the output claims to have written %s:\n%s", f.Out, &out)
	}
	if _, err := os.Stat(f.JSON); err != nil {
		t.Error(err)
	}
}

// TestPredictionsNPY checks that a .npy file of predictions accepts labels that are decimal numbers, and refuses other
// labels, even those that strconv parses as numbers.
func TestPredictionsNPY(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.npy")
	writeLabel := func(label string) ([]byte, error) {
		p := &predictions{Prediction: &model.Prediction{Labels: []string{"0", label}, Class: []int{1},
			Decision: mat.NewDense(1, 1, []float64{math.Inf(1)})}, writesDecision: true}
		err := p.write(nil, file)
		return testkit.Must(os.ReadFile(file)), err
	}
	testkit.OK(t, os.WriteFile(file, nil, 0o600))
	for _, label := range []string{"F", "t", "true", "inf", "NaN", "0x1p4", "1_0", "e", ""} {
		if _, err := writeLabel(label); err == nil || !strings.Contains(err.Error(), strconv.Quote(label)) {
			t.Errorf("label %q: error %v, want one with the label", label, err)
		}
	}
	for label, number := range map[string]float64{"1": 1, "-2.5": -2.5, "1e3": 1000} {
		data, err := writeLabel(label)
		if want := binary.LittleEndian.AppendUint64(nil, math.Float64bits(number)); err != nil ||
			!bytes.Contains(data, want) {
			t.Errorf("label %q: %v", label, err)
		}
	}
}
