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
	maxShownPairs   = 6  // number of entries of the confusion matrix that are shown for more classes
	maxLabelWidth   = 16 // largest number of characters of a label
)

// AddScore adds the results of a prediction on rows with known targets.
func (b *Lines) AddScore(name string, s *model.Score) {
	b.Add(name, "%v", s)
	b.AddClasses(s.Classes)
}

// AddClasses adds the share of the largest class, the AUC and the confusion matrix. It adds nothing for nil.
func (b *Lines) AddClasses(c *model.Classes) {
	if c == nil {
		return
	}
	text := fmt.Sprintf("the largest, %s, has %.2f %% of the points", safe.Name(c.Largest), 100*c.BaseRate)
	if c.AUC != nil {
		text += fmt.Sprintf("; AUC %.4f, %s", *c.AUC, c.AUCDescription)
	}
	b.AddText("classes", text)
	if len(c.Labels) > maxTableClasses {
		b.addConfusions(c)
		return
	}
	cells := [][]string{append([]string{"class, taken for →"},
		append(labels(c.Labels), "error", "precision", "recall", "F1")...)}
	for i, row := range c.Counts {
		line := labels(c.Labels[i : i+1])
		for _, count := range row {
			line = append(line, fmt.Sprintf("%.6g", count))
		}
		s := c.Scores[i]
		cells = append(cells, append(line, c.Errors[i].String(), fmt.Sprintf("%.2f %%", 100*s.Precision),
			fmt.Sprintf("%.2f %%", 100*s.Recall), fmt.Sprintf("%.4f", s.F1)))
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
		b.AddText(map[bool]string{true: "confusion"}[i == 0], strings.Join(line, "  "))
	}
}

// addConfusions adds the largest entries of a confusion matrix that is too large to show, and the errors of the
// classes.
func (b *Lines) addConfusions(c *model.Classes) {
	confusions := c.Confusions
	var pairs, errors []string
	for _, v := range confusions[:min(maxShownPairs, len(confusions))] {
		pairs = append(pairs, fmt.Sprintf("%s for %s %.6g of %.6g", safe.Name(v.Class), safe.Name(v.Predicted), v.Wrong,
			v.Total))
	}
	if omitted := len(confusions) - len(pairs); omitted > 0 {
		pairs = append(pairs, fmt.Sprintf("%s less often", plural.Count(omitted, "other pair")))
	}
	if pairs != nil {
		b.Add("confusion", "taken: %s", strings.Join(pairs, "; "))
	}
	for i, name := range labels(c.Labels) {
		if c.Errors[i].Total > 0 {
			errors = append(errors, name+" "+c.Errors[i].String())
		}
	}
	const maxErrors = 12
	if omitted := len(errors) - maxErrors; omitted > 0 {
		errors = append(errors[:maxErrors], plural.Count(omitted, "other")+" in the JSON")
	}
	b.AddText("errors", strings.Join(errors, ", "))
}

// labels returns the names in printable form, shortened if they are long.
func labels(names []string) (printable []string) {
	for _, name := range names {
		name = safe.Name(name)
		if r := []rune(name); len(r) > maxLabelWidth {
			name = string(r[:maxLabelWidth-1]) + "…"
		}
		printable = append(printable, name)
	}
	return printable
}
