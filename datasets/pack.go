package datasets

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// manifestName is the name of the file that describes a folder of packed data, and packVersion the version of its
// format.
const (
	manifestName = "krrlab-data.json"
	packVersion  = 1
)

// manifest describes a TrainTest without its numbers, which are arrays in other files of the same folder.
type manifest struct {
	Version    int            `json:"version"`
	Sum        string         `json:"sha256"` // checksum of the manifest as JSON in one line with Sum = ""
	Train      *packedPart    `json:"train"`
	Test       *packedPart    `json:"test,omitempty"`
	Columns    []string       `json:"columns,omitempty"`
	Targets    []string       `json:"targets,omitempty"`
	Categories []ColumnCoding `json:"categories,omitempty"`
	Space      *Space         `json:"space,omitempty"`
	Scaling    *Scaling       `json:"scaling,omitempty"` // scaling that was applied to the points
	Sigma      float64        `json:"sigma,omitempty"`   // Info.Sigma and Info.Lambda
	Lambda     float64        `json:"lambda,omitempty"`
	Target     string         `json:"target,omitempty"` // TrainTest.Target and TrainTest.Drop
	Drop       []string       `json:"drop,omitempty"`
}

// packedPart describes one of the two data sets, without its numbers.
type packedPart struct {
	Name       string        `json:"name"`
	Source     string        `json:"source,omitempty"`
	Note       string        `json:"note,omitempty"`
	ReadReport *ReadReport   `json:"read,omitempty"`
	Repeats    *Repeats      `json:"repeats,omitempty"`
	Labels     []string      `json:"labels,omitempty"`
	N          int           `json:"n"`
	D          int           `json:"d"`
	Kind       string        `json:"points"` // kind of points of points.ToArrays
	Unit       float64       `json:"unit,omitempty"`
	Arrays     []packedArray `json:"arrays"`
}

// packedArray describes an array in a .npy file.
type packedArray struct {
	Name  string   `json:"name"` // the file is train-NAME.npy or test-NAME.npy
	Shape []int    `json:"shape"`
	Sums  []string `json:"sha256"` // checksum of each 4 MiB of the elements
}

// Pack writes data, including their scaling, to a folder whose name Load accepts: the arrays as .npy files, and
// krrlab-data.json with everything else and the checksums. Loading returns the same data, bit for bit.
func Pack(dir string, data *TrainTest) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot write to %s: %w", dir, err)
	}
	train := data.Train
	m := &manifest{Version: packVersion, Columns: train.Columns, Targets: train.TargetNames,
		Categories: train.ColumnCodings,
		Space:      train.Space,
		Scaling:    train.Scaling, Sigma: data.Info.Sigma, Lambda: data.Info.Lambda, Target: data.Target, Drop: data.Drop}
	if m.Train, err = train.pack(dir, "train"); err == nil && data.Test != nil {
		m.Test, err = data.Test.pack(dir, "test")
	}
	if err != nil {
		return err
	}
	m.Sum = m.checksum()
	return atomicfile.Write(filepath.Join(dir, manifestName), func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "\t")
		return encoder.Encode(m)
	})
}

// checksum returns the value that Sum must have.
func (m *manifest) checksum() string {
	unsigned := *m
	unsigned.Sum = ""
	text, err := json.Marshal(unsigned)
	if err != nil { // only for a number that is not finite, and Pack writes none
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// pack writes the arrays of d to files whose names begin with role.
func (d *Dataset) pack(dir, role string) (*packedPart, error) {
	n, dim := d.X.Dims()
	p := &packedPart{Name: d.Name, Source: d.Source, Note: d.Note, ReadReport: d.ReadReport, Repeats: d.Repeats,
		Labels: d.Labels, N: n, D: dim}
	var arrays []points.Array
	p.Kind, p.Unit, arrays = d.arrays()
	for _, a := range arrays {
		sums := make(chan []string, 1)
		go func() { sums <- hexSums(a.Data) }() // concurrently with writing
		if err := atomicfile.Write(arrayFile(dir, role, a.Name), func(w io.Writer) error {
			return npy.Write(w, a.Data, a.Shape...)
		}); err != nil {
			return nil, err
		}
		p.Arrays = append(p.Arrays, packedArray{a.Name, a.Shape, <-sums})
	}
	return p, nil
}

// arrayFile returns the path of the file of an array of the data set with this role, "train" or "test".
func arrayFile(dir, role, name string) string {
	return filepath.Join(dir, role+"-"+filepath.Base(name)+".npy")
}

// hexSums returns the SHA-256 of each block of an array (blockSums) in hexadecimal.
func hexSums(data any) (sums []string) {
	for _, sum := range blockSums(data) {
		sums = append(sums, fmt.Sprintf("%x", sum))
	}
	return sums
}

// IsPacked reports whether name is a folder that Pack wrote, and not the name of a data set of the registry.
func IsPacked(name string) bool {
	_, err := os.Stat(filepath.Join(name, manifestName))
	_, lookupErr := Lookup(name)
	return err == nil && lookupErr != nil
}

// unpackFolder returns the data of a folder that Pack wrote: the first n training rows, or all if n is 0, and the test
// rows. Where the system supports it, the numbers are mapped from the files: they are read when they are used, and
// shared with other processes.
func unpackFolder(dir string, n int) (*TrainTest, error) {
	name := filepath.Join(dir, manifestName)
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var m manifest
	const advice = "pack the data again"
	switch err := json.Unmarshal(text, &m); {
	case err == nil && m.Version != packVersion:
		return nil, fmt.Errorf("%s: format version %d, want %d: %s", name, m.Version, packVersion, advice)
	case err != nil || m.Sum != m.checksum() || m.Train == nil:
		return nil, fmt.Errorf("%s: damaged or changed, the checksum is wrong: %s", name, advice)
	}
	data := &TrainTest{Target: m.Target, Drop: m.Drop}
	if data.Train, err = m.readPart(m.Train, dir, "train"); err == nil && m.Test != nil {
		data.Test, err = m.readPart(m.Test, dir, "test")
	}
	rows := m.Train.N
	if m.Test != nil {
		rows += m.Test.N
	}
	if err == nil && (len(m.Train.Labels) > rows || !data.Train.HasAnswers() || m.Sigma < 0 || m.Lambda < 0) {
		err = fmt.Errorf("%s: %d labels for %d rows, no answers, or σ = %g, λ = %g", name, len(m.Train.Labels), rows,
			m.Sigma, m.Lambda)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, advice)
	}
	train := data.Train
	data.Info = &Info{Name: train.Name, Task: train.Task, N: train.Len(), D: train.Dim(), Note: train.Note,
		Classes: len(train.Labels),
		Sigma:   m.Sigma, Lambda: m.Lambda}
	if n > 0 && n < train.Len() {
		if data.Train = train.Head(n); m.Scaling != nil && m.Scaling.Kind != "pixel" || !data.Train.hasAllLabels() {
			return nil, fmt.Errorf("%s: %d rows have other labels, or another scaling, than the %d packed: pack the "+
				"rows with --n %d", dir, n, train.Len(), n)
		}
		data.Train.Note = data.Info.describeRows(n, n)
	}
	return data, nil
}

// readPart returns the data set described by p, whose arrays are files of the folder that begin with role.
func (m *manifest) readPart(p *packedPart, dir, role string) (d *Dataset, err error) {
	if p.N < 1 || p.D < 1 {
		return nil, fmt.Errorf("%s: %d rows of %d features", filepath.Join(dir, manifestName), p.N, p.D)
	}
	data, shapes := map[string]any{}, map[string][]int{}
	for _, a := range p.Arrays {
		file := arrayFile(dir, role, a.Name)
		header, elements, err := npy.MapFile(file)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("%s is missing", file)
		case err != nil || !slices.Equal(header.Shape, a.Shape) || !slices.Equal(hexSums(elements), a.Sums):
			return nil, fmt.Errorf("%s: damaged or changed, the checksum is wrong", file)
		}
		data[a.Name], shapes[a.Name] = elements, a.Shape
	}
	d = &Dataset{Name: p.Name, Source: p.Source, Note: p.Note, ReadReport: p.ReadReport, Repeats: p.Repeats,
		Labels: p.Labels, Columns: m.Columns,
		TargetNames: m.Targets, ColumnCodings: m.Categories, Space: m.Space, Scaling: m.Scaling}
	d.X, err = points.FromArrays(p.Kind, p.N, p.D, p.Unit, func(name string, shape ...int) (any, error) {
		if stored := shapes[name]; len(shape) != len(stored) || shape[0] >= 0 && !slices.Equal(shape, stored) {
			return nil, fmt.Errorf("%s: an array of shape %v, want %v", arrayFile(dir, role, name), stored, shape)
		}
		return data[name], nil
	})
	floatVector := func(name string) []float64 {
		v, ok := data[name].([]float64)
		if data[name] != nil && !ok && err == nil {
			err = fmt.Errorf("%s: elements of type %T", arrayFile(dir, role, name), data[name])
		}
		return v
	}
	d.Target, d.Weights, d.bestErrors = floatVector("y"), floatVector("weights"), floatVector("best")
	// The further targets are the arrays y1, y2, ….
	for y := floatVector("y1"); y != nil; y = floatVector(fmt.Sprint("y", len(d.MoreTargets)+1)) {
		d.MoreTargets = append(d.MoreTargets, y)
	}
	d.Groups, _ = npy.ToInts(data["groups"])
	if class, ok := npy.ToInts(data["class"]); ok {
		d.Task, d.Class = Classification, class
	}
	if err != nil {
		return nil, err
	}
	if err = d.check(forbidMissing); err != nil {
		err = fmt.Errorf("%s: %w", filepath.Join(dir, role+"-*.npy"), err)
	}
	return d, err
}
