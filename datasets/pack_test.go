package datasets

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// packedSets returns a data set of each format of points and kind of answers.
func packedSets() map[string]*Dataset {
	x := []float64{1, 0, 2.5, 3, 0, -6, 0, 8, 9}
	return map[string]*Dataset{
		"dense": {Name: "d", X: points.NewDense(3, 3, x), Target: []float64{1, 2, 3}, MoreTargets: [][]float64{{4, 5, 6}},
			TargetNames: []string{"a", "b"}, Columns: []string{"p", "q=1", "q=2"}, Weights: []float64{1, 2, 1},
			ColumnCodings: []ColumnCoding{{Column: "q", Values: []string{"1", "2"}}},
			ReadReport:    &ReadReport{File: "d.csv", Rows: 3},
			Scaling:       &Scaling{Kind: "unit", Scale: []float64{1, 0, 1.0 / 3}}},
		"float32": {Task: Classification, X: points.NewDense32(3, 1, []float32{1, .5, .1}), Class: []int{1, 0, 1},
			Labels: []string{"no", "ü"}},
		"bytes": {X: &points.Bytes{N: 3, D: 3, Stride: 4, Scale: 1.0 / 255, Data: []byte("abc\x00def\x00ghi\x00")},
			Target: []float64{1, 2, 3}, bestErrors: []float64{0, 0, 1}},
		"sparse": {X: (&points.CSR{N: 4, D: 9, Ptr: []int{0, 1, 2, 2, 4}, Col: []int32{3, 1, 0, 8},
			Val: []float64{1, 2, 3, 4}}).Slice(1, 4), Target: []float64{1, 2, 3}},
	}
}

// packedFolder returns a folder with packed training data.
func packedFolder(t testing.TB, train *Dataset) string {
	t.Helper()
	dir := t.TempDir()
	if err := Pack(dir, &TrainTest{Train: train, Info: &Info{}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPack checks that packed data are loaded unchanged, to the bit.
func TestPack(t *testing.T) {
	for name, d := range packedSets() {
		dir := filepath.Join(t.TempDir(), "x")
		test := *d.Head(2)
		data := &TrainTest{Train: d, Test: &test, Info: &Info{Sigma: 2, Lambda: 3}, Target: "y", Drop: []string{"id"}}
		if err := Pack(dir, data); err != nil {
			t.Fatal(name, err)
		}
		loaded, err := Load(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		for k, d := range []*Dataset{d, &test} {
			got := []*Dataset{loaded.Train, loaded.Test}[k]
			if got.Fingerprint() != d.Fingerprint() || reflect.TypeOf(got.X) != reflect.TypeOf(d.X) {
				t.Errorf("%s: other numbers", name)
			}
			gotRest, wantRest := *got, *d
			gotRest.X, wantRest.X = nil, nil
			if !reflect.DeepEqual(gotRest, wantRest) {
				t.Errorf("%s: %+v, want %+v", name, gotRest, wantRest)
			}
		}
		if loaded.Info.Sigma != 2 || loaded.Info.Lambda != 3 || loaded.Target != "y" || loaded.Drop[0] != "id" {
			t.Errorf("%s: σ, λ, the target or the dropped columns differ: %+v", name, loaded)
		}
		_, err = Load(t.Context(), dir, &LoadOptions{N: 2})
		if refused := name == "dense"; (err != nil) != refused {
			t.Errorf("%s: 2 rows: %v", name, err)
		}
	}
	d := packedSets()["float32"]
	d.Class = []int{1, 1, 0}
	wantError(t, errorFrom(Load(t.Context(), packedFolder(t, d), &LoadOptions{N: 2})), "--n 2")
}

// TestPackDamaged checks that each file of a packed folder that is changed, cut short, extended or missing is refused
// in one line that names the file.
func TestPackDamaged(t *testing.T) {
	for kind, d := range packedSets() {
		dir := packedFolder(t, d)
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, name := range files {
			content := must(os.ReadFile(name))
			flipped := append([]byte(nil), content...)
			flipped[len(flipped)-5] ^= 1
			for damage, damagedContent := range map[string][]byte{"changed": flipped, "short": content[:len(content)-3],
				"empty": {},
				"long":  append(content[:len(content):len(content)], "more"...)} {
				os.WriteFile(name, damagedContent, 0o666)
				_, err := Load(t.Context(), dir, nil)
				if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: %s is %s: %v, want one line that names the file", kind, name, damage, err)
				}
			}
			os.Remove(name)
			if _, err := Load(t.Context(), dir, nil); err == nil {
				t.Errorf("%s: without %s", kind, name)
			}
			os.WriteFile(name, content, 0o666)
		}
	}
}

// TestPackInconsistent checks that a packed folder with inconsistent contents and valid checksums is refused in one
// line.
func TestPackInconsistent(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, c := range map[string]struct {
		kind   string
		change func(d *Dataset, m *manifest)
	}{
		"classes":        {"float32", func(d *Dataset, _ *manifest) { d.Class = d.Class[:2] }},
		"class":          {"float32", func(d *Dataset, _ *manifest) { d.Class = []int{1, 0, 99} }},
		"negative class": {"float32", func(d *Dataset, _ *manifest) { d.Class = []int{1, 0, -1} }},
		"one label":      {"float32", func(_ *Dataset, m *manifest) { m.Train.Labels = []string{"a"} }},
		"many labels":    {"float32", func(_ *Dataset, m *manifest) { m.Train.Labels = make([]string, 100000) }},
		"no answers":     {"sparse", func(d *Dataset, _ *manifest) { d.Target = nil }},
		"targets":        {"sparse", func(d *Dataset, _ *manifest) { d.Target = append(d.Target, 1) }},
		"target":         {"sparse", func(d *Dataset, _ *manifest) { d.Target = []float64{1, nan, 2} }},
		"names":          {"dense", func(_ *Dataset, m *manifest) { m.Columns = []string{"p"} }},
		"target names":   {"dense", func(_ *Dataset, m *manifest) { m.Targets = nil }},
		"weight":         {"dense", func(d *Dataset, _ *manifest) { d.Weights = []float64{1, 0, 1} }},
		"weights":        {"dense", func(d *Dataset, _ *manifest) { d.Weights = d.Weights[:1] }},
		"scaling":        {"dense", func(_ *Dataset, m *manifest) { m.Scaling = &Scaling{Scale: []float64{1}} }},
		"points":         {"dense", func(d *Dataset, _ *manifest) { d.X.(*points.Dense).Data[4] = nan }},
		"value":          {"sparse", func(d *Dataset, _ *manifest) { d.X.(*points.CSR).Val[2] = inf }},
		"no points":      {"dense", func(_ *Dataset, m *manifest) { m.Train.N = -1 }},
		"no features":    {"bytes", func(_ *Dataset, m *manifest) { m.Train.D = 0 }},
		"sigma":          {"bytes", func(_ *Dataset, m *manifest) { m.Sigma = -1 }},
	} {
		d, m := packedSets()[c.kind], &manifest{Train: &packedPart{}}
		c.change(d, m)
		dir := packedFolder(t, d)
		file := filepath.Join(dir, manifestName)
		if err := json.Unmarshal(must(os.ReadFile(file)), &m); err != nil {
			t.Fatal(err)
		}
		c.change(d, m)
		m.Sum = m.checksum()
		os.WriteFile(file, must(json.Marshal(m)), 0o666)
		_, err := Load(t.Context(), dir, nil)
		if err == nil || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") ||
			!strings.HasSuffix(err.Error(), ": pack the data again") {
			t.Errorf("%s: %v, want one line with the folder and the advice to pack again", name, err)
		}
	}
}

// FuzzPack checks that loading a packed folder whose manifest is any text with a valid checksum gives valid data or an
// error. The arrays of the folder are those of one of the packedSets, which the order of the map chooses.
func FuzzPack(f *testing.F) {
	for _, d := range packedSets() {
		dir := packedFolder(f, d)
		f.Add(must(os.ReadFile(filepath.Join(dir, manifestName))))
		f.Fuzz(func(t *testing.T, text []byte) {
			var m manifest
			if json.Unmarshal(text, &m) != nil {
				return
			}
			m.Sum = m.checksum()
			os.WriteFile(filepath.Join(dir, manifestName), must(json.Marshal(m)), 0o666)
			if data, err := Load(t.Context(), dir, nil); err == nil {
				_ = data.String()
				if err := data.Train.check(forbidMissing); err != nil {
					t.Fatal(err)
				}
			}
		})
		return
	}
}
