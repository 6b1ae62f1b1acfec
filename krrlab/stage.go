package krrlab

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/kernel"
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

// String describes the problem and the way to solve it, as configured; nothing is computed.
func (l *Lab) String() string {
	var b lines
	if l.problem == nil {
		return "a laboratory without data; New makes one with them\n"
	}
	c := l.cfg
	_, _, t := l.Dims()
	b.add("data", "%v", l.train)
	b.add("problem", "kernel %v, λ = %g, t = %d", c.Kernel, c.Lambda, t)
	b.add("solver", "%v, τ = %g, at most %d iterations", c.Solver, c.Tol, c.MaxIter)
	switch {
	case l.plain():
	case l.approximation() != nil:
		r := l.approximation()
		b.add("preconditioner", "%v, s = %d, λ_p = %g", r, r.s, r.lambdaP)
	default:
		b.add("preconditioner", "%v", c.Precond)
	}
	memory := "no memory limit"
	if c.Memory > 0 {
		memory = "memory " + Bytes(c.Memory)
	}
	b.add("K", "storage %v, %s", c.Storage, memory)
	b.add("seed", "%d", c.Seed)
	if c.Comm != nil {
		b.add("ranks", "%d", c.Comm.Size())
	}
	return b.String()
}

// HTML shows String in a notebook.
func (l *Lab) HTML() string { return plots.PreHTML(l.String()) }

// Header says which problem a stage is about: the first fields of its JSON.
type Header struct {
	Dataset string      `json:"dataset"`
	Source  string      `json:"source,omitempty"` // files or generator the points came from
	Note    string      `json:"note,omitempty"`   // what is special about the data: a subset, a stand-in
	Task    string      `json:"task"`
	N       int         `json:"n"`
	D       int         `json:"d"`
	T       int         `json:"t"` // right-hand sides
	Kernel  kernel.Spec `json:"kernel"`
	Lambda  float64     `json:"lambda"`
	Tol     float64     `json:"tol"` // τ
	Seed    uint64      `json:"seed"`
}

// header returns the lab's.
func (l *Lab) header() Header {
	n, d, t := l.Dims()
	spec, err := kernel.ToSpec(l.cfg.Kernel)
	if err != nil { // a user-defined kernel
		spec = kernel.Spec{Name: l.cfg.Kernel.String()}
	}
	return Header{
		Dataset: l.train.Name, Source: l.train.Source, Task: l.train.Task.String(), N: n, D: d, T: t,
		Kernel: spec, Lambda: l.cfg.Lambda, Tol: l.cfg.Tol, Seed: l.cfg.Seed,
	}
}

// dataText names the data and their sizes.
func (h *Header) dataText() string {
	name := h.Dataset
	if h.Note != "" {
		name += " (" + h.Note + ")"
	}
	return fmt.Sprintf("%s: %s, n = %d, d = %d, t = %d", name, h.Task, h.N, h.D, h.T)
}

// problemText names the kernel and λ.
func (h *Header) problemText() string {
	return fmt.Sprintf("kernel %s, λ = %g", kernelWords(h.Kernel), h.Lambda)
}
