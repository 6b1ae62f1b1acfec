package engine

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/ssa"
)

// feature is a part of the language that cells have by way of fields that ixgo does not export. Where another
// version of these lacks one of the fields, the feature is disabled, and the kernel reports it.
type feature struct {
	name, without string
	fields        []*field
}

// The features, with what cells do without each, and the fields that each needs. Nothing else of this package uses
// private fields.
var (
	halting = &feature{"interrupts of loops and recursions", "an interrupt leaves the cell behind",
		[]*field{funcs, instrs, blocks}}
	parallel = &feature{"quick loops", "loops take longer",
		[]*field{funcs, instrs, blocks, registers, stack, pred}}
	invoking = &feature{"types with methods", "cells that declare one are refused",
		[]*field{funcs, instrs, ssaInstrs, registers, stack, methodSets}}
	rewriting = &feature{"functions declared again, and nil in maps", "closures and methods call the earlier " +
		"functions, nil as a key panics, and storing an interface that may be nil is refused",
		[]*field{funcs, instrs, ssaInstrs, registers, stack}}
	results = &feature{"frames used again", "calls take longer", []*field{funcs, used}}
	reports = &feature{"panics in goroutines", "such a goroutine stops without a word", []*field{goPanics}}
	sharing = &feature{"types of cells", "cells that declare one are refused", []*field{record}}

	features = []*feature{halting, parallel, invoking, rewriting, results, reports, sharing}
)

// Names of types that ixgo does not export are those of reflection.
var (
	interp, frame = reflect.TypeFor[ixgo.Interp](), reflect.TypeFor[ixgo.Frame]()

	funcs      = find(interp, "funcs", "map[*ssa.Function]*ixgo.function")
	instrs     = find(interp, "funcs.Instrs", "[]func(*ixgo.frame)")
	ssaInstrs  = find(interp, "funcs.ssaInstrs", "[]ssa.Instruction")
	blocks     = find(interp, "funcs.Blocks", "[]int")
	registers  = find(interp, "funcs.index", "map[ssa.Value]uint32")
	used       = find(interp, "funcs.used", "int32")
	methodSets = find(interp, "msets", "map[reflect.Type]map[string]*ssa.Function")
	goPanics   = find(interp, "cherror", "chan ixgo.PanicError")
	record     = find(interp, "record", "*ixgo.TypesRecord")
	stack      = find(frame, "stack", "[]interface {}")
	pred       = find(frame, "pred", "int")
)

// field is a field of a struct that a program cannot name.
type field struct {
	path, typ string
	offset    uintptr
	found     bool
}

// find looks for a field by its path, which continues through pointers and elements of maps.
func find(t reflect.Type, path, typ string) *field {
	out := &field{path: t.String() + "." + path, typ: typ}
	for name := range strings.SplitSeq(path, ".") {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return out
		}
		f, ok := t.FieldByName(name)
		if !ok {
			return out
		}
		t, out.offset = f.Type, f.Offset
	}
	out.found = t.String() == typ
	return out
}

// on reports whether all fields of a feature are there.
func (f *feature) on() bool { return f.missing() == nil }

func (f *feature) missing() *field {
	for _, x := range f.fields {
		if !x.found {
			return x
		}
	}
	return nil
}

// Missing says in a line each what cells do without, since this program was built with versions of ixgo or of Go
// that lack a field.
func Missing() (lines []string) {
	for _, f := range features {
		if x := f.missing(); x != nil {
			lines = append(lines, fmt.Sprintf("this kernel lacks %s: %s (%s is no %s: ixgo or Go is another version)",
				f.name, f.without, x.path, x.typ))
		}
	}
	return lines
}

// at returns the address of a field.
func at[T, S any](of *S, f *field) *T { return (*T)(unsafe.Add(unsafe.Pointer(of), f.offset)) }

// function is one that ixgo has compiled.
type function struct {
	ssa  *ssa.Function
	of   *byte // ixgo's function
	code []func(*ixgo.Frame)
}

// functions returns those that an interpreter executes.
func functions(in *ixgo.Interp) (out []function) {
	all := reflect.NewAt(interp, unsafe.Pointer(in)).Elem().FieldByName("funcs")
	for it := all.MapRange(); it.Next(); {
		f := function{ssa: (*ssa.Function)(it.Key().UnsafePointer()), of: (*byte)(it.Value().UnsafePointer())}
		if instrs.found {
			f.code = *at[[]func(*ixgo.Frame)](f.of, instrs)
		}
		out = append(out, f)
	}
	return out
}

// instructions returns what the code of a function was made of.
func (f function) instructions() []ssa.Instruction { return *at[[]ssa.Instruction](f.of, ssaInstrs) }

// register returns the place of a value in the stack of a frame.
func (f function) register(v ssa.Value) uint32 {
	return (*at[map[ssa.Value]uint32](f.of, registers))[v] & 0xffffff
}

// places returns those of values.
func (f function) places(vs []ssa.Value) (out []uint32) {
	for _, v := range vs {
		out = append(out, f.register(v))
	}
	return out
}

func stackOf(fr *ixgo.Frame) []any { return *at[[]any](fr, stack) }
