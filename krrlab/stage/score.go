package stage

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/model"
)

const (
	maxTableClasses = 8  // largest number of classes for which the full confusion matrix is shown
	maxShownPairs   = 6  // largest number of entries of the confusion matrix that are shown for more classes
	maxLabelWidth   = 16 // largest number of characters of a label
)

// AddScore adds lines on a prediction for rows with known targets.
func (l *Lines) AddScore(name string, score *model.Score) {
	l.Add(name, "%v", score)
	l.AddClasses(score.Classes)
}

// AddClasses adds the share of the largest class, the AUC and the confusion matrix. It adds nothing for nil.
func (l *Lines) AddClasses(classes *model.Classes) {
	if classes == nil {
		return
	}
	text := fmt.Sprintf("the largest, %s, has %.2f %% of the points", safe.Name(classes.Largest), 100*classes.BaseRate)
	if classes.AUC != nil {
		text += fmt.Sprintf("; AUC %.4f, %s", *classes.AUC, classes.AUCDescription)
	}
	l.AddText("classes", text)
	if len(classes.Labels) > maxTableClasses {
		l.addConfusions(classes)
		return
	}
	cells := [][]string{append([]string{"class, taken for →"},
		append(labels(classes.Labels), "error", "precision", "recall", "F1")...)}
	for i, row := range classes.Counts {
		line := labels(classes.Labels[i : i+1])
		for _, count := range row {
			line = append(line, fmt.Sprintf("%.6g", count))
		}
		score := classes.Scores[i]
		cells = append(cells, append(line, classes.Errors[i].String(), fmt.Sprintf("%.2f %%", 100*score.Precision),
			fmt.Sprintf("%.2f %%", 100*score.Recall), fmt.Sprintf("%.4f", score.F1)))
	}
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for j, cell := range line {
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	widths[0] = -widths[0] // align the first column to the left
	for i, line := range cells {
		for j := range line {
			line[j] = fmt.Sprintf("%*s", widths[j], line[j])
		}
		name := ""
		if i == 0 {
			name = "confusion"
		}
		l.AddText(name, strings.Join(line, "  "))
	}
}

// addConfusions adds the largest entries of a confusion matrix that is too large to show, and the errors of the
// classes.
func (l *Lines) addConfusions(classes *model.Classes) {
	confusions := classes.Confusions
	var pairs, errors []string
	for _, confusion := range confusions[:min(maxShownPairs, len(confusions))] {
		pairs = append(pairs, fmt.Sprintf("%s for %s %.6g of %.6g", safe.Name(confusion.Class),
			safe.Name(confusion.Predicted), confusion.Wrong, confusion.Total))
	}
	if omitted := len(confusions) - len(pairs); omitted > 0 {
		pairs = append(pairs, fmt.Sprintf("%s less often", plural.Count(omitted, "other pair")))
	}
	if pairs != nil {
		l.Add("confusion", "taken: %s", strings.Join(pairs, "; "))
	}
	for i, name := range labels(classes.Labels) {
		if classes.Errors[i].Total > 0 {
			errors = append(errors, name+" "+classes.Errors[i].String())
		}
	}
	const maxErrors = 12 // largest number of classes whose errors are shown
	if omitted := len(errors) - maxErrors; omitted > 0 {
		errors = append(errors[:maxErrors], plural.Count(omitted, "other")+" in the JSON")
	}
	l.AddText("errors", strings.Join(errors, ", "))
}

// labels returns the names in printable form, shortened if they are long.
func labels(names []string) (printable []string) {
	for _, name := range names {
		name = safe.Name(name)
		if runes := []rune(name); len(runes) > maxLabelWidth {
			name = string(runes[:maxLabelWidth-1]) + "…"
		}
		printable = append(printable, name)
	}
	return printable
}
