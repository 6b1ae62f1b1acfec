package model

import (
	"archive/zip"
	"bufio"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Every model file states formatName and a version from 1 to formatVersion. The version is the smallest one that can
// read the file: 5 for a matrix of the distance, 4 for a threshold, 3 for means of the targets, 2 for points in bytes,
// and 1 otherwise.
const (
	formatName    = "krrlab-model"
	formatVersion = 5
)

// maxInflate is the largest number of bytes to which DEFLATE expands one byte. The size that a damaged or hostile file
// claims for an entry is therefore limited to maxInflate times the size of the file.
const maxInflate = 1032

// Info is the content of model.json: all parts of a model file except the arrays.
type Info struct {
	Format  string      `json:"format"`
	Version int         `json:"version"`
	Task    string      `json:"task"`
	Kernel  kernel.Spec `json:"kernel"`
	Lambda  float64     `json:"lambda"`
	N       int         `json:"n"`              // number of training points
	D       int         `json:"d"`              // number of features
	T       int         `json:"t"`              // number of columns of the coefficients, as Model.Dims returns it
	Points  string      `json:"points"`         // "dense", "csr" or "bytes"
	Unit    float64     `json:"unit,omitempty"` // unit of points in bytes, points.Bytes.Scale
	Labels  []string    `json:"labels,omitempty"`
	Targets []string    `json:"targets,omitempty"`
	Mean    []float64   `json:"mean,omitempty"`
	// Threshold is subtracted from f of two classes before its sign determines the label.
	Threshold   float64           `json:"threshold,omitempty"`
	Weighted    bool              `json:"weighted,omitempty"`
	Scaling     *datasets.Scaling `json:"scaling,omitempty"`
	Columns     []string          `json:"columns,omitempty"`
	ErrorBounds *ErrorBounds      `json:"error,omitempty"`
	Repeats     *datasets.Repeats `json:"repeats,omitempty"` // the groups are in groups.npy, if there are any

	Calibration *Calibration `json:"calibration,omitempty"` // the scores are in scores.npy
	Origin      Origin       `json:"origin"`
}

// Save writes the model to the named file, completely or not at all. It returns an error if the kernel is user-defined
// and not registered (kernel.Register), if the residual in Origin is not a number, or if Load would reject the model.
func (m *Model) Save(name string) error {
	if r := m.Origin.TrueResidual; r != nil && (math.IsNaN(*r) || math.IsInf(*r, 0)) {
		return fmt.Errorf("model: not saved: the residual of its answer is %g, beyond the range of float64: fit "+
			"with targets in another unit, or a larger λ", *r)
	}
	meta, err := m.Info()
	if err != nil {
		return fmt.Errorf("model: cannot save: %w", err)
	}
	if err := m.validate(*meta); err != nil {
		return fmt.Errorf("model: not saved: %w", err)
	}
	return atomicfile.Write(name, func(w io.Writer) error { return m.write(w, meta) })
}

// Info returns the content of model.json for the model. It returns an error if the kernel is user-defined and not
// registered.
func (m *Model) Info() (*Info, error) {
	spec, err := kernel.ToSpec(m.Kernel)
	if err != nil {
		return nil, err
	}
	n, d, t := m.Dims()
	meta := &Info{
		Format: formatName, Version: 1, Task: m.Task().String(), Kernel: spec, Lambda: m.Lambda, N: n, D: d, T: t,
		Labels: m.Labels, Targets: m.Targets, Mean: m.Mean, Weighted: m.Weighted,
		Scaling: m.Scaling, Columns: m.Columns, ErrorBounds: m.ErrorBounds, Repeats: m.Repeats,
		Calibration: m.Calibration, Origin: m.Origin,
	}
	switch x := m.X.(type) {
	case *points.CSR:
		meta.Points = "csr"
	case *points.Bytes:
		meta.Version, meta.Points, meta.Unit = 2, "bytes", x.Scale
	default:
		meta.Points = "dense"
	}
	if m.Mean != nil {
		meta.Version = 3
	}
	if meta.Threshold = m.Threshold; m.Threshold != 0 {
		meta.Version = 4
	}
	if m.Scaling != nil && m.Scaling.Matrix != nil {
		meta.Version = 5
	}
	return meta, nil
}

// write writes a model file, with meta as its model.json.
func (m *Model) write(w io.Writer, meta *Info) error {
	zipWriter := zip.NewWriter(w)
	zipWriter.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestSpeed)
	})
	n, _, t := m.Dims()
	metaJSON, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return err
	}
	entry, err := zipWriter.Create("model.json")
	if err != nil {
		return err
	}
	if _, err := entry.Write(append(metaJSON, '\n')); err != nil {
		return err
	}
	// writeArray writes an array and sets err if that fails. It does nothing if err is already set.
	writeArray := func(name string, method uint16, data any, shape ...int) {
		if err != nil {
			return
		}
		var entry io.Writer
		if entry, err = zipWriter.CreateHeader(&zip.FileHeader{Name: name, Method: method}); err == nil {
			err = npy.Write(entry, data, shape...)
		}
	}
	if m.Groups != nil {
		groups := make([]int64, n)
		for i, g := range m.Groups {
			groups[i] = int64(g)
		}
		writeArray("groups.npy", zip.Deflate, groups, n)
	}
	if m.Answers != nil {
		writeArray("answers.npy", zip.Deflate, m.Answers, n, len(m.Answers)/n)
	}
	if m.Weights != nil {
		writeArray("weights.npy", zip.Deflate, m.Weights, n)
	}
	writeArray("c.npy", zip.Store, mat.DenseCopyOf(m.C).RawMatrix().Data, n, t)
	_, _, arrays := points.ToArrays(m.X)
	for _, x := range arrays {
		writeArray(x.Name+".npy", zip.Deflate, x.Data, x.Shape...)
	}
	if m.Calibration != nil {
		rows, columns := m.Calibration.Scores.Dims()
		writeArray("scores.npy", zip.Store, mat.DenseCopyOf(m.Calibration.Scores).RawMatrix().Data, rows, columns)
	}
	if err != nil {
		return err
	}
	return zipWriter.Close()
}

// Load reads a model file within the available memory, as LoadWithin does.
func Load(name string) (*Model, error) { return LoadWithin(name, accel.AvailableMemory(0, 1)) }

// LoadWithin reads a model file. Errors contain the name of the file and the reason. It is an error if the arrays of
// the model take more than 16 MiB and do not fit into the memory.
func LoadWithin(name string, memory accel.Budget) (*Model, error) {
	f, err := os.Open(name)
	if err != nil {
		var pathError *os.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		return nil, fmt.Errorf("cannot open model %s: %w", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("cannot open model %s: it is a folder", name)
	}
	m, err := readArchive(f, info.Size(), memory)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// Digest returns the names, sizes and checksums of the parts of a model file, one part a line, or nil if the file
// cannot be opened or is no model file.
func Digest(name string) (text []byte) {
	reader, err := zip.OpenReader(name)
	if err != nil {
		return nil
	}
	defer reader.Close()
	for _, f := range reader.File {
		text = fmt.Appendln(text, f.Name, f.UncompressedSize64, f.CRC32)
	}
	return text
}

// readArchive reads a model from r, which has the given size in bytes. The arrays must fit into the memory, unless they
// take at most uncheckedBytes.
func readArchive(r io.ReaderAt, size int64, memory accel.Budget) (*Model, error) {
	zipReader, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a model file, or cut short (%v): fit again", err)
	}
	a := &archive{zip: zipReader, size: size, memory: memory}
	meta, err := a.metadata()
	if err != nil {
		return nil, err
	}
	m := &Model{Lambda: meta.Lambda, Labels: meta.Labels, Targets: meta.Targets, Mean: meta.Mean,
		Threshold: meta.Threshold, Weighted: meta.Weighted, Scaling: meta.Scaling, Columns: meta.Columns,
		ErrorBounds: meta.ErrorBounds, Repeats: meta.Repeats, Origin: meta.Origin}
	if err := a.readModel(m, meta); err != nil {
		if _, tooLarge := errors.AsType[*accel.MemoryError](err); tooLarge || errors.Is(err, kernel.ErrUnknown) {
			return nil, err
		}
		return nil, fmt.Errorf("damaged model: %w", err)
	}
	return m, nil
}

// readModel reads the arrays and the kernel of the model m, which has the other parts of meta, and checks m.
func (a *archive) readModel(m *Model, meta Info) (err error) {
	if m.Kernel, err = kernel.FromSpec(meta.Kernel); err != nil {
		return err
	}
	if m.Repeats != nil && m.Repeats.Grouped > 0 {
		if m.Groups, err = a.groups(meta.N); err != nil {
			return err
		}
	}
	if a.contains("answers.npy") {
		m.Answers = readFloats(a, &err, "answers.npy", meta.N, max(1, len(m.Targets)))
	}
	if a.contains("weights.npy") {
		m.Weights = readFloats(a, &err, "weights.npy", meta.N)
	}
	c := readFloats(a, &err, "c.npy", meta.N, meta.T)
	// Sparse points need memory for a second x_indptr, and predictions from them for further vectors.
	if err == nil && meta.Points == "csr" {
		err = a.reserve(8 * (int64(meta.N) + 4*int64(meta.D)))
	}
	if err == nil {
		m.X, err = points.FromArrays(meta.Points, meta.N, meta.D, meta.Unit,
			func(name string, shape ...int) (any, error) {
				return a.read(name+".npy", shape)
			})
	}
	if err != nil {
		return err
	}
	m.C = mat.NewDense(meta.N, meta.T, c)
	if m.Calibration = meta.Calibration; m.Calibration != nil {
		if err := a.scores(m.Calibration, m.Labels != nil, meta.T); err != nil {
			return err
		}
	}
	return m.validate(meta)
}

// validate returns an error if m is not a valid model, or not of the task that meta states.
func (m *Model) validate(meta Info) error {
	if meta.Task != m.Task().String() {
		return fmt.Errorf("task is %q with %d labels", meta.Task, len(m.Labels))
	}
	if err := m.check(); err != nil {
		return err
	}
	if !(m.Lambda > 0) || math.IsInf(m.Lambda, 0) {
		return fmt.Errorf("λ = %g", m.Lambda)
	}
	if err := checkFinite("coefficient", m.C.RawMatrix().Data); err != nil {
		return err
	}
	if err := m.Scaling.Validate(); err != nil {
		return err
	}
	if x, ok := m.X.(*points.CSR); ok {
		return checkFinite("nonzero", x.Val)
	}
	return points.CheckFinite(m.X)
}

// checkFinite returns an error if a number is infinite or NaN. The error calls number i "name i".
func checkFinite(name string, values []float64) error {
	for i, x := range values {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%s %d is %g", name, i, x)
		}
	}
	return nil
}

// archive is a model file that is being read.
type archive struct {
	zip        *zip.Reader
	size       int64
	memory     accel.Budget // remaining memory; the arrays that were read are subtracted
	arrayBytes int64        // size of the arrays that were read
}

// open returns an entry, and the maximum number of bytes that the entry can contain.
func (a *archive) open(name string) (io.ReadCloser, int64, error) {
	for _, f := range a.zip.File {
		if f.Name == name {
			r, err := f.Open()
			return r, int64(min(f.UncompressedSize64, uint64(maxInflate*a.size))), err
		}
	}
	return nil, 0, fmt.Errorf("%s is missing", name)
}

// contains reports whether there is an entry with this name.
func (a *archive) contains(name string) bool {
	return slices.ContainsFunc(a.zip.File, func(f *zip.File) bool { return f.Name == name })
}

// reserve sets aside the bytes of an array that is about to be read. It returns an error unless so many are free, or
// the arrays take at most uncheckedBytes.
func (a *archive) reserve(bytes int64) error {
	budget := a.memory
	a.memory = budget.Reserve(bytes)
	if a.arrayBytes += bytes; a.arrayBytes <= uncheckedBytes {
		return nil
	}
	return budget.Check(bytes, "an array of the model", "allow more by --memory, or take a machine with more")
}

// uncheckedBytes is the largest size of a model's arrays that are read without regard to the budget, since the program
// itself takes more. Tests change this variable.
var uncheckedBytes int64 = 1 << 24

// metadata reads model.json and checks the format, the version and the sizes.
func (a *archive) metadata() (meta Info, err error) {
	r, _, err := a.open("model.json")
	if err != nil {
		return meta, fmt.Errorf("not a model file: %w", err)
	}
	defer r.Close()
	metaJSON, err := io.ReadAll(io.LimitReader(r, 64<<20)) // 64 MiB; reading to the end verifies the checksum
	if err == nil {
		err = json.Unmarshal(metaJSON, &meta)
	}
	if err != nil {
		return meta, fmt.Errorf("damaged model: model.json: %w", err)
	}
	if meta.Format != formatName {
		return meta, fmt.Errorf("not a model file: format is %q", meta.Format)
	}
	if meta.Version < 1 || meta.Version > formatVersion {
		return meta, fmt.Errorf("model file of version %d; this krrlab reads up to version %d: update krrlab",
			meta.Version, formatVersion)
	}
	const maxSize = math.MaxInt32
	if meta.N < 1 || meta.D < 1 || meta.T < 1 || meta.N > maxSize || meta.D > maxSize || meta.T > maxSize {
		return meta, fmt.Errorf("damaged model: n=%d, d=%d, t=%d", meta.N, meta.D, meta.T)
	}
	return meta, nil
}

// groups reads the groups of n points.
func (a *archive) groups(n int) ([]int, error) {
	data, err := a.read("groups.npy", []int{n})
	groups, ok := npy.ToInts(data)
	if err == nil && !ok {
		err = fmt.Errorf("groups.npy: elements are of type %T, want integers", data)
	}
	return groups, err
}

// readFloats returns the elements of an entry of float64, and sets *err if the entry cannot be read. If *err is already
// set, readFloats does nothing.
func readFloats(a *archive, err *error, name string, shape ...int) []float64 {
	if *err != nil {
		return nil
	}
	data, readErr := a.read(name, shape)
	values, ok := data.([]float64)
	if readErr == nil && !ok {
		readErr = fmt.Errorf("%s: elements are of type %T, want %T", name, data, values)
	}
	*err = readErr
	return values
}

// read reads an entry to its end, so that its checksum is verified, and checks its shape. A negative dimension in shape
// matches any size.
func (a *archive) read(name string, shape []int) (data any, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	r, limit, err := a.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := a.reserve(limit); err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(r, 1<<16)
	header, data, err := npy.Read(buffered, limit)
	if err != nil {
		return nil, err
	}
	if _, err := buffered.ReadByte(); err != io.EOF { // reading to the end verifies the checksum
		if err == nil {
			err = errors.New("more bytes than elements")
		}
		return nil, err
	}
	for i, n := range shape {
		if len(header.Shape) != len(shape) || (n >= 0 && header.Shape[i] != n) {
			return nil, fmt.Errorf("shape is %v, want %v", header.Shape, shape)
		}
	}
	return data, nil
}

// scores reads the scores of a calibration: a column for each of t targets, or one column with classes.
func (a *archive) scores(c *Calibration, isClassifier bool, t int) (err error) {
	if isClassifier {
		t = 1
	}
	values := readFloats(a, &err, "scores.npy", -1, t)
	if err == nil && len(values) == 0 {
		err = errors.New("scores.npy: no rows")
	}
	if err == nil {
		c.Scores = mat.NewDense(len(values)/t, t, values)
	}
	return err
}
