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

	"github.com/krrlab/lab/krrlab/base/atomicfile"
)

// version is the version of the format of Line.
const version = 1

// Line is the result of one run. Unknown numbers are zero, and omitted in JSON where the tag says so.
type Line struct {
	Schema  int     `json:"schema"`  // version of the format
	Problem string  `json:"problem"` // name of the problem
	Source  string  `json:"source"`  // origin of the points
	N       int     `json:"n"`       // number of points
	D       int     `json:"d"`       // dimension of the points
	T       int     `json:"t"`       // number of right-hand sides
	Kernel  string  `json:"kernel"`  // text of the kernel
	Lambda  float64 `json:"lambda"`  // ridge λ
	Machine string  `json:"machine"` // machine on which the seconds were measured

	Preconditioner string     `json:"preconditioner"`                    // kind and options, without the rank
	Rank           int        `json:"rank"`                              // rank of the preconditioner; 0 if it has none
	Draw           int        `json:"draw"`                              // number of the random draw, from 0
	Reached        []int      `json:"iterations_to"`                     // iterations to 10⁻², 10⁻³, … if reached
	MaxIter        int        `json:"max_iter"`                          // largest allowed number of iterations
	FailureReason  string     `json:"failed,omitempty"`                  // why M could not be formed; empty if it was
	Kappa          [2]float64 `json:"kappa"`                             // 95 % interval of κ(M⁻¹A); 0 if unknown
	LogDet         float64    `json:"log_det,omitempty"`                 // estimate of ln det M⁻¹A
	BuildSeconds   float64    `json:"build_seconds"`                     // time of forming M
	ApplySeconds   float64    `json:"apply_seconds"`                     // time of M⁻¹R with n×t matrix R
	ProductSeconds float64    `json:"product_seconds"`                   // time of KP with n×t matrix P
	Bytes          int64      `json:"bytes"`                             // memory of M
	KBytes         int64      `json:"kernel_bytes"`                      // memory of the stored K
	BuildFlops     float64    `json:"build_flops,omitempty"`             // flops of forming M
	ApplyFlops     float64    `json:"apply_flops,omitempty"`             // flops of M⁻¹r with one column r
	GroupSeconds   float64    `json:"group_processor_seconds,omitempty"` // CPU time of the group, in its first line
	Exact          *Exact     `json:"exact,omitempty"`                   // set only in the run without preconditioner
}

// Exact contains properties of A = K+λI computed from all eigenvalues of K in float64.
type Exact struct {
	Min    float64 `json:"lambda_min"` // smallest eigenvalue of A
	Max    float64 `json:"lambda_max"` // largest eigenvalue of A
	Error  float64 `json:"error"`      // bound on the absolute errors of Min and Max
	Degree float64 `json:"s_lambda"`   // statistical dimension s_λ
	LogDet float64 `json:"log_det"`    // ln det A
}

// File is a file of lines.
type File struct {
	Name  string   // path of the file
	Lines []Line   // runs, in the order of the file
	Notes []string // messages about lines that were ignored when files were read
}

// key identifies a run. A file contains at most one line for each key.
type key struct {
	problem, kernel, machine, preconditioner string
	n, d, t, rank, draw, maxIter             int
	lambda                                   float64
}

// key returns the key of the run.
func (l *Line) key() key {
	return key{l.Problem, l.Kernel, l.Machine, l.Preconditioner, l.N, l.D, l.T, l.Rank, l.Draw, l.MaxIter, l.Lambda}
}

// Open reads the lines of a file. If the file does not exist, it returns a File without lines.
func Open(name string) (*File, error) {
	f := &File{Name: name}
	if err := f.Add(name); !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	return f, nil
}

// Add adds the lines of another file in JSON lines format. Lines that f already contains are ignored. An incomplete
// last line, such as an interrupted program or copy leaves behind, is ignored too. Add returns an error if a line has
// unknown fields or impossible numbers, or if f contains a different line for the same run.
func (f *File) Add(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	lines := map[key]*Line{}
	for i := range f.Lines {
		lines[f.Lines[i].key()] = &f.Lines[i]
	}
	lineNumber, duplicates := 0, 0
	for lineText := range bytes.Lines(text) {
		if lineNumber++; len(bytes.TrimSpace(lineText)) == 0 {
			continue
		}
		line, err := parseLine(bytes.TrimPrefix(lineText, []byte("\ufeff"))) // a byte order mark
		if errors.Is(err, io.ErrUnexpectedEOF) && lineNumber > 1 && !bytes.HasSuffix(lineText, []byte("\n")) {
			f.Notes = append(f.Notes, fmt.Sprintf("%s:%d: the last line is cut short, and is left out", name,
				lineNumber))
			break
		}
		var existing *Line
		if err == nil {
			existing = lines[line.key()]
		}
		if existing != nil && !reflect.DeepEqual(line, existing) {
			err = fmt.Errorf("another line has this run (%s, λ = %g, %s, rank %d, draw %d) with other numbers: remove "+
				"one of the two", line.Problem, line.Lambda, line.Preconditioner, line.Rank, line.Draw)
		}
		switch {
		case err != nil:
			return fmt.Errorf("%s:%d: %w", name, lineNumber, err)
		case existing != nil:
			duplicates++
		default:
			lines[line.key()] = line
			f.Lines = append(f.Lines, *line)
		}
	}
	if duplicates > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%s: %s already there, and left out", name,
			map[bool]string{true: "1 run is", false: fmt.Sprint(duplicates, " runs are")}[duplicates == 1]))
	}
	return nil
}

// Save writes the file atomically.
func (f *File) Save() error {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	for i := range f.Lines {
		if err := encoder.Encode(&f.Lines[i]); err != nil {
			return err
		}
	}
	return atomicfile.WriteFile(f.Name, buffer.Bytes())
}

// runsOf returns the number of random draws of a preconditioner in the file that have the problem, the n, the λ and the
// rank of base, and the number of iterations allowed in the last of these runs. The rank is 0 if the preconditioner has
// none.
func (f *File) runsOf(preconditioner string, base *Line) (draws, maxIter int) {
	rank := rankOf(preconditioner, base.Rank)
	for i := range f.Lines {
		if line := &f.Lines[i]; line.Rank == rank && line.Preconditioner == preconditioner &&
			line.Problem == base.Problem &&
			line.N == base.N && line.Lambda == base.Lambda {
			draws, maxIter = max(draws, line.Draw+1), line.MaxIter
		}
	}
	return draws, maxIter
}

// missing returns the preconditioners of names of which the file has no runs with the problem, n, λ and rank of base.
// It returns an error if the file has such runs with another number of draws or of iterations.
func (f *File) missing(names []string, base *Line, o *Options) (missing []string, err error) {
	for _, name := range names {
		switch draws, maxIter := f.runsOf(name, base); {
		case draws == 0:
			missing = append(missing, name)
		case draws != o.Seeds || maxIter != o.MaxIter:
			return nil, fmt.Errorf("%s has runs of %s with --seeds %d --max-iter %d: ask for the same, or name another "+
				"file", f.Name, base.Problem, draws, maxIter)
		}
	}
	return missing, nil
}
