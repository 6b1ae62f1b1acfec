package datasets

import (
	"cmp"
	"fmt"
	"strings"
)

// shownClasses is the number of classes that are named one by one.
const shownClasses = 10

// String describes the data set in one line: name, task, n, d, classes, scaling, source.
func (d *Dataset) String() string {
	if d == nil {
		return "none"
	}
	var b strings.Builder
	name := cmp.Or(d.Name, "data set")
	if d.X == nil {
		return name + ": no points"
	}
	n, dim := d.X.Dims()
	fmt.Fprintf(&b, "%s: %v, n = %d, d = %d", name, d.Task, n, dim)
	switch {
	case !d.HasAnswers():
		b.WriteString(", no answers")
	case d.Class != nil && len(d.Labels) <= shownClasses:
		fmt.Fprintf(&b, ", classes %s", strings.Join(d.Labels, ", "))
	case d.Class != nil:
		fmt.Fprintf(&b, ", %d classes", len(d.Labels))
	}
	if d.Scaling != nil {
		b.WriteString(", scaled: " + d.Scaling.Kind)
	}
	if d.Source != "" && d.Source != d.Name {
		b.WriteString("; " + d.Source)
	}
	return b.String()
}

// String describes both parts, a line each.
func (p *Pair) String() string {
	out := fmt.Sprintf("%-8s %s\n%-8s %s\n", "training", p.Train.String(), "test", p.Test.String())
	if p.Info != nil && p.Info.Note != "" {
		out += fmt.Sprintf("%-8s %s\n", "note", p.Info.Note)
	}
	return out
}
