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
	tableClasses = 8  // up to which the confusion matrix is shown whole
	shownPairs   = 6  // of more classes, its largest entries
	labelWidth   = 16 // of its labels, in characters
)

// Score adds the judgment of a prediction.
func (b *Lines) Score(name string, s *model.Score) {
	b.Add(name, "%v", s)
	b.Classes(s.Classes)
}

// Classes adds the share of the largest class, the AUC, and which class is taken for which; nothing of nil.
func (b *Lines) Classes(c *model.Classes) {
	if c == nil {
		return
	}
	text := fmt.Sprintf("the largest, %s, has %.2f %% of the points", safe.Name(c.Largest), 100*c.BaseRate)
	if c.AUC != nil {
		text += fmt.Sprintf("; AUC %.4f, %s", *c.AUC, c.AUCOf)
	}
	b.Add("classes", "%s", text)
	if len(c.Labels) > tableClasses {
		b.confusions(c)
		return
	}
	cells := [][]string{append([]string{"class, taken for →"}, append(labels(c.Labels), "error", "precision", "recall", "F1")...)}
	for i, row := range c.Counts {
		line := labels(c.Labels[i : i+1])
		for _, count := range row {
			line = append(line, fmt.Sprintf("%.6g", count))
		}
		s := c.Scores[i]
		cells = append(cells, append(line, c.Errors[i].String(), fmt.Sprintf("%.2f %%", 100*s.Precision),
			fmt.Sprintf("%.2f %%", 100*s.Recall), fmt.Sprintf("%.4f", s.F1)))
	}
	wide := make([]int, len(cells[0]))
	for _, line := range cells {
		for j, cell := range line {
			wide[j] = max(wide[j], utf8.RuneCountInString(cell))
		}
	}
	wide[0] = -wide[0] // to the left
	for i, line := range cells {
		for j := range line {
			line[j] = fmt.Sprintf("%*s", wide[j], line[j])
		}
		b.Add(map[bool]string{true: "confusion"}[i == 0], "%s", strings.Join(line, "  "))
	}
}

// confusions adds the largest entries of a matrix that is not shown whole, and the errors of the classes.
func (b *Lines) confusions(c *model.Classes) {
	all := c.Confusions
	var pairs, errors []string
	for _, v := range all[:min(shownPairs, len(all))] {
		pairs = append(pairs, fmt.Sprintf("%s for %s %.6g of %.6g", safe.Name(v.Class), safe.Name(v.For), v.Wrong, v.Of))
	}
	if more := len(all) - len(pairs); more > 0 {
		pairs = append(pairs, fmt.Sprintf("%s less often", plural.Count(more, "other pair")))
	}
	if pairs != nil {
		b.Add("confusion", "taken: %s", strings.Join(pairs, "; "))
	}
	for i, name := range labels(c.Labels) {
		if c.Errors[i].Of > 0 {
			errors = append(errors, name+" "+c.Errors[i].String())
		}
	}
	const most = 12
	if more := len(errors) - most; more > 0 {
		errors = append(errors[:most], plural.Count(more, "other")+" in the JSON")
	}
	b.Add("errors", "%s", strings.Join(errors, ", "))
}

// labels returns names that print, long ones cut.
func labels(names []string) (all []string) {
	for _, name := range names {
		name = safe.Name(name)
		if r := []rune(name); len(r) > labelWidth {
			name = string(r[:labelWidth-1]) + "…"
		}
		all = append(all, name)
	}
	return all
}
