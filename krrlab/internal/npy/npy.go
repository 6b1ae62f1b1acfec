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
	"slices"
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

type element interface {
	uint8 | float32 | float64 | int32 | int64
}

// decoders read the elements of an array, by their type.
var decoders = map[string]func(r io.Reader, size int) (data any, err error){
	"|u1": decode[uint8], "<f4": decode[float32], "<f8": decode[float64], "<i4": decode[int32], "<i8": decode[int64],
}

// chunk is how many elements are read or written at once.
const chunk = 1 << 15

// Write writes data, a []uint8, []float32, []float64, []int32 or []int64, as an array of
// the given shape. It panics if the shape does not have len(data) elements.
func Write(w io.Writer, data any, shape ...int) error {
	switch v := data.(type) {
	case []uint8:
		return encode(w, "|u1", v, shape)
	case []float32:
		return encode(w, "<f4", v, shape)
	case []float64:
		return encode(w, "<f8", v, shape)
	case []int32:
		return encode(w, "<i4", v, shape)
	case []int64:
		return encode(w, "<i8", v, shape)
	}
	panic(fmt.Sprintf("npy: unsupported data %T", data))
}

func encode[T element](w io.Writer, descr string, data []T, shape []int) error {
	h := Header{descr, shape}
	if size, ok := h.Size(); !ok || size != len(data) {
		panic(fmt.Sprintf("npy: shape %v for %d elements", shape, len(data)))
	}
	if err := writeHeader(w, h); err != nil {
		return err
	}
	var buf []byte
	for part := range slices.Chunk(data, chunk) {
		buf, _ = binary.Append(buf[:0], binary.LittleEndian, part) // no error: T is of a fixed size
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

func decode[T element](r io.Reader, size int) (any, error) {
	data := make([]T, size)
	buf := make([]byte, binary.Size(data[:min(size, chunk)]))
	for part := range slices.Chunk(data, chunk) {
		b := buf[:binary.Size(part)]
		if _, err := io.ReadFull(r, b); err != nil {
			return data, fmt.Errorf("npy: array cut short: %w", noEOF(err))
		}
		if _, err := binary.Decode(b, binary.LittleEndian, part); err != nil {
			return data, fmt.Errorf("npy: %w", err)
		}
	}
	return data, nil
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
	if decoders[h.Descr] == nil {
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
	data, err = decoders[h.Descr](r, size)
	return h, data, err
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
