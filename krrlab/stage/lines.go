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

func (b *Lines) String() string { return b.text.String() }

// Add adds a line. Characters that do not print are escaped, as names from files may have any.
func (b *Lines) Add(name, format string, args ...any) {
	fmt.Fprintf(&b.text, "%-*s %s\n", cmp.Or(b.Width, 14), name, safe.Line(fmt.Sprintf(format, args...)))
}

// AddText adds a line with the given text, or nothing if the text is empty.
func (b *Lines) AddText(name, text string) {
	if text != "" {
		b.Add(name, "%s", text)
	}
}

// AddData adds the data of a stage, and how their files were read.
func (b *Lines) AddData(h *Header) {
	name := h.Dataset
	if h.Note != "" {
		name += " (" + h.Note + ")"
	}
	scaled := ""
	if h.Scaling != "" && h.Scaling != "none" {
		scaled = ", scaled: " + h.Scaling
	}
	b.Add("data", "%s: %s, n = %d, d = %d, t = %d%s", name, h.Task, h.N, h.D, h.T, scaled)
	b.AddFiles(h.Read)
}

// AddProblem adds the problem of a stage.
func (b *Lines) AddProblem(h *Header) {
	b.AddData(h)
	weighted := ""
	if h.Weighted {
		weighted = ", weighted rows"
	}
	b.Add("problem", "kernel %s, λ = %g%s%s", h.Kernel.Short(), h.Lambda, CenteringText(h.Mean), weighted)
}

// AddFiles adds a line for each file that describes how it was read.
func (b *Lines) AddFiles(read []*datasets.ReadReport) {
	for _, r := range read {
		b.Add("read", "%v", r)
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
func (b *Lines) AddSeconds(total float64, parts ...any) {
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
	b.Add(unit, "%s", strings.Join(text, ", "))
}

// StorageErrorText formats the predicted bound of ‖K̃−K‖₂. It returns "" if the bound is unknown, or 0 as for a
// user-defined kernel in float64.
func StorageErrorText(b Number) string {
	if !b.Known() || b == 0 {
		return ""
	}
	return fmt.Sprintf(", ‖E‖₂ ≲ %.1e", b)
}
