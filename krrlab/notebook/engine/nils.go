package engine

import (
	"go/types"
	"reflect"

	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// nils makes maps take nil as a key and as an element where these are interfaces. ixgo hands the map an invalid
// reflect.Value for it, which panics as a key and, as an element, deletes the entry.
func (f function) nils() {
	for i, instr := range f.instructions() {
		switch instr := instr.(type) {
		case *ssa.MapUpdate:
			f.update(i, instr.Map, instr.Key, instr.Value)
		case *ssa.Call:
			if b, ok := instr.Call.Value.(*ssa.Builtin); ok && b.Name() == "delete" {
				f.update(i, instr.Call.Args[0], instr.Call.Args[1], nil)
			}
		case *ssa.Lookup:
			if !interfaces(instr.X.Type()) {
				continue
			}
			r, m, k := f.register(instr), f.register(instr.X), f.register(instr.Index)
			f.code[i] = func(fr *ixgo.Frame) {
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
		}
	}
}

// update makes an instruction set an entry of a map, or delete it where there is no element.
func (f function) update(i int, of, key, element ssa.Value) {
	if !interfaces(of.Type()) {
		return
	}
	m, k, v := f.register(of), f.register(key), f.register(element)
	f.code[i] = func(fr *ixgo.Frame) {
		stack := stackOf(fr)
		of, set := reflect.ValueOf(stack[m]), reflect.Value{}
		if element != nil {
			set = valueAs(stack[v], of.Type().Elem())
		}
		of.SetMapIndex(valueAs(stack[k], of.Type().Key()), set)
	}
}

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

// lostEntry is for a kernel without rewriting: it refuses to store an interface that may be nil in a map, where ixgo
// would delete the entry.
func lostEntry(prog *ssa.Program) error {
	for f := range ssautil.AllFunctions(prog) {
		for _, b := range f.Blocks {
			for _, i := range b.Instrs {
				set, ok := i.(*ssa.MapUpdate)
				if !ok || !types.IsInterface(set.Value.Type()) {
					continue
				}
				if _, ok := set.Value.(*ssa.MakeInterface); !ok {
					return types.Error{Fset: prog.Fset, Pos: set.Pos(),
						Msg: "an interface that may be nil is stored in a map, which needs what this kernel lacks " +
							"(see what it said at first)"}
				}
			}
		}
	}
	return nil
}
