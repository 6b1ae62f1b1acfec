package krrlab

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/plots"
)

// Stage is what every step of the laboratory returns: exported numbers, and ways to look
// at them. Its JSON, by encoding/json, round-trips.
type Stage interface {
	String() string      // a few aligned lines, with units and the paper's symbols
	Table() *plots.Table // the numbers
	Plot() *plots.Figure // the picture
	HTML() string        // table and picture, for a notebook
}

// WriteStage writes the JSON of a stage to the named file, whole or not at all.
func WriteStage(name string, s Stage) error {
	js, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("krrlab: %w", err)
	}
	return atomicfile.Write(name, func(w io.Writer) error {
		_, err := w.Write(append(js, '\n'))
		return err
	})
}

// stageHTML is the HTML of a stage: its lines, its picture, its table folded away.
func stageHTML(s Stage) string {
	return plots.PreHTML(s.String()) + s.Plot().HTML() + plots.FoldedHTML("the numbers", s.Table().HTML())
}

// lines writes aligned lines of a name and a text.
type lines struct {
	strings.Builder
	width int // of the names; default: 14
}

func (b *lines) add(name, format string, args ...any) {
	fmt.Fprintf(b, "%-*s %s\n", cmp.Or(b.width, 14), name, fmt.Sprintf(format, args...))
}

// problem writes which problem a stage is about.
func (b *lines) problem(h *Header) {
	b.add("data", "%s", h.dataText())
	b.add("problem", "%s", h.problemText())
}

// took writes the line of what the work took, and its parts.
func (b *lines) took(total float64, laps ...lap) {
	unit, text := timeWords(total, laps...)
	b.add(unit, "%s", text)
}

// featureBytes returns what a stage holds of s features: Z in float32, ZᵀZ, its factor, and
// room to form that.
func (l *Lab) featureBytes(s int) int64 {
	if l.plain() {
		return 0
	}
	return 4*int64(l.train.Len())*int64(s) + 24*int64(s)*int64(s)
}
