package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/internal/npy"
	"github.com/krrlab/lab/krrlab/points"
)

// data says where ranks find the training data: in the registry, or in .npy files beside
// the jobs, each named by the sha256 of its bytes.
type data struct {
	Named  *NamedData `json:"named,omitempty"`
	Title  string     `json:"title"`
	Source string     `json:"source,omitempty"`
	Task   string     `json:"task"`
	Labels []string   `json:"labels,omitempty"`
	N      int        `json:"n"`
	D      int        `json:"d"`
	// Scaling is what the points were scaled by; nil if they are raw.
	Scaling *datasets.Scaling `json:"scaling,omitempty"`
	Mean    []float64         `json:"mean,omitempty"` // Dataset.Mean
	Unit    float64           `json:"unit,omitempty"` // of points in bytes, points.Bytes.Scale
	// Files by what they hold: points in float64, float32 or bytes, or the ptr, col and val of sparse
	// rows; target or class.
	Files map[string]string `json:"files,omitempty"`
	Sum   string            `json:"fingerprint"` // of all numbers, Fingerprint
}

// writeData writes what is not named into the folder.
func writeData(root string, d *datasets.Dataset, named *NamedData) (data, error) {
	sum := d.Fingerprint()
	j := data{Named: named, Title: d.Name, Source: d.Source, Task: d.Task.String(), Labels: d.Labels, N: d.Len(), D: d.Dim(), Scaling: d.Scaling, Mean: d.Mean, Sum: hex.EncodeToString(sum[:])}
	if d.More != nil {
		return j, fmt.Errorf("krrlab: %s: several targets are not sent to ranks: take one, or no Backend", d.Name)
	}
	if named != nil {
		return j, nil
	}
	j.Files = map[string]string{}
	var err error
	put := func(what string, data any, shape ...int) {
		if err == nil {
			j.Files[what], err = writeNamed(root, data, shape...)
		}
	}
	switch x := d.X.(type) {
	case *points.Bytes:
		j.Unit = x.Scale
		put("bytes", compact(x.Data, x.N, x.D, x.Stride), x.N, x.D)
	case *points.Dense32:
		put("float32", compact(x.Data, x.N, x.D, x.Stride), x.N, x.D)
	case *points.CSR:
		lo, hi := x.Ptr[0], x.Ptr[x.N]
		ptr := make([]int64, x.N+1)
		for i, p := range x.Ptr[:x.N+1] {
			ptr[i] = int64(p - lo)
		}
		put("ptr", ptr, len(ptr))
		put("col", x.Col[lo:hi], hi-lo)
		put("val", x.Val[lo:hi], hi-lo)
	default:
		v := make([]float64, j.N*j.D)
		x.Panel64To(v, j.D)
		put("float64", v, j.N, j.D)
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

// compact returns rows without gaps.
func compact[T uint8 | float32](data []T, n, d, stride int) []T {
	if stride == d || n == 0 {
		return data[:n*d]
	}
	out := make([]T, 0, n*d)
	for i := range n {
		out = append(out, data[i*stride:i*stride+d]...)
	}
	return out
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

// read returns the data, from the folder or from those of named data sets.
func (j *data) read(ctx context.Context, root string, dirs []string) (*datasets.Dataset, error) {
	d := &datasets.Dataset{Name: j.Title, Source: j.Source, Labels: j.Labels, Scaling: j.Scaling}
	if j.Named != nil {
		p, err := datasets.Load(ctx, j.Named.Name, &datasets.LoadOptions{Dirs: dirs, N: j.Named.N, Scale: j.Named.Scale})
		if err != nil {
			return nil, err
		}
		d = p.Train
	} else if err := j.readFiles(root, d); err != nil {
		return nil, err
	}
	d.Mean = j.Mean
	if sum := d.Fingerprint(); hex.EncodeToString(sum[:]) != j.Sum {
		return nil, fmt.Errorf("the data read here, %s, are not those of the job: other files, another scale or another number of rows", d.Name)
	}
	return d, nil
}

// readFiles fills in points and answers.
func (j *data) readFiles(root string, d *datasets.Dataset) error {
	arrays := map[string]any{}
	for what, name := range j.Files {
		_, data, err := readNamed(root, name)
		if err != nil {
			return err
		}
		arrays[what] = data
	}
	bad := func(what string) error {
		return fmt.Errorf("job data: %s of %d points in R^%d do not fit", what, j.N, j.D)
	}
	if j.N < 0 || j.D < 0 || j.D > 0 && j.N > math.MaxInt/j.D {
		return bad("the numbers")
	}
	switch {
	case arrays["float32"] != nil:
		v, ok := arrays["float32"].([]float32)
		if !ok || len(v) != j.N*j.D {
			return bad("the points")
		}
		d.X = points.NewDense32(j.N, j.D, v)
	case arrays["bytes"] != nil:
		v, ok := arrays["bytes"].([]uint8)
		if !ok || len(v) != j.N*j.D || !points.ScaleFits(j.Unit) {
			return bad("the bytes")
		}
		d.X = points.NewBytes(j.N, j.D, j.Unit, v)
	case arrays["ptr"] != nil:
		x, ok := sparse(j.N, j.D, arrays)
		if !ok {
			return bad("the sparse rows")
		}
		d.X = x
	default:
		v, ok := arrays["float64"].([]float64)
		if !ok || len(v) != j.N*j.D {
			return bad("the points")
		}
		d.X = points.NewDense(j.N, j.D, v)
	}
	if err := j.Scaling.Validate(); err != nil || j.Scaling != nil && j.Scaling.Dim() != j.D {
		return bad("the scaling")
	}
	if target, ok := arrays["target"].([]float64); ok && len(target) == j.N {
		d.Task, d.Target = datasets.Regression, target
		return nil
	}
	class, ok := arrays["class"].([]int64)
	if !ok || len(class) != j.N {
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

// sparse returns the rows of ptr, col and val, if they are rows.
func sparse(n, d int, arrays map[string]any) (*points.CSR, bool) {
	ptr, ok1 := arrays["ptr"].([]int64)
	col, ok2 := arrays["col"].([]int32)
	val, ok3 := arrays["val"].([]float64)
	x := &points.CSR{N: n, D: d, Ptr: make([]int, len(ptr)), Col: col, Val: val}
	for i, p := range ptr {
		x.Ptr[i] = int(p)
	}
	return x, ok1 && ok2 && ok3 && x.Check() == nil
}
