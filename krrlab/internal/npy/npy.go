// Package npy reads and writes arrays in NumPy's .npy format, version 1.0
// (NEP 1, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html):
// little-endian, C order, of uint8, float32, float64, int32 or int64, in any number of
// dimensions.
//
// It exists because the model file needs what github.com/sbinet/npyio does not
// give: two-dimensional float32 arrays, and a reader that allocates no more than
// the caller allows whatever the header claims.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

const magic = "\x93NUMPY\x01\x00"

// maxHeader bounds the header's length; version 1.0 allows 65,535.
const maxHeader = 4096

// Header describes an array.
type Header struct {
	Descr string // "|u1", "<f4", "<f8", "<i4" or "<i8"
	Shape []int
}

// Size returns the number of elements, and false if it exceeds 2⁶²/8.
func (h Header) Size() (int, bool) {
	size := 1
	for _, n := range h.Shape {
		if n < 0 || (n > 0 && size > math.MaxInt/16/n) {
			return 0, false
		}
		size *= n
	}
	return size, true
}

// itemSize returns the bytes of an element.
func (h Header) itemSize() int { return int(h.Descr[2] - '0') }

// descr returns the type string of the elements of data.
func descr(data any) (string, int) {
	switch v := data.(type) {
	case []uint8:
		return "|u1", len(v)
	case []float32:
		return "<f4", len(v)
	case []float64:
		return "<f8", len(v)
	case []int32:
		return "<i4", len(v)
	case []int64:
		return "<i8", len(v)
	}
	panic(fmt.Sprintf("npy: unsupported data %T", data))
}

// Write writes data, a []uint8, []float32, []float64, []int32 or []int64, as an array of
// the given shape. It panics if the shape does not have len(data) elements.
func Write(w io.Writer, data any, shape ...int) error {
	d, n := descr(data)
	h := Header{d, shape}
	if size, ok := h.Size(); !ok || size != n {
		panic(fmt.Sprintf("npy: shape %v for %d elements", shape, n))
	}
	if err := writeHeader(w, h); err != nil {
		return err
	}
	const chunk = 1 << 15
	buf := make([]byte, 0, 8*chunk)
	for i := 0; i < n; i += chunk {
		j := min(i+chunk, n)
		buf = buf[:0]
		switch v := data.(type) {
		case []uint8:
			buf = append(buf, v[i:j]...)
		case []float32:
			for _, x := range v[i:j] {
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
			}
		case []float64:
			for _, x := range v[i:j] {
				buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(x))
			}
		case []int32:
			for _, x := range v[i:j] {
				buf = binary.LittleEndian.AppendUint32(buf, uint32(x))
			}
		case []int64:
			for _, x := range v[i:j] {
				buf = binary.LittleEndian.AppendUint64(buf, uint64(x))
			}
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

func writeHeader(w io.Writer, h Header) error {
	dims := make([]string, len(h.Shape))
	for i, n := range h.Shape {
		dims[i] = strconv.Itoa(n)
	}
	shape := strings.Join(dims, ", ")
	if len(dims) == 1 {
		shape += ","
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", h.Descr, shape)
	// magic, length and dict end on a multiple of 64 bytes, the last a newline.
	pad := 64 - (len(magic)+2+len(dict)+1)%64
	dict += strings.Repeat(" ", pad%64) + "\n"
	head := append([]byte(magic), byte(len(dict)), byte(len(dict)>>8))
	_, err := w.Write(append(head, dict...))
	return err
}

// readHeader reads the header and leaves r at the first element.
func readHeader(r io.Reader) (Header, error) {
	var pre [len(magic) + 2]byte
	if _, err := io.ReadFull(r, pre[:]); err != nil {
		return Header{}, fmt.Errorf("npy: no header: %w", noEOF(err))
	}
	if string(pre[:len(magic)]) != magic {
		return Header{}, errors.New("npy: not an array in .npy format, version 1.0")
	}
	n := int(binary.LittleEndian.Uint16(pre[len(magic):]))
	if n > maxHeader {
		return Header{}, fmt.Errorf("npy: header of %d bytes; at most %d are read", n, maxHeader)
	}
	dict := make([]byte, n)
	if _, err := io.ReadFull(r, dict); err != nil {
		return Header{}, fmt.Errorf("npy: header cut short: %w", noEOF(err))
	}
	return parse(string(dict))
}

// parse reads the Python dictionary literal of a header.
func parse(dict string) (Header, error) {
	var h Header
	bad := func(what string) (Header, error) {
		return Header{}, fmt.Errorf("npy: header %q: %s", strings.TrimSpace(dict), what)
	}
	h.Descr = strings.Trim(value(dict, "descr", ","), " '\"")
	switch h.Descr {
	case "|u1", "<f4", "<f8", "<i4", "<i8":
	default:
		return bad("element type is none of |u1, <f4, <f8, <i4, <i8")
	}
	if strings.TrimSpace(value(dict, "fortran_order", ",")) != "False" {
		return bad("array is not in C order")
	}
	shape := strings.TrimSpace(value(dict, "shape", ")"))
	if !strings.HasPrefix(shape, "(") {
		return bad("no shape")
	}
	for f := range strings.SplitSeq(shape[1:], ",") {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 {
			return bad("bad shape")
		}
		h.Shape = append(h.Shape, n)
	}
	if _, ok := h.Size(); !ok {
		return bad("shape is too large")
	}
	return h, nil
}

// value returns the text between 'key': and end.
func value(dict, key, end string) string {
	_, v, ok := strings.Cut(dict, "'"+key+"':")
	if !ok {
		return ""
	}
	v, _, _ = strings.Cut(v, end)
	return v
}

// Read reads an array. It returns an error, and allocates nothing, if its
// elements would take more than limit bytes. data is a []uint8, []float32, []float64,
// []int32 or []int64.
func Read(r io.Reader, limit int64) (h Header, data any, err error) {
	h, err = readHeader(r)
	if err != nil {
		return h, nil, err
	}
	size, _ := h.Size()
	if int64(size)*int64(h.itemSize()) > limit {
		return h, nil, fmt.Errorf("npy: array of shape %v needs %d bytes; at most %d were expected",
			h.Shape, int64(size)*int64(h.itemSize()), limit)
	}
	switch h.Descr {
	case "|u1":
		v := make([]uint8, size)
		return h, v, each(r, size, 1, func(i int, b []byte) { v[i] = b[0] })
	case "<f4":
		v := make([]float32, size)
		return h, v, each(r, size, 4, func(i int, b []byte) { v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case "<f8":
		v := make([]float64, size)
		return h, v, each(r, size, 8, func(i int, b []byte) { v[i] = math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	case "<i4":
		v := make([]int32, size)
		return h, v, each(r, size, 4, func(i int, b []byte) { v[i] = int32(binary.LittleEndian.Uint32(b)) })
	default:
		v := make([]int64, size)
		return h, v, each(r, size, 8, func(i int, b []byte) { v[i] = int64(binary.LittleEndian.Uint64(b)) })
	}
}

// each reads n items of the given size and passes each to f.
func each(r io.Reader, n, size int, f func(i int, b []byte)) error {
	buf := make([]byte, min(n, 1<<15)*size)
	for i := 0; i < n; {
		k := min(n-i, len(buf)/size)
		if _, err := io.ReadFull(r, buf[:k*size]); err != nil {
			return fmt.Errorf("npy: array cut short: %w", noEOF(err))
		}
		for j := range k {
			f(i+j, buf[j*size:])
		}
		i += k
	}
	return nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
