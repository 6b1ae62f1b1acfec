package datasets

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

func init() {
	register(Format{Name: "npy", Endings: []string{".npy", ".npz"}, Recognize: func(s *Source) (why string, ok bool) {
		return "", s.arrays != nil || bytes.HasPrefix(s.Head(), []byte(npy.Magic))
	}, Read: (*Source).npy})
}

// array is a NumPy array as a matrix: n rows of d numbers, or of texts.
type array struct {
	name string
	npy.Header
	n, d int
	data any // as npy.Read returns it
}

// text returns a number so that no two are one, whole ones with all digits, and booleans as Python writes them.
func (a *array) text(i, j int) string {
	v := reflect.ValueOf(a.data).Index(i*a.d + j)
	if v.CanFloat() {
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits())
	}
	if strings.HasSuffix(a.Descr, "b1") {
		return map[bool]string{true: "True", false: "False"}[!v.IsZero()]
	}
	return strings.TrimSpace(fmt.Sprint(v))
}

// number returns a number; ok is false for texts, and for numbers of other types.
func (a *array) number(i, j int) (v float64, ok bool) {
	k := i*a.d + j
	switch v := a.data.(type) {
	case []uint8:
		return float64(v[k]), true
	case []int32:
		return float64(v[k]), true
	case []int64:
		return float64(v[k]), true
	case []float32:
		return float64(v[k]), true
	case []float64:
		return v[k], true
	}
	return 0, false
}

// points returns the columns to keep of the first n rows, in the memory of the array where that holds floats; in
// float64 where missing numbers are to be filled in.
func (s *Source) points(a *array, n int, keep []int, fill bool) (points.Points, error) {
	switch v := a.data.(type) {
	case []float32:
		if !fill {
			return points.NewDense32(n, len(keep), kept(v, n, a.d, keep)), nil
		}
	case []float64:
		return points.NewDense(n, len(keep), kept(v, n, a.d, keep)), nil
	}
	if err := s.take(8*n*len(keep), n-1); err != nil {
		return nil, err
	}
	x := points.NewDense(n, len(keep), nil)
	for i := range n {
		for k, j := range keep {
			v, ok := a.number(i, j)
			if !ok {
				v, _ = parse(a.text(i, j)) // exact: what is rounded is the number
			}
			x.Row(i)[k] = v
		}
	}
	return x, nil
}

// kept returns the columns to keep of n rows of d numbers: in the memory of v if they rise.
func kept[T any](v []T, n, d int, keep []int) []T {
	out := v[:n*len(keep)]
	if !slices.IsSorted(keep) {
		out = make([]T, len(out))
	} else if len(keep) == d {
		return out
	}
	for i := range n {
		for k, j := range keep {
			out[i*len(keep)+k] = v[i*d+j]
		}
	}
	return out
}

// elements reads those of an array, which take memory.
func (s *Source) elements(a *array, r io.Reader) (err error) {
	if held := a.Held(); held > math.MaxInt64/2 || s.take(int(held), 0) != nil {
		return s.refuse("an array of shape %v takes %s, the limit is %s: allow more by --memory", a.Shape,
			accel.Bytes(held), accel.Bytes(s.memory()))
	}
	if a.data, err = a.Read(r); err != nil {
		return s.arrayFault(err)
	}
	return nil
}

func (s *Source) arrayFault(err error) error {
	if s.ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, zip.ErrChecksum) {
		return s.failed(0, err)
	}
	return s.refuse("%v", err)
}

// header reads the header of an array: vectors are columns, and the last dimensions of more than two are one.
func (s *Source) header(name string, r io.Reader) (a *array, err error) {
	a = &array{name: strings.TrimSuffix(name, ".npy"), n: 1, d: 1}
	if a.Header, err = npy.ReadHeader(r); err != nil {
		return nil, s.arrayFault(err)
	}
	if size, _ := a.Size(); len(a.Shape) > 0 {
		if a.n = a.Shape[0]; a.n > 0 {
			a.d = size / a.n
		}
	}
	return a, nil
}

// arrayRow is the current row of arrays as cells: the columns of the points, then those of other arrays.
type arrayRow struct {
	row     int
	columns []arrayColumn
}

type arrayColumn struct {
	*array
	j int
}

func (r *arrayRow) Text(j int) string {
	c := r.columns[j]
	return c.text(r.row, c.j)
}

func (r *arrayRow) Number(j int) (v float64, ok bool) {
	c := r.columns[j]
	return c.number(r.row, c.j)
}

// npy reads a matrix, with the columns of other arrays of its archive that are answers or that options name.
func (s *Source) npy(o *ReadOptions) (*Dataset, error) {
	x, y, others, err := s.matrices(o)
	if err != nil {
		return nil, err
	}
	if x.n == 0 || x.d == 0 {
		return nil, s.refuse("%s has shape %v: no rows or no columns",
			strings.TrimSpace("the array "+x.name), x.Shape)
	}
	c := s.table(o)
	c.o.Header = "no"
	row, first := &arrayRow{}, []string(nil)
	add := func(a *array) (names []string) {
		for j := range a.d {
			name := a.name
			if a == x {
				name = strconv.Itoa(j)
			} else if a.d > 1 {
				name += "_" + strconv.Itoa(j)
			}
			row.columns, names = append(row.columns, arrayColumn{a, j}), append(names, name)
		}
		first = append(first, names...)
		return names
	}
	switch add(x); {
	case y != nil:
		names := add(y)
		if c.o.Target, c.o.More, c.o.Columns = names[0], names[1:], nil; len(names) > 1 {
			c.o.Task = "regression"
		}
		if isIndex(y.name) {
			c.o.Target = strconv.Itoa(x.d)
		}
	case s.arrays != nil && len(others) > 0 && (o.Target == "" || o.Target == "-1"):
		c.o.Target = strconv.Itoa(x.d - 1)
	case len(x.Shape) > 2 && o.Target != "none" && !o.TargetOptional:
		return nil, s.refuse("an array of shape %v has no column of answers: write points and answers into one file "+
			"by np.savez('data.npz', X=X, y=y)", x.Shape)
	case len(x.Shape) > 2:
		c.o.Target = "none"
	}
	for _, a := range others {
		if add(a); a.name != o.Weights {
			c.o.Drop = append(slices.Clip(c.o.Drop), strconv.Itoa(len(first)-1))
		}
	}
	if _, err := c.begin(first, 0); err != nil {
		return nil, err
	}
	_, texts := x.data.([]string)
	if c.read.Header, c.matrix = "", !c.wordy && !texts; texts {
		c.read.note("the points are texts, which are read as numbers")
	}
	n := x.n
	if o.MaxRows > 0 {
		n = min(n, o.MaxRows)
	}
	for row.row = range n {
		if err := c.Add(row, row.row+1); err != nil {
			return nil, err
		}
	}
	d, err := c.Dataset()
	if err != nil {
		return nil, err
	}
	if y != nil {
		c.read.Target = ""
	}
	if c.matrix {
		d.X, err = s.points(x, n, c.keep, o.KeepMissing)
	}
	return d, err
}

// matrices returns the array of the points, that of the answers, nil if these are a column of the points or there are
// none, and those that other options name.
func (s *Source) matrices(o *ReadOptions) (x, y *array, others []*array, err error) {
	if s.arrays == nil {
		if x, err = s.header("", s.r); err == nil {
			err = s.elements(x, s.r)
		}
		if err != nil {
			return nil, nil, nil, err
		}
		s.reading.Format += fmt.Sprintf(", of shape %v", x.Shape)
		if more, _ := s.r.Peek(len(npy.Magic)); string(more) == npy.Magic {
			err = s.refuse("a second array follows the first: write both by np.savez('data.npz', X=X, y=y)")
		} else if len(more) > 0 {
			err = s.refuse("more bytes follow the array, of shape %v: the file holds something else, too", x.Shape)
		}
		return x, nil, nil, err
	}
	all, err := s.headers()
	if err != nil {
		return nil, nil, nil, err
	}
	if x, y, err = s.choose(all, o); err != nil {
		return nil, nil, nil, err
	}
	var unused []string
	for _, a := range all {
		switch isNamed := a.name == o.Weights || slices.Contains(o.Keep, a.name); {
		case a == x || a == y:
		case isNamed && a.n == x.n && a.d == 1:
			others = append(others, a)
		default:
			unused = append(unused, a.describe())
		}
	}
	if unused != nil {
		s.reading.note("arrays not read: %s", listed(unused))
	}
	if err := s.load(all, append(others, x, y)...); err != nil {
		return nil, nil, nil, err
	}
	s.reading.Format += fmt.Sprintf(": points %s of shape %v", x.name, x.Shape)
	if y != nil {
		s.reading.Format += fmt.Sprintf(", answers %s", y.name)
	}
	return x, y, others, nil
}

func (a *array) describe() string { return fmt.Sprintf("%s of shape %v", plain(a.name), a.Shape) }

// headers returns the arrays of the archive without their elements.
func (s *Source) headers() (all []*array, err error) {
	for _, f := range s.arrays {
		if err := s.member(f, func(r io.Reader) error {
			a, err := s.header(f.Name, r)
			all = append(all, a)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// load reads the elements of some of all arrays of the archive.
func (s *Source) load(all []*array, some ...*array) error {
	for k, a := range all {
		if !slices.Contains(some, a) {
			continue
		}
		if err := s.member(s.arrays[k], func(r io.Reader) error {
			if _, err := npy.ReadHeader(r); err != nil {
				return err
			}
			return s.elements(a, r)
		}); err != nil {
			return err
		}
	}
	return nil
}

// member reads a file of the archive to its end, where the checksum is compared.
func (s *Source) member(f *zip.File, read func(r io.Reader) error) error {
	s.zipped = f
	r, err := f.Open()
	if err == nil {
		err = read(&watched{ctx: s.ctx, r: r})
		r.Close()
	}
	if err != nil {
		return s.failed(0, err)
	}
	return nil
}

// Names of arrays as programs give them, in lower case; the first that is there is taken.
var (
	pointNames  = []string{"x", "x_train", "train_x", "train_images", "train_data", "data", "features", "images", "arr_0"}
	answerNames = []string{"y", "y_train", "train_y", "train_labels", "train_targets", "target", "targets", "labels", "label",
		"arr_1"}
)

// named returns the first array with one of the names, with "test" in place of "train" for the test part.
func named(all []*array, names []string, test bool) *array {
	for _, name := range names {
		if test && strings.Contains(name, "train") {
			names = append([]string{strings.Replace(name, "train", "test", 1)}, names...)
		}
	}
	for _, name := range names {
		for _, a := range all {
			if strings.EqualFold(a.name, name) {
				return a
			}
		}
	}
	return nil
}

// only returns the one array that fits; nil if there are none or several.
func only(all []*array, fits func(a *array) bool) *array {
	if all = slices.DeleteFunc(slices.Clone(all), func(a *array) bool { return !fits(a) }); len(all) == 1 {
		return all[0]
	}
	return nil
}

// choose returns the arrays of the points and of the answers: those that the options name, those with usual names, or
// the only ones that can be these.
func (s *Source) choose(all []*array, o *ReadOptions) (x, y *array, err error) {
	fail := func(format string, args ...any) (x, y *array, err error) {
		return nil, nil, s.refuse(format, args...)
	}
	var names []string
	for _, a := range all {
		names = append(names, a.describe())
	}
	there := listed(names)
	answers, isNamed := answerNames, o.Target != "none" && o.Target != "" && !isIndex(o.Target)
	if isNamed {
		answers = []string{o.Target}
		if k := strings.LastIndexByte(o.Target, '_'); k > 0 && len(o.More) > 0 { // the first column of an array
			answers = append(answers, o.Target[:k])
		}
	}
	y = named(all, answers, o.TestPart)
	rest := slices.DeleteFunc(slices.Clone(all), func(a *array) bool { return a == y })
	if x = named(rest, pointNames, o.TestPart); o.Points != "" {
		if x = named(rest, []string{o.Points}, false); x == nil {
			return fail("no array for the points is named %s: there are %s", quote(o.Points), there)
		}
	}
	isMatrix := func(a *array) bool { return len(a.Shape) > 1 }
	if x == nil || o.Points == "" && !isMatrix(x) && !strings.EqualFold(x.name, "x") {
		x = only(rest, isMatrix)
	}
	if x == nil && len(all) == 1 && (o.AnswersOnly || isMatrix(all[0])) {
		x, y = all[0], nil
	}
	if named(all, []string{"indptr", "col"}, false) != nil && named(all, []string{"shape"}, false) != nil {
		return fail("a sparse matrix of SciPy, without answers: write both by " +
			"sklearn.datasets.dump_svmlight_file(X, y, 'data.svm', zero_based=False)")
	}
	if x == nil {
		return fail("no array is named X, and not just one is a matrix: there are %s; name the points by --x", there)
	}
	if y == nil && !isNamed {
		y = only(rest, func(a *array) bool { return a != x && len(a.Shape) == 1 && a.n == x.n })
	}
	if y != nil && y.n == 1 && x.n == y.d { // a row of answers
		y.n, y.d = y.d, 1
	}
	switch {
	case o.Target == "none":
		y = nil
	case y == nil && isNamed && !o.TargetOptional:
		return fail("no array is named %s: there are %s", quote(o.Target), there)
	case y == nil && len(all) > 1 && !isNamed && !o.TargetOptional:
		return fail("no array is named y, and not just one is a vector: there are %s; name the answers by --target", there)
	case y != nil && y.d > 1 && o.Task == "classification":
		return fail("the answers %s have %d columns: several targets need --task regression",
			plain(y.name), y.d)
	case y != nil && y.n != x.n:
		return fail("%d answers %s, and %d points %s", y.n, plain(y.name), x.n, plain(x.name))
	}
	return x, y, nil
}

// ReadMatrix reads a matrix of numbers, which need not be finite, from a .npy file, or an .npz file with one matrix,
// packed or not. It takes at most memory bytes; 0 stands for what the machine has.
func ReadMatrix(ctx context.Context, name string, memory int64) (points.Points, error) {
	s, err := open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.limit, s.reading = cmp.Or(memory, accel.MemoryAvailable()), &Reading{}
	x, _, _, err := s.matrices(&ReadOptions{Target: "none"})
	if err != nil {
		return nil, err
	}
	if _, texts := x.data.([]string); texts || len(x.Shape) != 2 {
		return nil, s.refuse("an array of shape %v and type %s: want a matrix of numbers", x.Shape, x.Descr)
	}
	keep := make([]int, x.d)
	for j := range keep {
		keep[j] = j
	}
	return s.points(x, x.n, keep, false)
}
