package engine

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/ssa"
)

// feature is a part of the language that depends on unexported fields of ixgo. If the version of ixgo lacks one of the
// fields, the feature is disabled and MissingFeatures reports it.
type feature struct {
	// name describes the feature in messages; fallback describes the behavior without it.
	name, fallback string
	fields         []*field
}

// The features and the fields that each needs. All uses of unexported fields in this package belong to a feature.
var (
	stopFeature = &feature{"interrupts of loops and recursions",
		"after an interrupt the cell goes on in the background",
		[]*field{funcsField, instrsField, blocksField}}
	phiFeature = &feature{"quick loops", "loops take longer",
		[]*field{funcsField, instrsField, blocksField, registersField, stackField, predField}}
	invokeFeature = &feature{"types with methods", "cells that declare one are refused",
		[]*field{funcsField, instrsField, ssaInstrsField, registersField, stackField, methodSetsField}}
	redirectFeature = &feature{"functions declared again, and nil in maps", "closures and methods call the earlier " +
		"functions, nil as a key panics, and storing an interface that may be nil is refused",
		[]*field{funcsField, instrsField, ssaInstrsField, registersField, stackField}}
	resultFeature = &feature{"frames used again", "calls take longer", []*field{funcsField, usedField}}
	panicFeature  = &feature{"panics in goroutines", "such a goroutine ends without an error message",
		[]*field{goPanicsField}}
	typeFeature = &feature{"types of cells", "cells that declare one are refused", []*field{recordField}}

	features = []*feature{stopFeature, phiFeature, invokeFeature, redirectFeature, resultFeature, panicFeature,
		typeFeature}
)

// Unexported fields of ixgo, with the names of their types as reflection reports them.
var (
	interpType, frameType = reflect.TypeFor[ixgo.Interp](), reflect.TypeFor[ixgo.Frame]()

	funcsField      = findField(interpType, "funcs", "map[*ssa.Function]*ixgo.function")
	instrsField     = findField(interpType, "funcs.Instrs", "[]func(*ixgo.frame)")
	ssaInstrsField  = findField(interpType, "funcs.ssaInstrs", "[]ssa.Instruction")
	blocksField     = findField(interpType, "funcs.Blocks", "[]int")
	registersField  = findField(interpType, "funcs.index", "map[ssa.Value]uint32")
	usedField       = findField(interpType, "funcs.used", "int32")
	methodSetsField = findField(interpType, "msets", "map[reflect.Type]map[string]*ssa.Function")
	goPanicsField   = findField(interpType, "cherror", "chan ixgo.PanicError")
	recordField     = findField(interpType, "record", "*ixgo.TypesRecord")
	stackField      = findField(frameType, "stack", "[]interface {}")
	predField       = findField(frameType, "pred", "int")
)

// field is a possibly unexported field of a struct.
type field struct {
	path, typeName string  // struct type and path of the field, for messages, and the expected type of the field
	offset         uintptr // in bytes, from the start of the struct that contains the field
	exists         bool    // the field exists and has the expected type
}

// findField looks up a field of a struct by its path, which continues through pointers and elements of maps. If there
// is no such field of the type typeName, exists is false.
func findField(t reflect.Type, path, typeName string) *field {
	result := &field{path: t.String() + "." + path, typeName: typeName}
	for name := range strings.SplitSeq(path, ".") {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return result
		}
		structField, ok := t.FieldByName(name)
		if !ok {
			return result
		}
		t, result.offset = structField.Type, structField.Offset
	}
	result.exists = t.String() == typeName
	return result
}

// available reports whether all fields of a feature exist with the expected types.
func (f *feature) available() bool { return f.missing() == nil }

// missing returns a field that the feature needs and that does not exist, or nil.
func (f *feature) missing() *field {
	for _, required := range f.fields {
		if !required.exists {
			return required
		}
	}
	return nil
}

// MissingFeatures returns a message for each feature that is disabled because the program was built with a version of
// ixgo or Go that lacks a field.
func MissingFeatures() (lines []string) {
	for _, f := range features {
		if missingField := f.missing(); missingField != nil {
			lines = append(lines, fmt.Sprintf("this kernel lacks %s: %s (%s is no %s: ixgo or Go is another version)",
				f.name, f.fallback, missingField.path, missingField.typeName))
		}
	}
	return lines
}

// fieldAddr returns the address of a field of the struct object. The field must exist and have the type T.
func fieldAddr[T, S any](object *S, f *field) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(object), f.offset))
}

// function is a function that ixgo has compiled.
type function struct {
	ssa    *ssa.Function
	object *byte               // ixgo's representation of the function
	code   []func(*ixgo.Frame) // executable instructions
}

// compiledFunctions returns the functions of an interpreter.
func compiledFunctions(interp *ixgo.Interp) (out []function) {
	table := reflect.NewAt(interpType, unsafe.Pointer(interp)).Elem().FieldByName("funcs")
	for entries := table.MapRange(); entries.Next(); {
		key, value := entries.Key().UnsafePointer(), entries.Value().UnsafePointer()
		f := function{ssa: (*ssa.Function)(key), object: (*byte)(value)}
		if instrsField.exists {
			f.code = *fieldAddr[[]func(*ixgo.Frame)](f.object, instrsField)
		}
		out = append(out, f)
	}
	return out
}

// instructions returns the ssa instructions from which the code of a function was generated.
func (f function) instructions() []ssa.Instruction {
	return *fieldAddr[[]ssa.Instruction](f.object, ssaInstrsField)
}

// register returns the index of a value in the stack of a frame.
func (f function) register(v ssa.Value) uint32 {
	const indexMask = 0xffffff // ixgo keeps the kind of the value in the upper 8 bits
	return (*fieldAddr[map[ssa.Value]uint32](f.object, registersField))[v] & indexMask
}

// registersOf returns the register of each value.
func (f function) registersOf(values []ssa.Value) (out []uint32) {
	for _, v := range values {
		out = append(out, f.register(v))
	}
	return out
}

// stackOf returns the registers of a frame.
func stackOf(frame *ixgo.Frame) []any { return *fieldAddr[[]any](frame, stackField) }
