package stage

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/model"
)

// TestClassesLines checks the lines that a report shows for classes. A small number of classes has a confusion
// matrix, and a large one has the most frequent confusions and a part of the errors. Control characters are escaped
// and long labels are cut.
func TestClassesLines(t *testing.T) {
	auc := 0.75
	small := &model.Classes{Labels: []string{"lo\x1b", "high"}, Counts: [][]float64{{12, 1}, {0, 7}},
		Errors: []model.ErrorCount{{Wrong: 1, Total: 13}, {Total: 7}},
		Scores: []model.PrecisionRecall{{Precision: 1, Recall: 12. / 13, F1: 0.96}, {Precision: 0.875, Recall: 1,
			F1: 14. / 15}},
		BaseRate: 0.65, Largest: "lo\x1b", AUC: &auc, AUCDescription: "of a against b"}
	large := &model.Classes{BaseRate: 0.5, Largest: "c"}
	for i := range 15 {
		name := string(rune('a' + i))
		large.Labels, large.Errors = append(large.Labels, name), append(large.Errors, model.ErrorCount{Wrong: 1,
			Total: 4})
		large.Confusions = append(large.Confusions, model.Confusion{Class: name, Predicted: "x",
			ErrorCount: model.ErrorCount{Wrong: 1, Total: 4}})
	}
	for want, classes := range map[string]*model.Classes{
		"": nil,
		`classes        the largest, "lo\x1b", has 65.00 % of the points; AUC 0.7500, of a against b
confusion      class, taken for →  "lo\x1b"  high   error  precision    recall      F1
               "lo\x1b"                  12     1  7.69 %   100.00 %   92.31 %  0.9600
               high                       0     7  0.00 %    87.50 %  100.00 %  0.9333
`: small,
		`classes        the largest, c, has 50.00 % of the points
confusion      taken: a for x 1 of 4; b for x 1 of 4; c for x 1 of 4; d for x 1 of 4; e for x 1 of 4; f for x 1 of 4; 9 other pairs less often
errors         a 25.00 %, b 25.00 %, c 25.00 %, d 25.00 %, e 25.00 %, f 25.00 %, g 25.00 %, h 25.00 %, i 25.00 %, j 25.00 %, k 25.00 %, l 25.00 %, 3 others in the JSON
`: large,
	} {
		var lines Lines
		if lines.AddClasses(classes); lines.String() != want {
			t.Errorf("%s\nwant\n%s", lines.String(), want)
		}
	}
	if strings.Contains(labels([]string{strings.Repeat("x", 40)})[0], strings.Repeat("x", maxLabelWidth)) {
		t.Error("a long label is not cut")
	}
}
