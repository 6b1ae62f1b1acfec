package krrlab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
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
type lines struct{ strings.Builder }

func (b *lines) add(name, format string, args ...any) {
	fmt.Fprintf(b, "%-14s %s\n", name, fmt.Sprintf(format, args...))
}

// took writes the line of what the work took, and its parts.
func (b *lines) took(total float64, laps ...lap) {
	unit, text := timeWords(total, laps...)
	b.add(unit, "%s", text)
}

// K returns K+λI, formed at the first call and kept for the stages that follow; Forget
// gives it back. It has the bits that Gram gives with nothing else held.
func (l *Lab) K(ctx context.Context) (*gram.Matrix, error) { return l.kBeside(ctx, 0) }

// kBeside is K where a stage is going to hold so many bytes beside it, which it takes account of
// where the configuration has a limit of memory.
func (l *Lab) kBeside(ctx context.Context, held int64) (*gram.Matrix, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	beside := held > 0
	held += l.vectors()
	if l.k != nil {
		var err error
		if all := l.k.Bytes() + held; l.cfg.Memory > 0 && all > l.cfg.Memory {
			err = fmt.Errorf("krrlab: K as it is kept takes %s and this stage %s, the limit is %s: Forget it first, or take fewer features",
				Bytes(l.k.Bytes()), Bytes(held), Bytes(l.cfg.Memory))
		}
		if beside { // ranks have shares and limits of their own
			err = comm.Agree(ctx, l.comm, err)
		}
		if err != nil {
			return nil, err
		}
		return l.k, nil
	}
	k, err := l.Gram(ctx, held)
	if err != nil {
		return nil, err
	}
	l.k = k
	return k, nil
}

// featureBytes returns what a stage holds of s features: Z in float32, ZᵀZ, its factor, and
// room to form that.
func (l *Lab) featureBytes(s int) int64 {
	if l.cfg.Precond == NoPrecond {
		return 0
	}
	return 4*int64(l.train.Len())*int64(s) + 24*int64(s)*int64(s)
}

// Forget gives back the memory of the K that stages share.
func (l *Lab) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.k = nil
}
