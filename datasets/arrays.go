package datasets

import (
	"archive/zip"
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
	"github.com/krrlab/lab/krrlab/npy"
	"github.com/krrlab/lab/krrlab/points"
)

// array is a NumPy array as a matrix: n rows of d numbers, or of texts.
type array struct {
	name string
	npy.Header
	n, d int
	data any // as npy.Read returns it
	row  int // whose cells text and number return
}

// text returns a number so that no two are one, whole ones with all digits, and booleans as Python writes them.
func (a *array) text(j int) string {
	v := reflect.ValueOf(a.data).Index(a.row*a.d + j)
	if v.CanFloat() {
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits())
	}
	if strings.HasSuffix(a.Descr, "b1") {
		return map[bool]string{true: "True", false: "False"}[!v.IsZero()]
	}
	return strings.TrimSpace(fmt.Sprint(v))
}

func (a *array) number(j int) (float64, error) {
	k := a.row*a.d + j
	switch v := a.data.(type) {
	case []uint8:
		return float64(v[k]), nil
	case []int32:
		return float64(v[k]), nil
	case []int64:
		return float64(v[k]), nil
	case []float32:
		return float64(v[k]), nil
	case []float64:
		return v[k], nil
	}
	return parse(a.text(j)) // exact: what is rounded is the number
}

// points returns the columns to keep of the first n rows, in the memory of the array where that holds floats; in
// float64 where missing numbers are to be filled in.
func (s *source) points(a *array, n int, keep []int, fill bool) (points.Points, error) {
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
	for a.row = range n {
		for k, j := range keep {
			x.Row(a.row)[k], _ = a.number(j)
		}
	}
	return x, nil
}

// kept moves the columns to keep, which rise, of n rows of d numbers together.
func kept[T any](v []T, n, d int, keep []int) []T {
	if len(keep) == d && slices.IsSorted(keep) {
		return v[:n*d]
	}
	if !slices.IsSorted(keep) {
		v = append([]T(nil), v...)
	}
	for i := range n {
		for k, j := range keep {
			v[i*len(keep)+k] = v[i*d+j]
		}
	}
	return v[:n*len(keep)]
}

// elements reads those of an array, which take memory.
func (s *source) elements(a *array, r io.Reader) (err error) {
	if held := a.Held(); held > math.MaxInt64/2 || s.take(int(held), 0) != nil {
		return s.fail(0, 0, "an array of shape %v takes %s, the limit is %s: allow more by --memory", a.Shape,
			accel.Bytes(held), accel.Bytes(s.memory()))
	}
	if a.data, err = a.Read(r); err != nil {
		return s.arrayFault(err)
	}
	return nil
}

func (s *source) arrayFault(err error) error {
	if s.ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, zip.ErrChecksum) {
		return s.failed(0, err)
	}
	return s.fail(0, 0, "%v", err)
}

// header reads the header of an array: vectors are columns, and the last dimensions of more than two are one.
func (s *source) header(name string, r io.Reader) (a *array, err error) {
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

// npy reads a matrix, and where it is one of an archive the answers beside it.
func (s *source) npy(o *ReadOptions) (*Dataset, error) {
	x, y, err := s.matrices(o)
	if err != nil {
		return nil, err
	}
	if x.n == 0 || x.d == 0 {
		return nil, s.fail(0, 0, "%s has shape %v: no rows or no columns",
			strings.TrimSpace("the array "+x.name), x.Shape)
	}
	c := s.table(o)
	c.o.Header = "no"
	if y != nil {
		c.o.Target = "none"
	}
	first := make([]string, x.d)
	for j := range first {
		first[j] = strconv.Itoa(j)
	}
	if _, err := c.begin(first, 0); err != nil {
		return nil, err
	}
	c.read.Header, c.matrix = "", !c.wordy
	n := x.n
	if o.MaxRows > 0 {
		n = min(n, o.MaxRows)
	}
	for x.row = range n {
		if x.row&1023 == 0 && s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		if err := c.row(x, x.row+1); err != nil {
			return nil, err
		}
	}
	d, err := c.dataset()
	if err != nil {
		return nil, err
	}
	if c.matrix {
		if d.X, err = s.points(x, n, c.keep, o.KeepMissing); err != nil {
			return nil, err
		}
	}
	if y == nil || o.Target == "none" {
		return d, nil
	}
	for y.row = range n {
		if err := c.answers.add(s, y.text(0), y.row+1); err != nil {
			return nil, err
		}
	}
	return d, s.answered(d, &c.answers, c.o, nil)
}

// matrices returns the array of the points, and that of the answers; nil if these are a column of the points, or
// there are none.
func (s *source) matrices(o *ReadOptions) (x, y *array, err error) {
	if s.arrays == nil {
		if x, err = s.header("", s.r); err == nil {
			err = s.elements(x, s.r)
		}
		if err == nil {
			s.reading.Format += fmt.Sprintf(", of shape %v", x.Shape)
		}
		return x, nil, err
	}
	var all []*array
	for _, f := range s.arrays {
		if err := s.member(f, func(r io.Reader) error {
			a, err := s.header(f.Name, r)
			all = append(all, a)
			return err
		}); err != nil {
			return nil, nil, err
		}
	}
	if x, y, err = s.choose(all, o); err != nil {
		return nil, nil, err
	}
	for k, a := range all {
		if a != x && a != y {
			continue
		}
		if err := s.member(s.arrays[k], func(r io.Reader) error {
			if _, err := npy.ReadHeader(r); err != nil {
				return err
			}
			return s.elements(a, r)
		}); err != nil {
			return nil, nil, err
		}
	}
	s.reading.Format += fmt.Sprintf(": points %s of shape %v", x.name, x.Shape)
	if y != nil {
		s.reading.Format += fmt.Sprintf(", answers %s", y.name)
	}
	return x, y, nil
}

// member reads a file of the archive to its end, where the checksum is compared.
func (s *source) member(f *zip.File, read func(r io.Reader) error) error {
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

// choose returns the arrays named X and y, or the only ones that can be these; another y is named by the target.
func (s *source) choose(all []*array, o *ReadOptions) (x, y *array, err error) {
	pick := func(name string, fits func(a *array) bool) *array {
		var only []*array
		for _, a := range all {
			if strings.EqualFold(a.name, name) {
				return a
			} else if fits(a) {
				only = append(only, a)
			}
		}
		if len(only) != 1 {
			return nil
		}
		return only[0]
	}
	target, named := "y", o.Target != "none" && o.Target != "" && !isIndex(o.Target)
	if named {
		target = o.Target
	}
	var names []string
	for _, a := range all {
		names = append(names, fmt.Sprintf("%s of shape %v", plain(a.name), a.Shape))
	}
	there := plain(strings.Join(names, ", "))
	x = pick("X", func(a *array) bool { return len(a.Shape) > 1 && !strings.EqualFold(a.name, target) })
	if x == nil && o.AnswersOnly && len(all) == 1 {
		x = all[0]
	}
	if x == nil {
		return nil, nil, s.fail(0, 0,
			"no array is named X, and not just one is a matrix: there are %s; name them X and y", there)
	}
	if y = pick(target, func(a *array) bool { return len(a.Shape) == 1 && !named }); y == x {
		y = nil
	}
	switch {
	case y == nil && named && !o.TargetOptional:
		return nil, nil, s.fail(0, 0, "no array is named %s: there are %s", quote(target), there)
	case y == nil && len(all) > 1 && !named && o.Target != "none" && !o.TargetOptional:
		return nil, nil, s.fail(0, 0,
			"no array is named y, and not just one is a vector: there are %s; name the answers by --target", there)
	case y != nil && y.d != 1:
		return nil, nil, s.fail(0, 0,
			"the answers %s have %d columns: put them beside the points in one matrix, and name them by --target "+
				"as in a csv file", plain(y.name), y.d)
	case y != nil && y.n != x.n:
		return nil, nil, s.fail(0, 0, "%d answers %s, and %d points %s", y.n, plain(y.name), x.n, plain(x.name))
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
	x, _, err := s.matrices(&ReadOptions{Target: "none"})
	if err != nil {
		return nil, err
	}
	if _, texts := x.data.([]string); texts || len(x.Shape) != 2 {
		return nil, s.fail(0, 0, "an array of shape %v and type %s: want a matrix of numbers", x.Shape, x.Descr)
	}
	keep := make([]int, x.d)
	for j := range keep {
		keep[j] = j
	}
	return s.points(x, x.n, keep, false)
}
