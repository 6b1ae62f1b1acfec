package native

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"reflect"
	"unsafe"
)

// This file is also a part of the programs of %%go cells. The go command of the user builds these, and can be older
// than the one that builds krrlab, so the file avoids recent features of Go.

// message is a message in a pipe: a sequence of 8-byte words, and of strings preceded by their length.
type message struct {
	content []byte
	// offsetOf returns the offset of a slice in the shared memory of a request. If it is nil, slices are part of the
	// message.
	offsetOf func(s []float64) int
	// memory is the shared memory of a received request, or nil if slices are part of the message. The slices
	// that readValue sets refer to this memory.
	memory []float64
}

// putWords appends words.
func (m *message) putWords(words ...uint64) {
	for _, word := range words {
		m.content = binary.LittleEndian.AppendUint64(m.content, word)
	}
}

// putText appends a string.
func (m *message) putText(s string) {
	m.putWords(uint64(len(s)))
	m.content = append(m.content, s...)
}

// nextWord removes and returns the next word. Like all functions that read a message, it panics if there is none.
func (m *message) nextWord() uint64 {
	word := binary.LittleEndian.Uint64(m.content)
	m.content = m.content[8:]
	return word
}

// nextText removes and returns the next string.
func (m *message) nextText() string {
	length := m.nextWord()
	text := string(m.content[:length])
	m.content = m.content[length:]
	return text
}

// send writes a message, preceded by its length, with a single call of Write, so that messages of several goroutines do
// not mix.
func (m *message) send(w io.Writer) error {
	_, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(m.content))), m.content...))
	return err
}

// receive reads a message.
func receive(r io.Reader) (*message, error) {
	m := &message{content: make([]byte, 8)}
	_, err := io.ReadFull(r, m.content)
	if err == nil {
		m.content = make([]byte, m.nextWord())
		_, err = io.ReadFull(r, m.content)
	}
	return m, err
}

// errorType is the type error of the last result of a function.
var errorType = reflect.TypeFor[error]()

// unsupportedType returns a type within t that cannot be sent, or nil if there is none. Integers (except uintptr),
// floating-point numbers, strings, bools, slices of float64 and structs of these can be sent.
func unsupportedType(t reflect.Type) reflect.Type {
	kind := t.Kind()
	if kind == reflect.Struct {
		for i := range t.NumField() {
			if unsupported := unsupportedType(t.Field(i).Type); unsupported != nil {
				return unsupported
			}
		}
		return nil
	}
	if kind >= reflect.Bool && kind <= reflect.Float64 && kind != reflect.Uintptr || kind == reflect.String ||
		kind == reflect.Slice && t.Elem().Kind() == reflect.Float64 {
		return nil
	}
	return t
}

// unsupportedResultType is unsupportedType for the type of a result, which can also be error.
func unsupportedResultType(t reflect.Type) reflect.Type {
	if t == errorType {
		return nil
	}
	return unsupportedType(t)
}

// putValue appends a value. A nil slice or error is sent as the word math.MaxUint64.
func (m *message) putValue(v reflect.Value) {
	switch {
	case v.CanInt():
		m.putWords(uint64(v.Int()))
	case v.CanUint():
		m.putWords(v.Uint())
	case v.CanFloat():
		m.putWords(math.Float64bits(v.Float()))
	case v.Kind() == reflect.String:
		m.putText(v.String())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			m.putValue(v.Field(i))
		}
	case v.Kind() == reflect.Bool && v.Bool():
		m.putWords(1)
	case v.Kind() == reflect.Bool:
		m.putWords(0)
	case v.IsNil():
		m.putWords(math.MaxUint64)
	case v.Kind() == reflect.Interface:
		m.putText(v.Interface().(error).Error())
	default:
		m.putWords(uint64(v.Len()))
		s := unsafe.Slice((*float64)(v.UnsafePointer()), v.Len())
		if m.offsetOf == nil {
			m.content = append(m.content, bytesOf(s)...)
		} else if len(s) > 0 {
			m.putWords(uint64(m.offsetOf(s)))
		}
	}
}

// readValue removes the next value and stores it in v, which must be addressable.
func (m *message) readValue(v reflect.Value) {
	switch {
	case v.CanInt():
		v.SetInt(int64(m.nextWord()))
	case v.CanUint():
		v.SetUint(m.nextWord())
	case v.CanFloat():
		v.SetFloat(math.Float64frombits(m.nextWord()))
	case v.Kind() == reflect.Bool:
		v.SetBool(m.nextWord() != 0)
	case v.Kind() == reflect.String:
		v.SetString(m.nextText())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			// The pointer makes unexported fields settable.
			m.readValue(reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem())
		}
	case binary.LittleEndian.Uint64(m.content) == math.MaxUint64:
		m.nextWord()
		v.SetZero()
	case v.Kind() == reflect.Interface:
		v.Set(reflect.ValueOf(errors.New(m.nextText())))
	default:
		length := int(m.nextWord())
		s := make([]float64, 0) // not nil, unlike the slices above
		if m.memory == nil {
			s = make([]float64, length)
			m.content = m.content[copy(bytesOf(s), m.content):]
		} else if length > 0 {
			offset := int(m.nextWord())
			s = m.memory[offset : offset+length : offset+length]
		}
		v.Set(reflect.NewAt(v.Type(), unsafe.Pointer(&s)).Elem()) // v can have a named type
	}
}

// bytesOf returns the memory of s as bytes.
func bytesOf(s []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 8*len(s))
}
