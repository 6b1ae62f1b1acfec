package datasets

import (
	"fmt"
	"strings"
)

// shownClasses is the number of classes that are named one by one.
const shownClasses = 10

// String describes the data set in one line: name, task, n, d, classes, source.
func (d *Dataset) String() string {
	var b strings.Builder
	name := d.Name
	if name == "" {
		name = "data set"
	}
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
	if d.Source != "" && d.Source != d.Name {
		b.WriteString("; " + d.Source)
	}
	return b.String()
}

// String describes both parts and the scaling, a line each.
func (p *Pair) String() string {
	line := func(name string, d *Dataset) string {
		if d == nil {
			return fmt.Sprintf("%-8s none\n", name)
		}
		return fmt.Sprintf("%-8s %v\n", name, d)
	}
	scaling := "none"
	if p.Scaling != nil {
		scaling = p.Scaling.Kind + ", fitted on the training points, applied to both parts"
	}
	out := line("training", p.Train) + line("test", p.Test) + fmt.Sprintf("%-8s %s\n", "scaling", scaling)
	if p.Info != nil && p.Info.Note != "" {
		out += fmt.Sprintf("%-8s %s\n", "note", p.Info.Note)
	}
	return out
}
