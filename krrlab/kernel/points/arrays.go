package points

import "fmt"

// Array is one of the arrays in which a file stores points.
type Array struct {
	Name  string
	Data  any   // []uint8, []float32, []float64, []int32 or []int64, in C order
	Shape []int // length of each dimension
}

// ToArrays returns the arrays from which FromArrays restores the points: their kind ("dense", "csr" or "bytes"), the
// unit of bytes (Bytes.Scale), and the array named x, n×d, or x_indptr, x_indices and x_data for sparse points. Arrays
// may share memory with the points.
func ToArrays(x Points) (kind string, unit float64, arrays []Array) {
	n, d := x.Dims()
	switch x := x.(type) {
	case *CSR:
		lo, hi := x.Ptr[0], x.Ptr[n] // x may be a range of rows of a larger matrix
		ptr := make([]int64, n+1)
		for i := range ptr {
			ptr[i] = int64(x.Ptr[i] - lo)
		}
		return "csr", 0, []Array{
			{"x_indptr", ptr, []int{n + 1}}, {"x_indices", x.Col[lo:hi], []int{hi - lo}},
			{"x_data", x.Val[lo:hi], []int{hi - lo}},
		}
	case *Bytes:
		return "bytes", x.Scale, []Array{{"x", contiguous(x.Data, n, d, x.Stride), []int{n, d}}}
	case *Dense32:
		return "dense", 0, []Array{{"x", contiguous(x.Data, n, d, x.Stride), []int{n, d}}}
	case *Dense:
		return "dense", 0, []Array{{"x", contiguous(x.Data, n, d, x.Stride), []int{n, d}}}
	}
	data := make([]float64, n*d)
	RowsTo(x, data, d)
	return "dense", 0, []Array{{"x", data, []int{n, d}}}
}

// contiguous returns the n×d matrix in data with its rows one after the other. It copies only if there are gaps.
func contiguous[T uint8 | realNumber](data []T, n, d, stride int) []T {
	if stride == d || n == 0 {
		return data[:n*d]
	}
	out := make([]T, 0, n*d)
	for i := range n {
		out = append(out, data[i*stride:i*stride+d]...)
	}
	return out
}

// FromArrays returns n points of dimension d of the kind and unit that ToArrays returned. The function get returns the
// array with a given name and shape, or an error if there is none; −1 in the shape stands for any length. FromArrays
// returns the error of get, or an error that names the array that does not fit.
func FromArrays(kind string, n, d int, unit float64, get func(name string, shape ...int) (any, error)) (Points, error) {
	if kind == "csr" {
		return csrFromArrays(n, d, get)
	}
	if kind != "dense" && kind != "bytes" {
		return nil, fmt.Errorf("points are %q, want dense, csr or bytes", kind)
	}
	data, err := get("x", n, d)
	if err != nil {
		return nil, err
	}
	switch v := data.(type) {
	case []uint8:
		switch {
		case kind != "bytes": // the error below
		case !ScaleFits(unit):
			return nil, fmt.Errorf("the unit of points in bytes is %g, want %g to %g", unit, minScale, maxScale)
		default:
			return NewBytes(n, d, unit, v), nil
		}
	case []float32:
		if kind == "dense" {
			return NewDense32(n, d, v), nil
		}
	case []float64:
		if kind == "dense" {
			return NewDense(n, d, v), nil
		}
	}
	return nil, fmt.Errorf("x: elements are of type %T, which %s points do not have", data, kind)
}

// csrFromArrays is FromArrays for sparse points.
func csrFromArrays(n, d int, get func(name string, shape ...int) (any, error)) (Points, error) {
	var err error
	x := &CSR{N: n, D: d}
	ptr := typedArray[int64](get, &err, "x_indptr", n+1)
	x.Col, x.Val = typedArray[int32](get, &err, "x_indices", -1), typedArray[float64](get, &err, "x_data", -1)
	if err != nil {
		return nil, err
	}
	for _, p := range ptr {
		x.Ptr = append(x.Ptr, int(p))
	}
	return x, x.Check()
}

// typedArray returns the one-dimensional array with the given name and length n (−1 for any length), with elements of
// type T. Like a bufio.Writer it keeps the first error: it does nothing if *err is set, and sets *err if the array
// cannot be read.
func typedArray[T any](get func(name string, shape ...int) (any, error), err *error, name string, n int) (v []T) {
	if *err != nil {
		return nil
	}
	var data any
	if data, *err = get(name, n); *err == nil {
		var ok bool
		if v, ok = data.([]T); !ok {
			*err = fmt.Errorf("%s: elements are of type %T, want %T", name, data, v)
		}
	}
	return v
}
