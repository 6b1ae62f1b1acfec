package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// benchBounds are the most that the project allows for the ratio of a loop's best time to its floor's, for n ≥ 10,000
// points. The floors, in benchloops.go, leave out what the reasons name.
var benchBounds = []struct {
	loop, floor string // the beginnings of their names
	atMost      float64
	why         string
}{
	{"exp", "1 ns", 1, "seven fused multiply-adds on four or eight numbers at a time"},
	{"cos", "1 ns", 1, "as exp"},
	{"K formed", "sgemm", 2, "an exponential for each 2d flops, the choice of the arithmetic, and the first touch of the memory, a fifth of the time on virtual machines"},
	{"K·P, float32, t = 1,", "reading", 1.3, "sums are added in fixed point; src and dst are copied"},
	{"K·P, float32", "reading", 1.6, "as for t = 1, and each tile is multiplied in passes of few columns"},
	{"K·P, fixed16, t = 1,", "K·P", 0.65, "half the bytes are read, and integers converted"},
	{"Z formed", "sgemm", 1.6, "a cosine for each 2d flops, the first touch of the memory"},
	{"ZᵀZ, products in float32", "sgemm", 2, "blocks of 512 are whole on the diagonal; sums of 512 rows are added in fixed point"},
	{"ZᵀZ, products in float64", "dgemm", 1.7, "as in float32, and Z is converted"},
	{"M⁻¹R", "reading", 1.8, "sums are added in fixed point; three stages wait for each other"},
	{"an iteration of block PCG", "K·P", 1.2, "16nt² flops of block operations, on thin blocks"},
}

// boundOf returns what is asked of a row; nil: nothing.
func boundOf(loop, floor string) *float64 {
	for i := range benchBounds {
		if b := &benchBounds[i]; strings.HasPrefix(loop+",", b.loop) && strings.HasPrefix(floor, b.floor) {
			return &b.atMost
		}
	}
	return nil
}

// beyond returns an error that names the rows whose best times are above their bounds.
func (r *benchReport) beyond() error {
	var lines []string
	for _, l := range r.Loops {
		if l.Asked != nil && !(l.Best <= *l.Asked) {
			lines = append(lines, fmt.Sprintf("%s: %.2f times its floor (%s), at most %.2f", l.Name, l.Best, l.Floor, *l.Asked))
		}
	}
	if lines == nil {
		return nil
	}
	return fmt.Errorf("%d ratios of %d are beyond their bounds: %s", len(lines), len(r.Loops), strings.Join(lines, "; "))
}

// history returns the file that the measurements are kept in, in the user's cache; "" if there is none.
func (a *app) history() string {
	if len(a.env.DataDirs) == 0 {
		return ""
	}
	return filepath.Join(a.env.DataDirs[len(a.env.DataDirs)-1], "bench.jsonl")
}

// remember fills in the ratios of the last run on a like machine with the same sizes, and adds this run to
// the file, a line of JSON each. The note says why not.
func (r *benchReport) remember(file string) (note string) {
	if file == "" {
		return "no cache to keep the measurements in"
	}
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644); err == nil {
			err = cmp.Or(r.exchange(f), f.Close())
		}
	}
	if err != nil {
		return fmt.Sprintf("measurements not kept: %v", err)
	}
	return ""
}

// exchange reads the runs of the history and appends this one.
func (r *benchReport) exchange(f *os.File) error {
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var old benchReport
		if json.Unmarshal(lines.Bytes(), &old) != nil || !r.like(&old) {
			continue // another machine's, or cut off when its run ended
		}
		for i := range r.Loops {
			l := &r.Loops[i]
			if at := slices.IndexFunc(old.Loops, func(o benchLoop) bool { return o.Name == l.Name && o.Floor == l.Floor }); at >= 0 {
				l.Last = &old.Loops[at].Best
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	js, err := json.Marshal(r)
	if err == nil {
		_, err = f.Write(append(js, '\n'))
	}
	return err
}

// like reports whether both runs measured the same on the same kind of machine.
func (r *benchReport) like(o *benchReport) bool {
	return r.CPU == o.CPU && r.Path == o.Path && r.BLAS == o.BLAS && r.Threads == o.Threads && r.N == o.N && r.D == o.D && r.S == o.S
}
