package native

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"reflect"
	"unsafe"
)

// This file is a part of the compiled program too, which an older Go may build.

// message is what goes through a pipe: words of 8 bytes, and strings with their length before them.
type message struct {
	b   []byte
	at  func(s []float64) int // where a slice lies in the memory shared, for a request; nil: slices are in the message
	mem []float64             // the memory shared, of a request that is read
}

func (m *message) words(vs ...uint64) {
	for _, v := range vs {
		m.b = binary.LittleEndian.AppendUint64(m.b, v)
	}
}

func (m *message) text(s string) {
	m.words(uint64(len(s)))
	m.b = append(m.b, s...)
}

func (m *message) next() uint64 {
	v := binary.LittleEndian.Uint64(m.b)
	m.b = m.b[8:]
	return v
}

func (m *message) nextText() string {
	n := m.next()
	s := string(m.b[:n])
	m.b = m.b[n:]
	return s
}

// send writes a message, with its length before it, in one piece.
func (m *message) send(w io.Writer) error {
	_, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(m.b))), m.b...))
	return err
}

// receive reads a message.
func receive(r io.Reader) (*message, error) {
	m := &message{b: make([]byte, 8)}
	_, err := io.ReadFull(r, m.b)
	if err == nil {
		m.b = make([]byte, m.next())
		_, err = io.ReadFull(r, m.b)
	}
	return m, err
}

var errorType = reflect.TypeFor[error]()

// foreign returns the type within t that cannot be sent, nil if all of t can: numbers, strings, bools, slices of
// float64, structs of these, and errors as results.
func foreign(t reflect.Type, result bool) reflect.Type {
	k := t.Kind()
	if k == reflect.Struct {
		for i := range t.NumField() {
			if bad := foreign(t.Field(i).Type, false); bad != nil {
				return bad
			}
		}
		return nil
	}
	if k >= reflect.Bool && k <= reflect.Float64 && k != reflect.Uintptr || k == reflect.String || k == reflect.Slice &&
		t.Elem().Kind() == reflect.Float64 || result && t == errorType {
		return nil
	}
	return t
}

// put adds a value.
func (m *message) put(v reflect.Value) {
	switch {
	case v.CanInt():
		m.words(uint64(v.Int()))
	case v.CanUint():
		m.words(v.Uint())
	case v.CanFloat():
		m.words(math.Float64bits(v.Float()))
	case v.Kind() == reflect.String:
		m.text(v.String())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			m.put(v.Field(i))
		}
	case v.Kind() == reflect.Bool && v.Bool():
		m.words(1)
	case v.Kind() == reflect.Bool:
		m.words(0)
	case v.IsNil():
		m.words(math.MaxUint64)
	case v.Kind() == reflect.Interface:
		m.text(v.Interface().(error).Error())
	default:
		m.words(uint64(v.Len()))
		s := unsafe.Slice((*float64)(v.UnsafePointer()), v.Len())
		if m.at == nil {
			m.b = append(m.b, bytesOf(s)...)
		} else if len(s) > 0 {
			m.words(uint64(m.at(s)))
		}
	}
}

// get sets a variable to the next value.
func (m *message) get(v reflect.Value) {
	switch {
	case v.CanInt():
		v.SetInt(int64(m.next()))
	case v.CanUint():
		v.SetUint(m.next())
	case v.CanFloat():
		v.SetFloat(math.Float64frombits(m.next()))
	case v.Kind() == reflect.Bool:
		v.SetBool(m.next() != 0)
	case v.Kind() == reflect.String:
		v.SetString(m.nextText())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			m.get(reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()) // unexported ones too
		}
	case binary.LittleEndian.Uint64(m.b) == math.MaxUint64:
		m.next()
		v.SetZero()
	case v.Kind() == reflect.Interface:
		v.Set(reflect.ValueOf(errors.New(m.nextText())))
	default:
		n := int(m.next())
		s := make([]float64, 0)
		if m.mem == nil {
			s = make([]float64, n)
			m.b = m.b[copy(bytesOf(s), m.b):]
		} else if n > 0 {
			at := int(m.next())
			s = m.mem[at : at+n : at+n]
		}
		v.Set(reflect.NewAt(v.Type(), unsafe.Pointer(&s)).Elem())
	}
}

// bytesOf is the memory of numbers.
func bytesOf(s []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 8*len(s))
}
