package datasets

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/points"
)

// packedSets are data of each kind of points and answers.
func packedSets() map[string]*Dataset {
	x := []float64{1, 0, 2.5, 3, 0, -6, 0, 8, 9}
	return map[string]*Dataset{
		"dense": {Name: "d", X: points.NewDense(3, 3, x), Target: []float64{1, 2, 3}, More: [][]float64{{4, 5, 6}},
			Targets: []string{"a", "b"}, Columns: []string{"p", "q=1", "q=2"}, Weights: []float64{1, 2, 1},
			Categories: []Category{{Column: "q", Values: []string{"1", "2"}}}, Read: &Reading{File: "d.csv", Rows: 3},
			Scaling: &Scaling{Kind: "unit", Scale: []float64{1, 0, 1.0 / 3}}},
		"float32": {Task: Classification, X: points.NewDense32(3, 1, []float32{1, .5, .1}), Class: []int{1, 0, 1},
			Labels: []string{"no", "ü"}},
		"bytes": {X: &points.Bytes{N: 3, D: 3, Stride: 4, Scale: 1.0 / 255, Data: []byte("abc\x00def\x00ghi\x00")},
			Target: []float64{1, 2, 3}, oracle: []float64{0, 0, 1}},
		"sparse": {X: (&points.CSR{N: 4, D: 9, Ptr: []int{0, 1, 2, 2, 4}, Col: []int32{3, 1, 0, 8},
			Val: []float64{1, 2, 3, 4}}).Slice(1, 4), Target: []float64{1, 2, 3}},
	}
}

// TestPack: packed data are loaded as they were, to the bit.
func TestPack(t *testing.T) {
	for name, d := range packedSets() {
		dir := filepath.Join(t.TempDir(), "x")
		test := *d.Head(2)
		in := &Pair{Train: d, Test: &test, Info: &Info{Sigma: 2, Lambda: 3}, Target: "y", Drop: []string{"id"}}
		if err := Pack(dir, in); err != nil {
			t.Fatal(name, err)
		}
		p, err := Load(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		for k, d := range []*Dataset{d, &test} {
			got := []*Dataset{p.Train, p.Test}[k]
			if got.Fingerprint() != d.Fingerprint() || reflect.TypeOf(got.X) != reflect.TypeOf(d.X) {
				t.Errorf("%s: other numbers", name)
			}
			bare, was := *got, *d
			bare.X, was.X = nil, nil
			if !reflect.DeepEqual(bare, was) {
				t.Errorf("%s: %+v, want %+v", name, bare, was)
			}
		}
		if p.Info.Sigma != 2 || p.Info.Lambda != 3 || p.Target != "y" || p.Drop[0] != "id" {
			t.Errorf("%s: %+v", name, p)
		}
		_, err = Load(t.Context(), dir, &LoadOptions{N: 2})
		if refused := name == "dense"; (err != nil) != refused {
			t.Errorf("%s: 2 rows: %v", name, err)
		}
	}
	d := packedSets()["float32"]
	d.Class = []int{1, 1, 0}
	dir := t.TempDir()
	if err := Pack(dir, &Pair{Train: d, Info: &Info{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), dir, &LoadOptions{N: 2}); err == nil || !strings.Contains(err.Error(), "--n 2") {
		t.Errorf("two rows of one label: %v", err)
	}
}

// TestPackDamaged: each file changed, cut short, longer or missing is refused in one line that names it.
func TestPackDamaged(t *testing.T) {
	for kind, d := range packedSets() {
		dir := t.TempDir()
		if err := Pack(dir, &Pair{Train: d, Info: &Info{}}); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, name := range files {
			whole, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			flipped := append([]byte(nil), whole...)
			flipped[len(flipped)-5] ^= 1
			for what, b := range map[string][]byte{"changed": flipped, "short": whole[:len(whole)-3], "empty": {},
				"long": append(whole[:len(whole):len(whole)], "more"...)} {
				os.WriteFile(name, b, 0o666)
				_, err := Load(t.Context(), dir, nil)
				if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: %s %s: %v", kind, name, what, err)
				}
			}
			os.Remove(name)
			if _, err := Load(t.Context(), dir, nil); err == nil {
				t.Errorf("%s: without %s", kind, name)
			}
			os.WriteFile(name, whole, 0o666)
		}
	}
}
