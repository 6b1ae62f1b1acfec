package testbed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"

	"github.com/krrlab/lab/krrlab/stage"
)

// version is that of Line.
const version = 1

// Line is one run. What is not known is left out.
type Line struct {
	Schema  int     `json:"schema"`
	Problem string  `json:"problem"`
	Source  string  `json:"source"` // of the points
	N       int     `json:"n"`
	D       int     `json:"d"`
	T       int     `json:"t"`
	Kernel  string  `json:"kernel"`
	Lambda  float64 `json:"lambda"`
	Machine string  `json:"machine"` // of the seconds

	Preconditioner string     `json:"preconditioner"`                    // without its rank
	Rank           int        `json:"rank"`                              // 0: it has none
	Draw           int        `json:"draw"`                              // 0, 1, …
	Reached        []int      `json:"iterations_to"`                     // 10⁻², 10⁻³, …, as far as they were reached
	MaxIter        int        `json:"max_iter"`                          // iterations at most
	Failed         string     `json:"failed,omitempty"`                  // why there is no M
	Kappa          [2]float64 `json:"kappa"`                             // its interval, 95 %; 0: no such end
	LogDet         float64    `json:"log_det,omitempty"`                 // of M⁻¹A, estimated
	Build          float64    `json:"build_seconds"`                     // M
	Apply          float64    `json:"apply_seconds"`                     // M⁻¹R, n×t
	Product        float64    `json:"product_seconds"`                   // KP, n×t
	Bytes          int64      `json:"bytes"`                             // M
	KBytes         int64      `json:"kernel_bytes"`                      // K as stored
	BuildFlops     float64    `json:"build_flops,omitempty"`             // M
	ApplyFlops     float64    `json:"apply_flops,omitempty"`             // M⁻¹r, one column
	Group          float64    `json:"group_processor_seconds,omitempty"` // all threads, this run and those with it
	Exact          *Exact     `json:"exact,omitempty"`                   // beside the run without M
}

// Exact is what all eigenvalues of K tell, found in float64.
type Exact struct {
	Min    float64 `json:"lambda_min"` // of A
	Max    float64 `json:"lambda_max"`
	Error  float64 `json:"error"` // bound of what both may be off
	Degree float64 `json:"s_lambda"`
	LogDet float64 `json:"log_det"` // of A
}

// group is what is run together.
type group struct {
	problem string
	n       int
	lambda  float64
	rank    int
}

// File is a file of lines.
type File struct {
	Name  string
	Lines []Line
	Notes []string // which lines were left out when files were read, and why
}

// key identifies a run: a file has one line for each.
type key struct {
	problem, kernel, machine, preconditioner string
	n, d, t, rank, draw, maxIter             int
	lambda                                   float64
}

func (l *Line) key() key {
	return key{l.Problem, l.Kernel, l.Machine, l.Preconditioner, l.N, l.D, l.T, l.Rank, l.Draw, l.MaxIter, l.Lambda}
}

// Open reads the lines of a file, none if there is no such file.
func Open(name string) (*File, error) {
	f := &File{Name: name}
	if err := f.Add(name); !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	return f, nil
}

// Add takes the lines of another file, made by anybody, as JSON lines. A line that is there already is left out, and so
// is the beginning of a line at the end of the file, which an interrupted program or copy left there. It is an error if
// a line has unknown fields or impossible numbers, or differs from one that is there for the same run.
func (f *File) Add(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	lines := map[key]*Line{}
	for i := range f.Lines {
		lines[f.Lines[i].key()] = &f.Lines[i]
	}
	i, again := 0, 0
	for text := range bytes.Lines(text) {
		if i++; len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		l, err := parseLine(bytes.TrimPrefix(text, []byte("\ufeff")))
		if errors.Is(err, io.ErrUnexpectedEOF) && i > 1 && !bytes.HasSuffix(text, []byte("\n")) {
			f.Notes = append(f.Notes, fmt.Sprintf("%s:%d: the last line is cut short, and is left out", name, i))
			break
		}
		var before *Line
		if err == nil {
			before = lines[l.key()]
		}
		if before != nil && !reflect.DeepEqual(l, before) {
			err = fmt.Errorf("another line has this run (%s, λ = %g, %s, rank %d, draw %d) with other numbers: remove "+
				"one of the two", l.Problem, l.Lambda, l.Preconditioner, l.Rank, l.Draw)
		}
		switch {
		case err != nil:
			return fmt.Errorf("%s:%d: %w", name, i, err)
		case before != nil:
			again++
		default:
			lines[l.key()] = l
			f.Lines = append(f.Lines, *l)
		}
	}
	if again > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%s: %s already there, and left out", name,
			map[bool]string{true: "1 run is", false: fmt.Sprint(again, " runs are")}[again == 1]))
	}
	return nil
}

// Save writes the file, whole or not at all.
func (f *File) Save() error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for i := range f.Lines {
		if err := e.Encode(&f.Lines[i]); err != nil {
			return err
		}
	}
	return stage.WriteFile(f.Name, b.Bytes())
}

// has reports whether a group was run. It is an error if that was with other options.
func (f *File) has(g group, o *Options) (bool, error) {
	draws, most := 0, 0
	for i := range f.Lines {
		l := &f.Lines[i]
		if l.Rank != g.rank || l.Problem != g.problem || l.N != g.n || l.Lambda != g.lambda ||
			!slices.Contains(Preconditioners(), l.Preconditioner) {
			continue
		}
		draws, most = max(draws, l.Draw+1), l.MaxIter
	}
	if draws > 0 && (draws != o.Seeds || most != o.MaxIter) {
		return true, fmt.Errorf("%s has runs of %s with --seeds %d --max-iter %d: ask for the same, or name another "+
			"file", f.Name, g.problem, draws, most)
	}
	return draws > 0, nil
}
