package engine

import (
	"go/types"
	"reflect"
	"slices"

	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// fixNilMaps corrects accesses to maps with keys or elements of an interface type. For nil, ixgo passes an invalid
// reflect.Value to the map. An invalid key causes a panic, and an invalid element deletes the entry.
func (f function) fixNilMaps() {
	for i, instr := range f.instructions() {
		switch instr := instr.(type) {
		case *ssa.MapUpdate:
			f.fixMapUpdate(i, instr.Map, instr.Key, instr.Value)
		case *ssa.Call:
			if builtin, ok := instr.Call.Value.(*ssa.Builtin); ok && builtin.Name() == "delete" {
				f.fixMapUpdate(i, instr.Call.Args[0], instr.Call.Args[1], nil)
			}
		case *ssa.Lookup:
			if !holdsInterfaces(instr.X.Type()) {
				continue
			}
			resultReg, mapReg, keyReg := f.register(instr), f.register(instr.X), f.register(instr.Index)
			f.code[i] = func(frame *ixgo.Frame) {
				stack := stackOf(frame)
				mapValue := reflect.ValueOf(stack[mapReg])
				element := mapValue.MapIndex(valueAs(stack[keyReg], mapValue.Type().Key()))
				ok := element.IsValid()
				if !ok {
					element = reflect.Zero(mapValue.Type().Elem())
				}
				if stack[resultReg] = element.Interface(); instr.CommaOk {
					stack[resultReg] = ixgo.Tuple{stack[resultReg], ok}
				}
			}
		}
	}
}

// fixMapUpdate makes instruction i set the entry of a map at key to element, or delete the entry if element is nil.
func (f function) fixMapUpdate(i int, mapOperand, key, element ssa.Value) {
	if !holdsInterfaces(mapOperand.Type()) {
		return
	}
	mapReg, keyReg, elementReg := f.register(mapOperand), f.register(key), f.register(element)
	f.code[i] = func(frame *ixgo.Frame) {
		stack := stackOf(frame)
		mapValue, newElement := reflect.ValueOf(stack[mapReg]), reflect.Value{}
		if element != nil {
			newElement = valueAs(stack[elementReg], mapValue.Type().Elem())
		}
		mapValue.SetMapIndex(valueAs(stack[keyReg], mapValue.Type().Key()), newElement)
	}
}

// holdsInterfaces reports whether the keys or elements of the map type t are interfaces.
func holdsInterfaces(t types.Type) bool {
	mapType, ok := t.Underlying().(*types.Map)
	return ok && (types.IsInterface(mapType.Key()) || types.IsInterface(mapType.Elem()))
}

// valueAs returns v as a reflect.Value that is assignable to type t; a nil v becomes the zero value of t.
func valueAs(v any, t reflect.Type) reflect.Value {
	if v == nil {
		return reflect.Zero(t)
	}
	return reflect.ValueOf(v)
}

// refuseNilEntries returns an error if the program stores an interface that may be nil in a map, because ixgo would
// delete the entry. It is used if redirectFeature is not available, so that fixNilMaps cannot be applied.
func refuseNilEntries(prog *ssa.Program) error {
	for f := range ssautil.AllFunctions(prog) {
		for _, block := range f.Blocks {
			index := slices.IndexFunc(block.Instrs, storesMaybeNil)
			if index >= 0 {
				return types.Error{Fset: prog.Fset, Pos: block.Instrs[index].Pos(),
					Msg: "an interface that may be nil is stored in a map, which needs what this kernel lacks (see " +
						"what it said at first)"}
			}
		}
	}
	return nil
}

// storesMaybeNil reports whether an instruction stores an interface that may be nil in a map.
func storesMaybeNil(instr ssa.Instruction) bool {
	update, ok := instr.(*ssa.MapUpdate)
	if !ok || !types.IsInterface(update.Value.Type()) {
		return false
	}
	_, isNonNil := update.Value.(*ssa.MakeInterface)
	return !isNonNil
}
