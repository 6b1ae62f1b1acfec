package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/npy"
	"github.com/krrlab/lab/krrlab/points"
)

// data says where ranks find the training data: in .npy files beside the jobs, each named by the sha256 of its bytes.
type data struct {
	Title  string   `json:"title"`
	Source string   `json:"source,omitempty"`
	Task   string   `json:"task"`
	Labels []string `json:"labels,omitempty"`
	N      int      `json:"n"`
	D      int      `json:"d"`
	// Scaling is what the points were scaled by; nil if they are raw.
	Scaling *datasets.Scaling `json:"scaling,omitempty"`
	Mean    []float64         `json:"mean,omitempty"`   // Dataset.Mean
	Unit    float64           `json:"unit,omitempty"`   // of points in bytes, points.Bytes.Scale
	Points  string            `json:"points,omitempty"` // kind of points.ToArrays
	// Files by what they hold: the arrays of points.ToArrays, and target or class.
	Files map[string]string `json:"files,omitempty"`
	Sum   string            `json:"fingerprint"` // of all numbers, Fingerprint
}

// writeData writes the data into the folder.
func writeData(root string, d *datasets.Dataset) (data, error) {
	sum := d.Fingerprint()
	j := data{Title: d.Name, Source: d.Source, Task: d.Task.String(), Labels: d.Labels, N: d.Len(), D: d.Dim(),
		Scaling: d.Scaling, Mean: d.Mean, Sum: hex.EncodeToString(sum[:])}
	if d.More != nil {
		return j, fmt.Errorf("krrlab: %s: several targets are not sent to ranks: take one, or no Backend", d.Name)
	}
	j.Files = map[string]string{}
	var err error
	put := func(what string, data any, shape ...int) {
		if err == nil {
			j.Files[what], err = writeNamed(root, data, shape...)
		}
	}
	var arrays []points.Array
	j.Points, j.Unit, arrays = points.ToArrays(d.X)
	for _, x := range arrays {
		put(x.Name, x.Data, x.Shape...)
	}
	if d.Task == datasets.Regression {
		put("target", d.Target, j.N)
	} else {
		class := make([]int64, j.N)
		for i, c := range d.Class {
			class[i] = int64(c)
		}
		put("class", class, j.N)
	}
	return j, err
}

// writeNamed writes an array into a file whose name is the sha256 of its bytes, unless it is
// there, and returns the name.
func writeNamed(root string, data any, shape ...int) (string, error) {
	h := sha256.New()
	if err := npy.Write(h, data, shape...); err != nil {
		return "", err
	}
	name := hex.EncodeToString(h.Sum(nil)) + ".npy"
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err == nil {
		return name, nil
	}
	return name, atomicfile.Write(path, func(w io.Writer) error { return npy.Write(w, data, shape...) })
}

// readNamed reads such a file, and refuses one whose bytes are not those of its name.
func readNamed(root, name string) (h npy.Header, data any, err error) {
	path := filepath.Join(root, filepath.Base(name))
	f, err := os.Open(path)
	if err != nil {
		return h, nil, fmt.Errorf("job data: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return h, nil, fmt.Errorf("job data: %w", err)
	}
	sum := sha256.New()
	if h, data, err = npy.Read(io.TeeReader(f, sum), st.Size()); err != nil {
		return h, nil, fmt.Errorf("job data %s: %w", path, err)
	}
	if hex.EncodeToString(sum.Sum(nil))+".npy" != filepath.Base(name) {
		return h, nil, fmt.Errorf("job data %s: its content is not what its name says: it was damaged or changed", path)
	}
	return h, data, nil
}

// read returns the data from the folder.
func (j *data) read(root string) (*datasets.Dataset, error) {
	d := &datasets.Dataset{Name: j.Title, Source: j.Source, Labels: j.Labels, Scaling: j.Scaling}
	if err := j.readFiles(root, d); err != nil {
		return nil, err
	}
	d.Mean = j.Mean
	if sum := d.Fingerprint(); hex.EncodeToString(sum[:]) != j.Sum {
		return nil, fmt.Errorf("the data read here, %s, are not those of the job", d.Name)
	}
	return d, nil
}

// readFiles fills in points and answers.
func (j *data) readFiles(root string, d *datasets.Dataset) (err error) {
	if j.N < 0 || j.D < 0 || j.D > 0 && j.N > math.MaxInt/j.D {
		return fmt.Errorf("job data: %d points in R^%d", j.N, j.D)
	}
	get := func(what string, shape ...int) (any, error) {
		h, data, err := readNamed(root, j.Files[what])
		if err == nil && !slices.EqualFunc(h.Shape, shape, func(n, want int) bool { return want < 0 || n == want }) {
			err = fmt.Errorf("job data: %s has shape %v, want %v", what, h.Shape, shape)
		}
		return data, err
	}
	if d.X, err = points.FromArrays(j.Points, j.N, j.D, j.Unit, get); err != nil {
		return err
	}
	bad := func(what string) error {
		return fmt.Errorf("job data: %s of %d points in R^%d do not fit", what, j.N, j.D)
	}
	if err := j.Scaling.Validate(); err != nil || j.Scaling != nil && j.Scaling.Dim() != j.D {
		return bad("the scaling")
	}
	what := "class"
	if j.Task == datasets.Regression.String() {
		what = "target"
	}
	data, err := get(what, j.N)
	if err != nil {
		return err
	}
	if target, ok := data.([]float64); ok && what == "target" {
		d.Task, d.Target = datasets.Regression, target
		return nil
	}
	class, ok := data.([]int64)
	if !ok {
		return bad("the answers")
	}
	d.Task, d.Class = datasets.Classification, make([]int, j.N)
	for i, c := range class {
		if c < 0 || c >= int64(len(j.Labels)) {
			return bad("the classes")
		}
		d.Class[i] = int(c)
	}
	return nil
}
