package stage

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/internal/outward"
)

// Lines builds a text of aligned lines, each with a name and a text. The zero value is ready to use.
type Lines struct {
	Width int             // width of the names; default: 14
	text  strings.Builder // the lines so far
}

// String returns the lines so far.
func (l *Lines) String() string { return l.text.String() }

// Add adds a line. Characters that do not print, which names from files may contain, are escaped.
func (l *Lines) Add(name, format string, args ...any) {
	fmt.Fprintf(&l.text, "%-*s %s\n", cmp.Or(l.Width, 14), name, safe.Line(fmt.Sprintf(format, args...)))
}

// AddText adds a line with the given text, or nothing if the text is empty.
func (l *Lines) AddText(name, text string) {
	if text != "" {
		l.Add(name, "%s", text)
	}
}

// AddData adds a line on the data of a stage, and lines on how their files were read.
func (l *Lines) AddData(header *Header) {
	name := header.Dataset
	if header.Note != "" {
		name += " (" + header.Note + ")"
	}
	scaled := ""
	if header.Scaling != "" && header.Scaling != "none" {
		scaled = ", scaled: " + header.Scaling
	}
	l.Add("data", "%s: %s, n = %d, d = %d, t = %d%s", name, header.Task, header.N, header.D, header.T, scaled)
	l.AddFiles(header.Read)
}

// AddProblem adds lines on the data and the problem of a stage.
func (l *Lines) AddProblem(header *Header) {
	l.AddData(header)
	weighted := ""
	if header.Weighted {
		weighted = ", weighted rows"
	}
	l.Add("problem", "kernel %s, λ = %g%s%s", header.Kernel.Short(), header.Lambda, CenteringText(header.Mean),
		weighted)
}

// AddFiles adds a line for each file that describes how it was read.
func (l *Lines) AddFiles(reports []*datasets.ReadReport) {
	for _, report := range reports {
		l.Add("read", "%v", report)
	}
}

// CenteringText describes the means that were subtracted from the targets; "" if there are none.
func CenteringText(mean []float64) string {
	if len(mean) == 0 {
		return ""
	}
	if len(mean) > 1 {
		return ", y less its means " + outward.PlainList(mean, 4)
	}
	return ", y less its mean " + outward.Plain(mean[0], 4)
}

// AddSeconds adds a line with the seconds of the parts of the work and their total, or with milliseconds if the total
// is below one second. The parts are given as name, seconds, name, seconds, ….
func (l *Lines) AddSeconds(total float64, parts ...any) {
	unit, format, scale := "seconds", "%.1f", 1.0
	switch {
	case total < 1:
		unit, scale = "milliseconds", 1e3
		if total >= 0.1 {
			format = "%.0f"
		}
	case total < 5:
		format = "%.2f"
	}
	if len(parts) > 0 {
		parts = append(parts, "total", total)
	} else {
		parts = []any{"", total}
	}
	var text []string
	for i := 0; i < len(parts); i += 2 {
		text = append(text, strings.TrimSpace(fmt.Sprintf("%s "+format, parts[i], scale*parts[i+1].(float64))))
	}
	l.Add(unit, "%s", strings.Join(text, ", "))
}

// StorageErrorText formats the predicted bound of ‖K̃−K‖₂. It returns "" if the bound is unknown, or 0 as for a
// user-defined kernel in float64.
func StorageErrorText(bound Number) string {
	if !bound.Known() || bound == 0 {
		return ""
	}
	return fmt.Sprintf(", ‖E‖₂ ≲ %.1e", bound)
}
