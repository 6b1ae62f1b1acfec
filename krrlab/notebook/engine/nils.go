package engine

import (
	"go/types"
	"reflect"
	"unsafe"

	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/ssa"
)

// nils makes maps take nil as a key and as an element where these are interfaces. ixgo hands the map an invalid
// reflect.Value for it, which panics as a key and, as an element, deletes the entry.
func nils(pfn reflect.Value, code []func(*ixgo.Frame)) {
	index := *(*map[ssa.Value]uint32)(field(pfn, "index", reflect.TypeFor[map[ssa.Value]uint32]()))
	register := func(v ssa.Value) uint32 { return index[v] & 0xffffff }
	for i, instr := range *(*[]ssa.Instruction)(field(pfn, "ssaInstrs", reflect.TypeFor[[]ssa.Instruction]())) {
		switch instr := instr.(type) {
		case *ssa.MapUpdate:
			if !interfaces(instr.Map.Type()) {
				continue
			}
			m, k, v := register(instr.Map), register(instr.Key), register(instr.Value)
			code[i] = func(fr *ixgo.Frame) {
				stack := stackOf(fr)
				to := reflect.ValueOf(stack[m])
				to.SetMapIndex(valueAs(stack[k], to.Type().Key()), valueAs(stack[v], to.Type().Elem()))
			}
		case *ssa.Lookup:
			if !interfaces(instr.X.Type()) {
				continue
			}
			r, m, k := register(instr), register(instr.X), register(instr.Index)
			code[i] = func(fr *ixgo.Frame) {
				stack := stackOf(fr)
				of := reflect.ValueOf(stack[m])
				v := of.MapIndex(valueAs(stack[k], of.Type().Key()))
				ok := v.IsValid()
				if !ok {
					v = reflect.Zero(of.Type().Elem())
				}
				if stack[r] = v.Interface(); instr.CommaOk {
					stack[r] = ixgo.Tuple{stack[r], ok}
				}
			}
		case *ssa.Call:
			if b, ok := instr.Call.Value.(*ssa.Builtin); !ok || b.Name() != "delete" || !interfaces(instr.Call.Args[0].Type()) {
				continue
			}
			m, k := register(instr.Call.Args[0]), register(instr.Call.Args[1])
			code[i] = func(fr *ixgo.Frame) {
				stack := stackOf(fr)
				of := reflect.ValueOf(stack[m])
				of.SetMapIndex(valueAs(stack[k], of.Type().Key()), reflect.Value{})
			}
		}
	}
}

func stackOf(fr *ixgo.Frame) []any { return *(*[]any)(unsafe.Add(unsafe.Pointer(fr), frame.stack)) }

// interfaces reports whether the keys or elements of a map are interfaces.
func interfaces(t types.Type) bool {
	m, ok := t.Underlying().(*types.Map)
	return ok && (types.IsInterface(m.Key()) || types.IsInterface(m.Elem()))
}

// valueAs returns a value for a place of a type, which nil fits if it is an interface.
func valueAs(v any, t reflect.Type) reflect.Value {
	if v == nil {
		return reflect.Zero(t)
	}
	return reflect.ValueOf(v)
}
