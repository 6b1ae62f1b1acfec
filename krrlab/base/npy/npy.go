// Package npy reads and writes arrays in NumPy's .npy format (NEP 1,
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). It reads texts and numbers of any type and
// byte order, in C or Fortran order. It writes uint8, float32, float64, int32 and int64, little-endian in C order.
//
// The model file needs two features that github.com/sbinet/npyio does not have: two-dimensional float32 arrays, and a
// reader that never allocates more than the caller allows, whatever the header claims.
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unsafe"
)

// Magic has the first bytes of every file in the .npy format.
const Magic = "\x93NUMPY"

// magicV1 is Magic and the format version 1.0, the version that is written.
const magicV1 = Magic + "\x01\x00"

// maxHeader is the longest header that is read, in bytes. Version 1.0 allows 65,535.
const maxHeader = 4096

// Header describes an array.
type Header struct {
	Descr        string // byte order, type and size of an element, such as "<f4"
	FortranOrder bool   // the array is stored by columns
	Shape        []int  // length of each dimension
}

// Size returns the number of elements, and false if a length is negative or the number exceeds math.MaxInt/16. Up to
// this limit, the number of bytes of 8-byte elements does not overflow.
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

// MemorySize returns the number of bytes of the elements in memory.
func (h Header) MemorySize() int64 {
	size, _ := h.Size()
	elementSize := h.kind().elementSize
	if size > math.MaxInt64/elementSize {
		return math.MaxInt64
	}
	return int64(size * elementSize)
}

// byteOrder returns the byte order of the elements.
func (h Header) byteOrder() binary.ByteOrder {
	if h.Descr[0] == '>' {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// indexInC returns the index in C order of element k of the file.
func (h Header) indexInC(k int) int {
	if !h.FortranOrder || len(h.Shape) < 2 {
		return k
	}
	rows, columns := h.Shape[0], h.Shape[1]
	return k%rows*columns + k/rows
}

// element is the type of a numeric array element.
type element interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// kind describes how elements of a type are decoded.
type kind struct {
	elementSize int // bytes of an element in memory
	// decode reads the elements of an array with this header from r.
	decode func(r io.Reader, h Header) (data any, err error)
}

// kinds maps the type and size in Descr, such as f4, to the kind.
var kinds = map[string]kind{
	"b1": {1, decoder(convert[uint8, uint8])}, "u1": {1, decoder(convert[uint8, uint8])},
	"i1": {8, decoder(convert[int8, int64])}, "i2": {8, decoder(convert[int16, int64])},
	"u2": {8, decoder(convert[uint16, int64])}, "u4": {8, decoder(convert[uint32, int64])},
	"i4": {4, decoder(convert[int32, int32])}, "i8": {8, decoder(convert[int64, int64])},
	"u8": {8, decoder(convert[uint64, uint64])},
	"f2": {4, decoder(Float16ToFloat32)}, "f4": {4, decoder(convert[float32, float32])},
	"f8": {8, decoder(convert[float64, float64])},
}

// maxText is the largest number of characters in a text element.
const maxText = 1 << 10

// kind returns the kind of the elements. Its decode is nil if the type is not supported.
func (h Header) kind() kind {
	if len(h.Descr) < 3 || !strings.ContainsRune("<>|=", rune(h.Descr[0])) {
		return kind{}
	}
	if numeric, ok := kinds[h.Descr[1:]]; ok {
		return numeric
	}
	n, err := strconv.Atoi(h.Descr[2:])
	if err != nil || n < 1 || n > maxText || !strings.ContainsRune("US", rune(h.Descr[1])) {
		return kind{}
	}
	const stringHeader, maxUTF8 = 16, 4 // bytes of a Go string without its text, and of a character
	return kind{stringHeader + maxUTF8*n, func(r io.Reader, h Header) (any, error) { return decodeTexts(r, h, n) }}
}

// convert is the conversion S → T.
func convert[S, T element](v S) T { return T(v) }

// Float16ToFloat32 converts the bits of an IEEE 754 binary16 number to float32.
func Float16ToFloat32(bits uint16) float32 {
	sign, exponent, fraction := float64(1), int(bits>>10&31), float64(bits&1023)
	if bits>>15 == 1 {
		sign = -1
	}
	switch {
	case exponent == 0:
		return float32(sign * math.Ldexp(fraction, -24))
	case exponent < 31:
		return float32(sign * math.Ldexp(1024+fraction, exponent-25))
	case fraction == 0:
		return float32(math.Inf(int(sign)))
	}
	return float32(math.NaN())
}

// batchLength is the number of elements that are read at once; more need a larger buffer.
const batchLength = 1 << 15

// writtenTypes maps the element types that Write supports to their Descr. Map returns elements of these types without
// copying.
var writtenTypes = map[reflect.Type]string{
	reflect.TypeFor[uint8](): "|u1", reflect.TypeFor[float32](): "<f4", reflect.TypeFor[float64](): "<f8",
	reflect.TypeFor[int32](): "<i4", reflect.TypeFor[int64](): "<i8",
}

// Write writes data as an array of the given shape. data is a []uint8, []float32, []float64, []int32 or []int64.
// Write panics if data has another type or if its length does not match the shape.
func Write(w io.Writer, data any, shape ...int) error {
	v := reflect.ValueOf(data)
	h := Header{Descr: writtenTypes[v.Type().Elem()], Shape: shape}
	if size, ok := h.Size(); !ok || size != v.Len() || h.Descr == "" {
		panic(fmt.Sprintf("npy: shape %v for %d elements of %T", shape, v.Len(), data))
	}
	if err := writeHeader(w, h); err != nil {
		return err
	}
	_, err := w.Write(RawBytes(data))
	return err
}

// isLittleEndian reports whether this machine has the byte order of the written format.
var isLittleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// RawBytes returns the elements of data as the bytes that Write writes. On a little-endian machine they share the
// memory of data.
func RawBytes(data any) []byte {
	if !isLittleEndian {
		encoded, _ := binary.Append(nil, binary.LittleEndian, data) // no error: the elements have a fixed size
		return encoded
	}
	v := reflect.ValueOf(data)
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size()))
}

// ToInts converts an array of signed integers to []int; ok is false for other data.
func ToInts(data any) (elements []int, ok bool) {
	v := reflect.ValueOf(data)
	if v.Kind() != reflect.Slice || !reflect.Zero(v.Type().Elem()).CanInt() {
		return nil, false
	}
	elements = make([]int, v.Len())
	for i := range elements {
		elements[i] = int(v.Index(i).Int())
	}
	return elements, true
}

// MapFile reads the array in a file. If the file has the format that Write produces and the system can map files into
// memory, data refers to the mapped file: it is read-only and valid until the process ends, and the file must not
// change until then. Otherwise data is a copy, as from Read.
func MapFile(name string) (h Header, data any, err error) {
	content, err := mmap(name)
	if err != nil {
		return h, nil, err
	}
	r := bytes.NewReader(content)
	if h, err = ReadHeader(r); err != nil {
		return h, nil, err
	}
	content = content[len(content)-r.Len():]
	for elementType, descr := range writtenTypes {
		if descr != h.Descr || h.FortranOrder || !isLittleEndian {
			continue
		}
		size, _ := h.Size()
		if want := size * int(elementType.Size()); len(content) != want {
			return h, nil, fmt.Errorf("npy: %d bytes of elements, want %d for the shape %v", len(content), want,
				h.Shape)
		}
		return h, reflect.SliceAt(elementType, unsafe.Pointer(unsafe.SliceData(content)), size).Interface(), nil
	}
	data, err = h.Read(r)
	return h, data, err
}

// decoder returns a function that reads elements of type S and converts each to a T.
func decoder[S, T element](convert func(S) T) func(r io.Reader, h Header) (any, error) {
	return func(r io.Reader, h Header) (any, error) {
		size, _ := h.Size()
		data, batch := make([]T, size), make([]S, min(size, batchLength))
		buf := make([]byte, binary.Size(batch))
		for k := 0; k < size; {
			batch = batch[:min(len(batch), size-k)]
			buf = buf[:binary.Size(batch)]
			if err := readFull(r, buf, "array cut short"); err != nil {
				return data, err
			}
			if _, err := binary.Decode(buf, h.byteOrder(), batch); err != nil {
				return data, fmt.Errorf("npy: %w", err)
			}
			for _, v := range batch {
				data[h.indexInC(k)] = convert(v)
				k++
			}
		}
		return data, nil
	}
}

// decodeTexts reads text elements of n characters, in UTF-32 or in one byte each, and removes trailing zeros.
func decodeTexts(r io.Reader, h Header, n int) (any, error) {
	size, _ := h.Size()
	data := make([]string, size)
	buf := make([]byte, n*map[byte]int{'U': 4, 'S': 1}[h.Descr[1]])
	for k := range data {
		if err := readFull(r, buf, "array cut short"); err != nil {
			return data, err
		}
		text := string(buf)
		if len(buf) > n {
			runes := make([]rune, n)
			for i := range runes {
				runes[i] = rune(h.byteOrder().Uint32(buf[4*i:]))
			}
			text = string(runes)
		}
		data[h.indexInC(k)] = strings.TrimRight(text, "\x00")
	}
	return data, nil
}

// writeHeader writes the header of an array in C order.
func writeHeader(w io.Writer, h Header) error {
	dims := make([]string, len(h.Shape))
	for i, length := range h.Shape {
		dims[i] = strconv.Itoa(length)
	}
	shape := strings.Join(dims, ", ")
	if len(dims) == 1 {
		shape += ","
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", h.Descr, shape)
	// Magic number, length, dict and a final newline are padded to a multiple of 64 bytes, as NumPy does.
	padding := 64 - (len(magicV1)+2+len(dict)+1)%64
	dict += strings.Repeat(" ", padding%64) + "\n"
	head := append([]byte(magicV1), byte(len(dict)), byte(len(dict)>>8))
	_, err := w.Write(append(head, dict...))
	return err
}

// ReadHeader reads the header. The next byte of r is then the first of the elements.
func ReadHeader(r io.Reader) (Header, error) {
	const cutShort = "header cut short"
	var prefix [len(magicV1) + 4]byte // magic number, version, and length of the header in 2 or 4 bytes
	if err := readFull(r, prefix[:len(Magic)], "no header"); err != nil {
		return Header{}, err
	}
	if string(prefix[:len(Magic)]) != Magic {
		return Header{}, errors.New("npy: not an array in .npy format")
	}
	if err := readFull(r, prefix[len(Magic):len(magicV1)], cutShort); err != nil {
		return Header{}, err
	}
	version, length := prefix[len(Magic)], prefix[len(magicV1):]
	if version < 1 || version > 3 {
		return Header{}, fmt.Errorf("npy: an array in .npy format of version %d; versions 1 to 3 are read", version)
	}
	if version == 1 {
		length = length[:2]
	}
	if err := readFull(r, length, cutShort); err != nil {
		return Header{}, err
	}
	n := binary.LittleEndian.Uint32(prefix[len(magicV1):]) // with version 1, the upper two bytes are 0
	if n > maxHeader {
		return Header{}, fmt.Errorf("npy: header of %d bytes; at most %d are read", n, maxHeader)
	}
	dict := make([]byte, n)
	if err := readFull(r, dict, cutShort); err != nil {
		return Header{}, err
	}
	return parseDict(string(dict))
}

// parseDict parses the header, a Python dictionary literal.
func parseDict(dict string) (Header, error) {
	var h Header
	headerError := func(problem string) (Header, error) {
		return Header{}, fmt.Errorf("npy: header %q: %s", strings.TrimSpace(dict), problem)
	}
	h.Descr = strings.Trim(dictValue(dict, "descr", ","), " '\"")
	if strings.HasPrefix(h.Descr, "[") {
		return headerError("a structured array, of named fields: write it by pandas.DataFrame(a).to_csv('data.csv', " +
			"index=False)")
	}
	if h.kind().decode == nil {
		return headerError("the elements are neither numbers nor short texts: convert them by astype")
	}
	h.FortranOrder = strings.TrimSpace(dictValue(dict, "fortran_order", ",")) == "True"
	shape := strings.TrimSpace(dictValue(dict, "shape", ")"))
	if !strings.HasPrefix(shape, "(") {
		return headerError("no shape")
	}
	for dimension := range strings.SplitSeq(shape[1:], ",") {
		if dimension = strings.TrimSpace(dimension); dimension == "" {
			continue
		}
		length, err := strconv.Atoi(dimension)
		if err != nil || length < 0 {
			return headerError("bad shape")
		}
		h.Shape = append(h.Shape, length)
	}
	if h.FortranOrder && len(h.Shape) > 2 {
		return headerError("more than two dimensions in Fortran order: save numpy.ascontiguousarray of it")
	}
	if _, ok := h.Size(); !ok {
		return headerError("shape is too large")
	}
	return h, nil
}

// dictValue returns the text between the key, with its colon, and end.
func dictValue(dict, key, end string) string {
	_, v, ok := strings.Cut(dict, "'"+key+"':")
	if !ok {
		return ""
	}
	v, _, _ = strings.Cut(v, end)
	return v
}

// Read reads an array. If its elements would need more than limit bytes of memory, it returns an error and allocates
// nothing. data is a []uint8 (also for bool), []float32 (also for float16), []float64, []int32, []int64 (also for
// smaller integer types), []uint64 or []string, in C order.
func Read(r io.Reader, limit int64) (h Header, data any, err error) {
	h, err = ReadHeader(r)
	if err != nil {
		return h, nil, err
	}
	if needed := h.MemorySize(); needed > limit {
		return h, nil, fmt.Errorf("npy: array of shape %v needs %d bytes; at most %d were expected", h.Shape, needed,
			limit)
	}
	data, err = h.Read(r)
	return h, data, err
}

// Read reads the elements of an array after its header. The caller must check h.MemorySize.
func (h Header) Read(r io.Reader) (data any, err error) { return h.kind().decode(r, h) }

// readFull reads len(b) bytes. problem begins the text of the error if r ends earlier or fails.
func readFull(r io.Reader, b []byte, problem string) error {
	_, err := io.ReadFull(r, b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("npy: %s: %w", problem, err)
	}
	return nil
}
