package datasets

import (
	"archive/zip"
	"bytes"
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
	recognize := func(s *Source) (reason string, ok bool) {
		return "", s.arrays != nil || bytes.HasPrefix(s.Head(), []byte(npy.Magic))
	}
	register(Format{Name: "npy", Endings: []string{".npy", ".npz"}, Options: []string{"x"}, Recognize: recognize,
		Read: (*Source).readNPY})
}

// array is a NumPy array as a matrix of n rows and d columns, of numbers or of texts.
type array struct {
	name string
	npy.Header
	n, d    int
	data    any    // slice of the elements, a result of npy.Read
	columns *array // names of the columns; nil if there are none
}

// text returns element (i, j) as text. Distinct numbers have distinct texts, whole numbers have all digits, and
// booleans are written as in Python.
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

// number returns element (i, j), rounded to float64. ok is false for texts and for numeric types other than those
// below; the number then has to be parsed from the text.
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

// arrayPoints returns the first n rows of the given columns as points. Arrays of floats share their memory with the
// points if possible. If asFloat64 is set, float32 is converted to float64.
func (s *Source) arrayPoints(a *array, n int, columns []int, asFloat64 bool) (points.Points, error) {
	switch v := a.data.(type) {
	case []float32:
		if !asFloat64 {
			return points.NewDense32(n, len(columns), selectColumns(v, n, a.d, columns)), nil
		}
	case []float64:
		return points.NewDense(n, len(columns), selectColumns(v, n, a.d, columns)), nil
	}
	if err := s.reserve(8*n*len(columns), n-1); err != nil {
		return nil, err
	}
	x := points.NewDense(n, len(columns), nil)
	for i := range n {
		for k, j := range columns {
			v, ok := a.number(i, j)
			if !ok {
				v, _ = parseNumber(a.text(i, j)) // the text is exact, so this rounds only once
			}
			x.Row(i)[k] = v
		}
	}
	return x, nil
}

// selectColumns returns the given columns of the first n rows of v, which has d columns. It reuses the memory of v if
// the columns are in increasing order.
func selectColumns[T any](v []T, n, d int, columns []int) []T {
	out := v[:n*len(columns)]
	if !slices.IsSorted(columns) {
		out = make([]T, len(out))
	} else if len(columns) == d {
		return out
	}
	for i := range n {
		for k, j := range columns {
			out[i*len(columns)+k] = v[i*d+j]
		}
	}
	return out
}

// readElements reads the elements of an array, after it has reserved the memory.
func (s *Source) readElements(a *array, r io.Reader) (err error) {
	used := s.memory.Used
	if size := a.MemorySize(); size > math.MaxInt64/2 || s.reserve(int(size), 0) != nil {
		return s.fileFault("%v", &accel.MemoryError{Item: fmt.Sprintf("an array of shape %v", a.Shape), Need: size,
			Budget: s.emptyBudget().Reserve(used)})
	}
	if a.data, err = a.Read(r); err != nil {
		return s.arrayFault(err)
	}
	return nil
}

// arrayFault converts an error of package npy into a *ParseError.
func (s *Source) arrayFault(err error) error {
	if s.ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, zip.ErrChecksum) {
		return s.readError(0, err)
	}
	return s.fileFault("%v", err)
}

// newArray returns an array without its elements. A vector becomes a matrix of one column; in an array of more than two
// dimensions, all dimensions after the first are combined.
func newArray(name string, h npy.Header) *array {
	a := &array{name: strings.TrimSuffix(name, ".npy"), Header: h, n: 1, d: 1}
	if size, _ := h.Size(); len(h.Shape) > 0 {
		if a.n = h.Shape[0]; a.n > 0 {
			a.d = size / a.n
		}
	}
	return a
}

// arrayRow is the current row of several arrays as cells: the columns of the points, followed by those of the other
// arrays.
type arrayRow struct {
	row     int
	columns []arrayColumn
}

// arrayColumn is column j of an array.
type arrayColumn struct {
	*array
	j int
}

// add appends the columns of an array.
func (r *arrayRow) add(a *array) {
	for j := range a.d {
		r.columns = append(r.columns, arrayColumn{a, j})
	}
}

// pointColumnNames returns the names of the columns of the points: those in the file, or the indices of the columns.
func (a *array) pointColumnNames() []string {
	names := make([]string, a.d)
	for j := range names {
		if names[j] = strconv.Itoa(j); a.columns != nil {
			names[j] = a.columns.text(j, 0)
		}
	}
	return names
}

// columnNames returns the names of the columns of an array other than the points: the name of the array, followed by
// the index of the column if there are several.
func (a *array) columnNames() []string {
	if a.d == 1 {
		return []string{a.name}
	}
	names := make([]string, a.d)
	for j := range names {
		names[j] = a.name + "_" + strconv.Itoa(j)
	}
	return names
}

// Text implements Cells.
func (r *arrayRow) Text(j int) string {
	c := r.columns[j]
	return c.text(r.row, c.j)
}

// Number implements Cells.
func (r *arrayRow) Number(j int) (v float64, ok bool) {
	c := r.columns[j]
	return c.number(r.row, c.j)
}

// chosenArrays are the arrays of a file that are read.
type chosenArrays struct {
	x     *array   // points
	y     *array   // answers; nil if they are a column of x, or if there are none
	named []*array // vectors of the columns that other options name
}

// readNPY reads a matrix and, from an archive, the other arrays that contain answers or that options name.
func (s *Source) readNPY(o *ReadOptions) (*Dataset, error) {
	arrays, err := s.readArrays(o)
	if err != nil {
		return nil, err
	}
	x := arrays.x
	for _, a := range []*array{x, arrays.y} {
		if a != nil && (a.n == 0 || a.d == 0) {
			return nil, s.fileFault("%s has shape %v: no rows or no columns", strings.TrimSpace("the array "+a.name),
				a.Shape)
		}
	}
	t := s.newTable(o)
	row, err := t.addArrays(arrays)
	if err != nil {
		return nil, err
	}
	_, isText := x.data.([]string)
	if t.report.Header, t.isArray = "", !t.hasCoders && !isText && o.Space == nil; isText {
		t.report.note("the points are texts, which are read as numbers")
	}
	n := min(x.n, o.MaxRows)
	for row.row = range n {
		if err := t.Add(row, row.row+1); err != nil {
			return nil, err
		}
	}
	d, err := t.Dataset()
	if err != nil {
		return nil, err
	}
	if arrays.y != nil {
		t.report.Target = ""
	}
	if t.isArray {
		d.X, err = s.arrayPoints(x, n, t.featureColumns, o.KeepMissing)
	}
	return d, err
}

// addArrays chooses the columns of the table from those of the arrays: the points, the answers and the named arrays.
// The result is the row from which Add reads them.
func (t *Table) addArrays(arrays chosenArrays) (*arrayRow, error) {
	x, y, o := arrays.x, arrays.y, t.o
	isOptional := o.Target == "none" || o.TargetOptional
	if o.Header = "no"; x.columns != nil {
		o.Header = "yes"
	}
	row, names := &arrayRow{}, x.pointColumnNames()
	row.add(x)
	switch {
	case y != nil:
		answerColumns := y.columnNames()
		row.add(y)
		names = append(names, answerColumns...)
		if o.Target, o.MoreTargets, o.Columns = answerColumns[0], answerColumns[1:], nil; len(answerColumns) > 1 {
			o.Task = "regression"
		}
		if isIndex(y.name) {
			o.Target = strconv.Itoa(x.d)
		}
	case t.s.arrays != nil && len(arrays.named) > 0 && (o.Target == "" || o.Target == "-1"):
		o.Target = strconv.Itoa(x.d - 1) // the last column of the points, not of the named arrays
	case len(x.Shape) > 2 && !isOptional:
		return nil, t.s.fileFault("an array of shape %v has no column of answers: write points and answers into one "+
			"file by np.savez('data.npz', X=X, y=y)", x.Shape)
	case len(x.Shape) > 2:
		o.Target = "none"
	}
	for _, a := range arrays.named {
		row.add(a)
		names = append(names, a.columnNames()...)
		if a.name != o.Weights {
			o.Drop = append(slices.Clip(o.Drop), strconv.Itoa(len(names)-1))
		}
	}
	_, err := t.readFirstRow(names, 0)
	return row, err
}

// readArrays reads the array of the points, that of the answers, and the arrays that other options name.
func (s *Source) readArrays(o *ReadOptions) (chosenArrays, error) {
	if s.arrays == nil {
		x, err := s.readOnlyArray()
		return chosenArrays{x: x}, err
	}
	var arrays []*array
	for _, f := range s.arrays {
		if err := s.readMember(f, func(h npy.Header, _ io.Reader) error {
			arrays = append(arrays, newArray(f.Name, h))
			return nil
		}); err != nil {
			return chosenArrays{}, err
		}
	}
	chosen, err := s.chooseArrays(arrays, o)
	if err != nil {
		return chosen, err
	}
	arraysToRead := append(chosen.named, chosen.x, chosen.y, chosen.x.columns) // some are nil
	for k, a := range arrays {
		if !slices.Contains(arraysToRead, a) {
			continue
		}
		if err := s.readMember(s.arrays[k], func(_ npy.Header, r io.Reader) error {
			if err := s.readElements(a, r); err != nil {
				return err
			}
			return s.readToEnd(r)
		}); err != nil {
			return chosen, err
		}
	}
	return chosen, nil
}

// readOnlyArray reads the array of a .npy file.
func (s *Source) readOnlyArray() (*array, error) {
	h, err := npy.ReadHeader(s.r)
	if err != nil {
		return nil, s.arrayFault(err)
	}
	x := newArray("", h)
	if err := s.readElements(x, s.r); err != nil {
		return nil, err
	}
	s.report.Format += fmt.Sprintf(", of shape %v", x.Shape)
	switch trailing, _ := s.r.Peek(len(npy.Magic)); {
	case string(trailing) == npy.Magic:
		return nil, s.fileFault("a second array follows the first: write both by np.savez('data.npz', X=X, y=y)")
	case len(trailing) > 0:
		return nil, s.fileFault("more bytes follow the array, of shape %v: the file holds something else, too", x.Shape)
	}
	return x, s.readToEnd(s.r)
}

// chooseArrays chooses the arrays of an archive that are read, and notes which are not.
func (s *Source) chooseArrays(arrays []*array, o *ReadOptions) (chosen chosenArrays, err error) {
	columns := findArray(arrays, "columns")
	isNames := columns != nil && len(columns.Shape) == 1 && strings.ContainsRune(columns.Descr, 'U')
	if !isNames || o.Target == columns.name {
		columns = nil // it has data
	}
	candidates := slices.DeleteFunc(slices.Clone(arrays), func(a *array) bool { return a == columns })
	x, y, err := s.chooseMatrices(candidates, o)
	if err != nil {
		return chosen, err
	}
	chosen.x, chosen.y = x, y
	if columns != nil && columns.n == x.d {
		x.columns = columns
	}
	var unused []string
	for _, a := range arrays {
		switch isNamed := a.name == o.Weights || slices.Contains(o.Keep, a.name); {
		case a == x || a == y || a == x.columns:
		case isNamed && a.n == x.n && a.d == 1:
			chosen.named = append(chosen.named, a)
		default:
			unused = append(unused, a.describe())
		}
	}
	if unused != nil {
		s.report.note("arrays not read: %s", listed(unused))
	}
	s.report.Format += fmt.Sprintf(": points %s of shape %v", x.name, x.Shape)
	if y != nil {
		s.report.Format += fmt.Sprintf(", answers %s", y.name)
	}
	return chosen, nil
}

// describe names the array, with its shape, in messages.
func (a *array) describe() string { return fmt.Sprintf("%s of shape %v", quoteIfLong(a.name), a.Shape) }

// readMember reads the header of an array of the archive, and calls read to read its elements.
func (s *Source) readMember(f *zip.File, read func(h npy.Header, elements io.Reader) error) error {
	s.zipped = f
	file, err := f.Open()
	if err != nil {
		return s.readError(0, err)
	}
	defer file.Close()
	r := &cancelableReader{ctx: s.ctx, r: file}
	h, err := npy.ReadHeader(r)
	if err != nil {
		return s.arrayFault(err)
	}
	return read(h, r)
}

// Names of arrays that programs commonly use, in lower case, the preferred ones first.
var (
	pointNames  = strings.Fields("x x_train train_x train_images train_data data features images arr_0")
	answerNames = strings.Fields("y y_train train_y train_labels train_targets target targets labels label arr_1")
)

// findArray returns the array with the first of the names that occurs, in any case; nil if there is none.
func findArray(arrays []*array, names ...string) *array {
	for _, name := range names {
		for _, a := range arrays {
			if strings.EqualFold(a.name, name) {
				return a
			}
		}
	}
	return nil
}

// partNames returns the names of an array in the part of the data that o selects, the preferred ones first. For the
// test part, each name with "train" also occurs with "test", and these names precede all others.
func (o *ReadOptions) partNames(names []string) []string {
	var testNames []string
	for _, name := range names {
		if o.TestPart && strings.Contains(name, "train") {
			testNames = append(testNames, strings.Replace(name, "train", "test", 1))
		}
	}
	return append(testNames, names...)
}

// onlyMatch returns the one array for which fits is true; nil if there are none or several.
func onlyMatch(arrays []*array, fits func(a *array) bool) *array {
	if arrays = slices.DeleteFunc(slices.Clone(arrays), func(a *array) bool { return !fits(a) }); len(arrays) == 1 {
		return arrays[0]
	}
	return nil
}

// isMatrix reports whether the array has at least two dimensions.
func (a *array) isMatrix() bool { return len(a.Shape) > 1 }

// chooseMatrices returns the arrays of the points and of the answers: those that the options name, else those with
// usual names, else the only arrays that have a suitable shape. y is nil if there is no array of answers.
func (s *Source) chooseMatrices(arrays []*array, o *ReadOptions) (x, y *array, err error) {
	var descriptions []string
	for _, a := range arrays {
		descriptions = append(descriptions, a.describe())
	}
	available := listed(descriptions)
	if findArray(arrays, "indptr", "col", "offsets") != nil && findArray(arrays, "shape") != nil {
		return nil, nil, s.fileFault("a sparse matrix of SciPy: write it by numpy.save('X.npy', X.toarray()), or with " +
			"answers by sklearn.datasets.dump_svmlight_file(X, y, 'data.svm', zero_based=False)")
	}
	answers, isNamed := answerNames, o.Target != "none" && o.Target != "" && !isIndex(o.Target)
	if isNamed {
		answers = []string{o.Target}
		// The name may be that of the first column of an array.
		if k := strings.LastIndexByte(o.Target, '_'); k > 0 && len(o.MoreTargets) > 0 {
			answers = append(answers, o.Target[:k])
		}
	}
	y = findArray(arrays, o.partNames(answers)...)
	remaining := slices.DeleteFunc(slices.Clone(arrays), func(a *array) bool { return a == y })
	x = choosePoints(remaining, o)
	if x == nil && o.PointsArray == "" && len(arrays) == 1 && (o.AnswersOnly || arrays[0].isMatrix()) {
		x, y = arrays[0], nil
	}
	switch {
	case x == nil && o.PointsArray != "":
		return nil, nil, s.fileFault("no array for the points is named %s: there are %s", quote(o.PointsArray),
			available)
	case x == nil:
		return nil, nil, s.fileFault("no array is named X, and not just one is a matrix: there are %s; name the points "+
			"by --format x=", available)
	}
	if y == nil && !isNamed {
		y = onlyMatch(remaining, func(a *array) bool { return a != x && len(a.Shape) == 1 && a.n == x.n })
	}
	if y != nil && y.n == 1 && x.n == y.d { // the answers are a row
		y.n, y.d = y.d, 1
	}
	switch {
	case o.Target == "none":
		y = nil
	case y == nil && isNamed && !o.TargetOptional:
		err = s.fileFault("no array is named %s: there are %s", quote(o.Target), available)
	case y == nil && len(arrays) > 1 && !isNamed && !o.TargetOptional:
		err = s.fileFault("no array is named y, and not just one is a vector: there are %s; name the answers by "+
			"--target", available)
	case y != nil && y.d > 1 && o.Task == "classification":
		err = s.fileFault("the answers %s have %d columns: several targets need --task regression",
			quoteIfLong(y.name), y.d)
	case y != nil && y.n != x.n:
		err = s.fileFault("%d answers %s, and %d points %s", y.n, quoteIfLong(y.name), x.n, quoteIfLong(x.name))
	}
	return x, y, err
}

// choosePoints returns the array of the points: the one that the options name, else a matrix with a usual name or X,
// else the only matrix. It returns nil if there is none.
func choosePoints(arrays []*array, o *ReadOptions) *array {
	if o.PointsArray != "" {
		return findArray(arrays, o.PointsArray)
	}
	x := findArray(arrays, o.partNames(pointNames)...)
	if x == nil || !x.isMatrix() && !strings.EqualFold(x.name, "x") {
		x = onlyMatch(arrays, (*array).isMatrix)
	}
	return x
}

// ReadMatrix reads a matrix of numbers from a .npy file, or from an .npz file: there, the array with one of the usual
// names of points, such as X, or the only matrix. Either file may be packed. The numbers need not be finite. ReadMatrix
// uses at most memory bytes, or the available memory of the machine if memory is 0.
func ReadMatrix(ctx context.Context, name string, memory int64) (points.Points, error) {
	s, err := openSource(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.memory, s.report = accel.AvailableMemory(memory, 1), &ReadReport{}
	arrays, err := s.readArrays(&ReadOptions{Target: "none"})
	if err != nil {
		return nil, err
	}
	x := arrays.x
	if _, texts := x.data.([]string); texts || len(x.Shape) != 2 {
		return nil, s.fileFault("an array of shape %v and type %s: want a matrix of numbers", x.Shape, x.Descr)
	}
	allColumns := make([]int, x.d)
	for j := range allColumns {
		allColumns[j] = j
	}
	return s.arrayPoints(x, x.n, allColumns, false)
}
