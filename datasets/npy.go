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
	n, d      int
	data      any    // slice of the elements, a result of npy.Read
	nameArray *array // array with the names of the columns; nil if there is none
}

// text returns element (i, j) as text. Distinct numbers have distinct texts, whole numbers have all digits, and
// booleans are written as in Python.
func (a *array) text(i, j int) string {
	element := reflect.ValueOf(a.data).Index(i*a.d + j)
	if element.CanFloat() {
		return strconv.FormatFloat(element.Float(), 'g', -1, element.Type().Bits())
	}
	if strings.HasSuffix(a.Descr, "b1") {
		return map[bool]string{true: "True", false: "False"}[!element.IsZero()]
	}
	return strings.TrimSpace(fmt.Sprint(element))
}

// number returns element (i, j), rounded to float64. ok is false for texts and for numeric types other than those
// below; the number then has to be parsed from the text.
func (a *array) number(i, j int) (v float64, ok bool) {
	k := i*a.d + j
	switch data := a.data.(type) {
	case []uint8:
		return float64(data[k]), true
	case []int32:
		return float64(data[k]), true
	case []int64:
		return float64(data[k]), true
	case []float32:
		return float64(data[k]), true
	case []float64:
		return data[k], true
	}
	return 0, false
}

// arrayPoints returns the first n rows of the given columns as points. Arrays of floats share their memory with the
// points if possible. If asFloat64 is set, float32 is converted to float64.
func (s *Source) arrayPoints(a *array, n int, columns []int, asFloat64 bool) (points.Points, error) {
	switch data := a.data.(type) {
	case []float32:
		if !asFloat64 {
			return points.NewDense32(n, len(columns), selectColumns(data, n, a.d, columns)), nil
		}
	case []float64:
		return points.NewDense(n, len(columns), selectColumns(data, n, a.d, columns)), nil
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

// readElements reserves memory for the elements of an array and reads them. It returns an error if the budget is
// exceeded.
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

// newArray returns an array with the given header and without elements. A vector becomes a matrix of one column; in an
// array of more than two dimensions, all dimensions after the first are combined.
func newArray(name string, header npy.Header) *array {
	a := &array{name: strings.TrimSuffix(name, ".npy"), Header: header, n: 1, d: 1}
	if size, _ := header.Size(); len(header.Shape) > 0 {
		if a.n = header.Shape[0]; a.n > 0 {
			a.d = size / a.n
		}
	}
	return a
}

// arrayRow is the current row of several arrays as cells: the columns of the points, followed by the columns of the
// other arrays.
type arrayRow struct {
	row     int // index of the current row
	columns []arrayColumn
}

// arrayColumn is column j of an array.
type arrayColumn struct {
	*array
	j int
}

// addColumns appends the columns of an array.
func (r *arrayRow) addColumns(a *array) {
	for j := range a.d {
		r.columns = append(r.columns, arrayColumn{a, j})
	}
}

// pointColumnNames returns the names of the columns of the points: those in the file, or the indices of the columns.
func (a *array) pointColumnNames() []string {
	names := make([]string, a.d)
	for j := range names {
		if names[j] = strconv.Itoa(j); a.nameArray != nil {
			names[j] = a.nameArray.text(j, 0)
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
	column := r.columns[j]
	return column.text(r.row, column.j)
}

// Number implements Cells.
func (r *arrayRow) Number(j int) (v float64, ok bool) {
	column := r.columns[j]
	return column.number(r.row, column.j)
}

// chosenArrays are the arrays of a file that are read.
type chosenArrays struct {
	x            *array   // points
	y            *array   // answers; nil if they are a column of x, or if there are none
	namedVectors []*array // vectors that are columns of the table, such as weights, because options name them
}

// readNPY reads a matrix and, from an archive, the other arrays that contain answers or that options name.
func (s *Source) readNPY(options *ReadOptions) (*Dataset, error) {
	arrays, err := s.readArrays(options)
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
	t := s.newTable(options)
	row, err := t.addArrays(arrays)
	if err != nil {
		return nil, err
	}
	_, isText := x.data.([]string)
	if t.report.Header, t.isArray = "", !t.hasCoders && !isText && options.Space == nil; isText {
		t.report.note("the points are texts, which are read as numbers")
	}
	n := min(x.n, options.MaxRows)
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
		d.X, err = s.arrayPoints(x, n, t.featureColumns, options.KeepMissing)
	}
	return d, err
}

// addArrays chooses the columns of the table from the columns of the arrays: the points, the answers and the named
// vectors. It returns the row from which Table.Add reads these columns.
func (t *Table) addArrays(arrays chosenArrays) (*arrayRow, error) {
	x, y, options := arrays.x, arrays.y, t.options
	isOptional := options.Target == "none" || options.TargetOptional
	if options.Header = "no"; x.nameArray != nil {
		options.Header = "yes"
	}
	row, names := &arrayRow{}, x.pointColumnNames()
	row.addColumns(x)
	switch {
	case y != nil:
		answerColumns := y.columnNames()
		row.addColumns(y)
		names = append(names, answerColumns...)
		if options.Target, options.MoreTargets, options.Columns = answerColumns[0], answerColumns[1:],
			nil; len(answerColumns) > 1 {
			options.Task = "regression"
		}
		if isIndex(y.name) {
			options.Target = strconv.Itoa(x.d)
		}
	case t.source.arrays != nil && len(arrays.namedVectors) > 0 && (options.Target == "" || options.Target == "-1"):
		options.Target = strconv.Itoa(x.d - 1) // the last column of the points, not of the named arrays
	case len(x.Shape) > 2 && !isOptional:
		return nil,
			t.source.fileFault("an array of shape %v has no column of answers: write points and answers into one "+
				"file by np.savez('data.npz', X=X, y=y)", x.Shape)
	case len(x.Shape) > 2:
		options.Target = "none"
	}
	for _, a := range arrays.namedVectors {
		row.addColumns(a)
		names = append(names, a.columnNames()...)
		if a.name != options.Weights {
			options.Drop = append(slices.Clip(options.Drop), strconv.Itoa(len(names)-1))
		}
	}
	_, err := t.readFirstRow(names, 0)
	return row, err
}

// readArrays reads the array of the points, the array of the answers, and the vectors that other options name.
func (s *Source) readArrays(options *ReadOptions) (chosenArrays, error) {
	if s.arrays == nil {
		x, err := s.readOnlyArray()
		return chosenArrays{x: x}, err
	}
	var arrays []*array
	for _, f := range s.arrays {
		if err := s.readMember(f, func(header npy.Header, _ io.Reader) error {
			arrays = append(arrays, newArray(f.Name, header))
			return nil
		}); err != nil {
			return chosenArrays{}, err
		}
	}
	chosen, err := s.chooseArrays(arrays, options)
	if err != nil {
		return chosen, err
	}
	arraysToRead := append(chosen.namedVectors, chosen.x, chosen.y, chosen.x.nameArray) // some are nil
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
	header, err := npy.ReadHeader(s.r)
	if err != nil {
		return nil, s.arrayFault(err)
	}
	x := newArray("", header)
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
func (s *Source) chooseArrays(arrays []*array, options *ReadOptions) (chosen chosenArrays, err error) {
	names := findArray(arrays, "columns")
	isTextVector := names != nil && len(names.Shape) == 1 && strings.ContainsRune(names.Descr, 'U')
	if !isTextVector || options.Target == names.name {
		names = nil // the array named "columns" has data, not names of columns
	}
	candidates := slices.DeleteFunc(slices.Clone(arrays), func(a *array) bool { return a == names })
	x, y, err := s.chooseMatrices(candidates, options)
	if err != nil {
		return chosen, err
	}
	chosen.x, chosen.y = x, y
	if names != nil && names.n == x.d {
		x.nameArray = names
	}
	var unused []string
	for _, a := range arrays {
		switch isNamed := a.name == options.Weights || slices.Contains(options.Keep, a.name); {
		case a == x || a == y || a == x.nameArray:
		case isNamed && a.n == x.n && a.d == 1:
			chosen.namedVectors = append(chosen.namedVectors, a)
		default:
			unused = append(unused, a.describe())
		}
	}
	if unused != nil {
		s.report.note("arrays not read: %s", joinLimited(unused))
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
func (s *Source) readMember(f *zip.File, read func(header npy.Header, elements io.Reader) error) error {
	s.zipped = f
	file, err := f.Open()
	if err != nil {
		return s.readError(0, err)
	}
	defer file.Close()
	r := &cancelableReader{ctx: s.ctx, r: file}
	header, err := npy.ReadHeader(r)
	if err != nil {
		return s.arrayFault(err)
	}
	return read(header, r)
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

// partNames returns the names that an array may have in the part of the data that o selects, the preferred ones first.
// For the test part, each name with "train" also occurs with "test", and these names precede all others.
func (options *ReadOptions) partNames(names []string) []string {
	var testNames []string
	for _, name := range names {
		if options.TestPart && strings.Contains(name, "train") {
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
func (s *Source) chooseMatrices(arrays []*array, options *ReadOptions) (x, y *array, err error) {
	var descriptions []string
	for _, a := range arrays {
		descriptions = append(descriptions, a.describe())
	}
	available := joinLimited(descriptions)
	if findArray(arrays, "indptr", "col", "offsets") != nil && findArray(arrays, "shape") != nil {
		return nil, nil, s.fileFault("a sparse matrix of SciPy: write it by numpy.save('X.npy', X.toarray()), or with " +
			"answers by sklearn.datasets.dump_svmlight_file(X, y, 'data.svm', zero_based=False)")
	}
	candidateNames, isNamed := answerNames, options.Target != "none" && options.Target != "" && !isIndex(options.Target)
	if isNamed {
		candidateNames = []string{options.Target}
		// The name may be that of the first column of an array.
		if k := strings.LastIndexByte(options.Target, '_'); k > 0 && len(options.MoreTargets) > 0 {
			candidateNames = append(candidateNames, options.Target[:k])
		}
	}
	y = findArray(arrays, options.partNames(candidateNames)...)
	remaining := slices.DeleteFunc(slices.Clone(arrays), func(a *array) bool { return a == y })
	x = choosePoints(remaining, options)
	if x == nil && options.PointsArray == "" && len(arrays) == 1 && (options.AnswersOnly || arrays[0].isMatrix()) {
		x, y = arrays[0], nil
	}
	switch {
	case x == nil && options.PointsArray != "":
		return nil, nil, s.fileFault("no array for the points is named %s: there are %s", quote(options.PointsArray),
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
	case options.Target == "none":
		y = nil
	case y == nil && isNamed && !options.TargetOptional:
		err = s.fileFault("no array is named %s: there are %s", quote(options.Target), available)
	case y == nil && len(arrays) > 1 && !isNamed && !options.TargetOptional:
		err = s.fileFault("no array is named y, and not just one is a vector: there are %s; name the answers by "+
			"--target", available)
	case y != nil && y.d > 1 && options.Task == "classification":
		err = s.fileFault("the answers %s have %d columns: several targets need --task regression",
			quoteIfLong(y.name), y.d)
	case y != nil && y.n != x.n:
		err = s.fileFault("%d answers %s, and %d points %s", y.n, quoteIfLong(y.name), x.n, quoteIfLong(x.name))
	}
	return x, y, err
}

// choosePoints returns the array of the points: the one that the options name, else a matrix with a usual name or X,
// else the only matrix. It returns nil if there is none.
func choosePoints(arrays []*array, options *ReadOptions) *array {
	if options.PointsArray != "" {
		return findArray(arrays, options.PointsArray)
	}
	x := findArray(arrays, options.partNames(pointNames)...)
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
	if _, isText := x.data.([]string); isText || len(x.Shape) != 2 {
		return nil, s.fileFault("an array of shape %v and type %s: want a matrix of numbers", x.Shape, x.Descr)
	}
	allColumns := make([]int, x.d)
	for j := range allColumns {
		allColumns[j] = j
	}
	return s.arrayPoints(x, x.n, allColumns, false)
}
