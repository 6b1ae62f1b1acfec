package datasets

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestDatasetStrings checks the lines that a notebook shows of data sets and pairs of them.
func TestDatasetStrings(t *testing.T) {
	x := points.NewDense(7, 10, nil)
	d := &Dataset{Name: "a<b", Task: Classification, X: x, Class: []int{0, 1, 0, 1, 0, 1, 0},
		Labels: []string{"no", "yes"}, Source: "a.csv", Columns: []string{"age"}}
	scaled := d.Head(3)
	scaled.Scaling = &Scaling{Kind: "standard"}
	for name, c := range map[string]struct{ text, want string }{ // want is a part of the text
		"line": {d.String(), "a<b: classification, n = 7, d = 10, classes no, yes; a.csv"},
		"many classes": {(&Dataset{Task: Classification, X: x, Class: d.Class, Labels: make([]string, 40)}).String(),
			"data set: classification, n = 7, d = 10, 40 classes"},
		"no answers": {(&Dataset{Name: "u", X: x}).String(), "no answers"},
		"no points":  {(&Dataset{Name: "u"}).String(), "no points"},
		"pair": {(&TrainTest{Train: scaled}).String(),
			"classes no, yes, scaled: standard; a.csv\ntest     none\n"},
		"empty pair":    {(&TrainTest{}).String(), "training none"},
		"pair's answer": {(&TrainTest{Train: d, Test: d}).String(), "test     a<b: classification"},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("%s: %q, want %q", name, c.text, c.want)
		}
	}
}
